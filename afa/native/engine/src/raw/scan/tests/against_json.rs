//! The scanner and the reader of trees agree on every JSON record, good or damaged.

use super::generated::{Random, record};
use super::{Bench, Codec, Mapping, compare, field};
use crate::raw::json;

const ROUNDS: usize = if cfg!(debug_assertions) { 30_000 } else { 300_000 };

fn check(bench: &mut Bench, bytes: &[u8]) {
    compare(bench, bytes, &fields(), json::read(bytes).ok());
}

fn fields() -> Vec<crate::program::expression::FieldPath> {
    let paths = [
        "a",
        "b",
        "price",
        "a.b",
        "a.b.c",
        "a_longer_name.eight_by",
        "eight_by",
        "\u{e9}",
        "x\ny",
        "data",
        "price",
        "a.b",
    ];
    paths.map(field).to_vec()
}

#[test]
fn generated_records_are_read_alike() {
    let mut bench = Bench::new(Mapping::tape(Codec::Json), &fields());
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..ROUNDS {
        let mut bytes = record(&mut random).into_bytes();
        bench.teach(&bytes, &fields());
        check(&mut bench, &bytes);
        random.damage(
            &mut bytes,
            b"\"\\{}[]:,-.eE+0123456789tfn u\x00\x1f\x7f\x80\xc3\xa9\xed",
        );
        check(&mut bench, &bytes);
    }
}

#[test]
fn every_beginning_and_every_changed_byte_is_read_alike() {
    let mut bench = Bench::new(Mapping::tape(Codec::Json), &fields());
    let whole = "{\"key\":\"\\ud83d\\ude00\",\"ts\":12345678901,\"seq\":0,\"data\":{\"price\":-31.5e1,\"a\":{\"b\":[1]},\
                 \"n\":null,\"\u{e9}\":\"x\\ty\",\"z\":[{\"q\":true}]}}";
    for end in 0..=whole.len() {
        check(&mut bench, &whole.as_bytes()[..end]);
    }
    for at in 0..whole.len() {
        for byte in 0..=255 {
            let mut bytes = whole.as_bytes().to_vec();
            bench.teach(&bytes, &fields());
            bytes[at] = byte;
            check(&mut bench, &bytes);
        }
    }
}

#[test]
fn records_like_the_last_one_are_read_alike() {
    let mut bench = Bench::new(Mapping::tape(Codec::Json), &fields());
    let values = [
        "1",
        "-2.5",
        "\"x\"",
        "\"\\n\"",
        "null",
        "true",
        "{}",
        "{\"b\":1}",
        "[1]",
        "\"\u{e9}\"",
        "",
        "[",
        "1e999",
        "01",
    ];
    for taught in values {
        for value in values {
            for extra in values {
                let shape = |a: &str, z: &str| {
                    format!(" {{\"key\":\"k\", \"ts\":1,\"data\":{{\"a\":{a},\"\u{e9}\":3,\"z\":{z}}},\"rev\":2}}\n")
                };
                bench.teach(shape(taught, "7").as_bytes(), &fields());
                check(&mut bench, shape(value, extra).as_bytes());
                check(&mut bench, shape(taught, extra).as_bytes());
                check(&mut bench, shape(taught, "8").replace("\u{e9}", "e\u{301}").as_bytes());
            }
        }
    }
}

#[test]
fn depth_is_bounded_where_values_are_wanted_and_where_not() {
    let mut bench = Bench::new(Mapping::tape(Codec::Json), &fields());
    for levels in 95..105 {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            for inner in ["1", "[]", "{}"] {
                let nested = format!("{}{inner}{}", open.repeat(levels), close.repeat(levels));
                for record in [
                    format!("{{\"key\":\"k\",\"ts\":1,\"data\":{{\"a\":{nested}}}}}"),
                    format!("{{\"key\":\"k\",\"ts\":1,\"other\":{nested}}}"),
                    nested,
                ] {
                    check(&mut bench, record.as_bytes());
                }
            }
        }
    }
    check(&mut bench, "[".repeat(100_000).as_bytes());
    check(&mut bench, "{\"data\":".repeat(100_000).as_bytes());
}

#[test]
fn floats_are_those_of_the_library() {
    let mut bench = Bench::new(Mapping::tape(Codec::Json), &fields());
    let mut random = Random(88_172_645_463_325_252);
    for _ in 0..ROUNDS {
        let digits = |random: &mut Random, most: usize| -> String {
            let length = 1 + random.below(most);
            (0..length)
                .map(|_| char::from(b'0' + u8::try_from(random.below(10)).expect("a digit")))
                .collect()
        };
        let whole = digits(&mut random, 12);
        let trimmed = whole.trim_start_matches('0');
        let whole = if trimmed.is_empty() { "0" } else { trimmed };
        let fraction = digits(&mut random, 20);
        let exponent = ["", "e-3", "e22", "E+23", "e-300", "e300"][random.below(6)];
        let record = format!("{{\"key\":\"k\",\"ts\":1,\"data\":{{\"price\":-{whole}.{fraction}{exponent}}}}}");
        check(&mut bench, record.as_bytes());
    }
}
