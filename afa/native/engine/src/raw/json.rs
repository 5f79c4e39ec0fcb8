//! Strict JSON into data: bounded in depth, no NaN, no half surrogates; numbers out of range are kept as such.

use std::sync::Arc;

use crate::rows::event::Data;

/// `max_record_depth`, as on a tape.
const MAX_DEPTH: usize = 100;

/// What is wrong, and at which byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotJson {
    /// For people.
    pub what: &'static str,
    /// Counted from 0.
    pub at: usize,
}

/// Reads one JSON value and nothing else.
///
/// # Errors
/// If the bytes are not JSON.
pub fn read(bytes: &[u8]) -> Result<Data, NotJson> {
    let mut reader = Reader { bytes, at: 0 };
    let data = reader.value(0)?;
    reader.space();
    if reader.at < bytes.len() {
        Err(reader.fail("something after the value"))
    } else {
        Ok(data)
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn fail(&self, what: &'static str) -> NotJson {
        NotJson { what, at: self.at }
    }

    fn space(&mut self) {
        while matches!(self.bytes.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Result<Data, NotJson> {
        self.space();
        match self.bytes.get(self.at) {
            Some(b'{' | b'[') if depth >= MAX_DEPTH => Err(self.fail("nested too deeply")),
            Some(b'{') => self.map(depth),
            Some(b'[') => self.list(depth),
            Some(b'"') => self.text().map(|text| Data::Str(text.into())),
            Some(b't') => self.word("true", Data::Bool(true)),
            Some(b'f') => self.word("false", Data::Bool(false)),
            Some(b'n') => self.word("null", Data::Null),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(_) => Err(self.fail("not a value")),
            None => Err(self.fail("the end, where a value should be")),
        }
    }

    fn word(&mut self, word: &str, data: Data) -> Result<Data, NotJson> {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return Err(self.fail("not a value"));
        }
        self.at += word.len();
        Ok(data)
    }

    fn expect(&mut self, byte: u8, what: &'static str) -> Result<(), NotJson> {
        if self.bytes.get(self.at) != Some(&byte) {
            return Err(self.fail(what));
        }
        self.at += 1;
        Ok(())
    }

    fn map(&mut self, depth: usize) -> Result<Data, NotJson> {
        self.at += 1;
        let mut members: Vec<(Arc<str>, Data)> = Vec::new();
        self.space();
        if self.bytes.get(self.at) == Some(&b'}') {
            self.at += 1;
            return Ok(Data::Map(members));
        }
        loop {
            self.space();
            if self.bytes.get(self.at) != Some(&b'"') {
                return Err(self.fail("a member's name in quotes is needed"));
            }
            let name = self.text()?;
            self.space();
            self.expect(b':', "`:` is needed")?;
            let data = self.value(depth + 1)?;
            match members.iter_mut().find(|(known, _)| **known == *name) {
                Some(known) => known.1 = data,
                None => members.push((name.into(), data)),
            }
            self.space();
            match self.bytes.get(self.at) {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                _ => return Err(self.fail("`,` or `}` is needed")),
            }
        }
        self.at += 1;
        Ok(Data::Map(members))
    }

    fn list(&mut self, depth: usize) -> Result<Data, NotJson> {
        self.at += 1;
        let mut items = Vec::new();
        self.space();
        if self.bytes.get(self.at) == Some(&b']') {
            self.at += 1;
            return Ok(Data::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.space();
            match self.bytes.get(self.at) {
                Some(b',') => self.at += 1,
                Some(b']') => break,
                _ => return Err(self.fail("`,` or `]` is needed")),
            }
        }
        self.at += 1;
        Ok(Data::List(items))
    }

    fn digits(&mut self) -> Result<(), NotJson> {
        let begin = self.at;
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        if self.at == begin {
            Err(self.fail("a digit is needed"))
        } else {
            Ok(())
        }
    }

    fn number(&mut self) -> Result<Data, NotJson> {
        let begin = self.at;
        if self.bytes[self.at] == b'-' {
            self.at += 1;
        }
        if self.bytes.get(self.at) == Some(&b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        let mut float = false;
        if self.bytes.get(self.at) == Some(&b'.') {
            float = true;
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.bytes.get(self.at), Some(b'e' | b'E')) {
            float = true;
            self.at += 1;
            if matches!(self.bytes.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        let text = std::str::from_utf8(&self.bytes[begin..self.at]).expect("digits are ASCII");
        if float {
            let number: f64 = text.parse().expect("a float by its grammar");
            return Ok(if number.is_finite() {
                Data::Float(number)
            } else {
                Data::OutOfRange
            });
        }
        Ok(text.parse().map_or(Data::OutOfRange, Data::Int))
    }

    fn text(&mut self) -> Result<String, NotJson> {
        self.at += 1;
        let mut out = Vec::new();
        loop {
            match self.bytes.get(self.at) {
                None => return Err(self.fail("a text without an end")),
                Some(b'"') => break,
                Some(b'\\') => self.escape(&mut out)?,
                Some(byte) if *byte < 0x20 => return Err(self.fail("a control character in a text")),
                Some(byte) => {
                    out.push(*byte);
                    self.at += 1;
                }
            }
        }
        self.at += 1;
        String::from_utf8(out).map_err(|_| self.fail("not UTF-8"))
    }

    fn escape(&mut self, out: &mut Vec<u8>) -> Result<(), NotJson> {
        let escaped = *self
            .bytes
            .get(self.at + 1)
            .ok_or_else(|| self.fail("a text without an end"))?;
        self.at += 2;
        let plain = match escaped {
            b'"' | b'\\' | b'/' => escaped,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => return self.unicode(out),
            _ => return Err(self.fail("an unknown escape")),
        };
        out.push(plain);
        Ok(())
    }

    fn unicode(&mut self, out: &mut Vec<u8>) -> Result<(), NotJson> {
        let mut code = self.hex()?;
        if (0xD800..0xDC00).contains(&code) && self.bytes[self.at..].starts_with(b"\\u") {
            self.at += 2;
            let low = self.hex()?;
            if !(0xDC00..0xE000).contains(&low) {
                return Err(self.fail("half of a surrogate pair"));
            }
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        }
        let character = char::from_u32(code).ok_or_else(|| self.fail("half of a surrogate pair"))?;
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(())
    }

    fn hex(&mut self) -> Result<u32, NotJson> {
        let digits = self
            .bytes
            .get(self.at..self.at + 4)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        let code = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let code = code.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        self.at += 4;
        code.ok_or_else(|| self.fail("four hexadecimal digits are needed"))
    }
}

#[cfg(test)]
mod tests {
    use super::read;
    use crate::rows::event::Data;

    #[test]
    fn every_kind_of_value_is_read() {
        let read = read(br#" {"a": [1, -2.5, 1e2, true, null], "b": "x\u00e9\n\ud83d\ude00", "a": {} } "#);
        let expected = vec![
            ("a".into(), Data::Map(Vec::new())),
            ("b".into(), Data::Str("x\u{e9}\n\u{1f600}".into())),
        ];
        assert_eq!(read, Ok(Data::Map(expected)));
    }

    #[test]
    fn numbers_out_of_range_are_kept_as_such() {
        assert_eq!(read(b"1e999"), Ok(Data::OutOfRange));
        assert_eq!(read(b"9223372036854775808"), Ok(Data::OutOfRange));
        assert_eq!(read(b"-9223372036854775808"), Ok(Data::Int(i64::MIN)));
    }

    #[test]
    fn what_is_not_json_is_refused_at_its_place() {
        for (text, at) in [
            ("", 0),
            ("nul", 0),
            ("[1,]", 3),
            ("01", 1),
            ("{\"a\" 1}", 5),
            ("NaN", 0),
            ("1.", 2),
        ] {
            assert_eq!(read(text.as_bytes()).map_err(|error| error.at), Err(at), "{text}");
        }
        assert!(read(br#""\ud83d""#).is_err());
        assert!(read("[".repeat(100_000).as_bytes()).is_err());
    }

    #[test]
    fn a_hundred_levels_are_allowed() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(read(nested(100).as_bytes()).is_ok());
        assert!(read(nested(101).as_bytes()).is_err());
        assert!(read(nested(100).replace("[]", "[1]").as_bytes()).is_ok());
    }
}
