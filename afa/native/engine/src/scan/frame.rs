//! Records of one source often have the same widths, too: then every value stands where it stood before. All bytes between
//! the values are compared at once, and no value has to wait until the one before it has been read.
//!
//! A frame is made of a record that was read in another way, and accepts nothing else: a record that differs in any byte
//! between the values, or whose values do not fill their places, is read in that other way.

use super::json::Parser;
use super::number::ShortNumber;
use super::shape::{Part, Target};
use super::text::specials;

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
    let (form, quote) = match bytes {
        [b'"', text @ .., b'"'] if !text.contains(&b'\\') => (Form::Text, 1),
        [b'-' | b'0'..=b'9', ..] if bytes.len() <= SHORT_NUMBER => (Form::ShortNumber, 0),
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

/// Where the key is among the values, if it is a text and there is nothing else of a head but a number as the time.
fn place_of_plain_key(values: &[Value]) -> Option<usize> {
    let (key, time) = (Target::part(Part::Key), Target::part(Part::Time));
    let place = values
        .iter()
        .position(|value| value.target == key && value.form == Form::Text)?;
    let mut others = (0..).zip(values).filter(|(other, value)| *other != place && value.target.is_part());
    let is_time = others.next().is_some_and(|(_, value)| value.target == time && value.form != Form::Text);
    (is_time && others.next().is_none()).then_some(place)
}

/// Bytes that a record must have: eight to a word, with a mask.
#[derive(Debug)]
struct Words {
    blocks: Vec<[(u64, u64); 4]>,
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
            let mask = padded_word(mask);
            (padded_word(bytes) & mask, mask)
        });
        let words: Vec<_> = words.collect();
        let (blocks, rest) = words.as_chunks();
        Self {
            blocks: blocks.to_vec(),
            rest: rest.to_vec(),
        }
    }

    /// Whether a record of the same length, with zeros behind it, has these bytes.
    #[inline]
    fn are_in(&self, padded: &[u8]) -> bool {
        let Some((in_blocks, behind)) = padded.split_at_checked(32 * self.blocks.len()) else {
            return false;
        };
        let mut differs = 0;
        for (block, known) in in_blocks.as_chunks::<32>().0.iter().zip(&self.blocks) {
            let words = block.as_chunks().0;
            for place in 0..4 {
                let (word, mask) = known[place];
                differs |= (u64::from_le_bytes(words[place]) & mask) ^ word;
            }
        }
        for (bytes, (word, mask)) in behind.as_chunks().0.iter().zip(&self.rest) {
            differs |= (u64::from_le_bytes(*bytes) & mask) ^ word;
        }
        differs == 0
    }
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
        frame.length == self.end()
            && frame.around.are_in(self.bytes)
            && frame.key.is_none_or(|key| self.fills_text(&key))
            && self.fills(frame)
    }

    /// The same, but the key has to be the known one, and is not captured.
    #[inline]
    pub(super) fn fits_with_key(&mut self, frame: &Frame) -> bool {
        frame.length == self.end() && frame.with_key.are_in(self.bytes) && self.fills(frame)
    }

    #[inline]
    fn fills(&mut self, frame: &Frame) -> bool {
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
        let Some(number) = ShortNumber::read(self.word(value.begin as usize), value.length) else {
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
            let inside = u64::MAX >> (64 - 8 * left.min(8));
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
