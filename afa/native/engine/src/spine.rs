//! The ordered events of one key, in pages. Each page has the lists of partial matches that enter it, so that what
//! follows from a late event can be computed from there; an append touches only the end.

use std::cmp::Ordering;
use std::collections::VecDeque;

use crate::configuration::Word;
use crate::rows::{Rows, parts, row_number};

/// The most entries of a page that lists them. Small pages make late events cheap, large ones save lists.
pub const PAGE_ENTRIES: usize = 16;

/// So many rows in a row are worth a page that names only the first of them.
const WORTHY_RUN: usize = 16;

/// A stretch of entries: a list of rows, or a *run* of rows that follow each other in one chunk, as events in order do.
#[derive(Clone, Debug)]
pub struct Page {
    length: usize,
    /// The chunk has the times of a run, and its rows follow the first; nothing else is noted.
    is_run: bool,
    last_ts: i64,
    times: [i64; PAGE_ENTRIES],
    rows: [u32; PAGE_ENTRIES],
    /// Per lane, the list of partial matches before the first entry.
    pub entering: Vec<Vec<Word>>,
    /// Per lane, a bit per entry: AFA+O lets computations come from the entry before. Only where a pattern asks, and
    /// never in runs.
    pub links: Vec<u16>,
}

impl Page {
    /// A page without entries.
    #[must_use]
    pub fn new(entering: Vec<Vec<Word>>) -> Self {
        Self {
            length: 0,
            is_run: false,
            last_ts: i64::MIN,
            times: [0; PAGE_ENTRIES],
            rows: [0; PAGE_ENTRIES],
            entering,
            links: Vec::new(),
        }
    }

    /// How many entries it has.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Whether its rows follow each other in one chunk.
    #[must_use]
    pub fn is_run(&self) -> bool {
        self.is_run
    }

    /// The time of the last entry.
    #[must_use]
    pub fn last_ts(&self) -> i64 {
        self.last_ts
    }

    /// The row of an entry.
    #[must_use]
    #[inline]
    pub fn row(&self, slot: usize) -> u32 {
        if self.is_run {
            #[allow(clippy::cast_possible_truncation)] // a run lies in one chunk
            return self.rows[0] + slot as u32;
        }
        self.rows[slot]
    }

    /// Event time of an entry.
    #[must_use]
    #[inline]
    pub fn ts(&self, slot: usize, rows: &Rows) -> i64 {
        if self.is_run {
            return rows.ts(self.row(slot));
        }
        self.times[slot]
    }

    /// The rows of all entries.
    #[must_use]
    pub fn rows(&self) -> impl DoubleEndedIterator<Item = u32> + ExactSizeIterator + '_ {
        (0..self.length).map(|slot| self.row(slot))
    }

    /// Times and rows of the entries from a slot on.
    pub fn entries<'a>(&'a self, from: usize, rows: &'a Rows) -> impl Iterator<Item = (i64, u32)> + 'a {
        (from..self.length).map(|slot| (self.ts(slot, rows), self.row(slot)))
    }

    /// How many entries may be listed yet.
    #[must_use]
    pub fn room(&self) -> usize {
        if self.is_run { 0 } else { PAGE_ENTRIES - self.length }
    }

    /// Adds an entry to the list.
    #[inline]
    pub fn push(&mut self, ts: i64, row: u32) {
        self.times[self.length] = ts;
        self.rows[self.length] = row;
        self.last_ts = ts;
        self.length += 1;
    }

    /// Makes an empty page a run, or a run longer, by rows up to one of this time.
    pub fn extend_run(&mut self, first: u32, count: usize, last_ts: i64) {
        if self.length == 0 {
            self.is_run = true;
            self.rows[0] = first;
        }
        self.length += count;
        self.last_ts = last_ts;
    }

    /// Whether a run may go on with this row.
    #[must_use]
    pub fn continues_with(&self, row: u32) -> bool {
        let (chunk, offset) = parts(self.rows[0]);
        self.is_run && parts(row) == (chunk, offset + self.length)
    }

    /// Lists the entries of a run, which must be few enough.
    pub fn list_run(&mut self, rows: &Rows) {
        if self.is_run {
            let (chunk, offset) = parts(self.rows[0]);
            let end = self.length;
            self.times[..end].copy_from_slice(&rows.chunk(chunk).times()[offset..offset + end]);
            for (row, place) in self.rows[..end].iter_mut().zip(offset..) {
                *row = row_number(chunk, place);
            }
            self.is_run = false;
        }
    }

    /// Puts an entry at a slot; there must be room.
    pub fn insert(&mut self, slot: usize, ts: i64, row: u32) {
        self.times.copy_within(slot..self.length, slot + 1);
        self.rows.copy_within(slot..self.length, slot + 1);
        (self.times[slot], self.rows[slot]) = (ts, row);
        self.length += 1;
        self.last_ts = self.times[self.length - 1];
    }

    /// Takes the entries from a slot on into a page of their own, which is entered by these lists.
    #[must_use]
    pub fn split_off(&mut self, slot: usize, entering: Vec<Vec<Word>>, rows: &Rows) -> Self {
        let mut upper = Self::new(entering);
        (upper.length, upper.last_ts) = (self.length - slot, self.last_ts);
        upper.is_run = self.is_run;
        if self.is_run {
            upper.rows[0] = self.row(slot);
        } else {
            upper.times[..upper.length].copy_from_slice(&self.times[slot..self.length]);
            upper.rows[..upper.length].copy_from_slice(&self.rows[slot..self.length]);
        }
        self.last_ts = self.ts(slot - 1, rows);
        self.length = slot;
        upper
    }

    /// Empties the page.
    pub fn clear(&mut self) {
        (self.length, self.is_run) = (0, false);
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

    /// The first slot for whose entry `is_before(ts, row)` is false.
    fn search(&self, rows: &Rows, is_before: impl Fn(i64, u32) -> bool) -> usize {
        let mut low = 0;
        let mut high = self.length;
        while high - low > PAGE_ENTRIES {
            let middle = usize::midpoint(low, high);
            if is_before(self.ts(middle, rows), self.row(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        while low < high && is_before(self.ts(low, rows), self.row(low)) {
            low += 1;
        }
        low
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
    pub pages: VecDeque<Box<Page>>,
}

/// Pages that went, whose memory new ones take.
#[derive(Debug, Default)]
#[allow(clippy::vec_box)] // they are moved from and to spines as they are
pub struct SparePages(Vec<Box<Page>>);

impl SparePages {
    const MOST: usize = 256;

    /// Keeps a page, unless there are many or its lists are long.
    pub fn put(&mut self, page: Box<Page>) {
        let words: usize = page.entering.iter().map(Vec::capacity).sum();
        if self.0.len() < Self::MOST && words < 1024 {
            self.0.push(page);
        }
    }

    fn take(&mut self) -> Box<Page> {
        self.0.pop().unwrap_or_else(|| Box::new(Page::new(Vec::new())))
    }
}

impl Spine {
    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Sees to it that the last page takes at least the first of rows that are to be appended, `run` of which follow
    /// each other; a new page is entered by these lists. The answer is how many it takes, no more than `longest_run` if
    /// it is a run.
    pub fn ready_page<'a>(
        &mut self,
        spare: &mut SparePages,
        first: u32,
        run: usize,
        longest_run: usize,
        lists: impl ExactSizeIterator<Item = &'a Vec<Word>>,
    ) -> usize {
        let is_worthy = run.min(longest_run) >= WORTHY_RUN;
        if let Some(last) = self.pages.back() {
            if last.length < longest_run && last.continues_with(first) {
                return run.min(longest_run - last.length);
            }
            if last.room() > 0 && !is_worthy {
                return run.min(last.room());
            }
        }
        let mut page = spare.take();
        page.entering.resize_with(lists.len(), Vec::new);
        for (entering, list) in page.entering.iter_mut().zip(lists) {
            entering.clear();
            entering.extend_from_slice(list);
        }
        page.clear();
        if is_worthy {
            page.extend_run(first, 0, i64::MIN);
        }
        self.pages.push_back(page);
        run.min(if is_worthy { longest_run } else { PAGE_ENTRIES })
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pages.iter().map(|page| page.length).sum()
    }

    /// The time of the last entry.
    #[must_use]
    pub fn last_ts(&self) -> Option<i64> {
        self.pages.back().map(|page| page.last_ts)
    }

    /// The row of the last entry.
    #[must_use]
    pub fn last_row(&self) -> Option<u32> {
        self.pages.back().map(|page| page.row(page.length - 1))
    }

    /// Event time of an entry.
    #[must_use]
    pub fn ts(&self, place: Place, rows: &Rows) -> i64 {
        self.pages[place.page].ts(place.slot, rows)
    }

    /// The row of an entry.
    #[must_use]
    pub fn row(&self, place: Place) -> u32 {
        self.pages[place.page].row(place.slot)
    }

    /// The first entry for which `is_before(ts, row)` is false; none if there is no such entry.
    pub fn search(&self, rows: &Rows, is_before: impl Fn(i64, u32) -> bool) -> Option<Place> {
        let ends_before = |page: &Page| is_before(page.last_ts, page.row(page.length - 1));
        // Most late events are late by little.
        let (mut step, mut high) = (1, self.pages.len());
        while step <= self.pages.len() {
            if ends_before(&self.pages[self.pages.len() - step]) {
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
            if ends_before(&self.pages[middle]) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let slot = self.pages.get(low)?.search(rows, is_before);
        Some(Place { page: low, slot })
    }

    /// Where a row belongs: before the entry that is answered, at the end if none.
    #[must_use]
    pub fn place_of(&self, rows: &Rows, row: u32) -> Option<Place> {
        let ts = rows.ts(row);
        self.search(rows, |other_ts, other| {
            other_ts < ts || other_ts == ts && rows.order(other, row) == Ordering::Less
        })
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
            let page = &self.pages[page];
            let wanted = count - (out.len() - begin);
            out.extend(
                (0..end.take().unwrap_or(page.length))
                    .rev()
                    .take(wanted)
                    .map(|slot| page.row(slot)),
            );
            if out.len() - begin == count {
                break;
            }
        }
        out[begin..].reverse();
    }

    /// Notes in their chunks that the entries of a page are gone.
    pub fn release(page: &Page, rows: &mut Rows) {
        if page.is_run && !rows.has_other_seqs() {
            rows.release_run(parts(page.rows[0]).0, page.length);
        } else {
            page.rows().for_each(|row| rows.release(row));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Page, Place, Spine};
    use crate::rows::Rows;

    fn spine(count: u32) -> Spine {
        let mut spine = Spine::default();
        for row in 0..count {
            if spine.pages.back().is_none_or(|page| page.room() == 0) {
                spine.pages.push_back(Box::new(Page::new(Vec::new())));
            }
            spine.pages.back_mut().unwrap().push(i64::from(row) * 2, row);
        }
        spine
    }

    #[test]
    fn every_place_is_found() {
        for count in [1, 15, 16, 17, 100, 333] {
            let (spine, rows) = (spine(count), Rows::default());
            for ts in -1..=2 * i64::from(count) {
                let found = spine.search(&rows, |other, _| other < ts).map(|place| spine.row(place));
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
