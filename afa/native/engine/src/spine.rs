//! The ordered events of one key, in small pages. Each page has the lists of partial matches that enter it, so that
//! what follows from a late event can be computed from there; an append touches only the end.

use std::cmp::Ordering;
use std::collections::VecDeque;

use crate::configuration::Word;
use crate::rows::{Rows, are_consecutive, parts};

/// The most entries of a page. Small pages make late events cheap, large ones save lists.
pub const PAGE_ENTRIES: usize = 16;

/// A stretch of entries.
#[derive(Clone, Debug)]
pub struct Page {
    length: usize,
    times: [i64; PAGE_ENTRIES],
    rows: [u32; PAGE_ENTRIES],
    /// Per lane, the list of partial matches before the first entry.
    pub entering: Vec<Vec<Word>>,
    /// Per lane, a bit per entry: AFA+O lets computations come from the entry before. Only where a pattern asks.
    pub links: Vec<u16>,
}

impl Page {
    /// A page without entries.
    #[must_use]
    pub fn new(entering: Vec<Vec<Word>>) -> Self {
        Self {
            length: 0,
            times: [0; PAGE_ENTRIES],
            rows: [0; PAGE_ENTRIES],
            entering,
            links: Vec::new(),
        }
    }

    /// Event times of the entries.
    #[must_use]
    #[inline]
    pub fn times(&self) -> &[i64] {
        &self.times[..self.length]
    }

    /// Rows of the entries.
    #[must_use]
    #[inline]
    pub fn rows(&self) -> &[u32] {
        &self.rows[..self.length]
    }

    /// How many entries fit in yet.
    #[must_use]
    pub fn room(&self) -> usize {
        PAGE_ENTRIES - self.length
    }

    /// Adds an entry at the end.
    #[inline]
    pub fn push(&mut self, ts: i64, row: u32) {
        self.times[self.length] = ts;
        self.rows[self.length] = row;
        self.length += 1;
    }

    /// Adds consecutive rows at the end.
    pub fn extend(&mut self, times: &[i64], first_row: u32) {
        let (begin, end) = (self.length, self.length + times.len());
        self.times[begin..end].copy_from_slice(times);
        for (row, number) in self.rows[begin..end].iter_mut().zip(first_row..) {
            *row = number;
        }
        self.length = end;
    }

    /// Puts an entry at a slot; there must be room.
    pub fn insert(&mut self, slot: usize, ts: i64, row: u32) {
        self.times.copy_within(slot..self.length, slot + 1);
        self.rows.copy_within(slot..self.length, slot + 1);
        (self.times[slot], self.rows[slot]) = (ts, row);
        self.length += 1;
    }

    /// Takes the entries from a slot on into a page of their own, which is entered by these lists.
    #[must_use]
    pub fn split_off(&mut self, slot: usize, entering: Vec<Vec<Word>>) -> Self {
        let mut upper = Self::new(entering);
        upper.length = self.length - slot;
        upper.times[..upper.length].copy_from_slice(&self.times[slot..self.length]);
        upper.rows[..upper.length].copy_from_slice(&self.rows[slot..self.length]);
        self.length = slot;
        upper
    }

    /// Empties the page.
    pub fn clear(&mut self) {
        self.length = 0;
        self.links.fill(0);
    }

    /// Whether AFA+O lets computations of a lane come from the entry before this one.
    #[must_use]
    pub fn is_linked(&self, lane: usize, slot: usize) -> bool {
        self.links.get(lane).is_some_and(|bits| bits >> slot & 1 != 0)
    }

    /// Notes that.
    pub fn set_link(&mut self, lane: usize, slot: usize, linked: bool) {
        if self.links.len() <= lane {
            self.links.resize(lane + 1, 0);
        }
        let bit = 1 << slot;
        self.links[lane] = self.links[lane] & !bit | if linked { bit } else { 0 };
    }
}

/// Where an entry stands; good until the next insert or removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The page's index.
    pub page: usize,
    /// The index in the page.
    pub slot: usize,
}

/// All entries of a key in event order. No page is empty.
#[derive(Debug, Default)]
pub struct Spine {
    /// The pages.
    pub pages: VecDeque<Page>,
}

/// Pages that went, whose memory new ones take.
#[derive(Debug, Default)]
pub struct SparePages(Vec<Page>);

impl SparePages {
    const MOST: usize = 256;

    /// Keeps a page, unless there are many or its lists are long.
    pub fn put(&mut self, page: Page) {
        let words: usize = page.entering.iter().map(Vec::capacity).sum();
        if self.0.len() < Self::MOST && words < 1024 {
            self.0.push(page);
        }
    }

    fn take(&mut self) -> Page {
        self.0.pop().unwrap_or_else(|| Page::new(Vec::new()))
    }
}

impl Spine {
    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Begins a new page at the end, entered by these lists.
    pub fn begin_page<'a>(&mut self, spare: &mut SparePages, lists: impl ExactSizeIterator<Item = &'a Vec<Word>>) {
        let mut page = spare.take();
        page.entering.resize_with(lists.len(), Vec::new);
        for (entering, list) in page.entering.iter_mut().zip(lists) {
            entering.clear();
            entering.extend_from_slice(list);
        }
        page.clear();
        self.pages.push_back(page);
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pages.iter().map(|page| page.length).sum()
    }

    /// The time of the last entry.
    #[must_use]
    pub fn last_ts(&self) -> Option<i64> {
        self.pages.back().and_then(|page| page.times().last()).copied()
    }

    /// The row of the last entry.
    #[must_use]
    pub fn last_row(&self) -> Option<u32> {
        self.pages.back().and_then(|page| page.rows().last()).copied()
    }

    /// Event time of an entry.
    #[must_use]
    pub fn ts(&self, place: Place) -> i64 {
        self.pages[place.page].times()[place.slot]
    }

    /// The row of an entry.
    #[must_use]
    pub fn row(&self, place: Place) -> u32 {
        self.pages[place.page].rows()[place.slot]
    }

    /// The first entry for which `is_before(ts, row)` is false; none if there is no such entry.
    pub fn search(&self, is_before: impl Fn(i64, u32) -> bool) -> Option<Place> {
        let last = |page: &Page| (page.times[page.length - 1], page.rows[page.length - 1]);
        // Most late events are late by little.
        let (mut step, mut high) = (1, self.pages.len());
        while step <= self.pages.len() {
            let (ts, row) = last(&self.pages[self.pages.len() - step]);
            if is_before(ts, row) {
                break;
            }
            high = self.pages.len() - step;
            step *= 2;
        }
        let mut low = if step <= self.pages.len() {
            self.pages.len() - step + 1
        } else {
            0
        };
        while low < high {
            let middle = usize::midpoint(low, high);
            let (ts, row) = last(&self.pages[middle]);
            if is_before(ts, row) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let page = self.pages.get(low)?;
        let mut slot = 0;
        while is_before(page.times[slot], page.rows[slot]) {
            slot += 1;
        }
        Some(Place { page: low, slot })
    }

    /// Where a row belongs: before the entry that is answered, at the end if none.
    #[must_use]
    pub fn place_of(&self, rows: &Rows, row: u32) -> Option<Place> {
        let ts = rows.ts(row);
        self.search(|other_ts, other| other_ts < ts || other_ts == ts && rows.order(other, row) == Ordering::Less)
    }

    /// The entry after this one.
    #[must_use]
    pub fn next(&self, place: Place) -> Option<Place> {
        if place.slot + 1 < self.pages[place.page].length {
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

    /// The last `count` rows before a place (or the end), in order, appended to `out`; fewer if there are fewer.
    pub fn rows_before(&self, place: Option<Place>, count: usize, out: &mut Vec<u32>) {
        let begin = out.len();
        let (last, mut end) = match place {
            Some(place) => (place.page, Some(place.slot)),
            None => match self.pages.len().checked_sub(1) {
                Some(last) => (last, None),
                None => return,
            },
        };
        for page in (0..=last).rev() {
            let rows = self.pages[page].rows();
            let rows = &rows[..end.take().unwrap_or(rows.len())];
            let wanted = count - (out.len() - begin);
            out.extend(rows.iter().rev().take(wanted));
            if out.len() - begin == count {
                break;
            }
        }
        out[begin..].reverse();
    }

    /// Notes in their chunks that the entries of a page are gone.
    pub fn release(page: &Page, rows: &mut Rows) {
        let entries = page.rows();
        if are_consecutive(entries) && !rows.has_other_seqs() {
            rows.release_run(parts(entries[0]).0, entries.len());
        } else {
            rows.release(entries);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Page, Place, Spine};

    fn spine(count: u32) -> Spine {
        let mut spine = Spine::default();
        for row in 0..count {
            if spine.pages.back().is_none_or(|page| page.room() == 0) {
                spine.pages.push_back(Page::new(Vec::new()));
            }
            spine.pages.back_mut().unwrap().push(i64::from(row) * 2, row);
        }
        spine
    }

    #[test]
    fn every_place_is_found() {
        for count in [1, 15, 16, 17, 100, 333] {
            let spine = spine(count);
            for ts in -1..=2 * i64::from(count) {
                let found = spine.search(|other, _| other < ts).map(|place| spine.row(place));
                let expected = u32::try_from((ts + 1) / 2).unwrap();
                assert_eq!(found, (expected < count).then_some(expected), "{ts} of {count}");
            }
        }
    }

    #[test]
    fn rows_before_a_place() {
        let spine = spine(40);
        let mut out = vec![7];
        spine.rows_before(Some(Place { page: 2, slot: 1 }), 3, &mut out);
        assert_eq!(out, [7, 30, 31, 32]);
        out.clear();
        spine.rows_before(None, 100, &mut out);
        assert_eq!(out, (0..40).collect::<Vec<u32>>());
    }
}
