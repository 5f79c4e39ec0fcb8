//! Predicates evaluated together against the expression language, row by row: the same truths, as many unknown ones.

use std::sync::Arc;

use afa_engine::arrow::rows::ArrowRows;
use afa_engine::predicates::index::PredicateIndex;
use afa_engine::predicates::predicate::{Fields, Predicates};
use afa_engine::program::expression::{FieldPath, Node};
use afa_engine::program::value::{Comparison, Value};
use afa_engine::rows::chunk::Chunk;
use afa_engine::rows::view::RowView;
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array,
};
use proptest::prelude::*;
use proptest::sample::select;

const COMPARISONS: [Comparison; 6] = [
    Comparison::Equal,
    Comparison::NotEqual,
    Comparison::Less,
    Comparison::LessEqual,
    Comparison::Greater,
    Comparison::GreaterEqual,
];
const INTS: [i64; 14] = [
    i64::MIN,
    i64::MIN + 1,
    -(1 << 53) - 1,
    -1,
    0,
    1,
    2,
    7,
    (1 << 53) - 1,
    1 << 53,
    (1 << 53) + 1,
    i64::MAX - 511,
    i64::MAX - 1,
    i64::MAX,
];
const FLOATS: [f64; 14] = [
    f64::MIN,
    -9_223_372_036_854_775_808.0,
    -1.0,
    -5e-324,
    -0.0,
    0.0,
    5e-324,
    0.5,
    1.0,
    7.0,
    9_007_199_254_740_992.0,
    9_223_372_036_854_774_784.0,
    9_223_372_036_854_775_808.0,
    f64::MAX,
];
const TEXTS: [&str; 5] = ["", "a", "ab", "b", "ä"];

fn constant() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => select(&INTS[..]).prop_map(Value::Int),
        4 => select(&FLOATS[..]).prop_map(Value::Float),
        2 => (-9_i64..9).prop_map(Value::Int),
        3 => select(&TEXTS[..]).prop_map(|text| Value::Str(text.into())),
        1 => any::<bool>().prop_map(Value::Bool),
    ]
}

fn predicate() -> impl Strategy<Value = Node> {
    // Most of what is generated should be in one group.
    let field = prop_oneof![3 => Just(0_u8), 1 => 0_u8..5].prop_map(field_declared);
    let compared = (field.clone(), select(&COMPARISONS[..]), constant(), any::<bool>());
    let compared = compared.prop_map(|(field, comparison, constant, turned)| {
        let (field, constant) = (Box::new(field), Box::new(Node::Literal(constant)));
        let (left, right) = if turned { (constant, field) } else { (field, constant) };
        Node::Comparison(comparison, left, right)
    });
    let items = prop_oneof![
        proptest::collection::vec(constant(), 0..4),
        proptest::collection::vec(select(&INTS[..]).prop_map(Value::Int), 1..4),
    ];
    let member = (field, items).prop_map(|(field, items)| Node::Membership(Box::new(field), items));
    prop_oneof![4 => compared, 1 => member]
}

fn field_declared(declared: u8) -> Node {
    let steps = Arc::from([Arc::from("x")]);
    Node::Field(FieldPath { steps, declared })
}

fn column() -> impl Strategy<Value = ArrayRef> {
    let rows = 0..150_usize;
    let float = prop_oneof![
        8 => select(&FLOATS[..]),
        1 => select(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY][..]),
    ];
    let optional_ints = proptest::collection::vec(proptest::option::weighted(0.9, select(&INTS[..])), rows.clone());
    let ints = proptest::collection::vec(select(&INTS[..]), rows.clone());
    let floats = proptest::collection::vec(proptest::option::weighted(0.9, float), rows.clone());
    let texts = proptest::collection::vec(proptest::option::weighted(0.9, select(&TEXTS[..])), rows.clone());
    let truths = proptest::collection::vec(proptest::option::weighted(0.9, any::<bool>()), rows.clone());
    let large = proptest::collection::vec(select(&[0, 7, u64::MAX][..]), rows);
    prop_oneof![
        optional_ints.prop_map(|values| array(Int64Array::from(values))),
        ints.prop_map(|values| array(Int64Array::from(values))),
        floats.prop_map(|values| array(Float64Array::from(values))),
        texts.clone().prop_map(|values| array(StringArray::from(values))),
        texts.prop_map(|values| array(values.into_iter().collect::<DictionaryArray<Int32Type>>())),
        truths.prop_map(|values| array(BooleanArray::from(values))),
        large.prop_map(|values| array(UInt64Array::from(values))),
    ]
}

fn array(array: impl Array + 'static) -> ArrayRef {
    Arc::new(array)
}

/// Events whose field `x`, or with another name none, is this column from a row on.
fn chunk(name: &str, values: &ArrayRef, from: usize) -> Chunk {
    let length = values.len();
    let times = Int64Array::from_iter_values(0..i64::try_from(length).unwrap());
    let columns = [
        ("key", array(StringArray::from(vec!["k"; length]))),
        ("ts", array(times)),
        (name, values.clone()),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true))).unwrap();
    let rows = ArrowRows::new(&batch.slice(from, length - from)).unwrap();
    Chunk::arrow(rows, 0)
}

fn check(chunk: &mut Chunk, nodes: &[Node]) {
    let fields = Fields::default();
    let mut predicates = Predicates::default();
    let mut numbers: Vec<u32> = nodes.iter().map(|node| predicates.number(node.clone())).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let index = PredicateIndex::new(numbers.clone(), &predicates);
    chunk.ready_truths(&index, &mut predicates, &fields, &[]);
    let mut unknown = 0;
    for number in &numbers {
        for offset in 0..chunk.len() {
            let row = RowView {
                chunk,
                offset,
                fields: &fields,
                scanners: &[],
            };
            let node = predicates.node(*number);
            let truth = node.evaluate(Some(&row), &[]).as_truth();
            unknown += u64::from(truth.is_none());
            assert_eq!(
                chunk.truths(*number).get(offset),
                truth == Some(true),
                "{node:?} in row {offset}"
            );
        }
        let rest = chunk.truth_word(*number, chunk.len());
        assert_eq!(rest, 0, "no bits behind the last row");
    }
    assert_eq!(predicates.unknown, unknown);
    assert_eq!(predicates.evaluations, (numbers.len() * chunk.len()) as u64);
}

proptest! {
    #[test]
    fn truths_are_those_of_the_language(
        values in column(),
        nodes in proptest::collection::vec(predicate(), 0..200),
        from in 0_usize..70,
        missing in proptest::bool::weighted(0.05),
    ) {
        let name = if missing { "y" } else { "x" };
        check(&mut chunk(name, &values, from.min(values.len())), &nodes);
    }
}

#[test]
fn those_that_came_later_are_evaluated_too() {
    let values = array(Int64Array::from_iter_values(0..100));
    let mut chunk = chunk("x", &values, 0);
    let (fields, mut predicates) = (Fields::default(), Predicates::default());
    let equal = |constant| {
        let constant = Box::new(Node::Literal(Value::Int(constant)));
        Node::Comparison(Comparison::Equal, Box::new(field_declared(0)), constant)
    };
    for count in [40, 41, 90] {
        let numbers: Vec<u32> = (0..count).map(|constant| predicates.number(equal(constant))).collect();
        let index = PredicateIndex::new(numbers.clone(), &predicates);
        for _ in 0..2 {
            chunk.ready_truths(&index, &mut predicates, &fields, &[]);
        }
        assert_eq!(predicates.evaluations, numbers.len() as u64 * 100);
        for (constant, number) in numbers.iter().enumerate() {
            let truths = (0..100).filter(|row| chunk.truths(*number).get(*row));
            assert_eq!(truths.collect::<Vec<_>>(), [constant]);
        }
        chunk.forget_truths(&[]);
    }
}
