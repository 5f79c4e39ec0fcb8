//! Matches that came or went, as rows and numbers: what the matching itself says, before it is put into words.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use crate::lists::configuration::{Code, FINAL, Word, code_of, start_row};
use crate::program::compiled::Program;

/// A match that came or went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Found {
    /// The index of the record that caused it.
    pub record: u32,
    /// Whether it went.
    pub retracts: bool,
    /// The pattern.
    pub pattern: usize,
    /// The row of the start event.
    pub start: u32,
    /// The row of the end event.
    pub end: u32,
    /// The final configuration.
    pub configuration: u32,
}

/// Everything that was found since it was last put into words.
#[derive(Debug, Default)]
pub struct Findings {
    /// In the order of finding.
    pub list: Vec<Found>,
    /// The record that is being worked on.
    pub record: u32,
    /// Rows that took the place of another row of the same identity.
    pub aliases: Vec<(u32, u32)>,
    /// Partial matches that a limit refused.
    pub refused: usize,
}

impl Program {
    /// The final configurations of a set.
    pub(crate) fn final_members(&self, code: Code) -> impl Iterator<Item = u32> {
        let members = self.sets.set(code).members.iter().copied();
        members.filter(|member| self.is_final(self.sets.configuration(*member).state))
    }
}

impl Findings {
    /// Notes the matches that end at a row, for every final configuration of a set.
    pub fn note(&mut self, program: &Program, pattern: usize, retracts: bool, start: u32, end: u32, code: Code) {
        for configuration in program.final_members(code) {
            self.list.push(Found {
                record: self.record,
                retracts,
                pattern,
                start,
                end,
                configuration,
            });
        }
    }

    /// Notes the matches of a whole list.
    pub fn note_list(&mut self, program: &Program, pattern: usize, end: u32, list: &[Word]) {
        for word in list {
            if code_of(*word) & FINAL != 0 {
                self.note(program, pattern, false, start_row(*word), end, code_of(*word));
            }
        }
    }

    /// Notes the difference between two sets of one start event; a side that did not see the event has none.
    pub fn note_difference(
        &mut self,
        program: &Program,
        pattern: usize,
        start: u32,
        end: u32,
        old: Option<Code>,
        new: Option<Code>,
    ) {
        let finals = |code: Option<Code>| code.filter(|code| code & FINAL != 0);
        match (finals(old), finals(new)) {
            (None, None) => {}
            (Some(old), Some(new)) if old == new => {}
            (Some(old), None) => self.note(program, pattern, true, start, end, old),
            (None, Some(new)) => self.note(program, pattern, false, start, end, new),
            (Some(old), Some(new)) => {
                let begin = self.list.len();
                self.note(program, pattern, true, start, end, old);
                self.note(program, pattern, false, start, end, new);
                cancel(&mut self.list, begin, |found| *found);
            }
        }
    }

    /// Cancels what came and went from `begin` on.
    pub(crate) fn cancel_from(&mut self, begin: usize) {
        cancel(&mut self.list, begin, |found| *found);
    }

    /// Cancels what came and went through rows that replaced one another.
    pub fn net(&mut self, begin: usize) {
        if self.aliases.is_empty() {
            return;
        }
        let replaced: HashMap<u32, u32, FixedState> = self.aliases.drain(..).collect();
        let original = |row: u32| replaced.get(&row).copied().unwrap_or(row);
        cancel(&mut self.list, begin, |found| Found {
            start: original(found.start),
            end: original(found.end),
            ..*found
        });
    }
}

/// Removes pairs of an insert and a retract from `begin` on that are the same as `identity` sees them.
fn cancel(list: &mut Vec<Found>, begin: usize, identity: impl Fn(&Found) -> Found) {
    let plain = |found: &Found| Found {
        retracts: false,
        ..identity(found)
    };
    let mut balance: HashMap<(usize, u32, u32, u32), i64, FixedState> = HashMap::default();
    let name = |found: &Found| {
        let found = plain(found);
        (found.pattern, found.start, found.end, found.configuration)
    };
    for found in &list[begin..] {
        *balance.entry(name(found)).or_default() += if found.retracts { -1 } else { 1 };
    }
    let mut kept = begin;
    for at in begin..list.len() {
        let found = list[at];
        let left = balance.get_mut(&name(&found)).expect("counted above");
        let wanted = if found.retracts { *left < 0 } else { *left > 0 };
        if wanted {
            *left += if found.retracts { 1 } else { -1 };
            list[kept] = found;
            kept += 1;
        }
    }
    list.truncate(kept);
}
