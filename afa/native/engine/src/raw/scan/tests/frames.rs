//! Records with the widths of the one before, and those that just miss them, are read as the reader of trees reads them.

use super::generated::Random;
use super::{Bench, Codec, Envelope, Mapping, Operation, bits, compare, field};
use crate::program::expression::FieldPath;
use crate::raw::json;
use crate::raw::scan::{Padded, PlainHead};

const LINE: &str = "{\"key\":\"YHOO\",\"ts\":1000000,\"data\":{\"change\":-0.80,\"name\":\"a text of some length\",\
                    \"up\":true,\"price\":49999.20,\"on\":null,\"at\":1234567890123}}";

/// Each once: a value that is wanted twice is read in another way.
fn fields() -> Vec<FieldPath> {
    ["change", "name", "up", "on", "at"].map(field).to_vec()
}

fn check(bench: &mut Bench, record: &[u8]) {
    compare(bench, record, &fields(), json::read(record).ok());
}

fn bench() -> Bench {
    Bench::new(Mapping::tape(Codec::Json), &fields())
}

#[test]
fn every_changed_byte_is_read_alike() {
    let mut bench = bench();
    for at in 0..LINE.len() {
        bench.teach(LINE.as_bytes(), &fields());
        for byte in 0..=255 {
            let mut bytes = LINE.as_bytes().to_vec();
            bytes[at] = byte;
            check(&mut bench, &bytes);
            check(&mut bench, LINE.as_bytes());
        }
    }
}

#[test]
fn whatever_fills_the_place_of_a_number_is_read_alike() {
    let mut bench = bench();
    let line = |value: &str| format!("{{\"key\":\"k\",\"ts\":1,\"data\":{{\"change\":{value},\"price\":{value}}}}}");
    let characters = b"019.-+eE \"x\x80";
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    for taught in [
        "5",
        "12",
        "-3",
        "1.5",
        "-0.8",
        "123",
        "12345678",
        "-12.3456",
        "123456789",
        "-1234.56789",
    ] {
        bench.teach(line(taught).as_bytes(), &fields());
        let length = u32::try_from(taught.len()).expect("short");
        let all = characters.len().pow(length.min(3));
        for number in 0..all.max(if length > 3 { 20_000 } else { 0 }) {
            let mut rest = number;
            let next = |_| {
                let pick = if length > 3 {
                    random.below(characters.len())
                } else {
                    rest % characters.len()
                };
                rest /= characters.len();
                characters[pick]
            };
            let value: Vec<u8> = (0..length).map(next).collect();
            let [before, behind] = ["{\"key\":\"k\",\"ts\":1,\"data\":{\"change\":", "}}"].map(str::as_bytes);
            let record = [before, &value, b",\"price\":", &value, behind].concat();
            check(&mut bench, &record);
            // Else the template would be given up.
            check(&mut bench, line(taught).as_bytes());
        }
    }
}

#[test]
fn numbers_in_a_frame_are_those_of_the_library() {
    let mut bench = bench();
    let mut random = Random(88_172_645_463_325_252);
    for _ in 0..30_000 {
        let mut digits: Vec<u8> = (0..2 + random.below(7))
            .map(|_| b"0123456789"[random.below(10)])
            .collect();
        let point = random.below(digits.len());
        if point > 0 && point + 1 < digits.len() {
            digits[point] = b'.';
        }
        let sign = if random.below(2) == 0 { "-" } else { "" };
        let number = format!("{sign}{}", String::from_utf8_lossy(&digits));
        let record = format!(
            "{{\"key\":\"k\",\"ts\":{},\"data\":{{\"change\":{number}}}}}",
            random.below(100)
        );
        check(&mut bench, record.as_bytes());
    }
}

#[test]
fn nothing_of_another_record_is_left() {
    let mut bench = bench();
    let records = [
        LINE,
        "{\"key\":\"YHOO\",\"ts\":1000000,\"data\":{\"change\":-0.80}}",
        "{\"key\":\"YHOO\",\"ts\":1000000,\"data\":{\"change\":\"abcd\"}}",
        "{\"key\":\"YHOO\",\"ts\":1000000,\"data\":{\"change\":-0.8}}",
        "{\"key\":\"YHOO\",\"ts\":100000,\"data\":{\"change\":-0.80}}",
        "{\"op\":\"punctuation\",\"ts\":5}",
        "{\"op\":\"punctuation\",\"ts\":5,\"when\":\"e.x > 1\"}",
        "{\"op\":\"retract\",\"key\":\"k\",\"ts\":5,\"id\":\"e\"}",
        "{\"key\":\"YHOO\",\"ts\":1000000,\"id\":\"e1\",\"seq\":4,\"rev\":2,\"type\":\"t\",\"data\":{\"at\":1}}",
        "{\"key\":\"YHOO\",\"ts\":1000000,\"key\":\"MSFT\",\"ts\":2,\"data\":{}}",
        "{\"key\":\"YH\\u0041O\",\"ts\":1000000,\"data\":{\"change\":true}}",
        "{\"key\":\"YH\u{e9}\",\"ts\":1000000,\"data\":{\"change\":-0.80}}",
        "{\"key\":\"YHOO\",\"ts\":1000000,\"data\":{\"change\":-0.80,}}",
        "{\"key\":\"YHOO\",\"ts\":1000000,\"data\":7}",
    ];
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..30_000 {
        let record = random.pick(&records);
        for _ in 0..=random.below(4) {
            check(&mut bench, record.as_bytes());
        }
    }
}

/// The head of a record that is plain, and whatever was read by then.
fn plain_head(bench: &mut Bench, record: &[u8]) -> Option<PlainHead> {
    let mut room = Vec::new();
    let padded = Padded::copied(record, &mut room);
    let plain = bench.scanner.begin(&mut bench.arena, padded).ok()?;
    if plain.is_some() {
        bench.scanner.begin_alike(padded);
    }
    plain
}

#[test]
fn a_record_is_alike_only_if_it_is_read_the_same_and_has_the_key() {
    let (mut alike, mut alone) = (bench(), bench());
    alike.teach(LINE.as_bytes(), &fields());
    let mut found = 0;
    for at in 0..LINE.len() {
        for byte in 0..=255 {
            let mut record = LINE.as_bytes().to_vec();
            record[at] = byte;
            assert!(plain_head(&mut alike, LINE.as_bytes()).is_some());
            let begin = alike.arena.len();
            let mut room = Vec::new();
            let padded = Padded::copied(&record, &mut room);
            let ts = alike.scanner.next_alike(u32::try_from(begin).expect("small"), padded);
            alike.arena.extend_from_slice(&record);
            let head = alone.scan(&record, &Envelope::default());
            let shown = String::from_utf8_lossy(&record);
            if let Some(ts) = ts {
                let head = head.unwrap_or_else(|bad| panic!("{bad}: {shown}"));
                assert_eq!((head.operation, head.ts), (Operation::Insert, ts), "{shown}");
                assert_eq!(alone.text(head.key).as_deref(), Some("YHOO"), "{shown}");
                let values = |bench: &Bench| bench.values().iter().map(bits).collect::<Vec<_>>();
                assert_eq!(values(&alike), values(&alone), "{shown}");
                found += 1;
            }
            alike.arena.truncate(begin - LINE.len());
        }
    }
    assert!(found > 30 * 9, "all digits, and the letters of the text");
}

#[test]
fn what_makes_a_head_more_than_plain_is_not_overlooked() {
    let mut bench = bench();
    for (record, is_plain) in [
        ("{\"key\":\"k\",\"ts\":5,\"data\":{\"change\":1}}", true),
        ("{\"key\":\"k\",\"ts\":5,\"data\":{\"change\":1},\"more\":\"x\"}", true),
        ("{\"key\":\"k\",\"ts\":5,\"data\":{\"change\":1},\"rev\":1}", false),
        ("{\"key\":\"k\",\"ts\":5,\"id\":\"e\",\"data\":{\"change\":1}}", false),
        ("{\"key\":\"k\",\"ts\":5,\"op\":\"insert\"}", false),
        ("{\"key\":\"k\",\"ts\":5,\"ts\":6}", false),
        ("{\"key\":\"k\",\"ts\":5,\"data\":1}", false),
        ("{\"key\":\"k\",\"data\":{}}", false),
        ("{\"key\":1,\"ts\":5}", false),
        ("{\"key\":\"k\",\"ts\":null}", false),
        ("{\"key\":\"k\",\"ts\":\"5\"}", false),
    ] {
        bench.teach(record.as_bytes(), &fields());
        assert_eq!(
            plain_head(&mut bench, record.as_bytes()).is_some(),
            is_plain,
            "{record}"
        );
    }
    // The kind of a number may change in its place.
    bench.teach(b"{\"key\":\"k\",\"ts\":512}", &fields());
    assert_eq!(plain_head(&mut bench, b"{\"key\":\"k\",\"ts\":1.5}"), None);
    assert_eq!(plain_head(&mut bench, b"{\"key\":\"k\",\"ts\":1e2}"), None);
    assert_eq!(
        plain_head(&mut bench, b"{\"key\":\"k\",\"ts\":-12}").map(|head| head.ts),
        Some(-12)
    );
}
