//! Records of one source often have the same widths, too: then every value stands where it stood before. All bytes between
//! the values are compared at once, and no value has to wait until the one before it has been read.
//!
//! A frame is made of a record that was read in another way, and accepts nothing else: a record that differs in any byte
//! between the values, or whose values do not fill their places, is read in that other way.

use super::capture::{Capture, Kind};
use super::json::Parser;
use super::number::{ShortNumber, short_digits};
use super::records::Padded;
use super::shape::{Part, Shape, Target, first_word};
use super::text::{has_high_bits, specials};

/// Longer records are not framed: comparing them is not what costs.
const MOST_BYTES: usize = 512;
/// So many characters of a number are read at once.
const SHORT_NUMBER: usize = 8;

/// A value of a record, and where it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    pub(super) begin: usize,
    pub(super) end: usize,
    pub(super) target: Target,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// A short number of nothing but digits.
    Digits,
    ShortNumber,
    LongNumber,
    /// Without its quotes, which belong to what is compared.
    Text,
    /// Nothing is left to read: the whole value is compared.
    True,
    False,
    Null,
}

impl Form {
    fn is_number(self) -> bool {
        matches!(self, Self::Digits | Self::ShortNumber | Self::LongNumber)
    }
}

#[derive(Clone, Copy, Debug)]
struct Value {
    begin: u32,
    length: u32,
    target: Target,
    form: Form,
}

impl Value {
    fn of<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        &record[self.begin as usize..(self.begin + self.length) as usize]
    }
}

/// Where the values of a record stand, and all bytes around them.
#[derive(Debug)]
pub(super) struct Frame {
    /// Of the record.
    length: usize,
    around: Words,
    values: Vec<Value>,
    /// The key, if it is a text and nothing else of a head stands in the record but a number as the time. Then it is not
    /// among the values.
    key: Option<Value>,
    /// What is around the values, and this key.
    with_key: Words,
    known_key: Vec<u8>,
}

impl Frame {
    /// The frame of a good record; none if it has values that are neither numbers nor plain texts.
    pub(super) fn of(record: &[u8], placed: impl Iterator<Item = Placed>) -> Option<Self> {
        if record.len() > MOST_BYTES {
            return None;
        }
        let mut values = placed
            .map(|place| value_at(record, place))
            .collect::<Option<Vec<_>>>()?;
        let around = Words::of(record, &values);
        let key = place_of_plain_key(&values).map(|place| values.remove(place));
        Some(Self {
            length: record.len(),
            with_key: Words::of(record, &values),
            known_key: key.map_or(Vec::new(), |key| key.of(record).to_vec()),
            around,
            values,
            key,
        })
    }

    /// Whether nothing of a head stands in it but the key as a text and a number as the time.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        self.key.is_some()
    }

    /// Lets `fits_with_key` look for the key of a record that fits.
    #[inline]
    pub(super) fn learn_key(&mut self, record: &[u8]) {
        let Some(key) = self.key else { return };
        if key.of(record) != self.known_key {
            self.known_key.clear();
            self.known_key.extend_from_slice(key.of(record));
            self.with_key = Words::of(record, &self.values);
        }
    }
}

#[allow(clippy::cast_possible_truncation)] // at most MOST_BYTES
fn value_at(record: &[u8], place: Placed) -> Option<Value> {
    let bytes = &record[place.begin..place.end];
    let is_short = bytes.len() <= SHORT_NUMBER;
    let form = match bytes {
        [b'"', text @ .., b'"'] if !text.contains(&b'\\') => Form::Text,
        [b'0'..=b'9', ..] if is_short && bytes.iter().all(u8::is_ascii_digit) => Form::Digits,
        [b'-' | b'0'..=b'9', ..] if is_short => Form::ShortNumber,
        [b'-' | b'0'..=b'9', ..] => Form::LongNumber,
        b"true" => Form::True,
        b"false" => Form::False,
        b"null" => Form::Null,
        _ => return None,
    };
    // The rest is compared with the bytes around the values.
    let read = match form {
        Form::Text => place.begin + 1..place.end - 1,
        Form::True | Form::False | Form::Null => place.begin..place.begin,
        Form::Digits | Form::ShortNumber | Form::LongNumber => place.begin..place.end,
    };
    Some(Value {
        begin: read.start as u32,
        length: read.len() as u32,
        target: place.target,
        form,
    })
}

/// Where the key is among the values, if it is a text and there is nothing else of a head but a number as the time.
fn place_of_plain_key(values: &[Value]) -> Option<usize> {
    let (key, time) = (Target::part(Part::Key), Target::part(Part::Time));
    let place = values
        .iter()
        .position(|value| value.target == key && value.form == Form::Text)?;
    let mut others = (0..)
        .zip(values)
        .filter(|(other, value)| *other != place && value.target.is_part());
    let is_time = others
        .next()
        .is_some_and(|(_, value)| value.target == time && value.form.is_number());
    (is_time && others.next().is_none()).then_some(place)
}

/// Bytes that a record must have: eight to a word, and masks for them.
#[derive(Debug)]
struct Words {
    blocks: Vec<([u64; 4], [u64; 4])>,
    rest: Vec<(u64, u64)>,
}

impl Words {
    /// All bytes of a record but those of these values.
    fn of(record: &[u8], values: &[Value]) -> Self {
        let mut mask = vec![0xff; record.len()];
        for value in values {
            mask[value.begin as usize..(value.begin + value.length) as usize].fill(0);
        }
        let words = record.chunks(8).zip(mask.chunks(8)).map(|(bytes, mask)| {
            let mask = first_word(mask);
            (first_word(bytes) & mask, mask)
        });
        let words: Vec<_> = words.collect();
        let (blocks, rest) = words.as_chunks::<4>();
        let apart = |block: &[(u64, u64); 4]| (block.map(|(word, _)| word), block.map(|(_, mask)| mask));
        Self {
            blocks: blocks.iter().map(apart).collect(),
            rest: rest.to_vec(),
        }
    }

    /// Whether a record of the same length, with zeros behind it, has these bytes.
    #[inline]
    fn are_in(&self, padded: &[u8]) -> bool {
        let Some((in_blocks, behind)) = padded.split_at_checked(32 * self.blocks.len()) else {
            return false;
        };
        let mut differs = [0; 4];
        for (block, (words, masks)) in in_blocks.as_chunks::<32>().0.iter().zip(&self.blocks) {
            let bytes = block.as_chunks().0;
            for place in 0..4 {
                differs[place] |= (u64::from_le_bytes(bytes[place]) & masks[place]) ^ words[place];
            }
        }
        let mut differs = differs[0] | differs[1] | differs[2] | differs[3];
        for (bytes, (word, mask)) in behind.as_chunks().0.iter().zip(&self.rest) {
            differs |= (u64::from_le_bytes(*bytes) & mask) ^ word;
        }
        differs == 0
    }
}

/// A record that may fit a frame.
pub(super) struct Candidate<'a> {
    record: Padded<'a>,
    shape: &'a Shape,
    capture: &'a mut Capture,
    /// The union of all bytes of texts: a high bit says that UTF-8 has to be checked.
    union: u64,
}

impl<'a> Candidate<'a> {
    /// A record; `union` says what is known of the bytes between its values.
    #[inline]
    pub(super) fn new(record: Padded<'a>, shape: &'a Shape, capture: &'a mut Capture, union: u64) -> Self {
        Self {
            record,
            shape,
            capture,
            union,
        }
    }

    /// Reads the record if it fits; if it says no, what has been captured means nothing.
    #[inline]
    pub(super) fn fits(&mut self, frame: &Frame) -> bool {
        frame.length == self.record.len()
            && frame.around.are_in(self.record.padded())
            && frame.key.is_none_or(|key| self.fills_text(&key))
            && self.fills(frame)
    }

    /// The same, but the key has to be the known one, and is not captured.
    #[inline]
    pub(super) fn fits_with_key(&mut self, frame: &Frame) -> bool {
        frame.length == self.record.len() && frame.with_key.are_in(self.record.padded()) && self.fills(frame)
    }

    #[inline]
    fn fills(&mut self, frame: &Frame) -> bool {
        for value in &frame.values {
            let fills = match value.form {
                Form::Digits => self.fills_digits(value),
                Form::ShortNumber => self.fills_short_number(value),
                Form::LongNumber => self.fills_number(value),
                Form::Text => self.fills_text(value),
                Form::True => self.is_literal(value, Kind::Bool, 1),
                Form::False => self.is_literal(value, Kind::Bool, 0),
                Form::Null => self.is_literal(value, Kind::Null, 0),
            };
            if !fills {
                return false;
            }
        }
        !has_high_bits(self.union) || self.record.is_utf8()
    }

    /// What was compared with the bytes around the values.
    #[inline]
    fn is_literal(&mut self, value: &Value, kind: Kind, word: u64) -> bool {
        self.capture.store(value.target, kind, word);
        true
    }

    /// A number that was an int without a sign, and probably is again.
    #[inline]
    fn fills_digits(&mut self, value: &Value) -> bool {
        let Some(number) = short_digits(self.record.word(value.begin as usize), value.length) else {
            return self.fills_short_number(value);
        };
        self.capture.store_int(value.target, number);
        true
    }

    #[inline]
    fn fills_short_number(&mut self, value: &Value) -> bool {
        let Some(number) = ShortNumber::read(self.record.word(value.begin as usize), value.length) else {
            // An exponent, perhaps.
            return self.fills_number(value);
        };
        // A float costs a division, and the next one would wait for it.
        if value.target != Target::NOTHING {
            let (kind, word) = number.value();
            self.capture.store(value.target, kind, word);
        }
        true
    }

    #[inline(never)]
    fn fills_number(&mut self, value: &Value) -> bool {
        let begin = value.begin as usize;
        let mut parser = Parser::new(self.record, self.shape, self.capture);
        let starts = matches!(parser.byte(begin), b'-' | b'0'..=b'9');
        starts
            && parser
                .number(begin, value.target)
                .is_ok_and(|end| end == begin + value.length as usize)
    }

    #[inline]
    fn fills_text(&mut self, value: &Value) -> bool {
        let (mut at, mut left) = (value.begin as usize, value.length);
        let span = self.capture.in_record(at, left as usize);
        while left > 0 {
            let inside = u64::MAX >> (64 - 8 * left.min(8));
            let word = self.record.word(at) & inside;
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
