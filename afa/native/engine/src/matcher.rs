//! One key at a time: what events do to its lists.

use crate::configuration::{DEAD, FINAL, Word, start_row, word};
use crate::found::Findings;
use crate::key::{Key, Lane};
use crate::linear::LinearScratch;
use crate::pattern::Window;
use crate::program::{Program, Shared, UNRELEASED, UNSEEN};
use crate::rows::{Rows, parts};
use crate::spine::{Page, Place};

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
    /// The effective punctuation of the key's partition.
    pub punctuation: Option<i64>,
    /// The most partial matches that a key may have in one pattern.
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
    /// each has its own.
    pub fn append(&mut self, key: &mut Key, rows: &[u32], first_record: Option<u32>) {
        if !self.linear.is_empty() {
            self.append_linear(key, rows, first_record);
        }
        let mut at = 0;
        while at < rows.len() {
            if key.spine.pages.back().is_none_or(|page| page.room() == 0) {
                let entering = key.lanes.iter().map(|lane| lane.tail.clone()).collect();
                key.spine.pages.push_back(Page::new(entering));
            }
            let last = key.spine.pages.len() - 1;
            let piece = &rows[at..rows.len().min(at + key.spine.pages[last].room())];
            for lane in 0..self.lanes.len() {
                #[allow(clippy::cast_possible_truncation)] // a batch has far fewer records
                let record = first_record.map(|first| first + at as u32);
                self.append_lane(key, lane, piece, record);
            }
            self.push_entries(&mut key.spine.pages[last], piece);
            at += piece.len();
        }
    }

    fn push_entries(&mut self, page: &mut Page, piece: &[u32]) {
        let (first, last) = (piece[0], piece[piece.len() - 1]);
        let (chunk, offset) = parts(first);
        if (last.wrapping_sub(first)) as usize == piece.len() - 1 && parts(last).0 == chunk {
            page.extend(&self.rows.chunk(chunk).times()[offset..offset + piece.len()], first);
            self.rows.store(chunk, piece.len(), self.rows.ts(last));
            return;
        }
        for row in piece {
            let ts = self.rows.ts(*row);
            page.push(ts, *row);
            self.rows.store(parts(*row).0, 1, ts);
        }
    }

    fn append_lane(&mut self, key: &mut Key, lane: usize, piece: &[u32], first_record: Option<u32>) {
        let pattern = self.lanes[lane];
        if self.programs[pattern].gap_free {
            self.append_gap_free(key, lane, piece, first_record);
            return;
        }
        for (row, step) in piece.iter().zip(0..) {
            if let Some(first) = first_record {
                self.findings.record = first + step;
            }
            let class = self.rows.class(pattern, *row);
            if class < UNRELEASED {
                let degraded = self.step_tail(&mut key.lanes[lane], pattern, *row, class);
                key.degraded |= degraded;
            }
        }
    }

    fn append_gap_free(&mut self, key: &mut Key, lane: usize, piece: &[u32], first_record: Option<u32>) {
        let pattern = self.lanes[lane];
        let mut before = self.seq_before(key, lane, None);
        let first_slot = key.spine.pages.back().map_or(0, |page| page.rows().len());
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
            let degraded = self.step_tail(&mut key.lanes[lane], pattern, *row, class);
            key.degraded |= degraded;
        }
    }

    /// Steps the list after the last event over a new last event; true if a limit was met.
    #[inline]
    fn step_tail(&mut self, lane: &mut Lane, pattern: usize, row: u32, class: u32) -> bool {
        let program = &mut self.programs[pattern];
        let (chunk, offset) = parts(row);
        let chunk = self.rows.chunk(chunk);
        let (ts, view) = (chunk.times()[offset], self.rows.view_of(chunk, offset));
        if ts >= lane.expires {
            expire(program, self.rows, lane, ts);
        }
        let mut seen = program.step_list(class, &mut lane.tail, &view);
        let started = program.begin(class, &view);
        let mut degraded = false;
        if started != DEAD {
            let expires = expiry(program, self.rows, row);
            if lane.tail.len() >= self.max_partial_matches {
                degraded = true;
            } else if !is_closed(program, expires, ts) {
                if lane.tail.is_empty() {
                    lane.expires = expires;
                }
                lane.tail.push(word(row, started));
                seen |= started;
            }
        }
        if seen & FINAL != 0 {
            self.findings.note_list(program, pattern, row, &lane.tail);
        }
        degraded
    }

    /// The sequence number of the last event that a lane saw before a place (none: the end).
    pub(crate) fn seq_before(&self, key: &Key, lane: usize, place: Option<Place>) -> Option<i64> {
        let pattern = self.lanes[lane];
        let pages = &key.spine.pages;
        let (last, mut end) = place.map_or((pages.len(), None), |place| (place.page + 1, Some(place.slot)));
        for page in (0..last).rev() {
            let rows = pages[page].rows();
            let rows = &rows[..end.take().unwrap_or(rows.len())];
            if let Some(row) = rows
                .iter()
                .rev()
                .find(|row| self.rows.class(pattern, **row) < UNRELEASED)
            {
                return self.rows.seq(*row);
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
            for row in key.spine.pages.iter().flat_map(Page::rows) {
                if self.rows.class(pattern, *row) == UNSEEN {
                    gone.extend(self.rows.seqs(*row).into_iter().filter(between));
                }
            }
        }
        i128::try_from(gone.len()).is_ok_and(|count| count == i128::from(here) - i128::from(before) - 1)
    }
}

/// Drops the partial matches whose window closes at or before an instant: lists are ordered by start.
pub(crate) fn expire(program: &Program, rows: &Rows, lane: &mut Lane, ts: i64) {
    if !matches!(program.window, Window::Time(_)) {
        lane.expires = i64::MAX;
        return;
    }
    let closed = |word: &Word| expiry(program, rows, start_row(*word)) <= ts;
    let count = lane.tail.iter().take_while(|word| closed(word)).count();
    lane.tail.drain(..count);
    lane.expires = lane
        .tail
        .first()
        .map_or(i64::MAX, |word| expiry(program, rows, start_row(*word)));
}
