//! Where a source keeps what: compiled once from the packed form that `afa/source.py` writes.

use std::sync::Arc;

use super::time::Clock;
use crate::raw::msgpack::{Malformed, Reader};

/// The version of the packed form that this build reads.
const FORMAT_VERSION: u64 = 1;

/// How values are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// Strict JSON.
    Json,
    /// msgpack, its maps with texts as names.
    Msgpack,
}

/// The names from the value's outermost mapping inwards; none is the value itself.
pub type Path = Box<[Arc<str>]>;

/// Where one part of a record's head stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the value.
    Path(Path),
    /// In the last header of this name.
    Header(Box<str>),
    /// The record's own: its timestamp, its key, or its position as an id.
    Record,
}

/// How the records of a source become events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// How values are encoded.
    pub codec: Codec,
    /// Event time.
    pub time: Place,
    /// The event type.
    pub kind: Place,
    /// The key.
    pub key: Place,
    /// The event's id.
    pub id: Place,
    /// The sequence number.
    pub seq: Place,
    /// The revision.
    pub rev: Place,
    /// The operation.
    pub operation: Place,
    /// Where the fields are.
    pub data: Path,
    /// How time is written.
    pub clock: Clock,
    /// Whether a record without a value is a retraction; else it is bad.
    pub tombstone_retracts: bool,
    /// Whether all but the key stands in the value, time as a number: the quick way is enough for most records.
    pub(super) is_usual: bool,
}

impl Mapping {
    /// The shape of a tape's record: everything in the value, time as it stands.
    #[must_use]
    pub fn tape(codec: Codec) -> Self {
        let place = |name: &str| Place::Path([Arc::from(name)].into());
        Self {
            codec,
            time: place("ts"),
            kind: place("type"),
            key: place("key"),
            id: place("id"),
            seq: place("seq"),
            rev: place("rev"),
            operation: place("op"),
            data: [Arc::from("data")].into(),
            clock: Clock::default(),
            tombstone_retracts: false,
            is_usual: true,
        }
    }

    /// A record that is the data alone, as a snapshot keeps it: its head is known from elsewhere.
    #[must_use]
    pub fn only_data() -> Self {
        let nowhere = || Place::Header("".into());
        Self {
            time: Place::Record,
            kind: nowhere(),
            key: Place::Record,
            id: nowhere(),
            seq: nowhere(),
            rev: nowhere(),
            operation: nowhere(),
            data: [].into(),
            is_usual: false,
            ..Self::tape(Codec::Msgpack)
        }
    }

    /// Reads the packed form.
    ///
    /// # Errors
    /// If the bytes are not a mapping of this version.
    pub fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        reader.array(13)?;
        if reader.uint()? != FORMAT_VERSION {
            return Err(Malformed("a mapping of another version"));
        }
        let codec = match reader.text()? {
            "json" => Codec::Json,
            "msgpack" => Codec::Msgpack,
            _ => return Err(Malformed("an unknown codec")),
        };
        let mut mapping = Self {
            codec,
            time: place(&mut reader)?,
            kind: place(&mut reader)?,
            key: place(&mut reader)?,
            id: place(&mut reader)?,
            seq: place(&mut reader)?,
            rev: place(&mut reader)?,
            operation: place(&mut reader)?,
            data: path(&mut reader)?,
            clock: Clock::new(reader.text()?, reader.text()?).ok_or(Malformed("an unknown unit of time"))?,
            tombstone_retracts: reader.truth()?,
            is_usual: false,
        };
        reader.end()?;
        if [&mapping.kind, &mapping.seq, &mapping.rev, &mapping.operation].contains(&&Place::Record) {
            return Err(Malformed("a part that a record itself does not have"));
        }
        mapping.is_usual = mapping.stands_in_the_value();
        Ok(mapping)
    }

    fn stands_in_the_value(&self) -> bool {
        let places = [&self.time, &self.kind, &self.id, &self.seq, &self.rev, &self.operation];
        let in_value = places.into_iter().all(|place| matches!(place, Place::Path(_)));
        in_value && !matches!(self.key, Place::Header(_)) && !self.clock.is_text()
    }
}

/// Nil: the record itself; a text: a header; a list: a path.
fn place(reader: &mut Reader<'_>) -> Result<Place, Malformed> {
    if reader.nil() {
        return Ok(Place::Record);
    }
    if reader.peek_array() {
        return path(reader).map(Place::Path);
    }
    reader.text().map(|name| Place::Header(name.into()))
}

fn path(reader: &mut Reader<'_>) -> Result<Path, Malformed> {
    let steps = reader.any_array()?;
    (0..steps).map(|_| reader.text().map(Arc::from)).collect()
}
