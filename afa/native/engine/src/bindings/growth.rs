//! What comes after all that a key has, where patterns are observed: it mostly only adds matches, which are found from
//! the list of partial matches, as everywhere.

use crate::bindings::finding::{Finder, QueryMatch, partition_of, place_of};
use crate::bindings::observing::{Scope, Touched};
use crate::bindings::selecting::{count, earliest_maximal};
use crate::changes::found::Found;
use crate::changes::table::ChangeKind;
use crate::engine::{Engine, live};
use crate::keys::key::Key;
use crate::program::compiled::UNRELEASED;
use crate::program::query::{Growth, Output};
use crate::rows::stretch::Stretch;

impl Engine {
    /// Appends rows where patterns are observed: together where they only add matches, else one by one.
    pub(crate) fn append_observed(&mut self, number: usize, rows: Stretch<'_>, first_record: Option<u32>) {
        let regroups = |lane: usize| self.programs[self.lanes[lane]].growth() == Growth::Regroups;
        let one_by_one = |lane: &usize| regroups(*lane) || self.may_change_more(*lane, rows);
        if rows.len() == 1 || !self.observed.iter().any(one_by_one) {
            return self.append_watched(number, rows, first_record);
        }
        for (at, row) in rows.rows().enumerate() {
            let record = first_record.map(|first| first + (row - rows.row(0)));
            self.append_watched(number, rows.part(at, at + 1), record);
        }
    }

    /// Whether rows that are appended may change what is told of matches that do not begin like those that end with them.
    fn may_change_more(&self, lane: usize, rows: Stretch<'_>) -> bool {
        let pattern = self.lanes[lane];
        let program = &self.programs[pattern];
        let may_deny = |row: u32| {
            let query = program.query.as_deref();
            let is_seen = self.rows.class(pattern, row) < UNRELEASED;
            is_seen && query.is_some_and(|query| query.may_be_denied_by(&self.rows.view(row)))
        };
        match program.growth() {
            Growth::Waits | Growth::Adds | Growth::Counts | Growth::Regroups => false,
            Growth::AddsUnlessDenied => rows.rows().any(may_deny),
            Growth::Open => true,
        }
    }

    /// Appends one row, or several that only add matches.
    fn append_watched(&mut self, number: usize, rows: Stretch<'_>, first_record: Option<u32>) {
        let mut key = self.take_key(number);
        let from = self.table.rows.len();
        let (before, was_degraded) = (live(&key), key.degraded);
        if let Some(record) = first_record {
            self.findings.record = record;
        }
        self.ready_counts(&mut key);
        let changing = |lane: &usize| self.may_change_more(*lane, rows);
        let changing: Vec<usize> = self.observed.iter().copied().filter(changing).collect();
        let touched = Touched {
            ts: self.rows.ts(rows.row(0)),
            rows: [Some(rows.row(0)), None],
        };
        let scope = Scope::Around(touched);
        let watched = self.watch_lanes(&key, changing, scope);
        self.append_rows(&mut key, rows, first_record);
        self.newest = self.newest.max(key.spine.last_ts());
        let looked_at: Vec<usize> = watched.iter().map(|(lane, _)| self.lanes[*lane]).collect();
        let added = self.take_added(|pattern| looked_at.contains(&pattern));
        self.tell_after(&mut key, before, was_degraded);
        self.tell_added(&mut key, added);
        self.tell_watched(&mut key, watched, scope, None);
        self.sweep_if_grown(&key);
        self.order_observed(from);
        self.put_key(number, key);
    }

    /// Finds out which matches of a key count so far, where matches that come have to know.
    pub(crate) fn ready_counts(&mut self, key: &mut Key) {
        for at in 0..self.observed.len() {
            let (lane, pattern) = (self.observed[at], self.lanes[self.observed[at]]);
            if self.programs[pattern].growth() == Growth::Counts {
                let progress = self.domains[key.domain()].progress(&self.programs[pattern], pattern);
                self.know_counted(key, lane, progress);
            }
        }
    }

    /// Takes out what was found of patterns that are observed: the answer is what of it is to be looked at more closely,
    /// which what is found by watching is not. What is left can be told as it is.
    pub(crate) fn take_added(&mut self, is_watched: impl Fn(usize) -> bool) -> Vec<Found> {
        let programs = &self.programs;
        let mut added = Vec::new();
        self.findings.list.retain(|found| {
            let program = &programs[found.pattern];
            if !program.is_observed() {
                return true;
            }
            match program.growth() {
                Growth::Adds if program.tells_ends_alone() => return true,
                Growth::Adds | Growth::Counts => added.push(*found),
                Growth::Regroups | Growth::AddsUnlessDenied if !is_watched(found.pattern) => added.push(*found),
                _ => {}
            }
            false
        });
        debug_assert!(
            added.iter().all(|found| !found.retracts),
            "what comes last takes nothing back"
        );
        added
    }

    /// Tells matches that came after all others.
    pub(crate) fn tell_added(&mut self, key: &mut Key, mut added: Vec<Found>) {
        added.sort_by_key(|found| found.pattern);
        for added in added.chunk_by(|a, b| a.pattern == b.pattern) {
            let pattern = added[0].pattern;
            let program = &self.programs[pattern];
            let Some(lane) = self.lanes.iter().position(|known| *known == pattern) else {
                continue;
            };
            match program.output {
                Output::All if program.tells_graphs() => self.tell_new_graphs(key, lane, added),
                Output::All if program.has_ways_apart() => self.tell_ways(key, pattern, added),
                Output::All => self.tell_all(key, lane, added),
                Output::NonOverlapping => self.tell_counting(key, lane, added),
                Output::EarliestMaximal => self.tell_regrouped(key, lane, added),
            }
        }
    }

    fn tell_all(&mut self, key: &mut Key, lane: usize, added: &[Found]) {
        let told = self.look_closer(key, lane, added.to_vec());
        self.note_refused(key);
        let told = told.iter().map(|(record, found)| (*record, found));
        self.tell_matches(key, self.lanes[lane], ChangeKind::Insert, told);
    }

    /// Finds what matches have bound and whether something forbids them; each comes with the record that it is due to.
    fn look_closer(&mut self, key: &Key, lane: usize, mut added: Vec<Found>) -> Vec<(u32, QueryMatch)> {
        let pattern = self.lanes[lane];
        // The runs of a start event are followed once, whatever matches they have come to.
        added.sort_by_key(|found| found.start);
        added.dedup_by_key(|found| (found.start, found.end));
        let punctuation = self.domains[key.domain()].effective;
        let mut finder = Finder::new(&self.rows, key, (lane, pattern), punctuation, self.limits);
        let mut counts = Vec::with_capacity(added.len());
        for same_start in added.chunk_by(|a, b| a.start == b.start) {
            counts.extend(finder.find_ends(&mut self.programs[pattern], same_start));
        }
        self.findings.refused += finder.refused;
        let records = added.iter().zip(counts);
        let records = records.flat_map(|(found, count)| std::iter::repeat_n(found.record, count));
        records.zip(finder.found).collect()
    }

    /// Tells those that count, end by end: of most it is clear at once that they begin too early.
    fn tell_counting(&mut self, key: &mut Key, lane: usize, added: &[Found]) {
        let pattern = self.lanes[lane];
        let forgotten = key.forgotten_mut(lane);
        let (ends, mut counted) = (forgotten.ends.clone(), forgotten.counted.take().unwrap_or_default());
        let mut told = Vec::new();
        for same_end in added.chunk_by(|a, b| a.end == b.end) {
            let begins_late = |found: &&Found| {
                let partition = partition_of(&self.programs[pattern], found.configuration);
                counted.is_free(&self.rows, &ends, &partition, found.start)
            };
            let left: Vec<Found> = same_end.iter().filter(begins_late).copied().collect();
            if !left.is_empty() {
                let found = self.look_closer(key, lane, left);
                let id_of = |found: &QueryMatch| self.match_id(key, pattern, found);
                told.extend(count(&self.rows, &mut counted, &ends, found, |(_, found)| found, id_of));
            }
        }
        key.forgotten_mut(lane).counted = Some(counted);
        self.note_refused(key);
        self.tell_inserts(key, pattern, &told);
    }

    /// Tells what the matches that end with one event change among those with the same first events.
    fn tell_regrouped(&mut self, key: &mut Key, lane: usize, added: &[Found]) {
        let pattern = self.lanes[lane];
        let mut starts: Vec<u32> = added.iter().map(|found| found.start).collect();
        starts.sort_unstable();
        starts.dedup();
        let mut found = Vec::new();
        for start in starts {
            let Some(place) = place_of(&self.rows, key, start) else {
                self.findings.refused += 1;
                continue;
            };
            let punctuation = self.domains[key.domain()].effective;
            let mut finder = Finder::new(&self.rows, key, (lane, pattern), punctuation, self.limits);
            finder.find_from(&mut self.programs[pattern], place);
            found.append(&mut finder.found);
            let refused = finder.refused;
            self.findings.refused += refused;
        }
        self.note_refused(key);
        let before = found.iter().filter(|found| found.end != added[0].end).cloned();
        let before = earliest_maximal(&self.rows, &before.collect::<Vec<_>>());
        let after = earliest_maximal(&self.rows, &found);
        self.tell_difference(key, lane, before, after, None);
    }
}
