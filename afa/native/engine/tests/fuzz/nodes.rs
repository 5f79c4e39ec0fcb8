//! Expressions made up at random, and their packed form as the type checker writes it.

use std::sync::Arc;

use afa_engine::program::expression::{Attribute, FieldPath, Node};
use afa_engine::program::function::Function;
use afa_engine::program::value::{Arithmetic, Comparison, Value};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use rmp::encode;

pub(crate) const COMPARISONS: [(Comparison, &str); 6] = [
    (Comparison::Equal, "=="),
    (Comparison::NotEqual, "!="),
    (Comparison::Less, "<"),
    (Comparison::LessEqual, "<="),
    (Comparison::Greater, ">"),
    (Comparison::GreaterEqual, ">="),
];
const ARITHMETIC: [(Arithmetic, &str); 6] = [
    (Arithmetic::Add, "+"),
    (Arithmetic::Sub, "-"),
    (Arithmetic::Mul, "*"),
    (Arithmetic::Div, "/"),
    (Arithmetic::FloorDiv, "//"),
    (Arithmetic::Mod, "%"),
];
const FUNCTIONS: [&str; 14] = [
    "abs",
    "min",
    "max",
    "sqrt",
    "floor",
    "ceil",
    "round",
    "len",
    "lower",
    "upper",
    "startswith",
    "endswith",
    "contains",
    "corr",
];
/// The names of registers.
pub(crate) const REGISTERS: [&str; 2] = ["r0", "r1"];

fn int() -> impl Strategy<Value = i64> {
    let odd = [
        i64::MIN,
        i64::MIN + 1,
        i64::MAX,
        i64::MAX - 1,
        1 << 53,
        (1 << 53) + 1,
        -(1 << 53) - 1,
    ];
    prop_oneof![4 => -3..9_i64, 2 => select(odd.to_vec()), 1 => any::<i64>()]
}

fn float() -> impl Strategy<Value = f64> {
    let odd = [
        0.0,
        -0.0,
        f64::MAX,
        f64::MIN,
        f64::MIN_POSITIVE,
        5e-324,
        9.223_372_036_854_776e18,
        -9.3e18,
        0.5,
        2.5,
    ];
    let any_finite = any::<f64>().prop_filter("finite", |number| number.is_finite());
    prop_oneof![
        2 => (-3..9_i32).prop_map(|number| f64::from(number) / 2.0),
        2 => select(odd.to_vec()),
        1 => any_finite,
    ]
}

fn text() -> impl Strategy<Value = Arc<str>> {
    let odd = ["", "a", "A", "buy", "buyer", "\u{df}", "\u{130}", "\u{1f600}a"];
    prop_oneof![
        3 => select(odd.to_vec()).prop_map(Arc::from),
        1 => vec(any::<char>(), 0..4).prop_map(|chars| chars.into_iter().collect::<String>().into()),
    ]
}

/// Values of all types.
pub(crate) fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        1 => Just(Value::Unknown),
        4 => int().prop_map(Value::Int),
        4 => float().prop_map(Value::Float),
        2 => any::<bool>().prop_map(Value::Bool),
        2 => text().prop_map(Value::Str),
        1 => vec(float(), 0..4).prop_map(|items| Value::List(items.into())),
    ]
}

pub(crate) fn path() -> impl Strategy<Value = FieldPath> {
    (
        select(crate::bytes::NAMES.to_vec()),
        prop_oneof![3 => Just(0_u8), 2 => 1..6_u8],
    )
        .prop_map(|(name, declared)| FieldPath {
            steps: [Arc::from(name)].into(),
            declared,
        })
}

pub(crate) fn comparison() -> impl Strategy<Value = Comparison> {
    select(COMPARISONS.map(|(comparison, _)| comparison).to_vec())
}

/// Any expression; those of predicates read no register.
pub(crate) fn node(with_registers: bool) -> BoxedStrategy<Node> {
    let attribute = select(vec![Attribute::Ts, Attribute::Kind, Attribute::Id]).prop_map(Node::Attribute);
    let leaf = prop_oneof![4 => value().prop_map(Node::Literal), 4 => path().prop_map(Node::Field), 1 => attribute];
    let leaf = if with_registers {
        prop_oneof![4 => leaf, 1 => (0..REGISTERS.len()).prop_map(Node::Register)].boxed()
    } else {
        leaf.boxed()
    };
    leaf.prop_recursive(4, 24, 3, |inner| {
        let one = inner.clone().prop_map(Box::new);
        let two = (one.clone(), one.clone());
        let some = vec(inner, 0..4);
        prop_oneof![
            1 => one.clone().prop_map(Node::Negation),
            3 => (select(ARITHMETIC.to_vec()), two.clone()).prop_map(|(by, (a, b))| Node::Arithmetic(by.0, a, b)),
            4 => (comparison(), two).prop_map(|(by, (a, b))| Node::Comparison(by, a, b)),
            1 => one.clone().prop_map(Node::UnknownTest),
            1 => (one.clone(), vec(value(), 0..4)).prop_map(|(a, items)| Node::Membership(a, items)),
            2 => some.clone().prop_map(Node::And),
            2 => some.clone().prop_map(Node::Or),
            2 => one.clone().prop_map(Node::Not),
            1 => (any::<bool>(), one.clone(), one.clone(), one).prop_map(|(f, a, b, c)| Node::Choice(f, a, b, c)),
            3 => (select(FUNCTIONS.to_vec()), some).prop_map(|(name, all)| Node::Call(called(name), all)),
        ]
    })
    .boxed()
}

/// Expressions that mostly are true or false.
pub(crate) fn condition() -> BoxedStrategy<Node> {
    let number = prop_oneof![
        int().prop_map(|number| Node::Literal(Value::Int(number))),
        float().prop_map(|number| Node::Literal(Value::Float(number))),
        path().prop_map(Node::Field),
    ];
    let number = number.prop_map(Box::new);
    let compared = (comparison(), number.clone(), number).prop_map(|(by, a, b)| Node::Comparison(by, a, b));
    let truth = prop_oneof![
        3 => any::<bool>().prop_map(Value::Bool),
        1 => Just(Value::Unknown),
    ];
    let leaf = prop_oneof![3 => truth.prop_map(Node::Literal), 4 => compared, 1 => node(true)];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let (one, some) = (inner.clone().prop_map(Box::new), vec(inner, 0..4));
        prop_oneof![
            some.clone().prop_map(Node::And),
            some.prop_map(Node::Or),
            one.clone().prop_map(Node::Not),
            (one.clone(), one.clone(), one).prop_map(|(a, b, c)| Node::Choice(false, a, b, c)),
        ]
    })
    .boxed()
}

fn called(name: &str) -> Function {
    Function::named(name).expect("a function")
}

fn written<T, E: std::fmt::Debug>(result: Result<T, E>) {
    result.expect("memory takes everything");
}

/// The packed form of an expression.
pub(crate) fn packed(node: &Node) -> Vec<u8> {
    let mut out = Vec::new();
    written(encode::write_array_len(&mut out, 2));
    written(encode::write_uint(&mut out, 1));
    pack(node, &mut out);
    out
}

/// What follows kind and type.
enum Part<'a> {
    Text(&'a str),
    Node(&'a Node),
    Nodes(Vec<Node>),
    Value(&'a Value),
    Path(&'a FieldPath),
}

fn pack(node: &Node, out: &mut Vec<u8>) {
    let (kind, declared, parts) = parts(node);
    written(encode::write_array_len(
        out,
        u32::try_from(parts.len()).expect("few") + 2,
    ));
    written(encode::write_uint(out, kind));
    written(encode::write_uint(out, declared));
    for part in parts {
        match part {
            Part::Text(text) => written(encode::write_str(out, text)),
            Part::Node(node) => pack(node, out),
            Part::Nodes(nodes) => {
                written(encode::write_array_len(out, u32::try_from(nodes.len()).expect("few")));
                for node in &nodes {
                    pack(node, out);
                }
            }
            Part::Value(value) => pack_value(value, out),
            Part::Path(path) => {
                written(encode::write_array_len(
                    out,
                    u32::try_from(path.steps.len()).expect("few"),
                ));
                for step in &*path.steps {
                    written(encode::write_str(out, step));
                }
            }
        }
    }
}

fn symbol<T: PartialEq>(known: &[(T, &'static str)], wanted: &T) -> Part<'static> {
    let found = known.iter().find(|(operator, _)| operator == wanted);
    Part::Text(found.expect("all are known").1)
}

fn parts(node: &Node) -> (u64, u64, Vec<Part<'_>>) {
    let literals = |items: &[Value]| Part::Nodes(items.iter().cloned().map(Node::Literal).collect());
    match node {
        Node::Literal(value) => (0, 0, vec![Part::Value(value)]),
        Node::Field(path) => (1, path.declared.into(), vec![Part::Path(path)]),
        Node::Attribute(Attribute::Ts) => (2, 0, vec![Part::Text("ts")]),
        Node::Attribute(Attribute::Kind) => (2, 0, vec![Part::Text("type")]),
        Node::Attribute(Attribute::Id) => (2, 0, vec![Part::Text("id")]),
        Node::Register(number) => (3, 0, vec![Part::Text(REGISTERS[*number])]),
        Node::Negation(a) => (4, 0, vec![Part::Node(a)]),
        Node::Arithmetic(by, a, b) => (5, 0, vec![symbol(&ARITHMETIC, by), Part::Node(a), Part::Node(b)]),
        Node::Comparison(by, a, b) => (6, 0, vec![symbol(&COMPARISONS, by), Part::Node(a), Part::Node(b)]),
        Node::UnknownTest(a) => (7, 0, vec![Part::Node(a)]),
        Node::Membership(a, items) => (8, 0, vec![Part::Node(a), literals(items)]),
        Node::And(all) => (9, 0, vec![Part::Nodes(all.clone())]),
        Node::Or(all) => (10, 0, vec![Part::Nodes(all.clone())]),
        Node::Not(a) => (11, 0, vec![Part::Node(a)]),
        Node::Choice(float, a, b, c) => {
            let declared = if *float { 2 } else { 0 };
            (12, declared, vec![Part::Node(a), Part::Node(b), Part::Node(c)])
        }
        Node::Call(function, all) => {
            let name = FUNCTIONS.into_iter().find(|name| called(name) == *function);
            (
                13,
                0,
                vec![Part::Text(name.expect("all are known")), Part::Nodes(all.clone())],
            )
        }
    }
}

fn pack_value(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Unknown => written(encode::write_nil(out)),
        Value::Int(number) => written(encode::write_sint(out, *number)),
        Value::Float(number) => written(encode::write_f64(out, *number)),
        Value::Bool(truth) => written(encode::write_bool(out, *truth)),
        Value::Str(text) => written(encode::write_str(out, text)),
        Value::List(items) => {
            written(encode::write_array_len(out, u32::try_from(items.len()).expect("few")));
            items.iter().for_each(|item| written(encode::write_f64(out, *item)));
        }
    }
}
