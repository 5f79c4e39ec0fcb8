//! Rows of raw records: the bytes as they came, and the fields that patterns use, column by column.

use std::ops::Range;

use crate::input::span;
use crate::program::expression::FieldPath;
use crate::program::value::Value;
use crate::raw::column::ScannedColumn;
use crate::raw::scan::{PADDING, Padded, Records, Scalar, Scanner, Span, list_value};
use crate::rows::event::Data;

/// Records in order of arrival.
#[derive(Debug, Default)]
pub struct ScannedRows {
    /// Raw records, and texts that had to be written anew.
    pub arena: Vec<u8>,
    records: Vec<Span>,
    /// Empty: no row has one.
    kinds: Vec<Option<Span>>,
    columns: Vec<ScannedColumn>,
    /// Which scanner has read them; that of each row, once one of them is of another.
    pub scanner: usize,
    scanners: Vec<usize>,
    /// How many bytes of the arena are only there because records were copied together.
    padding: usize,
}

impl ScannedRows {
    /// For records of this scanner, with room for some.
    #[must_use]
    pub fn new(scanner: usize, fields: usize, rows: usize, bytes: usize) -> Self {
        Self {
            arena: Vec::with_capacity(bytes),
            records: Vec::with_capacity(rows),
            columns: (0..fields).map(|_| ScannedColumn::with_capacity(rows)).collect(),
            scanner,
            ..Self::default()
        }
    }

    /// The scanner of a row.
    #[must_use]
    #[inline]
    pub fn scanner_of(&self, row: usize) -> usize {
        self.scanners.get(row).copied().unwrap_or(self.scanner)
    }

    /// The rows from now on are of this scanner.
    #[inline]
    pub fn read_by(&mut self, scanner: usize) {
        if scanner != self.scanner {
            self.scanners.resize(self.records.len(), self.scanner);
            self.scanner = scanner;
        }
    }

    /// Keeps the record that was scanned last, of this event type.
    #[inline]
    pub fn push(&mut self, record: Span, kind: Option<Span>, scanner: &Scanner) {
        if !self.scanners.is_empty() {
            self.scanners.push(self.scanner);
        }
        if kind.is_some() || !self.kinds.is_empty() {
            self.kinds.resize(self.records.len(), None);
            self.kinds.push(kind);
        }
        self.records.push(record);
        push_values(&mut self.columns, scanner);
    }

    /// Keeps records as long as they look like `like`, which was scanned last; the answer is how many. Their times are
    /// added to `times`.
    pub fn push_alike(
        &mut self,
        like: Padded<'_>,
        records: &Records,
        candidates: Range<usize>,
        scanner: &mut Scanner,
        times: &mut Vec<i64>,
    ) -> usize {
        let (first, length) = (candidates.start, like.len());
        let mut record = span(self.arena.len(), length);
        scanner.begin_alike(like);
        for index in candidates {
            let Some(ts) = records
                .value(index)
                .and_then(|value| scanner.next_alike(record.begin, value))
            else {
                break;
            };
            times.push(ts);
            push_values(&mut self.columns, scanner);
            record = span(record.begin as usize + length + PADDING, length);
        }
        let count = (record.begin as usize - self.arena.len()) / (length + PADDING);
        let begins = (self.arena.len()..).step_by(length + PADDING).take(count);
        self.records.extend(begins.map(|begin| span(begin, length)));
        self.arena.extend_from_slice(records.run(first..first + count));
        self.padding += count * PADDING;
        if !self.kinds.is_empty() {
            self.kinds.resize(self.records.len(), None);
        }
        if !self.scanners.is_empty() {
            self.scanners.resize(self.records.len(), self.scanner);
        }
        count
    }

    /// How many bytes were written for records.
    #[must_use]
    pub fn written(&self) -> usize {
        self.arena.len() - self.padding
    }

    /// Reads all records again, for other fields.
    pub fn rescan(&mut self, scanners: &mut [Scanner], fields: usize) {
        self.columns = (0..fields).map(|_| ScannedColumn::default()).collect();
        for (row, record) in self.records.iter().enumerate() {
            let scanner = &mut scanners[self.scanners.get(row).copied().unwrap_or(self.scanner)];
            scanner.rescan(&mut self.arena, *record);
            push_values(&mut self.columns, scanner);
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
    pub fn value(&self, field: usize, path: &FieldPath, row: usize, scanners: &[Scanner]) -> Value {
        let value = match self.columns[field].get(row) {
            Scalar::Missing => Value::Unknown,
            Scalar::Int(number) => Value::Int(number),
            Scalar::Float(number) => Value::Float(number),
            Scalar::Bool(truth) => Value::Bool(truth),
            Scalar::Text(span) => Value::Str(self.text(span).into()),
            Scalar::List(span) => {
                let codec = scanners[self.scanner_of(row)].mapping().codec;
                list_value(span.of(&self.arena), codec)
            }
        };
        path.conform(value)
    }

    /// The whole data of a row.
    #[must_use]
    pub fn data(&self, row: usize, scanners: &[Scanner]) -> Data {
        scanners[self.scanner_of(row)].data(self.records[row].of(&self.arena))
    }
}

/// The fields of the record that was scanned last.
#[inline]
fn push_values(columns: &mut [ScannedColumn], scanner: &Scanner) {
    for (field, column) in columns.iter_mut().enumerate() {
        // Most columns are of floats, and stay so.
        if let ScannedColumn::Floats(floats) = column
            && let Some(number) = scanner.float(field)
        {
            floats.push(number);
        } else {
            column.push(scanner.value(field));
        }
    }
}
