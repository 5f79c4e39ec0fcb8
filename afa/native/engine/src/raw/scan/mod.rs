//! Raw records, read natively: the head, and of the data only the fields that patterns use, with no allocation per
//! record. The whole record is checked all the same, so what is accepted never depends on the patterns.

mod capture;
mod frame;
mod head;
mod json;
mod mapping;
mod msgpack;
mod number;
mod records;
mod shape;
mod template;
#[cfg(test)]
mod tests;
mod text;
mod time;

use std::fmt;
use std::sync::Arc;

use capture::{Capture, Kind};
pub use capture::{Scalar, Span};
use head::Finisher;
pub use head::{Envelope, Head, Operation};
pub use mapping::{Codec, Mapping, Path, Place};
pub use records::{PADDING, Padded, Records};
use shape::{Part, Shape, Target};
use template::{Read, Template};
pub use time::Clock;

use crate::program::expression::FieldPath;
use crate::program::value::Value;
use crate::rows::event::Data;

/// A record that is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bad {
    /// Why, for people.
    pub what: String,
    /// The byte of the record where it was noticed, counted from 0; 0 if that is no place in the value.
    pub at: usize,
}

impl fmt::Display for Bad {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.what)
    }
}

impl std::error::Error for Bad {}

/// The head of an insert that says nothing but its key and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainHead {
    /// The key.
    pub key: Span,
    /// Event time, in the fleet's unit.
    pub ts: i64,
}

impl PlainHead {
    /// The same as any head.
    #[must_use]
    pub fn full(self) -> Head {
        Head {
            key: Some(self.key),
            ..Head::bare(Operation::Insert, self.ts)
        }
    }
}

/// Reads records of one mapping; compiled once, and again when other fields are wanted.
pub struct Scanner {
    mapping: Mapping,
    shape: Shape,
    capture: Capture,
    template: Template,
    /// Whether a record that was read as a plain one has a plain head.
    takes_plain: bool,
    head: Head,
    /// For records that are read again.
    room: Vec<u8>,
}

impl Scanner {
    /// A scanner that reads these fields of the data.
    #[must_use]
    pub fn new(mapping: Mapping, fields: &[FieldPath]) -> Self {
        let shape = Shape::new(&wanted(&mapping, fields));
        let capture = Capture::new(fields.len(), &shape);
        Self {
            takes_plain: takes_plain(&mapping, &shape),
            mapping,
            shape,
            capture,
            template: Template::default(),
            head: Head::bare(Operation::Insert, 0),
            room: Vec::new(),
        }
    }

    /// From now on reads other fields.
    pub fn set_fields(&mut self, fields: &[FieldPath]) {
        self.shape = Shape::new(&wanted(&self.mapping, fields));
        self.capture = Capture::new(fields.len(), &self.shape);
        self.template = Template::default();
        self.takes_plain = takes_plain(&self.mapping, &self.shape);
    }

    /// What it was compiled from.
    #[must_use]
    pub fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    /// The head of the last record; what it holds after a bad one means nothing. Not handed out by value, because copying
    /// what has just been written costs as much as reading the record.
    #[must_use]
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// A field of the last record, by the order in which they were asked for; spans are of its arena.
    #[must_use]
    #[inline]
    pub fn value(&self, field: usize) -> Scalar {
        u32::try_from(field).map_or(Scalar::Missing, |field| self.capture.field(field))
    }

    /// The field if it is a float.
    #[inline]
    pub(crate) fn float(&self, field: usize) -> Option<f64> {
        let number = u32::try_from(field).ok()?;
        self.capture.float(number)
    }

    /// Reads a record and appends it to the arena. Texts without escapes stay where they are, other ones are written
    /// behind the record.
    ///
    /// # Errors
    /// If the record is bad; then the arena is as it was.
    #[inline]
    pub fn scan(&mut self, arena: &mut Vec<u8>, record: Padded<'_>, envelope: &Envelope<'_>) -> Result<(), Bad> {
        if let Some(plain) = self.begin(arena, record)?
            && envelope.position.is_none()
        {
            self.head = plain.full();
            return Ok(());
        }
        self.finish(arena, record, envelope)
    }

    /// The first half of `scan`, which is all there is to do if the record has a plain head and nothing beside its value
    /// makes its id; then the last head is no longer known. Else `finish` follows.
    ///
    /// # Errors
    /// If the record is bad; then the arena is as it was.
    #[inline]
    pub fn begin(&mut self, arena: &mut Vec<u8>, record: Padded<'_>) -> Result<Option<PlainHead>, Bad> {
        let begin = arena.len();
        check_size(begin + 2 * record.len())?;
        self.capture.begin(span_begin(begin), span_begin(begin + record.len()));
        let checked = match self.mapping.codec {
            Codec::Json => json::parse(record, &self.shape, &mut self.capture, &mut self.template),
            Codec::Msgpack => msgpack::parse(record.record(), &self.shape, &mut self.capture).map(|()| Read::Full),
        };
        let read = checked.map_err(|failure| self.refusal(failure))?;
        arena.extend_from_slice(record.record());
        Ok(if read == Read::Plain && self.takes_plain {
            self.plain_head()
        } else {
            None
        })
    }

    /// Lets `next_alike` read records that look like this one, for which `begin` has given a plain head.
    #[inline]
    pub fn begin_alike(&mut self, record: Padded<'_>) {
        self.template.learn_key(record.record());
    }

    /// The time of a record that will stand there in an arena, if it has the widths and the key of the one for which
    /// `begin_alike` was called, and nothing else was read in between. Its fields are read, too.
    #[inline]
    pub fn next_alike(&mut self, begin: u32, record: Padded<'_>) -> Option<i64> {
        self.capture.record_base = begin;
        if !self.template.read_alike(record, &self.shape, &mut self.capture) {
            return None;
        }
        self.plain_time()
    }

    #[inline]
    fn plain_time(&self) -> Option<i64> {
        let is_int = self.capture.kind(Part::Time) == Kind::Int;
        let number = self.capture.int(Part::Time);
        self.mapping.clock.number(number).filter(|_| is_int)
    }

    #[inline]
    fn plain_head(&self) -> Option<PlainHead> {
        let ts = self.plain_time()?;
        let key = self.capture.text(Part::Key);
        Some(PlainHead { key, ts })
    }

    /// The second half of `scan`, of a record that was appended to the arena last.
    ///
    /// # Errors
    /// If the record is bad; then the arena is as it was.
    pub fn finish(&mut self, arena: &mut Vec<u8>, record: Padded<'_>, envelope: &Envelope<'_>) -> Result<(), Bad> {
        let begin = arena.len() - record.len();
        self.write_copies(arena);
        let mut finisher = Finisher {
            mapping: &self.mapping,
            capture: &self.capture,
            arena,
            envelope,
        };
        let outcome = finisher.head(&mut self.head);
        settle(arena, begin, outcome)
    }

    /// Gives values to the others who want them, and unescaped texts to the arena.
    #[inline]
    fn write_copies(&mut self, arena: &mut Vec<u8>) {
        self.capture.copy(&self.shape.copies);
        if !self.capture.texts.is_empty() {
            arena.extend_from_slice(&self.capture.texts);
        }
    }

    /// Reads a record without a value, which is a retraction or bad; its fields are missing.
    ///
    /// # Errors
    /// If the record is bad; then the arena is as it was.
    pub fn scan_tombstone(&mut self, arena: &mut Vec<u8>, envelope: &Envelope<'_>) -> Result<(), Bad> {
        if !self.mapping.tombstone_retracts {
            let what = "a record without a value".into();
            return Err(Bad { what, at: 0 });
        }
        let end = arena.len();
        check_size(end)?;
        self.capture.begin(span_begin(end), span_begin(end));
        self.capture.clear();
        let mut finisher = Finisher {
            mapping: &self.mapping,
            capture: &self.capture,
            arena,
            envelope,
        };
        let outcome = finisher.event(Operation::Retract).map(|head| self.head = head);
        settle(arena, end, outcome)
    }

    /// Reads the fields of a record that was accepted before and stands anywhere in the arena: a new arc may want what
    /// nobody wanted then.
    pub fn rescan(&mut self, arena: &mut Vec<u8>, record: Span) {
        let end = arena.len();
        self.capture.begin(record.begin, span_begin(end));
        if check_size(end + record.length as usize).is_err() {
            self.capture.clear();
            return;
        }
        let checked = match self.mapping.codec {
            Codec::Json => {
                let padded = Padded::copied(record.of(arena), &mut self.room);
                json::parse(padded, &self.shape, &mut self.capture, &mut self.template).map(|_| ())
            }
            Codec::Msgpack => msgpack::parse(record.of(arena), &self.shape, &mut self.capture),
        };
        debug_assert!(
            checked.is_ok() || record.length == 0,
            "only records that were accepted, or tombstones"
        );
        self.write_copies(arena);
    }

    /// The whole data of a record that was accepted before, for what is rare.
    #[must_use]
    pub fn data(&self, record: &[u8]) -> Data {
        let mut data = read(record, self.mapping.codec).unwrap_or(Data::Null);
        for step in &self.mapping.data {
            data = match data {
                Data::Map(members) => {
                    let found = members.into_iter().find(|(name, _)| name == step);
                    found.map_or(Data::Null, |(_, inner)| inner)
                }
                _ => Data::Null,
            };
        }
        match data {
            data @ Data::Map(_) => data,
            _ => Data::Map(Vec::new()),
        }
    }

    #[cold]
    fn refusal(&self, (what, at): (&'static str, usize)) -> Bad {
        let codec = match self.mapping.codec {
            _ if what == json::NOT_A_MAPPING => return Bad { what: what.into(), at },
            Codec::Json => "JSON",
            Codec::Msgpack => "msgpack",
        };
        let what = format!("not {codec}: {what} (byte {})", at + 1);
        Bad { what, at }
    }
}

/// A list that a scanner found, as expressions see it.
#[must_use]
pub fn list_value(bytes: &[u8], codec: Codec) -> Value {
    read(bytes, codec).map_or(Value::Unknown, |data| data.value())
}

fn read(bytes: &[u8], codec: Codec) -> Option<Data> {
    match codec {
        Codec::Json => crate::raw::json::read(bytes).ok(),
        Codec::Msgpack => msgpack::read(bytes).ok(),
    }
}

/// Spans have 32 bits.
#[inline]
fn check_size(bytes: usize) -> Result<(), Bad> {
    if bytes < (u32::MAX as usize) {
        return Ok(());
    }
    let what = "more bytes at once than 32 bits can address".into();
    Err(Bad { what, at: 0 })
}

/// Takes back what a bad record has written; what was written for a good one must have its spans, too.
#[inline]
fn settle(arena: &mut Vec<u8>, end: usize, finished: Result<(), String>) -> Result<(), Bad> {
    let bad = match finished {
        Ok(()) => match check_size(arena.len()) {
            Ok(()) => return Ok(()),
            Err(bad) => bad,
        },
        Err(what) => Bad { what, at: 0 },
    };
    arena.truncate(end);
    Err(bad)
}

#[allow(clippy::cast_possible_truncation)] // checked by `check_size`
fn span_begin(at: usize) -> u32 {
    at as u32
}

/// Whether key and time of a plain record make its head as they stand.
fn takes_plain(mapping: &Mapping, shape: &Shape) -> bool {
    mapping.is_usual && matches!(mapping.key, Place::Path(_)) && shape.copies.is_empty()
}

/// The paths of the head, the usual ones first, then those of the fields.
fn wanted(mapping: &Mapping, fields: &[FieldPath]) -> Vec<(Vec<Arc<str>>, Target)> {
    let when = Place::Path([Arc::from("when")].into());
    let data = Place::Path(mapping.data.clone());
    let parts = [
        (&mapping.key, Part::Key),
        (&mapping.time, Part::Time),
        (&data, Part::Data),
        (&mapping.id, Part::Id),
        (&mapping.kind, Part::Kind),
        (&mapping.seq, Part::Seq),
        (&mapping.rev, Part::Rev),
        (&mapping.operation, Part::Operation),
        (&when, Part::When),
    ];
    let parts = parts.into_iter().filter_map(|(place, part)| match place {
        Place::Path(path) => Some((path.to_vec(), Target::part(part))),
        Place::Header(_) | Place::Record => None,
    });
    let fields = (0..).zip(fields).map(|(number, field)| {
        let path = mapping.data.iter().chain(&*field.steps).cloned().collect();
        (path, Target::field(number))
    });
    parts.chain(fields).collect()
}
