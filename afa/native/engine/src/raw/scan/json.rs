//! Strict JSON, read once from front to back: what is wanted is kept, what is not is only checked.
//!
//! Behind the record stand zeros, which are wrong everywhere in JSON: nothing has to look for the end. Positions are passed
//! and returned instead of kept, so that they stay in registers.

use super::capture::{Capture, Kind};
use super::records::Padded;
use super::shape::{Node, Shape, Target};
use super::template::{Read, Template, Traced};
use super::text::{has_high_bits, specials};

/// `max_record_depth`, as on a tape.
pub(super) const MAX_DEPTH: usize = 100;

/// Something is wrong; the parser knows what and where.
#[derive(Clone, Copy)]
pub(super) struct Failed;

pub(super) struct Parser<'a> {
    record: Padded<'a>,
    /// The record with its padding.
    pub(super) bytes: &'a [u8],
    /// Of the record, without its padding.
    end: usize,
    shape: &'a Shape,
    pub(super) capture: &'a mut Capture,
    /// The union of all bytes of texts: a high bit says that UTF-8 has to be checked.
    pub(super) union: u64,
    /// Whether a template will be made of what is found.
    traces: bool,
    failure: (&'static str, usize),
}

/// Checks a padded record and captures what the shape wants.
///
/// # Errors
/// Says what is wrong, and at which byte.
#[inline]
pub(super) fn parse(
    record: Padded<'_>,
    shape: &Shape,
    capture: &mut Capture,
    template: &mut Template,
) -> Result<Read, (&'static str, usize)> {
    if template.is_ready()
        && let Some(read) = template.read(record, shape, capture)
    {
        return Ok(read);
    }
    parse_in_full(&mut Parser::new(record, shape, capture), template)
}

fn parse_in_full(parser: &mut Parser<'_>, template: &mut Template) -> Result<Read, (&'static str, usize)> {
    parser.capture.clear();
    parser.union = 0;
    parser.traces = template.begin_learning();
    let good = parser.record(template);
    if parser.traces && good.is_ok() && !parser.capture.has_forgotten {
        template.learn(parser.bytes, parser.end, parser.shape);
    }
    good.map_or_else(|Failed| Err(parser.failure), |()| Ok(Read::Full))
}

impl<'a> Parser<'a> {
    #[inline]
    pub(super) fn new(record: Padded<'a>, shape: &'a Shape, capture: &'a mut Capture) -> Self {
        Self {
            record,
            bytes: record.padded(),
            end: record.len(),
            shape,
            capture,
            union: 0,
            traces: false,
            failure: ("", 0),
        }
    }

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
        self.record.word(at)
    }

    #[inline]
    fn space(&self, mut at: usize) -> usize {
        while matches!(self.byte(at), b' ' | b'\t' | b'\n' | b'\r') {
            at += 1;
        }
        at
    }

    fn record(&mut self, template: &mut Template) -> Result<(), Failed> {
        let shape = self.shape;
        let begin = self.space(0);
        let after = if self.byte(begin) == b'{' {
            self.object(begin, &shape.nodes[0], 0, template)?
        } else {
            self.skip(begin, 0)?;
            return Err(self.fail(NOT_A_MAPPING, begin));
        };
        let after = self.space(after);
        if after < self.end {
            return Err(self.fail("something after the value", after));
        }
        self.check_characters()
    }

    /// Outside texts everything is ASCII, so the whole record can be checked at once, and usually need not be.
    #[inline]
    pub(super) fn check_characters(&mut self) -> Result<(), Failed> {
        if has_high_bits(self.union)
            && let Err(error) = std::str::from_utf8(&self.bytes[..self.end])
        {
            return Err(self.fail("not UTF-8", error.valid_up_to()));
        }
        Ok(())
    }

    /// An object in which something is wanted.
    fn object(&mut self, at: usize, node: &Node, depth: usize, template: &mut Template) -> Result<usize, Failed> {
        let shape = self.shape;
        let mut at = self.enter(at, depth)?;
        if self.byte(at) == b'}' {
            return Ok(at + 1);
        }
        at = self.quote(at)?;
        loop {
            let (wanted, begin) = self.name(at, node)?;
            let inner = wanted.map(|name| &shape.nodes[name as usize]);
            at = match inner {
                Some(inner) if inner.has_names() && self.byte(begin) == b'{' => {
                    self.capture.enter(shape, wanted);
                    self.capture.store_mapping(inner.target);
                    if self.traces {
                        template.entered.push(inner.target);
                    }
                    self.object(begin, inner, depth + 1, template)?
                }
                _ => {
                    let end = self.member(begin, wanted, inner, depth + 1)?;
                    if self.traces {
                        template.traced.push(Traced {
                            begin,
                            end,
                            node: wanted,
                            depth: depth + 1,
                        });
                    }
                    end
                }
            };
            // The usual ways to write what follows are recognised at once.
            let next = self.word(at);
            if next & 0xffff == u64::from(u16::from_le_bytes(*b",\"")) {
                at += 2;
            } else if next & 0xff == u64::from(b'}') {
                return Ok(at + 1);
            } else {
                at = self.space(at);
                match self.byte(at) {
                    b',' => at = self.space(at + 1),
                    b'}' => return Ok(at + 1),
                    _ => return Err(self.fail("`,` or `}` is needed", at)),
                }
                at = self.quote(at)?;
            }
        }
    }

    /// A value in which nothing is wanted; it may be wanted itself.
    #[inline]
    fn member(&mut self, at: usize, wanted: Option<u32>, node: Option<&Node>, depth: usize) -> Result<usize, Failed> {
        let Some(node) = node else {
            return self.skip(at, depth);
        };
        if node.has_names() {
            self.capture.enter(self.shape, wanted);
        }
        self.value(at, node, depth)
    }

    /// Steps over the quote before a member's name.
    #[inline]
    fn quote(&mut self, at: usize) -> Result<usize, Failed> {
        if self.byte(at) != b'"' {
            return Err(self.fail("a member's name in quotes is needed", at));
        }
        Ok(at + 1)
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

    /// A member's name from behind its quote: the node it leads to, and where the value begins.
    #[inline]
    fn name(&mut self, at: usize, node: &Node) -> Result<(Option<u32>, usize), Failed> {
        let word = self.word(at);
        let special = specials(word);
        if special == 0 {
            return self.long_name(at, node);
        }
        let bits = special.trailing_zeros() - 7;
        let stop = at + (bits / 8) as usize;
        let next = self.word(stop);
        if next & 0xffff != u64::from(u16::from_le_bytes(*b"\":")) {
            return self.long_name(at, node);
        }
        let name = word & ((1 << bits) - 1);
        self.union |= name;
        let wanted = self.shape.short_name(node, name, stop - at);
        let value = stop + 2;
        if (next >> 16) & 0xff > u64::from(b' ') {
            return Ok((wanted, value));
        }
        Ok((wanted, self.space(value)))
    }

    /// A name of eight bytes or more, with escapes, or with space behind it.
    fn long_name(&mut self, at: usize, node: &Node) -> Result<(Option<u32>, usize), Failed> {
        let stop = self.plain_run(at);
        let (wanted, after) = if self.byte(stop) == b'"' {
            (self.shape.name(node, &self.bytes[at..stop]), stop + 1)
        } else {
            let begin = self.capture.texts.len();
            let after = self.unescape(at)?;
            let wanted = self.shape.name(node, &self.capture.texts[begin..]);
            self.capture.texts.truncate(begin);
            (wanted, after)
        };
        Ok((wanted, self.colon(after)?))
    }

    /// A value that is wanted.
    #[inline]
    pub(super) fn value(&mut self, at: usize, node: &Node, depth: usize) -> Result<usize, Failed> {
        let target = node.target;
        let first = self.byte(at);
        if first == b'"' {
            return self.text(at, target);
        }
        if first.is_ascii_digit() || first == b'-' {
            return self.number(at, target);
        }
        match first {
            b'{' => {
                self.capture.store_mapping(target);
                self.skip_object(at, depth)
            }
            b'[' => {
                let after = self.skip_list(at, depth)?;
                self.capture.store_list(target, self.capture.in_record(at, after - at));
                Ok(after)
            }
            _ => self.literal(at, target),
        }
    }

    #[inline]
    pub(super) fn text(&mut self, at: usize, target: Target) -> Result<usize, Failed> {
        let stop = self.plain_run(at + 1);
        if self.byte(stop) != b'"' {
            return self.escaped_text(at + 1, target);
        }
        let span = self.capture.in_record(at + 1, stop - at - 1);
        self.capture.store_text(target, span);
        Ok(stop + 1)
    }

    #[cold]
    fn escaped_text(&mut self, at: usize, target: Target) -> Result<usize, Failed> {
        let begin = self.capture.texts.len();
        let after = self.unescape(at)?;
        self.capture.store_text(target, self.capture.in_texts(begin));
        Ok(after)
    }

    fn literal(&mut self, at: usize, target: Target) -> Result<usize, Failed> {
        let rest = self.bytes.get(at..).unwrap_or_default();
        if rest.starts_with(b"true") {
            self.capture.store_bool(target, true);
            Ok(at + 4)
        } else if rest.starts_with(b"false") {
            self.capture.store_bool(target, false);
            Ok(at + 5)
        } else if rest.starts_with(b"null") {
            self.capture.store_unknown(target, Kind::Null);
            Ok(at + 4)
        } else if at >= self.end {
            Err(self.fail("the end, where a value should be", at))
        } else {
            Err(self.fail("not a value", at))
        }
    }

    /// Checks a value that nobody wants.
    pub(super) fn skip(&mut self, at: usize, depth: usize) -> Result<usize, Failed> {
        match self.byte(at) {
            b'"' => self.skip_text(at + 1),
            b'-' | b'0'..=b'9' => self.number(at, Target::NOTHING),
            b'{' => self.skip_object(at, depth),
            b'[' => self.skip_list(at, depth),
            _ => self.literal(at, Target::NOTHING),
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
