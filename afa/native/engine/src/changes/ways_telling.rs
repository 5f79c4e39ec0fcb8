//! Putting matches into words whose ways were followed forth: what several of them have bound alike is said once.

use crate::bindings::finding::place_of;
use crate::bindings::matches::BoundEvent;
use crate::bindings::trails::Bound;
use crate::bindings::ways::{AskedFor, Followed, Steps, Ways};
use crate::changes::found::Found;
use crate::changes::table::{ChangeKind, ChangeRow, ChangeTable};
use crate::changes::teller::Edges;
use crate::engine::Engine;
use crate::keys::key::Key;

/// The place of nothing among what matches have bound.
const NOTHING: u32 = u32::MAX;

impl Engine {
    /// Tells matches that events after all others have brought, where no two ways of a start event ever meet.
    pub(crate) fn tell_ways(&mut self, key: &mut Key, pattern: usize, found: &[Found]) {
        self.ready_manners();
        let mut places: Vec<u32> = (0..).take(found.len()).collect();
        let start = |place: &u32| found[*place as usize].start;
        places.sort_by_key(start);
        let (mut steps, mut ways) = (Steps::default(), Ways::default());
        let mut bound = vec![NOTHING; found.len()];
        for places in places.chunk_by(|a, b| start(a) == start(b)) {
            let Some(place) = place_of(&self.rows, key, start(&places[0])) else {
                self.findings.refused += places.len();
                continue;
            };
            let asked = AskedFor { found, places };
            let program = &mut self.programs[pattern];
            ways.follow(program, (&self.rows, key), place, asked, &mut steps);
            self.keep_bound(pattern, &ways, found, &mut bound);
        }
        self.note_refused(key);
        self.tell_bound(key, pattern, found, &bound);
    }

    /// Keeps what matches of one start event have bound, and by match where.
    fn keep_bound(&mut self, pattern: usize, ways: &Ways, found: &[Found], bound: &mut [u32]) {
        let table = &mut self.table;
        let mut events = Edges::new(&self.rows);
        let mut keep = |rows: &[u32], table: &mut ChangeTable| {
            let begin = table.bound.events();
            for row in rows {
                let event = events.find(*row, table);
                table.bound.push(BoundEvent {
                    ts: event.ts,
                    id: event.id,
                });
            }
            begin
        };
        let lengths = ways.lengths();
        let begins: Vec<usize> = ways
            .trails
            .all()
            .iter()
            .zip(&lengths)
            .map(|(trail, length)| keep(&trail[..*length], table))
            .collect();
        for Followed { number, parts } in &ways.matches {
            let configuration = found[*number as usize].configuration;
            let program = &self.programs[pattern];
            let told = self.telling.outcome_of(table, program, pattern, configuration);
            bound[*number as usize] = table.bound.begin(told, 0);
            for part in parts {
                let begin = match part.events() {
                    Bound::Nothing => 0,
                    Bound::Only(row) => keep(&[row], table),
                    Bound::Trail(trail) => begins[trail],
                };
                table.bound.add_variable(begin..begin + part.length as usize);
            }
        }
    }

    /// Tells matches in the order in which they were found.
    fn tell_bound(&mut self, key: &Key, pattern: usize, found: &[Found], bound: &[u32]) {
        let name = self.key_index(&key.name);
        let sample = self.sample(key, pattern, ChangeKind::Insert, name);
        let span = self.programs[pattern].window.span();
        let table = &mut self.table;
        let (mut starts, mut ends) = (Edges::new(&self.rows), Edges::new(&self.rows));
        table.rows.reserve(found.len());
        for (found, bound) in found.iter().zip(bound).filter(|(_, bound)| **bound != NOTHING) {
            let (first, last) = (starts.find(found.start, table), ends.find(found.end, table));
            table.rows.push(ChangeRow {
                record: found.record,
                outcome: *bound,
                start: first.ts,
                end: last.ts,
                until: first.ts.saturating_add(span),
                first: first.id,
                last: last.id,
                ..sample
            });
        }
    }
}
