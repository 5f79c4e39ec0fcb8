//! Telling the matches of one key, one after the other: what is the same for many is found once.

use crate::changes::found::Found;
use crate::changes::table::{ChangeKind, ChangeRow, ChangeTable, IdSlot};
use crate::changes::telling::{Held, Telling, index_of};
use crate::keys::key::Key;
use crate::program::compiled::Program;
use crate::progress::domain::Domain;
use crate::rows::event::IdRef;
use crate::rows::store::{Rows, parts};

/// An event at which matches begin or end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    row: u32,
    pub(crate) ts: i64,
    pub(crate) id: IdSlot,
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

/// Finds events, most of which are of the chunk of the one before.
pub(crate) struct Edges<'a> {
    rows: &'a Rows,
    /// The chunk that was looked at last, and its times.
    number: usize,
    times: &'a [i64],
    /// Ids of its rows are numbers from this one on.
    first_id: Option<u64>,
}

impl<'a> Edges<'a> {
    pub(crate) fn new(rows: &'a Rows) -> Self {
        Self {
            rows,
            number: usize::MAX,
            times: &[],
            first_id: None,
        }
    }

    #[inline]
    pub(crate) fn find(&mut self, row: u32, table: &mut ChangeTable) -> Edge {
        let (number, offset) = parts(row);
        if number != self.number {
            self.turn_to(number);
        }
        let id = self.first_id.and_then(|first| IdSlot::position(first + offset as u64));
        Edge {
            row,
            ts: self.times[offset],
            id: id.unwrap_or_else(|| self.other_id(row, table)),
        }
    }

    #[inline(never)]
    fn turn_to(&mut self, number: usize) {
        let chunk = self.rows.chunk(number);
        (self.number, self.times, self.first_id) = (number, chunk.times(), chunk.first_id());
    }

    #[inline(never)]
    fn other_id(&self, row: u32, table: &mut ChangeTable) -> IdSlot {
        let id = self.rows.id(row);
        let position = match id {
            IdRef::Number(number) => IdSlot::position(number),
            IdRef::Text(_) => None,
        };
        position.unwrap_or_else(|| table.push_text(&id.text()))
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

/// Who tells what was found in a key.
pub(crate) struct Teller<'a> {
    pub(crate) rows: &'a Rows,
    pub(crate) programs: &'a [Program],
    pub(crate) domain: &'a mut Domain,
    pub(crate) telling: &'a mut Telling,
    pub(crate) table: &'a mut ChangeTable,
    pub(crate) key: &'a Key,
    /// Its number in the table.
    pub(crate) name: u32,
}

impl Teller<'_> {
    /// Tells one after the other; the answer is whether they are in order.
    pub(crate) fn tell(&mut self, told: &[Found]) -> bool {
        self.table.rows.reserve(told.len());
        let (mut starts, mut ends) = (Edges::new(self.rows), Edges::new(self.rows));
        let (mut first, mut last) = (Edge::other_than(told[0].start), Edge::other_than(told[0].end));
        let mut sample = self.sample(&told[0]);
        let (mut before, mut are_sorted) = (Order::LEAST, true);
        for found in told {
            // Matches of several patterns often have the same events.
            if found.start != first.row {
                first = starts.find(found.start, self.table);
            }
            if found.end != last.row {
                last = ends.find(found.end, self.table);
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

    /// What matches of this one's pattern and configuration are like.
    fn sample(&mut self, found: &Found) -> Sample {
        let program = &self.programs[found.pattern];
        let outcome = self
            .telling
            .outcome_of(self.table, program, found.pattern, found.configuration);
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
