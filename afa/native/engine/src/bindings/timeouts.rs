//! What a punctuation lets observed patterns tell: matches whose window has closed, start events that none came from,
//! and how far their own punctuation may come.

use std::cmp::Reverse;
use std::sync::Arc;

use crate::bindings::finding::{Finder, QueryMatch, Told};
use crate::bindings::observing::{Observed, Progress, Scope};
use crate::bindings::runs::{Bound, Runs};
use crate::changes::table::ChangeKind;
use crate::engine::Engine;
use crate::input::index_of;
use crate::keys::key::Key;
use crate::keys::spine::Place;
use crate::lists::configuration::FINAL;
use crate::program::compiled::Program;
use crate::program::pattern::{Window, first_open};
use crate::program::query::Query;
use crate::rows::store::Rows;

/// What keys of a partition told before a punctuation: number of the key, lane, and that.
pub(crate) type Before = Vec<(usize, usize, Observed)>;

impl Engine {
    /// The keys of a partition that have events.
    pub(crate) fn keys_of(&mut self, domain: usize) -> Vec<usize> {
        (0..self.keys.len())
            .filter(|number| self.has_events(*number, domain))
            .collect()
    }

    /// How far a partition has come, and what observed patterns tell that a punctuation may change.
    pub(crate) fn watch_punctuation(&mut self, domain: usize, due: &[usize]) -> (Option<i64>, Before) {
        let mut before = Before::new();
        let is_changed = |lane: &usize| self.programs[self.lanes[*lane]].is_changed_by_punctuations();
        let lanes: Vec<usize> = self.observed.iter().copied().filter(is_changed).collect();
        if !lanes.is_empty() {
            for number in due.iter().copied() {
                let mut key = self.take_key(number);
                for lane in &lanes {
                    let told = self.observed_now(&key, *lane, Scope::Key);
                    self.note_refused(&mut key);
                    before.push((number, *lane, told));
                }
                self.put_key(number, key);
            }
        }
        (self.domains[domain].effective, before)
    }

    /// Tells what follows from a punctuation for patterns that are observed. The answer, if there are such, is by pattern
    /// how far its own punctuation has come, if it has.
    pub(crate) fn observe_punctuation(
        &mut self,
        domain: usize,
        passed: Option<i64>,
        before: Before,
        due: &[usize],
    ) -> Option<Vec<Option<i64>>> {
        if self.observed.is_empty() {
            return None;
        }
        let emitted = self.domains[domain].emitted.clone();
        let risen = self.raise_emitted(domain, due);
        self.tell_final(domain, passed, &emitted, due);
        for (number, lane, told) in before {
            let mut key = self.take_key(number);
            let pattern = self.lanes[lane];
            let progress = self.domains[domain].progress(&self.programs[pattern], pattern);
            let now = self.observe(&key, lane, Scope::Key, progress);
            self.note_refused(&mut key);
            self.tell_observed(&key, lane, told, now, None);
            self.put_key(number, key);
        }
        self.tell_closed(domain, passed, due);
        Some(risen)
    }

    /// Tells matches that exist since their window has closed, and start events that no match came from.
    fn tell_closed(&mut self, domain: usize, passed: Option<i64>, keys: &[usize]) {
        let Some(now) = self.domains[domain].effective else {
            return;
        };
        for lane in self.observed.clone() {
            let pattern = self.lanes[lane];
            let program = &self.programs[pattern];
            let is_due = program.is_told_at_window_end() && program.is_local() && !program.hold;
            let has_timeouts = program.query.as_ref().is_some_and(|query| query.timeouts);
            for number in keys.iter().filter(|_| is_due || has_timeouts) {
                let mut key = self.take_key(*number);
                if is_due {
                    let scope = Scope::Closing(passed, now);
                    let come_to = |punctuation| Progress {
                        punctuation,
                        emitted: punctuation,
                    };
                    let told = match self.observe(&key, lane, scope, come_to(Some(now))) {
                        Observed::Matches(told) => (Observed::Matches(Vec::new()), Observed::Matches(told)),
                        // Matches of others that end with the same events were told before.
                        graphs @ Observed::Graphs(_) => (self.observe(&key, lane, scope, come_to(passed)), graphs),
                    };
                    self.note_refused(&mut key);
                    self.tell_observed(&key, lane, told.0, told.1, None);
                }
                if has_timeouts {
                    self.tell_timeouts(&key, lane, passed, now);
                }
                self.put_key(*number, key);
            }
        }
    }

    /// Lets the punctuations of patterns come as far as their open candidates allow.
    fn raise_emitted(&mut self, domain: usize, due: &[usize]) -> Vec<Option<i64>> {
        let effective = self.domains[domain].effective;
        let mut risen = vec![effective; self.programs.len()];
        let Some(bound) = effective else {
            return risen;
        };
        let keys = self.take_touched(domain, due);
        for lane in self.observed.clone() {
            let pattern = self.lanes[lane];
            if !self.programs[pattern].has_open_candidates() {
                continue;
            }
            for number in &keys {
                self.look_for_candidates(domain, lane, *number, bound);
            }
            let open = &self.domains[domain].open_ends[pattern];
            let least = open.values().copied().fold(bound, i64::min);
            let emitted = &mut self.domains[domain].emitted[pattern];
            risen[pattern] = Some(least).filter(|least| Some(*least) > *emitted);
            *emitted = (*emitted).max(Some(least));
        }
        risen
    }

    /// The keys of a partition in which candidates may have come or gone, or closed, since the last punctuation.
    fn take_touched(&mut self, domain: usize, due: &[usize]) -> Vec<usize> {
        let keys = &self.keys;
        let its = self.agenda.take_touched(|number| {
            let key = keys.get(number as usize).and_then(Option::as_ref);
            key.is_none_or(|key| key.domain() == domain)
        });
        let mut keys: Vec<usize> = its
            .into_iter()
            .map(|number| number as usize)
            .chain(due.iter().copied())
            .collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// Finds the first end of a candidate of a key that is open.
    fn look_for_candidates(&mut self, domain: usize, lane: usize, number: usize, punctuation: i64) {
        let mut end = None;
        if self.has_events(number, domain) {
            let key = self.take_key(number);
            end = self.first_open_end(&key, lane, punctuation);
            self.put_key(number, key);
        }
        let (pattern, number) = (self.lanes[lane], index_of(number));
        let open = &mut self.domains[domain].open_ends[pattern];
        match end {
            Some(end) => drop(open.insert(number, end)),
            None => drop(open.remove(&number)),
        }
    }

    /// A key is restored: its open candidates hold punctuations back that came without it.
    pub(crate) fn lower_emitted(&mut self, key: &Key) {
        let Some(bound) = self.domains[key.domain()].effective else {
            return;
        };
        for lane in self.observed.clone() {
            let pattern = self.lanes[lane];
            if self.programs[pattern].has_open_candidates()
                && let Some(end) = self.first_open_end(key, lane, bound)
            {
                let emitted = &mut self.domains[key.domain()].emitted[pattern];
                *emitted = emitted.map(|emitted| emitted.min(end));
            }
        }
    }

    /// The first end of a candidate whose window is still open.
    fn first_open_end(&mut self, key: &Key, lane: usize, punctuation: i64) -> Option<i64> {
        let pattern = self.lanes[lane];
        let Window::Time(length) = self.programs[pattern].window else {
            return None;
        };
        // No window is open beyond the end of time.
        if punctuation == i64::MAX {
            return None;
        }
        let finder = Finder::new(&self.rows, key, (lane, pattern), Some(punctuation), self.limits);
        let mut least = None;
        let mut place = key.spine.search(&self.rows, first_open(punctuation, length));
        while let Some(here) = place.filter(|here| least.is_none_or(|end| key.spine.ts(*here, &self.rows) <= end)) {
            let end = finder.first_end(&mut self.programs[pattern], here);
            least = least.into_iter().chain(end).min();
            place = key.spine.next(here);
        }
        least
    }

    fn tell_timeouts(&mut self, key: &Key, lane: usize, passed: Option<i64>, now: i64) {
        let pattern = self.lanes[lane];
        let Window::Time(length) = self.programs[pattern].window else {
            return;
        };
        let least = passed.map_or(i64::MIN, |passed| first_open(passed, length));
        let most_bound = self.limits.max_partial_matches_per_key;
        let mut place = key.spine.search(&self.rows, least);
        let mut timeouts = Vec::new();
        while let Some(here) = place.filter(|here| {
            let closes = key.spine.ts(*here, &self.rows).saturating_add(length);
            closes <= now
        }) {
            let closes = key.spine.ts(here, &self.rows).saturating_add(length);
            if passed.is_none_or(|passed| closes > passed) {
                let program = &mut self.programs[pattern];
                timeouts.extend(furthest_run(
                    program,
                    &self.rows,
                    key,
                    (lane, pattern),
                    here,
                    most_bound,
                ));
            }
            place = key.spine.next(here);
        }
        let nothing = Arc::new(Told {
            state: "".into(),
            values: [].into(),
            partition: Vec::new(),
        });
        let record = self.findings.record;
        let timeouts: Vec<QueryMatch> = timeouts
            .into_iter()
            .map(|bound: Bound| QueryMatch {
                start: bound[0].1,
                end: bound[bound.len() - 1].1,
                told: nothing.clone(),
                bound,
            })
            .collect();
        self.tell_matches(
            key,
            pattern,
            ChangeKind::Timeout,
            timeouts.iter().map(|found| (record, found)),
        );
    }
}

/// Of a start event none of whose runs completed: what the run has bound that came furthest.
fn furthest_run(
    program: &mut Program,
    rows: &Rows,
    key: &Key,
    lane: (usize, usize),
    place: Place,
    most: usize,
) -> Option<Bound> {
    let query = program.query.clone()?;
    let mut runs = Runs::begin(program, rows, key, lane, place)?;
    let mut best: Option<(_, Bound)> = None;
    loop {
        if runs.code & FINAL != 0 {
            return None;
        }
        let members = runs.program.sets.set(runs.code).members.clone();
        let mut found = Vec::new();
        for member in &*members {
            runs.bindings(*member, true, most, &mut found);
        }
        for bound in found {
            let reach = reach(&query, rows, &bound);
            if best.as_ref().is_none_or(|(known, _)| reach < *known) {
                best = Some((reach, bound));
            }
        }
        if !runs.go_on() {
            return best.map(|(_, bound)| bound);
        }
    }
}

/// The least is the furthest: by components begun, events bound, ids, and which variables come first.
type Reach = (Reverse<usize>, Reverse<usize>, Vec<String>, Vec<(u16, i64)>);

fn reach(query: &Query, rows: &Rows, bound: &Bound) -> Reach {
    let has_begun = |component: &&Vec<u16>| bound.iter().any(|(variable, _)| component.contains(variable));
    (
        Reverse(query.components.iter().filter(has_begun).count()),
        Reverse(bound.len()),
        bound.iter().map(|(_, row)| rows.id(*row).text().into_owned()).collect(),
        bound.iter().map(|(variable, row)| (*variable, rows.ts(*row))).collect(),
    )
}
