//! Putting what was found into words: rows become times and ids, configurations become states and registers.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::FixedState;

use crate::change_table::{ChangeKind, ChangeRow, ChangeTable, IdSlot, Outcome, PatternFace, Patterns};
use crate::chunk::Chunk;
use crate::domain::Domain;
use crate::engine::Engine;
use crate::event::{Id, IdRef};
use crate::found::Found;
use crate::row_order::RowOrder;
use crate::key::Key;
use crate::pattern::Window;
use crate::program::Program;
use crate::rows::{Reader, Rows};
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
    /// By pattern and configuration.
    outcomes: Vec<Vec<KnownOutcome>>,
    /// Older marks of outcomes do not count.
    mark: u32,
    keys: HashMap<Arc<str>, u32, FixedState>,
    last_key: Option<(Arc<str>, u32)>,
    /// By pattern.
    manners: Vec<Manner>,
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
struct Manner {
    /// They live so long; negative: they have no window in time.
    length: i64,
    /// The last configuration and its outcome: most patterns have few.
    last_configuration: u32,
    last_outcome: KnownOutcome,
    /// Whether inserts wait until they are final.
    holds: bool,
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

/// An event at which matches begin or end.
#[derive(Clone, Copy, Debug)]
struct Edge {
    row: u32,
    ts: i64,
    id: IdSlot,
}

impl Edge {
    /// One that stands for no event, least of all for this row.
    fn other_than(row: u32) -> Self {
        Self {
            row: !row,
            ts: 0,
            id: IdSlot::NOTHING,
        }
    }
}

/// What is the same in all matches of one pattern and configuration.
struct Sample {
    pattern: usize,
    configuration: u32,
    /// They live so long; negative: they have no window in time.
    length: i64,
    /// Whether inserts wait until they are final.
    holds: bool,
    /// All that does not depend on the events.
    row: ChangeRow,
}

impl Sample {
    #[inline]
    fn with(&self, found: &Found, first: Edge, last: Edge) -> ChangeRow {
        ChangeRow {
            kind: if found.retracts {
                ChangeKind::Retract
            } else {
                ChangeKind::Insert
            },
            record: found.record,
            start: first.ts,
            end: last.ts,
            until: if self.length < 0 {
                0
            } else {
                first.ts.saturating_add(self.length)
            },
            first: first.id,
            last: last.id,
            ..self.row
        }
    }
}

/// Where a change of a key stands among its others.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Order {
    /// Retractions come before inserts.
    record_and_kind: u64,
    start: i64,
    end: i64,
}

impl Order {
    const LEAST: Self = Self {
        record_and_kind: 0,
        start: i64::MIN,
        end: i64::MIN,
    };

    #[inline]
    fn of(found: &Found, first: Edge, last: Edge) -> Self {
        Self {
            record_and_kind: u64::from(found.record) << 1 | u64::from(!found.retracts),
            start: first.ts,
            end: last.ts,
        }
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

    fn ready_manners(&mut self) {
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

/// Who tells what was found in a key.
struct Teller<'a> {
    rows: &'a Rows,
    programs: &'a [Program],
    domain: &'a mut Domain,
    telling: &'a mut Telling,
    table: &'a mut ChangeTable,
    key: &'a Key,
    /// Its number in the table.
    name: u32,
}

impl Teller<'_> {
    /// Tells one after the other; the answer is whether they are in order.
    fn tell(&mut self, told: &[Found]) -> bool {
        self.table.rows.reserve(told.len());
        let (mut starts, mut ends) = (Reader::new(self.rows), Reader::new(self.rows));
        let (mut first, mut last) = (Edge::other_than(told[0].start), Edge::other_than(told[0].end));
        let mut sample = self.sample(&told[0]);
        let (mut before, mut are_sorted) = (Order::LEAST, true);
        for found in told {
            // Matches of several patterns often have the same events.
            if found.start != first.row {
                first = self.edge(found.start, &mut starts);
            }
            if found.end != last.row {
                last = self.edge(found.end, &mut ends);
            }
            if (found.pattern, found.configuration) != (sample.pattern, sample.configuration) {
                sample = self.sample(found);
            }
            self.table.rows.push(sample.with(found, first, last));
            if sample.holds {
                self.hold(found);
            }
            let order = Order::of(found, first, last);
            are_sorted &= before.record_and_kind < order.record_and_kind || before <= order;
            before = order;
        }
        are_sorted
    }

    #[inline]
    fn edge(&mut self, row: u32, reader: &mut Reader<'_>) -> Edge {
        let (chunk, offset) = reader.find(row);
        let id = chunk.position(offset).and_then(IdSlot::position);
        Edge {
            row,
            ts: chunk.times()[offset],
            id: id.unwrap_or_else(|| self.text_id(chunk, offset)),
        }
    }

    #[inline(never)]
    fn text_id(&mut self, chunk: &Chunk, offset: usize) -> IdSlot {
        let id = chunk.id(offset);
        let position = match id {
            IdRef::Number(number) => IdSlot::position(number),
            IdRef::Text(_) => None,
        };
        position.unwrap_or_else(|| self.table.push_text(&id.text()))
    }

    /// What matches of this one's pattern and configuration are like.
    fn sample(&mut self, found: &Found) -> Sample {
        let known = self.telling.find_outcome(found.pattern, found.configuration);
        let outcome = known.unwrap_or_else(|| self.new_outcome(found.pattern, found.configuration));
        let manner = self.telling.manners[found.pattern];
        Sample {
            pattern: found.pattern,
            configuration: found.configuration,
            length: manner.length,
            holds: manner.holds,
            row: ChangeRow {
                kind: ChangeKind::Insert,
                degraded: self.key.degraded,
                has_until: manner.length >= 0,
                pattern: index_of(found.pattern),
                key: self.name,
                outcome,
                partition: self.domain.partition,
                ..ChangeRow::punctuation(0, 0, 0, 0)
            },
        }
    }

    #[cold]
    fn new_outcome(&mut self, pattern: usize, number: u32) -> u32 {
        let program = &self.programs[pattern];
        let configuration = program.sets.configuration(number);
        self.table.outcomes.push(Outcome {
            pattern: index_of(pattern),
            state: program.state_name(configuration.state).clone(),
            registers: configuration.registers.clone(),
        });
        let (mark, place) = (self.telling.mark, index_of(self.table.outcomes.len() - 1));
        *self.telling.known_outcome(pattern, number) = KnownOutcome { mark, place };
        place
    }

    /// Of what was told last: an insert that is not final yet waits; a retraction of one that waits says nothing.
    fn hold(&mut self, found: &Found) {
        let row = self.table.rows[self.table.rows.len() - 1];
        let identity = (row.end, self.table.match_id(&row));
        if found.retracts {
            if self.domain.held[found.pattern].remove(&identity).is_some() {
                self.table.rows.pop();
            }
            return;
        }
        if self.domain.effective.is_some_and(|bound| row.end < bound) {
            return;
        }
        let outcome = &self.table.outcomes[row.outcome as usize];
        let held = Held {
            key: self.key.name.clone(),
            degraded: row.degraded,
            start: row.start,
            end: row.end,
            until: row.has_until.then_some(row.until),
            first: self.rows.id(found.start).owned(),
            last: self.rows.id(found.end).owned(),
            state: outcome.state.clone(),
            registers: outcome.registers.clone(),
        };
        self.domain.held[found.pattern].insert(identity, held);
        self.table.rows.pop();
    }
}

#[allow(clippy::cast_possible_truncation)] // limited by what one feed can say
fn index_of(place: usize) -> u32 {
    place as u32
}
