//! One key at a time: what events do to its lists.

use crate::changes::found::Findings;
use crate::keys::key::Key;
use crate::keys::page::{MOST_ENTRIES, PAGE_ENTRIES, Page};
use crate::keys::spine::{Place, WORTHY_RUN};
use crate::late::one::LateScratch;
use crate::linear::matching::LinearScratch;
use crate::lists::stepper::Stepper;
use crate::program::compiled::{Program, Shared, UNRELEASED, UNSEEN};
use crate::program::pattern::Window;
use crate::progress::keeping::row_bytes;
use crate::progress::limits::Limits;
use crate::rows::chunk::CHUNK_ROWS;
use crate::rows::store::{Reader, Rows, parts};
use crate::rows::stretch::Stretch;

/// The most entries of a run where patterns keep lists.
pub(crate) const LISTED_RUN: usize = 32;
/// The same where all of them are observed: a late event looks at whole windows there, and hardly any event changes a
/// list.
const OBSERVED_RUN: usize = 256;
/// A key comes to its limits with so many pages at least, unless they are small.
const PAGES_OF_A_LIMIT: usize = 32;

/// Everything that matching needs beside the key itself.
pub struct Matcher<'a> {
    /// The patterns, in order of names.
    pub programs: &'a mut [Program],
    /// Predicates and columns.
    pub shared: &'a mut Shared,
    /// All events.
    pub rows: &'a mut Rows,
    /// Patterns that keep lists, by lane.
    pub lanes: &'a [usize],
    /// Patterns that are linear.
    pub linear: &'a [usize],
    /// Buffers for linear patterns.
    pub scratch: &'a mut Option<Box<LinearScratch>>,
    /// Buffers for late events.
    pub late: &'a mut LateScratch,
    /// The effective punctuation of the key's partition.
    pub punctuation: Option<i64>,
    /// The most partial matches that a key may have.
    pub max_partial_matches: usize,
    /// The other limits.
    pub limits: &'a Limits,
    /// What was found.
    pub findings: &'a mut Findings,
}

/// When a window closes that begins with this row.
pub(crate) fn expiry(program: &Program, rows: &Rows, row: u32) -> i64 {
    match program.window {
        Window::Time(length) => rows.start_ts(row).map_or(i64::MIN, |ts| ts.saturating_add(length)),
        _ => i64::MAX,
    }
}

/// Whether a window in time has closed before an event.
pub(crate) fn is_closed(program: &Program, expires: i64, ts: i64) -> bool {
    matches!(program.window, Window::Time(_)) && ts >= expires
}

impl Matcher<'_> {
    /// Takes events that come after all that the key has, in order. `first_record` is the record of the first one if
    /// each has its own: then all are of one chunk, and their records as far apart as they are there.
    pub fn append(&mut self, key: &mut Key, rows: Stretch<'_>, first_record: Option<u32>) {
        if !self.linear.is_empty() {
            self.append_linear(key, rows, first_record);
        }
        let longest = rows
            .len()
            .checked_sub(1)
            .map_or(0, |last| self.longest_run(rows.row(last)));
        let is_alone = self.lanes.len() == 1 && longest > 0;
        // No page takes more.
        let most = if is_alone {
            CHUNK_ROWS
        } else {
            longest.max(PAGE_ENTRIES)
        };
        let mut at = 0;
        while at < rows.len() {
            let record = first_record.map(|first| first + (rows.row(at) - rows.row(0)));
            let run = rows.count_run(at, most);
            if is_alone && run >= WORTHY_RUN {
                self.append_run(key, (rows.row(at), run), longest, record);
                at += run;
                continue;
            }
            let piece = self.next_piece(key, rows, at, run, longest);
            for lane in 0..self.lanes.len() {
                self.append_lane(key, lane, piece, record);
            }
            self.push_piece(key, piece);
            if self.lanes.len() > 1 {
                self.keep_all(key);
            }
            at += piece.len();
        }
    }

    /// The rows from one on that the last page takes, which is a new one if need be.
    fn next_piece<'a>(&self, key: &mut Key, rows: Stretch<'a>, at: usize, run: usize, longest: usize) -> Stretch<'a> {
        let count = key
            .spine
            .ready_page(self.rows, rows.row(at), run, longest, key.lanes.iter());
        if run < WORTHY_RUN
            && at + count < rows.len()
            && let Stretch::Listed(_) = rows
            && let Some(page) = key.spine.pages.back_mut()
            && page.len() < PAGE_ENTRIES
        {
            page.list_run(self.rows);
            return rows.part(at, rows.len().min(at + page.room()));
        }
        Stretch::Run(rows.row(at), count)
    }

    pub(crate) fn any_gap_free(&self) -> bool {
        self.lanes.iter().any(|pattern| self.programs[*pattern].gap_free)
    }

    pub(crate) fn stepper(&mut self, pattern: usize) -> Stepper<'_> {
        Stepper {
            program: &mut self.programs[pattern],
            rows: self.rows,
            max_partial_matches: self.max_partial_matches,
            refused: 0,
        }
    }

    /// The most entries of a run, by one of its rows: a late event has to compute the lists within it anew.
    fn longest_run(&self, row: u32) -> usize {
        if self.lanes.is_empty() {
            CHUNK_ROWS.min(self.share_of_limits(row))
        } else if self.any_gap_free() {
            0
        } else if self.lanes.iter().all(|pattern| self.programs[*pattern].is_observed()) {
            OBSERVED_RUN.min(self.share_of_limits(row))
        } else {
            LISTED_RUN
        }
    }

    /// How many rows like this one a page may have so that a key is not far above its limits with one page too many:
    /// pages are let go as a whole.
    fn share_of_limits(&self, row: u32) -> usize {
        let bytes = self.limits.max_bytes_per_key / row_bytes(self.rows, row);
        (self.limits.max_events_per_key.min(bytes) / PAGES_OF_A_LIMIT).max(LISTED_RUN)
    }

    /// The most entries that further pages have, by the last row.
    pub(crate) fn longest_page(&self, row: u32) -> usize {
        self.longest_run(row).max(MOST_ENTRIES)
    }

    /// Adds rows to the last page, which has room for them.
    fn push_piece(&mut self, key: &mut Key, piece: Stretch<'_>) {
        let Some(page) = key.spine.pages.back_mut() else {
            return;
        };
        if let Stretch::Run(first, count) = piece
            && page.is_run()
        {
            let newest = self.rows.ts(piece.row(count - 1));
            page.extend_run(first, count, newest);
            self.rows.store(parts(first).0, count, newest);
            return;
        }
        let mut reader = Reader::new(self.rows);
        for row in piece.rows() {
            page.push(reader.ts(row), row);
        }
        self.rows.store_all(piece);
    }

    fn append_lane(&mut self, key: &mut Key, lane: usize, piece: Stretch<'_>, first_record: Option<u32>) {
        let pattern = self.lanes[lane];
        if self.programs[pattern].gap_free {
            self.append_gap_free(key, lane, piece, first_record);
            return;
        }
        self.step_rows(&mut key.lanes[lane], pattern, piece, first_record);
    }

    fn append_gap_free(&mut self, key: &mut Key, lane: usize, piece: Stretch<'_>, first_record: Option<u32>) {
        let pattern = self.lanes[lane];
        let mut before = self.seq_before(key, lane, None);
        let first_slot = key.spine.pages.back().map_or(0, Page::len);
        for (step, row) in piece.rows().enumerate() {
            if let Some(first) = first_record {
                self.findings.record = first + (row - piece.row(0));
            }
            let class = self.rows.class(pattern, row);
            if class >= UNRELEASED {
                continue;
            }
            let linked = self.is_linked(key, lane, before, row);
            if !linked {
                key.lanes[lane].edit().clear();
            }
            if let Some(page) = key.spine.pages.back_mut() {
                page.set_link(lane, first_slot + step, linked);
            }
            before = self.rows.seq(row);
            let record = first_record.map(|_| self.findings.record);
            self.step_rows(&mut key.lanes[lane], pattern, Stretch::Run(row, 1), record);
        }
    }

    /// The sequence number of the last event that a lane saw before a place (none: the end).
    pub(crate) fn seq_before(&self, key: &Key, lane: usize, place: Option<Place>) -> Option<i64> {
        let pattern = self.lanes[lane];
        let pages = &key.spine.pages;
        let (last, mut end) = place.map_or((pages.len(), None), |place| (place.page + 1, Some(place.slot)));
        for page in (0..last).rev() {
            let slots = 0..end.take().unwrap_or(pages[page].len());
            let mut rows = slots.rev().map(|slot| pages[page].row(slot));
            if let Some(row) = rows.find(|row| self.rows.class(pattern, *row) < UNRELEASED) {
                return self.rows.seq(row);
            }
        }
        key.rare().covers.get(lane).and_then(|cover| cover.seq)
    }

    /// AFA+O: whether a computation may come from the event with the sequence number `before` to this one.
    pub(crate) fn is_linked(&self, key: &Key, lane: usize, before: Option<i64>, row: u32) -> bool {
        let ts = self.rows.ts(row);
        if self.punctuation.is_some_and(|punctuation| ts < punctuation) {
            return true;
        }
        let (Some(before), Some(here)) = (before, self.rows.seq(row)) else {
            return false;
        };
        here > before && (here - 1 == before || self.all_hidden(key, lane, before, here))
    }

    /// Whether every number between the two is that of a retracted or unseen event.
    fn all_hidden(&self, key: &Key, lane: usize, before: i64, here: i64) -> bool {
        let pattern = self.lanes[lane];
        let between = |seq: &i64| before < *seq && *seq < here;
        let mut gone = std::collections::BTreeSet::new();
        if let Some(cover) = key.rare().covers.get(lane) {
            gone.extend(cover.hidden_seqs.iter().copied().filter(between));
        }
        for tomb in key.rare().tombs.values() {
            gone.extend(tomb.seqs.iter().copied().filter(between));
        }
        if self.programs[pattern].key_field.is_some() {
            for row in key.spine.pages.iter().flat_map(Page::rows) {
                if self.rows.class(pattern, row) == UNSEEN {
                    gone.extend(self.rows.seqs(row).into_iter().filter(between));
                }
            }
        }
        i128::try_from(gone.len()).is_ok_and(|count| count == i128::from(here) - i128::from(before) - 1)
    }
}
