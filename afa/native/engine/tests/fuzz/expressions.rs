//! Expressions: their laws on any event, and their packed form.

use std::sync::Arc;

use afa_engine::program::expression::{EventView, FieldPath, Node};
use afa_engine::program::value::{Comparison, Value};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use crate::bytes::{Bytes, Damage, NAMES, damage, noise, spoil};
use crate::nodes::{REGISTERS, comparison, condition, node, packed as pack, value};

/// An event of any values.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) ts: i64,
    pub(crate) kind: Value,
    pub(crate) id: Value,
    /// In the order of `NAMES`.
    pub(crate) values: Vec<Value>,
}

impl EventView for Event {
    fn field(&self, path: &FieldPath) -> Value {
        let place = NAMES
            .iter()
            .position(|name| path.steps.iter().map(|step| &**step).eq([*name]));
        let found = place.and_then(|place| self.values.get(place));
        path.conform(found.cloned().unwrap_or(Value::Unknown))
    }

    fn ts(&self) -> i64 {
        self.ts
    }

    fn kind(&self) -> Value {
        self.kind.clone()
    }

    fn id(&self) -> Value {
        self.id.clone()
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Case {
    nodes: [Node; 3],
    comparison: Comparison,
    items: Vec<Value>,
    event: Option<Event>,
    registers: Vec<Value>,
}

pub(crate) fn cases() -> impl Strategy<Value = Case> {
    let event = (any::<i64>(), vec(value(), NAMES.len())).prop_map(|(ts, values)| Event {
        ts,
        kind: values[0].clone(),
        id: Value::Str("7".into()),
        values,
    });
    let nodes = [condition(), condition(), node(true)];
    let event = proptest::option::weighted(0.9, event);
    let registers = vec(value(), REGISTERS.len());
    (nodes, comparison(), vec(value(), 0..4), event, registers).prop_map(
        |(nodes, comparison, items, event, registers)| Case {
            nodes,
            comparison,
            items,
            event,
            registers,
        },
    )
}

impl Case {
    fn value(&self, node: &Node) -> Value {
        let event = self.event.as_ref().map(|event| event as &dyn EventView);
        node.evaluate(event, &self.registers)
    }

    fn truth(&self, node: &Node) -> Option<bool> {
        self.value(node).as_truth()
    }
}

fn not(node: &Node) -> Node {
    Node::Not(Box::new(node.clone()))
}

fn and(all: &[&Node]) -> Node {
    Node::And(all.iter().copied().cloned().collect())
}

fn or(all: &[&Node]) -> Node {
    Node::Or(all.iter().copied().cloned().collect())
}

fn compared(comparison: Comparison, left: &Node, right: &Node) -> Node {
    Node::Comparison(comparison, Box::new(left.clone()), Box::new(right.clone()))
}

fn is_finite(value: &Value) -> bool {
    match value {
        Value::Float(number) => number.is_finite(),
        Value::List(items) => items.iter().all(|item| item.is_finite()),
        _ => true,
    }
}

pub(crate) fn check_laws(case: &Case) -> TestCaseResult {
    let [a, b, c] = &case.nodes;
    for node in &case.nodes {
        prop_assert!(is_finite(&case.value(node)));
        prop_assert_eq!(case.truth(&not(&not(node))), case.truth(node));
        prop_assert!(case.truth(&or(&[node, &not(node)])) != Some(false));
        prop_assert!(case.truth(&and(&[node, &not(node)])) != Some(true));
        let is_unknown = Node::UnknownTest(Box::new(node.clone()));
        prop_assert_eq!(case.truth(&is_unknown), Some(case.value(node).is_unknown()));
        let parts = node.clone().conjuncts();
        let all_true = parts.iter().all(|part| case.truth(part) == Some(true));
        prop_assert_eq!(case.truth(node) == Some(true), all_true);
    }
    check_connectives(case, a, b, c)?;
    check_comparisons(case, a, b)
}

fn check_connectives(case: &Case, a: &Node, b: &Node, c: &Node) -> TestCaseResult {
    let same = |one: Node, other: Node| {
        prop_assert_eq!(case.truth(&one), case.truth(&other), "{:?} and {:?}", one, other);
        Ok(())
    };
    same(and(&[a, b, c]), and(&[c, b, a]))?;
    same(or(&[a, b, c]), or(&[c, b, a]))?;
    same(and(&[a, b, c]), and(&[a, &and(&[b, c])]))?;
    same(or(&[a, b, c]), or(&[a, &or(&[b, c])]))?;
    same(not(&and(&[a, b])), or(&[&not(a), &not(b)]))?;
    same(not(&or(&[a, b])), and(&[&not(a), &not(b)]))?;
    same(and(&[a, &or(&[b, c])]), or(&[&and(&[a, b]), &and(&[a, c])]))?;
    same(and(&[a, a]), or(&[a]))?;
    prop_assert_eq!(case.truth(&and(&[])), Some(true));
    prop_assert_eq!(case.truth(&or(&[])), Some(false));
    Ok(())
}

fn check_comparisons(case: &Case, a: &Node, b: &Node) -> TestCaseResult {
    let by = case.comparison;
    let truth = |comparison: Comparison| case.truth(&compared(comparison, a, b));
    prop_assert_eq!(truth(by), case.truth(&compared(by.flipped(), b, a)));
    prop_assert_eq!(
        truth(Comparison::NotEqual),
        truth(Comparison::Equal).map(|equal| !equal)
    );
    prop_assert_eq!(
        truth(Comparison::GreaterEqual),
        truth(Comparison::Less).map(|less| !less)
    );
    prop_assert_eq!(
        truth(Comparison::LessEqual),
        truth(Comparison::Greater).map(|greater| !greater)
    );
    let among = Node::Membership(Box::new(a.clone()), case.items.clone());
    let items = case.items.iter().cloned().map(Node::Literal);
    let equals: Vec<Node> = items.map(|item| compared(Comparison::Equal, a, &item)).collect();
    prop_assert_eq!(case.truth(&among), case.truth(&Node::Or(equals)));
    Ok(())
}

/// An expression with what is done to its packed form, or bytes that never were one.
#[derive(Clone, Debug)]
pub(crate) struct Packed {
    node: Node,
    damages: Vec<Damage>,
    noise: Bytes,
}

pub(crate) fn packed() -> impl Strategy<Value = Packed> {
    (node(true), vec(damage(), 1..3), noise(60)).prop_map(|(node, damages, noise)| Packed { node, damages, noise })
}

pub(crate) fn check_packed(case: &Packed) -> TestCaseResult {
    let registers = REGISTERS.map(Arc::from);
    let mut bytes = pack(&case.node);
    let read = Node::read(&bytes, &registers);
    prop_assert_eq!(read.as_ref().ok(), Some(&case.node));
    spoil(&mut bytes, &case.damages);
    let mut noise = pack(&Node::Literal(Value::Unknown));
    noise.truncate(2);
    noise.extend_from_slice(&case.noise.0);
    for bytes in [bytes, noise, case.noise.0.clone()] {
        if let Ok(node) = Node::read(&bytes, &registers) {
            let value = node.evaluate(None, &[Value::Int(i64::MIN), Value::Float(f64::MAX)]);
            prop_assert!(is_finite(&value), "{:?}", node);
        }
    }
    Ok(())
}
