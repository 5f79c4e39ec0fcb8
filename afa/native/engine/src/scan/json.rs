//! Strict JSON, read once from front to back: what is wanted is kept, what is not is only checked.
//!
//! The bytes end with zeros, which are wrong everywhere in JSON: nothing has to look for the end. Positions are passed
//! and returned instead of kept, so that they stay in registers.

use super::capture::{Capture, Found, Span};
use super::shape::{Node, Shape};

/// How many zeros follow the record.
pub(super) const PADDING: usize = 8;
/// `max_record_depth`, as on a tape.
pub(super) const MAX_DEPTH: usize = 100;

/// Something is wrong; the parser knows what and where.
#[derive(Clone, Copy)]
pub(super) struct Failed;

pub(super) struct Parser<'a> {
    pub(super) bytes: &'a [u8],
    /// Of the record, without its padding.
    end: usize,
    shape: &'a Shape,
    pub(super) capture: &'a mut Capture,
    /// The union of all bytes of texts: a high bit says that UTF-8 has to be checked.
    pub(super) union: u64,
    failure: (&'static str, usize),
}

/// Checks a padded record and captures what the shape wants.
///
/// # Errors
/// Says what is wrong, and at which byte.
pub(super) fn parse(
    bytes: &[u8],
    end: usize,
    shape: &Shape,
    capture: &mut Capture,
) -> Result<(), (&'static str, usize)> {
    let mut parser = Parser {
        bytes,
        end,
        shape,
        capture,
        union: 0,
        failure: ("", 0),
    };
    match parser.record() {
        Ok(()) => Ok(()),
        Err(Failed) => Err(parser.failure),
    }
}

impl Parser<'_> {
    #[cold]
    pub(super) fn fail(&mut self, what: &'static str, at: usize) -> Failed {
        self.failure = (what, at.min(self.end));
        Failed
    }

    /// Where the record ends.
    pub(super) fn end(&self) -> usize {
        self.end
    }

    #[inline]
    pub(super) fn byte(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(0)
    }

    /// The eight bytes from here on; zero far behind the end.
    #[inline]
    pub(super) fn word(&self, at: usize) -> u64 {
        let eight = self.bytes.get(at..).and_then(|rest| rest.first_chunk());
        eight.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    #[inline]
    fn space(&self, mut at: usize) -> usize {
        while matches!(self.byte(at), b' ' | b'\t' | b'\n' | b'\r') {
            at += 1;
        }
        at
    }

    fn record(&mut self) -> Result<(), Failed> {
        let shape = self.shape;
        let begin = self.space(0);
        let after = if self.byte(begin) == b'{' {
            self.object(begin, &shape.nodes[0], 0)?
        } else {
            self.skip(begin, 0)?;
            return Err(self.fail(NOT_A_MAPPING, begin));
        };
        let after = self.space(after);
        if after < self.end {
            return Err(self.fail("something after the value", after));
        }
        if self.union & 0x8080_8080_8080_8080 != 0
            && let Err(error) = std::str::from_utf8(&self.bytes[..self.end])
        {
            return Err(self.fail("not UTF-8", error.valid_up_to()));
        }
        Ok(())
    }

    /// An object in which something is wanted.
    fn object(&mut self, at: usize, node: &Node, depth: usize) -> Result<usize, Failed> {
        let shape = self.shape;
        let mut at = self.enter(at, depth)?;
        if self.byte(at) == b'}' {
            return Ok(at + 1);
        }
        loop {
            let (wanted, after) = self.name(at, node)?;
            at = self.colon(after)?;
            at = match wanted {
                None => self.skip(at, depth + 1)?,
                Some(inner) => {
                    let entered = &shape.nodes[inner as usize];
                    if entered.has_names() {
                        self.capture.enter(shape, inner);
                    }
                    let (found, after) = self.value(at, entered, depth + 1)?;
                    self.capture.store(entered.target, found);
                    after
                }
            };
            at = self.space(at);
            match self.byte(at) {
                b',' => at = self.space(at + 1),
                b'}' => return Ok(at + 1),
                _ => return Err(self.fail("`,` or `}` is needed", at)),
            }
        }
    }

    /// Steps into a list or an object.
    #[inline]
    fn enter(&mut self, at: usize, depth: usize) -> Result<usize, Failed> {
        if depth >= MAX_DEPTH {
            return Err(self.fail("nested too deeply", at));
        }
        Ok(self.space(at + 1))
    }

    #[inline]
    fn colon(&mut self, at: usize) -> Result<usize, Failed> {
        let at = self.space(at);
        if self.byte(at) != b':' {
            return Err(self.fail("`:` is needed", at));
        }
        Ok(self.space(at + 1))
    }

    /// A member's name: the node it leads to, and where it ends.
    #[inline]
    fn name(&mut self, at: usize, node: &Node) -> Result<(Option<u32>, usize), Failed> {
        if self.byte(at) != b'"' {
            return Err(self.fail("a member's name in quotes is needed", at));
        }
        let stop = self.plain_run(at + 1);
        let length = stop - at - 1;
        if self.byte(stop) != b'"' {
            return self.escaped_name(at + 1, node);
        }
        let wanted = if length < 8 {
            let mask = (1 << (8 * length)) - 1;
            self.shape.short_name(node, self.word(at + 1) & mask, length)
        } else {
            self.shape.name(node, &self.bytes[at + 1..stop])
        };
        Ok((wanted, stop + 1))
    }

    #[cold]
    fn escaped_name(&mut self, at: usize, node: &Node) -> Result<(Option<u32>, usize), Failed> {
        let begin = self.capture.texts.len();
        let after = self.unescape(at)?;
        let wanted = self.shape.name(node, &self.capture.texts[begin..]);
        self.capture.texts.truncate(begin);
        Ok((wanted, after))
    }

    /// A value that is wanted, or that holds something wanted.
    #[inline]
    fn value(&mut self, at: usize, node: &Node, depth: usize) -> Result<(Found, usize), Failed> {
        match self.byte(at) {
            b'"' => self.text(at),
            b'-' | b'0'..=b'9' => self.number(at),
            b'{' if node.has_names() => Ok((Found::Mapping, self.object(at, node, depth)?)),
            b'{' => Ok((Found::Mapping, self.skip(at, depth)?)),
            b'[' => {
                let after = self.skip(at, depth)?;
                Ok((Found::List(self.capture.in_record(at, after - at)), after))
            }
            _ => self.literal(at),
        }
    }

    #[inline]
    fn text(&mut self, at: usize) -> Result<(Found, usize), Failed> {
        let stop = self.plain_run(at + 1);
        if self.byte(stop) == b'"' {
            let span = self.capture.in_record(at + 1, stop - at - 1);
            return Ok((Found::Text(span), stop + 1));
        }
        let (span, after) = self.escaped_text(at + 1)?;
        Ok((Found::Text(span), after))
    }

    #[cold]
    fn escaped_text(&mut self, at: usize) -> Result<(Span, usize), Failed> {
        let begin = self.capture.texts.len();
        let after = self.unescape(at)?;
        Ok((self.capture.in_texts(begin), after))
    }

    fn literal(&mut self, at: usize) -> Result<(Found, usize), Failed> {
        let rest = self.bytes.get(at..).unwrap_or_default();
        if rest.starts_with(b"true") {
            Ok((Found::Bool(true), at + 4))
        } else if rest.starts_with(b"false") {
            Ok((Found::Bool(false), at + 5))
        } else if rest.starts_with(b"null") {
            Ok((Found::Null, at + 4))
        } else if at >= self.end {
            Err(self.fail("the end, where a value should be", at))
        } else {
            Err(self.fail("not a value", at))
        }
    }

    /// Checks a value that nobody wants.
    fn skip(&mut self, at: usize, depth: usize) -> Result<usize, Failed> {
        match self.byte(at) {
            b'"' => self.skip_text(at + 1),
            b'-' | b'0'..=b'9' => self.skip_number(at),
            b'{' => self.skip_object(at, depth),
            b'[' => self.skip_list(at, depth),
            _ => self.literal(at).map(|(_, after)| after),
        }
    }

    fn skip_object(&mut self, at: usize, depth: usize) -> Result<usize, Failed> {
        let mut at = self.enter(at, depth)?;
        if self.byte(at) == b'}' {
            return Ok(at + 1);
        }
        loop {
            if self.byte(at) != b'"' {
                return Err(self.fail("a member's name in quotes is needed", at));
            }
            at = self.skip_text(at + 1)?;
            at = self.colon(at)?;
            at = self.skip(at, depth + 1)?;
            at = self.space(at);
            match self.byte(at) {
                b',' => at = self.space(at + 1),
                b'}' => return Ok(at + 1),
                _ => return Err(self.fail("`,` or `}` is needed", at)),
            }
        }
    }

    fn skip_list(&mut self, at: usize, depth: usize) -> Result<usize, Failed> {
        let mut at = self.enter(at, depth)?;
        if self.byte(at) == b']' {
            return Ok(at + 1);
        }
        loop {
            at = self.skip(at, depth + 1)?;
            at = self.space(at);
            match self.byte(at) {
                b',' => at = self.space(at + 1),
                b']' => return Ok(at + 1),
                _ => return Err(self.fail("`,` or `]` is needed", at)),
            }
        }
    }
}

/// The one failure that is not about JSON.
pub(super) const NOT_A_MAPPING: &str = "a record must be a mapping";
