//! One pattern on its way over changed entries: what it makes of each, on the old side and on the new one.

use crate::lists::configuration::{Code, DEAD, Word, code_of, start_row, word};
use crate::lists::lane::List;
use crate::lists::matcher::{Matcher, expiry, is_closed};
use crate::program::compiled::UNRELEASED;
use crate::rows::store::Rows;

/// One start event whose partial matches differ.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delta {
    pub(crate) start: u32,
    pub(crate) old: Code,
    pub(crate) new: Code,
    pub(crate) expires: i64,
}

/// What one pattern makes of an entry, before or after the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Side {
    pub(crate) class: u32,
    pub(crate) linked: bool,
}

impl Side {
    pub(crate) const ABSENT: Self = Self {
        class: u32::MAX,
        linked: true,
    };

    pub(crate) fn sees(self) -> bool {
        self.class < UNRELEASED
    }
}

/// One pattern on its way over the entries.
#[derive(Debug)]
pub(crate) struct Walker {
    pub(crate) pattern: usize,
    /// Linear patterns have none.
    pub(crate) lane: Option<usize>,
    /// Partial matches that are the same on both sides; only while changes are ahead in the page.
    pub(crate) common: List,
    pub(crate) deltas: Vec<Delta>,
    /// Partial matches that became the same at the entry at hand: part of `common` from the next one on.
    pub(crate) converged: List,
    /// AFA+O: the next entry follows another one now.
    pub(crate) relinks_next: bool,
    /// AFA+O: the sequence number of the entry before.
    pub(crate) before: Option<i64>,
    /// AFA+O: the links of the new entries of the page.
    pub(crate) links: Vec<bool>,
    /// Lists that enter the pages that this one is cut into.
    pub(crate) snapshots: Vec<List>,
}

impl Matcher<'_> {
    pub(crate) fn step_walker(&mut self, walker: &mut Walker, row: u32, old: Side, new: Side, tracked: bool) {
        if !old.sees() && !new.sees() {
            return;
        }
        let ts = self.rows.ts(row);
        self.step_deltas(walker, row, ts, old, new, tracked);
        if old != new {
            self.split_common(walker, row, ts, old, new);
        } else if tracked {
            self.step_common(walker, row, ts, old);
        }
        for converged in std::mem::take(&mut walker.converged) {
            insert_ordered(self.rows, &mut walker.common, converged);
        }
    }

    fn step_common(&mut self, walker: &mut Walker, row: u32, ts: i64, side: Side) {
        let view = || self.rows.view(row);
        let program = &mut self.programs[walker.pattern];
        let closed = |word: &Word| is_closed(program, expiry(program, self.rows, start_row(*word)), ts);
        let count = walker.common.iter().take_while(|word| closed(word)).count();
        walker.common.drain(..count);
        if side.linked {
            program.step_list(side.class, &mut walker.common, view);
        } else {
            walker.common.clear();
        }
        let started = program.begin(side.class, view);
        if started != DEAD && !is_closed(program, expiry(program, self.rows, row), ts) {
            walker.common.push(word(row, started));
        }
    }

    fn step_deltas(&mut self, walker: &mut Walker, row: u32, ts: i64, old: Side, new: Side, tracked: bool) {
        let mut at = 0;
        while at < walker.deltas.len() {
            let delta = walker.deltas[at];
            let closed = is_closed(&self.programs[walker.pattern], delta.expires, ts);
            let before = self.step_side(walker.pattern, old, delta.old, row, closed);
            let after = self.step_side(walker.pattern, new, delta.new, row, closed);
            self.note(walker.pattern, delta.start, row, (old, before), (new, after));
            if before != after {
                self.count_cut(walker.pattern, after);
                (walker.deltas[at].old, walker.deltas[at].new) = (before, after);
                at += 1;
                continue;
            }
            walker.deltas.remove(at);
            if tracked && after != DEAD {
                walker.converged.push(word(delta.start, after));
            }
        }
    }

    /// Where a set stands after an entry. A window that has closed ends only what sees the entry: without it the partial
    /// match lives on, for a later record may bring an event before the end of its window.
    fn step_side(&mut self, pattern: usize, side: Side, code: Code, row: u32, closed: bool) -> Code {
        if !side.sees() {
            code
        } else if side.linked && !closed && code != DEAD {
            self.programs[pattern].step(side.class, code, &self.rows.view(row))
        } else {
            DEAD
        }
    }

    fn note(&mut self, pattern: usize, start: u32, end: u32, old: (Side, Code), new: (Side, Code)) {
        let told = |(side, code): (Side, Code)| side.sees().then_some(code);
        let program = &self.programs[pattern];
        self.findings
            .note_difference(program, pattern, start, end, told(old), told(new));
    }

    /// At an entry where the two sides part, every start event has to be looked at.
    fn split_common(&mut self, walker: &mut Walker, row: u32, ts: i64, old: Side, new: Side) {
        let pattern = walker.pattern;
        let mut kept = List::with_capacity(walker.common.len());
        for entry in std::mem::take(&mut walker.common) {
            let expires = expiry(&self.programs[pattern], self.rows, start_row(entry));
            let closed = is_closed(&self.programs[pattern], expires, ts);
            if closed && self.rows.start_ts(start_row(entry)).is_none() {
                continue; // closed for good: the punctuation has passed the end of its window
            }
            let before = self.step_side(pattern, old, code_of(entry), row, closed);
            let after = self.step_side(pattern, new, code_of(entry), row, closed);
            self.note(pattern, start_row(entry), row, (old, before), (new, after));
            if before != after {
                self.count_cut(pattern, after);
                walker.deltas.push(Delta {
                    start: start_row(entry),
                    old: before,
                    new: after,
                    expires,
                });
            } else if after != DEAD {
                kept.push(word(start_row(entry), after));
            }
        }
        walker.common = kept;
        let expires = expiry(&self.programs[pattern], self.rows, row);
        if is_closed(&self.programs[pattern], expires, ts) {
            return;
        }
        let view = || self.rows.view(row);
        let before = if old.sees() {
            self.programs[pattern].begin(old.class, view)
        } else {
            DEAD
        };
        let mut after = if new.sees() {
            self.programs[pattern].begin(new.class, view)
        } else {
            DEAD
        };
        let others = walker.deltas.iter().map(|delta| delta.new);
        if after != DEAD && self.refuses_run(pattern, &walker.common, others) {
            after = DEAD;
        }
        self.note(pattern, row, row, (old, before), (new, after));
        if before != after {
            self.count_cut(pattern, after);
            walker.deltas.push(Delta {
                start: row,
                old: before,
                new: after,
                expires,
            });
        } else if after != DEAD {
            walker.common.push(word(row, after));
        }
    }
}

/// The list of the new side.
pub(crate) fn new_list(rows: &Rows, walker: &Walker) -> List {
    let mut list = walker.common.clone();
    for delta in walker.deltas.iter().filter(|delta| delta.new != DEAD) {
        insert_ordered(rows, &mut list, word(delta.start, delta.new));
    }
    list
}

/// Turns a list of the old side into one of the new side.
pub(crate) fn apply_deltas(rows: &Rows, list: &mut List, deltas: &[Delta]) {
    for delta in deltas {
        let at = list.iter().position(|known| start_row(*known) == delta.start);
        match (at, delta.new) {
            (Some(at), DEAD) => {
                list.remove(at);
            }
            (Some(at), new) => list[at] = word(delta.start, new),
            (None, DEAD) => {}
            (None, new) => insert_ordered(rows, list, word(delta.start, new)),
        }
    }
}

/// Puts a word where its start event belongs; what is past every window comes first.
fn insert_ordered(rows: &Rows, list: &mut List, entry: Word) {
    let start = start_row(entry);
    let is_before =
        |other: &Word| rows.start_ts(start_row(*other)).is_none() || rows.order(start_row(*other), start).is_lt();
    let at = list.iter().rposition(is_before).map_or(0, |at| at + 1);
    list.insert(at, entry);
}
