//! Rows of raw records: the bytes as they came, and the fields that patterns use, column by column.

use crate::event::Data;
use crate::expression::FieldPath;
use crate::scan::{Scalar, Scanner, Span, list_value};
use crate::scanned_column::ScannedColumn;
use crate::value::Value;

/// Records of one scanner, in order of arrival.
#[derive(Debug, Default)]
pub struct ScannedRows {
    /// Raw records, and texts that had to be written anew.
    pub arena: Vec<u8>,
    records: Vec<Span>,
    /// Empty: no row has one.
    kinds: Vec<Option<Span>>,
    columns: Vec<ScannedColumn>,
    /// Which scanner has read them.
    pub scanner: usize,
}

impl ScannedRows {
    /// For records of this scanner.
    #[must_use]
    pub fn new(scanner: usize, fields: usize) -> Self {
        Self {
            columns: empty(fields),
            scanner,
            ..Self::default()
        }
    }

    /// Keeps the record that was scanned last, of this event type.
    #[inline]
    pub fn push(&mut self, record: Span, kind: Option<Span>, scanner: &Scanner) {
        if kind.is_some() || !self.kinds.is_empty() {
            self.kinds.resize(self.records.len(), None);
            self.kinds.push(kind);
        }
        self.records.push(record);
        for (field, column) in self.columns.iter_mut().enumerate() {
            column.push(scanner.value(field));
        }
    }

    /// Reads all records again, for other fields.
    pub fn rescan(&mut self, scanner: &mut Scanner, fields: usize) {
        self.columns = empty(fields);
        for record in &self.records {
            scanner.rescan(&mut self.arena, *record);
            for (field, column) in self.columns.iter_mut().enumerate() {
                column.push(scanner.value(field));
            }
        }
    }

    /// A column of values, by the field's number.
    #[must_use]
    pub fn column(&self, field: usize) -> Option<&ScannedColumn> {
        self.columns.get(field)
    }

    /// The text of a span.
    #[must_use]
    pub fn text(&self, span: Span) -> &str {
        std::str::from_utf8(span.of(&self.arena)).unwrap_or_default()
    }

    /// The event type of a row.
    #[must_use]
    pub fn kind(&self, row: usize) -> Option<&str> {
        self.kinds.get(row).copied().flatten().map(|span| self.text(span))
    }

    /// A field of a row, as the path declares it.
    #[must_use]
    pub fn value(&self, field: usize, path: &FieldPath, row: usize, scanner: &Scanner) -> Value {
        let value = match self.columns[field].get(row) {
            Scalar::Missing => Value::Unknown,
            Scalar::Int(number) => Value::Int(number),
            Scalar::Float(number) => Value::Float(number),
            Scalar::Bool(truth) => Value::Bool(truth),
            Scalar::Text(span) => Value::Str(self.text(span).into()),
            Scalar::List(span) => list_value(span.of(&self.arena), scanner.mapping().codec),
        };
        path.conform(value)
    }

    /// The whole data of a row.
    #[must_use]
    pub fn data(&self, row: usize, scanner: &Scanner) -> Data {
        scanner.data(self.records[row].of(&self.arena))
    }
}

fn empty(fields: usize) -> Vec<ScannedColumn> {
    (0..fields).map(|_| ScannedColumn::default()).collect()
}
