//! Patterns that hold their output, where they are observed: what they tell has ended before their punctuation, so that
//! nothing changes it any more.

use crate::bindings::graphs::Graphs;
use crate::bindings::observing::{Observed, Progress, Scope};
use crate::changes::found::Found;
use crate::engine::Engine;
use crate::keys::key::Key;
use crate::keys::page::PAGE_ENTRIES;
use crate::lists::lane::Lane;
use crate::program::query::Output;
use crate::rows::stretch::Stretch;

impl Engine {
    /// Tells matches of a partition that have become final. `passed` is how far it had come, and `emitted`, by pattern, how
    /// far those with open candidates had.
    pub(crate) fn tell_final(&mut self, domain: usize, passed: Option<i64>, emitted: &[Option<i64>], due: &[usize]) {
        for lane in self.observed.clone() {
            let pattern = self.lanes[lane];
            let program = &self.programs[pattern];
            if !program.hold {
                continue;
            }
            let before = if program.has_open_candidates() {
                emitted[pattern]
            } else {
                passed
            };
            let progress = self.domains[domain].progress(program, pattern);
            let Some(now) = progress.emitted.filter(|now| Some(*now) > before) else {
                continue;
            };
            let from = before.unwrap_or(i64::MIN);
            // Candidates of one key may have held back what another tells.
            let keys = if self.programs[pattern].has_open_candidates() {
                self.keys_of(domain)
            } else {
                due.to_vec()
            };
            for number in keys {
                let mut key = self.take_key(number);
                if key.spine.last_ts() >= Some(from) {
                    self.tell_ended(&mut key, lane, (from, now), progress);
                }
                self.put_key(number, key);
            }
        }
    }

    /// Tells the matches of a key that end between two instants, the second one left out.
    fn tell_ended(&mut self, key: &mut Key, lane: usize, (from, to): (i64, i64), progress: Progress) {
        let pattern = self.lanes[lane];
        if !self.programs[pattern].is_decided_by_ends() {
            let record = self.findings.record;
            let told = self.observe(key, lane, Scope::Ending(from, to), progress);
            self.note_refused(key);
            return match told {
                Observed::Graphs(told) => self.tell_graphs(key, pattern, record, Graphs::new(), told),
                Observed::Matches(mut told) => {
                    told.retain(|found| self.rows.ts(found.end) >= from);
                    let told: Vec<_> = told.into_iter().map(|found| (record, found)).collect();
                    self.tell_inserts(key, pattern, &told);
                }
            };
        }
        if self.programs[pattern].output == Output::NonOverlapping {
            let emitted = Some(from);
            self.know_counted(key, lane, Progress { emitted, ..progress });
        }
        let found = self.find_ended(key, lane, from, to);
        if self.programs[pattern].tells_ends_alone() {
            self.findings.list.extend(found);
            if !self.findings.list.is_empty() {
                self.tell(key);
            }
        } else {
            self.tell_added(key, found);
        }
    }

    /// The ends of partial matches between two instants: the list is stepped over the entries there once more.
    fn find_ended(&mut self, key: &Key, lane: usize, from: i64, to: i64) -> Vec<Found> {
        let Some(first) = key.spine.search(&self.rows, from) else {
            return Vec::new();
        };
        let mut rows = Vec::new();
        let mut place = Some(first);
        while let Some(here) = place.filter(|here| key.spine.ts(*here, &self.rows) < to) {
            rows.push(key.spine.row(here));
            place = key.spine.next(here);
        }
        let pattern = self.lanes[lane];
        let (told, refused) = (std::mem::take(&mut self.findings.list), self.findings.refused);
        let mut matcher = self.matcher(key.domain());
        let mut list = Lane::of(matcher.list_at(key, lane, Some(first)));
        for rows in rows.chunks(PAGE_ENTRIES) {
            matcher.step_rows(&mut list, pattern, Stretch::Listed(rows), None);
        }
        // What a limit refuses was counted when the rows came.
        self.findings.refused = refused;
        std::mem::replace(&mut self.findings.list, told)
    }
}
