//! The classes of rows that may lie in several chunks.

use crate::rows::store::{Rows, parts};

/// Reads the classes of rows for one pattern that keeps them, most of which are of the chunk of the one before.
pub(crate) struct ClassReader<'a> {
    rows: &'a Rows,
    pattern: usize,
    number: usize,
    classes: &'a [u32],
}

impl<'a> ClassReader<'a> {
    pub(crate) fn new(rows: &'a Rows, pattern: usize) -> Self {
        Self {
            rows,
            pattern,
            number: usize::MAX,
            classes: &[],
        }
    }

    /// The class of a row.
    #[inline]
    pub(crate) fn of(&mut self, row: u32) -> u32 {
        let (number, offset) = parts(row);
        if number != self.number {
            (self.number, self.classes) = (number, self.rows.chunk(number).classes(self.pattern));
        }
        self.classes[offset]
    }
}
