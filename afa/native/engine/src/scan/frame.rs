//! Records of one source often have the same widths, too: then every value stands where it stood before. All bytes between
//! the values are compared at once, and no value has to wait until the one before it has been read.
//!
//! A frame is made of a record that was read in another way, and accepts nothing else: a record that differs in any byte
//! between the values, or whose values do not fill their places, is read in that other way.

use super::json::Parser;
use super::number::short_number;
use super::shape::{Part, Target};
use super::text::specials;

/// Longer records are not framed: comparing them is not what costs.
const MOST_BYTES: usize = 512;
/// So many characters of a number are read at once.
const SHORT_NUMBER: u32 = 8;

/// A value of a record, and where it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    pub(super) begin: usize,
    pub(super) end: usize,
    pub(super) target: Target,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    ShortNumber,
    LongNumber,
    /// Without its quotes, which belong to what is compared.
    Text,
}

#[derive(Clone, Copy, Debug)]
struct Value {
    begin: u32,
    length: u32,
    target: Target,
    form: Form,
}

/// Where the values of a record stand, and all bytes around them.
#[derive(Debug)]
pub(super) struct Frame {
    /// Of the record.
    length: usize,
    /// Eight bytes each, and a mask for those between the values.
    words: Vec<(u64, u64)>,
    values: Vec<Value>,
    /// Whether nothing of a head stands in it but the key as a text and the time.
    pub(super) is_plain: bool,
}

impl Frame {
    /// The frame of a good record; none if it has values that are neither numbers nor plain texts.
    pub(super) fn of(record: &[u8], placed: impl Iterator<Item = Placed>) -> Option<Self> {
        if record.len() > MOST_BYTES {
            return None;
        }
        let mut mask = vec![0xff; record.len()];
        let mut values = Vec::new();
        for place in placed {
            let value = value_at(record, place)?;
            let begin = value.begin as usize;
            mask[begin..begin + value.length as usize].fill(0);
            values.push(value);
        }
        let words = record.chunks(8).zip(mask.chunks(8));
        Some(Self {
            length: record.len(),
            words: words
                .map(|(bytes, mask)| {
                    let mask = padded_word(mask);
                    (padded_word(bytes) & mask, mask)
                })
                .collect(),
            is_plain: is_plain(&values),
            values,
        })
    }
}

#[allow(clippy::cast_possible_truncation)] // at most MOST_BYTES
fn value_at(record: &[u8], place: Placed) -> Option<Value> {
    let bytes = &record[place.begin..place.end];
    let (form, quote) = match bytes {
        [b'"', text @ .., b'"'] if !text.contains(&b'\\') => (Form::Text, 1),
        [b'-' | b'0'..=b'9', ..] if bytes.len() <= SHORT_NUMBER as usize => (Form::ShortNumber, 0),
        [b'-' | b'0'..=b'9', ..] => (Form::LongNumber, 0),
        _ => return None,
    };
    Some(Value {
        begin: (place.begin + quote) as u32,
        length: (bytes.len() - 2 * quote) as u32,
        target: place.target,
        form,
    })
}

fn is_plain(values: &[Value]) -> bool {
    let (key, time) = (Target::part(Part::Key), Target::part(Part::Time));
    let has = |target: Target, is_text: bool| {
        let mut its = values.iter().filter(|value| value.target == target);
        its.next_back().is_some_and(|value| (value.form == Form::Text) == is_text)
    };
    let other = |value: &Value| value.target.is_part() && value.target != key && value.target != time;
    has(key, true) && has(time, false) && !values.iter().any(other)
}

fn padded_word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

impl Parser<'_> {
    /// Reads a record that fits the frame; if it says no, what has been captured means nothing.
    #[inline]
    pub(super) fn fits(&mut self, frame: &Frame) -> bool {
        if frame.length != self.end() {
            return false;
        }
        let mut differs = 0;
        for (bytes, (word, mask)) in self.bytes.as_chunks().0.iter().zip(&frame.words) {
            differs |= (u64::from_le_bytes(*bytes) & mask) ^ word;
        }
        if differs != 0 {
            return false;
        }
        for value in &frame.values {
            let fills = match value.form {
                Form::ShortNumber => self.fills_short_number(value),
                Form::LongNumber => self.fills_number(value),
                Form::Text => self.fills_text(value),
            };
            if !fills {
                return false;
            }
        }
        self.check_characters().is_ok()
    }

    #[inline]
    fn fills_short_number(&mut self, value: &Value) -> bool {
        match short_number(self.word(value.begin as usize), value.length) {
            Some((kind, word)) => {
                self.capture.store(value.target, kind, word);
                true
            }
            // An exponent, perhaps.
            None => self.fills_number(value),
        }
    }

    fn fills_number(&mut self, value: &Value) -> bool {
        let begin = value.begin as usize;
        let starts = matches!(self.byte(begin), b'-' | b'0'..=b'9');
        starts
            && self
                .number(begin, value.target)
                .is_ok_and(|end| end == begin + value.length as usize)
    }

    #[inline]
    fn fills_text(&mut self, value: &Value) -> bool {
        let (mut at, mut left) = (value.begin as usize, value.length);
        let span = self.capture.in_record(at, left as usize);
        while left > 0 {
            let bits = 8 * left.min(8);
            let inside = u64::MAX >> (64 - bits);
            let word = self.word(at) & inside;
            if specials(word) & inside != 0 {
                return false;
            }
            self.union |= word;
            at += 8;
            left = left.saturating_sub(8);
        }
        self.capture.store_text(value.target, span);
        true
    }
}
