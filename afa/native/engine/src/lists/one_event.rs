//! One event of one key, after all that the key has: the shortest way to what `append` would do. Where keys are many and
//! their events interleaved, every event takes it.

use prefetch_index::prefetch_index;

use crate::changes::found::Found;
use crate::engine::Engine;
use crate::input::index_of;
use crate::keys::folded::Folded;
use crate::keys::key::Key;
use crate::lists::configuration::FINAL;
use crate::lists::lane::Lane;
use crate::lists::matcher::{LISTED_RUN, Matcher};
use crate::lists::shapes::{MOST_WORDS, Move};
use crate::program::compiled::{Program, UNRELEASED};
use crate::rows::store::{Rows, parts, row_number};
use crate::rows::stretch::Stretch;

/// So many rows ahead keys are fetched from memory, and what their lists lead to.
const KEYS_AHEAD: usize = 24;
const MOVES_AHEAD: usize = 8;

/// Rows that follow each other in a chunk, and the key of each.
#[derive(Clone, Copy)]
pub(crate) struct Given<'a> {
    pub(crate) keys: &'a [u32],
    pub(crate) chunk: usize,
    pub(crate) first: usize,
    /// The record of the first row, and by how much that of the next is greater.
    pub(crate) records: (u32, u32),
}

impl Given<'_> {
    pub(crate) fn row(&self, place: usize) -> u32 {
        row_number(self.chunk, self.first + place)
    }

    fn record(&self, place: usize) -> u32 {
        let (first, step) = self.records;
        first + step * index_of(place)
    }
}

/// Rows of which most can be taken the shortest way: their keys are folded.
pub(crate) struct PlainRows {
    /// The only pattern.
    pattern: usize,
    domain: usize,
    /// No row before this time is to be taken.
    bound: i64,
    /// Rows of entries that are gone.
    released: Vec<u32>,
    /// Keys and matches that are to be told.
    found: Vec<(u32, Found)>,
}

/// What plain rows have come to together.
struct Sums {
    newest: i64,
    live: usize,
    peak: usize,
}

/// Why no further row was taken.
enum Stop {
    /// There is none, or it needs a closer look.
    Other,
    /// Its key is not folded.
    Unfolded,
    /// Its key has as many entries as there is room for.
    Full,
    /// Partial matches of its key have expired, or the shape of its list was forgotten.
    Stale,
    /// The move of its class is not known.
    Unknown,
}

impl Engine {
    /// Whether rows may be plain: one pattern that keeps lists, and nothing to be looked at but keys and times. None before
    /// the bound is, nor one whose key is of another partition.
    pub(crate) fn plain_rows(&self, domain: usize, bound: i64) -> Option<PlainRows> {
        let [pattern] = self.lanes[..] else {
            return None;
        };
        let program = &self.programs[pattern];
        let is_plain = self.linear.is_empty()
            && self.observed.is_empty()
            && !program.gap_free
            && !self.has_key_fields
            && !self.rows.has_other_seqs()
            && self.has_room_for_all(program);
        is_plain.then_some(PlainRows {
            pattern,
            domain,
            bound,
            released: Vec::new(),
            found: Vec::new(),
        })
    }

    /// Whether no list that has a shape comes near the limit.
    fn has_room_for_all(&self, program: &Program) -> bool {
        program.sets.largest().saturating_mul(MOST_WORDS + 1) < self.limits.max_partial_matches_per_key
    }

    /// Takes rows from a place on as long as they are plain. The answer is the place after them.
    pub(crate) fn take_plain(&mut self, plain: &mut PlainRows, given: Given<'_>, place: usize) -> usize {
        let mut place = place;
        let punctuation = self.domains[plain.domain].effective.unwrap_or(i64::MIN);
        loop {
            let stop = self.step_plain(plain, given, &mut place, punctuation);
            self.tell_plain(plain);
            let Some(number) = given.keys.get(place).map(|number| *number as usize) else {
                return place;
            };
            let goes_on = match stop {
                Stop::Other => false,
                Stop::Unfolded => self.fold_key(number, punctuation),
                Stop::Full => self.settle_passed(plain.pattern, number, punctuation),
                Stop::Stale => self.refresh_plain(plain, given, place, punctuation),
                Stop::Unknown => self.learn_plain(plain, given, place, self.folded[number].shape()),
            };
            if !goes_on {
                return place;
            }
        }
    }

    /// The same up to the first for which more is needed.
    #[inline(never)] // the loop needs the registers
    fn step_plain(&mut self, plain: &mut PlainRows, given: Given<'_>, next: &mut usize, punctuation: i64) -> Stop {
        let (live, peak) = (self.live_partial_matches, self.counters.peak_partial_matches);
        let mut sums = Sums::of(live, peak);
        let (numbers, end) = (given.keys, given.keys.len());
        let (program, chunk) = (&self.programs[plain.pattern], self.rows.chunk(given.chunk));
        let (moves, first, span) = (program.shapes.moves(), program.shapes.first(), program.window.span());
        let times = &chunk.times()[given.first..][..end];
        let classes = &chunk.classes(plain.pattern)[given.first..][..end];
        let from = *next;
        let mut place = from;
        let stop = loop {
            if place == end {
                break Stop::Other;
            }
            if let Some(number) = numbers.get(place + KEYS_AHEAD) {
                prefetch_index(&self.folded, *number as usize);
            }
            if let Some(number) = numbers.get(place + MOVES_AHEAD)
                && let Some(key) = self.folded.get(*number as usize)
            {
                moves.prefetch(key.shape().wrapping_sub(first), classes[place + MOVES_AHEAD]);
            }
            let (number, ts, class) = (numbers[place], times[place], classes[place]);
            if numbers.get(place + 1) == Some(&number) || ts < plain.bound {
                break Stop::Other;
            }
            let Some(key) = self.folded.get_mut(number as usize) else {
                break Stop::Other;
            };
            if !key.is_folded() {
                break Stop::Unfolded;
            }
            if ts <= key.last_ts() || key.domain() != plain.domain {
                break Stop::Other;
            }
            if ts >= key.expires() || key.shape() < first {
                break Stop::Stale;
            }
            let found = moves.find(key.shape() - first, class);
            if found.is_stuck() {
                break Stop::Unknown;
            }
            let before = if key.is_passed(punctuation) {
                // They go now, while the key is at hand.
                key.settle(&mut plain.released)
            } else if key.has_room() {
                key.count()
            } else {
                break Stop::Full;
            };
            let row = given.row(place);
            key.follow(found, first + found.next, (row, ts), ts.saturating_add(span));
            sums.add(ts, before, found.length());
            if found.is_final() {
                note_matches(program, plain, key, (number, given.record(place), row));
            }
            place += 1;
        };
        *next = place;
        self.add_sums(plain, given.chunk, place - from, &sums);
        stop
    }

    fn add_sums(&mut self, plain: &mut PlainRows, chunk: usize, taken: usize, sums: &Sums) {
        if taken > 0 {
            self.rows.store(chunk, taken, sums.newest);
            self.programs[plain.pattern].shapes.note_uses(taken);
            self.newest = self.newest.max(Some(sums.newest));
            (self.live_partial_matches, self.counters.peak_partial_matches) = (sums.live, sums.peak);
        }
        for row in plain.released.drain(..) {
            self.rows.release_run(parts(row).0, 1);
        }
    }

    /// Tells the matches of plain rows, in order. What that needs lies all over the memory, and is fetched first.
    fn tell_plain(&mut self, plain: &mut PlainRows) {
        let key_of = |number: &u32| self.keys[*number as usize].as_deref();
        for (number, found) in &plain.found {
            self.rows.prefetch_ts(found.start);
            if let Some(key) = key_of(number) {
                prefetch_index(std::slice::from_ref(&key.name), 0);
            }
        }
        for (number, _) in &plain.found {
            if let Some(key) = key_of(number) {
                prefetch_index(key.name.as_bytes(), 0);
            }
        }
        for (number, found) in plain.found.drain(..) {
            self.findings.list.push(found);
            self.findings.record = found.record;
            let Some(key) = self.keys[number as usize].take() else {
                continue;
            };
            self.tell(&key);
            self.keys[number as usize] = Some(key);
        }
    }

    /// Lets go of partial matches that have expired for a row, and looks up a shape that was forgotten, if the row can be
    /// taken then.
    #[inline(never)]
    fn refresh_plain(&mut self, plain: &PlainRows, given: Given<'_>, place: usize, punctuation: i64) -> bool {
        let number = given.keys[place] as usize;
        let ts = self.rows.chunk(given.chunk).times()[given.first + place];
        let key = &self.folded[number];
        let has_room = key.is_passed(punctuation) || key.has_room();
        if !has_room && !self.settle_passed(plain.pattern, number, punctuation) {
            return false;
        }
        let Some(left) = self.left_at(number, ts) else {
            return false;
        };
        if ts >= left.expires || !self.learn_plain(plain, given, place, left.shape) {
            return false;
        }
        self.settle_folded(number, punctuation);
        self.folded[number].become_left(&left);
        self.live_partial_matches -= left.gone;
        true
    }

    /// Whether the move of a row from a shape is known, now at the latest.
    fn learn_plain(&mut self, plain: &PlainRows, given: Given<'_>, place: usize, shape: u32) -> bool {
        let row = given.row(place);
        let class = self.rows.class(plain.pattern, row);
        let (program, rows) = (&mut self.programs[plain.pattern], &self.rows);
        let is_known = class < UNRELEASED && program.learn_move(shape, class, || rows.view(row));
        is_known && self.has_room_for_all(&self.programs[plain.pattern])
    }
}

/// Notes the matches of a key that end at a row: the key's number, the record and the row.
#[inline(never)] // seldom called, and the loop needs the registers
fn note_matches(program: &Program, plain: &mut PlainRows, key: &Folded, (number, record, end): (u32, u32, u32)) {
    let found = |start: u32, configuration: u32| Found {
        record,
        retracts: false,
        pattern: plain.pattern,
        start,
        end,
        configuration,
    };
    let only = program.shapes.only_ending(key.shape());
    if let Some((place, configuration)) = only {
        let start = key.start_rows().nth(place).unwrap_or(end);
        plain.found.push((number, found(start, configuration)));
        return;
    }
    let codes = program.shapes.codes(key.shape());
    for (start, code) in key.start_rows().zip(codes).filter(|(_, code)| **code & FINAL != 0) {
        let all = program
            .final_members(*code)
            .map(|configuration| (number, found(start, configuration)));
        plain.found.extend(all);
    }
}

impl Sums {
    fn of(live: usize, peak: usize) -> Self {
        Self {
            newest: i64::MIN,
            live,
            peak,
        }
    }

    #[inline]
    fn add(&mut self, ts: i64, before: usize, after: usize) {
        self.newest = self.newest.max(ts);
        self.live = self.live + after - before;
        self.peak = self.peak.max(self.live);
    }
}

impl Key {
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
