//! A record batch, checked once and then read row by row or column by column.

use std::sync::{Arc, OnceLock};

use arrow_array::RecordBatch;
use arrow_buffer::{NullBuffer, ScalarBuffer};

use crate::arrow::cells::{Cells, members_of};
use crate::arrow::check::are_valid;
use crate::arrow::layout::{Given, Layout, Numbers, OwnColumns};
use crate::arrow::text::{Ascending, Dictionary, Texts};
use crate::program::expression::FieldPath;
use crate::program::value::Value;
use crate::rows::event::Data;

/// Rows of a record batch. A clone or a slice shares the memory.
#[derive(Clone, Debug)]
pub struct ArrowRows {
    batch: Arc<Batch>,
    offset: usize,
    length: usize,
}

#[derive(Debug)]
struct Batch {
    layout: Arc<Layout>,
    keys: Texts,
    times: Numbers,
    ids: Option<Texts>,
    seqs: Option<Numbers>,
    revs: Option<Numbers>,
    kinds: Option<Texts>,
    operations: Option<Texts>,
    /// The rows, ascending, whose operation is another than insert.
    special: Vec<usize>,
    arcs: Option<Texts>,
    conditions: Option<Texts>,
    /// In the order of the layout's fields.
    fields: Vec<Field>,
}

/// A data column: what an array is made of is looked at when first asked for.
#[derive(Debug)]
struct Field {
    given: Given,
    cells: OnceLock<Cells>,
}

/// A row whose operation is another than insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Special<'a> {
    /// Its number.
    pub row: usize,
    /// The operation.
    pub operation: &'a str,
    /// The JSON text of an arc change.
    pub arc: Option<&'a str>,
}

/// The keys of rows.
#[derive(Debug)]
pub enum Keys<'a> {
    /// Each row has the number of its key.
    Dictionary {
        /// The keys.
        values: &'a Texts,
        /// The numbers of the rows; without meaning where there is no key.
        indices: &'a [i32],
        /// The rows that have a key; `None`: all.
        nulls: Option<NullBuffer>,
    },
    /// Each row has its text, to be read with [`ArrowRows::key`].
    Texts,
}

/// A field of all rows, for predicates over whole columns. Nulls are unknown.
#[derive(Debug)]
pub enum Column<'a> {
    /// Unknown in every row.
    Missing,
    /// Floats; those that are not finite are unknown.
    Floats(&'a [f64], Option<NullBuffer>),
    /// Ints.
    Ints(&'a [i64], Option<NullBuffer>),
    /// Ints of a field that is declared as float: compared as floats, whatever they are compared with.
    IntsAsFloats(&'a [i64], Option<NullBuffer>),
    /// Texts: rows from an offset on.
    Texts(&'a Texts, usize),
    /// Anything else: read it row by row.
    Other,
}

impl ArrowRows {
    /// Checks a batch.
    ///
    /// # Errors
    /// If a column that every batch needs is missing, or one that has a meaning has another type: what, and the fix.
    pub fn new(batch: &RecordBatch) -> Result<Self, String> {
        let schema = batch.schema();
        let names = schema.fields().iter().map(|field| field.name().as_str());
        let layout = Arc::new(Layout::of_names(names)?);
        let columns = batch.columns().iter().cloned().map(Given::Array);
        Self::of_columns(layout, columns.collect(), batch.num_rows())
    }

    /// The same for the columns of a layout, all with so many rows.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn of_columns(layout: Arc<Layout>, columns: Vec<Given>, rows: usize) -> Result<Self, String> {
        let (own, fields) = layout.parted(columns)?;
        let OwnColumns {
            keys,
            times,
            ids,
            seqs,
            revs,
            kinds,
            operations,
            arcs,
            conditions,
        } = own;
        let field = |given| Field {
            given,
            cells: OnceLock::new(),
        };
        let batch = Batch {
            layout,
            keys,
            times,
            ids,
            seqs,
            revs,
            kinds,
            special: operations.as_ref().map(special_rows).unwrap_or_default(),
            operations,
            arcs,
            conditions,
            fields: fields.into_iter().map(field).collect(),
        };
        Ok(Self {
            batch: Arc::new(batch),
            offset: 0,
            length: rows,
        })
    }

    /// The number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.length
    }

    /// The number of rows of the whole batch.
    #[must_use]
    pub fn batch_len(&self) -> usize {
        self.batch.times.0.len()
    }

    /// How many data columns there are.
    #[must_use]
    pub fn fields(&self) -> usize {
        self.batch.fields.len()
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Some of the rows; what reaches beyond the end is cut off.
    #[must_use]
    pub fn slice(&self, offset: usize, length: usize) -> Self {
        let offset = offset.min(self.length);
        let length = length.min(self.length - offset);
        Self {
            batch: self.batch.clone(),
            offset: self.offset + offset,
            length,
        }
    }

    /// The keys of all rows.
    #[must_use]
    pub fn keys(&self) -> Keys<'_> {
        match &self.batch.keys {
            Texts::Dictionary(dictionary) => Keys::Dictionary {
                values: &dictionary.values,
                indices: &dictionary.indices[self.offset..self.offset + self.length],
                nulls: self.cut(dictionary.nulls.as_ref()),
            },
            _ => Keys::Texts,
        }
    }

    /// The key of a row.
    #[inline]
    #[must_use]
    pub fn key(&self, row: usize) -> Option<&str> {
        self.batch.keys.get(self.offset + row)
    }

    /// The number of a row's key in the dictionary; `None` if it has no key, or the keys are no dictionary.
    #[inline]
    #[must_use]
    pub fn key_index(&self, row: usize) -> Option<usize> {
        self.key_dictionary()?.index(self.offset + row)
    }

    /// Whether a row has the key of the row before. A `false` may be wrong, a `true` never is.
    #[inline]
    #[must_use]
    pub fn same_key_as_previous(&self, row: usize) -> bool {
        if row == 0 {
            return false;
        }
        match &self.batch.keys {
            Texts::Dictionary(keys) => {
                let row = self.offset + row;
                keys.indices[row] == keys.indices[row - 1]
                    && keys
                        .nulls
                        .as_ref()
                        .is_none_or(|nulls| nulls.is_valid(row) && nulls.is_valid(row - 1))
            }
            keys => keys
                .get(self.offset + row)
                .is_some_and(|key| Some(key) == keys.get(self.offset + row - 1)),
        }
    }

    /// Whether the numbers of keys mean the same in both: the dictionaries are the same memory, which both keep.
    #[must_use]
    pub fn same_key_dictionary(&self, other: &Self) -> bool {
        match (self.key_dictionary(), other.key_dictionary()) {
            (Some(a), Some(b)) => a.values.len() == b.values.len() && a.values.same_memory(&b.values),
            _ => false,
        }
    }

    fn key_dictionary(&self) -> Option<&Dictionary> {
        match &self.batch.keys {
            Texts::Dictionary(dictionary) => Some(dictionary),
            _ => None,
        }
    }

    /// Event time of all rows; without meaning where [`Self::has_time`] is false.
    #[must_use]
    pub fn times(&self) -> &[i64] {
        &self.batch.times.0[self.offset..self.offset + self.length]
    }

    /// The same, to be kept without the other columns.
    #[must_use]
    pub fn time_buffer(&self) -> ScalarBuffer<i64> {
        self.batch.times.0.slice(self.offset, self.length)
    }

    /// The ids and where they begin, to be kept without the other columns.
    #[must_use]
    pub fn ids(&self) -> Option<(Texts, usize)> {
        self.batch.ids.clone().map(|ids| (ids, self.offset))
    }

    /// Whether a row has a time.
    #[inline]
    #[must_use]
    pub fn has_time(&self, row: usize) -> bool {
        let nulls = self.batch.times.1.as_ref();
        nulls.is_none_or(|nulls| nulls.is_valid(self.offset + row))
    }

    /// The keys, and their numbers for a stretch of rows, if keys are a dictionary and every row has a key and a time.
    #[must_use]
    pub fn whole_stretch(&self, from: usize, to: usize) -> Option<(&Texts, &[i32])> {
        let dictionary = self.key_dictionary()?;
        let (from, to) = (self.offset + from, self.offset + to);
        let is_whole =
            are_valid(dictionary.nulls.as_ref(), from, to) && are_valid(self.batch.times.1.as_ref(), from, to);
        is_whole.then(|| (&*dictionary.values, &dictionary.indices[from..to]))
    }

    /// The id that the source gave.
    #[must_use]
    pub fn id(&self, row: usize) -> Option<&str> {
        self.text(self.batch.ids.as_ref(), row)
    }

    /// The sequence number.
    #[must_use]
    pub fn seq(&self, row: usize) -> Option<i64> {
        self.number(self.batch.seqs.as_ref(), row)
    }

    /// The revision; 0 if none is given.
    #[must_use]
    pub fn rev(&self, row: usize) -> i64 {
        self.number(self.batch.revs.as_ref(), row).unwrap_or(0)
    }

    /// The event type.
    #[must_use]
    pub fn kind(&self, row: usize) -> Option<&str> {
        self.text(self.batch.kinds.as_ref(), row)
    }

    /// The types of the events, if there are any, and where they begin.
    #[must_use]
    pub fn kinds(&self) -> Option<(&Texts, usize)> {
        self.batch.kinds.as_ref().map(|kinds| (kinds, self.offset))
    }

    /// The rows whose operation is another than insert.
    pub fn special_rows(&self) -> impl Iterator<Item = Special<'_>> {
        let batch = &*self.batch;
        let (first, end) = (self.offset, self.offset + self.length);
        let place = batch.special.partition_point(|row| *row < first);
        let rows = batch.special[place..].iter().take_while(move |row| **row < end);
        let (mut operations, mut arcs) = (
            Ascending::of(batch.operations.as_ref()),
            Ascending::of(batch.arcs.as_ref()),
        );
        rows.map(move |row| Special {
            row: row - first,
            operation: operations.get(*row).unwrap_or_default(),
            arc: arcs.get(*row),
        })
    }

    /// The JSON text of an arc change.
    #[must_use]
    pub fn arc(&self, row: usize) -> Option<&str> {
        self.text(self.batch.arcs.as_ref(), row)
    }

    /// The condition of a punctuation.
    #[must_use]
    pub fn when(&self, row: usize) -> Option<&str> {
        self.text(self.batch.conditions.as_ref(), row)
    }

    /// Whether any row of the batch has an id. Slices answer for the batch they are cut from, here and below.
    #[must_use]
    pub fn has_ids(&self) -> bool {
        self.batch.ids.is_some()
    }

    /// Whether any row has a sequence number.
    #[must_use]
    pub fn has_seqs(&self) -> bool {
        self.batch.seqs.is_some()
    }

    /// Whether any row has a revision.
    #[must_use]
    pub fn has_revs(&self) -> bool {
        self.batch.revs.is_some()
    }

    /// Whether any row has an event type.
    #[must_use]
    pub fn has_kinds(&self) -> bool {
        self.batch.kinds.is_some()
    }

    /// A field of a row, as its declared type reads it.
    #[must_use]
    pub fn field(&self, path: &FieldPath, row: usize) -> Value {
        self.cells(path)
            .map_or(Value::Unknown, |cells| path.conform(cells.value(self.offset + row)))
    }

    /// A field of all rows.
    #[must_use]
    pub fn column(&self, path: &FieldPath) -> Column<'_> {
        let rows = self.offset..self.offset + self.length;
        match (path.declared, self.cells(path)) {
            (0 | 2, Some(Cells::Floats(numbers, nulls))) => Column::Floats(&numbers[rows], self.cut(nulls.as_ref())),
            (0 | 1, Some(Cells::Ints(numbers, nulls, _))) => Column::Ints(&numbers[rows], self.cut(nulls.as_ref())),
            (2, Some(Cells::Ints(numbers, nulls, _))) => Column::IntsAsFloats(&numbers[rows], self.cut(nulls.as_ref())),
            (0 | 4, Some(Cells::Texts(texts))) => Column::Texts(texts, self.offset),
            (0 | 3, Some(Cells::Bools(..))) | (0 | 5, Some(Cells::Lists(..))) => Column::Other,
            _ => Column::Missing,
        }
    }

    /// The payload of a row: every column that is a data field and not null.
    #[must_use]
    pub fn data(&self, row: usize) -> Data {
        let cells = self.batch.fields.iter().map(Field::cells);
        members_of(self.batch.layout.names().zip(cells), self.offset + row)
    }

    /// The column of a field.
    fn cells(&self, path: &FieldPath) -> Option<&Cells> {
        let (first, inner) = path.steps.split_first()?;
        let outermost = self.batch.fields.get(self.batch.layout.place(first)?)?.cells();
        inner.iter().try_fold(outermost, |cells, name| cells.member(name))
    }

    fn cut(&self, nulls: Option<&NullBuffer>) -> Option<NullBuffer> {
        let nulls = nulls?;
        let whole = self.offset == 0 && self.length == nulls.len();
        let cut = if whole {
            nulls.clone()
        } else {
            nulls.slice(self.offset, self.length)
        };
        Some(cut).filter(|cut| cut.null_count() > 0)
    }

    fn text<'a>(&self, column: Option<&'a Texts>, row: usize) -> Option<&'a str> {
        column?.get(self.offset + row)
    }

    fn number(&self, column: Option<&Numbers>, row: usize) -> Option<i64> {
        let Numbers(numbers, nulls) = column?;
        let row = self.offset + row;
        nulls
            .as_ref()
            .is_none_or(|nulls| nulls.is_valid(row))
            .then(|| numbers[row])
    }
}

impl Field {
    fn cells(&self) -> &Cells {
        match &self.given {
            Given::Cells(cells) => cells,
            Given::Array(array) => self.cells.get_or_init(|| Cells::of(array)),
        }
    }
}

fn special_rows(operations: &Texts) -> Vec<usize> {
    if let Texts::Few(few) = operations {
        let special = few.iter().filter(|(_, operation)| *operation != "insert");
        return special.map(|(row, _)| row).collect();
    }
    let special = |row: &usize| operations.get(*row).is_some_and(|operation| operation != "insert");
    match operations.nulls() {
        // Skips 64 nulls at a time.
        Some(nulls) => nulls.valid_indices().filter(special).collect(),
        None => (0..operations.len()).filter(special).collect(),
    }
}
