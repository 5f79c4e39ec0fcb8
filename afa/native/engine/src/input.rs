//! The one door for records: raw ones and record batches, with punctuations and arc changes in their place.

use crate::arrow_rows::{ArrowRows, Keys};
use crate::change_table::{ChangeKind, ChangeRow};
use crate::chunk::{CHUNK_ROWS, Chunk, Payload};
use crate::domain::Origin;
use crate::engine::{Engine, Retraction, SOURCE};
use crate::event::IdRef;
use crate::rows::Rows;
use crate::scan::{Envelope, Head, Operation, Span};
use crate::segment::{Fed, NO_KEY, Net, Segment};

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
    net: Net,
    segment: Segment,
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
    fn before_other(&mut self, feeding: &mut Feeding, is_punctuation: bool) {
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

    fn too_many_keys(&self) -> String {
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

    /// Takes rows of a record batch from one index on; `first_number` makes the ids of rows without one. Stops like
    /// `feed_raw`.
    pub fn feed_arrow(
        &mut self,
        feeding: &mut Feeding,
        rows: &ArrowRows,
        from: usize,
        first_number: u64,
        origin: Origin,
    ) {
        (feeding.fed.asks, feeding.fed.condition) = (None, None);
        let mut begin = from;
        while begin < rows.len() {
            let length = (rows.len() - begin).min(CHUNK_ROWS);
            let slice = rows.slice(begin, length);
            let chunk = self.add_chunk(Chunk::arrow(slice.clone(), first_number + begin as u64));
            // A punctuation among the rows must not clean up the chunk before the rows after it are taken.
            self.busy = Some(chunk);
            let asks = self.feed_slice(feeding, &slice, chunk, begin, origin);
            self.busy = None;
            if let Some(asks) = asks {
                feeding.fed.asks = Some(index_of(asks));
                return;
            }
            begin += length;
        }
    }

    /// Takes the rows of one chunk; the answer is the index at which it was left.
    fn feed_slice(
        &mut self,
        feeding: &mut Feeding,
        rows: &ArrowRows,
        chunk: usize,
        base: usize,
        origin: Origin,
    ) -> Option<usize> {
        let mut at = 0;
        while at < rows.len() {
            let other = rows.next_operation(at).unwrap_or(rows.len());
            if other > at {
                feeding.segment.clear();
                (feeding.segment.chunk, feeding.segment.first) = (chunk, at);
                (feeding.segment.first_record, feeding.segment.origin) = (index_of(base + at), origin);
                self.find_keys(feeding, rows, at, other, base);
                self.take_segment(&mut feeding.segment, feeding.net, &mut feeding.fed);
            }
            if other < rows.len() {
                self.before_other(
                    feeding,
                    matches!(rows.operation(other), Some("punctuation" | "arc-punctuation")),
                );
                if feeding.net == Net::Record {
                    self.findings.record = index_of(base + other);
                }
                if !self.take_arrow_other(feeding, rows, other, index_of(base + other), origin) {
                    return Some(base + other);
                }
            }
            at = other + 1;
        }
        None
    }

    /// The keys of rows that all have one, by the numbers of a dictionary.
    #[allow(clippy::cast_possible_truncation)] // numbers of keys fit: limited by max_keys
    fn find_dictionary_keys(
        &mut self,
        feeding: &mut Feeding,
        rows: &ArrowRows,
        indices: &[i32],
        from: usize,
        base: usize,
        keys: &mut Vec<u32>,
    ) {
        let domain = feeding.segment.origin.domain;
        let mut at = 0;
        while at < indices.len() {
            let same = count_same(&indices[at..]);
            let number = self.key_number(rows.key(from + at).unwrap_or_default(), domain);
            let key = number.map_or(NO_KEY, |number| number as u32);
            if key == NO_KEY {
                let refused = (at..at + same).map(|row| (index_of(base + from + row), self.too_many_keys()));
                feeding.fed.bad.extend(refused);
            }
            keys.resize(keys.len() + same, key);
            at += same;
        }
    }

    #[allow(clippy::cast_possible_truncation)] // numbers of keys fit: limited by max_keys
    fn find_keys(&mut self, feeding: &mut Feeding, rows: &ArrowRows, from: usize, to: usize, base: usize) {
        let mut keys = std::mem::take(&mut feeding.segment.keys);
        if let Keys::Dictionary { indices, nulls, .. } = rows.keys()
            && rows.has_all_times()
            && nulls.is_none_or(|nulls| nulls.slice(from, to - from).null_count() == 0)
        {
            self.find_dictionary_keys(feeding, rows, &indices[from..to], from, base, &mut keys);
            feeding.segment.keys = keys;
            return;
        }
        for row in from..to {
            let reason = match rows.key(row) {
                None => "a record needs `key`".into(),
                Some(_) if !rows.has_time(row) => "a record needs `ts`".into(),
                Some(key) => {
                    let same = row > from && rows.same_key_as_previous(row);
                    let known = if same {
                        keys.last().copied().filter(|key| *key != NO_KEY)
                    } else {
                        None
                    };
                    let known = known.or_else(|| {
                        let number = self.key_number(key, feeding.segment.origin.domain);
                        number.map(|number| number as u32)
                    });
                    if let Some(number) = known {
                        keys.push(number);
                        continue;
                    }
                    self.too_many_keys()
                }
            };
            feeding.fed.bad.push((index_of(base + row), reason));
            keys.push(NO_KEY);
        }
        feeding.segment.keys = keys;
    }

    fn take_arrow_other(
        &mut self,
        feeding: &mut Feeding,
        rows: &ArrowRows,
        row: usize,
        index: u32,
        origin: Origin,
    ) -> bool {
        let now = feeding.net == Net::Record;
        let ts = rows.times()[row];
        let operation = rows.operation(row).unwrap_or_default();
        let fault = match operation {
            "punctuation" | "arc-punctuation" | "retract" if !rows.has_time(row) => "a record needs `ts`".into(),
            "punctuation" if rows.when(row).is_some() => {
                feeding.fed.condition = rows.when(row).map(|text| (origin, ts, text.to_owned()));
                return false;
            }
            "punctuation" => {
                self.punctuate(origin, ts, now);
                return true;
            }
            "arc-punctuation" => {
                self.punctuate_arcs(ts, now);
                return true;
            }
            "arc" | "arc-retract" => match rows.arc(row) {
                Some(json) => return self.take_arc(json.as_bytes(), index, &mut feeding.fed),
                None => "an arc change needs its JSON in the column `arc`".into(),
            },
            "retract" => match (rows.key(row), rows.id(row)) {
                (Some(key), Some(id)) => {
                    let (rev, seq) = (rows.rev(row), rows.seq(row));
                    let id = IdRef::of(id);
                    let retraction = Retraction { ts, id, rev, seq };
                    self.take_retraction(key, origin, &retraction, index, &mut feeding.fed);
                    return true;
                }
                (None, _) => "a record needs `key`".into(),
                (_, None) => "a retraction needs the `id` of the event it takes back".into(),
            },
            other => format!("unknown op `{other}`"),
        };
        feeding.fed.bad.push((index, fault));
        true
    }
}

/// How many of the first numbers are the same.
fn count_same(indices: &[i32]) -> usize {
    let first = indices[0];
    let mut count = 1;
    // Whole blocks at a time: one key often has many rows in a row.
    while let Some(block) = indices.get(count..count + 64) {
        if block.iter().fold(0, |differs, index| differs | (index ^ first)) != 0 {
            break;
        }
        count += 64;
    }
    count + indices[count..].iter().take_while(|index| **index == first).count()
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
fn index_of(place: usize) -> u32 {
    place as u32
}
