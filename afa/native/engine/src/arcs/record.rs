//! Arc records in their usual shape, read without copying. Whatever is unusual is left to the full reader.

use crate::arcs::layout;

/// A longer record is not usual, and its texts are not worth remembering.
const MAX_BYTES: usize = 65_536;
/// Names may have this many characters; counted in bytes here, so a few long ones are left to the full reader.
pub(crate) const MAX_ID_BYTES: usize = 255;

/// The texts that make up a body, as they stand in the record. Texts that differ may still mean the same body.
///
/// Bytes, because they are only ever compared with texts that were checked: those need not be checked to be UTF-8 again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BodyText<'a> {
    /// The name of the source state.
    pub source: &'a [u8],
    /// The name of the target state.
    pub target: &'a [u8],
    /// The fence; none if the record does not say.
    pub fence: Option<&'a [u8]>,
    /// The object that holds the transfer, braces and spaces included; none if the record does not say.
    pub transfer: Option<&'a [u8]>,
}

/// An `arc` or `arc-retract` record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArcRecord<'a> {
    /// Whether it is an `arc-retract`; then there is neither body nor lifetime.
    pub removes: bool,
    /// The pattern that it is about.
    pub pattern: &'a str,
    /// The arc that it is about: a proper name.
    pub id: &'a str,
    /// None: the body that the arc has. Then there is a lifetime.
    pub body: Option<BodyText<'a>>,
    /// `[le, re)`, inner nones are unbounded; none if the record does not say. Never the least 64-bit number, which
    /// stands for unbounded where arcs are kept.
    pub valid: Option<(Option<i64>, Option<i64>)>,
}

/// Reads a record of the usual shape. None says nothing about the record: it may be good, bad, or no arc record.
///
/// Usual is: valid JSON of at most 64 KB; texts without escapes; only the fields of the tape's arc records, each once;
/// no `epsilon` and no `final`; fence and transfer in quotes; an id of 1 to 255 bytes.
#[must_use]
pub fn read_arc_record(json: &[u8]) -> Option<ArcRecord<'_>> {
    if json.len() > MAX_BYTES {
        return None;
    }
    layout::read(json).or_else(|| read_any_layout(json))
}

/// Fields in any order, with any spaces.
pub(crate) fn read_any_layout(json: &[u8]) -> Option<ArcRecord<'_>> {
    let mut scanner = Scanner { bytes: json, at: 0 };
    let mut fields = Fields::default();
    scanner.object(|scanner| fields.take(scanner))?;
    scanner.space();
    if scanner.at < json.len() {
        return None;
    }
    fields.record()
}

/// A field's name and the quote after it, as the first bytes of a word.
struct Name {
    word: u64,
    mask: u64,
    length: usize,
}

impl Name {
    const fn new(name: &str) -> Self {
        let name = name.as_bytes();
        assert!(name.len() < 8, "a name and its quote fit into a word");
        let mut word = (b'"' as u64) << (8 * name.len());
        let mut mask = 0xFF << (8 * name.len());
        let mut at = 0;
        while at < name.len() {
            word |= (name[at] as u64) << (8 * at);
            mask |= 0xFF << (8 * at);
            at += 1;
        }
        let length = name.len() + 1;
        Self { word, mask, length }
    }
}

const OPERATION: Name = Name::new("op");
const PATTERN: Name = Name::new("pattern");
const ARC: Name = Name::new("arc");
const VALID: Name = Name::new("valid");
const ID: Name = Name::new("id");
const SOURCE: Name = Name::new("from");
const TARGET: Name = Name::new("to");
const FENCE: Name = Name::new("when");
const TRANSFER: Name = Name::new("set");

/// The fields of a record and of its arc.
#[derive(Default)]
struct Fields<'a> {
    operation: Option<&'a [u8]>,
    pattern: Option<&'a [u8]>,
    has_arc: bool,
    valid: Option<(Option<i64>, Option<i64>)>,
    id: Option<&'a [u8]>,
    source: Option<&'a [u8]>,
    target: Option<&'a [u8]>,
    fence: Option<&'a [u8]>,
    transfer: Option<&'a [u8]>,
}

/// None if the field was there already.
#[inline]
fn put<T>(place: &mut Option<T>, value: T) -> Option<()> {
    if place.is_some() {
        return None;
    }
    *place = Some(value);
    Some(())
}

impl<'a> Fields<'a> {
    #[inline]
    fn take(&mut self, scanner: &mut Scanner<'a>) -> Option<()> {
        let word = scanner.name()?;
        if scanner.is_at(word, &OPERATION)? {
            put(&mut self.operation, scanner.string()?)
        } else if scanner.is_at(word, &PATTERN)? {
            put(&mut self.pattern, scanner.string()?)
        } else if scanner.is_at(word, &ARC)? {
            if std::mem::replace(&mut self.has_arc, true) {
                return None;
            }
            scanner.object(|scanner| self.take_of_arc(scanner))
        } else if scanner.is_at(word, &VALID)? {
            put(&mut self.valid, scanner.lifetime()?)
        } else {
            None
        }
    }

    #[inline]
    fn take_of_arc(&mut self, scanner: &mut Scanner<'a>) -> Option<()> {
        let word = scanner.name()?;
        let place = if scanner.is_at(word, &ID)? {
            &mut self.id
        } else if scanner.is_at(word, &SOURCE)? {
            &mut self.source
        } else if scanner.is_at(word, &TARGET)? {
            &mut self.target
        } else if scanner.is_at(word, &FENCE)? {
            &mut self.fence
        } else if scanner.is_at(word, &TRANSFER)? {
            return put(&mut self.transfer, scanner.object_of_strings()?);
        } else {
            return None;
        };
        put(place, scanner.string()?)
    }

    fn record(&self) -> Option<ArcRecord<'a>> {
        let removes = match self.operation? {
            b"arc" => false,
            b"arc-retract" => true,
            _ => return None,
        };
        let body = match (self.source, self.target) {
            (Some(source), Some(target)) => Some(BodyText {
                source,
                target,
                fence: self.fence,
                transfer: self.transfer,
            }),
            (None, None) if self.fence.is_none() && self.transfer.is_none() => None,
            _ => return None,
        };
        if removes == (body.is_some() || self.valid.is_some()) {
            return None; // a retraction has neither, a change has one at least
        }
        Some(ArcRecord {
            removes,
            pattern: std::str::from_utf8(self.pattern?).ok()?,
            id: name(self.id?)?,
            body,
            valid: self.valid,
        })
    }
}

/// Names hold no control characters, which are left out of all texts here.
pub(crate) fn name(id: &[u8]) -> Option<&str> {
    if id.is_empty() || id.len() > MAX_ID_BYTES {
        return None;
    }
    std::str::from_utf8(id).ok()
}

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    #[inline]
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// The next eight bytes; after the end there are zeros.
    #[inline]
    fn word(&self) -> u64 {
        match self.bytes.get(self.at..self.at + 8) {
            Some(bytes) => u64::from_le_bytes(bytes.try_into().unwrap_or_default()),
            None => self.last_word(),
        }
    }

    #[cold]
    #[inline(never)]
    fn last_word(&self) -> u64 {
        let missing = self.at + 8 - self.bytes.len();
        let last = self.bytes.last_chunk().map_or(0, |last| u64::from_le_bytes(*last));
        if missing < 8 { last >> (8 * missing) } else { 0 }
    }

    #[inline]
    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// The next byte after spaces must be this one.
    #[inline]
    fn expect(&mut self, byte: u8) -> Option<()> {
        if self.peek() != Some(byte) {
            self.space();
            if self.peek() != Some(byte) {
                return None;
            }
        }
        self.at += 1;
        Some(())
    }

    /// Has every member read, from the spaces before its name to the end of its value.
    #[inline]
    fn object(&mut self, mut member: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.expect(b'{')?;
        if self.expect(b'}').is_some() {
            return Some(());
        }
        loop {
            member(self)?;
            if self.expect(b',').is_none() {
                return self.expect(b'}');
            }
        }
    }

    /// The whole text of an object whose values are texts. Of equal names the full reader takes the last; here the
    /// whole text counts, so they do no harm.
    #[inline(never)]
    fn object_of_strings(&mut self) -> Option<&'a [u8]> {
        self.space();
        let begin = self.at;
        self.object(|scanner| {
            scanner.string()?;
            scanner.expect(b':')?;
            scanner.string().map(|_| ())
        })?;
        self.bytes.get(begin..self.at)
    }

    /// Up to the quote before a member's name: what comes then.
    #[inline]
    fn name(&mut self) -> Option<u64> {
        self.expect(b'"')?;
        Some(self.word())
    }

    /// Whether the word begins with this name; the name and its colon are then read. None if there is no colon.
    #[inline]
    fn is_at(&mut self, word: u64, name: &Name) -> Option<bool> {
        if word & name.mask != name.word {
            return Some(false);
        }
        self.at += name.length;
        self.expect(b':').map(|()| true)
    }

    #[inline]
    fn string(&mut self) -> Option<&'a [u8]> {
        self.expect(b'"')?;
        let begin = self.at;
        loop {
            let stops = stops_of(self.word());
            if stops != 0 {
                self.at += (stops.trailing_zeros() / 8) as usize;
                break;
            }
            self.at += 8;
        }
        let end = self.at;
        if self.peek() != Some(b'"') {
            return None; // an escape, a control character or the end
        }
        self.at += 1;
        self.bytes.get(begin..end)
    }

    fn lifetime(&mut self) -> Option<(Option<i64>, Option<i64>)> {
        self.expect(b'[')?;
        let le = self.end_of_lifetime()?;
        self.expect(b',')?;
        let re = self.end_of_lifetime()?;
        self.expect(b']')?;
        Some((le, re))
    }

    #[inline]
    #[allow(clippy::option_option)] // no number, unbounded and a number are three things
    fn end_of_lifetime(&mut self) -> Option<Option<i64>> {
        self.space();
        if self.peek() == Some(b'n') {
            let is_null = self.word().to_le_bytes().starts_with(b"null");
            self.at += 4;
            return is_null.then_some(None);
        }
        self.integer().map(Some)
    }

    /// A float stops this at its point or exponent, where no reader of what follows expects one.
    #[inline]
    fn integer(&mut self) -> Option<i64> {
        const POWERS: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];
        let negative = self.peek() == Some(b'-');
        self.at += usize::from(negative);
        let begin = self.at;
        let mut number: u64 = 0;
        loop {
            let (chunk, digits) = leading_digits(self.word());
            number = number.wrapping_mul(POWERS[digits]).wrapping_add(chunk);
            self.at += digits;
            if digits < 8 {
                break;
            }
        }
        checked_integer(negative, number, &self.bytes[begin..self.at])
    }
}

/// None if the digits are none, padded with zeros, or too many for 64 bits.
#[inline]
pub(crate) fn checked_integer(negative: bool, number: u64, digits: &[u8]) -> Option<i64> {
    let is_padded = digits.len() > 1 && digits[0] == b'0';
    if digits.is_empty() || digits.len() > 19 || is_padded {
        return None;
    }
    // Nineteen digits fit into an unsigned word; the least number does not get through, and it is unusual anyway.
    let number = i64::try_from(number).ok()?;
    Some(if negative { -number } else { number })
}

/// The number that the digits at the beginning of a word make, and how many they are.
#[inline]
pub(crate) fn leading_digits(word: u64) -> (u64, usize) {
    let values = word ^ 0x3030_3030_3030_3030;
    // No carry leaves a byte below 0xFA, and those above are no digits; a carry only spoils what comes after one.
    let others = (values.wrapping_add(0x0606_0606_0606_0606) | values) & 0xF0F0_F0F0_F0F0_F0F0;
    let count = others.trailing_zeros() / 8;
    if count == 0 {
        return (0, 0);
    }
    let digits = values << (64 - 8 * count); // zeros in front, as if the number had eight digits
    let pairs = (digits.wrapping_mul(10) + (digits >> 8)) & 0x00FF_00FF_00FF_00FF;
    let fours = (pairs.wrapping_mul(100) + (pairs >> 16)) & 0x0000_FFFF_0000_FFFF;
    let eights = fours.wrapping_mul(10_000).wrapping_add(fours >> 32) & 0xFFFF_FFFF;
    (eights, count as usize)
}

/// The high bit of the first byte that is a quote, a backslash or a control character, and perhaps of some after it.
#[inline]
pub(crate) fn stops_of(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let quotes = word ^ (ONES * u64::from(b'"'));
    let escapes = word ^ (ONES * u64::from(b'\\'));
    // A borrow or carry makes false hits only above a true one, or above a byte that is not UTF-8: then the text is
    // left to the full reader, which refuses it.
    let zeros = quotes.wrapping_sub(ONES) & !quotes | escapes.wrapping_sub(ONES) & !escapes;
    let controls = (word.wrapping_sub(ONES * 0x20) | word.wrapping_add(ONES)) & !word;
    (zeros | controls) & HIGHS
}

#[cfg(test)]
mod tests {
    use super::{ArcRecord, BodyText, MAX_BYTES, read_arc_record};

    #[test]
    fn the_shapes_of_the_tape_are_read() {
        let whole = br#"{"op":"arc","pattern":"q1","arc":{"id":"a7","from":"q1","to":"q3","when":"e.price > 9",
            "set": {"n" : "r.n + 1"} },"valid":[5000, null]}"#;
        let body = BodyText {
            source: b"q1",
            target: b"q3",
            fence: Some(b"e.price > 9"),
            transfer: Some(br#"{"n" : "r.n + 1"}"#),
        };
        let expected = ArcRecord {
            removes: false,
            pattern: "q1",
            id: "a7",
            body: Some(body),
            valid: Some((Some(5000), None)),
        };
        assert_eq!(read_arc_record(whole), Some(expected));
        let ended = br#" {"valid":[null,-5000],"arc":{"id":"a7"},"pattern":"q1","op":"arc"} "#;
        let (body, valid) = (None, Some((None, Some(-5000))));
        assert_eq!(
            read_arc_record(ended),
            Some(ArcRecord {
                body,
                valid,
                ..expected
            })
        );
        let retraction = br#"{"op":"arc-retract","pattern":"q1","arc":{"id":"a7"}}"#;
        let (removes, valid) = (true, None);
        let expected = ArcRecord {
            removes,
            body,
            valid,
            ..expected
        };
        assert_eq!(read_arc_record(retraction), Some(expected));
    }

    #[test]
    fn what_is_unusual_is_left_to_the_full_reader() {
        for arc in [
            r#""id":"a""#,
            r#""id":"a","from":"s""#,
            r#""id":"a","from":"s","to":"t","when":true"#,
            r#""id":"a","from":"s","to":"t","set":{"n":1}"#,
            r#""id":"a","from":"s","to":"t","epsilon":false"#,
            r#""id":"a","from":"s","to":"t","final":true"#,
            r#""id":"a","id":"a","from":"s","to":"t""#,
            r#""id":"\u0061","from":"s","to":"t""#,
            r#""id":"","from":"s","to":"t""#,
            "\"id\":\"\x7f\",\"from\":\"s\",\"to\":\"t\"",
            r#""from":"s","to":"t""#,
        ] {
            let record = format!(r#"{{"op":"arc","pattern":"p","arc":{{{arc}}}}}"#);
            assert_eq!(read_arc_record(record.as_bytes()), None, "{record}");
        }
        for lifetime in [
            "null",
            "[1]",
            "[1,2,3]",
            "[1.0,null]",
            "[1e3,null]",
            "[01,null]",
            "[-,null]",
            "[true,null]",
            "[null,9223372036854775808]",
            "[-9223372036854775808,null]",
            "[1,null",
        ] {
            let record = format!(r#"{{"op":"arc","pattern":"p","arc":{{"id":"a"}},"valid":{lifetime}}}"#);
            assert_eq!(read_arc_record(record.as_bytes()), None, "{record}");
        }
        assert_eq!(
            read_arc_record(br#"{"op":"arc-retract","pattern":"p","arc":{"id":"a"},"valid":[1,2]}"#),
            None
        );
        assert_eq!(read_arc_record(br#"{"op":"punctuation","ts":5}"#), None);
    }

    #[test]
    fn long_records_are_left_to_the_full_reader() {
        let mut record = br#"{"op":"arc-retract","pattern":"p","arc":{"id":"a"}}"#.to_vec();
        record.resize(MAX_BYTES, b' ');
        assert!(read_arc_record(&record).is_some());
        record.push(b' ');
        assert_eq!(read_arc_record(&record), None);
    }
}
