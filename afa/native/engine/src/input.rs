//! The one door for records: raw ones and record batches, with punctuations and arc changes in their place.

use crate::changes::table::{ChangeKind, ChangeRow};
use crate::engine::{Engine, Retraction, SOURCE};
use crate::keys::table::{KeyTable, are_equal};
use crate::progress::domain::{Domain, Origin};
use crate::raw::rows::ScannedRows;
use crate::raw::scan::{Bad, Envelope, Head, Operation, Padded, PlainHead, Records, Scanner, Span};
use crate::rows::chunk::{CHUNK_ROWS, Chunk, Payload};
use crate::rows::event::IdRef;
use crate::rows::store::Rows;
use crate::segment::{Fed, NO_KEY, Net, Segment};

/// The raw records of a batch, each by its index.
pub trait RawBatch {
    /// How many there are.
    fn len(&self) -> usize;
    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The bytes of a record; none is a tombstone.
    fn value(&self, index: usize) -> Option<Padded<'_>>;
    /// About how many bytes the records from this one on have.
    fn bytes_from(&self, index: usize) -> usize;
    /// The values, if there is nothing beside them: all come from one place, and their numbers follow each other.
    fn alone(&self) -> Option<&Records>;
    /// Whether there are topics, partitions and offsets, of which ids are made.
    fn has_positions(&self) -> bool;
    /// What Kafka keeps beside the bytes.
    fn envelope(&self, index: usize) -> Envelope<'_>;
    /// Where a record comes from.
    fn origin(&self, index: usize) -> Origin;
    /// The offset of a record that is replayed: it is skipped if its key holds it.
    fn replayed(&self, index: usize) -> Option<i64>;
    /// The number that makes a record's id if it has none.
    fn number(&self, index: usize) -> u64;
}

/// A record that was scanned last.
struct Raw<'a> {
    head: Head,
    value: Option<Padded<'a>>,
    /// Where it begins in the arena.
    begin: usize,
    origin: Origin,
    number: u64,
    index: u32,
}

impl<'a> Raw<'a> {
    fn of(records: &'a impl RawBatch, index: usize, head: Head, begin: usize) -> Self {
        Self {
            head,
            value: records.value(index),
            begin,
            origin: records.origin(index),
            number: records.number(index),
            index: index_of(index),
        }
    }

    fn span(&self) -> Span {
        span(self.begin, self.value.map_or(0, Padded::len))
    }
}

impl Segment {
    /// Adds the next row of the open chunk.
    #[inline]
    fn push(&mut self, key: u32, record: u32, origin: Origin) {
        if self.keys.is_empty() {
            (self.first_record, self.origin) = (record, origin);
        } else if self.records.is_empty() && self.record(self.keys.len()) != record {
            self.records = (0..self.keys.len()).map(|place| self.record(place)).collect();
        }
        if !self.records.is_empty() {
            self.records.push(record);
        }
        self.come_from(origin, self.keys.len() + 1);
        self.keys.push(key);
    }

    /// Adds rows of one key and one origin, of records that follow each other.
    fn push_run(&mut self, key: u32, first: u32, count: usize, origin: Origin) {
        for record in (first..).take(count) {
            self.push(key, record, origin);
            if self.records.is_empty() && self.origins.is_empty() {
                let left = count - (record - first) as usize - 1;
                self.keys.extend(std::iter::repeat_n(key, left));
                return;
            }
        }
    }
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
    /// How many records it has.
    pub(crate) length: usize,
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
            length: 0,
        }
    }

    /// Whether changes are told after every record.
    #[must_use]
    pub fn tells_each(&self) -> bool {
        self.net == Net::Record
    }

    /// Another batch in the memory of the one before, which has ended.
    pub fn begin(&mut self, net: Net, stops_at_bad: bool) {
        self.segment.clear();
        self.segment.waiting.clear();
        (self.net, self.stops_at_bad) = (net, stops_at_bad);
        (self.flushes, self.first_change, self.length) = (0, 0, 0);
        self.fed = Fed::default();
    }
}

impl Engine {
    /// Ends a batch: what waits is taken, and partitions advance.
    pub fn finish(&mut self, feeding: &mut Feeding) {
        self.take_segment(&mut feeding.segment, feeding.net, &mut feeding.fed);
        if feeding.net == Net::Record {
            self.findings.record = index_of(feeding.length.saturating_sub(1));
        }
        self.settle_slack(feeding.net, &mut feeding.fed);
        if feeding.net == Net::Batch {
            self.finish_net(feeding);
        }
        self.clean_after_batch();
    }

    fn finish_net(&mut self, feeding: &mut Feeding) {
        self.flush(feeding);
        let first = self.table.rows.len();
        self.advance_all();
        let is_match = |row: &ChangeRow| row.kind != ChangeKind::Punctuation;
        if self.table.rows[first..].iter().any(is_match) {
            feeding.flushes += 1;
        }
        if !self.observed.is_empty() {
            for told in &mut self.table.rows[feeding.first_change..] {
                told.record = 0;
            }
            feeding.flushes += 2;
        }
        if feeding.flushes > 1 {
            self.table.net_from(feeding.first_change);
        }
        self.order_from(feeding.first_change);
    }

    /// Takes everything that waits. What waits is of one chunk: this comes before another one is added.
    pub(crate) fn flush(&mut self, feeding: &mut Feeding) {
        self.take_segment(&mut feeding.segment, feeding.net, &mut feeding.fed);
        if !feeding.segment.waiting.is_empty() {
            feeding.flushes += 1;
            feeding.flushes += usize::from(self.take_waiting(&mut feeding.segment.waiting));
        }
    }

    /// Everything before a record that is no insert has to be taken first. In a batch told net, a punctuation only
    /// decides what is late.
    pub fn before_other(&mut self, feeding: &mut Feeding, is_punctuation: bool) {
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
    pub fn feed_raw(&mut self, feeding: &mut Feeding, first: usize, records: &impl RawBatch) {
        (feeding.fed.asks, feeding.fed.condition) = (None, None);
        feeding.length = records.len();
        let mut next = first;
        while next < records.len() && (!feeding.stops_at_bad || feeding.fed.bad.is_empty()) {
            let open = self.open_chunk(feeding, records.len() - next, records.bytes_from(next));
            let raw = self.take_known(feeding, open, &mut next, records);
            self.name_rows(feeding, open);
            let Some(raw) = raw else {
                continue;
            };
            if raw.head.operation == Operation::Insert {
                self.take_with_new_key(feeding, open, &raw);
            } else if !self.take_other(feeding, open, &raw) {
                feeding.fed.asks = Some(raw.index);
                return;
            }
        }
    }

    /// Takes inserts of known keys as long as they fit into the open chunk; `next` counts them. The answer is the first
    /// record that is something else.
    fn take_known<'a>(
        &mut self,
        feeding: &mut Feeding,
        open: usize,
        next: &mut usize,
        records: &'a impl RawBatch,
    ) -> Option<Raw<'a>> {
        let (chunk, scanners) = self.rows.chunk_and_scanners(open);
        let segment = &mut feeding.segment;
        if segment.keys.is_empty() {
            (segment.chunk, segment.first) = (open, chunk.len());
        }
        let mut last_key = LastKey::default();
        // After a bad record no other may be taken: that may turn out as soon as its key is known.
        let names_later = records.alone().is_none() && !feeding.stops_at_bad;
        while *next < records.len() && chunk.has_room() {
            let (index, value, origin) = (*next, records.value(*next), records.origin(*next));
            *next += 1;
            if !origin.is_read() {
                continue;
            }
            let Payload::Scanned(rows) = &mut chunk.payload else {
                unreachable!("the open chunk holds raw records");
            };
            let number = self.domains[origin.domain].topics[origin.topic].scanner;
            let scanner = &mut scanners[number];
            rows.read_by(number);
            let begin = rows.arena.len();
            let plain = match scan(scanner, &mut rows.arena, value, records, index) {
                Ok(plain) => plain,
                Err(bad) => {
                    feeding.fed.bad.push((index_of(index), bad.what));
                    if feeding.stops_at_bad {
                        return None;
                    }
                    continue;
                }
            };
            if let Some(offset) = records.replayed(index) {
                let head = plain.map_or_else(|| *scanner.head(), PlainHead::full);
                let domain = &mut self.domains[origin.domain];
                if holds(domain, rows, &head, origin.topic, offset) {
                    rows.arena.truncate(begin);
                    self.counters.skipped += 1;
                    if segment.keys.is_empty() {
                        domain.topics[origin.topic].meet(head.ts, self.promises.trust);
                    } else {
                        segment.skipped.push((segment.keys.len(), origin, head.ts));
                    }
                    continue;
                }
            }
            let known = last_key.number;
            let name = plain.map_or_else(|| name_of_insert(scanner.head()), |plain| Some(plain.key));
            let key = match name {
                Some(name) if names_later => {
                    segment.naming.note(segment.keys.len(), name, origin.domain, rows);
                    Some(NO_KEY)
                }
                name => name.and_then(|name| last_key.find(&self.numbers, rows, name)),
            };
            let Some(key) = key else {
                let head = plain.map_or_else(|| *scanner.head(), PlainHead::full);
                return Some(Raw::of(records, index, head, begin));
            };
            segment.push(key, index_of(index), origin);
            segment.naming.find_if_many(&self.numbers, rows, &mut segment.keys);
            let (record, number) = (span(begin, value.map_or(0, Padded::len)), records.number(index));
            match plain {
                Some(plain) => chunk.push_plain(record, plain.ts, scanner, number),
                None => chunk.push(record, scanner.head(), scanner, number),
            }
            if let (Some(like), Some(alone), true) = (value, records.alone(), plain.is_some() && known == Some(key)) {
                let count = chunk.push_alike(like, alone, *next, scanner, number + 1);
                segment.push_run(key, index_of(*next), count, origin);
                *next += count;
            }
        }
        None
    }

    /// The chunk to which records are added. So many are left of the batch, of so many bytes.
    fn open_chunk(&mut self, feeding: &mut Feeding, left: usize, bytes: usize) -> usize {
        let mut coming = left;
        if let Some(open) = self.open {
            if self.rows.chunk(open).has_room() {
                return open;
            }
            self.flush(feeding);
            // The next chunk will be filled as the last one was.
            coming = CHUNK_ROWS;
        }
        let chunk = Chunk::scanned(SOURCE, self.rows.fields.paths.len(), coming, bytes / left.max(1));
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

    /// Takes an insert, the record that was scanned last, whose key may be new.
    fn take_with_new_key(&mut self, feeding: &mut Feeding, open: usize, raw: &Raw<'_>) {
        let name = key_text(&self.rows, open, &raw.head).to_owned();
        let Some(key) = self.key_number(&name, raw.origin.domain) else {
            self.forget_record(open, raw.begin);
            feeding.fed.bad.push((raw.index, self.too_many_keys()));
            return;
        };
        #[allow(clippy::cast_possible_truncation)] // numbers of keys fit: limited by max_keys
        feeding.segment.push(key as u32, raw.index, raw.origin);
        self.rows.push_scanned(open, raw.span(), &raw.head, raw.number);
    }

    pub(crate) fn too_many_keys(&self) -> String {
        format!("more than {} keys (max_keys)", self.limits.max_keys)
    }

    fn forget_record(&mut self, open: usize, begin: usize) {
        if let Payload::Scanned(rows) = &mut self.rows.chunk_mut(open).payload {
            rows.arena.truncate(begin);
        }
    }

    /// Takes a record that is no insert; false if only the caller can judge it.
    fn take_other(&mut self, feeding: &mut Feeding, open: usize, raw: &Raw<'_>) -> bool {
        let (head, index) = (&raw.head, raw.index);
        if let Some(refusal) = self.refusal(head.operation, raw.origin) {
            feeding.fed.bad.push((index, refusal.into()));
            self.forget_record(open, raw.begin);
            return true;
        }
        let is_promise = head.operation == Operation::Punctuation;
        if is_promise && self.disbelieves(raw.origin, head.ts, index, &mut feeding.fed) {
            self.forget_record(open, raw.begin);
            return true;
        }
        let is_punctuation = is_promise || head.operation == Operation::ArcPunctuation;
        self.before_other(feeding, is_punctuation);
        if feeding.net == Net::Record {
            self.findings.record = index;
        }
        let taken = match head.operation {
            Operation::Punctuation if head.when.is_some() => {
                let text = head.when.map(|span| self.rows.text(open, span).to_owned());
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
                .is_some_and(|json| self.take_arc(json.record(), index, &mut feeding.fed)),
            Operation::Retract | Operation::Insert => {
                let key = key_text(&self.rows, open, head).to_owned();
                let id = head.id.map(|id| self.rows.text(open, id).to_owned());
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
        self.forget_record(open, raw.begin);
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
        let (behind, known) = (self.meet_retraction(origin, retraction.ts), self.numbers.find(key));
        if let Some(reason) = behind.or_else(|| self.why_late(origin, known, retraction.ts, true, None)) {
            self.counters.late += 1;
            fed.late.push((index, reason));
            return;
        }
        match self.key_number(key, origin.domain) {
            Some(number) => {
                self.mark_changed(&[index_of(number)]);
                self.agenda.touch(index_of(number));
                self.retract(number, retraction);
            }
            None => fed.bad.push((index, self.too_many_keys())),
        }
    }
}

/// Reads a record; the scanner has its head unless that is a plain one.
#[inline]
fn scan(
    scanner: &mut Scanner,
    arena: &mut Vec<u8>,
    value: Option<Padded<'_>>,
    records: &impl RawBatch,
    index: usize,
) -> Result<Option<PlainHead>, Bad> {
    let Some(value) = value else {
        return scanner.scan_tombstone(arena, &records.envelope(index)).map(|()| None);
    };
    let plain = scanner.begin(arena, value)?;
    if plain.is_some() && !records.has_positions() {
        return Ok(plain);
    }
    scanner.finish(arena, value, &records.envelope(index)).map(|()| None)
}

/// The key of the record before: the next one often has the same.
#[derive(Default)]
struct LastKey {
    text: Vec<u8>,
    number: Option<u32>,
}

impl LastKey {
    /// The number of a key, if it has one.
    #[inline]
    fn find(&mut self, numbers: &KeyTable, rows: &ScannedRows, key: Span) -> Option<u32> {
        let text = key.of(&rows.arena);
        if self.number.is_some() && are_equal(text, &self.text) {
            return self.number;
        }
        let number = numbers.find(rows.text(key))?;
        self.text.clear();
        self.text.extend_from_slice(text);
        self.number = Some(number);
        self.number
    }
}

/// The key of an insert.
#[inline]
fn name_of_insert(head: &Head) -> Option<Span> {
    head.key.filter(|_| head.operation == Operation::Insert)
}

/// Whether the key of an insert or a retraction holds it.
fn holds(domain: &Domain, rows: &ScannedRows, head: &Head, topic: usize, offset: i64) -> bool {
    let is_of_key = matches!(head.operation, Operation::Insert | Operation::Retract);
    let key = head.key.filter(|_| is_of_key);
    key.is_some_and(|key| domain.held_offsets.has(rows.text(key), topic, offset))
}

fn key_text<'a>(rows: &'a Rows, open: usize, head: &Head) -> &'a str {
    head.key.map_or("", |span| rows.text(open, span))
}

#[allow(clippy::cast_possible_truncation)] // checked by the scanner
pub(crate) fn span(begin: usize, length: usize) -> Span {
    Span {
        begin: begin as u32,
        length: length as u32,
    }
}

#[allow(clippy::cast_possible_truncation)] // a batch has far fewer records
pub(crate) fn index_of(place: usize) -> u32 {
    place as u32
}
