//! The values of a field, row by row, as predicates that are evaluated together look at them.

use crate::arrow::rows::{ArrowRows, Column};
use crate::arrow::text::{Dictionary, Texts};
use crate::predicates::kernel::WORD_ROWS;
use crate::predicates::predicate::Fields;
use crate::program::expression::{EventView, FieldPath};
use crate::program::value::Value;
use crate::raw::column::ScannedColumn;
use crate::raw::rows::ScannedRows;
use crate::raw::scan::{Scalar, Scanner};
use crate::rows::chunk::{Chunk, Payload};
use crate::rows::view::RowView;

/// Values that can be compared with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Number,
    Text,
    Bool,
}

impl Kind {
    pub(crate) fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Int(_) | Value::Float(_) => Some(Self::Number),
            Value::Str(_) => Some(Self::Text),
            Value::Bool(_) => Some(Self::Bool),
            Value::Unknown | Value::List(_) => None,
        }
    }
}

/// A value as the path declares it; floats are finite.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FieldValue<'a> {
    Other,
    Int(i64),
    Float(f64),
    Bool(bool),
    Text(&'a str),
}

/// A chunk, and what is needed to read it.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) chunk: &'a Chunk,
    pub(crate) fields: &'a Fields,
    pub(crate) scanners: &'a [Scanner],
}

/// A field in all rows of a chunk.
pub(crate) enum Values<'a> {
    Arrow(Column<'a>),
    Scanned(&'a ScannedRows, &'a ScannedColumn, u8),
    Rows(Source<'a>, &'a FieldPath),
}

impl<'a> Values<'a> {
    pub(crate) fn new(source: Source<'a>, path: &'a FieldPath) -> Self {
        match &source.chunk.payload {
            Payload::Arrow(rows) => Self::of_arrow(rows, source, path),
            Payload::Scanned(rows) => match source.fields.find(path).and_then(|field| rows.column(field)) {
                Some(column) => Self::Scanned(rows, column, path.declared),
                None => Self::Arrow(Column::Missing),
            },
            Payload::Gone => Self::Arrow(Column::Missing),
        }
    }

    fn of_arrow(rows: &'a ArrowRows, source: Source<'a>, path: &'a FieldPath) -> Self {
        match rows.column(path) {
            Column::Other => Self::Rows(source, path),
            column => Self::Arrow(column),
        }
    }

    /// Whether they are read row by row, by the rows' numbers.
    pub(crate) fn is_by_row(&self) -> bool {
        matches!(self, Self::Rows(..))
    }

    /// Numbers of texts, and the first of the chunk's rows.
    pub(crate) fn dictionary(&self) -> Option<(&'a Dictionary, usize)> {
        match self {
            Self::Arrow(Column::Texts(Texts::Dictionary(dictionary), offset)) => Some((dictionary, *offset)),
            _ => None,
        }
    }

    /// Shows the value of each of some rows.
    #[inline]
    #[allow(clippy::cast_precision_loss)] // an int of a field that is declared as float
    pub(crate) fn each(&self, rows: std::ops::Range<usize>, mut show: impl FnMut(usize, FieldValue<'_>)) {
        match self {
            Self::Arrow(Column::Missing | Column::Other) => {}
            Self::Arrow(Column::Floats(numbers, nulls)) => {
                for row in rows {
                    let is_known = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
                    show(row, finite(numbers[row], is_known));
                }
            }
            Self::Arrow(Column::Ints(numbers, nulls)) => {
                for row in rows {
                    let is_known = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
                    show(
                        row,
                        if is_known {
                            FieldValue::Int(numbers[row])
                        } else {
                            FieldValue::Other
                        },
                    );
                }
            }
            Self::Arrow(Column::IntsAsFloats(numbers, nulls)) => {
                for row in rows {
                    let is_known = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
                    show(row, finite(numbers[row] as f64, is_known));
                }
            }
            Self::Arrow(Column::Texts(texts, offset)) => {
                for row in rows {
                    show(row, texts.get(offset + row).map_or(FieldValue::Other, FieldValue::Text));
                }
            }
            Self::Scanned(scanned, column, declared) => {
                for row in rows {
                    show(row, scanned_value(scanned, column.get(row), *declared));
                }
            }
            Self::Rows(source, path) => {
                for offset in rows {
                    let view = RowView {
                        chunk: source.chunk,
                        offset,
                        fields: source.fields,
                        scanners: source.scanners,
                    };
                    match view.field(path) {
                        Value::Bool(truth) => show(offset, FieldValue::Bool(truth)),
                        Value::Int(number) => show(offset, FieldValue::Int(number)),
                        Value::Float(number) => show(offset, finite(number, true)),
                        Value::Str(text) => show(offset, FieldValue::Text(&text)),
                        Value::Unknown | Value::List(_) => {}
                    }
                }
            }
        }
    }
}

#[inline]
fn finite<'a>(number: f64, is_known: bool) -> FieldValue<'a> {
    if is_known && number.is_finite() {
        FieldValue::Float(number)
    } else {
        FieldValue::Other
    }
}

/// As [`FieldPath::conform`] has it.
#[inline]
#[allow(clippy::cast_precision_loss)] // an int of a field that is declared as float
fn scanned_value(rows: &ScannedRows, value: Scalar, declared: u8) -> FieldValue<'_> {
    match (declared, value) {
        (0 | 1, Scalar::Int(number)) => FieldValue::Int(number),
        (2, Scalar::Int(number)) => FieldValue::Float(number as f64),
        (0 | 2, Scalar::Float(number)) => finite(number, true),
        (0 | 3, Scalar::Bool(truth)) => FieldValue::Bool(truth),
        (0 | 4, Scalar::Text(span)) => FieldValue::Text(rows.text(span)),
        _ => FieldValue::Other,
    }
}

/// Which rows have a value that can be compared, from a row on.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) from: usize,
    pub(crate) end: usize,
    bits: Vec<u64>,
}

impl Known {
    pub(crate) fn new(from: usize, end: usize) -> Self {
        Self {
            from,
            end,
            bits: vec![0; end.div_ceil(WORD_ROWS)],
        }
    }

    pub(crate) fn rows(&self) -> std::ops::Range<usize> {
        self.from..self.end
    }

    #[inline]
    pub(crate) fn set(&mut self, row: usize) {
        self.bits[row / WORD_ROWS] |= 1 << (row % WORD_ROWS);
    }

    #[inline]
    pub(crate) fn add(&mut self, word: usize, rows: u64) {
        self.bits[word] |= rows;
    }

    /// How many rows have none.
    pub(crate) fn unknown(&self) -> u64 {
        let known: u64 = self.bits.iter().map(|word| u64::from(word.count_ones())).sum();
        (self.end - self.from) as u64 - known
    }

    /// Turns truths round in the rows that have a value.
    pub(crate) fn negate(&self, bits: &mut [u64]) {
        let first = self.from / WORD_ROWS;
        for (word, known) in bits.iter_mut().zip(&self.bits).skip(first) {
            // What was true so far had a value. Rows before the first one are not known here, and stay.
            *word ^= known;
        }
    }
}
