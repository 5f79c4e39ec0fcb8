//! Each part of a mapping by example.

use super::{Bench, Codec, Envelope, Mapping, Operation, Value, field};
use crate::raw::scan::{Clock, Place};

fn path(text: &str) -> Place {
    Place::Path(text.split('.').map(std::sync::Arc::from).collect())
}

/// The packed form, from pieces of msgpack: codec, seven places, data, unit, unit of the fleet, tombstone.
fn packed(codec: &str, places: [&[u8]; 7], data: &[u8], unit: &str, fleet: &str, tombstone: bool) -> Vec<u8> {
    let mut out = vec![0x9d, 1];
    rmp::encode::write_str(&mut out, codec).expect("memory");
    for place in places {
        out.extend_from_slice(place);
    }
    out.extend_from_slice(data);
    rmp::encode::write_str(&mut out, unit).expect("memory");
    rmp::encode::write_str(&mut out, fleet).expect("memory");
    out.push(if tombstone { 0xc3 } else { 0xc2 });
    out
}

/// time, type, key, id, seq, rev, op as in a tape, but the key is the record's.
const DEFAULTS: [&[u8]; 7] = [
    b"\x91\xa2ts",
    b"\x91\xa4type",
    b"\xc0",
    b"\x91\xa2id",
    b"\x91\xa3seq",
    b"\x91\xa3rev",
    b"\x91\xa2op",
];

fn kafka<'a>(key: &'a [u8], headers: &'a [(&'a str, &'a [u8])]) -> Envelope<'a> {
    Envelope {
        key: Some(key),
        timestamp_ms: Some(77),
        headers,
        position: Some(("trades", 3, 42)),
    }
}

fn text(text: &str) -> Value {
    Value::Str(text.into())
}

#[test]
fn the_packed_form_of_the_defaults_is_a_tape_keyed_by_the_record() {
    let bytes = packed("json", DEFAULTS, b"\x91\xa4data", "ms", "ms", false);
    let mut expected = Mapping::tape(Codec::Json);
    expected.key = Place::Record;
    assert_eq!(Mapping::read(&bytes), Ok(expected));
    for end in 0..bytes.len() {
        assert!(Mapping::read(&bytes[..end]).is_err());
    }
    let record_as_type = {
        let mut places = DEFAULTS;
        places[1] = b"\xc0";
        packed("json", places, b"\x90", "ms", "ms", false)
    };
    assert!(Mapping::read(&record_as_type).is_err());
    assert!(Mapping::read(&packed("xml", DEFAULTS, b"\x90", "ms", "ms", false)).is_err());
    assert!(Mapping::read(&packed("json", DEFAULTS, b"\x90", "h", "ms", false)).is_err());
    assert!(Mapping::read(&packed("json", DEFAULTS, b"\x90", "ms", "s", false)).is_err());
}

#[test]
fn a_record_of_kafka_has_its_key_and_its_position() {
    let mapping = Mapping::read(&packed("json", DEFAULTS, b"\x91\xa4data", "s", "ms", false)).expect("packed");
    let mut bench = Bench::new(mapping, &[field("x")]);
    let head = bench
        .scan(br#"{"ts":5,"data":{"x":"a\tb"}}"#, &kafka(b"k\xc3\xa9y", &[]))
        .expect("good");
    assert_eq!(bench.text(head.key).as_deref(), Some("k\u{e9}y"));
    assert_eq!(bench.text(head.id).as_deref(), Some("trades/00003/0000000000000000042"));
    assert_eq!((head.ts, head.operation), (5_000, Operation::Insert));
    assert_eq!(bench.values(), [text("a\tb")]);
    let head = bench
        .scan(br#"{"ts":5,"id":"e\u0031","key":"other"}"#, &kafka(b"k", &[]))
        .expect("good");
    assert_eq!(bench.text(head.id).as_deref(), Some("e1"));
    assert_eq!(bench.text(head.key).as_deref(), Some("k"));
    let bad = bench.scan(br#"{"ts":5}"#, &kafka(b"\xff", &[])).expect_err("not UTF-8");
    assert_eq!(bad.what, "`the record's key` is not UTF-8");
    assert!(bench.scan(br#"{"ts":5}"#, &Envelope::default()).is_err());
    let head = bench.scan(br#"{"op":"punctuation","ts":5,"when":"e.x > 1"}"#, &Envelope::default());
    let head = head.expect("a punctuation needs no key");
    assert_eq!((head.operation, head.ts), (Operation::Punctuation, 5_000));
    assert_eq!(bench.text(head.when).as_deref(), Some("e.x > 1"));
    assert!(bench.scan(br#"{"ts":9223372036854775807}"#, &kafka(b"k", &[])).is_err());
    assert!(bench.scan(br#"{"op":"retract","ts":5}"#, &kafka(b"k", &[])).is_err());
}

#[test]
fn parts_come_from_headers() {
    let mut mapping = Mapping::tape(Codec::Json);
    let header = |name: &str| Place::Header(name.into());
    mapping = Mapping {
        time: header("time"),
        kind: header("type"),
        key: header("key"),
        id: header("id"),
        seq: header("seq"),
        rev: header("rev"),
        operation: header("op"),
        data: [].into(),
        clock: Clock::new("iso8601", "ms").expect("units"),
        is_usual: false,
        ..mapping
    };
    let mut bench = Bench::new(mapping, &[field("op"), field("a.b")]);
    let mut headers: Vec<(&str, &[u8])> = vec![
        ("time", b"2025-01-31T08:00:00.25+01:00"),
        ("key", b"first"),
        ("type", b"stock"),
        ("key", b"k"),
        ("id", b"e1"),
        ("seq", b"-7"),
        ("rev", b"2"),
        ("op", b"retract"),
    ];
    let value = br#"{"op":"a field","a":{"b":[1,2.5]}}"#;
    let head = bench.scan(value, &kafka(b"", &headers)).expect("good");
    assert_eq!((head.operation, head.ts), (Operation::Retract, 1_738_306_800_250));
    assert_eq!((head.seq, head.rev), (Some(-7), 2));
    assert_eq!(bench.text(head.key).as_deref(), Some("k"));
    assert_eq!(bench.text(head.id).as_deref(), Some("e1"));
    assert_eq!(bench.text(head.kind).as_deref(), Some("stock"));
    assert_eq!(bench.values(), [text("a field"), Value::List([1.0, 2.5].into())]);
    for (name, wrong) in [
        ("time", &b"yesterday"[..]),
        ("seq", b"1.5"),
        ("seq", b""),
        ("rev", b"9223372036854775808"),
        ("op", b"upsert"),
        ("id", b"\xff"),
    ] {
        headers.push((name, wrong));
        assert!(bench.scan(value, &kafka(b"", &headers)).is_err(), "{name} {wrong:?}");
        headers.pop();
    }
}

#[test]
fn parts_and_fields_may_share_their_places() {
    let mut mapping = Mapping::tape(Codec::Json);
    mapping.time = path("order.at");
    mapping.id = path("order.number");
    mapping.kind = path("order.number");
    mapping.data = ["order".into()].into();
    let fields = ["at", "number", "at", "buyer.name", "buyer"].map(field);
    let mut bench = Bench::new(mapping, &fields);
    let record = br#"{"order":{"at":1},"order":{"at":9,"number":"n1","buyer":{"name":"x"}},"key":"k"}"#;
    let head = bench.scan(record, &Envelope::default()).expect("good");
    assert_eq!((head.ts, bench.text(head.id)), (9, Some("n1".into())));
    assert_eq!(bench.text(head.kind).as_deref(), Some("n1"));
    let expected = [Value::Int(9), text("n1"), Value::Int(9), text("x"), Value::Unknown];
    assert_eq!(bench.values(), expected);
    assert!(
        bench
            .scan(br#"{"order":{"at":1},"order":{},"key":"k"}"#, &Envelope::default())
            .is_err()
    );
    assert!(
        bench
            .scan(br#"{"order":{"at":1.5},"key":"k"}"#, &Envelope::default())
            .is_err()
    );
    assert!(bench.scan(br#"{"order":7,"key":"k"}"#, &Envelope::default()).is_err());
}

#[test]
fn the_record_gives_time_and_id() {
    let mut places = DEFAULTS;
    places[0] = b"\xc0";
    places[3] = b"\xc0";
    let mapping = Mapping::read(&packed("msgpack", places, b"\x90", "s", "us", true)).expect("packed");
    let mut bench = Bench::new(mapping, &[field("x")]);
    let head = bench
        .scan(b"\x82\xa1x\x05\xa2id\xa1e", &kafka(b"k", &[]))
        .expect("good");
    assert_eq!(head.ts, 77_000);
    assert_eq!(bench.text(head.id).as_deref(), Some("trades/00003/0000000000000000042"));
    assert_eq!(bench.values(), [Value::Int(5)]);
    assert!(bench.scan(b"\x80", &Envelope::default()).is_err());
}

#[test]
fn a_tombstone_is_a_retraction_only_where_the_mapping_says_so() {
    let mut places = DEFAULTS;
    places[0] = b"\xa4time";
    places[3] = b"\xa2id";
    let headers: [(&str, &[u8]); 2] = [("time", b"12"), ("id", b"e1")];
    for retracts in [false, true] {
        let mapping = Mapping::read(&packed("json", places, b"\x90", "ms", "ms", retracts)).expect("packed");
        let mut bench = Bench::new(mapping, &[field("x")]);
        let mut arena = Vec::new();
        let scanned = bench.scanner.scan_tombstone(&mut arena, &kafka(b"k", &headers));
        assert_eq!(scanned.is_ok(), retracts);
        if retracts {
            let head = *bench.scanner.head();
            assert_eq!((head.operation, head.ts), (Operation::Retract, 12));
            assert_eq!(head.id.map(|id| id.of(&arena).to_vec()), Some(b"e1".to_vec()));
            assert_eq!(head.key.map(|key| key.of(&arena).to_vec()), Some(b"k".to_vec()));
        }
        let before = arena.len();
        assert!(
            bench
                .scanner
                .scan_tombstone(&mut arena, &kafka(b"k", &headers[..1]))
                .is_err()
        );
        assert_eq!(arena.len(), before);
    }
}

#[test]
fn other_fields_can_be_read_later() {
    let mut bench = Bench::new(Mapping::tape(Codec::Json), &[field("x")]);
    let record = br#"{"key":"k","ts":1,"data":{"x":1,"y":"\u00e9","z":[1]}}"#;
    bench.scan(record, &Envelope::default()).expect("good");
    assert_eq!(bench.values(), [Value::Int(1)]);
    bench.arena.extend_from_slice(b"another record");
    bench.set_fields(&["y", "z", "w"].map(field));
    bench.scanner.rescan(&mut bench.arena, bench.record);
    assert_eq!(
        bench.values(),
        [text("\u{e9}"), Value::List([1.0].into()), Value::Unknown]
    );
}

#[test]
fn a_refusal_says_what_and_where() {
    let mut bench = Bench::new(Mapping::tape(Codec::Json), &[]);
    for (record, what) in [
        (
            &br#"{"key":"k","ts":1,}"#[..],
            "not JSON: a member's name in quotes is needed (byte 19)",
        ),
        (b"[]", "a record must be a mapping"),
        (br#"{"key":"k"}"#, "a record needs `ts`"),
        (br#"{"key":1,"ts":1}"#, "`key` must be a text"),
        (br#"{"key":"k","ts":1e3}"#, "`ts` must be an integer"),
        (br#"{"key":"k","ts":9223372036854775808}"#, "`ts` is outside 64 bits"),
        (br#"{"op":"upsert"}"#, "unknown op `upsert`"),
        (br#"{"key":"k","ts":1,"data":null}"#, "`data` must be a mapping"),
        (b"{\"key\":\"\xff\",\"ts\":1}", "not JSON: not UTF-8 (byte 9)"),
        (b"", "not JSON: the end, where a value should be (byte 1)"),
    ] {
        assert_eq!(bench.scan(record, &Envelope::default()).expect_err("bad").what, what);
    }
}
