//! The rows: every event that is stored, or the start of a partial match, by the order of its arrival.
//!
//! A row's number is its chunk's and its place in it. Numbers of chunks only rise until they run out, so a word that
//! refers to a chunk that went is known to be past its window, not mistaken for another.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use prefetch_index::prefetch_index;

use crate::predicates::index::PredicateIndex;
use crate::predicates::predicate::{Fields, Predicates};
use crate::program::expression::FieldPath;
use crate::raw::scan::{Head, Mapping, Scanner, Span};
use crate::rows::chunk::{CHUNK_BITS, Chunk, Payload};
use crate::rows::event::{IdRef, canonical_bytes};
use crate::rows::stretch::Stretch;
use crate::rows::view::RowView;

/// The most chunks at once: what 32 bits leave for them.
const MAX_CHUNKS: usize = 1 << (32 - CHUNK_BITS);
const OFFSET_MASK: u32 = (1 << CHUNK_BITS) - 1;

/// All chunks.
#[derive(Default)]
pub struct Rows {
    /// What reads raw records.
    pub scanners: Vec<Scanner>,
    /// The fields that they read.
    pub fields: Fields,
    chunks: Vec<Option<Box<Chunk>>>,
    /// Where the next number is looked for.
    next: usize,
    live: usize,
    /// Sequence numbers that other records of a row's identity carried; few have any.
    other_seqs: HashMap<u32, Vec<i64>, FixedState>,
    /// No chunk before this one is there.
    first: usize,
}

/// The number of a row.
#[must_use]
#[allow(clippy::cast_possible_truncation)] // both are bounded by construction
pub fn row_number(chunk: usize, offset: usize) -> u32 {
    (chunk as u32) << CHUNK_BITS | offset as u32
}

/// The chunk of a row, and its place in it.
#[must_use]
#[inline]
pub fn parts(row: u32) -> (usize, usize) {
    ((row >> CHUNK_BITS) as usize, (row & OFFSET_MASK) as usize)
}

/// Looks at rows one after the other, most of which are of the chunk of the one before.
pub(crate) struct Reader<'a> {
    rows: &'a Rows,
    number: usize,
    chunk: Option<&'a Chunk>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(rows: &'a Rows) -> Self {
        Self {
            rows,
            number: 0,
            chunk: None,
        }
    }

    /// The chunk of a row, and its place there.
    #[inline]
    pub(crate) fn find(&mut self, row: u32) -> (&'a Chunk, usize) {
        let (number, offset) = parts(row);
        match self.chunk {
            Some(chunk) if number == self.number => (chunk, offset),
            _ => {
                let chunk = self.rows.chunk(number);
                (self.number, self.chunk) = (number, Some(chunk));
                (chunk, offset)
            }
        }
    }

    /// Event time of a row.
    #[inline]
    pub(crate) fn ts(&mut self, row: u32) -> i64 {
        let (chunk, offset) = self.find(row);
        chunk.times()[offset]
    }
}

impl Rows {
    /// Keeps a chunk and answers with its number; true if numbers begin again, so that old references must be purged
    /// before the chunk is used.
    ///
    /// # Panics
    /// If there are 2^20 chunks.
    pub fn add(&mut self, chunk: Chunk) -> (usize, bool) {
        assert!(self.live < MAX_CHUNKS, "more than 2^32 events are stored");
        let mut wrapped = false;
        while self.next < self.chunks.len() && self.chunks[self.next].is_some() || self.next >= MAX_CHUNKS {
            self.next += 1;
            if self.next >= MAX_CHUNKS {
                (self.next, wrapped) = (0, true);
            }
        }
        if self.next == self.chunks.len() {
            self.chunks.push(None);
        }
        self.chunks[self.next] = Some(Box::new(chunk));
        self.first = self.first.min(self.next);
        self.live += 1;
        self.next += 1;
        (self.next - 1, wrapped)
    }

    /// A chunk that is there.
    ///
    /// # Panics
    /// If it is not.
    #[must_use]
    #[inline]
    pub fn chunk(&self, number: usize) -> &Chunk {
        self.chunks[number].as_ref().expect("a chunk in use")
    }

    /// The same, to be changed.
    ///
    /// # Panics
    /// If it is not.
    #[inline]
    pub fn chunk_mut(&mut self, number: usize) -> &mut Chunk {
        self.chunks[number].as_mut().expect("a chunk in use")
    }

    /// A chunk to be filled, and the scanners that fill it.
    ///
    /// # Panics
    /// If the chunk is not there.
    pub fn chunk_and_scanners(&mut self, number: usize) -> (&mut Chunk, &mut [Scanner]) {
        let chunk = self.chunks[number].as_mut().expect("a chunk in use");
        (chunk, &mut self.scanners)
    }

    /// A text of a chunk of raw records.
    pub(crate) fn text(&self, chunk: usize, span: Span) -> &str {
        match &self.chunk(chunk).payload {
            Payload::Scanned(rows) => rows.text(span),
            _ => "",
        }
    }

    /// The number of the scanner of a mapping, new or known.
    pub fn scanner(&mut self, mapping: Mapping) -> usize {
        let known = self.scanners.iter().position(|known| *known.mapping() == mapping);
        known.unwrap_or_else(|| {
            self.scanners.push(Scanner::new(mapping, &self.fields.paths));
            self.scanners.len() - 1
        })
    }

    /// Whether another raw record of this scanner may be added to a chunk, which may be gone.
    #[must_use]
    pub fn takes_records_of(&self, number: usize, scanner: usize) -> bool {
        self.chunks.get(number).and_then(Option::as_ref).is_some_and(|chunk| {
            let is_its = matches!(&chunk.payload, Payload::Scanned(rows) if rows.scanner == scanner);
            is_its && chunk.has_room()
        })
    }

    /// Keeps the raw record that was scanned last.
    ///
    /// # Panics
    /// If the chunk is not there, or not one of raw records.
    pub fn push_scanned(&mut self, chunk: usize, record: Span, head: &Head, number: u64) {
        let chunk = self.chunks[chunk].as_mut().expect("a chunk in use");
        let Payload::Scanned(rows) = &chunk.payload else {
            panic!("a chunk of raw records");
        };
        let scanner = rows.scanner;
        chunk.push(record, head, &self.scanners[scanner], number);
    }

    /// Event time of a stored row.
    #[must_use]
    #[inline]
    pub fn ts(&self, row: u32) -> i64 {
        let (chunk, offset) = parts(row);
        self.chunk(chunk).times()[offset]
    }

    /// Fetches the time of a row from memory, for whoever asks for it soon.
    #[inline]
    pub(crate) fn prefetch_ts(&self, row: u32) {
        let (chunk, offset) = parts(row);
        if let Some(chunk) = self.chunks.get(chunk).and_then(Option::as_ref) {
            prefetch_index(chunk.times(), offset);
        }
    }

    /// Event time of a start row; none if it is long past every window.
    #[must_use]
    #[inline]
    pub fn start_ts(&self, row: u32) -> Option<i64> {
        let (chunk, offset) = parts(row);
        self.chunks.get(chunk)?.as_ref().map(|chunk| chunk.times()[offset])
    }

    /// The id of a row.
    #[must_use]
    pub fn id(&self, row: u32) -> IdRef<'_> {
        let (chunk, offset) = parts(row);
        self.chunk(chunk).id(offset)
    }

    /// The sequence number of a row.
    #[must_use]
    pub fn seq(&self, row: u32) -> Option<i64> {
        let (chunk, offset) = parts(row);
        self.chunk(chunk).seq(offset)
    }

    /// The revision of a row.
    #[must_use]
    pub fn rev(&self, row: u32) -> i64 {
        let (chunk, offset) = parts(row);
        self.chunk(chunk).rev(offset)
    }

    /// What decides between two different inserts of equal `rev`; a number wins against none.
    #[must_use]
    pub fn rank(&self, row: u32) -> (i64, Vec<u8>, bool) {
        let (chunk, offset) = parts(row);
        let chunk = self.chunk(chunk);
        let (seq, data) = (chunk.seq(offset), chunk.data(offset, &self.scanners));
        (
            chunk.rev(offset),
            canonical_bytes(chunk.kind(offset), seq, &data),
            seq.is_some(),
        )
    }

    /// A row as expressions see it.
    #[must_use]
    #[inline]
    pub fn view(&self, row: u32) -> RowView<'_> {
        let (chunk, offset) = parts(row);
        self.view_of(self.chunk(chunk), offset)
    }

    /// A row of a chunk as expressions see it.
    #[must_use]
    #[inline]
    pub fn view_of<'a>(&'a self, chunk: &'a Chunk, offset: usize) -> RowView<'a> {
        RowView {
            chunk,
            offset,
            fields: &self.fields,
            scanners: &self.scanners,
        }
    }

    /// Sees to it that predicates are evaluated for all rows of a chunk.
    ///
    /// # Panics
    /// If the chunk is not there.
    pub fn ready_truths(&mut self, chunk: usize, index: &PredicateIndex, predicates: &mut Predicates) {
        let chunk = self.chunks[chunk].as_mut().expect("a chunk in use");
        chunk.ready_truths(index, predicates, &self.fields, &self.scanners);
    }

    /// From now on reads these fields too, of stored records as well.
    pub fn add_fields(&mut self, paths: &[FieldPath]) {
        let mut is_new = false;
        for path in paths {
            is_new |= self.fields.add(path);
        }
        if !is_new {
            return;
        }
        for scanner in &mut self.scanners {
            scanner.set_fields(&self.fields.paths);
        }
        for chunk in self.chunks.iter_mut().flatten() {
            if let Payload::Scanned(rows) = &mut chunk.payload {
                rows.rescan(&mut self.scanners, self.fields.paths.len());
            }
        }
    }

    /// The class of a row for a pattern that keeps them.
    #[must_use]
    #[inline]
    pub fn class(&self, pattern: usize, row: u32) -> u32 {
        let (chunk, offset) = parts(row);
        self.chunk(chunk).class(pattern, offset)
    }

    /// Changes it.
    pub fn set_class(&mut self, pattern: usize, row: u32, class: u32) {
        let (chunk, offset) = parts(row);
        self.chunk_mut(chunk).classes_mut(pattern)[offset] = class;
    }

    /// The total order of a key's events.
    #[must_use]
    pub fn order(&self, one: u32, other: u32) -> std::cmp::Ordering {
        let plain = (self.ts(one), self.seq(one).unwrap_or(0)).cmp(&(self.ts(other), self.seq(other).unwrap_or(0)));
        plain.then_with(|| self.id(one).cmp(&self.id(other)))
    }

    /// Notes another sequence number that a record of the row's identity carried.
    pub fn remember_seq(&mut self, row: u32, seq: Option<i64>) {
        let Some(seq) = seq else { return };
        if self.seq(row) != Some(seq) {
            let others = self.other_seqs.entry(row).or_default();
            if !others.contains(&seq) {
                others.push(seq);
            }
        }
    }

    /// Every sequence number that a record of the row's identity carried.
    #[must_use]
    pub fn seqs(&self, row: u32) -> Vec<i64> {
        let others = self.other_seqs.get(&row).into_iter().flatten().copied();
        self.seq(row).into_iter().chain(others).collect()
    }

    /// Notes that entries of keys refer to rows of a chunk, the newest of this time.
    #[inline]
    pub fn store(&mut self, chunk: usize, count: usize, newest: i64) {
        let chunk = self.chunk_mut(chunk);
        chunk.stored += count;
        chunk.newest = chunk.newest.max(Some(newest));
    }

    /// Notes that an entry of a key refers to each of these rows, which are in event order.
    pub fn store_all(&mut self, rows: Stretch<'_>) {
        let mut at = 0;
        while at < rows.len() {
            let chunk = parts(rows.row(at)).0;
            let begin = at;
            while at < rows.len() && parts(rows.row(at)).0 == chunk {
                at += 1;
            }
            let newest = self.ts(rows.row(at - 1));
            self.store(chunk, at - begin, newest);
        }
    }

    /// Notes that no entry of a key refers to this row any more.
    pub fn release(&mut self, row: u32) {
        if !self.other_seqs.is_empty() {
            self.other_seqs.remove(&row);
        }
        self.chunk_mut(parts(row).0).stored -= 1;
    }

    /// The same for rows of one chunk, none of which has other sequence numbers.
    pub fn release_run(&mut self, chunk: usize, count: usize) {
        self.chunk_mut(chunk).stored -= count;
    }

    /// Whether other sequence numbers are remembered for any row.
    #[must_use]
    pub fn has_other_seqs(&self) -> bool {
        !self.other_seqs.is_empty()
    }

    /// How many chunks there are.
    #[must_use]
    pub fn live_chunks(&self) -> usize {
        self.live
    }

    /// All chunks with their numbers.
    pub fn chunks_mut(&mut self) -> impl Iterator<Item = (usize, &mut Chunk)> {
        let chunks = self.chunks[self.first..].iter_mut().enumerate();
        let first = self.first;
        chunks.filter_map(move |(number, chunk)| chunk.as_mut().map(|chunk| (first + number, &mut **chunk)))
    }

    /// Lets payloads of chunks go that no entry refers to, and whole chunks for which `is_past(newest)` holds. Those
    /// `in_use` are still being filled or taken.
    pub fn clean(&mut self, in_use: [Option<usize>; 2], is_past: impl Fn(usize, i64) -> bool) {
        let (mut kept_one, mut live) = (false, self.live);
        for number in self.first..self.chunks.len() {
            let Some(chunk) = &mut self.chunks[number] else {
                if !kept_one {
                    self.first = number + 1;
                }
                continue;
            };
            if chunk.stored > 0 || in_use.contains(&Some(number)) {
                kept_one = true;
            } else if chunk.newest.is_none_or(|newest| is_past(number, newest)) {
                self.chunks[number] = None;
                live -= 1;
                if !kept_one {
                    self.first = number + 1;
                }
            } else {
                chunk.drop_payload();
                kept_one = true;
            }
        }
        self.live = live;
    }

    /// Room for a mark per chunk.
    #[must_use]
    pub fn marks(&self) -> Vec<bool> {
        vec![false; self.chunks.len()]
    }
}
