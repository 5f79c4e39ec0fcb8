//! Snapshots round trip; whatever was cut, flipped or made up is refused without a panic.

use afa_engine::program::value::Value;
use afa_engine::raw::json;
use afa_engine::rows::event::Data;
use afa_engine::state::form::{FORMAT_VERSION, Reader, SnapshotFault, Writer, open, seal};

fn values() -> Vec<Value> {
    let mut values = vec![
        Value::Unknown,
        Value::Bool(false),
        Value::Bool(true),
        Value::Str("\u{e9}".into()),
        Value::Str("".into()),
        Value::List([1.5, -2.0, f64::MAX, f64::MIN_POSITIVE].as_slice().into()),
        Value::List([].as_slice().into()),
    ];
    values.extend([0, 1, -1, 63, 64, -64, -65, 1 << 40, i64::MAX, i64::MIN].map(Value::Int));
    values.extend([0.0, 1.0, -1.5e300, 5e-324].map(Value::Float));
    values
}

fn data() -> Data {
    let text = r#"{"a": [1, -2.5, true, false, null, 1e999], "b": {"c": "text", "": []}, "n": -9223372036854775808}"#;
    json::read(text.as_bytes()).expect("JSON")
}

fn body() -> Vec<u8> {
    let mut writer = Writer::default();
    for value in values() {
        writer.value(&value);
    }
    writer.data(&data());
    writer.fixed_u32(u32::MAX);
    writer.fixed_u64(7);
    writer.unsigned(u64::MAX);
    writer.option(Some("x"), Writer::text);
    writer.option(None, Writer::text);
    writer.binary(b"\xff\x00");
    writer.finish()
}

fn read_body(bytes: &[u8]) -> Result<(), SnapshotFault> {
    let mut reader = Reader::new(bytes);
    for value in values() {
        assert_eq!(reader.value()?, value);
    }
    assert_eq!(reader.data()?, data());
    assert_eq!((reader.fixed_u32()?, reader.fixed_u64()?), (u32::MAX, 7));
    assert_eq!(reader.unsigned()?, u64::MAX);
    assert_eq!(reader.option(Reader::text)?, Some("x"));
    assert_eq!(reader.option(Reader::text)?, None);
    assert_eq!(reader.binary()?, b"\xff\x00");
    reader.end()
}

#[test]
fn what_is_written_is_read() {
    let sealed = seal(body());
    let opened = open(&sealed).expect("a sound snapshot");
    assert_eq!(opened, body());
    assert_eq!(read_body(opened), Ok(()));
    assert_eq!(open(&seal(Vec::new())), Ok(&[][..]));
}

#[test]
fn the_form_stays_what_it_is() {
    let sealed = seal(b"abc".to_vec());
    assert_eq!(sealed[..13], *b"AFAS\x01\x00\x03\x00\x00\x00abc");
    assert_eq!(sealed.len(), 21);
}

#[test]
fn minus_zero_is_zero() {
    let written = |number: f64| {
        let mut writer = Writer::default();
        writer.value(&Value::Float(number));
        writer.value(&Value::List([number].as_slice().into()));
        writer.data(&Data::Float(number));
        writer.finish()
    };
    assert_eq!(written(-0.0), written(0.0));
}

#[test]
fn every_truncation_is_refused() {
    let sealed = seal(body());
    for length in 0..sealed.len() {
        assert_eq!(open(&sealed[..length]), Err(SnapshotFault::CutShort), "{length}");
    }
    let mut longer = sealed;
    longer.push(0);
    assert_eq!(open(&longer), Err(SnapshotFault::Damaged));
}

#[test]
fn every_flipped_bit_is_refused() {
    let mut sealed = seal(body());
    for at in 0..sealed.len() {
        for bit in 0..8 {
            sealed[at] ^= 1 << bit;
            assert!(open(&sealed).is_err(), "bit {bit} of byte {at}");
            sealed[at] ^= 1 << bit;
        }
        for byte in [0x00, 0xFF] {
            let before = std::mem::replace(&mut sealed[at], byte);
            assert_eq!(open(&sealed).is_ok(), before == byte);
            sealed[at] = before;
        }
    }
}

#[test]
fn faults_have_names() {
    assert_eq!(open(b"PK\x03\x04"), Err(SnapshotFault::NotASnapshot));
    let mut newer = seal(body());
    newer[4] += 1;
    let fault = open(&newer).expect_err("a newer format");
    assert_eq!(
        fault.to_string(),
        format!(
            "a snapshot of format version {}; this build reads up to {FORMAT_VERSION}",
            FORMAT_VERSION + 1
        )
    );
}

#[test]
fn a_body_that_lies_is_refused_without_a_panic() {
    let sound = body();
    for length in 0..sound.len() {
        assert!(read_body(&sound[..length]).is_err(), "{length}");
    }
    for lengths in [
        &b"\x06\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"[..],
        b"\x05\xff\xff\x7f",
        b"\x07\x80\x80\x04",
    ] {
        assert_eq!(Reader::new(lengths).data(), Err(SnapshotFault::CutShort));
    }
    for number in [
        &b"\x80\x00"[..],
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",
        &[0xFF; 11],
    ] {
        assert!(matches!(
            Reader::new(number).unsigned(),
            Err(SnapshotFault::Malformed(_))
        ));
    }
    for float in [f64::NAN, f64::INFINITY, -0.0] {
        assert!(Reader::new(&float.to_bits().to_le_bytes()).float().is_err());
    }
    let deep = [6, 1].repeat(100_000);
    assert!(Reader::new(&deep).data().is_err());
    let mut state = 11_u64;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8 % 12
    });
    let noise: Vec<u8> = noise.take(20_000).collect();
    for begin in 0..noise.len() {
        let _ = Reader::new(&noise[begin..]).data();
        let _ = Reader::new(&noise[begin..]).value();
        let _ = open(&noise[begin..]);
    }
}
