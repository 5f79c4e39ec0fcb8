//! Rows of a batch that come before stored entries: the lists as they were and the lists as they are now are stepped side by
//! side, from the first such row on, until they are the same and no row is left.

use std::ops::Range;

use crate::keys::key::Key;
use crate::keys::page::{PAGE_ENTRIES, Page};
use crate::keys::spine::{Place, Spine};
use crate::late::pair::{PairWalk, Stepping};
use crate::lists::lane::{Lane, Lanes};
use crate::lists::matcher::Matcher;
use crate::predicates::class_reader::ClassReader;
use crate::rows::store::{Rows, parts};
use crate::rows::stretch::Stretch;

/// So many entries of a page that is written anew are listed together: there is room for more.
const LISTED_TOGETHER: usize = PAGE_ENTRIES * 3 / 4;

/// The list of one lane, as it was and as it is now; if they are the same only the first counts.
#[derive(Debug, Default)]
pub(crate) struct Pair {
    old: Stepping,
    new: Stepping,
    differs: bool,
}

/// Entries of a page in event order, stored before or new.
#[derive(Debug, Default)]
struct Merged {
    times: Vec<i64>,
    rows: Vec<u32>,
    are_new: Vec<bool>,
}

/// Buffers that are kept from one batch to the next.
#[derive(Debug, Default)]
pub(crate) struct MergeScratch {
    /// By lane.
    pairs: Vec<Pair>,
    /// The entry before which each row belongs.
    places: Vec<Place>,
    entries: Merged,
}

impl Matcher<'_> {
    /// Inserts rows of one chunk that are in event order and belong before the last entry. False, with nothing done, if
    /// they may meet an entry of their identity, or if it is not worth while: lists are long, or there are none.
    pub(crate) fn merge_in(&mut self, key: &mut Key, rows: Stretch<'_>) -> bool {
        if self.lanes.is_empty() || !self.linear.is_empty() || self.any_gap_free() {
            return false;
        }
        let mut scratch = std::mem::take(&mut self.late.merge);
        let may_be = find_places(self.rows, &key.spine, rows, &mut scratch.places) && {
            let page = &key.spine.pages[scratch.places[0].page];
            let mut lanes = self.lanes.iter().enumerate();
            lanes.all(|(lane, pattern)| self.may_be_paired(*pattern, page, lane))
        };
        if may_be {
            self.late.edition += 1;
            scratch.pairs.resize_with(self.lanes.len(), Pair::default);
            self.merge_all(key, rows, &mut scratch);
            let last = rows.row(rows.len() - 1);
            self.rows.store(parts(last).0, rows.len(), self.rows.ts(last));
            self.keep_all(key);
        }
        self.late.merge = scratch;
        may_be
    }

    fn merge_all(&mut self, key: &mut Key, rows: Stretch<'_>, scratch: &mut MergeScratch) {
        let (mut at, mut page, mut added) = (0, 0, 0);
        loop {
            if scratch.pairs.iter().all(|pair| !pair.differs) {
                let Some(place) = scratch.places.get(at) else {
                    return;
                };
                page = place.page + added;
            }
            self.enter_merged(key, page, &mut scratch.pairs);
            if page == key.spine.pages.len() {
                return scratch.pairs.clear();
            }
            let here = scratch.places[at..]
                .iter()
                .take_while(|place| place.page + added == page);
            let here = here.count();
            if here == 0 {
                self.pass_page(&key.spine.pages[page], &mut scratch.pairs);
                page += 1;
                continue;
            }
            let slots = scratch.places[at..at + here].iter().map(|place| place.slot);
            let new = rows.part(at, at + here).rows().zip(slots);
            scratch.entries.merge(self.rows, &key.spine.pages[page], new);
            let pages = self.write_page(key, page, &scratch.entries, &mut scratch.pairs);
            (at, added, page) = (at + here, added + pages - 1, page + pages);
        }
    }

    /// Brings lists that differ into a page, or behind the last.
    fn enter_merged(&mut self, key: &mut Key, page: usize, pairs: &mut [Pair]) {
        let lanes = match key.spine.pages.get_mut(page) {
            Some(page) => &mut page.entering,
            None => &mut key.lanes,
        };
        for ((pair, lane), pattern) in pairs.iter_mut().zip(lanes).zip(self.lanes) {
            if pair.differs {
                pair.new.put_into(&self.programs[*pattern], lane);
            }
        }
    }

    /// Steps lists that differ over a page that no row belongs to.
    fn pass_page(&mut self, page: &Page, pairs: &mut [Pair]) {
        for (pair, pattern) in pairs.iter_mut().zip(self.lanes) {
            if pair.differs {
                let mut walk = self.pair_walk(*pattern);
                pair.differs = !walk.step_pair(page, 0, &mut pair.old, &mut pair.new);
                walk.count_refused();
            }
        }
    }

    /// Writes the entries of a page anew, as one page or several, and steps the lists over them; the answer is how many
    /// pages it is now.
    fn write_page(&mut self, key: &mut Key, page: usize, entries: &Merged, pairs: &mut [Pair]) -> usize {
        let length = entries.rows.len();
        let count = length.div_ceil(LISTED_TOGETHER);
        let begin = |piece: usize| piece * length / count;
        let entering = key.spine.pages[page].entering.iter_mut();
        for ((pair, lane), pattern) in pairs.iter_mut().zip(entering).zip(self.lanes) {
            if !pair.differs {
                self.pair_walk(*pattern).stepper.enter(&mut pair.old, lane);
            }
        }
        for piece in 0..count {
            let part = begin(piece)..begin(piece + 1);
            if piece > 0 {
                let lanes = pairs.iter_mut().zip(self.lanes).map(|(pair, pattern)| {
                    let mut lane = Lane::default();
                    pair.newest().put_into(&self.programs[*pattern], &mut lane);
                    lane
                });
                let entering: Lanes = lanes.collect();
                key.spine.pages.insert(page + piece, Page::new(entering));
            }
            key.spine.pages[page + piece].list(&entries.times[part.clone()], &entries.rows[part.clone()]);
            for (pair, pattern) in pairs.iter_mut().zip(self.lanes) {
                self.pair_walk(*pattern).step_merged(pair, entries, part.clone());
            }
        }
        count
    }
}

impl Pair {
    fn newest(&mut self) -> &mut Stepping {
        if self.differs { &mut self.new } else { &mut self.old }
    }
}

impl PairWalk<'_> {
    /// Steps the lists of a lane over entries, of which the old list sees only those that were stored before.
    fn step_merged(&mut self, pair: &mut Pair, entries: &Merged, part: Range<usize>) {
        let mut at = part.start;
        while at < part.end {
            let stored = entries.are_new[at..part.end].iter().take_while(|is_new| !**is_new);
            let stored = at..at + stored.count();
            at += self.step_stored(pair, &entries.times[stored.clone()], &entries.rows[stored]);
            if at < part.end {
                self.step_entry(pair, (entries.rows[at], entries.times[at]), entries.are_new[at]);
                at += 1;
            }
        }
        self.count_refused();
    }

    /// Steps them over entries that were stored before, as far as moves are known and no window closes; the answer is over
    /// how many.
    fn step_stored(&mut self, pair: &mut Pair, times: &[i64], rows: &[u32]) -> usize {
        if rows.is_empty() {
            return 0;
        }
        let (mut classes, mut taken) = (ClassReader::new(self.stepper.rows, self.pattern), 0);
        let mut event = |at: usize| (rows[at], classes.of(rows[at]));
        if pair.differs {
            let (count, are_same) = self.step_known(&mut pair.old, &mut pair.new, times, &mut event);
            (taken, pair.differs) = (count, !are_same);
        }
        if !pair.differs && taken < rows.len() {
            let event = |at| event(taken + at);
            taken += pair
                .old
                .go(self.stepper.program, self.stepper.rows, &times[taken..], event);
        }
        taken
    }

    /// Steps them over one entry.
    fn step_entry(&mut self, pair: &mut Pair, (row, ts): (u32, i64), is_new: bool) {
        let event = (row, ts, self.stepper.rows.class(self.pattern, row));
        if is_new {
            if !pair.differs {
                pair.new.copy(&pair.old);
            }
            if self.stepper.advance_beside(&mut pair.new, &mut pair.old, event) {
                self.note_inserts(&mut pair.new, row);
            }
        } else if pair.differs {
            self.step_both(&mut pair.old, &mut pair.new, event);
        } else {
            self.stepper.advance(&mut pair.old, event);
            return;
        }
        pair.differs = !pair.old.is(&pair.new);
    }
}

/// Finds the entry before which each row belongs, all in event order; false if one has the time of a row.
fn find_places(rows: &Rows, spine: &Spine, inserts: Stretch<'_>, places: &mut Vec<Place>) -> bool {
    places.clear();
    let mut known: Option<usize> = None;
    for row in inserts.rows() {
        let ts = rows.ts(row);
        // Most rows belong to the page of the one before, or to the next.
        let near = known.and_then(|page| (page..page + 2).find(|page| ends_at_or_after(spine, *page, ts)));
        let Some(page) = near.or_else(|| spine.search(rows, ts).map(|place| place.page)) else {
            return false;
        };
        let times = spine.pages[page].times(rows);
        let slot = times.partition_point(|other| *other < ts);
        if times[slot] == ts {
            return false;
        }
        places.push(Place { page, slot });
        known = Some(page);
    }
    true
}

fn ends_at_or_after(spine: &Spine, page: usize, ts: i64) -> bool {
    spine.pages.get(page).is_some_and(|page| page.last_ts() >= ts)
}

impl Merged {
    /// Merges a page with new rows, each of which belongs before a slot.
    fn merge(&mut self, rows: &Rows, page: &Page, new: impl Iterator<Item = (u32, usize)>) {
        self.times.clear();
        self.rows.clear();
        self.are_new.clear();
        let (times, mut slot) = (page.times(rows), 0);
        for (row, before) in new {
            self.add_stored(page, times, slot..before);
            slot = before;
            self.times.push(rows.ts(row));
            self.rows.push(row);
            self.are_new.push(true);
        }
        self.add_stored(page, times, slot..times.len());
    }

    /// Adds some of a page's entries, which have these times.
    fn add_stored(&mut self, page: &Page, times: &[i64], slots: Range<usize>) {
        self.rows.extend(page.stretch().part(slots.start, slots.end).rows());
        self.times.extend_from_slice(&times[slots]);
        self.are_new.resize(self.rows.len(), false);
    }
}
