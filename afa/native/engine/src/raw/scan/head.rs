//! From the parts that were found, in the value or around it, to the head of an event.

use super::capture::{Capture, Kind, Span};
use super::mapping::{Mapping, Place};
use super::shape::Part;

/// What a record asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A new event, or a revision.
    Insert,
    /// The end of an event.
    Retract,
    /// A punctuation, perhaps with a condition.
    Punctuation,
    /// A punctuation of arcs.
    ArcPunctuation,
    /// An arc change or retraction: its checking is not this crate's business.
    Arc,
}

/// What a record says besides its fields. Punctuations have only `ts` and `when`, arcs nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// What the record asks for.
    pub operation: Operation,
    /// The key; events always have one.
    pub key: Option<Span>,
    /// Event time, in the fleet's unit.
    pub ts: i64,
    /// The id that the source gives, or that of the record's position.
    pub id: Option<Span>,
    /// Order among equal `ts`.
    pub seq: Option<i64>,
    /// The revision.
    pub rev: i64,
    /// The event type.
    pub kind: Option<Span>,
    /// The condition of a punctuation.
    pub when: Option<Span>,
}

impl Head {
    pub(super) const fn bare(operation: Operation, ts: i64) -> Self {
        Self {
            operation,
            key: None,
            ts,
            id: None,
            seq: None,
            rev: 0,
            kind: None,
            when: None,
        }
    }
}

/// What Kafka keeps beside a value.
#[derive(Clone, Copy, Debug, Default)]
pub struct Envelope<'a> {
    /// The record's key.
    pub key: Option<&'a [u8]>,
    /// The record's timestamp.
    pub timestamp_ms: Option<i64>,
    /// Of equal names the last one counts.
    pub headers: &'a [(&'a str, &'a [u8])],
    /// Topic, partition and offset: the id of an event without one.
    pub position: Option<(&'a str, u32, i64)>,
}

/// Puts a head together; new texts go to the end of the arena.
pub(super) struct Finisher<'a> {
    pub(super) mapping: &'a Mapping,
    pub(super) capture: &'a Capture,
    pub(super) arena: &'a mut Vec<u8>,
    pub(super) envelope: &'a Envelope<'a>,
}

impl<'a> Finisher<'a> {
    /// The head of a record with a value.
    #[inline]
    pub(super) fn head(&mut self, head: &mut Head) -> Result<(), String> {
        if self.usual_head(head) {
            return Ok(());
        }
        *head = self.any_head()?;
        Ok(())
    }

    fn any_head(&mut self) -> Result<Head, String> {
        match self.operation()? {
            operation @ (Operation::Insert | Operation::Retract) => self.event(operation),
            Operation::Punctuation => {
                let mut head = Head::bare(Operation::Punctuation, self.ts()?);
                head.when = self.text_in_value("when", Part::When)?;
                Ok(head)
            }
            Operation::ArcPunctuation => Ok(Head::bare(Operation::ArcPunctuation, self.ts()?)),
            Operation::Arc => Ok(Head::bare(Operation::Arc, 0)),
        }
    }

    /// The head of an insert in which all is well and nearly all stands in the value: the same as `event` gives.
    #[inline]
    fn usual_head(&mut self, head: &mut Head) -> bool {
        let (mapping, capture) = (self.mapping, self.capture);
        let key = match mapping.key {
            Place::Record => self.envelope.key.is_some_and(<[u8]>::is_ascii),
            _ => capture.kind(Part::Key) == Kind::Text,
        };
        let usual = mapping.is_usual
            && key
            && capture.kind(Part::Time) == Kind::Int
            && capture.kind(Part::Operation) == Kind::Missing
            && matches!(capture.kind(Part::Data), Kind::Missing | Kind::Mapping)
            && matches!(capture.kind(Part::Id), Kind::Missing | Kind::Text)
            && matches!(capture.kind(Part::Kind), Kind::Missing | Kind::Text)
            && matches!(capture.kind(Part::Seq), Kind::Missing | Kind::Int)
            && matches!(capture.kind(Part::Rev), Kind::Missing | Kind::Int);
        let Some(ts) = mapping.clock.number(capture.int(Part::Time)).filter(|_| usual) else {
            return false;
        };
        let text = |part: Part| (capture.kind(part) == Kind::Text).then(|| capture.text(part));
        let int = |part: Part| (capture.kind(part) == Kind::Int).then(|| capture.int(part));
        head.operation = Operation::Insert;
        head.key = text(Part::Key).or_else(|| self.envelope.key.map(|key| self.append(key)));
        head.ts = ts;
        head.id = text(Part::Id);
        if head.id.is_none() && self.envelope.position.is_some() {
            head.id = self.position();
        }
        head.seq = int(Part::Seq);
        head.rev = int(Part::Rev).unwrap_or(0);
        head.kind = text(Part::Kind);
        head.when = None;
        true
    }

    fn operation(&mut self) -> Result<Operation, String> {
        let mapping = self.mapping;
        let Some(span) = self.text("op", &mapping.operation, Part::Operation)? else {
            return Ok(Operation::Insert);
        };
        match span.of(self.arena) {
            b"insert" => Ok(Operation::Insert),
            b"retract" => Ok(Operation::Retract),
            b"punctuation" => Ok(Operation::Punctuation),
            b"arc-punctuation" => Ok(Operation::ArcPunctuation),
            b"arc" | b"arc-retract" => Ok(Operation::Arc),
            other => Err(format!("unknown op `{}`", String::from_utf8_lossy(other))),
        }
    }

    /// An insert, a revision or a retraction.
    pub(super) fn event(&mut self, operation: Operation) -> Result<Head, String> {
        let mapping = self.mapping;
        let id = self.id(operation == Operation::Retract)?;
        let head = Head {
            operation,
            key: self.key()?,
            ts: self.ts()?,
            id,
            seq: self.int("seq", &mapping.seq, Part::Seq)?,
            rev: self.int("rev", &mapping.rev, Part::Rev)?.unwrap_or(0),
            kind: self.text("type", &mapping.kind, Part::Kind)?,
            when: None,
        };
        match self.capture.kind(Part::Data) {
            Kind::Missing | Kind::Mapping => Ok(head),
            _ => Err("`data` must be a mapping".into()),
        }
    }

    fn id(&mut self, retracts: bool) -> Result<Option<Span>, String> {
        let mapping = self.mapping;
        let given = match &mapping.id {
            Place::Record => self.position(),
            place => self.text("id", place, Part::Id)?,
        };
        match given {
            None if retracts => Err("a retraction needs the `id` of the event it takes back".into()),
            None => Ok(self.position()),
            given => Ok(given),
        }
    }

    fn key(&mut self) -> Result<Option<Span>, String> {
        let mapping = self.mapping;
        let key = match &mapping.key {
            Place::Record => match self.envelope.key {
                Some(key) => Some(self.outside("the record's key", key)?),
                None => None,
            },
            place => self.text("key", place, Part::Key)?,
        };
        key.map_or_else(|| Err("a record needs `key`".into()), |key| Ok(Some(key)))
    }

    fn ts(&self) -> Result<i64, String> {
        let clock = self.mapping.clock;
        let outside = || "`ts` is outside 64 bits".to_string();
        let number = match &self.mapping.time {
            Place::Record => {
                let timestamp = self.envelope.timestamp_ms.ok_or("a record needs its timestamp")?;
                return clock.milliseconds(timestamp).ok_or_else(outside);
            }
            place if clock.is_text() => {
                let text = match place {
                    Place::Header(name) => self.header(name),
                    _ => self.text_in_value("ts", Part::Time)?.map(|span| span.of(self.arena)),
                };
                let text = text.ok_or("a record needs `ts`")?;
                return clock.text(text).map_err(|what| format!("`ts` {what}"));
            }
            place => self.int("ts", place, Part::Time)?.ok_or("a record needs `ts`")?,
        };
        clock.number(number).ok_or_else(outside)
    }

    fn text(&mut self, name: &str, place: &Place, part: Part) -> Result<Option<Span>, String> {
        if let Place::Header(header) = place {
            return match self.header(header) {
                None => Ok(None),
                Some(text) => self.outside(name, text).map(Some),
            };
        }
        self.text_in_value(name, part)
    }

    fn text_in_value(&self, name: &str, part: Part) -> Result<Option<Span>, String> {
        match self.capture.kind(part) {
            Kind::Missing => Ok(None),
            Kind::Text => Ok(Some(self.capture.text(part))),
            _ => Err(format!("`{name}` must be a text")),
        }
    }

    fn int(&self, name: &str, place: &Place, part: Part) -> Result<Option<i64>, String> {
        if let Place::Header(header) = place {
            return self.header(header).map(|text| header_int(name, text)).transpose();
        }
        match self.capture.kind(part) {
            Kind::Missing => Ok(None),
            Kind::Int => Ok(Some(self.capture.int(part))),
            Kind::OutOfRange => Err(format!("`{name}` is outside 64 bits")),
            _ => Err(format!("`{name}` must be an integer")),
        }
    }

    fn header(&self, name: &str) -> Option<&'a [u8]> {
        let headers = self.envelope.headers;
        headers
            .iter()
            .rev()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| *value)
    }

    /// Copies a text that does not stand in the value.
    fn outside(&mut self, name: &str, text: &[u8]) -> Result<Span, String> {
        if std::str::from_utf8(text).is_err() {
            return Err(format!("`{name}` is not UTF-8"));
        }
        Ok(self.append(text))
    }

    fn append(&mut self, text: &[u8]) -> Span {
        let begin = self.arena.len();
        self.arena.extend_from_slice(text);
        self.since(begin)
    }

    /// `topic/partition/offset`, padded so that texts are in the order of positions.
    fn position(&mut self) -> Option<Span> {
        let (topic, partition, offset) = self.envelope.position?;
        let begin = self.arena.len();
        self.arena.extend_from_slice(topic.as_bytes());
        self.arena.push(b'/');
        push_number(self.arena, u64::from(partition), 5);
        self.arena.push(b'/');
        push_number(self.arena, offset.unsigned_abs(), 19);
        Some(self.since(begin))
    }

    #[allow(clippy::cast_possible_truncation)] // `Scanner` refuses arenas that 32 bits cannot address
    fn since(&self, begin: usize) -> Span {
        Span {
            begin: begin as u32,
            length: (self.arena.len() - begin) as u32,
        }
    }
}

/// A header holds text: digits, perhaps after a minus.
fn header_int(name: &str, text: &[u8]) -> Result<i64, String> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(format!("`{name}` must be an integer"));
    }
    let text = std::str::from_utf8(text).unwrap_or_default();
    text.parse().map_err(|_| format!("`{name}` is outside 64 bits"))
}

fn push_number(out: &mut Vec<u8>, mut number: u64, least_digits: usize) {
    let mut digits = [b'0'; 20];
    let mut first = digits.len();
    while number > 0 {
        first -= 1;
        #[allow(clippy::cast_possible_truncation)] // a digit
        let digit = (number % 10) as u8;
        digits[first] += digit;
        number /= 10;
    }
    out.extend_from_slice(&digits[first.min(digits.len() - least_digits)..]);
}
