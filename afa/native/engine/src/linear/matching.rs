//! Linear patterns without registers, bit-parallel: 64 events at a time.
//!
//! A match of m steps ends at an event iff, for every step i, the event m-1-i places before takes step i. With a bit per
//! event and step that is m shifts and ANDs for 64 events. Nothing is kept per key but its events: what an append needs
//! of the past is read off the last m-1 of them. Several patterns are looked for together, as a tree of their words.
//!
//! Events that are looked at have *positions*: the new ones begin where their chunk's words of bits begin to be theirs,
//! so that those words are taken as they are, and the past stands right before them.

use crate::changes::found::Found;
use crate::keys::key::Key;
use crate::linear::bits::{find_ends, take_between};
use crate::linear::column::{Column, Piece};
use crate::linear::words::{Hits, Words, each_bit};
use crate::lists::matcher::{Matcher, expiry};
use crate::predicates::kernel::WORD_ROWS;
use crate::program::compiled::Program;
use crate::rows::store::parts;
use crate::rows::stretch::Stretch;

/// If at most one word of columns in so many is not 0, only what follows from those is looked at.
const FEW: usize = 4;

/// Buffers that are kept from one append to the next.
#[derive(Debug, Default)]
pub struct LinearScratch {
    /// The last rows that the key has.
    past: Vec<u32>,
    /// The position of the first new row; the past is right before it.
    start: usize,
    /// Those of the past and the new ones.
    pieces: Vec<Piece>,
    columns: Vec<Column>,
    /// By step: what takes it, if that is not the same at all positions.
    mixed: Vec<Vec<u64>>,
    stretches: Vec<Epoch>,
    /// The distinct numbers of bodies that are alive in them.
    kinds: Vec<u32>,
    stamp: u64,
    /// The number of patterns, and the most states of one.
    longest_chain: (usize, usize),
    /// What several patterns look for.
    pub(crate) words: Words,
    hits: Hits,
    triggers: Vec<u64>,
    ends: Vec<u64>,
    /// By 64 events: the places of columns that have a bit there.
    active: Vec<Vec<u32>>,
}

/// Consecutive positions at which the same bodies are alive: from where the one before ends.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    end: usize,
    alive: u32,
}

impl LinearScratch {
    /// Looks at some rows after those of the past.
    fn begin(&mut self, rows: Stretch<'_>) {
        self.stamp += 1;
        self.pieces.clear();
        // The past has fewer events than a word has bits.
        self.start = WORD_ROWS + parts(rows.row(0)).1 % WORD_ROWS;
        let past = std::mem::take(&mut self.past);
        self.find_pieces(Stretch::Listed(&past), self.start - past.len());
        self.past = past;
        self.find_pieces(rows, self.start);
    }

    /// Finds for each word which columns have a bit there, if they are few; then the answer is true.
    #[allow(clippy::cast_possible_truncation)] // limited by max_program_arcs
    fn find_active(&mut self, columns: &[u32], words: usize) -> bool {
        let counts = columns.iter().map(|column| self.columns[*column as usize].count());
        if counts.sum::<usize>() * FEW > columns.len() * words {
            return false;
        }
        self.active.resize_with(words.max(self.active.len()), Vec::new);
        self.active.iter_mut().for_each(Vec::clear);
        for (place, column) in columns.iter().enumerate() {
            let touched = self.columns[*column as usize].touched.iter().enumerate();
            for (begin, words) in touched {
                each_bit(*words, |word| self.active[begin * 64 + word].push(place as u32));
            }
        }
        true
    }

    /// What 64 events trigger.
    fn trigger_all(&mut self, columns: &[u32], index: usize) {
        self.triggers.clear();
        let bits = columns.iter().map(|column| self.columns[*column as usize].bits[index]);
        self.triggers.extend(bits);
    }

    /// The same where few columns have a bit.
    fn trigger_active(&mut self, columns: &[u32], index: usize) {
        self.triggers.resize(columns.len(), 0);
        if let Some(before) = index.checked_sub(1) {
            self.active[before]
                .iter()
                .for_each(|place| self.triggers[*place as usize] = 0);
        } else {
            self.triggers.fill(0);
        }
        for place in &self.active[index] {
            let column = &self.columns[columns[*place as usize] as usize];
            self.triggers[*place as usize] = column.bits[index];
        }
    }

    fn find_pieces(&mut self, rows: Stretch<'_>, first: usize) {
        let mut at = 0;
        while at < rows.len() {
            let (chunk, offset) = parts(rows.row(at));
            let length = rows.count_run(at, rows.len());
            self.pieces.push(Piece {
                chunk,
                offset,
                begin: first + at,
                length,
            });
            at += length;
        }
    }

    /// The row at a position.
    #[inline]
    fn row(&self, rows: Stretch<'_>, position: usize) -> u32 {
        match position.checked_sub(self.start) {
            Some(at) => rows.row(at),
            None => self.past[self.past.len() + position - self.start],
        }
    }

    /// Puts together what takes a step, where that is not the same in all stretches.
    fn mix(&mut self, program: &Program, step: usize, words: usize) {
        if self.mixed.len() <= step {
            self.mixed.resize_with(step + 1, Vec::new);
        }
        let mixed = &mut self.mixed[step];
        mixed.clear();
        mixed.resize(words, 0);
        let mut begin = self.start - self.past.len();
        for stretch in &self.stretches {
            // Where nothing is alive there are no columns.
            if let Some(column) = program.alive(stretch.alive).columns.get(step) {
                take_between(mixed, &self.columns[*column as usize].bits, begin, stretch.end);
            }
            begin = stretch.end;
        }
    }

    /// How many words the positions up to the last row take.
    fn words(&self, rows: Stretch<'_>) -> usize {
        (self.start + rows.len()).div_ceil(WORD_ROWS)
    }

    /// The first row and the last.
    fn outermost(&self, rows: Stretch<'_>) -> (u32, u32) {
        let first = self.past.first().copied();
        (first.unwrap_or_else(|| rows.row(0)), rows.row(rows.len() - 1))
    }
}

impl Matcher<'_> {
    /// What linear patterns find at events that come after all that the key has, in order.
    pub(crate) fn append_linear(&mut self, key: &mut Key, rows: Stretch<'_>, first_record: Option<u32>) {
        let mut scratch = self.scratch.take().unwrap_or_default();
        scratch.past.clear();
        let longest = self.longest_chain(&mut scratch);
        key.spine.rows_before(None, longest - 2, &mut scratch.past);
        scratch.begin(rows);
        let before = self.findings.list.len();
        let mut is_in_order = true;
        if let [pattern] = self.linear {
            self.find_linear(&mut scratch, *pattern, rows, first_record);
        } else {
            is_in_order = self.find_words(&mut scratch, rows, first_record);
        }
        *self.scratch = Some(scratch);
        if !key.rare().carried.is_empty() {
            self.step_carried(key, rows, first_record);
            is_in_order = false;
        }
        if !is_in_order {
            self.findings.list[before..].sort_by_key(|found| (found.record, found.pattern));
        }
    }

    /// The most states of a linear pattern, which are two at least.
    fn longest_chain(&self, scratch: &mut LinearScratch) -> usize {
        // A pattern does not change while it is linear.
        if scratch.longest_chain.0 != self.linear.len() {
            let chains = self.linear.iter().map(|pattern| self.programs[*pattern].chain.len());
            scratch.longest_chain = (self.linear.len(), chains.max().unwrap_or(2));
        }
        scratch.longest_chain.1
    }

    /// What several patterns find; true if in order.
    fn find_words(&mut self, scratch: &mut LinearScratch, rows: Stretch<'_>, first_record: Option<u32>) -> bool {
        let mut words = std::mem::take(&mut scratch.words);
        let (first, last) = scratch.outermost(rows);
        let (first, last) = (self.rows.ts(first), self.rows.ts(last));
        words.ready(self.programs, self.linear, self.shared.arcs_version, first, last);
        let count = scratch.words(rows);
        for column in &words.columns {
            self.ready_column(scratch, *column, count);
        }
        let are_few = scratch.find_active(&words.columns, count);
        words.begin();
        for index in 0..count {
            let old = scratch.start.saturating_sub(index * WORD_ROWS);
            let mask = if old < WORD_ROWS { !0 << old } else { 0 };
            let is_hit = if are_few {
                scratch.trigger_active(&words.columns, index);
                words.take_few(&scratch.triggers, &scratch.active[index], mask, &mut scratch.hits)
            } else {
                scratch.trigger_all(&words.columns, index);
                words.take(&scratch.triggers, mask, &mut scratch.hits)
            };
            if is_hit {
                self.note_hits(scratch, &words, index * WORD_ROWS, rows, first_record);
            }
        }
        let is_in_order = words.changing.is_empty();
        for pattern in &words.changing {
            self.find_linear(scratch, *pattern, rows, first_record);
        }
        scratch.words = words;
        is_in_order
    }

    /// Notes what ends at 64 events from one on.
    fn note_hits(
        &mut self,
        scratch: &LinearScratch,
        words: &Words,
        from: usize,
        rows: Stretch<'_>,
        first_record: Option<u32>,
    ) {
        let end = (scratch.start + rows.len()).min(from + WORD_ROWS);
        for position in from.max(scratch.start)..end {
            let hits = scratch.hits.at(position - from);
            if hits.is_empty() {
                continue;
            }
            let end = scratch.row(rows, position);
            let end_ts = self.rows.ts(end);
            let record = first_record.map_or(self.findings.record, |first| first + (end - rows.row(0)));
            let before = self.findings.list.len();
            for hit in hits {
                let (word, seekers) = words.word(*hit);
                let start = scratch.row(rows, position + 1 - word.steps);
                let start_ts = self.rows.ts(start);
                let open = seekers
                    .iter()
                    .filter(|seeker| end_ts < start_ts.saturating_add(seeker.window));
                self.findings.list.extend(open.map(|seeker| Found {
                    record,
                    retracts: false,
                    pattern: seeker.pattern,
                    start,
                    end,
                    configuration: seeker.configuration,
                }));
            }
            if hits.len() > 1 {
                self.findings.list[before..].sort_by_key(|found| (self.rows.ts(found.start), found.pattern));
            }
        }
    }

    fn find_linear(
        &mut self,
        scratch: &mut LinearScratch,
        pattern: usize,
        rows: Stretch<'_>,
        first_record: Option<u32>,
    ) {
        let (first, last) = scratch.outermost(rows);
        let (first, last) = (self.rows.ts(first), self.rows.ts(last));
        let program = &self.programs[pattern];
        let steps = program.chain.len() - 1;
        let words = scratch.words(rows);
        if program.alive_until(first) >= last {
            let alive = program.alive_at(first);
            if program.alive(alive).bodies.is_empty() {
                return;
            }
            for step in 0..steps {
                self.ready_column(scratch, self.programs[pattern].alive(alive).columns[step], words);
            }
            let columns = &self.programs[pattern].alive(alive).columns;
            let bits: Vec<&[u64]> = columns
                .iter()
                .map(|column| &*scratch.columns[*column as usize].bits)
                .collect();
            find_ends(&bits, &mut scratch.ends);
        } else if !self.find_ends_by_epoch(scratch, pattern, words) {
            return;
        }
        self.note_ends(scratch, pattern, steps, rows, first_record);
    }

    /// Finds ends where arcs changed between the events; false if nothing is alive at any of them.
    fn find_ends_by_epoch(&mut self, scratch: &mut LinearScratch, pattern: usize, words: usize) -> bool {
        self.find_stretches(scratch, pattern);
        let program = &self.programs[pattern];
        let kinds = std::mem::take(&mut scratch.kinds);
        let is_alive = kinds.iter().any(|alive| !program.alive(*alive).bodies.is_empty());
        if is_alive {
            let steps = program.chain.len() - 1;
            let mut same = Vec::with_capacity(steps);
            for step in 0..steps {
                same.push(self.ready_step(scratch, program, &kinds, step, words));
                if same[step].is_none() {
                    scratch.mix(program, step, words);
                }
            }
            let bits = |(step, same): (usize, &Option<u32>)| match same {
                Some(column) => &*scratch.columns[*column as usize].bits,
                None => &*scratch.mixed[step],
            };
            let views: Vec<&[u64]> = same.iter().enumerate().map(bits).collect();
            find_ends(&views, &mut scratch.ends);
        }
        scratch.kinds = kinds;
        is_alive
    }

    /// Sees to it that all columns of a step are filled; the answer is the column, if there is but one.
    fn ready_step(
        &self,
        scratch: &mut LinearScratch,
        program: &Program,
        kinds: &[u32],
        step: usize,
        words: usize,
    ) -> Option<u32> {
        // Where nothing is alive there are no columns.
        let column = |alive: &u32| program.alive(*alive).columns.get(step).copied();
        let (mut last, mut is_same) = (column(&kinds[0]), true);
        for column in std::iter::once(last).chain(kinds[1..].iter().map(column)) {
            is_same &= column == last;
            last = column;
            if let Some(column) = column {
                self.ready_column(scratch, column, words);
            }
        }
        last.filter(|_| is_same)
    }

    /// Cuts the positions where arcs changed.
    fn find_stretches(&self, scratch: &mut LinearScratch, pattern: usize) {
        let program = &self.programs[pattern];
        let Some(first) = scratch.pieces.first() else {
            return;
        };
        let mut epochs = program.epochs_from(self.rows.chunk(first.chunk).times()[first.offset]);
        scratch.stretches.clear();
        scratch.kinds.clear();
        for piece in &scratch.pieces {
            let mut times = &self.rows.chunk(piece.chunk).times()[piece.offset..piece.offset + piece.length];
            while let (Some(first), Some(last)) = (times.first(), times.last()) {
                while epochs.get(1).is_some_and(|next| next.from <= *first) {
                    epochs = &epochs[1..];
                }
                let count = match epochs.get(1) {
                    Some(next) if next.from <= *last => times.partition_point(|ts| *ts < next.from),
                    _ => times.len(),
                };
                times = &times[count..];
                let end = piece.begin + piece.length - times.len();
                let alive = epochs[0].alive;
                match scratch.stretches.last_mut() {
                    Some(stretch) if stretch.alive == alive => stretch.end = end,
                    _ => {
                        scratch.stretches.push(Epoch { end, alive });
                        if !scratch.kinds.contains(&alive) {
                            scratch.kinds.push(alive);
                        }
                    }
                }
            }
        }
    }

    fn ready_column(&self, scratch: &mut LinearScratch, column: u32, words: usize) {
        let number = column as usize;
        if scratch.columns.len() <= number {
            scratch.columns.resize_with(number + 1, Default::default);
        }
        let filled = &mut scratch.columns[number];
        if filled.stamp == scratch.stamp {
            return;
        }
        filled.stamp = scratch.stamp;
        filled.clear(words);
        filled.fill(self.rows, &scratch.pieces, self.shared.columns.form(column));
    }

    /// Notes what ends at new events.
    fn note_ends(
        &mut self,
        scratch: &LinearScratch,
        pattern: usize,
        steps: usize,
        rows: Stretch<'_>,
        first_record: Option<u32>,
    ) {
        let configuration = self.programs[pattern].last_configuration();
        let program = &self.programs[pattern];
        for (index, ends) in scratch.ends.iter().enumerate().skip(scratch.start / WORD_ROWS) {
            let mut ends = *ends;
            if index == scratch.start / WORD_ROWS {
                ends &= !0 << (scratch.start % WORD_ROWS);
            }
            while ends != 0 {
                let position = index * WORD_ROWS + ends.trailing_zeros() as usize;
                ends &= ends - 1;
                let (start, end) = (scratch.row(rows, position + 1 - steps), scratch.row(rows, position));
                if self.rows.ts(end) >= expiry(program, self.rows, start) {
                    continue;
                }
                self.findings.list.push(Found {
                    record: first_record.map_or(self.findings.record, |first| first + (end - rows.row(0))),
                    retracts: false,
                    pattern,
                    start,
                    end,
                    configuration,
                });
            }
        }
    }

    /// Partial matches of linear patterns that began before the first stored event live on for a few events.
    fn step_carried(&mut self, key: &Key, rows: Stretch<'_>, first_record: Option<u32>) {
        let mut stored = Vec::new();
        let longest = self
            .linear
            .iter()
            .map(|pattern| self.programs[*pattern].chain.len())
            .max();
        key.spine.rows_before(None, longest.unwrap_or(0), &mut stored);
        if stored.len() == longest.unwrap_or(0) {
            // They do not reach the end, but a late event may still come right behind them.
            return;
        }
        for (pattern, carried) in &key.rare().carried {
            let mut list = carried.clone();
            for (place, row) in stored.iter().copied().chain(rows.rows()).enumerate() {
                if list.is_empty() {
                    break;
                }
                let is_new = place >= stored.len();
                if let Some(first) = first_record.filter(|_| is_new) {
                    self.findings.record = first + (row - rows.row(0));
                }
                self.step_plainly(*pattern, &mut list, row, false);
                if is_new {
                    self.findings.note_list(&self.programs[*pattern], *pattern, row, &list);
                }
            }
        }
    }
}
