//! Computing lists anew, from the first dirty entry on, until they are what they were.

use crate::configuration::{FINAL, PartialMatch, marked, partial_match, start_row};
use crate::key::Key;
use crate::pattern::Window;
use crate::program::Program;
use crate::rows::Rows;
use crate::spine::Place;

/// A match that came or went: pattern, row of its end event, and the partial match that it is.
pub type Found = (usize, u32, PartialMatch);

/// Retractions and inserts, not yet netted.
#[derive(Debug, Default)]
pub struct Differences {
    /// Matches that are no more.
    pub gone: Vec<Found>,
    /// Matches that are new.
    pub come: Vec<Found>,
}

impl Differences {
    /// Cancels what both came and went.
    pub fn net(&mut self) {
        if self.gone.is_empty() || self.come.is_empty() {
            return;
        }
        self.gone.sort_unstable();
        self.come.sort_unstable();
        let both: Vec<Found> = self
            .gone
            .iter()
            .filter(|found| self.come.binary_search(found).is_ok())
            .copied()
            .collect();
        self.gone.retain(|found| both.binary_search(found).is_err());
        self.come.retain(|found| both.binary_search(found).is_err());
    }

    /// Notes the final ones among the partial matches of an entry that is taken out.
    pub fn take_out(&mut self, pattern: usize, row: u32, list: &[PartialMatch]) {
        self.gone.extend(finals(list).map(|partial| (pattern, row, partial)));
    }

    fn note(&mut self, pattern: usize, row: u32, old: &[PartialMatch], new: &[PartialMatch]) {
        let (mut before, mut after): (Vec<_>, Vec<_>) = (finals(old).collect(), finals(new).collect());
        before.sort_unstable();
        after.sort_unstable();
        let gone = before.iter().filter(|partial| after.binary_search(partial).is_err());
        self.gone.extend(gone.map(|partial| (pattern, row, *partial)));
        let come = after.iter().filter(|partial| before.binary_search(partial).is_err());
        self.come.extend(come.map(|partial| (pattern, row, *partial)));
    }
}

fn finals(list: &[PartialMatch]) -> impl Iterator<Item = PartialMatch> + '_ {
    list.iter().copied().filter(|partial| marked(*partial) & FINAL != 0)
}

/// Buffers that are kept from one propagation to the next.
#[derive(Debug, Default)]
pub struct Scratch {
    list: Vec<PartialMatch>,
    reached: Vec<u32>,
}

/// One pattern over one key.
pub struct Propagation<'a> {
    /// The pattern's index.
    pub pattern: usize,
    /// The pattern.
    pub program: &'a mut Program,
    /// The key.
    pub key: &'a mut Key,
    /// All rows.
    pub rows: &'a Rows,
    /// Buffers.
    pub scratch: &'a mut Scratch,
}

impl Propagation<'_> {
    /// Recomputes the dirty entries, of which the first stands at `from`, and what follows from them.
    pub fn run(&mut self, from: Option<Place>, mut dirty: usize, differences: &mut Differences) {
        let mut place = from;
        let mut before_changed = false;
        // A window in events closes by position: a change before an entry counts for that many entries.
        let mut shifted: u64 = 0;
        while let Some(here) = place {
            let cell = self.key.spine.cell(self.pattern, here);
            if cell.dirty {
                dirty -= 1;
                if let Window::Events(events) = self.program.window {
                    shifted = events;
                }
            }
            if cell.dirty || before_changed || shifted > 0 {
                before_changed = self.recompute(here, differences);
                if cell.is_seen() {
                    shifted = shifted.saturating_sub(1);
                }
            } else if dirty == 0 {
                return;
            }
            place = self.key.spine.next(here);
        }
    }

    /// Computes the list of one entry; true if it changed.
    fn recompute(&mut self, here: Place, differences: &mut Differences) -> bool {
        let cell = self.key.spine.cell(self.pattern, here);
        let mut list = std::mem::take(&mut self.scratch.list);
        list.clear();
        if cell.is_seen() {
            self.step(here, cell.class, cell.linked, &mut list);
        } else {
            list.extend_from_slice(list_before(self.key, self.pattern, here));
        }
        let old = self.key.spine.list(self.pattern, here);
        let changed = old != list.as_slice();
        if changed {
            if cell.is_seen() {
                differences.note(self.pattern, self.key.spine.row(here), old, &list);
            }
            self.key.spine.set_list(self.pattern, here, &list);
        }
        self.key.spine.cell_mut(self.pattern, here).dirty = false;
        self.scratch.list = list;
        changed
    }

    fn step(&mut self, here: Place, class: u32, linked: bool, list: &mut Vec<PartialMatch>) {
        let row = self.key.spine.row(here);
        let event = self.rows.event(row);
        let mut reached = std::mem::take(&mut self.scratch.reached);
        if linked {
            let before = list_before(self.key, self.pattern, here);
            let mut at = 0;
            while at < before.len() {
                let start = start_row(before[at]);
                let group = at;
                while at < before.len() && start_row(before[at]) == start {
                    at += 1;
                }
                if self.expired(start, row, event.ts) {
                    continue;
                }
                reached.clear();
                for partial in &before[group..at] {
                    self.program.step(class, marked(*partial), event, &mut reached);
                }
                append(list, start, &mut reached);
            }
        }
        reached.clear();
        if !self.expired(row, row, event.ts) {
            self.program.begin(class, event, &mut reached);
            append(list, row, &mut reached);
        }
        self.scratch.reached = reached;
    }

    fn expired(&self, start: u32, row: u32, ts: i64) -> bool {
        match self.program.window {
            Window::None => false,
            Window::Time(length) => ts >= self.rows.event(start).ts.saturating_add(length),
            Window::Events(events) => {
                let ordinals = &self.key.ordinals[self.pattern];
                ordinals[&row] - ordinals[&start] >= events
            }
        }
    }
}

/// The list that an entry's own is computed from.
fn list_before(key: &Key, pattern: usize, here: Place) -> &[PartialMatch] {
    match key.spine.previous(here) {
        Some(before) => key.spine.list(pattern, before),
        None => &key.covers[pattern].list,
    }
}

/// Partial matches of one start event, sorted and each once: equal sets are equal lists.
fn append(list: &mut Vec<PartialMatch>, start: u32, reached: &mut Vec<u32>) {
    if reached.len() > 1 {
        reached.sort_unstable();
        reached.dedup();
    }
    list.extend(reached.iter().map(|configuration| partial_match(start, *configuration)));
}
