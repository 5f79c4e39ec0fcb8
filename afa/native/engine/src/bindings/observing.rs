//! Patterns that tell more, or less, than the ends of their partial matches: queries with bindings and negations, and
//! patterns that choose among their matches.
//!
//! What such a pattern tells of a key is observed before something is done to the key and after it, from the start
//! events that it may concern, and the difference is told. Most events come after all others, and only add matches:
//! see `growth.rs`.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use crate::bindings::finding::{Finder, QueryMatch, place_of};
use crate::bindings::graphs::Graphs;
use crate::bindings::runs::Bound;
use crate::bindings::selecting::{Counted, select};
use crate::changes::table::ChangeKind;
use crate::engine::Engine;
use crate::keys::key::Key;
use crate::keys::spine::Place;
use crate::lists::configuration::{Code, DEAD, FINAL, Link, code_of, start_row, unmarked};
use crate::lists::matcher::expiry;
use crate::program::compiled::{Program, UNRELEASED};
use crate::program::pattern::{Window, first_open, last_closed};
use crate::program::query::{Growth, Output};
use crate::progress::domain::Domain;
use crate::rows::store::Rows;

/// Which start events something may concern.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scope {
    /// All.
    Key,
    /// Those whose runs may meet an event that comes or goes, or look back at it.
    Around(Touched),
    /// Those whose window has closed since a punctuation (none: ever).
    Closing(Option<i64>, i64),
    /// Those that a match may begin with that ends between two instants.
    Ending(i64, i64),
}

/// An event that comes, goes, or is replaced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Touched {
    pub(crate) ts: i64,
    /// The rows that it has, before or after.
    pub(crate) rows: [Option<u32>; 2],
}

/// How far a partition has come, as a pattern sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    /// The effective punctuation.
    pub(crate) punctuation: Option<i64>,
    /// The emitted one.
    pub(crate) emitted: Option<i64>,
}

/// What is told of a key by one pattern, as far as something may change it.
#[derive(Debug)]
pub(crate) enum Observed {
    Matches(Vec<QueryMatch>),
    /// By their ends; only of a pattern that tells all matches.
    Graphs(Graphs),
}

/// What was told of a key before something was done to it, by lane.
pub(crate) type Watched = Vec<(usize, Observed)>;

impl Scope {
    /// The least and the greatest time of the start events.
    fn starts(self, program: &Program) -> (i64, i64) {
        let Window::Time(length) = program.window else {
            return match self {
                Self::Around(Touched { ts, .. }) if program.is_local() => (i64::MIN, ts),
                _ => (i64::MIN, i64::MAX),
            };
        };
        match self {
            Self::Around(Touched { ts, .. }) if program.is_local() => {
                (first_open(ts, length), ts.saturating_add(program.looks_back()))
            }
            Self::Closing(before, now) => (
                before.map_or(i64::MIN, |before| first_open(before, length)),
                last_closed(now, length),
            ),
            Self::Ending(from, to) if program.output != Output::NonOverlapping => (first_open(from, length), to),
            _ => (i64::MIN, i64::MAX),
        }
    }

    /// The least and the greatest time of the ends of matches that it may concern.
    pub(crate) fn ends(self, program: &Program) -> (i64, i64) {
        let length = program.window.span();
        match self {
            Self::Around(Touched { ts, .. }) if program.is_local() => {
                let least = if program.has_trailing() {
                    first_open(ts, length)
                } else {
                    ts
                };
                (least, ts.saturating_add(length))
            }
            Self::Closing(before, now) => (before.map_or(i64::MIN, |before| first_open(before, length)), now),
            Self::Ending(from, to) => (from, to.saturating_sub(1)),
            _ => (i64::MIN, i64::MAX),
        }
    }

    /// Matches that end before this time are none of those that it concerns.
    fn least_end(self, program: &Program) -> i64 {
        match self {
            Self::Around(Touched { ts, .. }) if program.output == Output::All && !program.has_trailing() => ts,
            _ => i64::MIN,
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

/// Whether an event changes anything of a start event's partial matches, or binds something, or ends a match.
fn changes(program: &mut Program, rows: &Rows, pattern: usize, row: u32, code: Code) -> bool {
    let (class, view) = (rows.class(pattern, row), rows.view(row));
    if class >= UNRELEASED {
        return false;
    }
    // It is looked at, not taken: nothing is counted.
    let counted = (program.errors, program.evaluations);
    let next = program.step(class, code, &view);
    let links = program.links(class, unmarked(code), &view);
    (program.errors, program.evaluations) = counted;
    let moves = |link: &Link| link.from != link.to || link.binds.is_some();
    next != code || next & FINAL != 0 || links.iter().any(moves)
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

    /// The same of those that see an event which comes, goes or is replaced, before or after.
    pub(crate) fn watch_event(&mut self, key: &Key, touched: Touched) -> Watched {
        let may_change = |lane: &usize| {
            let pattern = self.lanes[*lane];
            let (program, is_seen) = (&self.programs[pattern], |row| {
                self.rows.class(pattern, row) < UNRELEASED
            });
            let sees = program.gap_free || touched.rows.into_iter().flatten().any(is_seen);
            !program.is_told_by_punctuations_alone() && sees
        };
        let mut lanes: Vec<usize> = self.observed.iter().copied().filter(may_change).collect();
        lanes.retain(|lane| !self.makes_graphs(*lane) || self.may_change_graphs(key, *lane, touched));
        self.watch_lanes(key, lanes, Scope::Around(touched))
    }

    pub(crate) fn watch_lanes(&mut self, key: &Key, lanes: Vec<usize>, scope: Scope) -> Watched {
        lanes
            .into_iter()
            .map(|lane| (lane, self.observed_now(key, lane, scope)))
            .collect()
    }

    /// Tells what has changed since. `alias`: the first row has taken the place of the second one.
    pub(crate) fn tell_watched(&mut self, key: &mut Key, watched: Watched, scope: Scope, alias: Option<(u32, u32)>) {
        for (lane, before) in watched {
            let after = self.observed_now(key, lane, scope);
            self.note_refused(key);
            if let Observed::Matches(after) = &after
                && self.programs[self.lanes[lane]].growth() == Growth::Counts
            {
                key.forgotten_mut(lane).counted = Some(Counted::of(&self.rows, after));
            }
            self.tell_observed(key, lane, before, after, alias);
        }
    }

    /// Tells what has been told of a key by patterns that are observed, as far as it may change.
    pub(crate) fn tell_known(&mut self, name: &str) {
        if let Some(number) = self.numbers.find(name) {
            let key = self.take_key(number as usize);
            for (lane, told) in self.watch_lanes(&key, self.observed.clone(), Scope::Key) {
                match told {
                    Observed::Matches(told) => {
                        let told: Vec<_> = told.into_iter().map(|found| (0, found)).collect();
                        self.tell_inserts(&key, self.lanes[lane], &told);
                    }
                    Observed::Graphs(told) => self.tell_graphs(&key, self.lanes[lane], 0, Graphs::new(), told),
                }
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

    pub(crate) fn observed_now(&mut self, key: &Key, lane: usize, scope: Scope) -> Observed {
        let pattern = self.lanes[lane];
        let progress = self.domains[key.domain()].progress(&self.programs[pattern], pattern);
        self.observe(key, lane, scope, progress)
    }

    /// What a pattern tells of a key when its partition has come so far.
    pub(crate) fn observe(&mut self, key: &Key, lane: usize, scope: Scope, progress: Progress) -> Observed {
        if self.makes_graphs(lane) {
            Observed::Graphs(self.graphs_of(key, lane, scope, progress))
        } else {
            Observed::Matches(self.matches_of(key, lane, scope, progress))
        }
    }

    /// Whether graphs are made of all matches.
    fn makes_graphs(&self, lane: usize) -> bool {
        let program = &self.programs[self.lanes[lane]];
        program.tells_graphs() && program.output == Output::All
    }

    /// The single matches that count when its partition has come so far.
    pub(crate) fn matches_of(&mut self, key: &Key, lane: usize, scope: Scope, progress: Progress) -> Vec<QueryMatch> {
        let pattern = self.lanes[lane];
        let starts = self.starts_of(key, lane, scope);
        let forgotten = key.forgotten(lane);
        let mut finder = Finder::new(&self.rows, key, (lane, pattern), progress.punctuation, self.limits);
        finder.least_end = scope.least_end(&self.programs[pattern]);
        for start in starts {
            finder.find_from(&mut self.programs[pattern], start);
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

    /// The start events that something may concern, in order.
    fn starts_of(&mut self, key: &Key, lane: usize, scope: Scope) -> Vec<Place> {
        let program = &self.programs[self.lanes[lane]];
        let (least, most) = scope.starts(program);
        let least = least.max(key.forgotten(lane).before.unwrap_or(i64::MIN));
        let (mut starts, mut place) = match scope {
            Scope::Around(touched) if program.is_local() && !program.has_trailing() => (
                self.live_starts(key, lane, touched),
                key.spine.search(&self.rows, touched.ts.max(least)),
            ),
            _ => (Vec::new(), key.spine.search(&self.rows, least)),
        };
        starts.retain(|start| key.spine.ts(*start, &self.rows) >= least);
        while let Some(here) = place.filter(|here| key.spine.ts(*here, &self.rows) <= most) {
            starts.push(here);
            place = key.spine.next(here);
        }
        starts
    }

    /// Whether there are no other events of its time.
    fn is_alone(&self, key: &Key, touched: Touched) -> bool {
        let place = key.spine.search(&self.rows, touched.ts);
        let next = place.and_then(|place| key.spine.next(place));
        let has_others = next.is_some_and(|next| key.spine.ts(next, &self.rows) == touched.ts);
        let known = place.map(|place| key.spine.row(place));
        !has_others && known.is_none_or(|row| self.rows.ts(row) > touched.ts || touched.rows.contains(&Some(row)))
    }

    /// Whether an event may change any graph.
    fn may_change_graphs(&mut self, key: &Key, lane: usize, touched: Touched) -> bool {
        let pattern = self.lanes[lane];
        let program = &self.programs[pattern];
        if !program.is_local() || program.has_trailing() || program.looks_back() > 0 || !self.is_alone(key, touched) {
            return true;
        }
        let (rows, program) = (&self.rows, &mut self.programs[pattern]);
        let mut begins = |row: &u32| {
            let class = rows.class(pattern, *row);
            class < UNRELEASED && program.begin(class, || rows.view(*row)) != DEAD
        };
        touched.rows.iter().flatten().any(&mut begins) || !self.live_starts(key, lane, touched).is_empty()
    }

    /// The start events of partial matches that an event meets, but for those that it leaves as they are.
    fn live_starts(&mut self, key: &Key, lane: usize, touched: Touched) -> Vec<Place> {
        let pattern = self.lanes[lane];
        let place = key.spine.search(&self.rows, touched.ts);
        let list = self.matcher(key.domain()).list_at(key, lane, place);
        // With others of its time it may meet partial matches that those have changed.
        let is_alone = self.is_alone(key, touched);
        let (rows, program) = (&self.rows, &mut self.programs[pattern]);
        let mut starts = Vec::new();
        for word in &list {
            let lives = expiry(program, rows, start_row(*word)) > touched.ts;
            let mut changing = touched.rows.iter().flatten();
            let changes = !is_alone || changing.any(|row| changes(program, rows, pattern, *row, code_of(*word)));
            if lives && changes {
                starts.extend(place_of(rows, key, start_row(*word)));
            }
        }
        starts
    }

    /// Tells what has changed.
    pub(crate) fn tell_observed(
        &mut self,
        key: &Key,
        lane: usize,
        before: Observed,
        after: Observed,
        alias: Option<(u32, u32)>,
    ) {
        match (before, after) {
            (Observed::Graphs(before), Observed::Graphs(after)) => {
                self.tell_graphs(key, self.lanes[lane], self.findings.record, before, after);
            }
            (Observed::Matches(before), Observed::Matches(after)) => {
                self.tell_difference(key, lane, before, after, alias);
            }
            _ => debug_assert!(false, "a pattern tells either"),
        }
    }

    /// Tells single matches that were told no more, and those that are told now and were not.
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
        if self.programs[pattern].tells_graphs() {
            return self.tell_changed_graphs(key, lane, &gone, &come);
        }
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
