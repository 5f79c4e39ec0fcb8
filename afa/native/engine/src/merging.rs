//! Rows of a batch that come before stored entries: the lists as they were and the lists as they are now are stepped side by
//! side, from the first such row on, until they are the same and no row is left.

use crate::key::Key;
use crate::lane::{Lane, Lanes};
use crate::matcher::Matcher;
use crate::page::{PAGE_ENTRIES, Page};
use crate::pair::{PairWalk, Stepping};
use crate::rows::{Reader, Rows, Stretch, parts};
use crate::spine::{Place, Spine};

/// So many entries of a page that is written anew are listed together: there is room for more.
const LISTED_TOGETHER: usize = PAGE_ENTRIES * 3 / 4;

/// The list of one lane, as it was and as it is now; if they are the same only the first counts.
#[derive(Debug, Default)]
pub(crate) struct Pair {
    old: Stepping,
    new: Stepping,
    differs: bool,
}

/// An entry of a page, stored before or new.
#[derive(Clone, Copy, Debug)]
struct Entry {
    ts: i64,
    row: u32,
    is_new: bool,
}

/// Buffers that are kept from one batch to the next.
#[derive(Debug, Default)]
pub(crate) struct MergeScratch {
    /// By lane.
    pairs: Vec<Pair>,
    /// The entry before which each row belongs.
    places: Vec<Place>,
    entries: Vec<Entry>,
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
            merge_page(self.rows, &key.spine.pages[page], new, &mut scratch.entries);
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
    fn write_page(&mut self, key: &mut Key, page: usize, entries: &[Entry], pairs: &mut [Pair]) -> usize {
        let count = entries.len().div_ceil(LISTED_TOGETHER);
        let begin = |piece: usize| piece * entries.len() / count;
        let entering = key.spine.pages[page].entering.iter_mut();
        for ((pair, lane), pattern) in pairs.iter_mut().zip(entering).zip(self.lanes) {
            if !pair.differs {
                self.pair_walk(*pattern).stepper.enter(&mut pair.old, lane);
            }
        }
        for piece in 0..count {
            let entries = &entries[begin(piece)..begin(piece + 1)];
            if piece > 0 {
                let lanes = pairs.iter_mut().zip(self.lanes).map(|(pair, pattern)| {
                    let mut lane = Lane::default();
                    pair.newest().put_into(&self.programs[*pattern], &mut lane);
                    lane
                });
                let entering: Lanes = lanes.collect();
                key.spine.pages.insert(page + piece, Page::new(entering));
            }
            let target = &mut key.spine.pages[page + piece];
            target.clear();
            for entry in entries {
                target.push(entry.ts, entry.row);
            }
            for (pair, pattern) in pairs.iter_mut().zip(self.lanes) {
                self.pair_walk(*pattern).step_merged(pair, entries);
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
    fn step_merged(&mut self, pair: &mut Pair, entries: &[Entry]) {
        let mut reader = Reader::new(self.stepper.rows);
        for entry in entries {
            let (chunk, offset) = reader.find(entry.row);
            let event = (entry.row, entry.ts, chunk.class(self.pattern, offset));
            if entry.is_new {
                if !pair.differs {
                    pair.new.copy(&pair.old);
                }
                if self.stepper.advance_beside(&mut pair.new, &mut pair.old, event) {
                    self.note_inserts(&mut pair.new, entry.row);
                }
            } else if pair.differs {
                self.step_both(&mut pair.old, &mut pair.new, event);
            } else {
                self.stepper.advance(&mut pair.old, event);
                continue;
            }
            pair.differs = !pair.old.is(&pair.new);
        }
        self.count_refused();
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

/// Merges a page with new rows, each of which belongs before a slot.
fn merge_page(rows: &Rows, page: &Page, new: impl Iterator<Item = (u32, usize)>, entries: &mut Vec<Entry>) {
    entries.clear();
    let times = page.times(rows);
    let stored = |slot: usize| Entry {
        ts: times[slot],
        row: page.row(slot),
        is_new: false,
    };
    let mut slot = 0;
    for (row, before) in new {
        entries.extend((slot..before).map(stored));
        slot = before;
        entries.push(Entry {
            ts: rows.ts(row),
            row,
            is_new: true,
        });
    }
    entries.extend((slot..times.len()).map(stored));
}
