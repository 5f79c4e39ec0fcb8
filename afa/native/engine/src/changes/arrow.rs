//! A table of changes as the buffers of Arrow columns.
//!
//! Columns that say the same again and again (`op`, `pattern`, `key`, `state`, `registers`) are dictionaries of texts
//! with 32-bit indices, which is four bytes a row instead of a text; a dictionary has no text twice, as pandas wants.
//! Most batches lead to few changes, so what counts is the price of a table with hardly any row: buffers of one width
//! share one piece of memory, and what is the same in every table is made once.

use std::sync::Arc;

use crate::changes::bound_columns::{BoundColumns, Having};
use crate::changes::json_text::{POSITION_DIGITS, Positions};
use crate::changes::outcomes::{OutcomeTexts, Outcomes};
use crate::changes::table::{ChangeKind, ChangeRow, ChangeTable, IdSlot, Patterns, Sources, write_hex};

/// How many rows are taken apart at a time: so few that they stay in the nearest cache for all columns.
const ROWS_AT_ONCE: usize = 128;
/// The columns of the least width: `op`, `pattern`, `key`, `state` and `registers`.
const INDICES: usize = 5;
/// `start`, `end` and `until`.
const TIMES: usize = 3;

/// The names and kinds of columns, in order; `match` is there only if asked for.
pub const COLUMNS: [(&str, Kind); 12] = [
    ("op", Kind::Dictionary),
    ("pattern", Kind::Dictionary),
    ("key", Kind::Dictionary),
    ("start", Kind::Time),
    ("end", Kind::Time),
    ("until", Kind::Time),
    ("state", Kind::Dictionary),
    ("first", Kind::Text),
    ("last", Kind::Text),
    ("registers", Kind::Dictionary),
    ("bindings", Kind::Text),
    ("match", Kind::Text),
];

/// What a column is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 64-bit ints.
    Time,
    /// Texts with 32-bit offsets.
    Text,
    /// 32-bit indices into such texts.
    Dictionary,
}

/// A column: all buffers as the Arrow format has them.
#[derive(Debug)]
pub struct Column<'a> {
    /// A bit for each row that has a value; `None`: all have.
    pub validity: Option<&'a [u8]>,
    /// How many rows have none.
    pub null_count: usize,
    /// The values.
    pub values: Values<'a>,
}

/// The values of a column; without meaning where a row has none.
#[derive(Debug)]
pub enum Values<'a> {
    /// 64-bit ints.
    Times(&'a [i64]),
    /// Texts.
    Texts(Texts<'a>),
    /// 32-bit indices into texts.
    Dictionary(&'a [i32], Texts<'a>),
}

/// Texts, one behind the other.
#[derive(Clone, Copy, Debug)]
pub struct Texts<'a> {
    /// Where each begins, and where the last one ends.
    pub offsets: &'a [i32],
    /// UTF-8.
    pub bytes: &'a [u8],
}

impl<'a> Texts<'a> {
    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = &'a [u8]> {
        let ends = self.offsets.windows(2);
        ends.map(move |ends| self.bytes.get(place(ends[0])..place(ends[1])).unwrap_or_default())
    }
}

/// Texts that are being collected.
#[derive(Clone, Debug)]
pub(crate) struct TextBuffer {
    offsets: Vec<i32>,
    bytes: Vec<u8>,
}

/// The buffers of all columns: `op pattern key start end until state first last registers bindings`, and `match` with
/// ids. A punctuation has only `op`, `pattern` and, as `end`, its time.
#[derive(Debug)]
pub struct ChangeColumns {
    rows: usize,
    patterns: Arc<Patterns>,
    /// Column after column; then zeros, the offsets of texts that are all null.
    indices: Vec<i32>,
    /// Column after column.
    times: Vec<i64>,
    /// Bits of rows: those that are no punctuation, those that have an end of life, and none.
    bits: Vec<u8>,
    punctuations: usize,
    without_until: usize,
    keys: TextBuffer,
    outcomes: Outcomes,
    first: TextBuffer,
    last: TextBuffer,
    matches: Option<TextBuffer>,
    /// Only where queries tell.
    bound: Option<BoundColumns>,
}

impl ChangeTable {
    /// The changes as columns.
    ///
    /// # Errors
    /// If the texts of a column would take more than 2 GB.
    pub fn to_columns(&self, with_ids: bool) -> Result<ChangeColumns, String> {
        let rows = self.rows.len();
        let mut keys = TextBuffer::for_texts(self.keys.len(), 16);
        for key in &self.keys {
            keys.push(key.as_bytes());
        }
        let mut columns = ChangeColumns {
            rows,
            patterns: self.patterns.clone(),
            indices: vec![0; rows * INDICES + rows + 1],
            times: vec![0; rows * TIMES],
            bits: vec![0; rows.div_ceil(8) * 3],
            punctuations: 0,
            without_until: 0,
            keys,
            outcomes: self.outcomes.clone(),
            first: TextBuffer::for_texts(rows, 12),
            last: TextBuffer::for_texts(rows, 12),
            matches: with_ids.then(|| self.match_ids()),
            bound: BoundColumns::of(self),
        };
        columns.fill(self, self.outcomes.texts(&self.patterns));
        let nothing_to_name = self.keys.is_empty() || self.patterns.is_empty();
        let has_outcome = |row: &ChangeRow| is_match(row) && self.graph(row).is_none();
        let lacks_outcome = || self.outcomes.is_empty() && self.rows.iter().any(has_outcome);
        if nothing_to_name && columns.punctuations < rows || lacks_outcome() {
            return Err("a match without a key or an outcome".into());
        }
        let is_long = |column: Column<'_>| match column.values {
            Values::Times(_) => false,
            Values::Texts(texts) | Values::Dictionary(_, texts) => i32::try_from(texts.bytes.len()).is_err(),
        };
        if columns.columns().any(is_long) {
            return Err("more than 2 GB of texts in one answer; feed smaller batches".into());
        }
        Ok(columns)
    }

    fn match_ids(&self) -> TextBuffer {
        let sources = self.sources();
        let mut ids = TextBuffer::for_texts(self.rows.len(), 32);
        let mut buffer = Vec::with_capacity(128);
        ids.extend(&self.rows, |row, bytes| {
            write_hex(bytes, sources.match_id(row, &mut buffer));
        });
        ids
    }
}

impl ChangeColumns {
    /// The number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The columns, in the order of [`COLUMNS`].
    pub fn columns(&self) -> impl Iterator<Item = Column<'_>> {
        let with_key = |values| self.column(0, self.punctuations, values);
        let of_matches = move |values| self.column_having(Having::Match, with_key(values));
        let with_id = move |values| self.column_having(Having::Id, with_key(values));
        let always = |values| self.column(0, 0, values);
        let dictionary = |number, texts| Values::Dictionary(self.indices_of(number), texts);
        let outcomes = self.outcomes.texts(&self.patterns);
        let nothing = Texts {
            offsets: &self.indices[self.rows * INDICES..],
            bytes: &[],
        };
        let fixed = [
            always(dictionary(0, OPERATIONS)),
            always(dictionary(1, self.patterns.names())),
            with_key(dictionary(2, self.keys.texts())),
            self.column_having(Having::Start, with_key(Values::Times(self.times_of(0)))),
            self.column_having(Having::End, always(Values::Times(self.times_of(1)))),
            self.column(1, self.without_until, Values::Times(self.times_of(2))),
            self.column_having(Having::State, with_key(dictionary(3, outcomes.states()))),
            of_matches(Values::Texts(self.first.texts())),
            with_id(Values::Texts(self.last.texts())),
            of_matches(dictionary(4, outcomes.registers())),
            self.bindings(nothing),
        ];
        let ids = self.matches.iter().map(move |ids| with_id(Values::Texts(ids.texts())));
        fixed.into_iter().chain(ids)
    }

    /// What matches of queries have bound; nothing where there is no query.
    fn bindings<'a>(&'a self, nothing: Texts<'a>) -> Column<'a> {
        let texts = self.bound.as_ref().map_or(nothing, |bound| bound.bindings.texts());
        self.column_having(Having::Bindings, self.column(2, self.rows, Values::Texts(texts)))
    }

    /// A column that rows of queries have or lack in their own way.
    fn column_having<'a>(&'a self, kind: Having, column: Column<'a>) -> Column<'a> {
        let Some((bits, null_count)) = self.bound.as_ref().map(|bound| bound.validity(kind)) else {
            return column;
        };
        Column {
            validity: (null_count > 0).then_some(bits),
            null_count,
            values: column.values,
        }
    }

    fn column<'a>(&'a self, bits: usize, null_count: usize, values: Values<'a>) -> Column<'a> {
        let bytes = self.rows.div_ceil(8);
        Column {
            validity: (null_count > 0).then(|| &self.bits[bits * bytes..(bits + 1) * bytes]),
            null_count,
            values,
        }
    }

    fn indices_of(&self, number: usize) -> &[i32] {
        &self.indices[number * self.rows..(number + 1) * self.rows]
    }

    fn times_of(&self, number: usize) -> &[i64] {
        &self.times[number * self.rows..(number + 1) * self.rows]
    }

    fn fill(&mut self, table: &ChangeTable, outcomes: &OutcomeTexts) {
        let (rows, sources) = (&table.rows, &table.sources());
        let (mut first, mut last) = (Positions::default(), Positions::default());
        let has_bound = self.bound.is_some();
        let of_outcome = |numbers: &[i32], row: &ChangeRow| {
            let outcome = if has_bound {
                table.outcome_number(row)
            } else {
                row.outcome
            };
            numbers.get(outcome as usize).copied().unwrap_or(0)
        };
        let count = rows.len();
        let (patterns, keys) = (self.patterns.len(), self.keys.offsets.len() - 1);
        for (chunk, rows) in rows.chunks(ROWS_AT_ONCE).enumerate() {
            let from = chunk * ROWS_AT_ONCE;
            let (indices, times) = (&mut self.indices[from..], &mut self.times[from..]);
            put(indices, rows, |row| row.kind as i32);
            put(&mut indices[count..], rows, |row| below(row.pattern, patterns));
            put(&mut indices[2 * count..], rows, |row| below(row.key, keys));
            put(&mut indices[3 * count..], rows, |row| {
                of_outcome(&outcomes.state_of, row)
            });
            put(&mut indices[4 * count..], rows, |row| {
                of_outcome(&outcomes.registers_of, row)
            });
            put(times, rows, |row| row.start);
            put(&mut times[count..], rows, |row| row.end);
            put(&mut times[2 * count..], rows, |row| row.until);
            self.fill_bits(rows, from / 8);
            for rows in rows.chunk_by(|a, b| is_match(a) == is_match(b)) {
                self.first.extend_ids(rows, |row| row.first, sources, &mut first);
                self.last.extend_ids(rows, |row| row.last, sources, &mut last);
            }
        }
    }

    /// The bits of a chunk, from this byte on.
    fn fill_bits(&mut self, rows: &[ChangeRow], from: usize) {
        let (matches, untils) = self.bits.split_at_mut(self.rows.div_ceil(8));
        for (place, rows) in rows.chunks(8).enumerate() {
            let (mut match_bits, mut until_bits) = (0, 0);
            for (bit, row) in rows.iter().enumerate() {
                match_bits |= u8::from(is_match(row)) << bit;
                until_bits |= u8::from(row.has_until) << bit;
            }
            (matches[from + place], untils[from + place]) = (match_bits, until_bits);
            self.punctuations += rows.len() - match_bits.count_ones() as usize;
            self.without_until += rows.len() - until_bits.count_ones() as usize;
        }
    }
}

/// The names of [`ChangeKind`] in its order.
const OPERATIONS: Texts<'static> = Texts {
    offsets: &[0, 7, 13, 20, 31],
    bytes: b"retractinserttimeoutpunctuation",
};

impl TextBuffer {
    pub(crate) fn for_texts(count: usize, bytes_each: usize) -> Self {
        let mut offsets = Vec::with_capacity(count + 1);
        offsets.push(0);
        Self {
            offsets,
            bytes: Vec::with_capacity(count * bytes_each),
        }
    }

    pub(crate) fn push(&mut self, text: &[u8]) {
        self.push_with(|bytes| bytes.extend_from_slice(text));
    }

    /// Adds a text and answers with its number.
    pub(crate) fn push_numbered(&mut self, text: &[u8]) -> i32 {
        self.push(text);
        offset(self.offsets.len()) - 2
    }

    pub(crate) fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.offsets.push(offset(self.bytes.len()));
    }

    /// Adds so many texts of no length.
    pub(crate) fn push_nothing(&mut self, count: usize) {
        self.offsets
            .resize(self.offsets.len() + count, offset(self.bytes.len()));
    }

    /// Adds the ids of rows; a punctuation has none.
    fn extend(&mut self, rows: &[ChangeRow], mut write: impl FnMut(&ChangeRow, &mut Vec<u8>)) {
        self.offsets.extend(rows.iter().map(|row| {
            if is_match(row) {
                write(row, &mut self.bytes);
            }
            offset(self.bytes.len())
        }));
    }

    /// Adds ids of rows that are all matches or all punctuations.
    fn extend_ids(
        &mut self,
        rows: &[ChangeRow],
        slot_of: impl Fn(&ChangeRow) -> IdSlot,
        sources: &Sources<'_>,
        positions: &mut Positions,
    ) {
        if !is_match(&rows[0]) || !rows.iter().all(|row| slot_of(row).is_short_position()) {
            return self.extend(rows, |row, bytes| sources.write_id(slot_of(row), positions, bytes));
        }
        let from = self.bytes.len();
        self.bytes.resize(from + rows.len() * POSITION_DIGITS, 0);
        let (cells, _) = self.bytes[from..].as_chunks_mut();
        for (cell, row) in cells.iter_mut().zip(rows) {
            positions.put(cell, slot_of(row).number());
        }
        let ends = (1..=rows.len()).map(|count| offset(from + count * POSITION_DIGITS));
        self.offsets.extend(ends);
    }

    pub(crate) fn texts(&self) -> Texts<'_> {
        Texts {
            offsets: &self.offsets,
            bytes: &self.bytes,
        }
    }
}

fn is_match(row: &ChangeRow) -> bool {
    row.kind != ChangeKind::Punctuation
}

/// Writes a cell for each row.
fn put<T>(cells: &mut [T], rows: &[ChangeRow], value: impl Fn(&ChangeRow) -> T) {
    for (cell, row) in cells.iter_mut().zip(rows) {
        *cell = value(row);
    }
}

/// The place of a text. The key of a punctuation is a partition: who reads the column must not be led beyond its end.
#[inline]
fn below(place: u32, count: usize) -> i32 {
    if (place as usize) < count {
        place.cast_signed()
    } else {
        0
    }
}

/// A length as an offset; one beyond 2 GB is seen by the length of all, at the end.
#[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
fn offset(length: usize) -> i32 {
    length as i32
}

fn place(offset: i32) -> usize {
    usize::try_from(offset).unwrap_or(0)
}
