//! What matches of queries have bound, as a table of changes keeps it: events one behind the other, which matches that
//! have bound the same may share.

use std::ops::Range;

use crate::changes::table::IdSlot;

/// An event that is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoundEvent {
    /// Its time.
    pub ts: i64,
    /// Its id.
    pub id: IdSlot,
}

/// One match, or a start event that none came from.
#[derive(Clone, Copy, Debug)]
struct BoundMatch {
    outcome: u32,
    reached: u16,
    /// Where its variables are.
    variables: u32,
}

/// Bindings by number.
#[derive(Clone, Debug, Default)]
pub struct BoundMatches {
    list: Vec<BoundMatch>,
    /// Where the events of each variable begin and end.
    variables: Vec<(u32, u32)>,
    events: Vec<BoundEvent>,
}

impl BoundMatches {
    /// Adds a match that returns what an outcome says, and gives its number. Its variables follow one by one.
    pub fn begin(&mut self, outcome: u32, reached: u16) -> u32 {
        self.list.push(BoundMatch {
            outcome,
            reached,
            variables: place(self.variables.len()),
        });
        place(self.list.len() - 1)
    }

    /// How many events there are.
    #[must_use]
    pub fn events(&self) -> usize {
        self.events.len()
    }

    /// Adds an event.
    pub fn push(&mut self, event: BoundEvent) {
        self.events.push(event);
    }

    /// Adds the next variable of the match that was begun last: some of the events.
    pub fn add_variable(&mut self, events: Range<usize>) {
        self.variables.push((place(events.start), place(events.end)));
    }

    /// The outcome of a match.
    #[must_use]
    pub fn outcome(&self, number: u32) -> u32 {
        self.list[number as usize].outcome
    }

    /// The variable that was bound last, of a start event that no match came from.
    #[must_use]
    pub fn reached(&self, number: u32) -> usize {
        self.list[number as usize].reached.into()
    }

    /// The events of each variable, of which there are so many.
    pub fn variables(&self, number: u32, count: usize) -> impl Iterator<Item = &[BoundEvent]> {
        self.spans(number, count).map(|span| &self.events[span])
    }

    /// Where they are; what begins at one place begins alike.
    pub(crate) fn spans(&self, number: u32, count: usize) -> impl Iterator<Item = Range<usize>> {
        let first = self.list[number as usize].variables as usize;
        let spans = &self.variables[first..first + count];
        spans.iter().map(|(begin, end)| *begin as usize..*end as usize)
    }

    /// The events between two places.
    pub(crate) fn between(&self, span: Range<usize>) -> &[BoundEvent] {
        &self.events[span]
    }
}

#[allow(clippy::cast_possible_truncation)] // limited by what one feed can say
fn place(length: usize) -> u32 {
    length as u32
}
