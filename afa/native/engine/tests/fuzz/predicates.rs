//! Predicates: column by column, row by row, and on the values that were put in, from raw records and from Arrow.

use std::sync::Arc;

use afa_engine::arrow::rows::ArrowRows;
use afa_engine::predicates::index::PredicateIndex;
use afa_engine::predicates::predicate::{Fields, Predicates};
use afa_engine::program::expression::{EventView, FieldPath, Node};
use afa_engine::program::value::Value;
use afa_engine::raw::scan::{Codec, Envelope, Mapping, Padded, Scanner, Span};
use afa_engine::rows::chunk::{Chunk, Payload};
use afa_engine::rows::view::RowView;
use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestCaseResult;

use crate::bytes::NAMES;
use crate::expressions::Event;
use crate::nodes::{comparison, node, path, value};

/// Events and predicates; the first `early` events are looked at before the others come.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    nodes: Vec<Node>,
    rows: Vec<Vec<Value>>,
    early: usize,
}

pub(crate) fn cases() -> impl Strategy<Value = Case> {
    let plain = path().prop_flat_map(|path| vec(test(path), 1));
    // Many on one field are evaluated together.
    let many = path().prop_flat_map(|path| vec(test(path), 30..60));
    let any_node = node(false).prop_map(|node| vec![node]);
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
    let nodes = prop_oneof![2 => plain, 1 => many, 2 => any_node];
    (nodes, rows, 0..150_usize).prop_map(|(nodes, rows, early)| Case {
        nodes,
        early: early.min(rows.len()),
        rows,
    })
}

/// Compares a field with a constant, from either side, or looks for it among several.
fn test(path: FieldPath) -> impl Strategy<Value = Node> {
    let field = Node::Field(path.clone());
    let compared = (comparison(), value(), any::<bool>()).prop_map(move |(by, constant, turned)| {
        let [left, right] = [field.clone(), Node::Literal(constant)].map(Box::new);
        if turned {
            Node::Comparison(by, right, left)
        } else {
            Node::Comparison(by, left, right)
        }
    });
    let member = vec(value(), 0..4).prop_map(move |items| Node::Membership(Box::new(Node::Field(path.clone())), items));
    prop_oneof![6 => compared, 1 => member]
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
    predicates: &Predicates,
    chunk: &Chunk,
    (fields, scanners): (&Fields, &[Scanner]),
    numbers: &[u32],
    expected: impl Fn(&Node) -> Vec<Option<bool>>,
) -> TestCaseResult {
    let mut unknown = 0;
    for number in numbers {
        let (node, truths) = (predicates.node(*number), chunk.truths(*number));
        for (offset, truth) in expected(node).into_iter().enumerate() {
            let row = RowView {
                chunk,
                offset,
                fields,
                scanners,
            };
            prop_assert_eq!(node.evaluate(Some(&row), &[]).as_truth(), truth, "row {}", offset);
            prop_assert_eq!(truths.get(offset), truth == Some(true), "by columns, row {}", offset);
            unknown += u64::from(truth.is_none());
        }
        prop_assert_eq!(truths.word(chunk.len()), 0, "behind the last row");
    }
    prop_assert_eq!(predicates.unknown, unknown);
    prop_assert_eq!(predicates.evaluations, (numbers.len() * chunk.len()) as u64);
    Ok(())
}

/// The predicates, their numbers, and an index of them.
fn indexed(nodes: &[Node]) -> (Predicates, Vec<u32>, PredicateIndex) {
    let mut predicates = Predicates::default();
    let mut numbers: Vec<u32> = nodes.iter().map(|node| predicates.number(node.clone())).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let index = PredicateIndex::new(numbers.clone(), &predicates);
    (predicates, numbers, index)
}

fn check_scanned(case: &Case, codec: Codec) -> TestCaseResult {
    let fields = fields();
    let mut scanners = vec![Scanner::new(Mapping::tape(codec), &fields.paths)];
    let mut chunk = Chunk::scanned(0, fields.paths.len(), case.rows.len(), 64);
    let (mut predicates, numbers, index) = indexed(&case.nodes);
    for (offset, row) in case.rows.iter().enumerate() {
        if offset == case.early {
            chunk.ready_truths(&index, &mut predicates, &fields, &scanners);
        }
        push(&mut chunk, &mut scanners[0], offset, row);
    }
    chunk.ready_truths(&index, &mut predicates, &fields, &scanners);
    compare(&predicates, &chunk, (&fields, &scanners), &numbers, |node| {
        expected(node, &case.rows, event)
    })
}

fn push(chunk: &mut Chunk, scanner: &mut Scanner, number: usize, row: &[Value]) {
    let record = match scanner.mapping().codec {
        Codec::Json => json(number, row).into_bytes(),
        Codec::Msgpack => {
            let mut packed = Vec::new();
            let data = afa_engine::raw::json::read(json(number, row).as_bytes()).expect("JSON");
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
    let (mut chunk, fields) = (Chunk::arrow(rows, 0), fields());
    let (mut predicates, numbers, index) = indexed(&case.nodes);
    chunk.ready_truths(&index, &mut predicates, &fields, &[]);
    let typed_event = |ts, row: &[Value]| {
        let typed = [
            kept(&row[0], |value| matches!(value, Value::Float(_))),
            kept(&row[1], |value| matches!(value, Value::Int(_))),
            kept(&row[2], |value| matches!(value, Value::Str(_))),
            kept(&row[3], |value| matches!(value, Value::Bool(_))),
        ];
        event(ts, &typed)
    };
    compare(&predicates, &chunk, (&fields, &[]), &numbers, |node| {
        expected(node, &case.rows, typed_event)
    })
}
