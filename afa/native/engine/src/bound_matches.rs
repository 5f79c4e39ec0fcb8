//! What matches of queries have bound, as a table of changes keeps it: all events one behind the other.

use crate::change_table::IdSlot;

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
    /// Where its events begin.
    begin: u32,
    /// Where the ends of its variables' events are.
    ends: u32,
}

/// Bindings by number.
#[derive(Clone, Debug, Default)]
pub struct BoundMatches {
    list: Vec<BoundMatch>,
    ends: Vec<u32>,
    events: Vec<BoundEvent>,
}

impl BoundMatches {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Adds a match that returns what an outcome says, and gives its number. Its variables follow one by one.
    pub fn begin(&mut self, outcome: u32, reached: u16) -> u32 {
        self.list.push(BoundMatch {
            outcome,
            reached,
            begin: place(self.events.len()),
            ends: place(self.ends.len()),
        });
        place(self.list.len() - 1)
    }

    /// Adds an event to the current variable.
    pub fn push(&mut self, event: BoundEvent) {
        self.events.push(event);
    }

    /// Ends the current variable.
    pub fn end_variable(&mut self) {
        self.ends.push(place(self.events.len()));
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
        let BoundMatch { begin, ends, .. } = self.list[number as usize];
        let ends = &self.ends[ends as usize..ends as usize + count];
        let begins = std::iter::once(begin).chain(ends.iter().copied());
        begins
            .zip(ends)
            .map(|(begin, end)| &self.events[begin as usize..*end as usize])
    }
}

#[allow(clippy::cast_possible_truncation)] // limited by what one feed can say
fn place(length: usize) -> u32 {
    length as u32
}
