//! Keeping to the limits: at one of them the newest runs or the oldest events go, the key is marked, and all goes on.

use crate::engine::Engine;
use crate::keys::key::Key;
use crate::keys::page::Page;
use crate::lists::configuration::{Code, DEAD, Sets, Word, code_of};
use crate::lists::lane::List;
use crate::lists::matcher::Matcher;
use crate::rows::store::{Rows, parts};
use crate::rows::stretch::Stretch;

/// A row in its chunk, beside what came with it: time, id, class.
pub(crate) const ROW_BYTES: usize = 32;
/// Sets with more members than this are counted where they are used: they are rarely shared.
const SHARED_MEMBERS: usize = 16;
/// Sets and configurations that may be left behind before it is looked for those in use.
const SPARE_BYTES: usize = 32 << 20;
/// So small a part of a limit is hardly any room.
const HARDLY_ANY: usize = 32;
/// So many partial matches of one run may be computed before it is looked whether too much was left behind.
const STRETCH: usize = 1 << 16;

/// Takes the newest start events out of a list, down to this many partial matches in all. The answer is how many went;
/// what a set has lost before is one more.
#[cold]
pub(crate) fn keep_to(sets: &Sets, list: &mut List, most: usize) -> usize {
    let (mut kept, mut total, mut refused) = (0, 0, 0);
    for word in list.iter() {
        let size = sets.size(code_of(*word));
        if refused > 0 || total + size > most {
            refused += size;
            continue;
        }
        total += size;
        kept += 1;
    }
    list.truncate(kept);
    refused + list.iter().filter(|word| sets.set(code_of(**word)).is_cut).count()
}

/// How many partial matches a list has.
pub(crate) fn count(sets: &Sets, list: &[Word]) -> usize {
    list.iter().map(|word| sets.size(code_of(*word))).sum()
}

impl Matcher<'_> {
    /// Whether so many start events may have as many partial matches as a key may have, or more.
    #[inline]
    pub(crate) fn may_be_full(&self, pattern: usize, starts: usize) -> bool {
        starts.saturating_mul(self.programs[pattern].sets.largest()) >= self.max_partial_matches
    }

    /// Counts what a set has lost because one start event alone has more partial matches than a key may have.
    #[inline]
    pub(crate) fn count_cut(&mut self, pattern: usize, code: Code) {
        let sets = &self.programs[pattern].sets;
        if sets.largest() >= self.max_partial_matches && code != DEAD {
            self.findings.refused += usize::from(sets.set(code).is_cut);
        }
    }

    /// Keeps a list to the limit.
    #[inline]
    pub(crate) fn keep_list(&mut self, pattern: usize, list: &mut List) {
        if self.may_be_full(pattern, list.len()) {
            self.findings.refused += keep_to(&self.programs[pattern].sets, list, self.max_partial_matches);
        }
    }

    /// Keeps the partial matches of all patterns together to the limit; those of the first ones by name stay.
    pub(crate) fn keep_all(&mut self, key: &mut Key) {
        let most = |(lane, pattern): (&crate::lists::lane::Lane, &usize)| {
            lane.list().len().saturating_mul(self.programs[*pattern].sets.largest())
        };
        let bound = key
            .lanes
            .iter()
            .zip(self.lanes)
            .map(most)
            .fold(0, usize::saturating_add);
        if bound < self.max_partial_matches {
            return;
        }
        let mut left = self.max_partial_matches;
        for (lane, pattern) in key.lanes.iter_mut().zip(self.lanes) {
            let sets = &self.programs[*pattern].sets;
            self.findings.refused += keep_to(sets, lane.edit(), left);
            left -= count(sets, lane.list()).min(left);
        }
    }

    /// Whether a list that is in two parts has no room for another run; if so, that is counted.
    #[inline]
    pub(crate) fn refuses_run(
        &mut self,
        pattern: usize,
        one: &[Word],
        other: impl ExactSizeIterator<Item = Code>,
    ) -> bool {
        if !self.may_be_full(pattern, one.len() + other.len()) {
            return false;
        }
        let sets = &self.programs[pattern].sets;
        let total = count(sets, one) + other.map(|code| sets.size(code)).sum::<usize>();
        let refuses = total >= self.max_partial_matches;
        self.findings.refused += usize::from(refuses);
        refuses
    }
}

impl Engine {
    /// Whether a limit has refused something since the last time.
    fn take_refused(&mut self) -> bool {
        let refused = std::mem::take(&mut self.findings.refused);
        self.counters.refused_partial_matches += refused as u64;
        refused > 0
    }

    /// Marks a key where a limit refuses what is about to be told.
    pub(crate) fn note_refused(&mut self, key: &mut Key) {
        if self.take_refused() && !key.degraded {
            key.degraded = true;
            self.counters.degraded_keys += 1;
        }
    }

    /// Sees to it that a key does not outgrow its limits; most of the time only the number of pages is looked at.
    pub(crate) fn keep_limits(&mut self, key: &mut Key) {
        key.degraded |= self.take_refused();
        // Of a single page nothing can go.
        if !key.spine.pages.is_to_be_measured() {
            // After a cleaning there may be few pages again, and long lists in them.
            let pages = key.spine.pages.len();
            let next_measure = key.spine.pages.next_measure();
            key.spine.pages.measure_at(next_measure.min(pages + growth(pages)));
            return;
        }
        let limits = self.limits;
        let (events, bytes) = (key.spine.len(), self.bytes_of(key));
        let dropped = if events > limits.max_events_per_key {
            self.drop_oldest(key, |left, _| left > limits.max_events_per_key / 16 * 15)
        } else {
            0
        };
        self.counters.dropped_events += dropped as u64;
        let dropped = if bytes > limits.max_bytes_per_key {
            self.drop_oldest(key, |_, left| left > limits.max_bytes_per_key / 16 * 15)
        } else {
            0
        };
        self.counters.dropped_for_bytes += dropped as u64;
        let pages = key.spine.pages.len();
        let next_measure = pages + growth(pages).min(self.pages_left(key));
        key.spine.pages.measure_at(next_measure);
    }

    /// After how many pages more a key may have come to a limit.
    fn pages_left(&mut self, key: &Key) -> usize {
        let Some(last) = key.spine.last_row() else {
            return 1;
        };
        let longest = self.matcher(key.domain()).longest_page(last);
        let bytes = self.bytes_of(key);
        // Further pages may have as many entries as there may be, and lists like these.
        let average = bytes / key.spine.pages.len().max(1);
        let largest = average.max(longest * row_bytes(&self.rows, last));
        let by_events = pages_that_fit(self.limits.max_events_per_key, key.spine.len(), longest);
        by_events.min(pages_that_fit(self.limits.max_bytes_per_key, bytes, largest))
    }

    /// Lets the oldest pages go as long as events and bytes are too many; the answer is how many events went.
    fn drop_oldest(&mut self, key: &mut Key, too_many: impl Fn(usize, usize) -> bool) -> usize {
        let (mut events, mut bytes) = (key.spine.len(), self.bytes_of(key));
        let before = events;
        while key.spine.pages.len() > 1 && too_many(events, bytes) {
            events -= key.spine.pages[0].len();
            bytes = bytes.saturating_sub(self.page_bytes(&key.spine.pages[0]));
            self.drop_front(key);
            key.degraded = true;
        }
        if events < before {
            self.sweeping.has_dropped = true;
            self.forget_counted(key);
        }
        before - events
    }

    /// Lets go of matches that count whose start events are gone, but for where the last of them ended.
    fn forget_counted(&self, key: &mut Key) {
        let first = key.spine.search(&self.rows, i64::MIN);
        let first = first.map(|place| key.spine.ts(place, &self.rows));
        let Some((first, rare)) = first.zip(key.rare.as_mut()) else {
            return;
        };
        for forgotten in &mut rare.forgotten {
            if let Some(counted) = &mut forgotten.counted {
                counted.add_ends(first, &mut forgotten.ends);
                counted.forget(first);
            }
        }
    }

    /// About how many bytes a key takes: its entries with their rows, and its lists.
    pub(crate) fn bytes_of(&self, key: &Key) -> usize {
        let pages: usize = key.spine.pages.iter().map(|page| self.page_bytes(page)).sum();
        let tails = key.lanes.iter().zip(&self.lanes);
        pages
            + tails
                .map(|(lane, pattern)| self.list_bytes(*pattern, lane.list()))
                .sum::<usize>()
    }

    fn page_bytes(&self, page: &Page) -> usize {
        let lists = page.entering.iter().zip(&self.lanes);
        let lists: usize = lists
            .map(|(lane, pattern)| self.list_bytes(*pattern, lane.list()))
            .sum();
        if page.is_empty() {
            return lists;
        }
        size_of::<Page>() + lists + page.len() * row_bytes(&self.rows, page.row(0))
    }

    fn list_bytes(&self, pattern: usize, list: &[Word]) -> usize {
        let sets = &self.programs[pattern].sets;
        let mut bytes = size_of::<List>() + size_of_val(list);
        if sets.largest() > SHARED_MEMBERS {
            let own = list.iter().map(|word| sets.size(code_of(*word)));
            bytes += own.filter(|size| *size > SHARED_MEMBERS).sum::<usize>() * size_of::<u32>();
        }
        bytes
    }

    /// Appends rows to a key, so few at a time that what they leave behind stays small.
    pub(crate) fn append_rows(&mut self, key: &mut Key, rows: Stretch<'_>, first_record: Option<u32>) {
        let mut at = 0;
        while at < rows.len() {
            let largest = self.lanes.iter().map(|pattern| self.programs[*pattern].sets.largest());
            let stretch = (STRETCH / largest.max().unwrap_or(1)).max(1);
            let end = rows.len().min(at + stretch);
            let record = first_record.map(|first| first + (rows.row(at) - rows.row(0)));
            self.matcher(key.domain()).append(key, rows.part(at, end), record);
            if end < rows.len() {
                self.sweep_if_grown(key);
            }
            at = end;
        }
    }

    /// Drops sets that nobody uses if there are too many; `key` is the one that is being worked on.
    pub(crate) fn sweep_if_grown(&mut self, key: &Key) {
        let bytes: usize = self
            .lanes
            .iter()
            .map(|pattern| self.programs[*pattern].sets.bytes())
            .sum();
        if bytes > 2 * self.set_bytes_after_sweep + SPARE_BYTES {
            self.sweep_sets(Some(key));
        }
    }
}

/// How many bytes a row takes, about: as many as the others of its chunk.
pub(crate) fn row_bytes(rows: &Rows, row: u32) -> usize {
    ROW_BYTES + rows.chunk(parts(row).0).average_bytes()
}

/// How many pages of a size fit below a limit. Where there is hardly room for any, so many that it is not measured again
/// all the time.
fn pages_that_fit(limit: usize, taken: usize, page: usize) -> usize {
    (limit.saturating_sub(taken).max(limit / HARDLY_ANY) / page).max(1)
}

/// How many pages more make it worth while to measure again: not those that come and go between two cleanings.
fn growth(pages: usize) -> usize {
    2 * pages + 16
}
