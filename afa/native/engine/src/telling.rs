//! Putting what was found into words: rows become times and ids, configurations become states and registers.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::FixedState;

use crate::change_table::{ChangeKind, ChangeRow, IdSlot, Outcome, PatternFace, Patterns};
use crate::engine::Engine;
use crate::event::{Id, IdRef};
use crate::found::Found;
use crate::key::Key;
use crate::pattern::Window;
use crate::program::Program;
use crate::value::Value;

/// What patterns are called.
#[must_use]
pub fn faces(programs: &[Program]) -> Arc<Patterns> {
    let face = |program: &Program| PatternFace {
        name: program.name.clone(),
        registers: program.registers.iter().map(|register| register.name.clone()).collect(),
    };
    Arc::new(programs.iter().map(face).collect())
}

/// What of a table is known already.
#[derive(Debug, Default)]
pub struct Telling {
    outcomes: HashMap<(usize, u32), u32, FixedState>,
    last_outcome: Option<((usize, u32), u32)>,
    keys: HashMap<Arc<str>, u32, FixedState>,
    last_key: Option<(Arc<str>, u32)>,
}

impl Telling {
    /// A new table begins, or numbers of configurations mean something else now.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// Numbers of configurations mean something else now.
    pub fn forget_outcomes(&mut self) {
        self.outcomes.clear();
        self.last_outcome = None;
    }
}

/// A match that is held back until it is final.
#[derive(Clone, Debug)]
pub struct Held {
    pub(crate) key: Arc<str>,
    degraded: bool,
    start: i64,
    end: i64,
    until: Option<i64>,
    first: Id,
    last: Id,
    state: Arc<str>,
    registers: Arc<[Value]>,
}

impl Engine {
    /// Tells what was found in one key.
    pub(crate) fn tell(&mut self, key: &Key) {
        let from = self.table.rows.len();
        let list = std::mem::take(&mut self.findings.list);
        let name = self.key_index(&key.name);
        for found in &list {
            if self.programs[found.pattern].hold {
                self.tell_or_hold(key, name, found);
            } else {
                self.tell_one(key, name, found);
            }
        }
        self.findings.list = list;
        self.findings.list.clear();
        self.order_from(from);
    }

    fn key_index(&mut self, name: &Arc<str>) -> u32 {
        if let Some((known, index)) = &self.telling.last_key
            && Arc::ptr_eq(known, name)
        {
            return *index;
        }
        let keys = &mut self.table.keys;
        let index = *self.telling.keys.entry(name.clone()).or_insert_with(|| {
            keys.push(name.clone());
            index_of(keys.len() - 1)
        });
        self.telling.last_key = Some((name.clone(), index));
        index
    }

    fn outcome_index(&mut self, pattern: usize, configuration: u32) -> u32 {
        let wanted = (pattern, configuration);
        if let Some((known, index)) = self.telling.last_outcome
            && known == wanted
        {
            return index;
        }
        let (outcomes, program) = (&mut self.table.outcomes, &self.programs[pattern]);
        let index = *self.telling.outcomes.entry(wanted).or_insert_with(|| {
            let configuration = program.sets.configuration(configuration);
            outcomes.push(Outcome {
                pattern: index_of(pattern),
                state: program.state_name(configuration.state).clone(),
                registers: configuration.registers.clone(),
            });
            index_of(outcomes.len() - 1)
        });
        self.telling.last_outcome = Some((wanted, index));
        index
    }

    fn id_slot(&mut self, row: u32) -> IdSlot {
        let id = self.rows.id(row);
        if let IdRef::Number(number) = id
            && let Some(slot) = IdSlot::position(number)
        {
            return slot;
        }
        self.table.push_text(&id.text())
    }

    fn tell_one(&mut self, key: &Key, name: u32, found: &Found) {
        let outcome = self.outcome_index(found.pattern, found.configuration);
        let (start, end) = (self.rows.ts(found.start), self.rows.ts(found.end));
        let until = match self.programs[found.pattern].window {
            Window::Time(length) => Some(start.saturating_add(length)),
            _ => None,
        };
        let (first, last) = (self.id_slot(found.start), self.id_slot(found.end));
        self.table.rows.push(ChangeRow {
            kind: if found.retracts {
                ChangeKind::Retract
            } else {
                ChangeKind::Insert
            },
            degraded: key.degraded,
            has_until: until.is_some(),
            pattern: index_of(found.pattern),
            key: name,
            outcome,
            record: found.record,
            start,
            end,
            until: until.unwrap_or(0),
            first,
            last,
        });
    }

    /// Inserts that are not final yet wait; a retraction of one that waits says nothing.
    fn tell_or_hold(&mut self, key: &Key, name: u32, found: &Found) {
        self.tell_one(key, name, found);
        let row = self.table.rows[self.table.rows.len() - 1];
        let domain = &mut self.domains[key.domain];
        let identity = (row.end, self.table.match_id(&row));
        if found.retracts {
            if domain.held[found.pattern].remove(&identity).is_some() {
                self.table.rows.pop();
            }
            return;
        }
        if domain.effective.is_some_and(|bound| row.end < bound) {
            return;
        }
        let outcome = &self.table.outcomes[row.outcome as usize];
        let held = Held {
            key: key.name.clone(),
            degraded: row.degraded,
            start: row.start,
            end: row.end,
            until: row.has_until.then_some(row.until),
            first: self.rows.id(found.start).owned(),
            last: self.rows.id(found.end).owned(),
            state: outcome.state.clone(),
            registers: outcome.registers.clone(),
        };
        domain.held[found.pattern].insert(identity, held);
        self.table.rows.pop();
    }

    /// Tells the held matches of a partition that are final now.
    pub(crate) fn tell_held(&mut self, domain: usize) {
        let Some(bound) = self.domains[domain].effective else {
            return;
        };
        for pattern in 0..self.programs.len() {
            let later = self.domains[domain].held[pattern].split_off(&(bound, [0; 16]));
            let now = std::mem::replace(&mut self.domains[domain].held[pattern], later);
            for held in now.into_values() {
                self.tell_again(pattern, held);
            }
        }
    }

    fn tell_again(&mut self, pattern: usize, held: Held) {
        let key = self.key_index(&held.key);
        self.table.outcomes.push(Outcome {
            pattern: index_of(pattern),
            state: held.state,
            registers: held.registers,
        });
        let (first, last) = (self.table.push_id(&held.first), self.table.push_id(&held.last));
        self.table.rows.push(ChangeRow {
            kind: ChangeKind::Insert,
            degraded: held.degraded,
            has_until: held.until.is_some(),
            pattern: index_of(pattern),
            key,
            outcome: index_of(self.table.outcomes.len() - 1),
            record: self.findings.record,
            start: held.start,
            end: held.end,
            until: held.until.unwrap_or(0),
            first,
            last,
        });
    }

    /// Orders the changes from one place on: by record, and within it as the semantics say. Ids decide only where they
    /// are asked for.
    pub(crate) fn order_from(&mut self, from: usize) {
        let keys = &self.table.keys;
        let order = |row: &ChangeRow| (row.record, row.kind, row.key, row.start, row.end);
        let rows = &mut self.table.rows[from..];
        // Numbers of keys are in no order of their own; of a punctuation the number is that of its partition.
        let one_key = || rows.windows(2).all(|pair| pair[0].key == pair[1].key);
        if rows.is_sorted_by_key(order) && one_key() {
            return;
        }
        rows.sort_by(|a, b| {
            let first = (a.record, a.kind).cmp(&(b.record, b.kind));
            let texts = || match a.kind {
                ChangeKind::Punctuation => (a.pattern, a.key).cmp(&(b.pattern, b.key)),
                _ if a.key == b.key => std::cmp::Ordering::Equal,
                _ => keys[a.key as usize].cmp(&keys[b.key as usize]),
            };
            first
                .then_with(texts)
                .then_with(|| (a.start, a.end).cmp(&(b.start, b.end)))
        });
    }
}

#[allow(clippy::cast_possible_truncation)] // limited by what one feed can say
fn index_of(place: usize) -> u32 {
    place as u32
}
