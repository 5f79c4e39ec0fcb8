//! Chunks: events in order of arrival, up to 4,096 at a time, with what every pattern wants to know of each of them.
//!
//! Rows of a batch that is told net are numbered anew once all of it is there: by key, and in event order. Then the rows
//! of a key follow each other, as those of a stream in order do. What came with them stays where it is.

use arrow_buffer::ScalarBuffer;

use crate::arrow::rows::ArrowRows;
use crate::arrow::text::Texts;
use crate::predicates::index::PredicateIndex;
use crate::predicates::kernel::{WORD_ROWS, words};
use crate::predicates::predicate::{Fields, Predicates};
use crate::predicates::truths::{TruthTable, Truths};
use crate::raw::rows::ScannedRows;
use crate::raw::scan::{Head, PADDING, Padded, Records, Scanner, Span};
use crate::rows::event::{Data, IdRef};

/// Rows of a chunk are numbered with this many bits.
pub const CHUNK_BITS: u32 = 12;
/// The most rows of a chunk.
pub const CHUNK_ROWS: usize = 1 << CHUNK_BITS;
/// A chunk of raw records is full when it has this many bytes.
const CHUNK_BYTES: usize = 16 << 20;

/// What came with the events.
#[derive(Debug)]
pub enum Payload {
    /// No longer needed.
    Gone,
    /// Raw records.
    Scanned(Box<ScannedRows>),
    /// Rows of a record batch.
    Arrow(ArrowRows),
}

#[derive(Debug)]
enum Times {
    Owned(Vec<i64>),
    Arrow(ScalarBuffer<i64>),
}

#[derive(Clone, Copy, Debug)]
enum IdSlot {
    Number(u64),
    Text(u32, u32),
}

#[derive(Debug)]
enum Ids {
    /// The id of a row is its number.
    Numbers(u64),
    Mixed(Vec<IdSlot>, Vec<u8>),
    /// Texts from a row on; those without one have a number.
    Arrow(Texts, usize, u64),
}

/// Events in order of arrival, or as they were numbered anew.
#[derive(Debug)]
pub struct Chunk {
    /// Where the payload has each row, and the truths; beyond its end a row is at its own number.
    places: Vec<u16>,
    times: Times,
    ids: Ids,
    /// Empty: no row has one.
    seqs: Vec<Option<i64>>,
    /// Empty: all are 0.
    revs: Vec<i64>,
    /// What came with the events.
    pub payload: Payload,
    truths: TruthTable,
    classes: Vec<Vec<u32>>,
    /// How many entries of keys refer to it.
    pub stored: usize,
    /// The greatest time of its events that were stored.
    pub newest: Option<i64>,
}

impl Chunk {
    fn of(times: Times, ids: Ids, payload: Payload) -> Self {
        Self {
            places: Vec::new(),
            times,
            ids,
            seqs: Vec::new(),
            revs: Vec::new(),
            payload,
            truths: TruthTable::default(),
            classes: Vec::new(),
            stored: 0,
            newest: None,
        }
    }

    /// An empty chunk for raw records. So many are expected, of so many bytes each.
    #[must_use]
    pub fn scanned(scanner: usize, fields: usize, coming: usize, bytes: usize) -> Self {
        let rows = coming.min(CHUNK_ROWS);
        let bytes = bytes.saturating_mul(rows).min(CHUNK_BYTES);
        let payload = Payload::Scanned(Box::new(ScannedRows::new(scanner, fields, rows, bytes)));
        let (times, ids) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
        Self::of(Times::Owned(times), Ids::Mixed(ids, Vec::new()), payload)
    }

    /// The rows of a record batch, at most `CHUNK_ROWS`; `first_number` makes the ids of rows without one.
    #[must_use]
    pub fn arrow(rows: ArrowRows, first_number: u64) -> Self {
        let times = Times::Arrow(rows.time_buffer());
        let ids = match rows.ids() {
            Some((texts, offset)) => Ids::Arrow(texts, offset, first_number),
            None => Ids::Numbers(first_number),
        };
        let seqs = if rows.has_seqs() {
            (0..rows.len()).map(|row| rows.seq(row)).collect()
        } else {
            Vec::new()
        };
        let revs = if rows.has_revs() {
            (0..rows.len()).map(|row| rows.rev(row)).collect()
        } else {
            Vec::new()
        };
        let mut chunk = Self::of(times, ids, Payload::Arrow(rows));
        (chunk.seqs, chunk.revs) = (seqs, revs);
        chunk
    }

    /// How many rows it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.times().len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether another raw record may be added.
    #[must_use]
    pub fn has_room(&self) -> bool {
        let small = matches!(&self.payload, Payload::Scanned(rows) if rows.arena.len() < CHUNK_BYTES);
        small && self.len() < CHUNK_ROWS
    }

    /// Event times.
    #[must_use]
    #[inline]
    pub fn times(&self) -> &[i64] {
        match &self.times {
            Times::Owned(times) => times,
            Times::Arrow(times) => times,
        }
    }

    /// Where the payload has a row.
    #[inline]
    pub(crate) fn place(&self, offset: usize) -> usize {
        self.places.get(offset).map_or(offset, |place| usize::from(*place))
    }

    /// Whether rows lie in the payload in another order than that of their numbers.
    #[must_use]
    pub(crate) fn is_reordered(&self) -> bool {
        !self.places.is_empty()
    }

    /// Numbers rows anew: from `first` on, those at these offsets follow each other, which are as many rows from there on,
    /// each once. None of them is stored, or was numbered anew before.
    #[allow(clippy::cast_possible_truncation)] // places of a chunk have fewer bits
    pub fn reorder(&mut self, first: usize, order: &[u16]) {
        let end = first + order.len();
        match &mut self.times {
            Times::Owned(times) => gather(times, first, order),
            Times::Arrow(times) => {
                let mut owned = pick(times, order);
                if owned.len() < times.len() {
                    owned = [&times[..first], &owned, &times[end..]].concat();
                }
                self.times = Times::Owned(owned);
            }
        }
        if let Ids::Mixed(slots, _) = &mut self.ids {
            gather(slots, first, order);
        }
        gather(&mut self.seqs, first, order);
        gather(&mut self.revs, first, order);
        for classes in self.classes.iter_mut().filter(|classes| classes.len() >= end) {
            gather(classes, first, order);
        }
        let known = self.places.len();
        debug_assert!(known <= first, "rows are numbered anew once");
        self.places.extend((known..first).map(|place| place as u16));
        self.places.extend_from_slice(order);
    }

    /// The id of the first row, if those of all rows are numbers from it on.
    #[must_use]
    pub fn first_id(&self) -> Option<u64> {
        match self.ids {
            Ids::Numbers(first) if !self.is_reordered() => Some(first),
            _ => None,
        }
    }

    /// The id of a row.
    #[must_use]
    pub fn id(&self, offset: usize) -> IdRef<'_> {
        match &self.ids {
            Ids::Numbers(first) => IdRef::Number(first + self.place(offset) as u64),
            Ids::Mixed(slots, texts) => match slots[offset] {
                IdSlot::Number(number) => IdRef::Number(number),
                IdSlot::Text(begin, length) => {
                    let bytes = &texts[begin as usize..(begin + length) as usize];
                    IdRef::of(std::str::from_utf8(bytes).unwrap_or_default())
                }
            },
            Ids::Arrow(texts, from, first) => {
                let place = self.place(offset);
                texts
                    .get(from + place)
                    .map_or(IdRef::Number(first + place as u64), IdRef::of)
            }
        }
    }

    /// The sequence number of a row.
    #[must_use]
    #[inline]
    pub fn seq(&self, offset: usize) -> Option<i64> {
        self.seqs.get(offset).copied().flatten()
    }

    /// The revision of a row.
    #[must_use]
    pub fn rev(&self, offset: usize) -> i64 {
        self.revs.get(offset).copied().unwrap_or(0)
    }

    /// Adds the raw record that was scanned last; `number` makes its id if it has none.
    #[allow(clippy::cast_possible_truncation)] // bounded by `has_room` and the size of a record
    pub fn push(&mut self, record: Span, head: &Head, scanner: &Scanner, number: u64) {
        let (Payload::Scanned(rows), Times::Owned(times), Ids::Mixed(slots, texts)) =
            (&mut self.payload, &mut self.times, &mut self.ids)
        else {
            unreachable!("raw records are added to chunks of raw records");
        };
        slots.push(match head.id {
            None => IdSlot::Number(number),
            Some(span) => {
                let begin = texts.len() as u32;
                texts.extend_from_slice(span.of(&rows.arena));
                IdSlot::Text(begin, span.length)
            }
        });
        rows.push(record, head.kind, scanner);
        if head.seq.is_some() || !self.seqs.is_empty() {
            self.seqs.resize(times.len(), None);
            self.seqs.push(head.seq);
        }
        if head.rev != 0 || !self.revs.is_empty() {
            self.revs.resize(times.len(), 0);
            self.revs.push(head.rev);
        }
        times.push(head.ts);
    }

    /// The same for one with a plain head.
    #[inline]
    pub fn push_plain(&mut self, record: Span, ts: i64, scanner: &Scanner, number: u64) {
        let (Payload::Scanned(rows), Times::Owned(times), Ids::Mixed(slots, _)) =
            (&mut self.payload, &mut self.times, &mut self.ids)
        else {
            unreachable!("raw records are added to chunks of raw records");
        };
        slots.push(IdSlot::Number(number));
        rows.push(record, None, scanner);
        if !self.seqs.is_empty() {
            self.seqs.push(None);
        }
        if !self.revs.is_empty() {
            self.revs.push(0);
        }
        times.push(ts);
    }

    /// Adds records as long as they look like `like`, which was scanned last and had a plain head; the answer is how many.
    /// `number` makes the id of the first.
    pub fn push_alike(
        &mut self,
        like: Padded<'_>,
        records: &Records,
        first: usize,
        scanner: &mut Scanner,
        number: u64,
    ) -> usize {
        let (Payload::Scanned(rows), Times::Owned(times), Ids::Mixed(slots, _)) =
            (&mut self.payload, &mut self.times, &mut self.ids)
        else {
            unreachable!("raw records are added to chunks of raw records");
        };
        let room = CHUNK_BYTES.saturating_sub(rows.arena.len()) / (like.len() + PADDING);
        let most = room.min(CHUNK_ROWS - times.len()).min(records.len() - first);
        let count = rows.push_alike(like, records, first..first + most, scanner, times);
        slots.extend((number..number + count as u64).map(IdSlot::Number));
        if !self.seqs.is_empty() {
            self.seqs.resize(times.len(), None);
        }
        if !self.revs.is_empty() {
            self.revs.resize(times.len(), 0);
        }
        count
    }

    /// The event type of a row.
    #[must_use]
    pub fn kind(&self, offset: usize) -> Option<&str> {
        match &self.payload {
            Payload::Gone => None,
            Payload::Scanned(rows) => rows.kind(self.place(offset)),
            Payload::Arrow(rows) => rows.kind(self.place(offset)),
        }
    }

    /// The whole data of a row.
    #[must_use]
    pub fn data(&self, offset: usize, scanners: &[Scanner]) -> Data {
        match &self.payload {
            Payload::Gone => Data::Map(Vec::new()),
            Payload::Scanned(rows) => rows.data(self.place(offset), scanners),
            Payload::Arrow(rows) => rows.data(self.place(offset)),
        }
    }

    /// About how many bytes came with each row.
    #[must_use]
    pub fn average_bytes(&self) -> usize {
        match &self.payload {
            Payload::Gone => 0,
            Payload::Scanned(rows) => rows.written() / self.len().max(1),
            Payload::Arrow(rows) => rows.fields() * size_of::<i64>(),
        }
    }

    /// Lets the payload go: no event of this chunk is stored any more, only starts of partial matches may be.
    pub fn drop_payload(&mut self) {
        self.payload = Payload::Gone;
        self.truths = TruthTable::default();
        self.classes = Vec::new();
    }

    /// Sees to it that the truths of predicates are computed for all rows that there are.
    pub fn ready_truths(
        &mut self,
        index: &PredicateIndex,
        predicates: &mut Predicates,
        fields: &Fields,
        scanners: &[Scanner],
    ) {
        if index.is_ready(&self.truths, self.len()) {
            return;
        }
        let most_rows = match self.payload {
            // More may come.
            Payload::Scanned(_) => CHUNK_ROWS,
            _ => self.len(),
        };
        let mut truths = std::mem::take(&mut self.truths);
        truths.make_room(index.predicates(), words(most_rows));
        index.evaluate(self, &mut truths, predicates, fields, scanners);
        self.truths = truths;
    }

    /// Those of some predicates whose truths are not computed for all rows.
    #[must_use]
    #[inline]
    pub fn missing_truths(&self, predicates: &[u32]) -> Vec<u32> {
        let rows = self.len();
        let is_missing = |predicate: &&u32| self.truths.filled(**predicate) < rows;
        predicates.iter().filter(is_missing).copied().collect()
    }

    /// Forgets the truths of predicates whose numbers are to be given to others.
    pub fn forget_truths(&mut self, predicates: &[u32]) {
        for predicate in predicates {
            self.truths.forget(*predicate);
        }
    }

    /// The truths of a predicate that were computed before, of rows in order of arrival.
    #[must_use]
    #[inline]
    pub fn truths(&self, predicate: u32) -> Truths<'_> {
        self.truths.of(predicate)
    }

    /// Whether a predicate, whose truths were computed before, is true of a row.
    #[must_use]
    #[inline]
    pub fn is_true(&self, predicate: u32, offset: usize) -> bool {
        self.truths(predicate).get(self.place(offset))
    }

    /// The rows from the first on that came after `filled` others, with where each of them came.
    pub(crate) fn arrived_after(&self, filled: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        let from = if self.places.is_empty() { filled } else { 0 };
        let arrived = (from..self.len()).map(|offset| (offset, self.place(offset)));
        arrived.filter(move |(_, place)| *place >= filled)
    }

    /// The truths of a predicate for 64 rows from an offset on; where they were not computed they are 0.
    #[must_use]
    #[inline]
    pub fn truth_word(&self, predicate: u32, offset: usize) -> u64 {
        let truths = self.truths.of(predicate);
        if self.places.is_empty() {
            return truths.word(offset);
        }
        let rows = offset..self.len().min(offset + WORD_ROWS);
        rows.enumerate().fold(0, |word, (bit, offset)| {
            word | (truths.word(self.place(offset)) & 1) << bit
        })
    }

    /// The truths of a predicate from the first row on in order of arrival, 64 per word, as far as they were computed.
    #[must_use]
    pub fn truth_words(&self, predicate: u32) -> &[u64] {
        self.truths(predicate).words()
    }

    /// The words of 64 rows, as bits, in which a predicate is true of any; none where it was not computed.
    #[must_use]
    #[inline]
    pub fn some_true(&self, predicate: u32) -> u64 {
        self.truths.some(predicate)
    }

    /// The class of a row for a pattern that keeps them.
    #[must_use]
    #[inline]
    pub fn class(&self, pattern: usize, offset: usize) -> u32 {
        self.classes[pattern][offset]
    }

    /// The classes of all rows for a pattern that keeps them.
    #[must_use]
    #[inline]
    pub fn classes(&self, pattern: usize) -> &[u32] {
        &self.classes[pattern]
    }

    /// The classes of the rows for a pattern, to be filled.
    pub fn classes_mut(&mut self, pattern: usize) -> &mut Vec<u32> {
        if self.classes.len() <= pattern {
            self.classes.resize_with(pattern + 1, Vec::new);
        }
        &mut self.classes[pattern]
    }
}

/// The values at these offsets.
fn pick<T: Copy>(values: &[T], order: &[u16]) -> Vec<T> {
    let offsets = order.iter().map(|offset| usize::from(*offset));
    match values.first_chunk::<CHUNK_ROWS>() {
        // Nothing has to be checked for each.
        Some(full) => offsets.map(|offset| full[offset % CHUNK_ROWS]).collect(),
        None => offsets.map(|offset| values[offset]).collect(),
    }
}

/// Puts values from one on into the order of these offsets; there may be none at all.
fn gather<T: Copy>(values: &mut Vec<T>, first: usize, order: &[u16]) {
    if values.is_empty() {
        return;
    }
    let gathered = pick(values, order);
    if gathered.len() == values.len() {
        *values = gathered;
    } else {
        values[first..first + order.len()].copy_from_slice(&gathered);
    }
}
