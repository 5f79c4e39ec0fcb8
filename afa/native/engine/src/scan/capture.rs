//! What has been found of a record so far.

use super::shape::{PARTS, Part, Shape, Target};

/// A piece of the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its first byte.
    pub begin: u32,
    /// In bytes.
    pub length: u32,
}

impl Span {
    /// The bytes; none if this is another arena's span.
    #[must_use]
    pub fn of(self, arena: &[u8]) -> &[u8] {
        let begin = self.begin as usize;
        arena.get(begin..begin + self.length as usize).unwrap_or_default()
    }
}

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// Not there, null, out of range, or a mapping: unknown.
    Missing,
    /// A 64-bit integer.
    Int(i64),
    /// A finite float.
    Float(f64),
    /// True or false.
    Bool(bool),
    /// A text, unescaped.
    Text(Span),
    /// A list as it is written, for `list_value`.
    List(Span),
}

/// As `Scalar`, with what tells a good head from a bad one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Found {
    Missing,
    Null,
    OutOfRange,
    Mapping,
    Int(i64),
    Float(f64),
    Bool(bool),
    Text(Span),
    List(Span),
}

impl Found {
    #[inline]
    fn scalar(self) -> Scalar {
        match self {
            Self::Missing | Self::Null | Self::OutOfRange | Self::Mapping => Scalar::Missing,
            Self::Int(number) => Scalar::Int(number),
            Self::Float(number) => Scalar::Float(number),
            Self::Bool(truth) => Scalar::Bool(truth),
            Self::Text(span) => Scalar::Text(span),
            Self::List(span) => Scalar::List(span),
        }
    }
}

/// The head and the fields of one record, and the texts that had to be unescaped.
pub(super) struct Capture {
    parts: [Found; PARTS],
    pub(super) values: Vec<Scalar>,
    pub(super) texts: Vec<u8>,
    /// Where the record begins in the arena, and where `texts` will.
    pub(super) record_base: u32,
    pub(super) texts_base: u32,
    /// Per node the record that it was last seen in.
    seen: Vec<u64>,
    record: u64,
}

impl Capture {
    pub(super) fn new(fields: usize, nodes: usize) -> Self {
        Self {
            parts: [Found::Missing; PARTS],
            values: vec![Scalar::Missing; fields],
            texts: Vec::new(),
            record_base: 0,
            texts_base: 0,
            seen: vec![0; nodes],
            record: 0,
        }
    }

    /// Forgets the last record.
    pub(super) fn begin(&mut self, record_base: u32, texts_base: u32) {
        self.parts = [Found::Missing; PARTS];
        self.values.fill(Scalar::Missing);
        self.texts.clear();
        self.record_base = record_base;
        self.texts_base = texts_base;
        self.record += 1;
    }

    #[inline]
    pub(super) fn part(&self, part: Part) -> Found {
        self.parts[part as usize]
    }

    #[inline]
    pub(super) fn store(&mut self, target: Target, found: Found) {
        match target {
            Target::Nothing => {}
            Target::Part(part) => self.parts[part as usize] = found,
            Target::Field(field) => {
                if let Some(value) = self.values.get_mut(field as usize) {
                    *value = found.scalar();
                }
            }
        }
    }

    /// A node's name stands in the record. Of equal names the last one counts, so what an earlier one held is forgotten.
    #[inline]
    pub(super) fn enter(&mut self, shape: &Shape, node: u32) {
        let Some(seen) = self.seen.get_mut(node as usize) else {
            return;
        };
        if *seen == self.record {
            self.forget(shape, node);
        } else {
            *seen = self.record;
        }
    }

    #[cold]
    fn forget(&mut self, shape: &Shape, node: u32) {
        let end = shape.nodes[node as usize].subtree_end;
        for inner in &shape.nodes[node as usize..end as usize] {
            self.store(inner.target, Found::Missing);
        }
    }

    /// Gives a value to all who want it.
    #[inline]
    pub(super) fn copy(&mut self, copies: &[(Target, Target)]) {
        for (from, to) in copies {
            match from {
                Target::Nothing => {}
                Target::Part(part) => self.store(*to, self.part(*part)),
                Target::Field(field) => {
                    if let (Some(value), Target::Field(to)) = (self.values.get(*field as usize).copied(), to) {
                        self.values[*to as usize] = value;
                    }
                }
            }
        }
    }

    /// A text that stands in the record as it is.
    #[inline]
    pub(super) fn in_record(&self, begin: usize, length: usize) -> Span {
        span(self.record_base, begin, length)
    }

    /// A text that was written to the end of `texts`, from `begin` on.
    pub(super) fn in_texts(&self, begin: usize) -> Span {
        span(self.texts_base, begin, self.texts.len() - begin)
    }
}

#[allow(clippy::cast_possible_truncation)] // `Scanner` refuses arenas that 32 bits cannot address
#[inline]
fn span(base: u32, begin: usize, length: usize) -> Span {
    Span {
        begin: base + begin as u32,
        length: length as u32,
    }
}
