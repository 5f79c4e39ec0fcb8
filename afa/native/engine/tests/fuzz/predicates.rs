//! Predicates: column by column, row by row, and on the values that were put in, from raw records and from Arrow.

use std::sync::Arc;

use afa_engine::arrow_rows::ArrowRows;
use afa_engine::chunk::{Chunk, Payload, RowView};
use afa_engine::expression::{EventView, FieldPath, Node};
use afa_engine::predicate::{Fields, Predicates, Truths};
use afa_engine::scan::{Codec, Envelope, Mapping, Padded, Scanner, Span};
use afa_engine::value::Value;
use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestCaseResult;

use crate::bytes::NAMES;
use crate::expressions::Event;
use crate::nodes::{comparison, node, path, value};

/// Events and a predicate; the first `early` events are looked at before the others come.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    node: Node,
    rows: Vec<Vec<Value>>,
    early: usize,
}

pub(crate) fn cases() -> impl Strategy<Value = Case> {
    let plain = (comparison(), path(), value(), any::<bool>()).prop_map(|(by, path, constant, turned)| {
        let sides = [Node::Field(path), Node::Literal(constant)].map(Box::new);
        let [left, right] = sides;
        if turned {
            Node::Comparison(by, right, left)
        } else {
            Node::Comparison(by, left, right)
        }
    });
    // Columns of one type, as most are, and columns of any.
    let typed = vec(value(), NAMES.len()).prop_map(|mut row| {
        row[0] = kept(&row[0], |value| matches!(value, Value::Float(_)));
        row[1] = kept(&row[1], |value| matches!(value, Value::Int(_)));
        row[2] = kept(&row[2], |value| matches!(value, Value::Str(_)));
        row[3] = kept(&row[3], |value| matches!(value, Value::Bool(_)));
        row
    });
    let kinds = prop_oneof![vec(typed, 1..9), vec(vec(value(), NAMES.len()), 1..9)];
    // Some rows many times: making up each value anew would take most of the time.
    let rows = (kinds, vec(any::<Index>(), 1..150)).prop_map(|(kinds, places)| {
        let rows = places.iter().map(|place| place.get(&kinds).clone());
        rows.collect::<Vec<_>>()
    });
    (prop_oneof![plain.boxed(), node(false)], rows, 0..150_usize).prop_map(|(node, rows, early)| Case {
        node,
        early: early.min(rows.len()),
        rows,
    })
}

fn kept(value: &Value, wanted: impl Fn(&Value) -> bool) -> Value {
    if wanted(value) { value.clone() } else { Value::Unknown }
}

fn fields() -> Fields {
    let mut fields = Fields::default();
    for name in NAMES {
        fields.add(&FieldPath {
            steps: [Arc::from(name)].into(),
            declared: 0,
        });
    }
    fields
}

fn expected(node: &Node, rows: &[Vec<Value>], event: impl Fn(i64, &[Value]) -> Event) -> Vec<Option<bool>> {
    let events = (0..).zip(rows).map(|(ts, row)| event(ts, row));
    events
        .map(|event| node.evaluate(Some(&event as &dyn EventView), &[]).as_truth())
        .collect()
}

fn event(ts: i64, values: &[Value]) -> Event {
    Event {
        ts,
        kind: Value::Unknown,
        id: Value::Str(format!("{ts:012}").into()),
        values: values.to_vec(),
    }
}

pub(crate) fn check(case: &Case) -> TestCaseResult {
    for codec in [Codec::Json, Codec::Msgpack] {
        check_scanned(case, codec)?;
    }
    check_arrow(case)
}

/// Compares what a chunk says with what is expected of its rows.
fn compare(
    evaluated: (&Truths, u64),
    chunk: &Chunk,
    (fields, scanners): (&Fields, &[Scanner]),
    node: &Node,
    expected: &[Option<bool>],
) -> TestCaseResult {
    let (truths, unknown) = evaluated;
    for (offset, truth) in expected.iter().enumerate() {
        let row = RowView {
            chunk,
            offset,
            fields,
            scanners,
        };
        prop_assert_eq!(node.evaluate(Some(&row), &[]).as_truth(), *truth, "row {}", offset);
        prop_assert_eq!(truths.get(offset), *truth == Some(true), "by columns, row {}", offset);
    }
    let count = expected.iter().filter(|truth| truth.is_none()).count();
    prop_assert_eq!(unknown, count as u64);
    Ok(())
}

fn check_scanned(case: &Case, codec: Codec) -> TestCaseResult {
    let fields = fields();
    let mut scanners = vec![Scanner::new(Mapping::tape(codec), &fields.paths)];
    let mut chunk = Chunk::scanned(0, fields.paths.len(), case.rows.len(), 64);
    let (mut predicates, mut truths) = (Predicates::default(), Truths::default());
    let number = predicates.number(case.node.clone());
    let wanted = expected(&case.node, &case.rows, event);
    for (offset, row) in case.rows.iter().enumerate() {
        if offset == case.early {
            predicates.evaluate(number, &chunk, &mut truths, &fields, &scanners);
        }
        push(&mut chunk, &mut scanners[0], offset, row);
    }
    predicates.evaluate(number, &chunk, &mut truths, &fields, &scanners);
    compare(
        (&truths, predicates.unknown),
        &chunk,
        (&fields, &scanners),
        &case.node,
        &wanted,
    )
}

fn push(chunk: &mut Chunk, scanner: &mut Scanner, number: usize, row: &[Value]) {
    let record = match scanner.mapping().codec {
        Codec::Json => json(number, row).into_bytes(),
        Codec::Msgpack => {
            let mut packed = Vec::new();
            let data = afa_engine::json::read(json(number, row).as_bytes()).expect("JSON");
            data.write_canonical(&mut packed);
            packed
        }
    };
    let Payload::Scanned(rows) = &mut chunk.payload else {
        unreachable!("a chunk of raw records");
    };
    let place = Span {
        begin: u32::try_from(rows.arena.len()).expect("small"),
        length: u32::try_from(record.len()).expect("small"),
    };
    let mut room = Vec::new();
    let padded = Padded::copied(&record, &mut room);
    scanner
        .scan(&mut rows.arena, padded, &Envelope::default())
        .expect("a good record");
    let head = *scanner.head();
    chunk.push(place, &head, scanner, number as u64);
}

fn json(number: usize, row: &[Value]) -> String {
    let members = NAMES.iter().zip(row).filter(|(_, value)| !value.is_unknown());
    let members: Vec<String> = members
        .map(|(name, value)| format!("\"{name}\":{}", shown(value)))
        .collect();
    format!("{{\"key\":\"k\",\"ts\":{number},\"data\":{{{}}}}}", members.join(","))
}

fn shown(value: &Value) -> String {
    match value {
        Value::Unknown => "null".into(),
        Value::Int(number) => number.to_string(),
        Value::Float(number) => format!("{number:e}"),
        Value::Bool(truth) => truth.to_string(),
        Value::Str(text) => {
            let escaped = text.chars().map(|char| match char {
                '"' | '\\' => format!("\\{char}"),
                '\0'..' ' => format!("\\u{:04x}", u32::from(char)),
                _ => char.into(),
            });
            format!("\"{}\"", escaped.collect::<String>())
        }
        Value::List(items) => {
            let items: Vec<String> = items.iter().map(|item| format!("{item:e}")).collect();
            format!("[{}]", items.join(","))
        }
    }
}

fn check_arrow(case: &Case) -> TestCaseResult {
    let row_count = i64::try_from(case.rows.len()).expect("few");
    let column = |place: usize| case.rows.iter().map(move |row| &row[place]);
    let floats = column(0).map(|value| {
        if let Value::Float(number) = value {
            Some(*number)
        } else {
            None
        }
    });
    let ints = column(1).map(|value| {
        if let Value::Int(number) = value {
            Some(*number)
        } else {
            None
        }
    });
    let texts = column(2).map(|value| {
        if let Value::Str(text) = value {
            Some(&**text)
        } else {
            None
        }
    });
    let columns: [(&str, ArrayRef); 6] = [
        ("key", Arc::new(StringArray::from(vec!["k"; case.rows.len()]))),
        ("ts", Arc::new(Int64Array::from_iter_values(0..row_count))),
        (NAMES[0], Arc::new(floats.collect::<Float64Array>())),
        (NAMES[1], Arc::new(ints.collect::<Int64Array>())),
        (NAMES[2], Arc::new(texts.collect::<StringArray>())),
        (
            NAMES[3],
            Arc::new(column(3).map(Value::as_truth).collect::<BooleanArray>()),
        ),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true)));
    let rows = ArrowRows::new(&batch.expect("columns of one length")).expect("a good batch");
    let (chunk, fields) = (Chunk::arrow(rows, 0), fields());
    let (mut predicates, mut truths) = (Predicates::default(), Truths::default());
    let number = predicates.number(case.node.clone());
    predicates.evaluate(number, &chunk, &mut truths, &fields, &[]);
    let wanted = expected(&case.node, &case.rows, |ts, row| {
        let typed = [
            kept(&row[0], |value| matches!(value, Value::Float(_))),
            kept(&row[1], |value| matches!(value, Value::Int(_))),
            kept(&row[2], |value| matches!(value, Value::Str(_))),
            kept(&row[3], |value| matches!(value, Value::Bool(_))),
        ];
        event(ts, &typed)
    });
    compare(
        (&truths, predicates.unknown),
        &chunk,
        (&fields, &[]),
        &case.node,
        &wanted,
    )
}
