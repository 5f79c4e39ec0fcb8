//! The ordered events of one key, in small pages, with the list of partial matches that ends at each of them.
//!
//! An append touches only the end; a late insert shifts at most one page.

use std::collections::VecDeque;

use crate::configuration::PartialMatch;

const PAGE_ENTRIES: usize = 64;

/// The class of an event that a pattern does not see, because its key field differs.
pub const UNSEEN: u32 = u32::MAX;
/// The class of an event that Cleanse has not released to a pattern yet.
pub const UNRELEASED: u32 = u32::MAX - 1;

/// What one pattern knows of one event.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// The event's class, or `UNSEEN`.
    pub class: u32,
    /// Its list has to be computed anew.
    pub dirty: bool,
    /// AFA+O: computations may come from the event before.
    pub linked: bool,
    begin: u32,
    length: u32,
}

impl Cell {
    /// A cell whose list is not computed yet.
    #[must_use]
    pub fn fresh(class: u32, linked: bool) -> Self {
        Self {
            class,
            dirty: true,
            linked,
            begin: 0,
            length: 0,
        }
    }

    /// Whether the pattern sees the event.
    #[must_use]
    pub fn is_seen(self) -> bool {
        self.class < UNRELEASED
    }
}

/// The cells of one pattern in a page, and their lists. Lists that were replaced leave holes until the next packing.
#[derive(Debug, Default)]
struct Track {
    cells: Vec<Cell>,
    heap: Vec<PartialMatch>,
    wasted: usize,
}

impl Track {
    fn list(&self, slot: usize) -> &[PartialMatch] {
        let cell = self.cells[slot];
        &self.heap[cell.begin as usize..(cell.begin + cell.length) as usize]
    }

    #[allow(clippy::cast_possible_truncation)] // limited by max_partial_matches_per_key
    fn set_list(&mut self, slot: usize, list: &[PartialMatch]) {
        self.wasted += self.cells[slot].length as usize;
        self.cells[slot].length = list.len() as u32;
        self.cells[slot].begin = self.heap.len() as u32;
        self.heap.extend_from_slice(list);
        if self.wasted > 256 && self.wasted > self.heap.len() / 2 {
            self.pack();
        }
    }

    #[allow(clippy::cast_possible_truncation)]
    fn pack(&mut self) {
        let mut heap = Vec::with_capacity(self.heap.len() - self.wasted);
        for cell in &mut self.cells {
            let begin = heap.len() as u32;
            heap.extend_from_slice(&self.heap[cell.begin as usize..(cell.begin + cell.length) as usize]);
            cell.begin = begin;
        }
        self.heap = heap;
        self.wasted = 0;
    }

    fn split_off(&mut self, at: usize) -> Self {
        let cells = self.cells.split_off(at);
        let mut upper = Self {
            cells,
            heap: self.heap.clone(),
            wasted: 0,
        };
        upper.pack();
        self.pack();
        upper
    }
}

#[derive(Debug)]
struct Page {
    times: Vec<i64>,
    rows: Vec<u32>,
    tracks: Vec<Track>,
}

/// Where an entry stands; good until the next insert or removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    page: usize,
    slot: usize,
}

/// All entries of a key in event order.
#[derive(Debug)]
pub struct Spine {
    pages: VecDeque<Page>,
    patterns: usize,
}

impl Spine {
    /// An empty spine for this many patterns.
    #[must_use]
    pub fn new(patterns: usize) -> Self {
        Self {
            pages: VecDeque::new(),
            patterns,
        }
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// The first entry.
    #[must_use]
    pub fn first(&self) -> Option<Place> {
        (!self.pages.is_empty()).then_some(Place { page: 0, slot: 0 })
    }

    /// The entry after this one.
    #[must_use]
    pub fn next(&self, place: Place) -> Option<Place> {
        if place.slot + 1 < self.pages[place.page].rows.len() {
            return Some(Place {
                slot: place.slot + 1,
                ..place
            });
        }
        (place.page + 1 < self.pages.len()).then_some(Place {
            page: place.page + 1,
            slot: 0,
        })
    }

    /// The entry before this one.
    #[must_use]
    pub fn previous(&self, place: Place) -> Option<Place> {
        if place.slot > 0 {
            return Some(Place {
                slot: place.slot - 1,
                ..place
            });
        }
        let page = place.page.checked_sub(1)?;
        Some(Place {
            page,
            slot: self.pages[page].rows.len() - 1,
        })
    }

    /// Event time of an entry.
    #[must_use]
    pub fn ts(&self, place: Place) -> i64 {
        self.pages[place.page].times[place.slot]
    }

    /// Row of an entry.
    #[must_use]
    pub fn row(&self, place: Place) -> u32 {
        self.pages[place.page].rows[place.slot]
    }

    /// Event time of the last entry.
    #[must_use]
    pub fn last_ts(&self) -> Option<i64> {
        self.pages.back().and_then(|page| page.times.last().copied())
    }

    /// The cell of a pattern at an entry.
    #[must_use]
    pub fn cell(&self, pattern: usize, place: Place) -> Cell {
        self.pages[place.page].tracks[pattern].cells[place.slot]
    }

    /// The same, to be changed.
    pub fn cell_mut(&mut self, pattern: usize, place: Place) -> &mut Cell {
        &mut self.pages[place.page].tracks[pattern].cells[place.slot]
    }

    /// The list of partial matches that ends at an entry.
    #[must_use]
    pub fn list(&self, pattern: usize, place: Place) -> &[PartialMatch] {
        self.pages[place.page].tracks[pattern].list(place.slot)
    }

    /// Replaces it.
    pub fn set_list(&mut self, pattern: usize, place: Place, list: &[PartialMatch]) {
        self.pages[place.page].tracks[pattern].set_list(place.slot, list);
    }

    /// The first entry for which `is_before(ts, row)` is false.
    pub fn search(&self, is_before: impl Fn(i64, u32) -> bool) -> Option<Place> {
        let page = self.pages.partition_point(|page| {
            let last = page.rows.len() - 1;
            is_before(page.times[last], page.rows[last])
        });
        let found = self.pages.get(page)?;
        let (mut low, mut high) = (0, found.rows.len() - 1);
        while low < high {
            let middle = usize::midpoint(low, high);
            if is_before(found.times[middle], found.rows[middle]) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Some(Place { page, slot: low })
    }

    /// Puts an entry before `before` (at the end if none) and answers where it stands now.
    pub fn insert(&mut self, before: Option<Place>, ts: i64, row: u32, cells: impl Iterator<Item = Cell>) -> Place {
        let mut place = before.unwrap_or_else(|| match self.pages.back() {
            Some(page) => Place {
                page: self.pages.len() - 1,
                slot: page.rows.len(),
            },
            None => Place { page: 0, slot: 0 },
        });
        if self
            .pages
            .get(place.page)
            .is_none_or(|page| page.rows.len() >= PAGE_ENTRIES)
        {
            place = self.make_room(place);
        }
        let page = &mut self.pages[place.page];
        page.times.insert(place.slot, ts);
        page.rows.insert(place.slot, row);
        for (track, cell) in page.tracks.iter_mut().zip(cells) {
            track.cells.insert(place.slot, cell);
        }
        place
    }

    fn make_room(&mut self, place: Place) -> Place {
        let at_end = place.page >= self.pages.len()
            || (place.page + 1 == self.pages.len() && place.slot == self.pages[place.page].rows.len());
        if at_end {
            let tracks = (0..self.patterns).map(|_| Track::default()).collect();
            self.pages.push_back(Page {
                times: Vec::new(),
                rows: Vec::new(),
                tracks,
            });
            return Place {
                page: self.pages.len() - 1,
                slot: 0,
            };
        }
        let page = &mut self.pages[place.page];
        let half = page.rows.len() / 2;
        let upper = Page {
            times: page.times.split_off(half),
            rows: page.rows.split_off(half),
            tracks: page.tracks.iter_mut().map(|track| track.split_off(half)).collect(),
        };
        self.pages.insert(place.page + 1, upper);
        if place.slot > half {
            Place {
                page: place.page + 1,
                slot: place.slot - half,
            }
        } else {
            place
        }
    }

    /// Takes an entry out and answers with the one that stands there now.
    pub fn remove(&mut self, place: Place) -> Option<Place> {
        let page = &mut self.pages[place.page];
        page.times.remove(place.slot);
        page.rows.remove(place.slot);
        for track in &mut page.tracks {
            let cell = track.cells.remove(place.slot);
            track.wasted += cell.length as usize;
        }
        if page.rows.is_empty() {
            self.pages.remove(place.page);
            return (place.page < self.pages.len()).then_some(Place {
                page: place.page,
                slot: 0,
            });
        }
        if place.slot < page.rows.len() {
            return Some(place);
        }
        (place.page + 1 < self.pages.len()).then_some(Place {
            page: place.page + 1,
            slot: 0,
        })
    }

    /// Drops everything up to and including an entry.
    pub fn drop_through(&mut self, place: Place) {
        self.pages.drain(..place.page);
        let page = &mut self.pages[0];
        page.times.drain(..=place.slot);
        page.rows.drain(..=place.slot);
        for track in &mut page.tracks {
            let dropped = track
                .cells
                .drain(..=place.slot)
                .map(|cell| cell.length as usize)
                .sum::<usize>();
            track.wasted += dropped;
        }
        if page.rows.is_empty() {
            self.pages.pop_front();
        }
    }

    /// All lists and rows, for marking what is in use.
    pub fn each(&self, mut visit: impl FnMut(usize, &[PartialMatch]), mut row: impl FnMut(u32)) {
        for page in &self.pages {
            page.rows.iter().for_each(|number| row(*number));
            for (pattern, track) in page.tracks.iter().enumerate() {
                (0..track.cells.len()).for_each(|slot| visit(pattern, track.list(slot)));
            }
        }
    }

    /// How many partial matches end at the last entry, over all patterns.
    #[must_use]
    pub fn live(&self) -> usize {
        let last = self.pages.back();
        last.map_or(0, |page| {
            page.tracks
                .iter()
                .map(|track| track.list(track.cells.len() - 1).len())
                .sum()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Cell, Spine};

    fn order(spine: &Spine) -> Vec<(i64, Vec<u64>)> {
        let mut entries = Vec::new();
        let mut place = spine.first();
        while let Some(here) = place {
            entries.push((spine.ts(here), spine.list(0, here).to_vec()));
            place = spine.next(here);
        }
        entries
    }

    /// Inserts in a scattered order, over several pages, with a list for each entry.
    fn filled(count: i64) -> Spine {
        let mut spine = Spine::new(1);
        for step in 0..count {
            let ts = step * 37 % count;
            let before = spine.search(|other, _| other < ts);
            let place = spine.insert(
                before,
                ts,
                u32::try_from(ts).unwrap(),
                std::iter::once(Cell::fresh(0, true)),
            );
            spine.set_list(0, place, &[ts.unsigned_abs(), 7]);
        }
        spine
    }

    fn expected(times: impl Iterator<Item = i64>) -> Vec<(i64, Vec<u64>)> {
        times.map(|ts| (ts, vec![ts.unsigned_abs(), 7])).collect()
    }

    #[test]
    fn entries_and_lists_stay_together_in_order() {
        assert_eq!(order(&filled(1000)), expected(0..1000));
    }

    #[test]
    fn every_entry_is_found_and_can_be_removed() {
        let mut spine = filled(300);
        for ts in (0..300).filter(|ts| ts % 3 != 0) {
            let place = spine.search(|other, _| other < ts).expect("it is there");
            assert_eq!(spine.row(place), u32::try_from(ts).unwrap());
            spine.remove(place);
        }
        assert_eq!(order(&spine), expected((0..300).filter(|ts| ts % 3 == 0)));
    }

    #[test]
    fn a_prefix_is_dropped() {
        let mut spine = filled(500);
        let last = spine.search(|other, _| other < 250).expect("it is there");
        spine.drop_through(last);
        assert_eq!(order(&spine), expected(251..500));
        let last = spine.search(|other, _| other < 499).expect("it is there");
        spine.drop_through(last);
        assert!(spine.is_empty());
    }
}
