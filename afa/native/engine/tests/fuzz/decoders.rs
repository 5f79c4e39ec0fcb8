//! Scanners: what a record means does not depend on the records before it, and is what the reader of trees sees.

use std::sync::Arc;

use afa_engine::program::expression::FieldPath;
use afa_engine::program::value::Value;
use afa_engine::raw::json;
use afa_engine::raw::scan::{Bad, Codec, Envelope, Head, Mapping, Padded, Scalar, Scanner, Span, list_value};
use afa_engine::rows::event::Data;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use crate::bytes::{Bytes, NAMES};

pub(crate) fn fields() -> Vec<FieldPath> {
    let nested = [vec!["in", "x"], vec!["any", "n"]];
    let steps = NAMES.iter().map(|name| vec![*name]).chain(nested);
    steps
        .map(|steps| FieldPath {
            steps: steps.into_iter().map(Arc::from).collect(),
            declared: 0,
        })
        .collect()
}

/// All that a scanner says of a record; texts instead of places, floats by their bits.
#[derive(Debug, PartialEq)]
struct Said {
    head: String,
    values: Vec<Value>,
    bits: Vec<Option<u64>>,
}

fn text(arena: &[u8], span: Option<Span>) -> Option<&str> {
    span.map(|span| std::str::from_utf8(span.of(arena)).expect("texts are UTF-8"))
}

fn told(head: &Head, arena: &[u8]) -> String {
    let texts = [head.key, head.id, head.kind, head.when].map(|span| text(arena, span));
    format!("{:?} {} {:?} {} {texts:?}", head.operation, head.ts, head.seq, head.rev)
}

fn value(arena: &[u8], scalar: Scalar, codec: Codec) -> Value {
    match scalar {
        Scalar::Missing => Value::Unknown,
        Scalar::Int(number) => Value::Int(number),
        Scalar::Float(number) => Value::Float(number),
        Scalar::Bool(truth) => Value::Bool(truth),
        Scalar::Text(span) => Value::Str(text(arena, Some(span)).unwrap_or_default().into()),
        Scalar::List(span) => list_value(span.of(arena), codec),
    }
}

fn said(scanner: &Scanner, arena: &[u8], fields: usize) -> Said {
    let values = (0..fields).map(|field| value(arena, scanner.value(field), scanner.mapping().codec));
    let values: Vec<Value> = values.collect();
    let bits = values.iter().map(|value| match value {
        Value::Float(number) => Some(number.to_bits()),
        _ => None,
    });
    Said {
        head: told(scanner.head(), arena),
        bits: bits.collect(),
        values,
    }
}

fn scan(scanner: &mut Scanner, arena: &mut Vec<u8>, record: &[u8], fields: usize) -> Result<Said, Bad> {
    let mut room = Vec::new();
    scanner.scan(arena, Padded::copied(record, &mut room), &Envelope::default())?;
    Ok(said(scanner, arena, fields))
}

pub(crate) fn check(records: &[Bytes], codec: Codec) -> TestCaseResult {
    let fields = fields();
    let mut used = Scanner::new(Mapping::tape(codec), &fields);
    let mut arena = Vec::new();
    for Bytes(record) in records {
        let before = arena.clone();
        let seen = scan(&mut used, &mut arena, record, fields.len());
        let mut alone = Scanner::new(Mapping::tape(codec), &fields);
        let expected = scan(&mut alone, &mut Vec::new(), record, fields.len());
        prop_assert_eq!(&seen, &expected, "{:?}", Bytes(record.clone()));
        if seen.is_err() {
            prop_assert_eq!(&arena, &before, "a bad record leaves nothing behind");
        }
        if let Ok(seen) = seen {
            prop_assert!(codec == Codec::Msgpack || json::read(record).is_ok());
            let data = alone.data(record);
            let expected: Vec<Value> = fields.iter().map(|path| at(&data, path)).collect();
            prop_assert_eq!(&seen.values, &expected);
            let place = Span {
                begin: u32::try_from(before.len()).expect("small"),
                length: u32::try_from(record.len()).expect("small"),
            };
            used.rescan(&mut arena, place);
            let again = said(&used, &arena, fields.len());
            prop_assert_eq!((again.values, again.bits), (seen.values, seen.bits), "read again");
        }
    }
    Ok(())
}

/// The field of a tree.
pub(crate) fn at(data: &Data, path: &FieldPath) -> Value {
    let found = path.steps.iter().try_fold(data, |data, step| data.get(step));
    path.conform(found.map_or(Value::Unknown, Data::value))
}
