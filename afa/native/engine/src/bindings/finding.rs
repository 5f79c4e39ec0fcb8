//! Finding the matches of one pattern in one key from its stored events: what their runs have bound, and whether
//! something forbids them.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use foldhash::fast::FixedState;

use crate::bindings::runs::{Bound, Runs};
use crate::changes::found::Found;
use crate::keys::key::Key;
use crate::keys::spine::Place;
use crate::lists::configuration::FINAL;
use crate::lists::matcher::expiry;
use crate::program::compiled::{Program, UNRELEASED};
use crate::program::pattern::Window;
use crate::program::query::Query;
use crate::program::value::Value;
use crate::progress::limits::Limits;
use crate::rows::store::Rows;
use crate::state::form::Writer;

/// What matches with the same final configuration say.
#[derive(Debug)]
pub(crate) struct Told {
    /// The final state; empty for a query, whose bindings stand for it.
    pub(crate) state: Arc<str>,
    /// The registers, or what a query returns.
    pub(crate) values: Arc<[Value]>,
    /// The values of `[attr]` as bytes: 1 and 1.0 are one partition.
    pub(crate) partition: Vec<u8>,
}

/// The same if it reads the same: bindings say what the partition is.
impl PartialEq for Told {
    fn eq(&self, other: &Self) -> bool {
        (&self.state, &self.values) == (&other.state, &other.values)
    }
}

impl Eq for Told {}

impl Hash for Told {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.state, &self.values).hash(state);
    }
}

/// A match of a pattern that is observed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct QueryMatch {
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) told: Arc<Told>,
    pub(crate) bound: Bound,
}

/// Finds matches.
pub(crate) struct Finder<'a> {
    rows: &'a Rows,
    key: &'a Key,
    lane: usize,
    pattern: usize,
    punctuation: Option<i64>,
    /// No more matches that end with the same event are told.
    most: usize,
    /// How many do, by their end.
    ends: HashMap<u32, usize, FixedState>,
    told: HashMap<u32, Arc<Told>, FixedState>,
    /// Matches that end before this time are not looked for.
    pub(crate) least_end: i64,
    /// What was found.
    pub(crate) found: Vec<QueryMatch>,
    /// How often there were more.
    pub(crate) refused: usize,
}

impl<'a> Finder<'a> {
    pub(crate) fn new(
        rows: &'a Rows,
        key: &'a Key,
        (lane, pattern): (usize, usize),
        punctuation: Option<i64>,
        limits: Limits,
    ) -> Self {
        Self {
            rows,
            key,
            lane,
            pattern,
            punctuation,
            most: limits.max_partial_matches_per_key,
            ends: HashMap::default(),
            told: HashMap::default(),
            least_end: i64::MIN,
            found: Vec::new(),
            refused: 0,
        }
    }

    /// The matches that begin with the event at a place.
    pub(crate) fn find_from(&mut self, program: &mut Program, place: Place) {
        let closes = expiry(program, self.rows, self.key.spine.row(place));
        if program.is_told_at_window_end() && self.punctuation < Some(closes) {
            return;
        }
        let (rows, key, lane) = (self.rows, self.key, (self.lane, self.pattern));
        let Some(mut runs) = Runs::begin(program, rows, key, lane, place) else {
            return;
        };
        loop {
            if runs.code & FINAL != 0 && self.rows.ts(runs.last()) >= self.least_end {
                self.note(&mut runs, place);
            }
            if !runs.go_on() {
                return;
            }
        }
    }

    /// The matches that begin with one event, which all of these do, and end with theirs, in order; the answer is how
    /// many each of them stands for. None if the first event is not stored any more.
    pub(crate) fn find_ends(&mut self, program: &mut Program, ends: &[Found]) -> Vec<usize> {
        let (rows, key, lane) = (self.rows, self.key, (self.lane, self.pattern));
        let mut counts = vec![0; ends.len()];
        let begun = place_of(rows, key, ends[0].start);
        let begun = begun.and_then(|place| Some((place, Runs::begin(program, rows, key, lane, place)?)));
        let Some((place, mut runs)) = begun else {
            self.refused += ends.len();
            return counts;
        };
        for (count, found) in counts.iter_mut().zip(ends) {
            while runs.last() != found.end {
                if !runs.go_on() {
                    return counts;
                }
            }
            let before = self.found.len();
            self.note(&mut runs, place);
            *count = self.found.len() - before;
        }
        counts
    }

    /// The first time at which a match ends that begins at a place, whatever forbids it.
    pub(crate) fn first_end(&self, program: &mut Program, place: Place) -> Option<i64> {
        let mut runs = Runs::begin(program, self.rows, self.key, (self.lane, self.pattern), place)?;
        while runs.code & FINAL == 0 {
            if !runs.go_on() {
                return None;
            }
        }
        Some(self.rows.ts(runs.last()))
    }

    /// Notes the matches that end with the event that the runs have consumed last.
    fn note(&mut self, runs: &mut Runs<'_>, start: Place) {
        let finals: Vec<u32> = runs.program.final_members(runs.code).collect();
        let is_query = runs.program.query.is_some();
        let from = self.found.len();
        for configuration in finals {
            if !self.is_free(runs.program, configuration, start, runs.place) {
                continue;
            }
            let mut bound: Vec<Bound> = Vec::new();
            if is_query {
                let room = self.most - self.ends.get(&runs.last()).copied().unwrap_or(0);
                let are_all = runs.bindings(configuration, false, room, &mut bound);
                self.refused += usize::from(!are_all);
            } else {
                bound.push(Bound::default());
            }
            let (told, start, end) = (self.told(runs.program, configuration), runs.first(), runs.last());
            *self.ends.entry(end).or_default() += bound.len();
            self.found.extend(bound.into_iter().map(|bound| QueryMatch {
                start,
                end,
                told: told.clone(),
                bound,
            }));
        }
        if is_query && self.found.len() > from + 1 {
            // Runs that have bound the same are one match.
            let mut found = self.found.split_off(from);
            found.sort_by(|a, b| a.bound.cmp(&b.bound));
            found.dedup_by(|a, b| a.bound == b.bound);
            self.found.append(&mut found);
        }
    }

    /// What matches that end in a configuration say.
    fn told(&mut self, program: &Program, number: u32) -> Arc<Told> {
        let say = || {
            let (state, values) = program.told_of(number);
            Arc::new(Told {
                state,
                values,
                partition: partition_of(program, number),
            })
        };
        self.told.entry(number).or_insert_with(say).clone()
    }

    /// Whether nothing that a query forbids before the first event or after the last one lies within the window.
    fn is_free(&self, program: &Program, configuration: u32, start: Place, end: Place) -> bool {
        let (Some(query), Window::Time(length)) = (&program.query, program.window) else {
            return true;
        };
        let registers = &program.sets.configuration(configuration).registers;
        let spine = &self.key.spine;
        let (first, last) = (spine.ts(start, self.rows), spine.ts(end, self.rows));
        let occurs = |query: &[crate::program::expression::Node], place: Place| {
            let row = spine.row(place);
            let is_seen = self.rows.class(self.pattern, row) < UNRELEASED;
            let view = self.rows.view(row);
            is_seen
                && query
                    .iter()
                    .any(|node| node.evaluate(Some(&view), registers).as_truth() == Some(true))
        };
        let Query { leading, trailing, .. } = &**query;
        if !leading.is_empty() {
            let mut place = Some(start);
            while let Some(here) = place.and_then(|place| before(self.key, place)) {
                if spine.ts(here, self.rows).saturating_add(length) <= last {
                    break;
                }
                if occurs(leading, here) {
                    return false;
                }
                place = Some(here);
            }
        }
        let mut place = spine.next(end).filter(|_| !trailing.is_empty());
        while let Some(here) = place.filter(|here| spine.ts(*here, self.rows) < first.saturating_add(length)) {
            if occurs(trailing, here) {
                return false;
            }
            place = spine.next(here);
        }
        true
    }
}

/// The values of `[attr]` in a configuration, as bytes.
pub(crate) fn partition_of(program: &Program, configuration: u32) -> Vec<u8> {
    let registers = &program.sets.configuration(configuration).registers;
    let mut partition = Writer::default();
    for register in program.query.iter().flat_map(|query| &query.partition) {
        partition.value(&in_one_form(&registers[*register]));
    }
    partition.finish()
}

/// Where a row stands, if it is stored.
pub(crate) fn place_of(rows: &Rows, key: &Key, row: u32) -> Option<Place> {
    let (spine, ts) = (&key.spine, rows.start_ts(row)?);
    let mut place = spine.search(rows, ts)?;
    while spine.row(place) != row {
        place = spine.next(place).filter(|next| spine.ts(*next, rows) == ts)?;
    }
    Some(place)
}

/// The entry before this one.
fn before(key: &Key, place: Place) -> Option<Place> {
    if let Some(slot) = place.slot.checked_sub(1) {
        return Some(Place { slot, ..place });
    }
    let page = place.page.checked_sub(1)?;
    let slot = key.spine.pages[page].len().checked_sub(1)?;
    Some(Place { page, slot })
}

/// A float that is a 64-bit integer as that, minus zero as zero: values that are equal to the language are the same.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::float_cmp)]
fn in_one_form(value: &Value) -> Value {
    match value {
        Value::Float(number) if *number >= -9.2e18 && *number <= 9.2e18 && *number as i64 as f64 == *number => {
            Value::Int(*number as i64)
        }
        other => other.clone(),
    }
}
