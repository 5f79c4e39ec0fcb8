//! The one door for records: raw ones and record batches, with punctuations and arc changes in their place.

use crate::change_table::{ChangeKind, ChangeRow};
use crate::chunk::{Chunk, Payload};
use crate::domain::Origin;
use crate::engine::{Engine, Retraction, SOURCE};
use crate::event::IdRef;
use crate::rows::Rows;
use crate::scan::{Envelope, Head, Operation, Span};
use crate::segment::{Fed, Net, Segment};

/// One raw record.
#[derive(Clone, Copy, Debug)]
pub struct Raw<'a> {
    /// Its bytes; none is a tombstone.
    pub value: Option<&'a [u8]>,
    /// What Kafka keeps beside them.
    pub envelope: Envelope<'a>,
    /// Where it comes from.
    pub origin: Origin,
    /// The number that makes its id if it has none.
    pub number: u64,
}

/// A batch on its way in.
#[derive(Debug)]
pub struct Feeding {
    pub(crate) net: Net,
    pub(crate) segment: Segment,
    /// What became of its records.
    pub fed: Fed,
    /// Whether keys were taken up more than once, so that what was told has to be netted.
    flushes: usize,
    first_change: usize,
    /// Whether raw records after a bad one are left alone.
    stops_at_bad: bool,
}

impl Feeding {
    /// A batch that begins.
    #[must_use]
    pub fn new(net: Net, stops_at_bad: bool) -> Self {
        Self {
            stops_at_bad,
            net,
            segment: Segment::default(),
            fed: Fed::default(),
            flushes: 0,
            first_change: 0,
        }
    }
}

impl Engine {
    /// Ends a batch: what waits is taken, and partitions advance.
    pub fn finish(&mut self, feeding: &mut Feeding) {
        self.take_segment(&mut feeding.segment, feeding.net, &mut feeding.fed);
        if feeding.net == Net::Record {
            return;
        }
        self.flush(feeding);
        let first = self.table.rows.len();
        self.advance_all();
        let is_match = |row: &ChangeRow| row.kind != ChangeKind::Punctuation;
        if self.table.rows[first..].iter().any(is_match) {
            feeding.flushes += 1;
        }
        if feeding.flushes > 1 {
            self.table.net_from(feeding.first_change);
        }
        self.order_from(feeding.first_change);
    }

    fn flush(&mut self, feeding: &mut Feeding) {
        self.take_segment(&mut feeding.segment, feeding.net, &mut feeding.fed);
        if !feeding.segment.pending.is_empty() {
            feeding.flushes += 1;
            feeding.flushes += usize::from(self.take_pending(&mut feeding.segment));
        }
    }

    /// Everything before a record that is no insert has to be taken first. In a batch told net, a punctuation only
    /// decides what is late.
    pub(crate) fn before_other(&mut self, feeding: &mut Feeding, is_punctuation: bool) {
        if is_punctuation {
            self.take_segment(&mut feeding.segment, feeding.net, &mut feeding.fed);
        } else {
            self.flush(feeding);
            feeding.flushes += 1;
        }
        self.findings.record = 0;
    }

    /// Takes raw records, the first of which has this index in the batch. Stops before a record that names texts that
    /// were not checked yet: then `fed.asks` has its index.
    pub fn feed_raw<'a>(&mut self, feeding: &mut Feeding, first: u32, records: impl Iterator<Item = Raw<'a>>) {
        (feeding.fed.asks, feeding.fed.condition) = (None, None);
        let mut only_origin = feeding.segment.origin;
        for (index, raw) in (first..).zip(records) {
            if feeding.stops_at_bad && !feeding.fed.bad.is_empty() {
                return;
            }
            let open = self.open_chunk(feeding);
            if feeding.segment.keys.is_empty() {
                (feeding.segment.chunk, feeding.segment.first) = (open, self.rows.chunk(open).len());
                feeding.segment.origin = raw.origin;
                only_origin = raw.origin;
            }
            let (begin, scanned) = self.scan(open, &raw);
            let head = match scanned {
                Ok(head) => head,
                Err(reason) => {
                    feeding.fed.bad.push((index, reason));
                    continue;
                }
            };
            if head.operation == Operation::Insert {
                self.take_raw_insert(feeding, open, begin, &head, &raw, index, only_origin);
            } else if !self.take_other(feeding, open, begin, &head, &raw, index) {
                feeding.fed.asks = Some(index);
                return;
            }
        }
    }

    fn open_chunk(&mut self, feeding: &mut Feeding) -> usize {
        if let Some(open) = self.open {
            if self.rows.chunk(open).has_room() {
                return open;
            }
            self.take_segment(&mut feeding.segment, feeding.net, &mut feeding.fed);
        }
        let chunk = Chunk::scanned(SOURCE, self.rows.fields.paths.len());
        let number = self.add_chunk(chunk);
        self.open = Some(number);
        number
    }

    pub(crate) fn add_chunk(&mut self, chunk: Chunk) -> usize {
        let (number, wrapped) = self.rows.add(chunk);
        if wrapped {
            self.clean_all();
        }
        number
    }

    /// Copies a record into the open chunk and reads it there.
    fn scan(&mut self, open: usize, raw: &Raw<'_>) -> (usize, Result<Head, String>) {
        let (chunk, scanner) = self.rows.chunk_and_scanner(open, SOURCE);
        let Payload::Scanned(rows) = &mut chunk.payload else {
            unreachable!("the open chunk holds raw records");
        };
        let begin = rows.arena.len();
        let outcome = match raw.value {
            Some(value) => {
                rows.arena.extend_from_slice(value);
                scanner.scan(&mut rows.arena, begin, &raw.envelope)
            }
            None => scanner.scan_tombstone(&mut rows.arena, &raw.envelope),
        };
        if outcome.is_err() {
            rows.arena.truncate(begin);
        }
        (begin, outcome.map(|()| *scanner.head()).map_err(|bad| bad.what))
    }

    #[allow(clippy::too_many_arguments)]
    fn take_raw_insert(
        &mut self,
        feeding: &mut Feeding,
        open: usize,
        begin: usize,
        head: &Head,
        raw: &Raw<'_>,
        index: u32,
        only_origin: Origin,
    ) {
        let Some(key) = self.raw_key(open, head, raw.origin.domain) else {
            self.forget_record(open, begin);
            feeding.fed.bad.push((index, self.too_many_keys()));
            return;
        };
        let segment = &mut feeding.segment;
        if segment.keys.is_empty() {
            segment.first_record = index;
        } else if segment.records.is_empty() && segment.record(segment.keys.len()) != index {
            segment.records = (0..segment.keys.len()).map(|place| segment.record(place)).collect();
        }
        if !segment.records.is_empty() {
            segment.records.push(index);
        }
        if raw.origin != only_origin && segment.origins.is_empty() {
            segment.origins = vec![segment.origin; segment.keys.len()];
        }
        if !segment.origins.is_empty() {
            segment.origins.push(raw.origin);
        }
        segment.keys.push(key);
        let length = raw.value.map_or(0, <[u8]>::len);
        self.rows.push_scanned(open, span(begin, length), head, raw.number);
    }

    pub(crate) fn too_many_keys(&self) -> String {
        format!("more than {} keys (max_keys)", self.limits.max_keys)
    }

    #[allow(clippy::cast_possible_truncation)] // numbers of keys fit: limited by max_keys
    fn raw_key(&mut self, open: usize, head: &Head, domain: usize) -> Option<u32> {
        let text = key_text(&self.rows, open, head);
        if let Some(number) = self.numbers.get(text) {
            return Some(*number as u32);
        }
        let text = text.to_owned();
        self.key_number(&text, domain).map(|number| number as u32)
    }

    fn forget_record(&mut self, open: usize, begin: usize) {
        if let Payload::Scanned(rows) = &mut self.rows.chunk_mut(open).payload {
            rows.arena.truncate(begin);
        }
    }

    /// Takes a record that is no insert; false if only the caller can judge it.
    fn take_other(
        &mut self,
        feeding: &mut Feeding,
        open: usize,
        begin: usize,
        head: &Head,
        raw: &Raw<'_>,
        index: u32,
    ) -> bool {
        let is_punctuation = matches!(head.operation, Operation::Punctuation | Operation::ArcPunctuation);
        self.before_other(feeding, is_punctuation);
        if feeding.net == Net::Record {
            self.findings.record = index;
        }
        let taken = match head.operation {
            Operation::Punctuation if head.when.is_some() => {
                let text = head.when.map(|span| raw_text(&self.rows, open, span).to_owned());
                feeding.fed.condition = text.map(|text| (raw.origin, head.ts, text));
                false
            }
            Operation::Punctuation => {
                self.punctuate(raw.origin, head.ts, feeding.net == Net::Record);
                true
            }
            Operation::ArcPunctuation => {
                self.punctuate_arcs(head.ts, feeding.net == Net::Record);
                true
            }
            Operation::Arc => raw
                .value
                .is_some_and(|json| self.take_arc(json, index, &mut feeding.fed)),
            Operation::Retract | Operation::Insert => {
                let key = key_text(&self.rows, open, head).to_owned();
                let id = head.id.map(|id| raw_text(&self.rows, open, id).to_owned());
                let retraction = Retraction {
                    ts: head.ts,
                    id: IdRef::of(id.as_deref().unwrap_or_default()),
                    rev: head.rev,
                    seq: head.seq,
                };
                self.take_retraction(&key, raw.origin, &retraction, index, &mut feeding.fed);
                true
            }
        };
        self.forget_record(open, begin);
        taken
    }

    pub(crate) fn take_retraction(
        &mut self,
        key: &str,
        origin: Origin,
        retraction: &Retraction<'_>,
        index: u32,
        fed: &mut Fed,
    ) {
        self.counters.events += 1;
        if let Some(reason) = self.why_late(origin, retraction.ts, true, None) {
            self.counters.late += 1;
            fed.late.push((index, reason));
            return;
        }
        match self.key_number(key, origin.domain) {
            Some(number) => self.retract(number, retraction),
            None => fed.bad.push((index, self.too_many_keys())),
        }
    }
}

fn key_text<'a>(rows: &'a Rows, open: usize, head: &Head) -> &'a str {
    head.key.map_or("", |span| raw_text(rows, open, span))
}

fn raw_text(rows: &Rows, open: usize, span: Span) -> &str {
    match &rows.chunk(open).payload {
        Payload::Scanned(rows) => rows.text(span),
        _ => "",
    }
}

#[allow(clippy::cast_possible_truncation)] // checked by the scanner
fn span(begin: usize, length: usize) -> Span {
    Span {
        begin: begin as u32,
        length: length as u32,
    }
}

#[allow(clippy::cast_possible_truncation)] // a batch has far fewer records
pub(crate) fn index_of(place: usize) -> u32 {
    place as u32
}
