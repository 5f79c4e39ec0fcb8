//! What a pattern that was made from a query has beside its arcs, and which of its matches a pattern wants told.

use std::sync::Arc;

use crate::program::compiled::Program;
use crate::program::expression::{EventView, FieldPath, Node};
use crate::program::pattern::Window;
use crate::program::value::Value;

/// Which matches of a key are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// Every one.
    #[default]
    All,
    /// In order of their ends, those that start after the end of the last one counted.
    NonOverlapping,
    /// Of those with one first event, the ones that none dominates and none extends.
    EarliestMaximal,
}

/// What events that come after all that a key has mean for what is told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Growth {
    /// Nothing: only punctuations let matches be told.
    Waits,
    /// The matches that end with them come.
    Adds,
    /// So they do, but for those that begin before the end of the last one that counts.
    Counts,
    /// So they do, and decide anew which of those with their first events are told.
    Regroups,
    /// So they do, unless one of them is what must not come after a match.
    AddsUnlessDenied,
    /// Anything may change.
    Open,
}

/// What an automaton that was made from a query has beside its arcs. Expressions read its registers.
#[derive(Clone, Debug, Default)]
#[allow(clippy::struct_excessive_bools)] // options that have nothing to do with each other
pub struct Query {
    /// The variables that bind events, in order of declaration.
    pub variables: Arc<[Arc<str>]>,
    /// Registers that hold the values of `[attr]`.
    pub partition: Vec<usize>,
    /// What a match returns: name and expression.
    pub returns: Vec<(Arc<str>, Node)>,
    /// Which events must not come before a match.
    pub leading: Vec<Node>,
    /// Which must not come after it.
    pub trailing: Vec<Node>,
    /// A match with a trailing negation is told at once, and not only when its window has closed.
    pub speculates: bool,
    /// Start events none of whose runs completed are reported.
    pub timeouts: bool,
    /// Its matches are told as graphs: what was told of an end must be found again as long as it may change.
    pub compressed: bool,
    /// The variables of each component, by their numbers.
    pub components: Vec<Vec<u16>>,
    /// Whether it is told what matches have bound, or only that they are there.
    pub tells_bindings: bool,
}

impl Query {
    /// Whether a match may be denied by an event that comes after it: what the event alone decides does not rule it out.
    pub(crate) fn may_be_denied_by(&self, event: &dyn EventView) -> bool {
        self.trailing.iter().any(|condition| may_hold(condition, event))
    }

    /// The fields of events that it reads beside those of its arcs.
    pub(crate) fn fields(&self) -> Vec<FieldPath> {
        let negations = self.leading.iter().chain(&self.trailing);
        negations.flat_map(Node::fields).collect()
    }
}

/// Whether a condition may hold of an event, whatever the registers are.
fn may_hold(condition: &Node, event: &dyn EventView) -> bool {
    match condition {
        Node::And(all) => all.iter().all(|one| may_hold(one, event)),
        one => one.reads_register() || one.evaluate(Some(event), &[]).as_truth() == Some(true),
    }
}

impl Program {
    /// The number of a query's variable.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<u16> {
        let variables = &self.query.as_ref()?.variables;
        let place = variables.iter().position(|known| &**known == name)?;
        u16::try_from(place).ok()
    }

    /// What a match says that ends in a configuration: the state and the registers, or of a query what it returns.
    pub(crate) fn told_of(&self, configuration: u32) -> (Arc<str>, Arc<[Value]>) {
        let configuration = self.sets.configuration(configuration);
        let registers = &configuration.registers;
        match &self.query {
            None => (self.state_name(configuration.state).clone(), registers.clone()),
            Some(query) => {
                let values = query.returns.iter().map(|(_, node)| node.evaluate(None, registers));
                ("".into(), values.collect())
            }
        }
    }

    /// Whether events of one time may be bound in another order than that in which a match lists them.
    pub(crate) fn has_sets(&self) -> bool {
        let components = self.query.iter().flat_map(|query| &query.components);
        components.into_iter().any(|component| component.len() > 1)
    }

    /// Whether it was made from a query.
    #[must_use]
    pub fn is_query(&self) -> bool {
        self.query.is_some()
    }

    /// Whether more than the list of partial matches decides what is told: bindings, negations, the other matches.
    pub(crate) fn is_observed(&self) -> bool {
        self.query.is_some() || self.output != Output::All
    }

    /// What events that come after all that a key has mean for what is told of it.
    pub(crate) fn growth(&self) -> Growth {
        match (self.output, self.has_trailing()) {
            _ if self.is_told_by_punctuations_alone() => Growth::Waits,
            // Across a gap that stays matches come that end with events of which a graph was told.
            _ if self.gap_free && self.tells_graphs() => Growth::Open,
            (Output::All, false) => Growth::Adds,
            (Output::All, true) => Growth::AddsUnlessDenied,
            // And such that may end before others that count.
            (Output::NonOverlapping, false) if !self.gap_free => Growth::Counts,
            (Output::EarliestMaximal, false) => Growth::Regroups,
            _ => Growth::Open,
        }
    }

    /// Whether matches of an end depend on nothing behind it: those that end before an instant are found without what
    /// comes after it, and so are those of them that count.
    pub(crate) fn is_decided_by_ends(&self) -> bool {
        !self.has_trailing() && self.output != Output::EarliestMaximal && !self.gap_free
    }

    /// Whether the ends of partial matches, as events come after all others, are all that there is to tell: each final
    /// configuration was reached in one way, and nobody asks for what was bound on it.
    pub(crate) fn tells_ends_alone(&self) -> bool {
        let tells = |query: &Query| query.tells_bindings;
        self.has_ways_apart() && !self.query.as_deref().is_some_and(tells)
    }

    /// Whether, as events come after all others, each final configuration is one match: it was reached in one way, and
    /// nothing before it matters.
    pub(crate) fn has_ways_apart(&self) -> bool {
        let looks_around = |query: &Query| !query.leading.is_empty() || !query.trailing.is_empty();
        let asks = self.query.as_deref().is_some_and(looks_around);
        self.output == Output::All && !asks && !self.sets.ways_meet
    }

    /// Whether no record changes what is told, because it can only be about what waits for a punctuation.
    pub(crate) fn is_told_by_punctuations_alone(&self) -> bool {
        self.hold || self.is_told_at_window_end()
    }

    /// Whether what a punctuation changes shows only when all is looked at, before it and after it.
    pub(crate) fn is_changed_by_punctuations(&self) -> bool {
        let sees_more = self.gap_free || self.speculation.is_some();
        match self.growth() {
            Growth::Waits => !self.hold && !self.is_local(),
            Growth::Adds | Growth::Counts => false,
            Growth::AddsUnlessDenied | Growth::Regroups | Growth::Open => sees_more,
        }
    }

    /// Whether only the events of a start event's window, and those that it looks back at, decide about its matches.
    pub(crate) fn is_local(&self) -> bool {
        self.output != Output::NonOverlapping && !self.gap_free
    }

    /// Whether a match exists only once its window has closed.
    pub(crate) fn is_told_at_window_end(&self) -> bool {
        self.has_trailing() && !self.query.as_deref().is_some_and(|query| query.speculates)
    }

    /// Whether candidates may change after the punctuation has passed their end.
    pub(crate) fn has_open_candidates(&self) -> bool {
        self.has_trailing() || self.query.is_some() && self.output == Output::EarliestMaximal
    }

    /// Whether what comes after a match may take it back.
    pub(crate) fn has_trailing(&self) -> bool {
        self.query.as_ref().is_some_and(|query| !query.trailing.is_empty())
    }

    /// How far before a start event, in time, events are still looked at.
    pub(crate) fn looks_back(&self) -> i64 {
        match (&self.query, self.window) {
            (Some(query), Window::Time(length)) if !query.leading.is_empty() => length,
            _ => 0,
        }
    }

    /// Whether a window's events are needed until it has closed, and not only while partial matches began before them.
    pub(crate) fn needs_whole_windows(&self) -> bool {
        let asks = |query: &Query| {
            query.timeouts || query.compressed || !query.leading.is_empty() || !query.trailing.is_empty()
        };
        let waits = self.hold || self.gap_free || self.speculation.is_some();
        self.output != Output::All || waits || self.query.as_deref().is_some_and(asks)
    }
}
