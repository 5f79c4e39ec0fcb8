//! One event of one key, after all that the key has: the shortest way to what `append` would do. Where keys are many and
//! their events interleaved, every event takes it.

use crate::engine::Engine;
use crate::key::Key;
use crate::lane::Lane;
use crate::matcher::{LISTED_RUN, Matcher};
use crate::page::PAGE_ENTRIES;
use crate::program::Program;
use crate::rows::{Rows, Stretch, parts, row_number};
use crate::segment::Segment;
use crate::shapes::{MOST_WORDS, Move};

/// So many rows are looked ahead for their keys.
const TOUCHED_ROWS: usize = 16;

/// Rows of a segment of which most can be taken the shortest way.
pub(crate) struct PlainRows {
    /// The only pattern.
    pattern: usize,
    domain: usize,
    /// No row before this time is to be taken.
    bound: i64,
    /// Rows before this place have their keys at hand.
    touched: usize,
    /// Chunks of entries that are gone, and how many.
    released: Vec<(usize, usize)>,
}

/// What plain rows have come to together.
struct Sums {
    taken: usize,
    newest: i64,
    live: usize,
    peak: usize,
}

impl Engine {
    /// Whether the rows of a segment may be plain: one pattern that keeps lists, and nothing to be looked at but keys
    /// and times.
    pub(crate) fn plain_rows(&self, segment: &Segment) -> Option<PlainRows> {
        let [pattern] = self.lanes[..] else {
            return None;
        };
        let (program, origin) = (&self.programs[pattern], segment.origin);
        let topic = &self.domains[origin.domain].topics[origin.topic];
        let most = program.sets.largest().saturating_mul(MOST_WORDS + 1);
        let is_plain = segment.records.is_empty()
            && segment.origins.is_empty()
            && topic.predicated.is_empty()
            && self.linear.is_empty()
            && self.observed.is_empty()
            && !program.gap_free
            && !self.has_key_fields
            && !self.rows.has_other_seqs()
            && most < self.limits.max_partial_matches_per_key;
        is_plain.then_some(PlainRows {
            pattern,
            domain: origin.domain,
            bound: topic.punctuation.unwrap_or(i64::MIN),
            touched: 0,
            released: Vec::new(),
        })
    }

    /// Takes rows from a place on as long as they are plain. The answer is the place after them.
    pub(crate) fn take_plain(&mut self, plain: &mut PlainRows, segment: &Segment, place: usize) -> usize {
        let mut place = place;
        loop {
            place = self.step_plain(plain, segment, place);
            if self.findings.list.is_empty() {
                return place;
            }
            let number = segment.keys[place - 1] as usize;
            let key = self.take_key(number);
            self.tell(&key);
            self.keys[number] = Some(key);
        }
    }

    /// The same up to the first that leads to a match.
    #[inline(never)] // the loop needs the registers
    fn step_plain(&mut self, plain: &mut PlainRows, segment: &Segment, from: usize) -> usize {
        let punctuation = self.domains[plain.domain].effective.unwrap_or(i64::MIN);
        let (live, peak) = (self.live_partial_matches, self.counters.peak_partial_matches);
        let mut sums = Sums::of(live, peak);
        let (numbers, end) = (&segment.keys[..], segment.keys.len());
        let (program, chunk) = (&self.programs[plain.pattern], self.rows.chunk(segment.chunk));
        let times = &chunk.times()[segment.first..][..end];
        let classes = &chunk.classes(plain.pattern)[segment.first..][..end];
        let mut place = from;
        while place < end {
            if place >= plain.touched {
                plain.touched = place + TOUCHED_ROWS;
                touch_keys(&self.keys, &numbers[place..end.min(plain.touched)]);
            }
            let (number, ts) = (numbers[place], times[place]);
            if numbers.get(place + 1) == Some(&number) || ts < plain.bound {
                break;
            }
            let Some(key) = self.keys.get_mut(number as usize).and_then(Option::as_deref_mut) else {
                break;
            };
            if key.rare.is_some() || key.domain() != plain.domain {
                break;
            }
            let row = row_number(segment.chunk, segment.first + place);
            let before = key.lanes[0].list().len();
            let event = (row, ts, classes[place]);
            let Some(found) = key.step_plain(program, &self.rows, event, punctuation, &mut plain.released) else {
                break;
            };
            place += 1;
            sums.add(ts, before, found.count() + usize::from(found.begins()));
            if found.is_final() {
                self.findings.record = segment.record(place - 1);
                let list = key.lanes[0].list();
                self.findings.note_list(program, plain.pattern, row, list);
                break;
            }
        }
        self.add_sums(plain, segment.chunk, &sums);
        place
    }

    fn add_sums(&mut self, plain: &mut PlainRows, chunk: usize, sums: &Sums) {
        if sums.taken > 0 {
            self.rows.store(chunk, sums.taken, sums.newest);
            self.programs[plain.pattern].shapes.note_uses(sums.taken);
            self.newest = self.newest.max(Some(sums.newest));
            (self.live_partial_matches, self.counters.peak_partial_matches) = (sums.live, sums.peak);
        }
        for (chunk, count) in plain.released.drain(..) {
            self.rows.release_run(chunk, count);
        }
    }
}

/// Looks at the keys of the next rows, all at once: what is not in a cache comes while the others are waited for.
fn touch_keys(keys: &[Option<Box<Key>>], numbers: &[u32]) {
    let known = |number: &u32| keys.get(*number as usize).and_then(Option::as_ref);
    let seen = numbers.iter().filter_map(known).fold(0, |seen, key| seen ^ key.touch());
    std::hint::black_box(seen);
}

impl Sums {
    fn of(live: usize, peak: usize) -> Self {
        Self {
            taken: 0,
            newest: i64::MIN,
            live,
            peak,
        }
    }

    #[inline]
    fn add(&mut self, ts: i64, before: usize, after: usize) {
        self.taken += 1;
        self.newest = self.newest.max(ts);
        self.live = self.live + after - before;
        self.peak = self.peak.max(self.live);
    }
}

impl Key {
    /// Takes an event (row, time and class) of the only pattern, if it comes after all others, its move is known and it
    /// needs no further page.
    #[inline]
    fn step_plain(
        &mut self,
        program: &Program,
        rows: &Rows,
        (row, ts, class): (u32, i64, u32),
        punctuation: i64,
        released: &mut Vec<(usize, usize)>,
    ) -> Option<Move> {
        let last = self.spine.pages.back();
        if !self.spine.pages.is_alone() || last.is_some_and(|page| page.last_ts() >= ts) {
            return None;
        }
        let lane = &mut self.lanes[0];
        let found = program.find_plain_move(lane, ts, class)?;
        let next = program.shapes.first() + found.next;
        let (codes, closes) = (program.shapes.codes(next), ts.saturating_add(program.window.span()));
        if last.is_none_or(|page| page.last_ts() < punctuation) {
            // They go now, while the key is at hand.
            if let Some(page) = last {
                page.each_chunk(|chunk, count| released.push((chunk, count)));
            }
            let page = self.spine.pages.begin_anew(row, ts);
            if page.entering.is_empty() {
                page.entering.push(Lane::default());
            }
            lane.follow_from(&mut page.entering[0], found, next, codes, row, closes);
        } else if last.is_some_and(|page| page.len() < PAGE_ENTRIES) {
            self.push_entry(rows, row, ts);
            self.lanes[0].follow(found, next, codes, row, closes);
        } else {
            return None;
        }
        Some(found)
    }

    /// Adds an entry at the end.
    fn push_entry(&mut self, rows: &Rows, row: u32, ts: i64) {
        self.spine.ready_page(rows, row, 1, LISTED_RUN, self.lanes.iter());
        if let Some(page) = self.spine.pages.back_mut() {
            if page.is_run() {
                page.extend_run(row, 1, ts);
            } else {
                page.push(ts, row);
            }
        }
    }
}

impl Program {
    /// The move of a lane at an event, if it is known.
    #[inline]
    pub(crate) fn find_plain_move(&self, lane: &Lane, ts: i64, class: u32) -> Option<Move> {
        if !self.shapes.has(lane.shape) || ts >= lane.expires {
            return None;
        }
        let found = self.shapes.find_move(lane.shape, class);
        (!found.is_stuck()).then_some(found)
    }
}

impl Matcher<'_> {
    /// Takes one event that comes after all that the key has.
    pub fn append_one(&mut self, key: &mut Key, row: u32, record: Option<u32>) {
        if !self.linear.is_empty() || self.any_gap_free() {
            return self.append(key, Stretch::Run(row, 1), record);
        }
        let (chunk, offset) = parts(row);
        let ts = self.rows.chunk(chunk).times()[offset];
        let passed = |last: i64| self.punctuation.is_some_and(|punctuation| last < punctuation);
        if key.spine.pages.is_alone() && key.spine.last_ts().is_some_and(passed) {
            if let Some(page) = key.spine.pages.back() {
                page.release(self.rows);
            }
            let page = key.spine.pages.begin_anew(row, ts);
            for (entering, lane) in page.entering.iter_mut().zip(&key.lanes) {
                entering.copy(lane);
            }
        } else {
            key.push_entry(self.rows, row, ts);
        }
        for lane in 0..self.lanes.len() {
            let pattern = self.lanes[lane];
            let class = self.rows.chunk(chunk).class(pattern, offset);
            let state = &mut key.lanes[lane];
            match self.stepper(pattern).step_one(state, row, ts, class) {
                Some(false) => {}
                Some(true) => {
                    self.findings.record = record.unwrap_or(self.findings.record);
                    self.findings
                        .note_list(&self.programs[pattern], pattern, row, state.list());
                }
                None => self.step_rows(state, pattern, Stretch::Run(row, 1), record),
            }
        }
        self.rows.store(chunk, 1, ts);
        if self.lanes.len() > 1 {
            self.keep_all(key);
        }
    }
}
