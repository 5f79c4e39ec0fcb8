//! One key at a time: what events do to its lists.

use crate::chunk::CHUNK_ROWS;
use crate::found::Findings;
use crate::key::{Key, Lane};
use crate::late::LateScratch;
use crate::linear::LinearScratch;
use crate::pattern::Window;
use crate::program::{Program, Shared, UNRELEASED, UNSEEN};
use crate::rows::{Rows, count_run, parts};
use crate::spine::{PAGE_ENTRIES, Place, SparePages};
use crate::stepper::Stepper;

/// The most entries of a run where patterns keep lists.
pub(crate) const LISTED_RUN: usize = 32;

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
    pub scratch: &'a mut LinearScratch,
    /// Buffers for late events.
    pub late: &'a mut LateScratch,
    /// Pages for new entries.
    pub spare_pages: &'a mut SparePages,
    /// The effective punctuation of the key's partition.
    pub punctuation: Option<i64>,
    /// The most partial matches that a key may have.
    pub max_partial_matches: usize,
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
    pub fn append(&mut self, key: &mut Key, rows: &[u32], first_record: Option<u32>) {
        if !self.linear.is_empty() {
            self.append_linear(key, rows, first_record);
        }
        let longest = self.longest_run();
        let mut at = 0;
        while at < rows.len() {
            // No page takes more.
            let most = rows.len().min(at + longest.max(PAGE_ENTRIES));
            let run = count_run(&rows[at..most]);
            let lists = key.lanes.iter().map(|lane| &lane.tail);
            let count = key.spine.ready_page(self.spare_pages, rows[at], run, longest, lists);
            let piece = &rows[at..at + count];
            for lane in 0..self.lanes.len() {
                let record = first_record.map(|first| first + (rows[at] - rows[0]));
                self.append_lane(key, lane, piece, record);
            }
            self.push_run(key, piece);
            if self.lanes.len() > 1 {
                self.keep_all(key);
            }
            at += count;
        }
    }

    /// The most entries of a run: a late event has to compute the lists within it anew.
    fn longest_run(&self) -> usize {
        if self.lanes.is_empty() {
            CHUNK_ROWS
        } else if self.lanes.iter().any(|pattern| self.programs[*pattern].gap_free) {
            0
        } else {
            LISTED_RUN
        }
    }

    /// Adds rows that follow each other to the last page, which has room for them.
    fn push_run(&mut self, key: &mut Key, piece: &[u32]) {
        let Some(page) = key.spine.pages.back_mut() else {
            return;
        };
        let (chunk, offset) = parts(piece[0]);
        let times = &self.rows.chunk(chunk).times()[offset..offset + piece.len()];
        let newest = times[times.len() - 1];
        if page.is_run() {
            page.extend_run(piece[0], piece.len(), newest);
        } else {
            times.iter().zip(piece).for_each(|(ts, row)| page.push(*ts, *row));
        }
        self.rows.store(chunk, piece.len(), newest);
    }

    fn append_lane(&mut self, key: &mut Key, lane: usize, piece: &[u32], first_record: Option<u32>) {
        let pattern = self.lanes[lane];
        if self.programs[pattern].gap_free {
            self.append_gap_free(key, lane, piece, first_record);
            return;
        }
        self.step_rows(&mut key.lanes[lane], pattern, piece, first_record);
    }

    fn append_gap_free(&mut self, key: &mut Key, lane: usize, piece: &[u32], first_record: Option<u32>) {
        let pattern = self.lanes[lane];
        let mut before = self.seq_before(key, lane, None);
        let first_slot = key.spine.pages.back().map_or(0, |page| page.len());
        for (step, row) in piece.iter().enumerate() {
            if let Some(first) = first_record {
                #[allow(clippy::cast_possible_truncation)] // at most a page
                let step = step as u32;
                self.findings.record = first + step;
            }
            let class = self.rows.class(pattern, *row);
            if class >= UNRELEASED {
                continue;
            }
            let linked = self.is_linked(key, lane, before, *row);
            if !linked {
                key.lanes[lane].tail.clear();
            }
            if let Some(page) = key.spine.pages.back_mut() {
                page.set_link(lane, first_slot + step, linked);
            }
            before = self.rows.seq(*row);
            let record = first_record.map(|_| self.findings.record);
            self.step_rows(&mut key.lanes[lane], pattern, &[*row], record);
        }
    }

    /// Steps the list after the last event over rows that follow, and each other.
    fn step_rows(&mut self, lane: &mut Lane, pattern: usize, piece: &[u32], first_record: Option<u32>) {
        let (number, offset) = parts(piece[0]);
        let chunk = self.rows.chunk(number);
        let end = offset + piece.len();
        let seen = chunk.times()[offset..end]
            .iter()
            .zip(&chunk.classes(pattern)[offset..end]);
        let entries = (piece[0]..).zip(seen).map(|(row, (ts, class))| (row, *ts, *class));
        let mut stepper = Stepper {
            program: &mut self.programs[pattern],
            rows: self.rows,
            max_partial_matches: self.max_partial_matches,
            refused: 0,
        };
        let findings = &mut *self.findings;
        stepper.step_over(lane, entries, |program, step, row, list| {
            if let Some(record) = first_record {
                findings.record = record + step;
            }
            findings.note_list(program, pattern, row, list);
        });
        findings.refused += stepper.refused;
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
        key.covers.get(lane).and_then(|cover| cover.seq)
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
        if let Some(cover) = key.covers.get(lane) {
            gone.extend(cover.hidden_seqs.iter().copied().filter(between));
        }
        for tomb in key.tombs.values() {
            gone.extend(tomb.seqs.iter().copied().filter(between));
        }
        if self.programs[pattern].key_field.is_some() {
            for row in key.spine.pages.iter().flat_map(|page| page.rows()) {
                if self.rows.class(pattern, row) == UNSEEN {
                    gone.extend(self.rows.seqs(row).into_iter().filter(between));
                }
            }
        }
        i128::try_from(gone.len()).is_ok_and(|count| count == i128::from(here) - i128::from(before) - 1)
    }
}
