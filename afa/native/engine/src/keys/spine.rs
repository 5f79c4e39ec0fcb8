//! The ordered events of one key, in pages: what follows from a late event is computed from its page on; an append
//! touches only the last one.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

use crate::keys::page::{PAGE_ENTRIES, Page};
use crate::lists::lane::Lane;
use crate::rows::store::Rows;

/// So many rows in a row are worth a page of their own.
pub(crate) const WORTHY_RUN: usize = 16;

/// Where an entry stands; good until the next insert or removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The page.
    pub page: usize,
    /// The entry within it.
    pub slot: usize,
}

/// Pages in order. The last one, which most keys have alone, lies here itself.
#[derive(Debug)]
pub struct Pages {
    /// The last one, if there is any.
    last: Page,
    older: Option<Box<Older>>,
}

/// The pages before the last one, and what only matters if there are such.
#[derive(Debug, Default)]
struct Older {
    pages: VecDeque<Page>,
    /// When each of them ended when it was last looked at, all in one place: where to look for an instant. Late events may
    /// have made one end later.
    ends: VecDeque<i64>,
    /// With this many pages in all their key is measured again.
    next_measure: usize,
}

impl Default for Pages {
    fn default() -> Self {
        Self {
            last: Page::none(),
            older: None,
        }
    }
}

impl Pages {
    /// How many there are.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.count_older() + usize::from(!self.is_empty())
    }

    #[inline]
    fn count_older(&self) -> usize {
        self.older.as_ref().map_or(0, |older| older.pages.len())
    }

    /// Whether there is none.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    /// Whether there is one at most.
    #[must_use]
    #[inline]
    pub fn is_alone(&self) -> bool {
        self.count_older() == 0
    }

    /// Begins anew with one row: all entries lay before the punctuation, on one page at most, and were released. The
    /// lists that enter the page have to be brought in.
    #[inline]
    pub fn begin_anew(&mut self, row: u32, ts: i64) -> &mut Page {
        debug_assert!(self.is_alone());
        self.last.begin_anew(row, ts);
        &mut self.last
    }

    /// With how many pages their key is measured again.
    #[must_use]
    pub fn next_measure(&self) -> usize {
        self.older.as_ref().map_or(0, |older| older.next_measure)
    }

    /// Whether there are so many that it is time.
    #[must_use]
    pub fn is_to_be_measured(&self) -> bool {
        self.len() >= self.next_measure().max(2)
    }

    /// Says so, where there are several.
    pub fn measure_at(&mut self, next_measure: usize) {
        if let Some(older) = &mut self.older {
            older.next_measure = next_measure;
        }
    }

    /// The last one.
    #[must_use]
    #[inline]
    pub fn back(&self) -> Option<&Page> {
        (!self.last.is_none()).then_some(&self.last)
    }

    /// The same, to be changed.
    #[inline]
    pub fn back_mut(&mut self) -> Option<&mut Page> {
        (!self.last.is_none()).then_some(&mut self.last)
    }

    /// The one of this number.
    #[must_use]
    #[inline]
    pub fn get(&self, page: usize) -> Option<&Page> {
        if page == self.count_older() {
            return self.back();
        }
        self.older.as_ref().and_then(|older| older.pages.get(page))
    }

    /// The same, to be changed.
    #[inline]
    pub fn get_mut(&mut self, page: usize) -> Option<&mut Page> {
        if page == self.count_older() {
            return self.back_mut();
        }
        self.older.as_mut().and_then(|older| older.pages.get_mut(page))
    }

    /// All of them, in order.
    #[must_use]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Page> {
        let older = self.older.iter().flat_map(|older| &older.pages);
        older.chain(self.back())
    }

    /// How many end before an instant.
    #[must_use]
    pub fn count_before(&self, ts: i64) -> usize {
        let ends_before = |page: &Page| page.last_ts() < ts;
        let Some(Older { pages: older, ends, .. }) = self.older.as_deref() else {
            return usize::from(self.back().is_some_and(ends_before));
        };
        if older.back().is_none_or(ends_before) {
            return older.len() + usize::from(self.back().is_some_and(ends_before));
        }
        let count = ends.partition_point(|end| *end < ts);
        let is_it = older.get(count).is_some_and(|page| !ends_before(page))
            && count.checked_sub(1).is_none_or(|before| ends_before(&older[before]));
        if is_it {
            count
        } else {
            older.partition_point(ends_before)
        }
    }

    /// Adds one at the end, which is answered.
    pub fn push_back(&mut self, page: Page) -> &mut Page {
        let before = std::mem::replace(&mut self.last, page);
        if !before.is_none() {
            let older = self.older.get_or_insert_default();
            older.ends.push_back(before.last_ts());
            older.pages.push_back(before);
        }
        &mut self.last
    }

    /// Takes the first one out.
    pub fn pop_front(&mut self) -> Option<Page> {
        let oldest = self.older.as_mut().and_then(|older| {
            older.ends.pop_front();
            older.pages.pop_front()
        });
        oldest.or_else(|| {
            let last = std::mem::replace(&mut self.last, Page::none());
            (!last.is_none()).then_some(last)
        })
    }

    /// Puts one before another, or at the end.
    pub fn insert(&mut self, at: usize, page: Page) {
        if at == self.len() {
            self.push_back(page);
        } else {
            let older = self.older.get_or_insert_default();
            if let Some(before) = at.checked_sub(1) {
                // It may be what was cut off.
                older.ends[before] = older.pages[before].last_ts();
            }
            older.ends.insert(at, page.last_ts());
            older.pages.insert(at, page);
        }
    }

    /// Takes one out.
    pub fn remove(&mut self, page: usize) {
        let is_last = page == self.count_older();
        let older = self.older.as_deref_mut();
        if is_last {
            let before = older.and_then(|older| {
                older.ends.pop_back();
                older.pages.pop_back()
            });
            self.last = before.unwrap_or_else(Page::none);
        } else if let Some(older) = older {
            older.ends.remove(page);
            older.pages.remove(page);
        }
    }
}

impl Index<usize> for Pages {
    type Output = Page;

    #[inline]
    fn index(&self, page: usize) -> &Page {
        self.get(page).expect("a page that is there")
    }
}

impl IndexMut<usize> for Pages {
    #[inline]
    fn index_mut(&mut self, page: usize) -> &mut Page {
        self.get_mut(page).expect("a page that is there")
    }
}

/// All entries of a key.
#[derive(Debug, Default)]
pub struct Spine {
    /// The pages.
    pub pages: Pages,
}

impl Spine {
    /// Whether there is no entry.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Sees to it that the last page takes at least the first of rows that are to be appended, `run` of which follow
    /// each other; a new page is entered by these lists. The answer is how many it takes, no more than `longest_run` if
    /// it is a run.
    #[inline]
    pub fn ready_page<'a>(
        &mut self,
        rows: &Rows,
        first: u32,
        run: usize,
        longest_run: usize,
        lanes: impl Iterator<Item = &'a Lane>,
    ) -> usize {
        if let Some(last) = self.pages.back_mut() {
            if last.len() < longest_run && last.continues_with(first) {
                return run.min(longest_run - last.len());
            }
            if last.len() < PAGE_ENTRIES && run.min(longest_run) < WORTHY_RUN {
                last.list_run(rows);
                return run.min(last.room());
            }
        }
        let mut page = Page::new(lanes.cloned().collect());
        if longest_run == 0 {
            page.list_run(rows);
        }
        self.pages.push_back(page);
        run.min(if longest_run == 0 { PAGE_ENTRIES } else { longest_run })
    }

    /// Lets the last page take what it may of rows from one on, which have these times, if it is a run that goes on with
    /// them and has not the most entries yet; the answer is how many.
    pub(crate) fn extend_last(&mut self, first: u32, times: &[i64], longest_run: usize) -> usize {
        match self.pages.back_mut() {
            Some(last) if last.len() < longest_run && last.continues_with(first) => {
                let count = times.len().min(longest_run - last.len());
                last.extend_run(first, count, times[count - 1]);
                count
            }
            _ => 0,
        }
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pages.iter().map(Page::len).sum()
    }

    /// The time of the last entry.
    #[must_use]
    pub fn last_ts(&self) -> Option<i64> {
        self.pages.back().map(Page::last_ts)
    }

    /// The row of the last entry.
    #[must_use]
    pub fn last_row(&self) -> Option<u32> {
        self.pages.back().map(|page| page.row(page.len() - 1))
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

    /// The first entry that is not before an instant; none if there is no such entry.
    #[must_use]
    pub fn search(&self, rows: &Rows, ts: i64) -> Option<Place> {
        let page = self.pages.count_before(ts);
        let slot = self.pages.get(page)?.times(rows).partition_point(|other| *other < ts);
        Some(Place { page, slot })
    }

    /// Where a row belongs: before the entry that is answered, at the end if none.
    #[must_use]
    pub fn place_of(&self, rows: &Rows, row: u32) -> Option<Place> {
        let mut place = self.search(rows, rows.ts(row))?;
        while self.ts(place, rows) == rows.ts(row) && rows.order(self.row(place), row) == Ordering::Less {
            place = self.next(place)?;
        }
        Some(place)
    }

    /// The entry after this one.
    #[must_use]
    pub fn next(&self, place: Place) -> Option<Place> {
        if place.slot + 1 < self.pages[place.page].len() {
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
                (0..end.take().unwrap_or(page.len()))
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
}

#[cfg(test)]
mod tests {
    use super::{Place, Spine};
    use crate::keys::page::Page;
    use crate::lists::lane::Lanes;
    use crate::rows::store::Rows;

    fn spine(count: u32) -> Spine {
        let mut spine = Spine::default();
        for row in 0..count {
            if spine.pages.back().is_none_or(|page| page.room() == 0) {
                let mut page = Page::new(Lanes::new());
                page.clear();
                spine.pages.push_back(page);
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
                let found = spine.search(&rows, ts).map(|place| spine.row(place));
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
