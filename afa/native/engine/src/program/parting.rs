//! The conditions of an arc in parts: what the event alone decides makes its class, and only the rest has to look at
//! registers.
//!
//! A query ignores an event that is not known to be what comes next: `true if c == null else not c`, where `c` asks
//! something of the event alone, and that it has the `[attr]` of the run. Such a condition holds of an event to which the
//! first does not apply, whatever the run; of others it is the rest that counts.

use crate::program::expression::Node;
use crate::program::pattern::Body;
use crate::program::value::Value;

/// The conjuncts of a fence in parts.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    /// They read the event alone.
    pub(crate) of_event: Vec<Node>,
    /// One of the two has to hold; the first reads the event alone.
    pub(crate) either: Vec<(Node, Node)>,
    /// The others.
    pub(crate) rest: Vec<Node>,
}

impl Body {
    /// The parts of its fence.
    pub(crate) fn parts(&self) -> Parts {
        let (of_event, others) = self.parted();
        let mut parts = Parts {
            of_event,
            ..Parts::default()
        };
        for conjunct in others {
            match denied(&conjunct) {
                Some(condition) => parts.deny(condition.clone()),
                None => parts.rest.push(conjunct),
            }
        }
        parts
    }
}

impl Parts {
    /// Adds that a condition is not true.
    fn deny(&mut self, condition: Node) {
        if let Node::Or(all) = condition {
            return all.into_iter().for_each(|one| self.deny(one));
        }
        let all = condition.conjuncts();
        let (others, of_event): (Vec<Node>, Vec<Node>) = all.iter().cloned().partition(Node::reads_register);
        if !of_event.iter().any(Node::reads_event) {
            self.rest.push(not_true(all));
        } else if others.is_empty() {
            self.of_event.push(not_true(all));
        } else {
            self.either.push((not_true(of_event), not_true(others)));
        }
    }
}

/// What is said to be false or unknown.
pub(crate) fn denied(node: &Node) -> Option<&Node> {
    let Node::Choice(_, condition, then, otherwise) = node else {
        return None;
    };
    match (&**condition, &**then, &**otherwise) {
        (Node::UnknownTest(tested), Node::Literal(Value::Bool(true)), Node::Not(denied)) if tested == denied => {
            Some(tested)
        }
        _ => None,
    }
}

/// That these are not all true.
fn not_true(mut all: Vec<Node>) -> Node {
    let condition = Box::new(if all.len() == 1 { all.remove(0) } else { Node::And(all) });
    Node::Choice(
        false,
        Box::new(Node::UnknownTest(condition.clone())),
        Box::new(Node::Literal(Value::Bool(true))),
        Box::new(Node::Not(condition)),
    )
}

#[cfg(test)]
mod tests {
    use super::not_true;
    use crate::program::expression::{Attribute, Node};
    use crate::program::pattern::Body;
    use crate::program::value::{Comparison, Value};

    fn test(left: Node, number: i64) -> Node {
        let right = Box::new(Node::Literal(Value::Int(number)));
        Node::Comparison(Comparison::Equal, Box::new(left), right)
    }

    #[test]
    fn what_an_event_is_not_is_split() {
        let event = |number| test(Node::Attribute(Attribute::Ts), number);
        let register = |number| test(Node::Register(0), number);
        let one = Node::And(vec![event(1), register(1), Node::And(vec![event(2), register(2)])]);
        let any = Node::Or(vec![one, event(3), register(3)]);
        let body = Body {
            source: 0,
            target: 0,
            fence: vec![
                not_true(vec![any]),
                event(4),
                register(4),
                Node::Not(Box::new(register(5))),
            ],
            transfer: Vec::new(),
            epsilon: false,
            binds: None,
        };
        let parts = body.parts();
        assert_eq!(parts.of_event, [event(4), not_true(vec![event(3)])]);
        let either = (
            not_true(vec![event(1), event(2)]),
            not_true(vec![register(1), register(2)]),
        );
        assert_eq!(parts.either, [either]);
        let rest = [
            not_true(vec![register(3)]),
            register(4),
            Node::Not(Box::new(register(5))),
        ];
        assert_eq!(parts.rest, rest);
    }
}
