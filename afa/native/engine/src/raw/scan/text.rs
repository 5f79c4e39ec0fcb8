//! Texts in JSON: eight bytes at a time where nothing is escaped.

use super::json::{Failed, Parser};

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// The high bit of the first byte that is a quote, a backslash or a control character (later ones may be wrong).
#[inline]
pub(super) fn specials(word: u64) -> u64 {
    let quote = word ^ (ONES * u64::from(b'"'));
    let backslash = word ^ (ONES * u64::from(b'\\'));
    let quotes = quote.wrapping_sub(ONES) & !quote;
    let backslashes = backslash.wrapping_sub(ONES) & !backslash;
    let controls = word.wrapping_sub(ONES * 0x20) & !word;
    (quotes | backslashes | controls) & HIGHS
}

/// Whether one of these bytes is not ASCII.
#[inline]
pub(super) fn has_high_bits(word: u64) -> bool {
    word & HIGHS != 0
}

impl Parser<'_> {
    /// Where the characters that stand for themselves end.
    #[inline]
    pub(super) fn plain_run(&mut self, mut at: usize) -> usize {
        loop {
            let word = self.word(at);
            let special = specials(word);
            if special != 0 {
                let bits = special.trailing_zeros() - 7;
                self.union |= word & ((1 << bits) - 1);
                return at + (bits / 8) as usize;
            }
            self.union |= word;
            at += 8;
        }
    }

    /// Checks a text from behind its opening quote.
    #[inline]
    pub(super) fn skip_text(&mut self, mut at: usize) -> Result<usize, Failed> {
        loop {
            at = self.plain_run(at);
            if self.byte(at) == b'"' {
                return Ok(at + 1);
            }
            at = self.escape(at)?.1;
        }
    }

    /// Writes a text, from behind its opening quote, to the end of `texts`.
    pub(super) fn unescape(&mut self, mut at: usize) -> Result<usize, Failed> {
        loop {
            let stop = self.plain_run(at);
            self.capture.texts.extend_from_slice(&self.bytes[at..stop]);
            if self.byte(stop) == b'"' {
                return Ok(stop + 1);
            }
            let (character, after) = self.escape(stop)?;
            let mut encoded = [0; 4];
            self.capture
                .texts
                .extend_from_slice(character.encode_utf8(&mut encoded).as_bytes());
            at = after;
        }
    }

    /// The character that is escaped here; something special that is no quote.
    #[cold]
    fn escape(&mut self, at: usize) -> Result<(char, usize), Failed> {
        if at >= self.end() {
            return Err(self.fail("a text without an end", at));
        }
        if self.byte(at) != b'\\' {
            return Err(self.fail("a control character in a text", at));
        }
        let plain = match self.byte(at + 1) {
            escaped @ (b'"' | b'\\' | b'/') => char::from(escaped),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode(at + 2),
            _ => return Err(self.fail("an unknown escape", at)),
        };
        Ok((plain, at + 2))
    }

    fn unicode(&mut self, at: usize) -> Result<(char, usize), Failed> {
        let mut code = self.hexadecimal(at)?;
        let mut after = at + 4;
        if (0xD800..0xDC00).contains(&code) && self.byte(after) == b'\\' && self.byte(after + 1) == b'u' {
            let low = self.hexadecimal(after + 2)?;
            if !(0xDC00..0xE000).contains(&low) {
                return Err(self.fail("half of a surrogate pair", at));
            }
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
            after += 6;
        }
        match char::from_u32(code) {
            Some(character) => Ok((character, after)),
            None => Err(self.fail("half of a surrogate pair", at)),
        }
    }

    fn hexadecimal(&mut self, at: usize) -> Result<u32, Failed> {
        let mut code = 0;
        for place in at..at + 4 {
            let Some(digit) = char::from(self.byte(place)).to_digit(16) else {
                return Err(self.fail("four hexadecimal digits are needed", place));
            };
            code = code * 16 + digit;
        }
        Ok(code)
    }
}

#[cfg(test)]
mod tests {
    use super::specials;

    #[test]
    fn the_first_special_byte_is_found_wherever_it_stands() {
        for special in (0..=255_u8).filter(|byte| *byte < 0x20 || matches!(byte, b'"' | b'\\')) {
            for place in 0..8_usize {
                for around in [b' ', b'!', b'#', b'[', b']', b'a', 0x7f, 0x80, 0xa2, 0xff] {
                    let mut bytes = [around; 8];
                    bytes[place] = special;
                    let found = specials(u64::from_le_bytes(bytes)).trailing_zeros() as usize;
                    assert_eq!(found, place * 8 + 7, "{special} at {place} among {around}");
                    assert_eq!(specials(u64::from_le_bytes([around; 8])), 0);
                }
            }
        }
    }
}
