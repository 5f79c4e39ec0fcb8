//! The scanner and a reader of trees on top of `rmp` agree on every msgpack record, good or damaged.

use std::sync::Arc;

use rmp::Marker;
use rmp::decode::{self, Bytes};

use super::generated::{Random, record};
use super::{Bench, Codec, Mapping, compare, field};
use crate::raw::json;
use crate::rows::event::Data;

const ROUNDS: usize = if cfg!(debug_assertions) { 30_000 } else { 300_000 };

/// What `rmp` makes of the bytes; bytes and extensions are null.
fn read(bytes: &[u8]) -> Option<Data> {
    let mut rest = bytes;
    let data = read_value(&mut rest, 0)?;
    rest.is_empty().then_some(data)
}

fn take<'a>(rest: &mut &'a [u8], length: u32) -> Option<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(length as usize)?;
    *rest = after;
    Some(taken)
}

/// Lets `rmp` read from the front.
fn front<'a, T, E>(rest: &mut &'a [u8], read: impl FnOnce(&mut Bytes<'a>) -> Result<T, E>) -> Option<T> {
    let mut bytes = Bytes::new(rest);
    let value = read(&mut bytes).ok()?;
    *rest = bytes.remaining_slice();
    Some(value)
}

fn read_value(rest: &mut &[u8], depth: usize) -> Option<Data> {
    let float = |number: f64| {
        if number.is_finite() {
            Data::Float(number)
        } else {
            Data::OutOfRange
        }
    };
    match Marker::from_u8(*rest.first()?) {
        Marker::Null => front(rest, decode::read_nil).map(|()| Data::Null),
        Marker::True | Marker::False => front(rest, decode::read_bool).map(Data::Bool),
        Marker::F32 => front(rest, decode::read_f32).map(|number| float(f64::from(number))),
        Marker::F64 => front(rest, decode::read_f64).map(float),
        Marker::FixStr(_) | Marker::Str8 | Marker::Str16 | Marker::Str32 => {
            let length = front(rest, decode::read_str_len)?;
            Some(Data::Str(std::str::from_utf8(take(rest, length)?).ok()?.into()))
        }
        Marker::Bin8 | Marker::Bin16 | Marker::Bin32 => {
            let length = front(rest, decode::read_bin_len)?;
            take(rest, length).map(|_| Data::Null)
        }
        Marker::FixArray(_) | Marker::Array16 | Marker::Array32 => {
            let items = front(rest, decode::read_array_len).filter(|_| depth < 100)?;
            (0..items)
                .map(|_| read_value(rest, depth + 1))
                .collect::<Option<_>>()
                .map(Data::List)
        }
        Marker::FixMap(_) | Marker::Map16 | Marker::Map32 => {
            let members = front(rest, decode::read_map_len).filter(|_| depth < 100)?;
            read_members(rest, members, depth)
        }
        Marker::Reserved => None,
        Marker::U64 => {
            front(rest, decode::read_u64).map(|number| i64::try_from(number).map_or(Data::OutOfRange, Data::Int))
        }
        Marker::FixPos(_)
        | Marker::FixNeg(_)
        | Marker::U8
        | Marker::U16
        | Marker::U32
        | Marker::I8
        | Marker::I16
        | Marker::I32
        | Marker::I64 => front(rest, decode::read_int::<i64, _>).map(Data::Int),
        _ => {
            let length = front(rest, decode::read_ext_meta)?.size;
            take(rest, length).map(|_| Data::Null)
        }
    }
}

fn read_members(rest: &mut &[u8], members: u32, depth: usize) -> Option<Data> {
    let mut map: Vec<(Arc<str>, Data)> = Vec::new();
    for _ in 0..members {
        let Data::Str(name) = read_value(rest, 0)? else {
            return None;
        };
        let data = read_value(rest, depth + 1)?;
        match map.iter_mut().find(|(known, _)| *known == name) {
            Some(known) => known.1 = data,
            None => map.push((name, data)),
        }
    }
    Some(Data::Map(map))
}

/// In any of the widths that msgpack allows.
fn write(random: &mut Random, data: &Data, out: &mut Vec<u8>) {
    let long = random.below(4);
    match data {
        Data::Null if long == 0 => out.extend_from_slice(&[0xc4, 2, 1, 2]),
        Data::Null if long == 1 => out.extend_from_slice(&[0xd6, 0xff, 1, 2, 3, 4]),
        Data::Null if long == 2 => out.extend_from_slice(&[0xc7, 1, 5, 2]),
        Data::OutOfRange if long == 0 => out.extend_from_slice(&[0xcf, 0x80, 0, 0, 0, 0, 0, 0, 0]),
        Data::OutOfRange => out.extend_from_slice(&[0xca, 0x7f, 0xc0, 0, 0]),
        Data::Int(number) if long == 0 => {
            out.push(0xd3);
            out.extend_from_slice(&number.to_be_bytes());
        }
        Data::Str(text) if long == 0 => {
            out.push(0xdb);
            out.extend_from_slice(&u32::try_from(text.len()).expect("short").to_be_bytes());
            out.extend_from_slice(text.as_bytes());
        }
        Data::List(items) => {
            rmp::encode::write_array_len(out, u32::try_from(items.len()).expect("short")).expect("memory");
            for item in items {
                write(random, item, out);
            }
        }
        Data::Map(members) => {
            let twice = usize::from(long == 0 && !members.is_empty());
            let length = u32::try_from(members.len() + twice).expect("short");
            rmp::encode::write_map_len(out, length).expect("memory");
            for (name, data) in members[..twice].iter().chain(members) {
                write(random, &Data::Str(name.clone()), out);
                write(random, data, out);
            }
        }
        other => other.write_canonical(out),
    }
}

fn fields() -> Vec<crate::program::expression::FieldPath> {
    [
        "a",
        "b",
        "price",
        "a.b",
        "a.b.c",
        "a_longer_name.eight_by",
        "eight_by",
        "\u{e9}",
        "data",
        "price",
    ]
    .map(field)
    .to_vec()
}

#[test]
fn generated_records_are_read_alike() {
    let fields = fields();
    let mut bench = Bench::new(Mapping::tape(Codec::Msgpack), &fields);
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    for _ in 0..ROUNDS {
        let Ok(data) = json::read(record(&mut random).as_bytes()) else {
            continue;
        };
        let mut bytes = Vec::new();
        write(&mut random, &data, &mut bytes);
        compare_sorted(&mut bench, &bytes);
        random.damage(
            &mut bytes,
            b"\x80\x81\x92\xa1\xc0\xc1\xc3\xc4\xc7\xca\xcb\xcf\xd3\xd4\xd9\xdb\xdc\xde\xdf\xe0\xffa",
        );
        compare_sorted(&mut bench, &bytes);
    }
}

fn compare_sorted(bench: &mut Bench, bytes: &[u8]) {
    compare(bench, bytes, &fields(), read(bytes));
}

#[test]
fn every_changed_byte_is_read_alike() {
    let mut bench = Bench::new(Mapping::tape(Codec::Msgpack), &fields());
    let data = json::read(br#"{"key":"k","ts":123456,"data":{"price":1.5,"a":{"b":[1,"x"]},"z":null},"rev":300}"#);
    let mut whole = Vec::new();
    data.expect("JSON").write_canonical(&mut whole);
    for end in 0..=whole.len() {
        compare_sorted(&mut bench, &whole[..end]);
    }
    for at in 0..whole.len() {
        for byte in 0..=255 {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            compare_sorted(&mut bench, &bytes);
        }
    }
}

#[test]
fn depth_is_bounded() {
    let mut bench = Bench::new(Mapping::tape(Codec::Msgpack), &fields());
    for levels in 95..105 {
        for open in [&b"\x91"[..], b"\x81\xa1a"] {
            let mut bytes = b"\x83\xa3key\xa1k\xa2ts\x01\xa4data".to_vec();
            bytes.extend(open.repeat(levels));
            bytes.push(1);
            compare_sorted(&mut bench, &bytes);
            compare_sorted(&mut bench, &open.repeat(100_000));
        }
    }
}
