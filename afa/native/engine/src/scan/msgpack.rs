//! msgpack, read once from front to back: what is wanted is kept, what is not is only checked.
//!
//! Names must be texts. Byte strings and extensions have no meaning in expressions: they are unknown, like null.

use super::capture::{Capture, Found};
use super::json::{MAX_DEPTH, NOT_A_MAPPING};
use super::shape::{Node, Shape};
use crate::event::Data;

/// What is wrong, and at which byte.
type Failure = (&'static str, usize);

/// One value; of containers only the head.
enum Item {
    Found(Found),
    /// Where it begins, and its length.
    Text(usize, usize),
    List(usize),
    Map(usize),
}

/// Checks a record and captures what the shape wants.
///
/// # Errors
/// Says what is wrong, and at which byte.
pub(super) fn parse(bytes: &[u8], shape: &Shape, capture: &mut Capture) -> Result<(), Failure> {
    let mut parser = Parser { bytes, shape, capture };
    let after = match item(bytes, 0)? {
        (Item::Map(members), at) => parser.map(at, members, &shape.nodes[0], 0)?,
        (other, at) => {
            parser.skip_inside(&other, at, 0)?;
            return Err((NOT_A_MAPPING, 0));
        }
    };
    if after < bytes.len() {
        return Err(("something after the value", after));
    }
    Ok(())
}

/// One value and nothing else, as data.
///
/// # Errors
/// Says what is wrong, and at which byte.
pub(super) fn read(bytes: &[u8]) -> Result<Data, Failure> {
    let (data, after) = read_at(bytes, 0, 0)?;
    if after < bytes.len() {
        return Err(("something after the value", after));
    }
    Ok(data)
}

struct Parser<'a> {
    bytes: &'a [u8],
    shape: &'a Shape,
    capture: &'a mut Capture,
}

impl Parser<'_> {
    fn map(&mut self, mut at: usize, members: usize, node: &Node, depth: usize) -> Result<usize, Failure> {
        let shape = self.shape;
        check_depth(depth, at)?;
        for _ in 0..members {
            let (name, after) = name(self.bytes, at)?;
            let Some(inner) = shape.name(node, name) else {
                at = self.skip(after, depth + 1)?;
                continue;
            };
            let entered = &shape.nodes[inner as usize];
            if entered.has_names() {
                self.capture.enter(shape, inner);
            }
            let (found, after) = self.value(after, entered, depth + 1)?;
            self.capture.store(entered.target, found);
            at = after;
        }
        Ok(at)
    }

    fn value(&mut self, begin: usize, node: &Node, depth: usize) -> Result<(Found, usize), Failure> {
        let (item, at) = item(self.bytes, begin)?;
        match item {
            Item::Found(found) => Ok((found, at)),
            Item::Text(text, length) => {
                check_text(self.bytes, text, length)?;
                Ok((Found::Text(self.capture.in_record(text, length)), at))
            }
            Item::Map(members) if node.has_names() => Ok((Found::Mapping, self.map(at, members, node, depth)?)),
            Item::Map(_) => Ok((Found::Mapping, self.skip_inside(&item, at, depth)?)),
            Item::List(_) => {
                let after = self.skip_inside(&item, at, depth)?;
                Ok((Found::List(self.capture.in_record(begin, after - begin)), after))
            }
        }
    }

    fn skip(&self, at: usize, depth: usize) -> Result<usize, Failure> {
        let (item, at) = item(self.bytes, at)?;
        self.skip_inside(&item, at, depth)
    }

    /// Checks what is in a container whose head has been read; `at` is behind the head.
    fn skip_inside(&self, item: &Item, mut at: usize, depth: usize) -> Result<usize, Failure> {
        match *item {
            Item::Found(_) => {}
            Item::Text(text, length) => {
                check_text(self.bytes, text, length)?;
            }
            Item::List(items) => {
                check_depth(depth, at)?;
                for _ in 0..items {
                    at = self.skip(at, depth + 1)?;
                }
            }
            Item::Map(members) => {
                check_depth(depth, at)?;
                for _ in 0..members {
                    at = name(self.bytes, at)?.1;
                    at = self.skip(at, depth + 1)?;
                }
            }
        }
        Ok(at)
    }
}

fn check_depth(depth: usize, at: usize) -> Result<(), Failure> {
    if depth >= MAX_DEPTH {
        return Err(("nested too deeply", at));
    }
    Ok(())
}

fn check_text(bytes: &[u8], begin: usize, length: usize) -> Result<&str, Failure> {
    let text = &bytes[begin..begin + length];
    std::str::from_utf8(text).map_err(|error| ("not UTF-8", begin + error.valid_up_to()))
}

/// A member's name, and where it ends.
fn name(bytes: &[u8], at: usize) -> Result<(&[u8], usize), Failure> {
    match item(bytes, at)? {
        (Item::Text(begin, length), after) => Ok((check_text(bytes, begin, length)?.as_bytes(), after)),
        _ => Err(("a member's name must be a text", at)),
    }
}

/// A big-endian number of `N` bytes.
fn number<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], Failure> {
    let rest = bytes.get(at..).and_then(|rest| rest.first_chunk());
    rest.copied().ok_or(("the end, inside a value", bytes.len()))
}

/// A length of `width` bytes, and where it ends.
fn length(bytes: &[u8], at: usize, width: usize) -> Result<(usize, usize), Failure> {
    let length = match width {
        1 => u32::from(u8::from_be_bytes(number(bytes, at)?)),
        2 => u32::from(u16::from_be_bytes(number(bytes, at)?)),
        _ => u32::from_be_bytes(number(bytes, at)?),
    };
    Ok((length as usize, at + width))
}

fn text(bytes: &[u8], at: usize, length: usize) -> Result<(Item, usize), Failure> {
    if bytes.len() - at < length {
        return Err(("the end, inside a text", bytes.len()));
    }
    Ok((Item::Text(at, length), at + length))
}

/// Bytes that mean nothing here.
fn opaque(bytes: &[u8], at: usize, length: usize) -> Result<(Item, usize), Failure> {
    if bytes.len() - at < length {
        return Err(("the end, inside a value", bytes.len()));
    }
    Ok((Item::Found(Found::Null), at + length))
}

fn int(number: i64, at: usize) -> (Item, usize) {
    (Item::Found(Found::Int(number)), at)
}

fn float(number: f64, at: usize) -> (Item, usize) {
    let found = if number.is_finite() {
        Found::Float(number)
    } else {
        Found::OutOfRange
    };
    (Item::Found(found), at)
}

/// The value that begins here, of containers only the head; and where that ends.
#[inline]
fn item(bytes: &[u8], at: usize) -> Result<(Item, usize), Failure> {
    let Some(marker) = bytes.get(at).copied() else {
        return Err(("the end, where a value should be", at));
    };
    let at = at + 1;
    match marker {
        0x00..=0x7f => Ok(int(i64::from(marker), at)),
        0x80..=0x8f => Ok((Item::Map(usize::from(marker & 0x0f)), at)),
        0x90..=0x9f => Ok((Item::List(usize::from(marker & 0x0f)), at)),
        0xa0..=0xbf => text(bytes, at, usize::from(marker & 0x1f)),
        0xc0 => Ok((Item::Found(Found::Null), at)),
        0xc2 | 0xc3 => Ok((Item::Found(Found::Bool(marker == 0xc3)), at)),
        0xca => Ok(float(f64::from(f32::from_be_bytes(number(bytes, at)?)), at + 4)),
        0xcb => Ok(float(f64::from_be_bytes(number(bytes, at)?), at + 8)),
        0xcc..=0xd3 => integer(bytes, at, marker),
        0xe0..=0xff => Ok(int(i64::from(marker.cast_signed()), at)),
        _ => sized(bytes, at, marker),
    }
}

fn integer(bytes: &[u8], at: usize, marker: u8) -> Result<(Item, usize), Failure> {
    Ok(match marker {
        0xcc => int(i64::from(u8::from_be_bytes(number(bytes, at)?)), at + 1),
        0xcd => int(i64::from(u16::from_be_bytes(number(bytes, at)?)), at + 2),
        0xce => int(i64::from(u32::from_be_bytes(number(bytes, at)?)), at + 4),
        0xcf => {
            let signed = i64::try_from(u64::from_be_bytes(number(bytes, at)?));
            (Item::Found(signed.map_or(Found::OutOfRange, Found::Int)), at + 8)
        }
        0xd0 => int(i64::from(i8::from_be_bytes(number(bytes, at)?)), at + 1),
        0xd1 => int(i64::from(i16::from_be_bytes(number(bytes, at)?)), at + 2),
        0xd2 => int(i64::from(i32::from_be_bytes(number(bytes, at)?)), at + 4),
        _ => int(i64::from_be_bytes(number(bytes, at)?), at + 8),
    })
}

/// What has its length written before it.
fn sized(bytes: &[u8], at: usize, marker: u8) -> Result<(Item, usize), Failure> {
    match marker {
        0xc4..=0xc6 => {
            let (length, at) = length(bytes, at, 1 << (marker - 0xc4))?;
            opaque(bytes, at, length)
        }
        0xc7..=0xc9 => {
            let (length, at) = length(bytes, at, 1 << (marker - 0xc7))?;
            opaque(bytes, at, length + 1) // with the extension's type
        }
        0xd4..=0xd8 => opaque(bytes, at, 1 + (1 << (marker - 0xd4))),
        0xd9..=0xdb => {
            let (length, at) = length(bytes, at, 1 << (marker - 0xd9))?;
            text(bytes, at, length)
        }
        0xdc | 0xdd => length(bytes, at, 2 << (marker - 0xdc)).map(|(items, at)| (Item::List(items), at)),
        0xde | 0xdf => length(bytes, at, 2 << (marker - 0xde)).map(|(members, at)| (Item::Map(members), at)),
        _ => Err(("a byte that msgpack does not use", at - 1)),
    }
}

fn read_at(bytes: &[u8], at: usize, depth: usize) -> Result<(Data, usize), Failure> {
    let (item, mut at) = item(bytes, at)?;
    let data = match item {
        Item::Found(found) => match found {
            Found::Int(number) => Data::Int(number),
            Found::Float(number) => Data::Float(number),
            Found::Bool(truth) => Data::Bool(truth),
            Found::OutOfRange => Data::OutOfRange,
            _ => Data::Null,
        },
        Item::Text(begin, length) => Data::Str(check_text(bytes, begin, length)?.into()),
        Item::List(items) => {
            check_depth(depth, at)?;
            let mut list = Vec::new();
            for _ in 0..items {
                let (data, after) = read_at(bytes, at, depth + 1)?;
                list.push(data);
                at = after;
            }
            Data::List(list)
        }
        Item::Map(members) => return read_map(bytes, at, members, depth),
    };
    Ok((data, at))
}

fn read_map(bytes: &[u8], mut at: usize, members: usize, depth: usize) -> Result<(Data, usize), Failure> {
    check_depth(depth, at)?;
    let mut map: Vec<(std::sync::Arc<str>, Data)> = Vec::new();
    for _ in 0..members {
        let (name, after) = name(bytes, at)?;
        let (data, after) = read_at(bytes, after, depth + 1)?;
        match map.iter_mut().find(|(known, _)| known.as_bytes() == name) {
            Some(known) => known.1 = data,
            None => map.push((String::from_utf8_lossy(name).into(), data)),
        }
        at = after;
    }
    Ok((Data::Map(map), at))
}
