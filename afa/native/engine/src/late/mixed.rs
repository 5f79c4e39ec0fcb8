//! Rows of one key as they come, some in order and some late: the key is taken up once for many of them, and what they
//! mean is told together. Each record still has changes of its own.

use crate::engine::{Engine, live};
use crate::keys::key::Key;
use crate::rows::store::row_number;
use crate::rows::stretch::Stretch;
use crate::segment::Segment;

/// So many runs and late rows are taken together: what they leave behind is looked at after them.
const MOST_TOGETHER: usize = 64;
/// Where one start event may have more partial matches than this, so much may be left behind that it is looked at after
/// each.
const FEW_MEMBERS: usize = 16;

impl Engine {
    /// Takes rows of one key from a place on; the answer is the place after them. Left are those that need a closer
    /// look, from the first on: late for good, or of the time of a stored event.
    pub(crate) fn take_mixed(&mut self, segment: &mut Segment, place: usize) -> usize {
        let number = segment.keys[place] as usize;
        let domain = segment.origin.domain;
        let is_plain = |key: &Key| !key.has_tombs() && key.domain() == domain;
        if !self.is_simple(segment) || !self.keys[number].as_deref().is_some_and(is_plain) {
            return place;
        }
        let mut key = self.take_key(number);
        let (before, was_degraded) = (live(&key), key.degraded);
        let end = self.take_rows(&mut key, segment, place);
        self.newest = self.newest.max(key.spine.last_ts());
        self.after(&mut key, before, was_degraded);
        self.put_key(number, key);
        end
    }

    /// Whether only the times of a segment's rows decide what becomes of them, and that is little.
    fn is_simple(&self, segment: &Segment) -> bool {
        let is_one = segment.records.is_empty() && segment.origins.is_empty();
        let topic = &self.domains[segment.origin.domain].topics[segment.origin.topic];
        let has_few = |pattern: &usize| self.programs[*pattern].sets.largest() <= FEW_MEMBERS;
        is_one
            && topic.predicated.is_empty()
            && !self.has_key_fields
            && !self.any_gap_free()
            && self.observed.is_empty()
            && self.lanes.iter().all(has_few)
    }

    fn take_rows(&mut self, key: &mut Key, segment: &mut Segment, place: usize) -> usize {
        let bound = self.bound_of(segment.origin).unwrap_or(i64::MIN);
        let number = segment.keys[place];
        let mut at = place;
        for _ in 0..MOST_TOGETHER {
            if segment.keys.get(at) != Some(&number) {
                break;
            }
            let times = &self.rows.chunk(segment.chunk).times()[segment.first..];
            let ts = times[at];
            if ts < bound {
                break;
            }
            if key.spine.last_ts().is_none_or(|last| last < ts) {
                at = self.take_in_order(key, segment, at);
            } else if self.take_late(key, segment, at, ts) {
                at += 1;
            } else {
                break;
            }
            if self.findings.refused > 0 || key.spine.pages.is_to_be_measured() {
                break;
            }
        }
        at
    }

    /// Takes a run of rows that come after all that the key has; the answer is the place after them.
    fn take_in_order(&mut self, key: &mut Key, segment: &mut Segment, place: usize) -> usize {
        let times = &self.rows.chunk(segment.chunk).times()[segment.first..];
        let record = segment.record(place);
        let mut runs = std::mem::take(&mut segment.runs);
        let end = segment.find_run(place, &times[..segment.keys.len()], &mut runs);
        match runs.stretch() {
            Stretch::Run(first, count) => {
                let mut matcher = self.matcher(key.domain());
                let taken = matcher.append_few(key, first, count, record);
                let (rest, left, record) = (first + taken, count - taken as usize, Some(record + taken));
                match left {
                    0 => {}
                    1 => matcher.append_one(key, rest, record),
                    _ => matcher.append(key, Stretch::Run(rest, left), record),
                }
            }
            gapped => self.append_rows(key, gapped, Some(record)),
        }
        segment.runs = runs;
        end
    }

    /// Takes a row that belongs before a stored one; false if one of its time is stored, which may be the same event.
    fn take_late(&mut self, key: &mut Key, segment: &Segment, place: usize, ts: i64) -> bool {
        let Some(before) = key.spine.search(&self.rows, ts) else {
            return false;
        };
        if key.spine.ts(before, &self.rows) == ts {
            return false;
        }
        let begin = self.findings.list.len();
        self.findings.record = segment.record(place);
        let row = row_number(segment.chunk, segment.first + place);
        self.matcher(key.domain()).insert_late(key, row, before);
        let found = &mut self.findings.list[begin..];
        if found.len() > 1 {
            // As it is told, so that what many records mean need not be sorted together.
            found.sort_by_key(|found| (!found.retracts, self.rows.ts(found.start), self.rows.ts(found.end)));
        }
        true
    }
}
