//! Linear patterns without registers, bit-parallel: 64 events at a time.
//!
//! A match of m steps ends at an event iff, for every step i, the event m-1-i places before takes step i. With a bit per
//! event and step that is m shifts and ANDs for 64 events. Nothing is kept per key but its events: what an append needs
//! of the past is read off the last m-1 of them. Several patterns are looked for together, as a tree of their words.

use crate::found::Found;
use crate::key::Key;
use crate::linear_column::{Column, Piece};
use crate::linear_words::{Hits, Words, each_bit};
use crate::matcher::{Matcher, expiry};
use crate::rows::{Stretch, parts};

/// If at most one word of columns in so many is not 0, only what follows from those is looked at.
const FEW: usize = 4;

/// Buffers that are kept from one append to the next.
#[derive(Debug, Default)]
pub struct LinearScratch {
    rows: Vec<u32>,
    pieces: Vec<Piece>,
    columns: Vec<Column>,
    steps: Vec<Vec<u64>>,
    stretches: Vec<Epoch>,
    stamp: u64,
    /// The number of patterns, and the most states of one.
    longest_chain: (usize, usize),
    /// What several patterns look for.
    pub(crate) words: Words,
    hits: Hits,
    times: Vec<i64>,
    triggers: Vec<u64>,
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
    /// Looks at some rows after those that are there already.
    fn begin(&mut self, rows: Stretch<'_>) {
        self.stamp += 1;
        self.pieces.clear();
        if let Stretch::Listed(rows) = rows {
            self.rows.extend_from_slice(rows);
        }
        self.find_pieces();
        if let Stretch::Run(first, length) = rows {
            let ((chunk, offset), begin) = (parts(first), self.rows.len());
            self.rows.extend(rows.rows());
            self.pieces.push(Piece {
                chunk,
                offset,
                begin,
                length,
            });
        }
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

    fn find_pieces(&mut self) {
        let mut at = 0;
        while at < self.rows.len() {
            let (chunk, offset) = parts(self.rows[at]);
            let length = Stretch::Listed(&self.rows).count_run(at, self.rows.len());
            self.pieces.push(Piece {
                chunk,
                offset,
                begin: at,
                length,
            });
            at += length;
        }
    }
}

/// Adds the bits of other positions `[begin, end)` at the same positions, where there are none yet.
fn copy_bits(out: &mut [u64], bits: &[u64], begin: usize, end: usize) {
    let (first, last) = (begin / 64, (end - 1) / 64);
    for index in first..=last {
        let mut mask = !0;
        if index == first {
            mask &= !0 << (begin % 64);
        }
        if index == last {
            mask &= !0 >> (63 - (end - 1) % 64);
        }
        out[index] |= bits[index] & mask;
    }
}

/// The word of positions `64 * index..` in which each bit stands for the position `distance` places before.
#[inline]
fn shifted(bits: &[u64], index: usize, distance: usize) -> u64 {
    let here = bits[index] << distance;
    if distance == 0 || index == 0 {
        return here;
    }
    here | bits[index - 1] >> (64 - distance)
}

impl Matcher<'_> {
    /// What linear patterns find at events that come after all that the key has, in order.
    pub(crate) fn append_linear(&mut self, key: &mut Key, rows: Stretch<'_>, first_record: Option<u32>) {
        let mut scratch = std::mem::take(self.scratch);
        scratch.rows.clear();
        let longest = self.longest_chain(&mut scratch);
        key.spine.rows_before(None, longest - 2, &mut scratch.rows);
        let past = scratch.rows.len();
        scratch.begin(rows);
        let before = self.findings.list.len();
        let mut is_in_order = true;
        if let [pattern] = self.linear {
            self.find_linear(&mut scratch, *pattern, past, first_record);
        } else {
            is_in_order = self.find_words(&mut scratch, past, first_record);
        }
        *self.scratch = scratch;
        if !key.carried.is_empty() {
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
    fn find_words(&mut self, scratch: &mut LinearScratch, past: usize, first_record: Option<u32>) -> bool {
        let mut words = std::mem::take(&mut scratch.words);
        self.gather_times(scratch);
        let (first, last) = (scratch.times[0], scratch.times[scratch.times.len() - 1]);
        words.ready(self.programs, self.linear, self.shared.arcs_version, first, last);
        let count = scratch.rows.len().div_ceil(64);
        for column in &words.columns {
            self.ready_column(scratch, *column, count);
        }
        let are_few = scratch.find_active(&words.columns, count);
        words.begin();
        for index in 0..count {
            let old = past.saturating_sub(index * 64);
            let mask = if old < 64 { !0 << old } else { 0 };
            if are_few {
                scratch.trigger_active(&words.columns, index);
                words.take_few(&scratch.triggers, &scratch.active[index], mask, &mut scratch.hits);
            } else {
                scratch.trigger_all(&words.columns, index);
                words.take(&scratch.triggers, mask, &mut scratch.hits);
            }
            self.note_hits(scratch, &words, index * 64, past, first_record);
        }
        let is_in_order = words.changing.is_empty();
        for pattern in &words.changing {
            self.find_linear(scratch, *pattern, past, first_record);
        }
        scratch.words = words;
        is_in_order
    }

    fn gather_times(&self, scratch: &mut LinearScratch) {
        scratch.times.clear();
        for piece in &scratch.pieces {
            let times = self.rows.chunk(piece.chunk).times();
            scratch
                .times
                .extend_from_slice(&times[piece.offset..piece.offset + piece.length]);
        }
    }

    /// Notes what ends at 64 events from one on.
    fn note_hits(
        &mut self,
        scratch: &LinearScratch,
        words: &Words,
        from: usize,
        past: usize,
        first_record: Option<u32>,
    ) {
        let (rows, times) = (&scratch.rows, &scratch.times);
        for position in from.max(past)..rows.len().min(from + 64) {
            #[allow(clippy::cast_possible_truncation)] // a batch has far fewer records
            let record = first_record.map_or(self.findings.record, |first| {
                first + (scratch.rows[position] - scratch.rows[past])
            });
            let hits = scratch.hits.at(position - from);
            let before = self.findings.list.len();
            for hit in hits {
                let (word, seekers) = words.word(*hit);
                let begin = position + 1 - word.steps;
                let (start, start_ts, end, end_ts) = (rows[begin], times[begin], rows[position], times[position]);
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

    fn find_linear(&mut self, scratch: &mut LinearScratch, pattern: usize, past: usize, first_record: Option<u32>) {
        let total = scratch.rows.len();
        let (first, last) = (self.rows.ts(scratch.rows[0]), self.rows.ts(scratch.rows[total - 1]));
        let program = &self.programs[pattern];
        let steps = program.chain.len() - 1;
        let words = total.div_ceil(64);
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
            self.note_ends(&bits, &scratch.rows, pattern, past, first_record);
        } else {
            self.note_ends_by_epoch(scratch, pattern, past, first_record);
        }
    }

    /// The same where arcs changed between the events.
    fn note_ends_by_epoch(
        &mut self,
        scratch: &mut LinearScratch,
        pattern: usize,
        past: usize,
        first_record: Option<u32>,
    ) {
        self.find_stretches(scratch, pattern);
        let words = scratch.rows.len().div_ceil(64);
        let steps = self.programs[pattern].chain.len() - 1;
        let stretches = std::mem::take(&mut scratch.stretches);
        let mut alive: Vec<u32> = stretches.iter().map(|stretch| stretch.alive).collect();
        alive.sort_unstable();
        alive.dedup();
        if alive
            .iter()
            .all(|number| self.programs[pattern].alive(*number).bodies.is_empty())
        {
            scratch.stretches = stretches;
            return;
        }
        for number in &alive {
            for column in &self.programs[pattern].alive(*number).columns {
                self.ready_column(scratch, *column, words);
            }
        }
        let mut mixed = std::mem::take(&mut scratch.steps);
        mixed.resize_with(mixed.len().max(steps), Vec::new);
        let program = &self.programs[pattern];
        // Where nothing is alive there are no columns.
        let column = |number: u32, step: usize| program.alive(number).columns.get(step);
        let differs = |step: usize| alive.iter().any(|other| column(*other, step) != column(alive[0], step));
        for step in (0..steps).filter(|step| differs(*step)) {
            let out = &mut mixed[step];
            out.clear();
            out.resize(words, 0);
            let mut begin = 0;
            for stretch in &stretches {
                if let Some(column) = column(stretch.alive, step) {
                    copy_bits(out, &scratch.columns[*column as usize].bits, begin, stretch.end);
                }
                begin = stretch.end;
            }
        }
        let bits = |step| match column(alive[0], step) {
            Some(column) if !differs(step) => &*scratch.columns[*column as usize].bits,
            _ => &*mixed[step],
        };
        let views: Vec<&[u64]> = (0..steps).map(bits).collect();
        self.note_ends(&views, &scratch.rows, pattern, past, first_record);
        (scratch.steps, scratch.stretches) = (mixed, stretches);
    }

    /// Cuts the positions where arcs changed.
    fn find_stretches(&self, scratch: &mut LinearScratch, pattern: usize) {
        let program = &self.programs[pattern];
        let mut epochs = program.epochs_from(self.rows.ts(scratch.rows[0]));
        scratch.stretches.clear();
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
                    _ => scratch.stretches.push(Epoch { end, alive }),
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

    fn note_ends(&mut self, bits: &[&[u64]], rows: &[u32], pattern: usize, past: usize, first_record: Option<u32>) {
        let steps = bits.len();
        for index in past / 64..rows.len().div_ceil(64) {
            let mut ends = bits.iter().enumerate().fold(!0, |ends, (step, column)| {
                ends & shifted(column, index, steps - 1 - step)
            });
            if index == past / 64 {
                ends &= !0 << (past % 64);
            }
            while ends != 0 {
                let position = index * 64 + ends.trailing_zeros() as usize;
                ends &= ends - 1;
                if position >= steps - 1 {
                    let start = rows[position + 1 - steps];
                    let record = first_record.map(|first| first + (rows[position] - rows[past]));
                    self.note_linear(pattern, start, rows[position], record);
                }
            }
        }
    }

    fn note_linear(&mut self, pattern: usize, start: u32, end: u32, record: Option<u32>) {
        let expires = expiry(&self.programs[pattern], self.rows, start);
        if self.rows.ts(end) >= expires {
            return;
        }
        let configuration = self.programs[pattern].last_configuration();
        self.findings.list.push(Found {
            record: record.unwrap_or(self.findings.record),
            retracts: false,
            pattern,
            start,
            end,
            configuration,
        });
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
        for (pattern, carried) in &key.carried {
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
