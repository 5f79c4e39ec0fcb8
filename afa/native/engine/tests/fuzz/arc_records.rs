//! Arc records: what the quick reader reads is what the full reader sees, whatever the bytes are.

#[path = "../shared/arc_reading.rs"]
mod arc_reading;

use afa_engine::arcs::record::read_arc_record;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestCaseResult;

use crate::bytes::{Bytes, damage, json, noise, object, spoil};

fn texts() -> BoxedStrategy<String> {
    let texts = [
        "\"a\"",
        "\"q1\"",
        "\"e.x > 1\"",
        "\"\u{e9}\"",
        "\"\\u0061\"",
        "\"12345678\"",
        "\"\"",
    ];
    select(texts.to_vec()).prop_map(String::from).boxed()
}

fn member(name: &'static str, value: BoxedStrategy<String>, often: f64) -> BoxedStrategy<Option<(String, String)>> {
    let value = prop_oneof![60 => value, 1 => json()];
    let member = value.prop_map(move |value| (format!("\"{name}\""), value));
    proptest::option::weighted(often, member).boxed()
}

fn objects(members: Vec<BoxedStrategy<Option<(String, String)>>>) -> BoxedStrategy<String> {
    let chosen = members.prop_map(|members| members.into_iter().flatten().collect::<Vec<_>>());
    chosen.prop_shuffle().prop_map(|members| object(&members)).boxed()
}

fn transfer() -> BoxedStrategy<String> {
    objects(vec![member("n", texts(), 0.5), member("m", texts(), 0.5)])
}

fn lifetime() -> BoxedStrategy<String> {
    let ends = [
        "null",
        "0",
        "-0",
        "-17",
        "5000",
        "9223372036854775807",
        "9223372036854775808",
        "1.0",
        "01",
    ];
    let end = select(ends.to_vec());
    (end.clone(), end)
        .prop_map(|(from, to)| format!("[{from}, {to}]"))
        .boxed()
}

/// An arc record whose body and lifetime are there as often as this says.
fn record(operation: &'static str, body: f64, valid: f64) -> BoxedStrategy<String> {
    let arc = objects(vec![
        member("id", texts(), 0.99),
        member("from", texts(), body),
        member("to", texts(), body),
        member("when", texts(), body / 2.0),
        member("set", transfer(), body / 2.0),
    ]);
    objects(vec![
        member("op", Just(operation.to_owned()).boxed(), 0.99),
        member("pattern", texts(), 0.99),
        member("arc", arc, 0.99),
        member("valid", lifetime(), valid),
        member("other", json().boxed(), 0.02),
    ])
}

/// Arc records, damaged ones, and bytes that are none.
pub(crate) fn records() -> impl Strategy<Value = Bytes> {
    let record = prop_oneof![
        3 => record("\"arc\"", 0.98, 0.5),
        2 => record("\"arc\"", 0.02, 0.98),
        1 => record("\"arc-retract\"", 0.02, 0.02),
    ];
    let damages = prop_oneof![Just(Vec::new()), vec(damage(), 1..3)];
    let spoiled = (record, damages).prop_map(|(record, all)| {
        let mut bytes = record.into_bytes();
        spoil(&mut bytes, &all);
        Bytes(bytes)
    });
    prop_oneof![12 => spoiled, 1 => json().prop_map(|json| Bytes(json.into())), 1 => noise(60)]
}

#[allow(clippy::unnecessary_wraps)] // as all checks
pub(crate) fn check(record: &Bytes) -> TestCaseResult {
    if let Some(read) = read_arc_record(&record.0) {
        arc_reading::compare(&read, &record.0);
    }
    Ok(())
}
