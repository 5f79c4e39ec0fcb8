//! One key at a time: what events do to its lists.

use crate::configuration::{DEAD, FINAL, Word, start_row, word};
use crate::found::Findings;
use crate::keeping::keep_to;
use crate::key::{Key, Lane};
use crate::late::LateScratch;
use crate::linear::LinearScratch;
use crate::pattern::Window;
use crate::program::{Program, Shared, UNRELEASED, UNSEEN};
use crate::rows::{Rows, are_consecutive, parts};
use crate::spine::{Page, Place, SparePages};

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
    /// each has its own.
    pub fn append(&mut self, key: &mut Key, rows: &[u32], first_record: Option<u32>) {
        if !self.linear.is_empty() {
            self.append_linear(key, rows, first_record);
        }
        let mut at = 0;
        while at < rows.len() {
            if key.spine.pages.back().is_none_or(|page| page.room() == 0) {
                key.spine
                    .begin_page(self.spare_pages, key.lanes.iter().map(|lane| &lane.tail));
            }
            let last = key.spine.pages.len() - 1;
            let piece = &rows[at..rows.len().min(at + key.spine.pages[last].room())];
            for lane in 0..self.lanes.len() {
                #[allow(clippy::cast_possible_truncation)] // a batch has far fewer records
                let record = first_record.map(|first| first + at as u32);
                self.append_lane(key, lane, piece, record);
            }
            self.push_entries(&mut key.spine.pages[last], piece);
            if self.lanes.len() > 1 {
                self.keep_all(key);
            }
            at += piece.len();
        }
    }

    fn push_entries(&mut self, page: &mut Page, piece: &[u32]) {
        let (first, last) = (piece[0], piece[piece.len() - 1]);
        let (chunk, offset) = parts(first);
        if are_consecutive(piece) {
            page.extend(&self.rows.chunk(chunk).times()[offset..offset + piece.len()], first);
            self.rows.store(chunk, piece.len(), self.rows.ts(last));
            return;
        }
        let mut at = 0;
        while at < piece.len() {
            let chunk = parts(piece[at]).0;
            let begin = at;
            let mut newest = i64::MIN;
            let times = self.rows.chunk(chunk).times();
            while at < piece.len() && parts(piece[at]).0 == chunk {
                newest = times[parts(piece[at]).1];
                page.push(newest, piece[at]);
                at += 1;
            }
            self.rows.store(chunk, at - begin, newest);
        }
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
            let record = first_record.map(|_| self.findings.record);
            self.step_rows(&mut key.lanes[lane], pattern, &[*row], record);
        }
    }

    /// Steps the list after the last event over rows that follow.
    fn step_rows(&mut self, lane: &mut Lane, pattern: usize, piece: &[u32], first_record: Option<u32>) {
        let first = piece[0];
        let (number, offset) = parts(first);
        let rows = &*self.rows;
        let chunk = rows.chunk(number);
        if are_consecutive(piece) {
            let end = offset + piece.len();
            let seen = chunk.times()[offset..end]
                .iter()
                .zip(&chunk.classes(pattern)[offset..end]);
            let entries = (first..).zip(seen).map(|(row, (ts, class))| (row, *ts, *class));
            let (program, findings) = (&mut self.programs[pattern], &mut *self.findings);
            let most = self.max_partial_matches;
            return step_entries(program, rows, findings, lane, pattern, entries, first_record, most);
        }
        let entries = piece.iter().map(|row| (*row, rows.ts(*row), rows.class(pattern, *row)));
        let (program, findings) = (&mut self.programs[pattern], &mut *self.findings);
        let most = self.max_partial_matches;
        step_entries(program, rows, findings, lane, pattern, entries, first_record, most);
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

/// Steps a list over entries.
#[allow(clippy::too_many_arguments)] // the innermost loop, for two ways to find the entries
#[inline]
fn step_entries(
    program: &mut Program,
    rows: &Rows,
    findings: &mut Findings,
    lane: &mut Lane,
    pattern: usize,
    entries: impl Iterator<Item = (u32, i64, u32)>,
    first_record: Option<u32>,
    max_partial_matches: usize,
) {
    let (span, timed) = (program.window.span(), matches!(program.window, Window::Time(_)));
    let mut list = std::mem::take(&mut lane.tail);
    for (step, (row, ts, class)) in (0..).zip(entries) {
        if class >= UNRELEASED {
            continue;
        }
        if ts >= lane.expires {
            lane.expires = expire(program, rows, &mut list, ts);
        }
        let mut seen = program.step_list(class, &mut list, || rows.view(row));
        let started = program.begin(class, || rows.view(row));
        if started != DEAD {
            let expires = ts.saturating_add(span);
            if ts < expires || !timed {
                if list.is_empty() {
                    lane.expires = expires;
                }
                list.push(word(row, started));
                seen |= started;
            }
        }
        if seen & FINAL != 0 {
            if let Some(record) = first_record {
                findings.record = record + step;
            }
            findings.note_list(program, pattern, row, &list);
        }
        if list.len().saturating_mul(program.sets.largest()) >= max_partial_matches {
            findings.refused += keep_to(&program.sets, &mut list, max_partial_matches);
        }
    }
    lane.tail = list;
}

/// Drops the partial matches whose window closes at or before an instant: lists are ordered by start. The answer is
/// when the first of the others expires.
#[cold]
pub(crate) fn expire(program: &Program, rows: &Rows, list: &mut Vec<Word>, ts: i64) -> i64 {
    if !matches!(program.window, Window::Time(_)) {
        return i64::MAX;
    }
    let closed = |word: &Word| expiry(program, rows, start_row(*word)) <= ts;
    let count = list.iter().take_while(|word| closed(word)).count();
    list.drain(..count);
    list.first()
        .map_or(i64::MAX, |word| expiry(program, rows, start_row(*word)))
}
