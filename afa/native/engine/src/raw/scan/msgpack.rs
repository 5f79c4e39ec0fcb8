//! msgpack, read once from front to back: what is wanted is kept, what is not is only checked.
//!
//! Names must be texts. Byte strings and extensions have no meaning in expressions: they are unknown, like null.

use std::sync::Arc;

use super::capture::{Capture, Kind};
use super::json::{Failed, MAX_DEPTH, NOT_A_MAPPING};
use super::shape::{Node, Shape, Target};
use crate::rows::event::Data;

/// One value; of texts and containers only the length.
#[derive(Clone, Copy)]
enum Item {
    Int(i64),
    Float(f64),
    Bool(bool),
    OutOfRange,
    Null,
    Text(usize),
    List(usize),
    Map(usize),
}

/// Checks a record and captures what the shape wants.
///
/// # Errors
/// Says what is wrong, and at which byte.
pub(super) fn parse(bytes: &[u8], shape: &Shape, capture: &mut Capture) -> Result<(), (&'static str, usize)> {
    capture.clear();
    let mut reader = Reader::new(bytes);
    let mut parser = Parser { shape, capture };
    match parser.record(&mut reader) {
        Ok(()) => Ok(()),
        Err(Failed) => Err(reader.failure),
    }
}

/// One value and nothing else, as data.
///
/// # Errors
/// Says what is wrong, and at which byte.
pub(super) fn read(bytes: &[u8]) -> Result<Data, (&'static str, usize)> {
    let mut reader = Reader::new(bytes);
    let data = reader.data(0).and_then(|data| reader.finish().map(|()| data));
    data.map_err(|Failed| reader.failure)
}

struct Parser<'a> {
    shape: &'a Shape,
    capture: &'a mut Capture,
}

impl Parser<'_> {
    fn record(&mut self, reader: &mut Reader<'_>) -> Result<(), Failed> {
        let shape = self.shape;
        let Item::Map(members) = reader.item()? else {
            return Err(reader.fail(NOT_A_MAPPING, 0));
        };
        self.map(reader, members, &shape.nodes[0], 0)?;
        reader.finish()
    }

    fn map(&mut self, reader: &mut Reader<'_>, members: usize, node: &Node, depth: usize) -> Result<(), Failed> {
        let shape = self.shape;
        reader.check_depth(depth)?;
        for _ in 0..members {
            let name = reader.name()?;
            let Some(wanted) = shape.name(node, name.as_bytes()) else {
                reader.skip(depth + 1)?;
                continue;
            };
            let entered = &shape.nodes[wanted as usize];
            if entered.has_names() {
                self.capture.enter(shape, Some(wanted));
            }
            self.value(reader, entered, depth + 1)?;
        }
        Ok(())
    }

    #[inline]
    fn value(&mut self, reader: &mut Reader<'_>, node: &Node, depth: usize) -> Result<(), Failed> {
        let target: Target = node.target;
        let begin = reader.at;
        let item = reader.item()?;
        match item {
            Item::Int(number) => self.capture.store_int(target, number),
            Item::Float(number) => self.capture.store_float(target, number),
            Item::Bool(truth) => self.capture.store_bool(target, truth),
            Item::OutOfRange => self.capture.store_unknown(target, Kind::OutOfRange),
            Item::Null => self.capture.store_unknown(target, Kind::Null),
            Item::Text(length) => {
                let begin = reader.at;
                reader.text(length)?;
                self.capture.store_text(target, self.capture.in_record(begin, length));
            }
            Item::Map(members) => {
                self.capture.store_mapping(target);
                if node.has_names() {
                    self.map(reader, members, node, depth)?;
                } else {
                    reader.skip_inside(item, depth)?;
                }
            }
            Item::List(_) => {
                reader.skip_inside(item, depth)?;
                let span = self.capture.in_record(begin, reader.at - begin);
                self.capture.store_list(target, span);
            }
        }
        Ok(())
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    failure: (&'static str, usize),
}

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            at: 0,
            failure: ("", 0),
        }
    }

    #[cold]
    fn fail(&mut self, what: &'static str, at: usize) -> Failed {
        self.failure = (what, at);
        Failed
    }

    fn finish(&mut self) -> Result<(), Failed> {
        if self.at < self.bytes.len() {
            return Err(self.fail("something after the value", self.at));
        }
        Ok(())
    }

    #[inline]
    fn check_depth(&mut self, depth: usize) -> Result<(), Failed> {
        if depth >= MAX_DEPTH {
            return Err(self.fail("nested too deeply", self.at));
        }
        Ok(())
    }

    #[inline]
    fn take(&mut self, length: usize) -> Result<&'a [u8], Failed> {
        let Some(taken) = self.bytes.get(self.at..).and_then(|rest| rest.get(..length)) else {
            return Err(self.fail("the end, inside a value", self.bytes.len()));
        };
        self.at += length;
        Ok(taken)
    }

    /// The bytes of a text whose head has been read.
    #[inline]
    fn text(&mut self, length: usize) -> Result<&'a str, Failed> {
        let begin = self.at;
        let taken = self.take(length)?;
        match std::str::from_utf8(taken) {
            Ok(text) => Ok(text),
            Err(error) => Err(self.fail("not UTF-8", begin + error.valid_up_to())),
        }
    }

    /// A member's name.
    #[inline]
    fn name(&mut self) -> Result<&'a str, Failed> {
        let begin = self.at;
        match self.item()? {
            Item::Text(length) => self.text(length),
            _ => Err(self.fail("a member's name must be a text", begin)),
        }
    }

    fn skip(&mut self, depth: usize) -> Result<(), Failed> {
        let item = self.item()?;
        self.skip_inside(item, depth)
    }

    /// Checks what belongs to a value whose head has been read.
    fn skip_inside(&mut self, item: Item, depth: usize) -> Result<(), Failed> {
        match item {
            Item::Text(length) => self.text(length).map(|_| ()),
            Item::List(items) => {
                self.check_depth(depth)?;
                (0..items).try_for_each(|_| self.skip(depth + 1))
            }
            Item::Map(members) => {
                self.check_depth(depth)?;
                (0..members).try_for_each(|_| {
                    self.name()?;
                    self.skip(depth + 1)
                })
            }
            _ => Ok(()),
        }
    }

    /// A big-endian number.
    #[inline]
    fn number<const N: usize>(&mut self) -> Result<[u8; N], Failed> {
        let Some(bytes) = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk()) else {
            return Err(self.fail("the end, inside a value", self.bytes.len()));
        };
        self.at += N;
        Ok(*bytes)
    }

    /// A length of 1, 2 or 4 bytes.
    #[inline]
    fn length(&mut self, width: usize) -> Result<usize, Failed> {
        Ok(match width {
            1 => usize::from(u8::from_be_bytes(self.number()?)),
            2 => usize::from(u16::from_be_bytes(self.number()?)),
            _ => u32::from_be_bytes(self.number()?) as usize,
        })
    }

    /// The head of the value that begins here.
    #[inline]
    fn item(&mut self) -> Result<Item, Failed> {
        let [marker] = self.number()?;
        Ok(match marker {
            0x00..=0x7f => Item::Int(i64::from(marker)),
            0x80..=0x8f => Item::Map(usize::from(marker & 0x0f)),
            0x90..=0x9f => Item::List(usize::from(marker & 0x0f)),
            0xa0..=0xbf => Item::Text(usize::from(marker & 0x1f)),
            0xcb => float(f64::from_be_bytes(self.number()?)),
            0xe0..=0xff => Item::Int(i64::from(marker.cast_signed())),
            0xcc..=0xd3 => return self.integer(marker),
            _ => return self.other(marker),
        })
    }

    fn integer(&mut self, marker: u8) -> Result<Item, Failed> {
        Ok(match marker {
            0xcc => Item::Int(i64::from(u8::from_be_bytes(self.number()?))),
            0xcd => Item::Int(i64::from(u16::from_be_bytes(self.number()?))),
            0xce => Item::Int(i64::from(u32::from_be_bytes(self.number()?))),
            0xcf => i64::try_from(u64::from_be_bytes(self.number()?)).map_or(Item::OutOfRange, Item::Int),
            0xd0 => Item::Int(i64::from(i8::from_be_bytes(self.number()?))),
            0xd1 => Item::Int(i64::from(i16::from_be_bytes(self.number()?))),
            0xd2 => Item::Int(i64::from(i32::from_be_bytes(self.number()?))),
            _ => Item::Int(i64::from_be_bytes(self.number()?)),
        })
    }

    fn other(&mut self, marker: u8) -> Result<Item, Failed> {
        let opaque = match marker {
            0xc0 => 0,
            0xc2 | 0xc3 => return Ok(Item::Bool(marker == 0xc3)),
            0xca => return Ok(float(f64::from(f32::from_be_bytes(self.number()?)))),
            0xc4..=0xc6 => self.length(1 << (marker - 0xc4))?,
            0xc7..=0xc9 => 1 + self.length(1 << (marker - 0xc7))?, // with the extension's type
            0xd4..=0xd8 => 1 + (1 << (marker - 0xd4)),
            0xd9..=0xdb => return self.length(1 << (marker - 0xd9)).map(Item::Text),
            0xdc | 0xdd => return self.length(2 << (marker - 0xdc)).map(Item::List),
            0xde | 0xdf => return self.length(2 << (marker - 0xde)).map(Item::Map),
            _ => return Err(self.fail("a byte that msgpack does not use", self.at - 1)),
        };
        self.take(opaque).map(|_| Item::Null)
    }

    fn data(&mut self, depth: usize) -> Result<Data, Failed> {
        Ok(match self.item()? {
            Item::Int(number) => Data::Int(number),
            Item::Float(number) => Data::Float(number),
            Item::Bool(truth) => Data::Bool(truth),
            Item::OutOfRange => Data::OutOfRange,
            Item::Null => Data::Null,
            Item::Text(length) => Data::Str(self.text(length)?.into()),
            Item::List(items) => {
                self.check_depth(depth)?;
                Data::List((0..items).map(|_| self.data(depth + 1)).collect::<Result<_, _>>()?)
            }
            Item::Map(members) => self.members(members, depth)?,
        })
    }

    fn members(&mut self, members: usize, depth: usize) -> Result<Data, Failed> {
        self.check_depth(depth)?;
        let mut map: Vec<(Arc<str>, Data)> = Vec::new();
        for _ in 0..members {
            let name = self.name()?;
            let data = self.data(depth + 1)?;
            match map.iter_mut().find(|(known, _)| **known == *name) {
                Some(known) => known.1 = data,
                None => map.push((name.into(), data)),
            }
        }
        Ok(Data::Map(map))
    }
}

fn float(number: f64) -> Item {
    if number.is_finite() {
        Item::Float(number)
    } else {
        Item::OutOfRange
    }
}
