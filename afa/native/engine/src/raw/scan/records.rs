//! Raw records as the scanner reads them: each with zeros behind it, so that nothing has to look for the end.

use std::ops::Range;

/// How many zeros follow a record: a whole word can be loaded wherever a byte can stand.
pub const PADDING: usize = 8;
/// No record is that long.
const TOMBSTONE: usize = usize::MAX;

/// A record with zeros behind it.
#[derive(Clone, Copy, Debug)]
pub struct Padded<'a> {
    bytes: &'a [u8],
    length: usize,
}

impl<'a> Padded<'a> {
    /// A record that stands alone, copied to where there is room for the zeros.
    pub fn copied(record: &[u8], room: &'a mut Vec<u8>) -> Self {
        room.clear();
        room.extend_from_slice(record);
        room.extend_from_slice(&[0; PADDING]);
        Self {
            bytes: room,
            length: record.len(),
        }
    }

    /// The record alone.
    #[must_use]
    #[inline]
    pub fn record(self) -> &'a [u8] {
        &self.bytes[..self.length]
    }

    /// The record and the zeros.
    #[inline]
    pub(super) fn padded(self) -> &'a [u8] {
        self.bytes
    }

    /// The eight bytes from here on; zero far behind the end.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // records are shorter, and knowing so spares the check for an overflow
    pub(super) fn word(self, at: usize) -> u64 {
        let at = at as u32 as usize;
        let eight = self.bytes.get(at..at + 8).and_then(|bytes| bytes.first_chunk());
        eight.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    #[cold]
    pub(super) fn is_utf8(self) -> bool {
        std::str::from_utf8(self.record()).is_ok()
    }

    /// How many bytes the record has.
    #[must_use]
    #[inline]
    pub fn len(self) -> usize {
        self.length
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.length == 0
    }
}

/// The values of a batch, one behind the other: what they were copied from need not be kept.
#[derive(Debug, Default)]
pub struct Records {
    bytes: Vec<u8>,
    /// Where each begins, and its length.
    places: Vec<(usize, usize)>,
}

impl Records {
    /// Forgets the records; more room than this is given back.
    pub fn clear(&mut self, most_bytes: usize) {
        self.bytes.clear();
        self.bytes.shrink_to(most_bytes);
        self.places.clear();
        self.places.shrink_to(most_bytes / 64);
    }

    /// Adds a record.
    #[inline]
    pub fn push(&mut self, record: &[u8]) {
        self.places.push((self.bytes.len(), record.len()));
        self.bytes.extend_from_slice(record);
        self.bytes.extend_from_slice(&[0; PADDING]);
    }

    /// Adds a record without a value.
    pub fn push_tombstone(&mut self) {
        self.places.push((0, TOMBSTONE));
    }

    /// How many records there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// How many bytes the records from this one on take, with the zeros behind them.
    #[must_use]
    pub fn bytes_from(&self, index: usize) -> usize {
        let place = self.places.get(index).filter(|(_, length)| *length != TOMBSTONE);
        self.bytes.len() - place.map_or(0, |(begin, _)| *begin)
    }

    /// The bytes of records that follow each other and have values, with the zeros behind each.
    ///
    /// # Panics
    /// If there are fewer records.
    #[must_use]
    pub fn run(&self, records: Range<usize>) -> &[u8] {
        let places = &self.places[records];
        match (places.first(), places.last()) {
            (Some((begin, _)), Some((last, length))) => &self.bytes[*begin..last + length + PADDING],
            _ => &[],
        }
    }

    /// The value of a record; none is a tombstone.
    ///
    /// # Panics
    /// If there are fewer records.
    #[must_use]
    #[inline]
    pub fn value(&self, index: usize) -> Option<Padded<'_>> {
        let (begin, length) = self.places[index];
        (length != TOMBSTONE).then(|| Padded {
            bytes: &self.bytes[begin..begin + length + PADDING],
            length,
        })
    }
}
