//! A row as expressions see it.

use crate::predicates::predicate::Fields;
use crate::program::expression::{EventView, FieldPath};
use crate::program::value::Value;
use crate::raw::scan::Scanner;
use crate::rows::chunk::{Chunk, Payload};

/// One event of a chunk, as expressions see it.
#[derive(Clone, Copy)]
pub struct RowView<'a> {
    /// Its chunk.
    pub chunk: &'a Chunk,
    /// Its place there.
    pub offset: usize,
    /// The fields that scanners read.
    pub fields: &'a Fields,
    /// The scanners.
    pub scanners: &'a [Scanner],
}

impl EventView for RowView<'_> {
    fn field(&self, path: &FieldPath) -> Value {
        match &self.chunk.payload {
            Payload::Gone => Value::Unknown,
            Payload::Arrow(rows) => rows.field(path, self.chunk.place(self.offset)),
            Payload::Scanned(rows) => match self.fields.find(path) {
                Some(field) => {
                    let place = self.chunk.place(self.offset);
                    rows.value(field, path, place, self.scanners)
                }
                None => Value::Unknown,
            },
        }
    }

    fn ts(&self) -> i64 {
        self.chunk.times()[self.offset]
    }

    fn kind(&self) -> Value {
        self.chunk
            .kind(self.offset)
            .map_or(Value::Unknown, |kind| Value::Str(kind.into()))
    }

    fn id(&self) -> Value {
        Value::Str(self.chunk.id(self.offset).text().into())
    }
}
