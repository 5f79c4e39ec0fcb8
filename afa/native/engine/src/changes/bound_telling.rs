//! Putting matches of observed patterns into words, with what they have bound.

use std::sync::Arc;

use crate::bindings::finding::{QueryMatch, Told};
use crate::bindings::matches::BoundEvent;
use crate::changes::table::{ChangeKind, ChangeRow, ChangeTable, Outcome};
use crate::changes::telling::index_of;
use crate::engine::Engine;
use crate::keys::key::Key;
use crate::program::compiled::Program;
use crate::program::pattern::Window;
use crate::program::value::Value;
use crate::rows::store::Rows;

/// Puts matches of one pattern and key into a table.
struct BoundTeller<'a> {
    rows: &'a Rows,
    program: &'a Program,
    table: &'a mut ChangeTable,
    /// What is the same for all of them.
    sample: ChangeRow,
    /// What the last one said, and its place among the outcomes: most say the same.
    last: Option<(Arc<Told>, u32)>,
}

impl BoundTeller<'_> {
    fn tell(&mut self, record: u32, found: &QueryMatch) {
        let mut outcome = self.outcome(&found.told);
        if self.program.query.as_ref().is_some_and(|query| query.tells_bindings) {
            outcome = self.bind(found, outcome);
        }
        self.push(record, outcome, found.start, found.end);
    }

    fn push(&mut self, record: u32, outcome: u32, start: u32, end: u32) {
        let (first, last) = (self.event(start), self.event(end));
        self.table.rows.push(ChangeRow {
            record,
            outcome,
            start: first.ts,
            end: if self.sample.kind == ChangeKind::Timeout {
                first.ts
            } else {
                last.ts
            },
            until: first.ts.saturating_add(self.program.window.span()),
            first: first.id,
            last: last.id,
            ..self.sample
        });
    }

    fn push_outcome(&mut self, state: Arc<str>, registers: Arc<[Value]>) -> u32 {
        self.table.outcomes.push(Outcome {
            pattern: self.sample.pattern,
            state,
            registers,
        });
        index_of(self.table.outcomes.len() - 1)
    }

    fn outcome(&mut self, told: &Arc<Told>) -> u32 {
        if let Some((known, place)) = &self.last
            && Arc::ptr_eq(known, told)
        {
            return *place;
        }
        let place = self.push_outcome(told.state.clone(), told.values.clone());
        self.last = Some((told.clone(), place));
        place
    }

    fn bind(&mut self, found: &QueryMatch, outcome: u32) -> u32 {
        let reached = found.bound.last().map_or(0, |(variable, _)| *variable);
        let number = self.table.bound.begin(outcome, reached);
        let variables = self.program.query.as_ref().map_or(0, |query| query.variables.len());
        for variable in 0..variables {
            let begin = self.table.bound.events();
            for (_, row) in found.bound.iter().filter(|(bound, _)| usize::from(*bound) == variable) {
                let event = self.event(*row);
                self.table.bound.push(event);
            }
            self.table.bound.add_variable(begin..self.table.bound.events());
        }
        number
    }

    fn event(&mut self, row: u32) -> BoundEvent {
        BoundEvent {
            ts: self.rows.ts(row),
            id: self.table.push_id(&self.rows.id(row).owned()),
        }
    }
}

impl Engine {
    /// Tells matches of a key and pattern, each with the record that it is due to.
    pub(crate) fn tell_matches<'a>(
        &mut self,
        key: &Key,
        pattern: usize,
        kind: ChangeKind,
        told: impl Iterator<Item = (u32, &'a QueryMatch)>,
    ) {
        let name = self.key_index(&key.name);
        let sample = self.sample(key, pattern, kind, name);
        let mut teller = BoundTeller {
            rows: &self.rows,
            program: &self.programs[pattern],
            table: &mut self.table,
            sample,
            last: None,
        };
        for (record, found) in told {
            teller.tell(record, found);
        }
    }

    /// What is the same in all matches of a key and pattern.
    pub(crate) fn sample(&self, key: &Key, pattern: usize, kind: ChangeKind, name: u32) -> ChangeRow {
        ChangeRow {
            kind,
            degraded: key.degraded,
            has_until: matches!(self.programs[pattern].window, Window::Time(_)),
            pattern: index_of(pattern),
            key: name,
            partition: self.domains[key.domain()].partition,
            ..ChangeRow::punctuation(0, 0, 0, 0)
        }
    }

    /// The id of a match, however it is told.
    pub(crate) fn match_id(&self, key: &Key, pattern: usize, found: &QueryMatch) -> [u8; 16] {
        let mut table = ChangeTable::new(self.table.patterns.clone());
        table.keys.push(key.name.clone());
        let sample = self.sample(key, pattern, ChangeKind::Insert, 0);
        let mut teller = BoundTeller {
            rows: &self.rows,
            program: &self.programs[pattern],
            table: &mut table,
            sample,
            last: None,
        };
        teller.tell(0, found);
        table.sources().single_id(&table.rows[0], &mut Vec::new())
    }
}
