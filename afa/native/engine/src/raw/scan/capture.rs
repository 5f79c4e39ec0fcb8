//! What has been found of a record so far.

use super::shape::{Part, Shape, Target};

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

/// What kind of value stands in a slot. Kept apart from the value itself, because writing an enum and reading it back at
/// once, in pieces of other sizes, makes the processor wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Missing,
    Null,
    OutOfRange,
    Mapping,
    Int,
    Float,
    Bool,
    Text,
    List,
}

/// What was found for a part of the head or for a field.
#[derive(Clone, Copy)]
struct Slot {
    /// The int, the bits of the float, the truth, or the span of the text or list.
    word: u64,
    kind: Kind,
}

impl Slot {
    const MISSING: Self = Self {
        word: 0,
        kind: Kind::Missing,
    };
}

/// The head and the fields of one record, and the texts that had to be unescaped.
pub(super) struct Capture {
    slots: Vec<Slot>,
    pub(super) texts: Vec<u8>,
    /// Where the record begins in the arena, and where `texts` will.
    pub(super) record_base: u32,
    pub(super) texts_base: u32,
    /// Per node the record that it was last seen in.
    seen: Vec<u64>,
    record: u64,
    /// Whether the record holds a name twice, and what the first one held has been forgotten.
    pub(super) has_forgotten: bool,
}

impl Capture {
    pub(super) fn new(fields: usize, shape: &Shape) -> Self {
        Self {
            slots: vec![Slot::MISSING; Target::NOTHING.slot() + 1 + fields],
            texts: Vec::new(),
            record_base: 0,
            texts_base: 0,
            seen: vec![0; shape.nodes.len()],
            record: 0,
            has_forgotten: false,
        }
    }

    /// A record begins. What was found of the last one stays: whoever does not write the same slots clears them first.
    #[inline]
    pub(super) fn begin(&mut self, record_base: u32, texts_base: u32) {
        self.texts.clear();
        self.record_base = record_base;
        self.texts_base = texts_base;
    }

    /// Forgets all that has been found.
    pub(super) fn clear(&mut self) {
        self.slots.fill(Slot::MISSING);
        self.texts.clear();
        self.record += 1;
        self.has_forgotten = false;
    }

    #[inline]
    pub(super) fn kind(&self, part: Part) -> Kind {
        self.slot(Target::part(part)).kind
    }

    /// The int at a part whose kind is that.
    #[inline]
    pub(super) fn int(&self, part: Part) -> i64 {
        self.slot(Target::part(part)).word.cast_signed()
    }

    /// The text at a part whose kind is that.
    #[inline]
    pub(super) fn text(&self, part: Part) -> Span {
        unpacked(self.slot(Target::part(part)).word)
    }

    /// The value of a field.
    #[inline]
    pub(super) fn field(&self, number: u32) -> Scalar {
        let Slot { word, kind } = self.slot(Target::field(number));
        match kind {
            Kind::Missing | Kind::Null | Kind::OutOfRange | Kind::Mapping => Scalar::Missing,
            Kind::Int => Scalar::Int(word.cast_signed()),
            Kind::Float => Scalar::Float(f64::from_bits(word)),
            Kind::Bool => Scalar::Bool(word != 0),
            Kind::Text => Scalar::Text(unpacked(word)),
            Kind::List => Scalar::List(unpacked(word)),
        }
    }

    /// The value of a field, if it is a float.
    #[inline]
    pub(super) fn float(&self, number: u32) -> Option<f64> {
        let Slot { word, kind } = self.slot(Target::field(number));
        (kind == Kind::Float).then(|| f64::from_bits(word))
    }

    #[inline]
    fn slot(&self, target: Target) -> Slot {
        self.slots.get(target.slot()).copied().unwrap_or(Slot::MISSING)
    }

    #[inline]
    pub(super) fn store(&mut self, target: Target, kind: Kind, word: u64) {
        if let Some(slot) = self.slots.get_mut(target.slot()) {
            slot.word = word;
            slot.kind = kind;
        }
    }

    #[inline]
    pub(super) fn store_int(&mut self, target: Target, number: i64) {
        self.store(target, Kind::Int, number.cast_unsigned());
    }

    #[inline]
    pub(super) fn store_float(&mut self, target: Target, number: f64) {
        self.store(target, Kind::Float, number.to_bits());
    }

    #[inline]
    pub(super) fn store_bool(&mut self, target: Target, truth: bool) {
        self.store(target, Kind::Bool, u64::from(truth));
    }

    #[inline]
    pub(super) fn store_text(&mut self, target: Target, span: Span) {
        self.store(target, Kind::Text, packed(span));
    }

    #[inline]
    pub(super) fn store_list(&mut self, target: Target, span: Span) {
        self.store(target, Kind::List, packed(span));
    }

    #[inline]
    pub(super) fn store_mapping(&mut self, target: Target) {
        self.store_unknown(target, Kind::Mapping);
    }

    /// What is unknown as a value, for various reasons.
    #[inline]
    pub(super) fn store_unknown(&mut self, target: Target, kind: Kind) {
        self.store(target, kind, 0);
    }

    /// A node's name stands in the record. Of equal names the last one counts, so what an earlier one held is forgotten.
    #[inline]
    pub(super) fn enter(&mut self, shape: &Shape, node: Option<u32>) {
        let Some((node, seen)) = node.and_then(|node| Some((node, self.seen.get_mut(node as usize)?))) else {
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
        self.has_forgotten = true;
        let end = shape.nodes[node as usize].subtree_end;
        for inner in &shape.nodes[node as usize..end as usize] {
            self.store_unknown(inner.target, Kind::Missing);
        }
    }

    /// Gives a value to the others who want it.
    pub(super) fn copy(&mut self, copies: &[(Target, Target)]) {
        for (from, to) in copies {
            let Slot { word, kind } = self.slot(*from);
            self.store(*to, kind, word);
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

#[inline]
fn packed(span: Span) -> u64 {
    u64::from(span.begin) << 32 | u64::from(span.length)
}

#[inline]
#[allow(clippy::cast_possible_truncation)] // two halves
fn unpacked(word: u64) -> Span {
    Span {
        begin: (word >> 32) as u32,
        length: word as u32,
    }
}
