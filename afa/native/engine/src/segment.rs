//! A stretch of events of one chunk, between records that are no inserts: classified together, then taken one by one or
//! all at once.

use crate::batch::Waiting;
use crate::engine::Engine;
use crate::keys::naming::Naming;
use crate::lists::one_event::{Given, PlainRows};
use crate::predicates::kernel::vectorized;
use crate::predicates::measuring::Measured;
use crate::program::compiled::{Program, UNRELEASED, UNSEEN};
use crate::program::expression::EventView;
use crate::program::value::Value;
use crate::progress::domain::{Domain, Origin, is_released};
use crate::progress::slack::below;
use crate::rows::run_ends::RunEnds;
use crate::rows::store::row_number;
use crate::rows::stretch::{Runs, Stretch};

/// No key: the row is not to be taken.
pub(crate) const NO_KEY: u32 = u32::MAX;

/// Whether changes are told after every record or after every batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Net {
    /// The law holds after every record.
    Record,
    /// The law holds after every batch.
    Batch,
}

/// What became of the records of a batch that were not simply taken.
#[derive(Debug, Default)]
pub struct Fed {
    /// Bad records: index and reason.
    pub bad: Vec<(u32, String)>,
    /// Late records: index and reason.
    pub late: Vec<(u32, String)>,
    /// The record at which the batch was left, because it names texts that were not checked yet.
    pub asks: Option<u32>,
    /// Its condition, if it is a punctuation: where it comes from, time and text.
    pub condition: Option<(Origin, i64, String)>,
}

/// Inserts that wait to be taken: rows of one chunk from `first` on.
#[derive(Debug, Default)]
pub(crate) struct Segment {
    pub(crate) chunk: usize,
    pub(crate) first: usize,
    /// The key of each row, or `NO_KEY`.
    pub(crate) keys: Vec<u32>,
    /// The record of each row; empty: they follow `first_record`.
    pub(crate) records: Vec<u32>,
    pub(crate) first_record: u32,
    /// Where each row comes from; empty: all from `origin`.
    pub(crate) origins: Vec<Origin>,
    pub(crate) origin: Origin,
    /// What was measured when rows were added; else they are measured when they are taken.
    pub(crate) measured: Measured,
    /// Where in the table begins what punctuations told that have overtaken the rows.
    pub(crate) overtaken_from: Option<usize>,
    /// Where runs end, as soon as it was asked for.
    run_ends: RunEnds,
    /// The parts of a run with gaps.
    pub(crate) runs: Runs,
    /// Rows that wait for the end of the batch.
    pub(crate) waiting: Waiting,
    /// Rows whose keys are not known yet.
    pub(crate) naming: Naming,
    /// Records that are not taken, because their keys hold them: the place before which they came, origin and time.
    pub(crate) skipped: Vec<(usize, Origin, i64)>,
}

impl Segment {
    pub(crate) fn record(&self, place: usize) -> u32 {
        #[allow(clippy::cast_possible_truncation)] // a batch has far fewer records
        let place_number = place as u32;
        self.records
            .get(place)
            .copied()
            .unwrap_or(self.first_record + place_number)
    }

    pub(crate) fn origin(&self, place: usize) -> Origin {
        self.origins.get(place).copied().unwrap_or(self.origin)
    }

    /// Finds the end of the run that begins at a place: rows of one key in order, over rows that are not to be taken.
    pub(crate) fn find_run(&mut self, place: usize, times: &[i64], runs: &mut Runs) -> usize {
        let key = self.keys[place];
        self.run_ends
            .find(&self.keys, (!self.measured.ascends).then_some(times));
        runs.clear();
        let mut begin = place;
        loop {
            let end = self.run_ends.at_or_after(begin) + 1;
            runs.push(row_number(self.chunk, self.first + begin), end - begin);
            let gap = self.keys[end..].iter().take_while(|other| **other == NO_KEY).count();
            let next = end + gap;
            let goes_on = gap > 0 && self.keys.get(next) == Some(&key) && times[next] > times[end - 1];
            if !goes_on {
                return end;
            }
            begin = next;
        }
    }

    /// Rows up to a place, which are added next, come from here.
    #[inline]
    pub(crate) fn come_from(&mut self, origin: Origin, end: usize) {
        if origin != self.origin && self.origins.is_empty() {
            self.origins.resize(self.keys.len(), self.origin);
        }
        if origin != self.origin || !self.origins.is_empty() {
            self.origins.resize(end, origin);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.keys.clear();
        self.records.clear();
        self.origins.clear();
        self.skipped.clear();
        self.run_ends.forget();
        self.measured.clear();
    }
}

impl Engine {
    /// Takes the rows of a segment, or lets them wait for the end of the batch.
    pub(crate) fn take_segment(&mut self, segment: &mut Segment, net: Net, fed: &mut Fed) {
        if segment.keys.is_empty() {
            return;
        }
        if segment.measured.is_empty() {
            self.measure(segment, 0);
        }
        let (oldest, newest) = (segment.measured.oldest, segment.measured.newest);
        self.classify_measured(segment);
        let taken = count_taken(&segment.keys);
        self.counters.events += taken;
        let are_all = taken == segment.measured.rows() as u64;
        self.meet_rows(segment, are_all.then_some(newest), fed);
        let times = &self.rows.chunk(segment.chunk).times()[segment.first..];
        self.agenda.meet(&segment.keys, times);
        // Observed patterns look at a key before and after each record; what they tell is netted at the end.
        if net == Net::Batch && self.observed.is_empty() {
            if !self.all_in_time(segment, oldest) {
                self.leave_out_late(segment, fed);
            }
            self.mark_changed(&segment.keys);
            let domain = segment.origins.is_empty().then_some(segment.origin.domain);
            segment.waiting.add(segment.chunk, segment.first, &segment.keys, domain);
            return segment.clear();
        }
        self.mark_changed(&segment.keys);
        self.forget_old_shapes();
        let overtakers = self.take_overtakers(segment);
        let from = self.table.rows.len();
        self.take_rows_of(segment, fed);
        self.weave(&overtakers, from);
        segment.clear();
        self.clean_domains();
    }

    /// Takes the rows of a segment, one after the other.
    fn take_rows_of(&mut self, segment: &mut Segment, fed: &mut Fed) {
        let mut place = 0;
        let mut plain = self.plain_rows_of(segment);
        while place < segment.keys.len() {
            // Of a run only the last row is alone.
            let is_alone = segment.keys.get(place + 1) != Some(&segment.keys[place]);
            if let Some(plain) = plain.as_mut().filter(|_| is_alone) {
                let given = Given {
                    keys: &segment.keys,
                    chunk: segment.chunk,
                    first: segment.first,
                    records: (segment.first_record, 1),
                };
                place = self.take_plain(plain, given, place);
                if place == segment.keys.len() {
                    break;
                }
            }
            place = self.take_run(segment, place, fed);
        }
    }

    fn plain_rows_of(&self, segment: &Segment) -> Option<PlainRows> {
        let origin = segment.origin;
        let topic = &self.domains[origin.domain].topics[origin.topic];
        if !segment.records.is_empty() || !segment.origins.is_empty() || !topic.predicated.is_empty() {
            return None;
        }
        self.plain_rows(origin.domain, self.bound_of(origin).unwrap_or(i64::MIN))
    }

    /// Takes one row, or several of one key; the answer is the place after them.
    fn take_run(&mut self, segment: &mut Segment, place: usize, fed: &mut Fed) -> usize {
        let key = segment.keys[place];
        if key == NO_KEY {
            return place + 1;
        }
        self.unfold_key(key as usize);
        let end = self.take_mixed(segment, place);
        if end > place {
            return end;
        }
        let origin = segment.origin(place);
        let has_conditions = !self.domains[origin.domain].topics[origin.topic].predicated.is_empty();
        let times = &self.rows.chunk(segment.chunk).times()[segment.first..];
        let ts = times[place];
        let (number, state) = (key as usize, self.keys[key as usize].as_ref());
        let in_order = state.is_some_and(|key| {
            !key.has_tombs() && key.domain() == origin.domain && key.spine.last_ts().is_none_or(|last| last < ts)
        });
        let in_time = self.bound_of(origin) <= Some(ts) && !has_conditions;
        if !in_order || !in_time || self.must_look_closer {
            if self.is_in_time(segment, place, fed) {
                self.findings.record = segment.record(place);
                self.insert(number, row_number(segment.chunk, segment.first + place));
            }
            return place + 1;
        }
        let plain = segment.records.is_empty() && segment.origins.is_empty();
        let record = segment.record(place);
        let mut runs = std::mem::take(&mut segment.runs);
        let end = if plain {
            segment.find_run(place, &times[..segment.keys.len()], &mut runs)
        } else {
            runs.clear();
            runs.push(row_number(segment.chunk, segment.first + place), 1);
            place + 1
        };
        let run = runs.stretch();
        self.count_unseen(run);
        self.append(number, run, Some(record));
        segment.runs = runs;
        end
    }

    /// Whether nothing needs a closer look: rows of one origin, none late wherever their keys belong, seen by all.
    fn all_in_time(&self, segment: &Segment, oldest: i64) -> bool {
        let topic = &self.domains[segment.origin.domain].topics[segment.origin.topic];
        let passes_none = |domain: &Domain| domain.reached() <= Some(oldest);
        let in_time = self.bound_of(segment.origin) <= Some(oldest) && self.domains.iter().all(passes_none);
        in_time && topic.predicated.is_empty() && segment.origins.is_empty() && !self.has_key_fields
    }

    /// Rows that come too late are not to be taken.
    fn leave_out_late(&mut self, segment: &mut Segment, fed: &mut Fed) {
        for place in 0..segment.keys.len() {
            if segment.keys[place] != NO_KEY && !self.is_in_time(segment, place, fed) {
                segment.keys[place] = NO_KEY;
            }
        }
    }

    /// Whether a row comes in time; one that does not is noted, and one that does is counted.
    fn is_in_time(&mut self, segment: &Segment, place: usize, fed: &mut Fed) -> bool {
        let row = row_number(segment.chunk, segment.first + place);
        let origin = segment.origin(place);
        let (rev, key) = (self.rows.rev(row), segment.keys[place]);
        if let Some(reason) = self.why_late(origin, Some(key), self.rows.ts(row), rev > 0, Some(row)) {
            self.counters.late += 1;
            fed.late.push((segment.record(place), reason));
            return false;
        }
        self.count_unseen(Stretch::Run(row, 1));
        true
    }

    #[inline]
    fn count_unseen(&mut self, rows: Stretch<'_>) {
        if self.has_key_fields {
            self.look_for_unseen(rows);
        }
    }

    fn look_for_unseen(&mut self, rows: Stretch<'_>) {
        for pattern in &self.lanes {
            if self.programs[*pattern].key_field.is_some() {
                let unseen = rows.rows().filter(|row| self.rows.class(*pattern, *row) == UNSEEN);
                self.counters.unseen += unseen.count() as u64;
            }
        }
    }

    /// What records from there must not lie below: what their topic has passed, or their partition before it had this
    /// topic.
    pub(crate) fn bound_of(&self, origin: Origin) -> Option<i64> {
        let domain = &self.domains[origin.domain];
        domain.topics[origin.topic].punctuation.max(domain.reached())
    }

    /// What the partition has passed to which a key belongs.
    fn passed_by(&self, key: u32) -> Option<i64> {
        let key = self.keys[key as usize].as_deref().filter(|key| !key.is_resting)?;
        self.domains[key.domain()].reached()
    }

    /// Why a record of a key comes too late, if it does; `row` is that of an insert.
    pub(crate) fn why_late(
        &self,
        origin: Origin,
        key: Option<u32>,
        ts: i64,
        certain: bool,
        row: Option<u32>,
    ) -> Option<String> {
        // An event from another partition than its key's must not go below what was cleaned up there.
        let bound = self.bound_of(origin).max(key.and_then(|key| self.passed_by(key)));
        if let Some(bound) = bound.filter(|bound| ts < *bound) {
            return Some(below(ts, bound));
        }
        let topic = &self.domains[origin.domain].topics[origin.topic];
        let late = topic.predicated.iter().find(|known| {
            let holds = || {
                let row = row.map(|row| self.rows.view(row));
                row.is_some_and(|row| known.condition.evaluate(Some(&row), &[]).as_truth() == Some(true))
            };
            ts < known.ts && (certain || holds())
        })?;
        let (bound, text) = (late.ts, &late.text);
        Some(format!("ts {ts} is below the punctuation {bound} when {text}"))
    }

    /// Rows that a pattern does not see, or not yet.
    pub(crate) fn hide(&self, chunk: usize, first: usize, keys: &[u32], pattern: usize, classes: &mut [u32]) {
        let program = &self.programs[pattern];
        let chunk = self.rows.chunk(chunk);
        for (place, number) in keys.iter().enumerate() {
            let offset = first + place;
            let Some(key) = self.keys.get(*number as usize).and_then(Option::as_ref) else {
                continue;
            };
            if program.key_field.is_some() && !is_own(program, &self.rows.view_of(chunk, offset), &key.name) {
                classes[offset] = UNSEEN;
            } else if !is_released(
                program.speculation,
                self.domains[key.domain()].effective,
                chunk.times()[offset],
            ) {
                classes[offset] = UNRELEASED;
            }
        }
    }
}

/// How many rows are to be taken.
fn count_taken(keys: &[u32]) -> u64 {
    vectorized(
        #[inline(always)]
        || u64::from(keys.iter().map(|key| u32::from(*key != NO_KEY)).sum::<u32>()),
    )
}

/// Whether the key field of a pattern is the event's key; an integer is compared as its digits.
fn is_own(program: &Program, event: &dyn EventView, key: &str) -> bool {
    let Some(path) = &program.key_field else {
        return true;
    };
    let value = match (&*path.steps[0], path.steps.len()) {
        ("ts", 1) => Value::Int(event.ts()),
        ("type", 1) => event.kind(),
        ("id", 1) => event.id(),
        _ => event.field(path),
    };
    match value {
        Value::Str(text) => &*text == key,
        Value::Int(number) => number.to_string() == key,
        _ => false,
    }
}
