//! One late event, the common case of a change between stored events: the shortest way to what `walk` would find.

use crate::configuration::{Code, DEAD, FINAL, SLOW, Word, code_of, start_row, unmarked, word};
use crate::key::Key;
use crate::matcher::{Matcher, expire, expiry, is_closed};
use crate::program::{Program, UNRELEASED};
use crate::rows::{Rows, parts};
use crate::spine::{PAGE_ENTRIES, Page, Place};
use crate::walker::{Delta, apply_deltas};

/// Buffers that are kept from one late event to the next.
#[derive(Debug, Default)]
pub struct LateScratch {
    list: Vec<Word>,
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
        if key.spine.pages[place.page].room() == 0 {
            place = self.split_page(key, place);
        }
        for lane in 0..self.lanes.len() {
            let pattern = self.lanes[lane];
            let class = self.rows.class(pattern, row);
            if class < UNRELEASED {
                self.enter_page(key, lane, place);
                self.insert_in(key, pattern, Some(lane), row, class, place);
            }
        }
        for index in 0..self.linear.len() {
            let pattern = self.linear[index];
            self.late.list = self.linear_list(key, pattern, Some(place));
            let (chunk, offset) = parts(row);
            let class = self.programs[pattern].class_of(self.rows.chunk(chunk), offset);
            self.insert_in(key, pattern, None, row, class, place);
        }
        let ts = self.rows.ts(row);
        key.spine.pages[place.page].insert(place.slot, ts, row);
        self.rows.store(parts(row).0, 1, ts);
    }

    /// Computes the list of a lane before a place, into the buffer.
    fn enter_page(&mut self, key: &Key, lane: usize, place: Place) {
        let pattern = self.lanes[lane];
        let page = &key.spine.pages[place.page];
        let list = &mut self.late.list;
        list.clear();
        list.extend_from_slice(&page.entering[lane]);
        let program = &mut self.programs[pattern];
        let rows = &*self.rows;
        let mut expires = i64::MIN;
        for (ts, row) in page.times().iter().zip(page.rows()).take(place.slot) {
            let class = rows.class(pattern, *row);
            if class >= UNRELEASED {
                continue;
            }
            if *ts >= expires {
                expires = expire(program, rows, list, *ts);
            }
            program.step_list(class, list, || rows.view(*row));
            let started = program.begin(class, || rows.view(*row));
            let closes = expiry(program, rows, *row);
            if started != DEAD && !is_closed(program, closes, *ts) {
                list.push(word(*row, started));
                expires = expires.min(closes);
            }
        }
    }

    /// What the new event does to the list in the buffer, and what follows from that.
    fn insert_in(&mut self, key: &mut Key, pattern: usize, lane: Option<usize>, row: u32, class: u32, place: Place) {
        let list = std::mem::take(&mut self.late.list);
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
            deltas.push(Delta {
                start: row,
                old: DEAD,
                new,
                expires,
            });
        }
        self.late.list = list;
        self.follow(key, pattern, lane, place, &mut deltas);
        self.late.deltas = deltas;
    }

    /// Carries differences over the entries from a place on, until none is left.
    fn follow(&mut self, key: &mut Key, pattern: usize, lane: Option<usize>, place: Place, deltas: &mut Vec<Delta>) {
        let (mut page, mut slot) = (place.page, place.slot);
        while !deltas.is_empty() {
            let Some(entries) = key.spine.pages.get(page) else {
                if let Some(lane) = lane {
                    apply_deltas(self.rows, &mut key.lanes[lane].tail, deltas);
                    key.lanes[lane].expires = i64::MIN;
                    self.keep_all(key);
                }
                return;
            };
            for (ts, row) in entries.times()[slot..].iter().zip(&entries.rows()[slot..]) {
                self.follow_entry(pattern, lane.is_some(), *ts, *row, deltas);
                if deltas.is_empty() {
                    return;
                }
            }
            (page, slot) = (page + 1, 0);
            if let (Some(lane), Some(next)) = (lane, key.spine.pages.get_mut(page)) {
                apply_deltas(self.rows, &mut next.entering[lane], deltas);
                self.keep_list(pattern, &mut next.entering[lane]);
            }
        }
    }

    #[inline]
    fn follow_entry(&mut self, pattern: usize, keeps_class: bool, ts: i64, row: u32, deltas: &mut Vec<Delta>) {
        let program = &mut self.programs[pattern];
        let class = if keeps_class {
            self.rows.class(pattern, row)
        } else {
            let (chunk, offset) = parts(row);
            program.class_of(self.rows.chunk(chunk), offset)
        };
        if class >= UNRELEASED {
            return;
        }
        let mut kept = 0;
        for at in 0..deltas.len() {
            let mut delta = deltas[at];
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
                deltas[kept] = delta;
                kept += 1;
            }
        }
        deltas.truncate(kept);
    }

    /// Makes two pages of a full one; the answer is where the place is now.
    fn split_page(&mut self, key: &mut Key, place: Place) -> Place {
        let half = PAGE_ENTRIES / 2;
        let middle = Place {
            page: place.page,
            slot: half,
        };
        let mut entering = Vec::with_capacity(self.lanes.len());
        for lane in 0..self.lanes.len() {
            self.enter_page(key, lane, middle);
            entering.push(self.late.list.clone());
        }
        let upper: Page = key.spine.pages[place.page].split_off(half, entering);
        key.spine.pages.insert(place.page + 1, upper);
        if place.slot <= half {
            return place;
        }
        Place {
            page: place.page + 1,
            slot: place.slot - half,
        }
    }
}
