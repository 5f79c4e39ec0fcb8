//! One late event, the common case of a change between stored events: the shortest way to what `walk` would find.

use crate::keys::key::Key;
use crate::keys::page::{MOST_ENTRIES, PAGE_ENTRIES};
use crate::keys::spine::Place;
use crate::late::merging::MergeScratch;
use crate::late::pair::Stepping;
use crate::late::walker::{Delta, apply_deltas};
use crate::lists::configuration::{Code, DEAD, FINAL, SLOW, code_of, start_row, unmarked};
use crate::lists::lane::{Lane, Lanes};
use crate::lists::matcher::{LISTED_RUN, Matcher, expiry, is_closed};
use crate::lists::stepper::{Entries, Nobody, Stepper};
use crate::program::compiled::{Program, UNRELEASED};
use crate::rows::store::{Rows, parts};

/// Buffers that are kept from one late event to the next.
#[derive(Debug, Default)]
pub struct LateScratch {
    pub(crate) lane: Lane,
    /// The lists before and after it.
    pub(crate) pair: (Stepping, Stepping),
    /// For the late rows of a batch.
    pub(crate) merge: MergeScratch,
    /// How often stored entries were changed by anything but a late event.
    pub(crate) edition: u64,
    deltas: Vec<Delta>,
}

/// Steps one set; the event is looked at only if it must be.
#[inline]
fn step(program: &mut Program, rows: &Rows, class: u32, code: Code, row: u32) -> Code {
    if code == DEAD {
        return DEAD;
    }
    let next = program.sets.transition(class, unmarked(code));
    if next & SLOW == 0 {
        return next;
    }
    program.step(class, code, &rows.view(row))
}

impl Matcher<'_> {
    /// Inserts one event before the entry at a place. No pattern may ask for AFA+O.
    pub fn insert_late(&mut self, key: &mut Key, row: u32, mut place: Place) {
        if !key.spine.pages[place.page].takes_late() {
            place = self.make_room(key, place);
        }
        for lane in 0..self.lanes.len() {
            let pattern = self.lanes[lane];
            let class = self.rows.class(pattern, row);
            let is_short = class < UNRELEASED && self.may_be_paired(pattern, &key.spine.pages[place.page], lane);
            if is_short && self.insert_tracked(key, lane, (row, self.rows.ts(row), class), place) {
                continue;
            }
            key.spine.pages[place.page].forget_track(lane, place.slot);
            if is_short {
                self.insert_paired(key, lane, row, class, place);
            } else if class < UNRELEASED {
                self.enter_page(key, lane, place);
                self.insert_in(key, pattern, Some(lane), row, class, place);
            }
        }
        for index in 0..self.linear.len() {
            let pattern = self.linear[index];
            self.late.lane = Lane::of(self.linear_list(key, pattern, Some(place)));
            let (chunk, offset) = parts(row);
            let class = self.programs[pattern].class_of(self.rows.chunk(chunk), offset);
            self.insert_in(key, pattern, None, row, class, place);
        }
        let ts = self.rows.ts(row);
        key.spine.pages[place.page].insert(place.slot, ts, row);
        self.rows.store(parts(row).0, 1, ts);
    }

    /// Computes the list of a lane before a place, into the buffer.
    pub(crate) fn enter_page(&mut self, key: &Key, lane: usize, place: Place) {
        self.late.lane.copy(&key.spine.pages[place.page].entering[lane]);
        self.go_on(key, lane, place.page, 0, place.slot);
    }

    /// Steps the list in the buffer over some entries of a page.
    fn go_on(&mut self, key: &Key, lane: usize, page: usize, from: usize, to: usize) {
        let pattern = self.lanes[lane];
        let rows = &*self.rows;
        let mut stepper = Stepper::unlimited(&mut self.programs[pattern], rows);
        let page = &key.spine.pages[page];
        let mut gathered = [0; MOST_ENTRIES];
        let entries = Entries {
            row: |at| page.row(from + at),
            times: &page.times(rows)[from..to],
            classes: page.classes(pattern, (from, to), rows, &mut gathered),
        };
        stepper.step_over(&mut self.late.lane, &entries, Nobody);
    }

    /// What the new event does to the list in the buffer, and what follows from that.
    fn insert_in(&mut self, key: &mut Key, pattern: usize, lane: Option<usize>, row: u32, class: u32, place: Place) {
        let list = std::mem::take(self.late.lane.edit());
        let mut deltas = std::mem::take(&mut self.late.deltas);
        deltas.clear();
        let ts = self.rows.ts(row);
        for entry in &list {
            let program = &mut self.programs[pattern];
            let (start, old) = (start_row(*entry), code_of(*entry));
            let expires = expiry(program, self.rows, start);
            if is_closed(program, expires, ts) {
                continue;
            }
            let new = step(program, self.rows, class, old, row);
            if new & FINAL != 0 {
                self.findings.note(program, pattern, false, start, row, new);
            }
            self.count_cut(pattern, new);
            if old != new {
                deltas.push(Delta {
                    start,
                    old,
                    new,
                    expires,
                });
            }
        }
        let program = &mut self.programs[pattern];
        let new = program.begin(class, || self.rows.view(row));
        let expires = expiry(program, self.rows, row);
        let begins = new != DEAD && !is_closed(program, expires, ts);
        if begins && !self.refuses_run(pattern, &list, std::iter::empty()) {
            let program = &self.programs[pattern];
            if new & FINAL != 0 {
                self.findings.note(program, pattern, false, row, row, new);
            }
            self.count_cut(pattern, new);
            deltas.push(Delta {
                start: row,
                old: DEAD,
                new,
                expires,
            });
        }
        *self.late.lane.edit() = list;
        self.follow(key, pattern, lane, place, &mut deltas);
        self.late.deltas = deltas;
    }

    /// Carries differences over the entries from a place on, until none is left.
    fn follow(&mut self, key: &mut Key, pattern: usize, lane: Option<usize>, place: Place, deltas: &mut Vec<Delta>) {
        let (mut page, mut slot) = (place.page, place.slot);
        while !deltas.is_empty() {
            let Some(entries) = key.spine.pages.get(page) else {
                if let Some(lane) = lane {
                    apply_deltas(self.rows, key.lanes[lane].edit(), deltas);
                    self.keep_all(key);
                }
                return;
            };
            for at in slot..entries.len() {
                let (ts, row) = (entries.ts(at, self.rows), entries.row(at));
                self.follow_entry(pattern, lane.is_some(), ts, row, deltas);
                if deltas.is_empty() {
                    return;
                }
            }
            (page, slot) = (page + 1, 0);
            if let (Some(lane), Some(next)) = (lane, key.spine.pages.get_mut(page)) {
                next.forget_track(lane, 0);
                let list = next.entering[lane].edit();
                apply_deltas(self.rows, list, deltas);
                self.keep_list(pattern, list);
            }
        }
    }

    #[inline]
    fn follow_entry(&mut self, pattern: usize, keeps_class: bool, ts: i64, row: u32, deltas: &mut Vec<Delta>) {
        let class = if keeps_class {
            self.rows.class(pattern, row)
        } else {
            let (chunk, offset) = parts(row);
            self.programs[pattern].class_of(self.rows.chunk(chunk), offset)
        };
        if class >= UNRELEASED {
            return;
        }
        let mut kept = 0;
        for at in 0..deltas.len() {
            let mut delta = deltas[at];
            let program = &mut self.programs[pattern];
            if is_closed(program, delta.expires, ts) {
                continue;
            }
            delta.old = step(program, self.rows, class, delta.old, row);
            delta.new = step(program, self.rows, class, delta.new, row);
            if (delta.old | delta.new) & FINAL != 0 {
                let (old, new) = (Some(delta.old), Some(delta.new));
                self.findings
                    .note_difference(program, pattern, delta.start, row, old, new);
            }
            if delta.old != delta.new {
                self.count_cut(pattern, delta.new);
                deltas[kept] = delta;
                kept += 1;
            }
        }
        deltas.truncate(kept);
    }

    /// Makes room where an entry is to be put; the answer is where the place is now.
    fn make_room(&mut self, key: &mut Key, place: Place) -> Place {
        let page = &key.spine.pages[place.page];
        let (begin, end) = if page.is_run() {
            listed_part(page.len(), place.slot)
        } else {
            (page.len() / 2, page.len())
        };
        if end < page.len() {
            self.split_page(key, place.page, end);
        }
        let mut place = place;
        if begin > 0 {
            self.split_page(key, place.page, begin);
            // Between the two it belongs to the first, unless that is a run.
            if place.slot > begin || key.spine.pages[place.page].is_run() {
                place = Place {
                    page: place.page + 1,
                    slot: place.slot - begin,
                };
            }
        }
        key.spine.pages[place.page].list_run(self.rows);
        place
    }

    /// Cuts a long run before a place where something changes; the answer is the page to begin with.
    pub(crate) fn cut_before(&mut self, key: &mut Key, place: Place) -> usize {
        if key.spine.pages[place.page].len() <= LISTED_RUN || place.slot == 0 {
            return place.page;
        }
        self.split_page(key, place.page, place.slot);
        place.page + 1
    }

    /// Cuts a long run so that little of it is looked at more closely.
    pub(crate) fn cut_after(&mut self, key: &mut Key, page: usize) {
        if key.spine.pages[page].len() > LISTED_RUN {
            self.split_page(key, page, LISTED_RUN);
        }
    }

    /// Cuts a page in two.
    fn split_page(&mut self, key: &mut Key, page: usize, slot: usize) {
        let mut entering = Lanes::with_capacity(self.lanes.len());
        for lane in 0..self.lanes.len() {
            self.enter_page(key, lane, Place { page, slot });
            entering.push(self.late.lane.clone());
        }
        let upper = key.spine.pages[page].split_off(slot, entering, self.rows);
        key.spine.pages.insert(page + 1, upper);
    }
}

/// The part of a run that is to be listed around a slot, so that entries may be put there.
fn listed_part(length: usize, slot: usize) -> (usize, usize) {
    const PART: usize = PAGE_ENTRIES * 3 / 4;
    const SMALLEST_RUN: usize = PAGE_ENTRIES / 4;
    if length < MOST_ENTRIES {
        return (0, length);
    }
    let begin = slot.saturating_sub(PART / 2).min(length - PART);
    let begin = if begin < SMALLEST_RUN { 0 } else { begin };
    let end = begin + PART;
    (begin, if length - end < SMALLEST_RUN { length } else { end })
}
