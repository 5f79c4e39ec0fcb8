//! Arc records in their usual shape, read without copying. Whatever is unusual is left to the full reader.

/// A longer record is not usual, and its texts are not worth remembering.
const MAX_BYTES: usize = 65_536;
/// Names may have this many characters; counted in bytes here, so a few long ones are left to the full reader.
const MAX_ID_BYTES: usize = 255;

/// The texts that make up a body, as they stand in the record. Texts that differ may still mean the same body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BodyText<'a> {
    /// The name of the source state.
    pub source: &'a str,
    /// The name of the target state.
    pub target: &'a str,
    /// The fence; none if the record does not say.
    pub fence: Option<&'a str>,
    /// The object that holds the transfer, braces and spaces included; none if the record does not say.
    pub transfer: Option<&'a str>,
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
    let text = std::str::from_utf8(json).ok()?;
    let mut scanner = Scanner { text, at: 0 };
    let mut fields = Fields::default();
    scanner.object(|scanner, name| fields.take(scanner, name))?;
    scanner.space();
    if scanner.at < json.len() {
        return None;
    }
    fields.record()
}

/// The fields of a record and of its arc.
#[derive(Default)]
struct Fields<'a> {
    operation: Option<&'a str>,
    pattern: Option<&'a str>,
    arc: Option<ArcFields<'a>>,
    valid: Option<(Option<i64>, Option<i64>)>,
}

#[derive(Default)]
struct ArcFields<'a> {
    id: Option<&'a str>,
    source: Option<&'a str>,
    target: Option<&'a str>,
    fence: Option<&'a str>,
    transfer: Option<&'a str>,
}

/// None if the field was there already.
fn put<T>(place: &mut Option<T>, value: T) -> Option<()> {
    match place.replace(value) {
        None => Some(()),
        Some(_) => None,
    }
}

impl<'a> Fields<'a> {
    fn take(&mut self, scanner: &mut Scanner<'a>, name: &str) -> Option<()> {
        match name {
            "op" => put(&mut self.operation, scanner.string()?),
            "pattern" => put(&mut self.pattern, scanner.string()?),
            "valid" => put(&mut self.valid, scanner.lifetime()?),
            "arc" => {
                let mut arc = ArcFields::default();
                scanner.object(|scanner, name| arc.take(scanner, name))?;
                put(&mut self.arc, arc)
            }
            _ => None,
        }
    }

    fn record(self) -> Option<ArcRecord<'a>> {
        let removes = match self.operation? {
            "arc" => false,
            "arc-retract" => true,
            _ => return None,
        };
        let arc = self.arc?;
        let body = arc.body()?;
        let is_usual = if removes {
            body.is_none() && self.valid.is_none()
        } else {
            body.is_some() || self.valid.is_some()
        };
        is_usual.then_some(ArcRecord {
            removes,
            pattern: self.pattern?,
            id: arc.id.filter(|id| is_name(id))?,
            body,
            valid: self.valid,
        })
    }
}

impl<'a> ArcFields<'a> {
    fn take(&mut self, scanner: &mut Scanner<'a>, name: &str) -> Option<()> {
        match name {
            "id" => put(&mut self.id, scanner.string()?),
            "from" => put(&mut self.source, scanner.string()?),
            "to" => put(&mut self.target, scanner.string()?),
            "when" => put(&mut self.fence, scanner.string()?),
            "set" => put(&mut self.transfer, scanner.object_of_strings()?),
            _ => None,
        }
    }

    /// All of a body or nothing of it; half a body is unusual.
    #[allow(clippy::option_option)] // unusual, absent and present are three things
    fn body(&self) -> Option<Option<BodyText<'a>>> {
        match (self.source, self.target) {
            (Some(source), Some(target)) => Some(Some(BodyText {
                source,
                target,
                fence: self.fence,
                transfer: self.transfer,
            })),
            (None, None) if self.fence.is_none() && self.transfer.is_none() => Some(None),
            _ => None,
        }
    }
}

/// Texts of a record hold no control characters below the space, so only the one above is looked for.
fn is_name(id: &str) -> bool {
    !id.is_empty() && id.len() <= MAX_ID_BYTES && !id.as_bytes().contains(&0x7F)
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
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

    /// Whether an item follows; else the closing byte was read.
    #[inline]
    fn has_next(&mut self, close: u8) -> Option<bool> {
        self.space();
        let found = self.peek()?;
        self.at += 1;
        match found {
            b',' => Some(true),
            byte if byte == close => Some(false),
            _ => None,
        }
    }

    /// Hands every member's name to the reader of its value.
    #[inline]
    fn object(&mut self, mut member: impl FnMut(&mut Self, &'a str) -> Option<()>) -> Option<()> {
        self.expect(b'{')?;
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Some(());
        }
        loop {
            let name = self.string()?;
            self.expect(b':')?;
            member(self, name)?;
            if !self.has_next(b'}')? {
                return Some(());
            }
        }
    }

    /// The whole text of an object whose values are texts. Of equal names the full reader takes the last; here the
    /// whole text counts, so they do no harm.
    fn object_of_strings(&mut self) -> Option<&'a str> {
        self.space();
        let begin = self.at;
        self.object(|scanner, _| scanner.string().map(|_| ()))?;
        self.text.get(begin..self.at)
    }

    #[inline]
    fn string(&mut self) -> Option<&'a str> {
        self.expect(b'"')?;
        let begin = self.at;
        let length = plain_length(&self.text.as_bytes()[begin..]);
        self.at = begin + length;
        if self.peek() != Some(b'"') {
            return None; // an escape, a control character or the end
        }
        self.at += 1;
        self.text.get(begin..begin + length)
    }

    fn lifetime(&mut self) -> Option<(Option<i64>, Option<i64>)> {
        self.expect(b'[')?;
        let le = self.bound()?;
        self.expect(b',')?;
        let re = self.bound()?;
        self.expect(b']')?;
        Some((le, re))
    }

    #[allow(clippy::option_option)] // no number, unbounded and a number are three things
    fn bound(&mut self) -> Option<Option<i64>> {
        self.space();
        if self.text.as_bytes()[self.at..].starts_with(b"null") {
            self.at += 4;
            return Some(None);
        }
        self.integer().map(Some)
    }

    /// A float stops this at its point or exponent, where no reader of what follows expects one.
    fn integer(&mut self) -> Option<i64> {
        let negative = self.peek() == Some(b'-');
        self.at += usize::from(negative);
        let begin = self.at;
        let mut number: i64 = 0; // before its sign: the least number does not fit, and it is unusual anyway
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            number = number.checked_mul(10)?.checked_add(i64::from(digit - b'0'))?;
            self.at += 1;
        }
        let digits = self.at - begin;
        let padded = digits > 1 && self.text.as_bytes()[begin] == b'0';
        (digits > 0 && !padded).then_some(if negative { -number } else { number })
    }
}

/// How many bytes there are before a quote, a backslash or a control character.
#[inline]
fn plain_length(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & HIGHS;
    let mut length = 0;
    for chunk in bytes.chunks_exact(8) {
        let word = u64::from_le_bytes(chunk.try_into().unwrap_or_default());
        let quotes = zeros(word ^ (ONES * u64::from(b'"')));
        let escapes = zeros(word ^ (ONES * u64::from(b'\\')));
        let controls = word.wrapping_sub(ONES * 0x20) & !word & HIGHS;
        // A borrow makes false hits only above a true one, and the lowest hit is the one that counts.
        let hits = quotes | escapes | controls;
        if hits != 0 {
            return length + (hits.trailing_zeros() / 8) as usize;
        }
        length += 8;
    }
    let rest = bytes[length..].iter();
    length
        + rest
            .take_while(|byte| **byte >= 0x20 && !matches!(**byte, b'"' | b'\\'))
            .count()
}

#[cfg(test)]
mod tests {
    use super::{ArcRecord, BodyText, MAX_BYTES, read_arc_record};

    #[test]
    fn the_shapes_of_the_tape_are_read() {
        let whole = br#"{"op":"arc","pattern":"q1","arc":{"id":"a7","from":"q1","to":"q3","when":"e.price > 9",
            "set": {"n" : "r.n + 1"} },"valid":[5000, null]}"#;
        let body = BodyText {
            source: "q1",
            target: "q3",
            fence: Some("e.price > 9"),
            transfer: Some(r#"{"n" : "r.n + 1"}"#),
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
