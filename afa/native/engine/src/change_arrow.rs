//! A table of changes as an Arrow record batch.
//!
//! Columns that say the same again and again (`op`, `pattern`, `key`, `state`, `registers`) are dictionaries of texts
//! with 32-bit indices, which is four bytes a row instead of a text; a dictionary has no text twice, as pandas wants.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int64Array, PrimitiveArray, RecordBatch, StringArray};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::ArrowError;
use foldhash::fast::FixedState;

use crate::change_table::{ChangeKind, ChangeRow, ChangeTable, write_hex};
use crate::json_text::Positions;

/// How many rows are taken apart at a time: so few that they stay in the nearest cache for all columns.
const ROWS_AT_ONCE: usize = 128;

/// The fixed parts of rows, column by column.
struct Columns {
    operations: Vec<i32>,
    patterns: Vec<i32>,
    keys: Vec<i32>,
    states: Vec<i32>,
    registers: Vec<i32>,
    starts: Vec<i64>,
    ends: Vec<i64>,
    untils: Vec<i64>,
    first: Ids,
    last: Ids,
}

struct Ids {
    offsets: Vec<i32>,
    bytes: Vec<u8>,
}

impl Columns {
    fn for_rows(rows: usize) -> Self {
        Self {
            operations: Vec::with_capacity(rows),
            patterns: Vec::with_capacity(rows),
            keys: Vec::with_capacity(rows),
            states: Vec::with_capacity(rows),
            registers: Vec::with_capacity(rows),
            starts: Vec::with_capacity(rows),
            ends: Vec::with_capacity(rows),
            untils: Vec::with_capacity(rows),
            first: Ids::for_rows(rows, 12),
            last: Ids::for_rows(rows, 12),
        }
    }
}

impl ChangeTable {
    /// The changes as columns `op pattern key start end until state first last registers bindings`, and `match` with
    /// ids. A punctuation has only `op`, `pattern` and, as `end`, its time.
    ///
    /// # Errors
    /// If the texts of a column would take more than 2 GB.
    pub fn to_record_batch(&self, with_ids: bool) -> Result<RecordBatch, String> {
        let matches = self.nulls(|row| row.kind != ChangeKind::Punctuation);
        let alive = self.nulls(|row| row.has_until);
        let (states, state_of) = self.states();
        let (registers, registers_of) = self.registers();
        let columns = self.columns(&state_of, &registers_of);
        let kinds = [ChangeKind::Retract, ChangeKind::Insert, ChangeKind::Punctuation];
        let operations = StringArray::from_iter_values(kinds.iter().map(|kind| kind.name()));
        let patterns = StringArray::from_iter_values(self.patterns.iter().map(|pattern| &*pattern.name));
        let keys = StringArray::from_iter_values(self.keys.iter().map(|key| &**key));
        let mut named: Vec<(&str, ArrayRef)> = vec![
            ("op", dictionary(columns.operations, None, operations)?),
            ("pattern", dictionary(columns.patterns, None, patterns)?),
            ("key", dictionary(columns.keys, matches.clone(), keys)?),
            ("start", times(columns.starts, matches.clone())),
            ("end", times(columns.ends, None)),
            ("until", times(columns.untils, alive)),
            ("state", dictionary(columns.states, matches.clone(), states)?),
            ("first", columns.first.texts(matches.clone())?),
            ("last", columns.last.texts(matches.clone())?),
            ("registers", dictionary(columns.registers, matches.clone(), registers)?),
            ("bindings", Arc::new(StringArray::new_null(self.rows.len()))),
        ];
        if with_ids {
            named.push(("match", self.match_ids().texts(matches)?));
        }
        let named = named.into_iter().map(|(name, array)| (name, array, true));
        RecordBatch::try_from_iter_with_nullable(named).map_err(|error| error.to_string())
    }

    /// Which rows have a value; `None`: all.
    fn nulls(&self, valid: impl Fn(&ChangeRow) -> bool) -> Option<NullBuffer> {
        if self.rows.iter().all(&valid) {
            return None;
        }
        Some(self.rows.iter().map(valid).collect())
    }

    fn columns(&self, state_of: &[i32], registers_of: &[i32]) -> Columns {
        let sources = self.sources();
        let mut columns = Columns::for_rows(self.rows.len());
        let (mut first, mut last) = (Positions::default(), Positions::default());
        for rows in self.rows.chunks(ROWS_AT_ONCE) {
            let of_outcome = |numbers: &[i32], row: &ChangeRow| numbers.get(row.outcome as usize).copied().unwrap_or(0);
            columns.operations.extend(rows.iter().map(|row| row.kind as i32));
            columns
                .patterns
                .extend(rows.iter().map(|row| row.pattern.cast_signed()));
            columns.keys.extend(rows.iter().map(|row| row.key.cast_signed()));
            columns.states.extend(rows.iter().map(|row| of_outcome(state_of, row)));
            columns
                .registers
                .extend(rows.iter().map(|row| of_outcome(registers_of, row)));
            columns.starts.extend(rows.iter().map(|row| row.start));
            columns.ends.extend(rows.iter().map(|row| row.end));
            columns.untils.extend(rows.iter().map(|row| row.until));
            columns
                .first
                .extend(rows, |row, bytes| sources.write_id(row.first, &mut first, bytes));
            columns
                .last
                .extend(rows, |row, bytes| sources.write_id(row.last, &mut last, bytes));
        }
        columns
    }

    /// The distinct states, and the number of each outcome's.
    fn states(&self) -> (StringArray, Vec<i32>) {
        let mut known: HashMap<&str, i32, FixedState> = HashMap::default();
        let mut distinct: Vec<&str> = Vec::new();
        let numbers = self.outcomes.iter().map(|outcome| {
            *known
                .entry(&outcome.state)
                .or_insert_with(|| next_number(&mut distinct, &outcome.state))
        });
        let numbers = numbers.collect();
        (StringArray::from_iter_values(distinct), numbers)
    }

    /// The distinct texts of registers, and the number of each outcome's.
    fn registers(&self) -> (StringArray, Vec<i32>) {
        let mut known: HashMap<Vec<u8>, i32, FixedState> = HashMap::default();
        let mut distinct: Vec<String> = Vec::new();
        let mut numbers = Vec::with_capacity(self.outcomes.len());
        let mut text = Vec::new();
        for outcome in &self.outcomes {
            text.clear();
            self.write_registers(outcome, &mut text);
            let number = known.get(&text).copied().unwrap_or_else(|| {
                let number = next_number(&mut distinct, String::from_utf8_lossy(&text).into_owned());
                known.insert(text.clone(), number);
                number
            });
            numbers.push(number);
        }
        (StringArray::from_iter_values(distinct), numbers)
    }

    fn match_ids(&self) -> Ids {
        let sources = self.sources();
        let mut ids = Ids::for_rows(self.rows.len(), 32);
        let mut buffer = Vec::with_capacity(128);
        ids.extend(&self.rows, |row, bytes| {
            write_hex(bytes, sources.match_id(row, &mut buffer));
        });
        ids
    }
}

impl Ids {
    fn for_rows(rows: usize, bytes_each: usize) -> Self {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        Self {
            offsets,
            bytes: Vec::with_capacity(rows * bytes_each),
        }
    }

    /// Adds the ids of rows; a punctuation has none.
    #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // seen by the length of all, at the end
    fn extend(&mut self, rows: &[ChangeRow], mut write: impl FnMut(&ChangeRow, &mut Vec<u8>)) {
        self.offsets.extend(rows.iter().map(|row| {
            if row.kind != ChangeKind::Punctuation {
                write(row, &mut self.bytes);
            }
            self.bytes.len() as i32
        }));
    }

    fn texts(self, nulls: Option<NullBuffer>) -> Result<ArrayRef, String> {
        if i32::try_from(self.bytes.len()).is_err() {
            return Err("more than 2 GB of ids in one answer; feed smaller batches".into());
        }
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        let texts = StringArray::try_new(offsets, Buffer::from_vec(self.bytes), nulls);
        Ok(Arc::new(texts.map_err(|error| error.to_string())?))
    }
}

fn times(times: Vec<i64>, nulls: Option<NullBuffer>) -> ArrayRef {
    Arc::new(Int64Array::new(times.into(), nulls))
}

/// The constructors check that every index that is not null lies within the values.
fn dictionary(indices: Vec<i32>, nulls: Option<NullBuffer>, values: StringArray) -> Result<ArrayRef, String> {
    let told = |error: ArrowError| error.to_string();
    let indices = PrimitiveArray::<Int32Type>::try_new(indices.into(), nulls).map_err(told)?;
    Ok(Arc::new(
        DictionaryArray::try_new(indices, Arc::new(values)).map_err(told)?,
    ))
}

/// Adds an item that was not there yet.
#[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // far more outcomes than memory holds
fn next_number<T>(items: &mut Vec<T>, item: T) -> i32 {
    items.push(item);
    (items.len() - 1) as i32
}
