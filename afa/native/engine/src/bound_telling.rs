//! Putting matches of observed patterns into words, with what they have bound.

use std::sync::Arc;

use crate::bound_matches::BoundEvent;
use crate::change_table::{ChangeKind, ChangeRow, ChangeTable, Outcome};
use crate::engine::Engine;
use crate::finding::{QueryMatch, Told, place_of};
use crate::found::Found;
use crate::key::Key;
use crate::pattern::Window;
use crate::program::Program;
use crate::rows::Rows;
use crate::telling::index_of;
use crate::value::Value;
use crate::ways::{Steps, Ways};

/// Puts matches of one pattern and key into a table.
struct BoundTeller<'a> {
    rows: &'a Rows,
    program: &'a Program,
    table: &'a mut ChangeTable,
    /// What is the same for all of them.
    sample: ChangeRow,
    /// What the last one said, and its place among the outcomes: most say the same.
    last: Option<(Arc<Told>, u32)>,
    /// The same by the final configuration.
    last_configuration: Option<(u32, u32)>,
}

impl BoundTeller<'_> {
    fn tell(&mut self, record: u32, found: &QueryMatch) {
        let mut outcome = self.outcome(&found.told);
        if self.program.query.as_ref().is_some_and(|query| query.tells_bindings) {
            outcome = self.bind(found, outcome);
        }
        self.push(record, outcome, found.start, found.end);
    }

    /// Tells matches of one start event whose ways were followed forth.
    fn tell_followed(&mut self, start: u32, ways: &Ways) {
        let mut lengths = vec![0; ways.trails.len()];
        for part in ways.matches.iter().flat_map(|found| &found.parts) {
            if part.length > 0 {
                lengths[part.trail] = part.length.max(lengths[part.trail]);
            }
        }
        let mut begins = Vec::with_capacity(lengths.len());
        for (trail, length) in ways.trails.iter().zip(lengths) {
            begins.push(self.table.bound.events());
            for row in &trail[..length] {
                let event = self.event(*row);
                self.table.bound.push(event);
            }
        }
        for found in &ways.matches {
            let told = self.outcome_of(found.configuration);
            let outcome = self.table.bound.begin(told, 0);
            for part in &found.parts {
                let begin = begins.get(part.trail).copied().unwrap_or(0);
                self.table.bound.add_variable(begin..begin + part.length);
            }
            self.push(found.record, outcome, start, found.end);
        }
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

    /// The outcome of a final configuration.
    fn outcome_of(&mut self, configuration: u32) -> u32 {
        if let Some((known, place)) = self.last_configuration
            && known == configuration
        {
            return place;
        }
        let (state, registers) = self.program.told_of(configuration);
        let place = self.push_outcome(state, registers);
        self.last_configuration = Some((configuration, place));
        place
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
            last_configuration: None,
        };
        for (record, found) in told {
            teller.tell(record, found);
        }
    }

    /// Tells matches that events after all others have brought, where no two ways of a start event ever meet; those of
    /// one start event stand together.
    pub(crate) fn tell_ways(&mut self, key: &Key, pattern: usize, found: &[Found]) {
        let name = self.key_index(&key.name);
        let sample = self.sample(key, pattern, ChangeKind::Insert, name);
        let mut steps = Steps::default();
        for found in found.chunk_by(|a, b| a.start == b.start) {
            let Some(place) = place_of(&self.rows, key, found[0].start) else {
                self.findings.refused += found.len();
                continue;
            };
            let ways = Ways::follow(&mut self.programs[pattern], &self.rows, key, place, found, &mut steps);
            let mut teller = BoundTeller {
                rows: &self.rows,
                program: &self.programs[pattern],
                table: &mut self.table,
                sample,
                last: None,
                last_configuration: None,
            };
            teller.tell_followed(found[0].start, &ways);
        }
    }

    fn sample(&self, key: &Key, pattern: usize, kind: ChangeKind, name: u32) -> ChangeRow {
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

    /// The id of a match.
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
            last_configuration: None,
        };
        teller.tell(0, found);
        table.match_id(&table.rows[0])
    }
}
