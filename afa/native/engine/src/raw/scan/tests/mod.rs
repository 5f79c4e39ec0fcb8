//! The scanner against the readers that build whole trees, and each part of a mapping by example.

mod against_json;
mod against_msgpack;
mod examples;
mod frames;
mod generated;

use std::sync::Arc;

use super::{Bad, Codec, Envelope, Head, Mapping, Operation, Padded, Scalar, Scanner, Span, list_value};
use crate::program::expression::FieldPath;
use crate::program::value::Value;
use crate::raw::record::Record;
use crate::rows::event::Data;

fn field(path: &str) -> FieldPath {
    FieldPath {
        steps: path.split('.').map(Arc::from).collect(),
        declared: 0,
    }
}

fn text(arena: &[u8], span: Span) -> Arc<str> {
    std::str::from_utf8(span.of(arena)).expect("checked").into()
}

fn value(arena: &[u8], scalar: Scalar, codec: Codec) -> Value {
    match scalar {
        Scalar::Missing => Value::Unknown,
        Scalar::Int(number) => Value::Int(number),
        Scalar::Float(number) => Value::Float(number),
        Scalar::Bool(truth) => Value::Bool(truth),
        Scalar::Text(span) => Value::Str(text(arena, span)),
        Scalar::List(span) => list_value(span.of(arena), codec),
    }
}

/// A scanner with an arena in which other records stand already.
struct Bench {
    scanner: Scanner,
    arena: Vec<u8>,
    fields: usize,
    record: Span,
}

impl Bench {
    fn new(mapping: Mapping, fields: &[FieldPath]) -> Self {
        Self {
            scanner: Scanner::new(mapping, fields),
            arena: b"before".to_vec(),
            fields: fields.len(),
            record: Span { begin: 0, length: 0 },
        }
    }

    fn set_fields(&mut self, fields: &[FieldPath]) {
        self.scanner.set_fields(fields);
        self.fields = fields.len();
    }

    /// Lets the scanner learn this record and nothing else.
    fn teach(&mut self, record: &[u8], fields: &[FieldPath]) {
        self.set_fields(fields);
        let _ = self.scan(record, &Envelope::default());
    }

    fn scan(&mut self, record: &[u8], envelope: &Envelope<'_>) -> Result<Head, Bad> {
        let begin = self.arena.len().min(1_000);
        self.arena.truncate(begin);
        self.record = Span {
            begin: u32::try_from(begin).expect("small"),
            length: u32::try_from(record.len()).expect("small"),
        };
        let before = self.arena.clone();
        let mut room = Vec::new();
        let head = self
            .scanner
            .scan(&mut self.arena, Padded::copied(record, &mut room), envelope);
        if head.is_err() {
            assert_eq!(self.arena, before, "a bad record leaves nothing behind");
        }
        head.map(|()| *self.scanner.head())
    }

    fn values(&self) -> Vec<Value> {
        let codec = self.scanner.mapping().codec;
        let values = (0..self.fields).map(|field| self.scanner.value(field));
        values.map(|scalar| value(&self.arena, scalar, codec)).collect()
    }

    fn text(&self, span: Option<Span>) -> Option<Arc<str>> {
        span.map(|span| text(&self.arena, span))
    }
}

/// A float is what its bits are, so that minus zero is another one than zero.
fn bits(value: &Value) -> String {
    match value {
        Value::Float(number) => format!("{:x}", number.to_bits()),
        other => format!("{other:?}"),
    }
}

/// The scanner says what the tree says: accepted or refused, the head, the fields, and the fields once more.
fn compare(bench: &mut Bench, record: &[u8], fields: &[FieldPath], tree: Option<Data>) {
    let shown = String::from_utf8_lossy(record).into_owned();
    let expected = tree.and_then(|data| Record::read(data, 7).ok());
    let head = bench.scan(record, &Envelope::default());
    let Some(expected) = expected else {
        assert!(head.is_err(), "accepted: {shown}");
        return;
    };
    let head = head.unwrap_or_else(|bad| panic!("{bad}: {shown}"));
    match expected {
        Record::Event(event) => {
            let operation = if event.retracts {
                Operation::Retract
            } else {
                Operation::Insert
            };
            assert_eq!(head.operation, operation, "{shown}");
            assert_eq!(bench.text(head.key).as_ref(), Some(&event.key), "{shown}");
            let id = bench
                .text(head.id)
                .map_or(crate::rows::event::Id::Number(7), |id| crate::rows::event::Id::of(&id));
            assert_eq!(
                (head.ts, head.seq, head.rev),
                (event.ts, event.seq, event.rev),
                "{shown}"
            );
            assert_eq!(
                (id, bench.text(head.kind)),
                (event.id.clone(), event.kind.clone()),
                "{shown}"
            );
            assert_eq!(bench.scanner.data(record), event.data, "{shown}");
            compare_fields(bench, fields, &event, &shown);
        }
        Record::Punctuation(ts, when) => {
            assert_eq!((head.operation, head.ts), (Operation::Punctuation, ts), "{shown}");
            assert_eq!(bench.text(head.when), when, "{shown}");
        }
        Record::ArcPunctuation(ts) => assert_eq!((head.operation, head.ts), (Operation::ArcPunctuation, ts)),
        Record::Arc => assert_eq!(head.operation, Operation::Arc),
    }
}

fn compare_fields(bench: &mut Bench, fields: &[FieldPath], event: &crate::raw::record::Event, shown: &str) {
    let expected: Vec<_> = fields.iter().map(|path| bits(&event.field(path))).collect();
    let found: Vec<_> = bench.values().iter().map(bits).collect();
    assert_eq!(found, expected, "{shown}");
    bench.arena.extend_from_slice(b"\"9}] later records");
    bench.scanner.rescan(&mut bench.arena, bench.record);
    let again: Vec<_> = bench.values().iter().map(bits).collect();
    assert_eq!(again, expected, "{shown}");
}
