//! What a pattern is made of, before it is compiled.

use std::sync::Arc;

use crate::program::expression::{FieldPath, Node};
use crate::program::query::{Output, Query};
use crate::program::value::Value;

/// How long a computation may last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// For ever.
    None,
    /// An event may be consumed iff its `ts < start.ts + length`.
    Time(i64),
    /// The start event and the next `count - 1` events of the key.
    Events(u64),
}

impl Window {
    /// How long it lasts in time; the greatest number stands for ever.
    #[must_use]
    #[inline]
    pub fn span(&self) -> i64 {
        if let Self::Time(length) = self {
            *length
        } else {
            i64::MAX
        }
    }
}

/// The least time of an event whose window of this length closes after an instant. At the least instant that is the
/// instant itself: nothing comes before it.
#[must_use]
pub(crate) fn first_open(instant: i64, length: i64) -> i64 {
    let first = i128::from(instant) - i128::from(length) + 1;
    i64::try_from(first).unwrap_or(i64::MIN)
}

/// The greatest time of an event whose window may have closed by an instant: at the greatest instant all have.
#[must_use]
pub(crate) fn last_closed(instant: i64, length: i64) -> i64 {
    if instant == i64::MAX {
        i64::MAX
    } else {
        instant.saturating_sub(length)
    }
}

/// The static type of a register, by the number of the compact form.
#[derive(Clone, Debug)]
pub struct Register {
    /// Its name.
    pub name: Arc<str>,
    /// 0 any, 1 int, 2 float, 3 bool, 4 text.
    pub kind: u8,
    /// Its initial value.
    pub initial: Value,
}

impl Register {
    /// A value as this register holds it; `None` is a clash. One of any type may hold what is unknown.
    #[must_use]
    pub fn stored(&self, value: Value) -> Option<Value> {
        match (self.kind, value) {
            (2, value @ Value::Int(_)) => Some(value.widened()),
            (0 | 2, Value::Float(number)) => Some(Value::Float(number + 0.0)),
            (0, value) | (1, value @ Value::Int(_)) | (3, value @ Value::Bool(_)) | (4, value @ Value::Str(_)) => {
                Some(value)
            }
            _ => None,
        }
    }
}

/// What an arc does, whatever its id and lifetime. Arcs with equal bodies are one to the engine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Body {
    /// From this state.
    pub source: u32,
    /// To this one.
    pub target: u32,
    /// The fence, as conjuncts.
    pub fence: Vec<Node>,
    /// What each changed register becomes.
    pub transfer: Vec<(usize, Node)>,
    /// Consumes no event.
    pub epsilon: bool,
    /// The number of the variable that its event is bound to.
    pub binds: Option<u16>,
}

impl Body {
    /// The conjuncts of its fence: those that read the event alone, and the others.
    pub(crate) fn parted(&self) -> (Vec<Node>, Vec<Node>) {
        let conjuncts = self.fence.iter().cloned().flat_map(Node::conjuncts);
        let not_true = conjuncts.filter(|conjunct| *conjunct != Node::Literal(Value::Bool(true)));
        not_true.partition(|conjunct| conjunct.reads_event() && !conjunct.reads_register())
    }

    /// The fields of events that it reads.
    #[must_use]
    pub fn fields(&self) -> Vec<FieldPath> {
        let transfers = self.transfer.iter().map(|(_, node)| node);
        self.fence.iter().chain(transfers).flat_map(Node::fields).collect()
    }
}

/// What a pattern is made of, as its document says; arcs are added one by one.
pub struct Frame {
    /// Name of the pattern.
    pub name: Arc<str>,
    /// Its window.
    pub window: Window,
    /// Registers in order of names.
    pub registers: Vec<Register>,
    /// Start state.
    pub start: Arc<str>,
    /// Final states.
    pub finals: Vec<Arc<str>>,
    /// Key field.
    pub key_field: Option<FieldPath>,
    /// Cleanse factor.
    pub speculation: Option<i64>,
    /// Hold output.
    pub hold: bool,
    /// AFA+O.
    pub gap_free: bool,
    /// Which matches are told.
    pub output: Output,
    /// What a query has beside its arcs.
    pub query: Option<Arc<Query>>,
}
