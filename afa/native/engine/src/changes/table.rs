//! What a feed says, as a table that needs nothing of the engine any more.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;

use foldhash::fast::FixedState;

use crate::bindings::matches::BoundMatches;
use crate::changes::arrow::{TextBuffer, Texts};
use crate::changes::bound_text::{Identity, WrittenIds};
use crate::changes::graphs::ToldGraph;
use crate::changes::json_text::{LONG_POSITION, Positions, write_int, write_position, write_text};
pub use crate::changes::outcomes::{Outcome, Outcomes};
use crate::rows::event::Id;

/// What happened. The order is that in which the changes of one record are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum ChangeKind {
    /// A match was wrong after all.
    Retract,
    /// A match came to be.
    Insert,
    /// The window of a start event has closed, and no match came from it.
    Timeout,
    /// Nothing below a time changes any more.
    Punctuation,
}

impl ChangeKind {
    /// As in the field `op`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Retract => "retract",
            Self::Insert => "insert",
            Self::Timeout => "timeout",
            Self::Punctuation => "punctuation",
        }
    }
}

/// The id of an event: the number of a position, or where its text lies in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdSlot(u64);

const TEXT: u64 = 1 << 63;
/// A text lies behind its length.
const LENGTH_BYTES: usize = 4;

impl IdSlot {
    /// The id of no event.
    pub(crate) const NOTHING: Self = Self(0);

    /// The id of a position; `None` if it is so large that only its text fits.
    #[must_use]
    pub const fn position(number: u64) -> Option<Self> {
        if number < TEXT { Some(Self(number)) } else { None }
    }

    /// Whether it is a position, and has no more digits than most.
    #[inline]
    pub(crate) const fn is_short_position(self) -> bool {
        self.0 < LONG_POSITION
    }

    /// The number of a position.
    #[inline]
    pub(crate) const fn number(self) -> u64 {
        self.0
    }
}

/// One change. Numbers are places in the lists of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeRow {
    /// What happened.
    pub kind: ChangeKind,
    /// Whether a limit has degraded the key.
    pub degraded: bool,
    /// Whether the match has an end of life.
    pub has_until: bool,
    /// The pattern.
    pub pattern: u32,
    /// The key; of a punctuation the number of its partition.
    pub key: u32,
    /// The final state and the registers, or of a query the bindings; without meaning for a punctuation.
    pub outcome: u32,
    /// The place of the input record in its batch.
    pub record: u32,
    /// The number of the partition that the key belongs to, or that the punctuation is about.
    pub partition: u32,
    /// Time of the start event.
    pub start: i64,
    /// Time of the end event, or of the punctuation.
    pub end: i64,
    /// End of life.
    pub until: i64,
    /// Id of the start event.
    pub first: IdSlot,
    /// Id of the end event.
    pub last: IdSlot,
}

impl ChangeRow {
    /// A punctuation.
    #[must_use]
    pub const fn punctuation(pattern: u32, partition: u32, ts: i64, record: u32) -> Self {
        Self {
            kind: ChangeKind::Punctuation,
            degraded: false,
            has_until: false,
            pattern,
            key: partition,
            outcome: 0,
            record,
            partition,
            start: ts,
            end: ts,
            until: 0,
            first: IdSlot::NOTHING,
            last: IdSlot::NOTHING,
        }
    }
}

/// What is said about a pattern.
#[derive(Clone, Debug)]
pub struct PatternFace {
    /// Its name.
    pub name: Arc<str>,
    /// The names of its registers, in order; of a query, of what it returns.
    pub registers: Arc<[Arc<str>]>,
    /// Whether it is a query, whose matches have no state.
    pub is_query: bool,
    /// The variables of a query, if it is told what they have bound.
    pub variables: Option<Arc<[Arc<str>]>>,
    /// Whether it is a query whose matches are told as graphs.
    pub is_compressed: bool,
}

/// The patterns of an engine in order of names.
#[derive(Debug)]
pub struct Patterns {
    faces: Vec<PatternFace>,
    names: TextBuffer,
}

impl Patterns {
    /// All names, one behind the other.
    pub(crate) fn names(&self) -> Texts<'_> {
        self.names.texts()
    }
}

impl FromIterator<PatternFace> for Patterns {
    fn from_iter<T: IntoIterator<Item = PatternFace>>(faces: T) -> Self {
        let faces: Vec<PatternFace> = faces.into_iter().collect();
        let mut names = TextBuffer::for_texts(faces.len(), 16);
        for face in &faces {
            names.push(face.name.as_bytes());
        }
        Self { faces, names }
    }
}

impl Deref for Patterns {
    type Target = [PatternFace];

    fn deref(&self) -> &[PatternFace] {
        &self.faces
    }
}

/// Changes in the order they are told. To add a match, give its key, outcome and ids to the table, then push the row.
#[derive(Clone, Debug)]
pub struct ChangeTable {
    /// The changes.
    pub rows: Vec<ChangeRow>,
    /// The patterns in order of names.
    pub patterns: Arc<Patterns>,
    /// The keys, each once.
    pub keys: Vec<Arc<str>>,
    /// The outcomes.
    pub outcomes: Outcomes,
    /// The texts of ids, each behind its length.
    pub texts: Vec<u8>,
    /// What matches of queries have bound.
    pub bound: BoundMatches,
    /// What is told of matches that share their end event.
    pub graphs: Vec<ToldGraph>,
}

impl ChangeTable {
    /// A table without changes.
    #[must_use]
    pub fn new(patterns: Arc<Patterns>) -> Self {
        Self {
            rows: Vec::new(),
            patterns,
            keys: Vec::new(),
            outcomes: Outcomes::default(),
            texts: Vec::new(),
            bound: BoundMatches::default(),
            graphs: Vec::new(),
        }
    }

    /// Keeps an id.
    pub fn push_id(&mut self, id: &Id) -> IdSlot {
        match id {
            Id::Number(number) => IdSlot::position(*number).unwrap_or_else(|| self.push_text(&number.to_string())),
            Id::Text(text) => self.push_text(text),
        }
    }

    /// Keeps an id that is a text; one beyond 4 GB, which no record can bring, would be cut off.
    pub fn push_text(&mut self, text: &str) -> IdSlot {
        let slot = IdSlot(TEXT | self.texts.len() as u64);
        let length = u32::try_from(text.len()).unwrap_or(0);
        self.texts.extend_from_slice(&length.to_le_bytes());
        self.texts.extend_from_slice(&text.as_bytes()[..length as usize]);
        slot
    }

    /// An id as it is printed and compared.
    #[must_use]
    pub fn id_text(&self, slot: IdSlot) -> Cow<'_, str> {
        self.sources().id_text(slot)
    }

    /// The match id: BLAKE2b-128 over `[pattern, key, start.ts, start.id, end.ts, end.id, [state, [registers]]]`.
    #[must_use]
    pub fn match_id(&self, row: &ChangeRow) -> [u8; 16] {
        self.sources().match_id(row, &mut Vec::with_capacity(128))
    }

    /// Orders the rows from one place on as the changes of one record: retractions, then inserts, each by key, start,
    /// end and match id, then punctuations by pattern and partition.
    pub fn sort_group(&mut self, from: usize) {
        let mut rows = std::mem::take(&mut self.rows);
        if let Some(group) = rows.get_mut(from..).filter(|group| group.len() > 1) {
            let sources = self.sources();
            let order = |a: &ChangeRow, b: &ChangeRow| sources.order(a, b);
            // Most groups are told in order, and then no id is made.
            if !group.is_sorted_by(|a, b| order(a, b).is_le()) {
                group.sort_by(order);
            }
        }
        self.rows = rows;
    }

    /// Lets match ids decide the order of changes of one record that agree in everything else.
    pub fn settle_ties(&mut self) {
        let same = |a: &ChangeRow, b: &ChangeRow| {
            (a.record, a.kind, a.key, a.start, a.end) == (b.record, b.kind, b.key, b.start, b.end)
                && matches!(a.kind, ChangeKind::Retract | ChangeKind::Insert)
        };
        let mut from = 0;
        while from < self.rows.len() {
            let count = self.rows[from..]
                .iter()
                .take_while(|row| same(&self.rows[from], row))
                .count();
            if count > 1 {
                let mut ties: Vec<([u8; 16], ChangeRow)> = self.rows[from..from + count]
                    .iter()
                    .map(|row| (self.match_id(row), *row))
                    .collect();
                ties.sort_by_key(|(id, _)| *id);
                for (row, (_, tie)) in self.rows[from..].iter_mut().zip(ties) {
                    *row = tie;
                }
            }
            from += count.max(1);
        }
    }

    /// Cancels inserts and retractions of one match from one place on; of what is left over the last word counts.
    pub fn net_from(&mut self, from: usize) {
        let mut balance: HashMap<Identity, i64, FixedState> = HashMap::default();
        let sign = |row: &ChangeRow| if row.kind == ChangeKind::Insert { 1 } else { -1 };
        let ids: Vec<Option<Identity>> = self.rows[from..].iter().map(|row| self.identity(row)).collect();
        for (row, id) in self.rows[from..].iter().zip(&ids) {
            if let Some(id) = id {
                *balance.entry(id.clone()).or_default() += sign(row);
            }
        }
        let mut kept = Vec::with_capacity(ids.len());
        for (place, row) in self.rows.drain(from..).enumerate() {
            let left = ids[place].as_ref().and_then(|id| balance.get_mut(id));
            match left {
                None => kept.push(row),
                // Matches that differ only in what is not told are several of one identity.
                Some(left) if *left * sign(&row) > 0 => {
                    *left -= sign(&row);
                    kept.push(row);
                }
                Some(_) => {}
            }
        }
        self.rows.extend(kept);
        self.net_graphs_from(from);
    }

    /// The change as `arcfleet replay` prints it, without the end of the line.
    #[must_use]
    pub fn json(&self, row: &ChangeRow) -> Vec<u8> {
        let mut out = Vec::with_capacity(256);
        self.write_json(row, &mut out);
        out
    }

    /// Appends the change as `arcfleet replay` prints it.
    pub fn write_json(&self, row: &ChangeRow, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"op\":\"");
        out.extend_from_slice(row.kind.name().as_bytes());
        out.push(b'"');
        match row.kind {
            ChangeKind::Punctuation => {
                write_member(out, "pattern");
                write_text(out, &self.patterns[row.pattern as usize].name);
                write_member(out, "ts");
                write_int(out, row.end);
            }
            ChangeKind::Timeout => self.write_timeout(row, out),
            ChangeKind::Retract | ChangeKind::Insert => match self.graph(row) {
                Some(graph) => self.write_graph(row, graph, out),
                None => self.write_match(row, out),
            },
        }
        out.push(b'}');
    }

    pub(crate) fn write_key(&self, row: &ChangeRow, out: &mut Vec<u8>) {
        write_member(out, "pattern");
        write_text(out, &self.patterns[row.pattern as usize].name);
        write_member(out, "key");
        write_text(out, &self.keys[row.key as usize]);
    }

    /// Appends what a match and a start event without one have in common.
    pub(crate) fn write_start(&self, row: &ChangeRow, out: &mut Vec<u8>) {
        self.write_key(row, out);
        write_member(out, "start");
        write_int(out, row.start);
    }

    fn write_match(&self, row: &ChangeRow, out: &mut Vec<u8>) {
        write_member(out, "match");
        out.push(b'"');
        write_hex(out, self.match_id(row));
        out.push(b'"');
        self.write_start(row, out);
        write_member(out, "end");
        write_int(out, row.end);
        write_member(out, "until");
        if row.has_until {
            write_int(out, row.until);
        } else {
            out.extend_from_slice(b"null");
        }
        let (outcome, is_query) = (self.outcome(row), self.variables(row).is_some());
        if !is_query {
            write_member(out, "state");
            write_text(out, &outcome.state);
        }
        write_member(out, "registers");
        outcome.write_registers(&self.patterns, out);
        out.extend_from_slice(b",\"events\":{\"first\":");
        write_text(out, &self.id_text(row.first));
        write_member(out, "last");
        write_text(out, &self.id_text(row.last));
        out.push(b'}');
        if is_query {
            write_member(out, "bindings");
            self.write_bindings(row, true, &mut WrittenIds::default(), out);
        }
        if row.degraded {
            out.extend_from_slice(b",\"degraded\":true");
        }
    }

    pub(crate) fn sources(&self) -> Sources<'_> {
        Sources {
            patterns: &self.patterns,
            keys: &self.keys,
            outcomes: &self.outcomes,
            texts: &self.texts,
            bound: &self.bound,
        }
    }
}

pub(crate) fn write_member(out: &mut Vec<u8>, name: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

/// Appends the 32 digits of a match id.
pub(crate) fn write_hex(out: &mut Vec<u8>, id: [u8; 16]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend(
        id.iter()
            .flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]),
    );
}

/// What the numbers in rows stand for.
pub(crate) struct Sources<'a> {
    pub(crate) patterns: &'a [PatternFace],
    pub(crate) keys: &'a [Arc<str>],
    pub(crate) outcomes: &'a [Outcome],
    texts: &'a [u8],
    pub(crate) bound: &'a BoundMatches,
}

impl<'a> Sources<'a> {
    fn id_text(&self, slot: IdSlot) -> Cow<'a, str> {
        if slot.0 & TEXT == 0 {
            let mut digits = Vec::with_capacity(20);
            write_position(&mut digits, slot.0);
            return Cow::Owned(String::from_utf8(digits).unwrap_or_default());
        }
        String::from_utf8_lossy(self.text_bytes(slot))
    }

    /// Appends the bytes of an id.
    #[inline]
    pub(crate) fn write_id(&self, slot: IdSlot, positions: &mut Positions, out: &mut Vec<u8>) {
        if slot.0 & TEXT == 0 {
            positions.write(out, slot.0);
        } else {
            out.extend_from_slice(self.text_bytes(slot));
        }
    }

    #[allow(clippy::cast_possible_truncation)] // a place in memory
    fn text_bytes(&self, slot: IdSlot) -> &'a [u8] {
        let behind = self.texts.get((slot.0 & !TEXT) as usize..).unwrap_or_default();
        let Some((length, behind)) = behind.split_first_chunk::<LENGTH_BYTES>() else {
            return &[];
        };
        behind.get(..u32::from_le_bytes(*length) as usize).unwrap_or_default()
    }

    #[allow(clippy::cast_possible_truncation)] // no text is longer than its four bytes of length say
    pub(crate) fn id_length(&self, slot: IdSlot) -> u32 {
        if slot.0 & TEXT == 0 {
            slot.0.checked_ilog10().map_or(1, |power| power + 1).max(12)
        } else {
            self.text_bytes(slot).len() as u32
        }
    }

    fn order(&self, a: &ChangeRow, b: &ChangeRow) -> Ordering {
        let kinds = a.kind.cmp(&b.kind);
        if kinds.is_ne() {
            return kinds;
        }
        if a.kind == ChangeKind::Punctuation {
            return (a.pattern, a.key).cmp(&(b.pattern, b.key));
        }
        let keys = if a.key == b.key {
            Ordering::Equal
        } else {
            self.keys[a.key as usize].cmp(&self.keys[b.key as usize])
        };
        let plain = keys.then_with(|| (a.start, a.end).cmp(&(b.start, b.end)));
        plain.then_with(|| {
            self.match_id(a, &mut Vec::new())
                .cmp(&self.match_id(b, &mut Vec::new()))
        })
    }
}

/// Writing into memory cannot fail.
#[allow(clippy::needless_pass_by_value)] // results of many types, all without content
pub(crate) fn packed<T, E>(result: Result<T, E>) {
    debug_assert!(result.is_ok());
}
