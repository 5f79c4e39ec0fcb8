//! Restoring a key from its snapshot: everything is read and checked before anything is changed.
//!
//! A pattern of the snapshot that the engine does not have is left out. One that only the engine has begins with the
//! stored events, without partial matches from before them. Punctuations rise to those of the snapshot. Nothing is told,
//! unless that is asked for: what there was to tell was told before the snapshot was taken.

use std::collections::BTreeSet;
use std::fmt;

use crate::bindings::selecting::{CountedEnds, Standing};
use crate::keys::key::Tomb;
use crate::program::compiled::Program;
use crate::program::pattern::{Register, Window};
use crate::program::value::Value;
use crate::rows::event::Id;
use crate::state::form::{Reader, SnapshotFault};

/// Why a snapshot can not be restored here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RestoreFault {
    /// The bytes are no snapshot.
    Form(SnapshotFault),
    /// It is that of another key.
    OtherKey(String),
    /// A partial match is in a state that the pattern does not have: pattern, state.
    UnknownState(String, String),
    /// A pattern has other registers now.
    OtherRegisters(String),
    /// A pattern has another kind of window now.
    OtherWindow(String),
    /// An event that is none: its id, and what is wrong.
    BadEvent(String, String),
    /// There is no room for another key: the limit.
    TooManyKeys(usize),
}

impl fmt::Display for RestoreFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form(fault) => fault.fmt(formatter),
            Self::OtherKey(name) => write!(formatter, "a snapshot of the key {name:?}"),
            Self::UnknownState(pattern, state) => {
                write!(
                    formatter,
                    "the pattern `{pattern}` has no state `{state}`, in which the snapshot has partial matches"
                )
            }
            Self::OtherRegisters(pattern) => {
                write!(
                    formatter,
                    "the pattern `{pattern}` has other registers than in the snapshot"
                )
            }
            Self::OtherWindow(pattern) => {
                write!(
                    formatter,
                    "the pattern `{pattern}` has another kind of window than in the snapshot"
                )
            }
            Self::BadEvent(id, what) => write!(formatter, "a malformed snapshot: event {id:?}: {what}"),
            Self::TooManyKeys(limit) => write!(formatter, "more than {limit} keys (max_keys)"),
        }
    }
}

impl std::error::Error for RestoreFault {}

impl From<SnapshotFault> for RestoreFault {
    fn from(fault: SnapshotFault) -> Self {
        Self::Form(fault)
    }
}

/// What a snapshot says, as far as this engine can use it.
pub(crate) struct Restored {
    pub(crate) partition: u32,
    pub(crate) topics: Vec<(String, Option<i64>)>,
    pub(crate) arcs: Option<i64>,
    pub(crate) effective: Option<i64>,
    pub(crate) degraded: bool,
    pub(crate) covers: Vec<RestoredCover>,
    pub(crate) events: Vec<RestoredEvent>,
    pub(crate) tombs: Vec<((i64, Id), Tomb)>,
    /// Where matches ended whose start is forgotten, by pattern.
    pub(crate) ends: Vec<(usize, CountedEnds)>,
}

/// What one pattern keeps of the events before the punctuation.
#[derive(Default)]
pub(crate) struct RestoredCover {
    pub(crate) pattern: usize,
    pub(crate) seq: Option<i64>,
    pub(crate) hidden: BTreeSet<i64>,
    /// States and registers.
    pub(crate) configurations: Vec<(u32, Vec<Value>)>,
    pub(crate) starts: Vec<RestoredStart>,
}

/// The partial matches of one start event.
pub(crate) struct RestoredStart {
    pub(crate) event: RestoredEvent,
    pub(crate) consumed: u64,
    /// Places in the list of configurations.
    pub(crate) members: Vec<usize>,
}

/// An event.
#[derive(Default)]
pub(crate) struct RestoredEvent {
    pub(crate) ts: i64,
    pub(crate) seq: Option<i64>,
    pub(crate) id: String,
    pub(crate) rev: i64,
    pub(crate) kind: Option<String>,
    /// msgpack of a mapping; none: only the start of a partial match.
    pub(crate) data: Vec<u8>,
    pub(crate) other_seqs: Vec<i64>,
}

impl RestoredEvent {
    fn place(&self) -> (i64, i64, &[u8]) {
        (self.ts, self.seq.unwrap_or(0), self.id.as_bytes())
    }
}

impl Restored {
    /// Reads the body of a snapshot of this key.
    pub(crate) fn read(body: &[u8], key: &str, programs: &[Program]) -> Result<Self, RestoreFault> {
        let mut reader = Reader::new(body);
        let name = reader.text()?;
        if name != key {
            return Err(RestoreFault::OtherKey(name.into()));
        }
        let partition = reader.fixed_u32()?;
        let topics = reader.length(2)?;
        if topics == 0 {
            return Err(SnapshotFault::Malformed("a partition without a topic").into());
        }
        let restored = Self {
            partition,
            topics: (0..topics)
                .map(|_| Ok((reader.text()?.to_owned(), reader.option(Reader::signed)?)))
                .collect::<Result<_, SnapshotFault>>()?,
            arcs: reader.option(Reader::signed)?,
            effective: reader.option(Reader::signed)?,
            degraded: reader.truth()?,
            covers: read_covers(&mut reader, programs)?,
            events: read_events(&mut reader)?,
            tombs: read_tombs(&mut reader)?,
            ends: read_ends(&mut reader, programs)?,
        };
        reader.end()?;
        let bound = restored.effective.unwrap_or(i64::MIN);
        if restored.tombs.iter().any(|tomb| tomb.0.0 < bound) {
            return Err(SnapshotFault::Malformed("a retraction before the punctuation").into());
        }
        Ok(restored)
    }
}

fn read_covers(reader: &mut Reader<'_>, programs: &[Program]) -> Result<Vec<RestoredCover>, RestoreFault> {
    let mut covers = Vec::new();
    for _ in 0..reader.length(1)? {
        let name = reader.text()?;
        let pattern = programs.iter().position(|program| &*program.name == name);
        let cover = read_cover(reader, pattern.map(|number| &programs[number]))?;
        if let Some(pattern) = pattern {
            covers.push(RestoredCover { pattern, ..cover });
        }
    }
    if !covers.is_sorted_by(|one, other| one.pattern < other.pattern) {
        return Err(SnapshotFault::Malformed("patterns out of order").into());
    }
    Ok(covers)
}

/// Reads a cover; one of a pattern that is not there is read all the same, to come to what follows.
fn read_cover(reader: &mut Reader<'_>, program: Option<&Program>) -> Result<RestoredCover, RestoreFault> {
    let registers = (0..reader.length(1)?).map(|_| reader.text());
    let names: Vec<&str> = registers.collect::<Result<_, _>>()?;
    if let Some(program) = program
        && !names
            .iter()
            .copied()
            .eq(program.registers.iter().map(|known| &*known.name))
    {
        return Err(RestoreFault::OtherRegisters(program.name.to_string()));
    }
    let mut cover = RestoredCover {
        seq: reader.option(Reader::signed)?,
        hidden: read_seqs(reader)?.into_iter().collect(),
        ..RestoredCover::default()
    };
    for _ in 0..reader.length(2)? {
        let form = reader.binary()?;
        if let Some(program) = program {
            cover.configurations.push(read_configuration(form, program)?);
        } else {
            cover.configurations.push((0, Vec::new()));
        }
    }
    for _ in 0..reader.length(6)? {
        cover
            .starts
            .push(read_start(reader, cover.configurations.len(), program)?);
    }
    if !cover.starts.is_sorted_by(|a, b| a.event.place() < b.event.place()) {
        return Err(SnapshotFault::Malformed("start events out of order").into());
    }
    Ok(cover)
}

fn read_configuration(form: &[u8], program: &Program) -> Result<(u32, Vec<Value>), RestoreFault> {
    let mut reader = Reader::new(form);
    let state = reader.text()?;
    let Some(number) = program.find_state(state) else {
        return Err(RestoreFault::UnknownState(program.name.to_string(), state.to_owned()));
    };
    let mut values = Vec::with_capacity(program.registers.len());
    for register in &program.registers {
        let value = reader.value()?;
        if !is_value_of(register, &value) {
            return Err(RestoreFault::OtherRegisters(program.name.to_string()));
        }
        values.push(value);
    }
    reader.end()?;
    Ok((number, values))
}

fn is_value_of(register: &Register, value: &Value) -> bool {
    matches!(
        (register.kind, value),
        (1, Value::Int(_)) | (2, Value::Float(_)) | (3, Value::Bool(_)) | (4, Value::Str(_))
    )
}

fn read_start(
    reader: &mut Reader<'_>,
    configurations: usize,
    program: Option<&Program>,
) -> Result<RestoredStart, RestoreFault> {
    let event = read_identity(reader)?;
    let consumed = reader.unsigned()?;
    if let Some(program) = program
        && matches!(program.window, Window::Events(_)) == (consumed == 0)
    {
        return Err(RestoreFault::OtherWindow(program.name.to_string()));
    }
    let mut members = Vec::new();
    for _ in 0..reader.length(1)? {
        let member = reader.unsigned()?;
        let place = usize::try_from(member).ok().filter(|place| *place < configurations);
        members.push(place.ok_or(SnapshotFault::Malformed("a partial match that is not there"))?);
    }
    if members.is_empty() || !members.is_sorted_by(|one, other| one < other) {
        return Err(SnapshotFault::Malformed("partial matches out of order").into());
    }
    Ok(RestoredStart {
        event,
        consumed,
        members,
    })
}

fn read_identity(reader: &mut Reader<'_>) -> Result<RestoredEvent, SnapshotFault> {
    Ok(RestoredEvent {
        ts: reader.signed()?,
        seq: reader.option(Reader::signed)?,
        id: reader.text()?.to_owned(),
        ..RestoredEvent::default()
    })
}

fn read_events(reader: &mut Reader<'_>) -> Result<Vec<RestoredEvent>, SnapshotFault> {
    let mut events = Vec::new();
    for _ in 0..reader.length(7)? {
        let identity = read_identity(reader)?;
        events.push(RestoredEvent {
            rev: reader.signed()?,
            kind: reader.option(Reader::text)?.map(ToOwned::to_owned),
            data: reader.binary()?.to_owned(),
            other_seqs: read_seqs(reader)?,
            ..identity
        });
    }
    if !events.is_sorted_by(|a, b| a.place() < b.place()) {
        return Err(SnapshotFault::Malformed("events out of order"));
    }
    Ok(events)
}

/// Time and id.
type Identity = (i64, Id);

fn read_tombs(reader: &mut Reader<'_>) -> Result<Vec<(Identity, Tomb)>, SnapshotFault> {
    let mut tombs = Vec::new();
    for _ in 0..reader.length(4)? {
        let identity = (reader.signed()?, Id::of(reader.text()?));
        let (rev, seqs) = (reader.signed()?, read_seqs(reader)?);
        tombs.push((identity, Tomb { rev, seqs }));
    }
    if !tombs.is_sorted_by(|a, b| a.0 < b.0) {
        return Err(SnapshotFault::Malformed("retractions out of order"));
    }
    Ok(tombs)
}

/// Where matches ended whose start is forgotten; older snapshots, and most others, end before it.
fn read_ends(reader: &mut Reader<'_>, programs: &[Program]) -> Result<Vec<(usize, CountedEnds)>, SnapshotFault> {
    let mut ends = Vec::new();
    if reader.end().is_ok() {
        return Ok(ends);
    }
    for _ in 0..reader.length(2)? {
        let name = reader.text()?;
        let pattern = programs.iter().position(|program| &*program.name == name);
        let mut counted = CountedEnds::new();
        for _ in 0..reader.length(4)? {
            let partition = reader.binary()?.to_vec();
            let (ts, seq) = (reader.signed()?, reader.signed()?);
            let id = Id::of(reader.text()?);
            counted.insert(partition, Standing { ts, seq, id });
        }
        ends.extend(pattern.map(|pattern| (pattern, counted)));
    }
    Ok(ends)
}

fn read_seqs(reader: &mut Reader<'_>) -> Result<Vec<i64>, SnapshotFault> {
    let seqs: Vec<i64> = (0..reader.length(1)?)
        .map(|_| reader.signed())
        .collect::<Result<_, _>>()?;
    if seqs.is_sorted_by(|one, other| one < other) {
        Ok(seqs)
    } else {
        Err(SnapshotFault::Malformed("sequence numbers out of order"))
    }
}
