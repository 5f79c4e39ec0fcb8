//! What comes after all that a key has, where patterns are observed: it mostly only adds matches, which are found from
//! the list of partial matches, as everywhere.

use crate::change_table::ChangeKind;
use crate::engine::{Engine, live};
use crate::finding::{Finder, QueryMatch};
use crate::found::Found;
use crate::key::Key;
use crate::observing::Scope;
use crate::program::UNRELEASED;
use crate::query::{Growth, Output};
use crate::selecting::count;
use crate::stretch::Stretch;

impl Engine {
    /// Appends rows where patterns are observed: together where they only add matches, else one by one.
    pub(crate) fn append_observed(&mut self, number: usize, rows: Stretch<'_>, first_record: Option<u32>) {
        let lanes = &self.observed;
        if rows.len() == 1 || !lanes.iter().any(|lane| self.may_change_more(*lane, rows)) {
            return self.append_watched(number, rows, first_record);
        }
        for (at, row) in rows.rows().enumerate() {
            let record = first_record.map(|first| first + (row - rows.row(0)));
            self.append_watched(number, rows.part(at, at + 1), record);
        }
    }

    /// Whether rows that are appended may do more than add matches that end with them.
    fn may_change_more(&self, lane: usize, rows: Stretch<'_>) -> bool {
        let pattern = self.lanes[lane];
        let program = &self.programs[pattern];
        let may_deny = |row: u32| {
            let query = program.query.as_deref();
            let is_seen = self.rows.class(pattern, row) < UNRELEASED;
            is_seen && query.is_some_and(|query| query.may_be_denied_by(&self.rows.view(row)))
        };
        match program.growth() {
            Growth::Waits | Growth::Adds | Growth::Counts => false,
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
        let scope = Scope::Around(self.rows.ts(rows.row(0)));
        let watched = self.watch_lanes(&key, changing, scope);
        self.append_rows(&mut key, rows, first_record);
        self.newest = self.newest.max(key.spine.last_ts());
        let looked_at: Vec<usize> = watched.iter().map(|(lane, _)| self.lanes[*lane]).collect();
        let added = self.take_added(|pattern| looked_at.contains(&pattern));
        self.tell_after(&mut key, before, was_degraded);
        self.tell_added(&mut key, added);
        self.tell_watched(&mut key, watched, scope, None);
        self.order_observed(from);
        self.put_key(number, key);
    }

    /// Finds out which matches of a key count so far, where matches that come have to know.
    pub(crate) fn ready_counts(&mut self, key: &mut Key) {
        for at in 0..self.observed.len() {
            let lane = self.observed[at];
            let counts = self.programs[self.lanes[lane]].growth() == Growth::Counts;
            if counts && key.forgotten(lane).counted.is_none() {
                let counted = self.counted_now(key, lane);
                key.forgotten_mut(lane).counted = Some(counted);
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
                Growth::AddsUnlessDenied if !is_watched(found.pattern) => added.push(*found),
                Growth::AddsUnlessDenied | Growth::Waits | Growth::Open => {}
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
            if self.programs[pattern].has_ways_apart() {
                self.tell_ways(key, pattern, added);
            } else if let Some(lane) = self.lanes.iter().position(|known| *known == pattern) {
                self.tell_closely(key, lane, added);
            }
        }
    }

    /// The same of one pattern, whose matches have to be looked at.
    fn tell_closely(&mut self, key: &mut Key, lane: usize, added: &[Found]) {
        let pattern = self.lanes[lane];
        // The runs of a start event are followed once, whatever matches they have come to.
        let mut added = added.to_vec();
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
        let mut told: Vec<(u32, QueryMatch)> = records.zip(finder.found).collect();
        if self.programs[pattern].output == Output::NonOverlapping {
            told = self.count_added(key, lane, told);
        }
        let told = told.iter().map(|(record, found)| (*record, found));
        self.tell_matches(key, pattern, ChangeKind::Insert, told);
    }

    /// Of matches that came after all others, those that count.
    fn count_added(&mut self, key: &mut Key, lane: usize, told: Vec<(u32, QueryMatch)>) -> Vec<(u32, QueryMatch)> {
        let pattern = self.lanes[lane];
        let forgotten = key.forgotten_mut(lane);
        let (ends, mut counted) = (forgotten.ends.clone(), forgotten.counted.take().unwrap_or_default());
        let id_of = |found: &QueryMatch| self.match_id(key, pattern, found);
        let told = count(&self.rows, &mut counted, &ends, told, |(_, found)| found, id_of);
        key.forgotten_mut(lane).counted = Some(counted);
        told
    }
}
