//! Records as bytes: good ones, ones that look like the one before, damaged ones, and noise.

use std::fmt;

use afa_engine::raw::json;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Bytes that are shown as a text.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl fmt::Debug for Bytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "b\"{}\"", self.0.escape_ascii())
    }
}

/// Bytes without any sense.
pub(crate) fn noise(most: usize) -> impl Strategy<Value = Bytes> {
    let likely = select(b"{}[]\":,\\u0123456789-+.eEtfn AFAS\x00\x01\x7f\x80\xff".to_vec());
    vec(prop_oneof![any::<u8>(), likely], 0..most).prop_map(Bytes)
}

/// Small damage; what an index means depends on how long the bytes are.
#[derive(Clone, Debug)]
pub(crate) enum Damage {
    /// Another digit for a digit: the shape stays.
    Digit(Index, u8),
    /// One bit: most bytes stay what they were meant to be.
    Flip(Index, u8),
    Replace(Index, u8),
    Insert(Index, u8),
    Remove(Index),
    Cut(Index),
    Double(Index, Index),
}

impl Damage {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let length = bytes.len();
        if length == 0 {
            return;
        }
        match self {
            Self::Digit(at, digit) => {
                let mut digits: Vec<&mut u8> = bytes.iter_mut().filter(|byte| byte.is_ascii_digit()).collect();
                let count = digits.len();
                if count > 0 {
                    *digits[at.index(count)] = b'0' + digit % 10;
                }
            }
            Self::Flip(at, bit) => bytes[at.index(length)] ^= 1 << (bit % 8),
            Self::Replace(at, byte) => bytes[at.index(length)] = *byte,
            Self::Insert(at, byte) => bytes.insert(at.index(length), *byte),
            Self::Remove(at) => drop(bytes.remove(at.index(length))),
            Self::Cut(at) => bytes.truncate(at.index(length)),
            Self::Double(from, to) => {
                let (from, to) = (from.index(length), to.index(length));
                bytes.extend_from_within(from.min(to)..from.max(to));
            }
        }
    }
}

/// Does all the damage, one after the other.
pub(crate) fn spoil(bytes: &mut Vec<u8>, damages: &[Damage]) {
    for damage in damages {
        damage.apply(bytes);
    }
}

fn digit() -> impl Strategy<Value = Damage> {
    (any::<Index>(), 0..10_u8).prop_map(|(at, digit)| Damage::Digit(at, digit))
}

pub(crate) fn damage() -> impl Strategy<Value = Damage> {
    let byte = || prop_oneof![select(b"\"\\{}[]:,-.e0159 \x00\x1f\x80\xc3\xff".to_vec()), any::<u8>()];
    prop_oneof![
        6 => (any::<Index>(), 0..8_u8).prop_map(|(at, bit)| Damage::Flip(at, bit)),
        4 => (any::<Index>(), byte()).prop_map(|(at, byte)| Damage::Replace(at, byte)),
        2 => (any::<Index>(), byte()).prop_map(|(at, byte)| Damage::Insert(at, byte)),
        2 => any::<Index>().prop_map(Damage::Remove),
        1 => any::<Index>().prop_map(Damage::Cut),
        1 => (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Damage::Double(from, to)),
    ]
}

fn number() -> impl Strategy<Value = String> {
    let odd = [
        "0",
        "-0",
        "1",
        "-1",
        "3.5",
        "0.0",
        "-0.0",
        "1e999",
        "-1e-999",
        "1E5",
        "9223372036854775807",
        "-9223372036854775808",
        "9223372036854775808",
        "12345678",
        "123456789012345678901234567890",
        "2e-3",
    ];
    prop_oneof![
        select(odd.to_vec()).prop_map(String::from),
        (-9..20_i64).prop_map(|number| number.to_string()),
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>()
            .prop_filter("finite", |number| number.is_finite())
            .prop_map(|number| format!("{number:e}")),
        (-99..99_i32).prop_map(|number| format!("{:.2}", f64::from(number) / 8.0)),
    ]
}

fn text() -> impl Strategy<Value = String> {
    let odd = [
        "",
        "a",
        "buy",
        "sell",
        "\\n",
        "\\u00e9",
        "\\ud83d\\ude00",
        "\u{e9}",
        "12345678",
        "eight_by",
        "\\\"",
        "\\/",
        "\u{1f600}",
        "a text that is longer than two words",
    ];
    let any_text = vec(any::<char>(), 0..6).prop_map(|chars| {
        let plain = chars
            .into_iter()
            .filter(|char| !matches!(char, '"' | '\\') && *char >= ' ');
        plain.collect::<String>()
    });
    prop_oneof![3 => select(odd.to_vec()).prop_map(String::from), 1 => any_text]
        .prop_map(|inner| format!("\"{inner}\""))
}

fn scalar() -> impl Strategy<Value = String> {
    prop_oneof![4 => number(), 2 => text(), 1 => select(vec!["true", "false", "null"]).prop_map(String::from)]
}

/// Any JSON.
pub(crate) fn json() -> impl Strategy<Value = String> {
    scalar().prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(|items| format!("[{}]", items.join(", "))),
            vec((name(), inner), 0..4).prop_map(|members| object(&members)),
        ]
    })
}

/// The names of fields that patterns read, and others.
pub(crate) const NAMES: [&str; 6] = ["x", "n", "s", "b", "any", "in"];

fn name() -> impl Strategy<Value = String> {
    prop_oneof![5 => select(NAMES.to_vec()).prop_map(|name| format!("\"{name}\"")), 1 => text()]
}

pub(crate) fn object(members: &[(String, String)]) -> String {
    let told: Vec<String> = members.iter().map(|(name, value)| format!("{name}:{value}")).collect();
    format!("{{{}}}", told.join(","))
}

fn quoted(texts: &[&str]) -> impl Strategy<Value = String> + use<> {
    select(texts.iter().map(|text| format!("\"{text}\"")).collect::<Vec<_>>())
}

fn time() -> impl Strategy<Value = String> {
    prop_oneof![30 => (0..60_i64).prop_map(|ts| ts.to_string()), 1 => number()]
}

/// Members of the head: mostly what they should be.
fn head() -> impl Strategy<Value = Vec<(String, String)>> {
    let some = |name: &'static str, value: BoxedStrategy<String>, often: f64| {
        proptest::option::weighted(often, prop_oneof![99 => value, 1 => json().boxed()])
            .prop_map(move |value| value.map(|value| (format!("\"{name}\""), value)))
    };
    let operations = [
        "insert",
        "retract",
        "punctuation",
        "retract",
        "arc-punctuation",
        "arc",
        "what",
    ];
    (
        some("key", quoted(&["a", "b", "a longer key"]).boxed(), 0.99),
        some("ts", time().boxed(), 0.99),
        some("id", quoted(&["1", "2", "3", "000000000003", "\\u0031"]).boxed(), 0.3),
        some("seq", (0..9_i64).prop_map(|seq| seq.to_string()).boxed(), 0.3),
        some("rev", (-1..3_i64).prop_map(|rev| rev.to_string()).boxed(), 0.2),
        some("type", text().boxed(), 0.1),
        some("op", quoted(&operations).boxed(), 0.2),
        some("other", json().boxed(), 0.1),
    )
        .prop_map(|parts| {
            let (key, ts, id, seq, rev, kind, operation, other) = parts;
            [operation, key, ts, id, seq, rev, kind, other]
                .into_iter()
                .flatten()
                .collect()
        })
}

/// Data that patterns can match.
fn usual_data() -> impl Strategy<Value = String> {
    let float = (-9..30_i32).prop_map(|number| format!("{:.1}", f64::from(number) / 4.0));
    let x = prop_oneof![(-2..7_i64).prop_map(|number| number.to_string()), float];
    let n = (-1..5_i64).prop_map(|number| number.to_string());
    let (s, b) = (
        quoted(&["buy", "sell", "\\u0062uy"]),
        select(vec!["true", "false", "null"]),
    );
    let (s, b) = (proptest::option::of(s), proptest::option::of(b));
    (x, n, s, b).prop_map(|(x, n, s, b)| {
        let members = [("x", Some(x)), ("n", Some(n)), ("s", s), ("b", b.map(String::from))];
        let told = members
            .into_iter()
            .filter_map(|(name, value)| Some((format!("\"{name}\""), value?)));
        object(&told.collect::<Vec<_>>())
    })
}

/// A record of a tape.
pub(crate) fn record() -> impl Strategy<Value = String> {
    let any_data = vec((name(), prop_oneof![6 => scalar(), 1 => json()]), 0..4).prop_map(|members| object(&members));
    let data = prop_oneof![2 => usual_data(), 1 => any_data];
    (head(), proptest::option::weighted(0.95, data), any::<Index>()).prop_map(|(mut members, data, at)| {
        if let Some(data) = data {
            members.insert(at.index(members.len() + 1), ("\"data\"".into(), data));
        }
        object(&members)
    })
}

/// Which of some records comes next, and what is done to it.
#[derive(Clone, Debug)]
struct Step {
    base: Index,
    damages: Vec<Damage>,
}

fn step() -> impl Strategy<Value = Step> {
    let damages = prop_oneof![6 => vec(digit(), 0..4).boxed(), 1 => vec(damage(), 1..3).boxed()];
    (any::<Index>(), damages).prop_map(|(base, damages)| Step { base, damages })
}

fn sequence(bases: impl Strategy<Value = Vec<Vec<u8>>>) -> impl Strategy<Value = Vec<Bytes>> {
    (bases, vec(step(), 1..24), proptest::option::weighted(0.1, noise(40))).prop_map(|(bases, steps, noise)| {
        let records = steps.iter().map(|step| {
            let mut record = step.base.get(&bases).clone();
            spoil(&mut record, &step.damages);
            Bytes(record)
        });
        records.chain(noise).collect()
    })
}

/// Records one after the other, of few shapes.
pub(crate) fn json_records() -> impl Strategy<Value = Vec<Bytes>> {
    sequence(vec(record().prop_map(String::into_bytes), 1..6))
}

/// The same as msgpack.
pub(crate) fn msgpack_records() -> impl Strategy<Value = Vec<Bytes>> {
    sequence(vec(record().prop_map(|record| as_msgpack(&record)), 1..6))
}

fn as_msgpack(record: &str) -> Vec<u8> {
    let mut packed = Vec::new();
    if let Ok(data) = json::read(record.as_bytes()) {
        data.write_canonical(&mut packed);
    }
    packed
}
