//! Bodies of arcs compiled: what of a fence the event alone decides, and what has to be looked at.

use crate::predicates::pinning::only_field;
use crate::program::compiled::Shared;
use crate::program::expression::{FieldPath, Node};
use crate::program::parting::Parts;
use crate::program::pattern::Body;

pub(crate) struct CompiledBody {
    pub(crate) body: Body,
    /// What the event alone decides: part of its class. None: forgotten, as no living arc has it.
    pub(crate) needs: Option<Needs>,
    /// The other conjuncts.
    pub(crate) residual: Vec<Node>,
    /// Whether a residual reads the event.
    pub(crate) decides: bool,
    /// Whether the transfer reads the event.
    pub(crate) computes: bool,
    /// All that the rest of its fence and its transfer read of the event beside its type, if that is one field.
    pub(crate) only_field: Option<FieldPath>,
    /// Whether an arc had it before, so that its fields are read already and it fits the chain if there is one.
    pub(crate) was_alive: bool,
}

/// Predicates that decide about a body.
#[derive(Debug, Default)]
pub(crate) struct Needs {
    /// They have to be true.
    all: Vec<u32>,
    /// Where one is not true, a condition remains.
    either: Vec<(u32, Node)>,
}

impl CompiledBody {
    /// One of whose fence this has to be looked at, where the event alone does not decide.
    pub(crate) fn new(body: Body, needs: Needs, residual: Vec<Node>) -> Self {
        Self {
            only_field: only_field(residual.iter().chain(body.transfer.iter().map(|(_, node)| node))),
            decides: residual.iter().any(Node::reads_event),
            computes: body.transfer.iter().any(|(_, node)| node.reads_event()),
            needs: Some(needs),
            body,
            residual,
            was_alive: false,
        }
    }

    /// What stands where a body was forgotten.
    pub(crate) fn nothing() -> Self {
        Self {
            body: Body {
                source: 0,
                target: 0,
                fence: Vec::new(),
                transfer: Vec::new(),
                epsilon: false,
                binds: None,
            },
            needs: None,
            residual: Vec::new(),
            only_field: None,
            decides: false,
            computes: false,
            was_alive: false,
        }
    }

    /// The predicates of a body that is alive.
    pub(crate) fn predicates(&self) -> &[u32] {
        self.needs.as_ref().map_or(&[], |needs| &needs.all)
    }

    /// What remains of it for events of which such predicates hold; none if that is all of it.
    pub(crate) fn remaining(&self, holds: &impl Fn(&u32) -> bool) -> Option<Body> {
        let either = self.needs.as_ref().map_or(&[][..], |needs| &needs.either);
        if either.is_empty() {
            return None;
        }
        let mut fence = self.body.parts().rest;
        fence.extend(
            either
                .iter()
                .filter(|(number, _)| !holds(number))
                .map(|(_, rest)| rest.clone()),
        );
        Some(Body {
            fence,
            ..self.body.clone()
        })
    }

    /// The same, and those without which something remains.
    pub(crate) fn all_predicates(&self) -> impl Iterator<Item = u32> {
        let needs = self.needs.iter();
        needs.flat_map(|needs| {
            needs
                .all
                .iter()
                .copied()
                .chain(needs.either.iter().map(|(number, _)| *number))
        })
    }
}

impl Needs {
    /// Those of the parts of a fence; its rest stays there.
    pub(crate) fn of(parts: &mut Parts, shared: &mut Shared) -> Self {
        let mut number = |node| shared.predicates.number(node);
        Self {
            all: parts.of_event.drain(..).map(&mut number).collect(),
            either: parts
                .either
                .drain(..)
                .map(|(node, rest)| (number(node), rest))
                .collect(),
        }
    }
}
