//! Putting what was found into words: rows become times and ids, configurations become states and registers.

use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

use crate::changes::row_order::RowOrder;
use crate::changes::table::{ChangeKind, ChangeRow, ChangeTable, Outcome, PatternFace, Patterns};
use crate::changes::teller::Teller;
use crate::engine::Engine;
use crate::keys::key::Key;
use crate::program::compiled::Program;
use crate::program::pattern::Window;
use crate::program::value::Value;
use crate::rows::event::Id;

/// What patterns are called.
#[must_use]
pub fn faces(programs: &[Program]) -> Arc<Patterns> {
    let face = |program: &Program| PatternFace {
        name: program.name.clone(),
        registers: match &program.query {
            None => program.registers.iter().map(|register| register.name.clone()).collect(),
            Some(query) => query.returns.iter().map(|(name, _)| name.clone()).collect(),
        },
        is_query: program.query.is_some(),
        variables: program
            .query
            .as_ref()
            .filter(|query| query.tells_bindings)
            .map(|query| query.variables.clone()),
        is_compressed: program.query.as_ref().is_some_and(|query| query.compressed),
    };
    Arc::new(programs.iter().map(face).collect())
}

/// What of a table is known already.
#[derive(Debug, Default)]
pub struct Telling {
    /// By pattern and configuration.
    outcomes: Vec<Vec<KnownOutcome>>,
    /// Older marks of outcomes do not count.
    mark: u32,
    /// The table's keys, by their names.
    keys: HashTable<u32>,
    last_key: Option<u32>,
    /// By pattern.
    pub(crate) manners: Vec<Manner>,
    order: RowOrder,
}

/// The place of an outcome in the table, if the mark counts.
#[derive(Clone, Copy, Debug)]
struct KnownOutcome {
    mark: u32,
    place: u32,
}

/// How matches of a pattern are told. There may be many patterns: small, so that all stay near.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    /// They live so long; negative: they have no window in time.
    pub(crate) length: i64,
    /// The last configuration and its outcome: most patterns have few.
    last_configuration: u32,
    last_outcome: KnownOutcome,
    /// Whether inserts wait until they are final.
    pub(crate) holds: bool,
}

impl Telling {
    /// A table begins, which has the outcomes of the one before or none.
    fn begin(&mut self, has_outcomes: bool) {
        self.keys.clear();
        self.last_key = None;
        if has_outcomes {
            return;
        }
        self.mark = self.mark.wrapping_add(1);
        if self.mark == 0 {
            self.forget_outcomes();
        }
    }

    /// Numbers of configurations mean something else now.
    pub fn forget_outcomes(&mut self) {
        self.outcomes.clear();
        self.manners.clear();
    }

    fn unknown_outcome(&self) -> KnownOutcome {
        KnownOutcome {
            mark: self.mark.wrapping_sub(1),
            place: 0,
        }
    }

    /// The place of an outcome, which the table has then.
    #[inline]
    pub(crate) fn outcome_of(
        &mut self,
        table: &mut ChangeTable,
        program: &Program,
        pattern: usize,
        configuration: u32,
    ) -> u32 {
        let known = self.find_outcome(pattern, configuration);
        known.unwrap_or_else(|| self.new_outcome(table, program, pattern, configuration))
    }

    #[cold]
    fn new_outcome(&mut self, table: &mut ChangeTable, program: &Program, pattern: usize, configuration: u32) -> u32 {
        let (state, registers) = program.told_of(configuration);
        table.outcomes.push(Outcome {
            pattern: index_of(pattern),
            state,
            registers,
        });
        let (mark, place) = (self.mark, index_of(table.outcomes.len() - 1));
        *self.known_outcome(pattern, configuration) = KnownOutcome { mark, place };
        place
    }

    /// The place of an outcome that the table has.
    #[inline]
    fn find_outcome(&mut self, pattern: usize, configuration: u32) -> Option<u32> {
        let mark = self.mark;
        let manner = &self.manners[pattern];
        if manner.last_configuration == configuration && manner.last_outcome.mark == mark {
            return Some(manner.last_outcome.place);
        }
        let known = *self.known_outcome(pattern, configuration);
        let manner = &mut self.manners[pattern];
        (manner.last_configuration, manner.last_outcome) = (configuration, known);
        (known.mark == mark).then_some(known.place)
    }

    fn known_outcome(&mut self, pattern: usize, configuration: u32) -> &mut KnownOutcome {
        if self.outcomes.len() <= pattern {
            self.outcomes.resize_with(pattern + 1, Vec::new);
        }
        let unknown = self.unknown_outcome();
        let (outcomes, place) = (&mut self.outcomes[pattern], configuration as usize);
        if outcomes.len() <= place {
            outcomes.resize(place + 1, unknown);
        }
        &mut outcomes[place]
    }
}

/// With more outcomes, or several for each pattern, a new table begins without any.
const MOST_KEPT_OUTCOMES: usize = 256;

/// A match that is held back until it is final.
#[derive(Clone, Debug)]
pub struct Held {
    pub(crate) key: Arc<str>,
    pub(crate) degraded: bool,
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) until: Option<i64>,
    pub(crate) first: Id,
    pub(crate) last: Id,
    pub(crate) state: Arc<str>,
    pub(crate) registers: Arc<[Value]>,
}

impl Engine {
    /// What was said since the last time.
    pub fn take_changes(&mut self) -> ChangeTable {
        let mut empty = ChangeTable::new(self.table.patterns.clone());
        // Registers may have other values in every table.
        let keeps_outcomes = self.table.outcomes.len() <= MOST_KEPT_OUTCOMES.max(2 * self.programs.len());
        if keeps_outcomes {
            empty.outcomes = self.table.outcomes.clone();
        }
        self.telling.begin(keeps_outcomes);
        std::mem::replace(&mut self.table, empty)
    }

    /// Gives back the memory of changes that were taken and are no longer needed: much new memory is slow.
    pub fn reuse(&mut self, mut rows: Vec<ChangeRow>) {
        if self.table.rows.capacity() < rows.capacity() && self.table.rows.is_empty() {
            rows.clear();
            self.table.rows = rows;
        }
    }

    /// Tells what was found in one key.
    pub(crate) fn tell(&mut self, key: &Key) {
        let from = self.table.rows.len();
        let name = self.key_index(&key.name);
        self.ready_manners();
        let mut teller = Teller {
            rows: &self.rows,
            programs: &self.programs,
            domain: &mut self.domains[key.domain()],
            telling: &mut self.telling,
            table: &mut self.table,
            key,
            name,
        };
        if !teller.tell(&self.findings.list) {
            self.telling.order.apply(&mut self.table.rows[from..]);
        }
        self.findings.list.clear();
    }

    pub(crate) fn ready_manners(&mut self) {
        if self.telling.manners.len() != self.programs.len() {
            let unknown = self.telling.unknown_outcome();
            let manner = |program: &Program| Manner {
                last_configuration: 0,
                last_outcome: unknown,
                length: match program.window {
                    Window::Time(length) => length,
                    _ => -1,
                },
                holds: program.hold,
            };
            self.telling.manners = self.programs.iter().map(manner).collect();
        }
    }

    pub(crate) fn key_index(&mut self, name: &Arc<str>) -> u32 {
        let (keys, telling) = (&mut self.table.keys, &mut self.telling);
        let is_last = |index: &u32| Arc::ptr_eq(&keys[*index as usize], name);
        if let Some(index) = telling.last_key.filter(is_last) {
            return index;
        }
        let hash_of = |name: &Arc<str>| FixedState::default().hash_one(name.as_bytes());
        let hash = hash_of(name);
        let known = telling.keys.find(hash, |index| keys[*index as usize] == *name);
        let index = known.copied().unwrap_or_else(|| {
            keys.push(name.clone());
            let index = index_of(keys.len() - 1);
            telling
                .keys
                .insert_unique(hash, index, |index| hash_of(&keys[*index as usize]));
            index
        });
        telling.last_key = Some(index);
        index
    }

    /// Tells the held matches of a partition that are final now.
    pub(crate) fn tell_held(&mut self, domain: usize) {
        let Some(bound) = self.domains[domain].effective else {
            return;
        };
        let partition = self.domains[domain].partition;
        for pattern in 0..self.programs.len() {
            if self.domains[domain].held[pattern].is_empty() {
                continue;
            }
            let later = self.domains[domain].held[pattern].split_off(&(bound, [0; 16]));
            let now = std::mem::replace(&mut self.domains[domain].held[pattern], later);
            for held in now.into_values() {
                self.tell_again(pattern, partition, held);
            }
        }
    }

    fn tell_again(&mut self, pattern: usize, partition: u32, held: Held) {
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
            partition,
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
        let order = |row: &ChangeRow| (row.record, row.kind, row.key, row.start, row.end);
        let rows = &self.table.rows[from..];
        // Numbers of keys are in no order of their own; of a punctuation the number is that of its partition.
        let one_key = || rows.windows(2).all(|pair| pair[0].key == pair[1].key);
        let has_timeouts = || rows.iter().any(|row| row.kind == ChangeKind::Timeout);
        if rows.is_sorted_by_key(order) && one_key() && !has_timeouts() {
            return;
        }
        let mut rows = std::mem::take(&mut self.table.rows);
        let table = &self.table;
        rows[from..].sort_by(|a, b| {
            let first = (a.record, a.kind).cmp(&(b.record, b.kind));
            let texts = || match a.kind {
                ChangeKind::Punctuation => (a.pattern, a.key).cmp(&(b.pattern, b.key)),
                ChangeKind::Timeout if (a.key, a.start) == (b.key, b.start) => table.order_bindings(a, b),
                _ if a.key == b.key => std::cmp::Ordering::Equal,
                _ => table.keys[a.key as usize].cmp(&table.keys[b.key as usize]),
            };
            first
                .then_with(texts)
                .then_with(|| (a.start, a.end).cmp(&(b.start, b.end)))
        });
        self.table.rows = rows;
    }
}

#[allow(clippy::cast_possible_truncation)] // limited by what one feed can say
pub(crate) fn index_of(place: usize) -> u32 {
    place as u32
}
