//! Predicates over columns against the expression language's own comparison, row by row.

use afa_engine::arrow::text::Texts;
use afa_engine::predicates::kernel::{
    FloatTest, compare_floats, compare_ints, compare_ints_as_floats, find_texts, words,
};
use afa_engine::program::value::{Comparison, Value};
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, StringArray};
use arrow_buffer::NullBuffer;
use std::sync::Arc;

const ALL: [Comparison; 6] = [
    Comparison::Equal,
    Comparison::NotEqual,
    Comparison::Less,
    Comparison::LessEqual,
    Comparison::Greater,
    Comparison::GreaterEqual,
];

/// Lengths around the border of a word.
const LENGTHS: [usize; 7] = [0, 1, 63, 64, 65, 128, 200];

fn check(values: &[Value], constant: &Value, comparison: Comparison, bits: &[u64], unknown: u64) {
    let truths: Vec<Option<bool>> = values.iter().map(|value| comparison.apply(value, constant)).collect();
    let expected: Vec<bool> = truths.iter().map(|truth| *truth == Some(true)).collect();
    let found: Vec<bool> = (0..values.len())
        .map(|row| bits[row / 64] >> (row % 64) & 1 == 1)
        .collect();
    assert_eq!(found, expected, "{comparison:?} {constant:?}");
    assert_eq!(unknown, truths.iter().filter(|truth| truth.is_none()).count() as u64);
    if !values.len().is_multiple_of(64) {
        assert_eq!(
            bits[values.len() / 64] >> (values.len() % 64),
            0,
            "no bits behind the last row"
        );
    }
}

/// Every seventh row is null, or none.
fn some_nulls(length: usize, any: bool) -> Option<NullBuffer> {
    any.then(|| {
        (0..length + 3)
            .map(|row| row % 7 != 3)
            .collect::<NullBuffer>()
            .slice(3, length)
    })
}

fn masked(values: impl Iterator<Item = Value>, nulls: Option<&NullBuffer>) -> Vec<Value> {
    let masked = values.enumerate().map(|(row, value)| match nulls {
        Some(nulls) if nulls.is_null(row) => Value::Unknown,
        _ => value,
    });
    masked.collect()
}

#[test]
fn floats() {
    let samples = [
        0.5,
        -0.25,
        f64::NAN,
        -0.0,
        0.0,
        f64::INFINITY,
        1e300,
        f64::NEG_INFINITY,
        -0.25,
    ];
    for length in LENGTHS {
        for (any, finite) in [(false, true), (true, true), (false, false), (true, false)] {
            let nulls = some_nulls(length, any);
            let usable = samples.iter().cycle().filter(|number| !finite || number.is_finite());
            let column: Vec<f64> = usable.take(length).copied().collect();
            let values = masked(column.iter().map(|number| Value::float(*number)), nulls.as_ref());
            let width = words(length);
            let tests: Vec<FloatTest> = [-0.25, 0.0]
                .into_iter()
                .flat_map(|constant| ALL.map(|comparison| (comparison, constant)))
                .enumerate()
                .map(|(place, (comparison, constant))| FloatTest {
                    comparison,
                    constant,
                    begin: place * width,
                })
                .collect();
            let mut bits = vec![u64::MAX; tests.len() * width];
            let unknown = compare_floats(&column, nulls.as_ref(), &tests, &mut bits);
            for test in tests {
                let bits = &bits[test.begin..test.begin + width];
                check(&values, &Value::Float(test.constant), test.comparison, bits, unknown);
            }
        }
    }
}

#[test]
#[allow(clippy::cast_precision_loss)]
fn ints() {
    let samples = [
        0,
        1,
        -1,
        i64::MIN,
        i64::MAX,
        i64::MAX - 1,
        1 << 53,
        (1 << 53) + 1,
        (1 << 53) + 2,
        -7,
    ];
    let floats = [
        0.0,
        0.5,
        -0.5,
        9_007_199_254_740_992.0,
        i64::MAX as f64,
        i64::MIN as f64,
        1e300,
        -1e300,
        -0.0,
    ];
    for length in LENGTHS {
        for any in [false, true] {
            let nulls = some_nulls(length, any);
            let column: Vec<i64> = samples.iter().cycle().take(length).copied().collect();
            let values = masked(column.iter().map(|number| Value::Int(*number)), nulls.as_ref());
            for comparison in ALL {
                for constant in samples {
                    let (mut bits, mut unknown) = (vec![u64::MAX; words(length)], 0);
                    compare_ints(&column, nulls.as_ref(), comparison, constant, &mut bits, &mut unknown);
                    check(&values, &Value::Int(constant), comparison, &bits, unknown);
                }
                for constant in floats {
                    let (mut bits, mut unknown) = (vec![u64::MAX; words(length)], 0);
                    compare_ints_as_floats(&column, nulls.as_ref(), comparison, constant, &mut bits, &mut unknown);
                    check(&values, &Value::Float(constant), comparison, &bits, unknown);
                }
            }
        }
    }
}

#[test]
fn texts() {
    let samples = [Some("buy"), None, Some("sell"), Some(""), Some("buyer")];
    for length in LENGTHS {
        let column: Vec<Option<&str>> = samples.iter().cycle().take(length + 2).copied().collect();
        let plain: ArrayRef = Arc::new(StringArray::from(column.clone()));
        let dictionary: ArrayRef = Arc::new(column.iter().copied().collect::<DictionaryArray<Int32Type>>());
        for layout in [plain, dictionary] {
            let texts = Texts::of(&layout).unwrap();
            for constants in [&["buy"][..], &["buy", ""], &[]] {
                for negated in [false, true] {
                    let (mut bits, mut unknown) = (vec![u64::MAX; words(length)], 0);
                    find_texts(&texts, 2, constants, negated, length, &mut bits, &mut unknown);
                    let truth = |text: Option<&str>| text.is_some_and(|text| constants.contains(&text) != negated);
                    let expected: Vec<bool> = column[2..].iter().copied().map(truth).collect();
                    let found: Vec<bool> = (0..length).map(|row| bits[row / 64] >> (row % 64) & 1 == 1).collect();
                    assert_eq!(found, expected);
                    assert_eq!(unknown, column[2..].iter().filter(|text| text.is_none()).count() as u64);
                }
            }
        }
    }
}

/// Not a test: `cargo test --release -p afa-engine --test kernel -- --ignored --nocapture`.
#[test]
#[ignore = "measures"]
#[allow(clippy::cast_precision_loss)]
fn speed() {
    let rows = 4096;
    let floats: Vec<f64> = (0..rows).map(|row| f64::from(row % 17) - 8.0).collect();
    let ints: Vec<i64> = (0..i64::from(rows)).map(|row| row % 17 - 8).collect();
    let mut bits = vec![0; words(floats.len())];
    let mut unknown = 0;
    let mut time = |name: &str, run: &mut dyn FnMut(&mut [u64], &mut u64)| {
        let start = std::time::Instant::now();
        for _ in 0..20_000 {
            run(std::hint::black_box(&mut bits), &mut unknown);
        }
        println!(
            "{name}: {:.3} ns per row",
            start.elapsed().as_nanos() as f64 / 20_000.0 / f64::from(rows)
        );
    };
    for count in 1..=ALL.len() {
        let tests: Vec<FloatTest> = ALL[..count]
            .iter()
            .map(|comparison| FloatTest {
                comparison: *comparison,
                constant: -0.25,
                begin: 0,
            })
            .collect();
        time(&format!("floats, {count} at once"), &mut |bits, unknown| {
            *unknown += compare_floats(std::hint::black_box(&floats), None, &tests, bits);
        });
    }
    for comparison in [Comparison::Less, Comparison::Equal] {
        time(&format!("ints {comparison:?}"), &mut |bits, unknown| {
            compare_ints(std::hint::black_box(&ints), None, comparison, -1, bits, unknown);
        });
    }
}
