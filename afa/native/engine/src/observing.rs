//! Patterns that tell more, or less, than the ends of their partial matches: queries with bindings and negations, and
//! patterns that choose among their matches.
//!
//! What such a pattern tells of a key is observed before something is done to the key and after it, from the start
//! events that it may concern, and the difference is told. Most events come after all others, and only add matches:
//! see `growth.rs`.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use crate::change_table::ChangeKind;
use crate::domain::Domain;
use crate::engine::Engine;
use crate::finding::{Finder, QueryMatch};
use crate::key::Key;
use crate::pattern::{Window, first_open, last_closed};
use crate::program::{Program, UNRELEASED};
use crate::query::{Growth, Output};
use crate::runs::Bound;
use crate::selecting::{Counted, select};

/// Which start events something may concern.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scope {
    /// All.
    Key,
    /// Those whose runs may meet an event of this time, or look back at it.
    Around(i64),
    /// Those whose window has closed since a punctuation (none: ever).
    Closing(Option<i64>, i64),
    /// Those that a match may begin with that ends between two instants.
    Ending(i64, i64),
}

/// How far a partition has come, as a pattern sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    /// The effective punctuation.
    pub(crate) punctuation: Option<i64>,
    /// The emitted one.
    pub(crate) emitted: Option<i64>,
}

/// What was told of a key before something was done to it, by lane.
pub(crate) type Watched = Vec<(usize, Vec<QueryMatch>)>;

impl Scope {
    /// The least and the greatest time of the start events.
    fn starts(self, program: &Program) -> (i64, i64) {
        let Window::Time(length) = program.window else {
            return (i64::MIN, i64::MAX);
        };
        match self {
            Self::Around(ts) if program.is_local() => (first_open(ts, length), ts.saturating_add(program.looks_back())),
            Self::Closing(before, now) => (
                before.map_or(i64::MIN, |before| first_open(before, length)),
                last_closed(now, length),
            ),
            Self::Ending(from, to) if program.output != Output::NonOverlapping => (first_open(from, length), to),
            _ => (i64::MIN, i64::MAX),
        }
    }
}

/// Matches as one sees them who is not told what they have bound.
fn without_bindings(mut matches: Vec<QueryMatch>) -> Vec<QueryMatch> {
    for found in &mut matches {
        found.bound = Bound::default();
    }
    matches
}

impl Domain {
    /// How far it has come, as a pattern sees it.
    pub(crate) fn progress(&self, program: &Program, pattern: usize) -> Progress {
        Progress {
            punctuation: self.effective,
            emitted: if program.has_open_candidates() {
                self.emitted[pattern]
            } else {
                self.effective
            },
        }
    }
}

impl Engine {
    /// What is told of a key by the observed patterns of which a record may change it.
    pub(crate) fn watch(&mut self, key: &Key, scope: Scope) -> Watched {
        let may_change = |lane: &usize| !self.programs[self.lanes[*lane]].is_told_by_punctuations_alone();
        let lanes: Vec<usize> = self.observed.iter().copied().filter(may_change).collect();
        self.watch_lanes(key, lanes, scope)
    }

    /// The same of those that a record is about which leads to this row, or takes it away; none: it is about no event.
    pub(crate) fn watch_row(&mut self, key: &Key, row: Option<u32>, scope: Scope) -> Watched {
        let may_change = |lane: &usize| {
            let pattern = self.lanes[*lane];
            let (program, is_seen) = (&self.programs[pattern], |row| {
                self.rows.class(pattern, row) < UNRELEASED
            });
            !program.is_told_by_punctuations_alone() && (program.gap_free || row.is_some_and(is_seen))
        };
        let lanes: Vec<usize> = self.observed.iter().copied().filter(may_change).collect();
        self.watch_lanes(key, lanes, scope)
    }

    pub(crate) fn watch_lanes(&mut self, key: &Key, lanes: Vec<usize>, scope: Scope) -> Watched {
        lanes
            .into_iter()
            .map(|lane| (lane, self.observe_now(key, lane, scope)))
            .collect()
    }

    /// Tells what has changed since. `alias`: the first row has taken the place of the second one.
    pub(crate) fn tell_watched(&mut self, key: &mut Key, watched: Watched, scope: Scope, alias: Option<(u32, u32)>) {
        for (lane, before) in watched {
            let after = self.observe_now(key, lane, scope);
            if self.programs[self.lanes[lane]].growth() == Growth::Counts {
                key.forgotten_mut(lane).counted = Some(Counted::of(&self.rows, &after));
            }
            self.tell_difference(key, lane, before, after, alias);
        }
    }

    /// Tells what has been told of a key by patterns that are observed, as far as it may change.
    pub fn tell_known(&mut self, name: &str) {
        if let Some(number) = self.numbers.find(name) {
            let key = self.take_key(number as usize);
            for (lane, told) in self.watch_lanes(&key, self.observed.clone(), Scope::Key) {
                let told = told.iter().map(|found| (0, found));
                self.tell_matches(&key, self.lanes[lane], ChangeKind::Insert, told);
            }
            self.put_key(number as usize, key);
        }
    }

    /// Orders what was told of a key from one place on, where observed patterns tell beside others.
    pub(crate) fn order_observed(&mut self, from: usize) {
        if !self.observed.is_empty() {
            self.order_from(from);
        }
    }

    pub(crate) fn observe_now(&mut self, key: &Key, lane: usize, scope: Scope) -> Vec<QueryMatch> {
        let pattern = self.lanes[lane];
        let progress = self.domains[key.domain()].progress(&self.programs[pattern], pattern);
        self.observe(key, lane, scope, progress)
    }

    /// What a pattern tells of a key when its partition has come so far.
    pub(crate) fn observe(&mut self, key: &Key, lane: usize, scope: Scope, progress: Progress) -> Vec<QueryMatch> {
        let pattern = self.lanes[lane];
        let (least, most) = scope.starts(&self.programs[pattern]);
        let forgotten = key.forgotten(lane);
        let least = least.max(forgotten.before.unwrap_or(i64::MIN));
        let mut finder = Finder::new(&self.rows, key, (lane, pattern), progress.punctuation, self.limits);
        let mut place = key.spine.search(&self.rows, least);
        while let Some(here) = place.filter(|here| key.spine.ts(*here, &self.rows) <= most) {
            finder.find_from(&mut self.programs[pattern], here);
            place = key.spine.next(here);
        }
        self.findings.refused += finder.refused;
        let (program, found) = (&self.programs[pattern], finder.found);
        let id_of = |found: &QueryMatch| self.match_id(key, pattern, found);
        let mut told = select(program.output, &self.rows, &forgotten.ends, found, id_of);
        if program.hold {
            told.retain(|found| Some(self.rows.ts(found.end)) < progress.emitted);
        }
        told
    }

    /// Tells what was told no more, and what is told now and was not.
    pub(crate) fn tell_difference(
        &mut self,
        key: &Key,
        lane: usize,
        before: Vec<QueryMatch>,
        after: Vec<QueryMatch>,
        alias: Option<(u32, u32)>,
    ) {
        let original = |row: u32| alias.filter(|(new, _)| *new == row).map_or(row, |(_, old)| old);
        let as_before = |found: &QueryMatch| QueryMatch {
            start: original(found.start),
            end: original(found.end),
            told: found.told.clone(),
            bound: found
                .bound
                .iter()
                .map(|(variable, row)| (*variable, original(*row)))
                .collect(),
        };
        let pattern = self.lanes[lane];
        let query = self.programs[pattern].query.as_deref();
        let (before, after) = match query {
            Some(query) if !query.tells_bindings => (without_bindings(before), without_bindings(after)),
            _ => (before, after),
        };
        // Of matches that differ only in what is not told there may be several.
        let mut gone: HashMap<QueryMatch, usize, FixedState> = HashMap::default();
        for found in before {
            *gone.entry(found).or_default() += 1;
        }
        let mut stays = |found: &QueryMatch| {
            let left = gone.get_mut(&as_before(found)).filter(|left| **left > 0);
            left.map(|left| *left -= 1).is_some()
        };
        let come: Vec<QueryMatch> = after.into_iter().filter(|found| !stays(found)).collect();
        let gone = gone
            .into_iter()
            .flat_map(|(found, left)| std::iter::repeat_n(found, left));
        let gone: Vec<QueryMatch> = gone.collect();
        let record = self.findings.record;
        self.tell_matches(
            key,
            pattern,
            ChangeKind::Retract,
            gone.iter().map(|found| (record, found)),
        );
        self.tell_matches(
            key,
            pattern,
            ChangeKind::Insert,
            come.iter().map(|found| (record, found)),
        );
    }

    /// Lets go of what was found of patterns that are observed.
    pub(crate) fn forget_observed(&mut self) {
        let programs = &self.programs;
        self.findings
            .list
            .retain(|found| !programs[found.pattern].is_observed());
    }
}
