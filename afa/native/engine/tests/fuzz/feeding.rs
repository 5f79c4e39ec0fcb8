//! Raw records through the engine's own door: one batch, many batches, and without the bad ones.

use afa_engine::engine::Engine;
use afa_engine::raw::scan::Codec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use crate::bytes::{Bytes, json_records, msgpack_records};
use crate::engines::{Outcome, engine, feed, snapshots};

/// Records, and where their batches end.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) records: Vec<Bytes>,
    pub(crate) batch: usize,
}

pub(crate) fn runs() -> impl Strategy<Value = Run> {
    (json_records(), 1..5_usize).prop_map(|(records, batch)| Run { records, batch })
}

pub(crate) fn msgpack_runs() -> impl Strategy<Value = Run> {
    (msgpack_records(), 1..5_usize).prop_map(|(records, batch)| Run { records, batch })
}

/// Stands for what came before: a key of its own, so that nothing else of it is left.
const BEFORE: &str = "before";
const JSON_BEFORE: [&str; 3] = [
    r#"{"key":"before","ts":1,"data":{"x":1}}"#,
    r#"{"key":"before","ts":2,"data":{"x":2,"any":[1,2],"s":"\u0041"}}"#,
    r#"{"key":"before","ts":3,"data":{"x":3,"n":4}}"#,
];

pub(crate) fn check(run: &Run, codec: Codec) -> TestCaseResult {
    let mut whole = engine(codec);
    let outcome = feed(&mut whole, &run.records, 0);
    let expected = snapshots(&mut whole, BEFORE);
    let mut parted = engine(codec);
    let mut told = Outcome::default();
    for (number, part) in (0..).zip(run.records.chunks(run.batch)) {
        told.add(feed(&mut parted, part, number * run.batch as u64));
    }
    prop_assert_eq!(&told, &outcome, "in batches of {}", run.batch);
    prop_assert_eq!(&snapshots(&mut parted, BEFORE), &expected);
    let mut good = engine(codec);
    let changes = feed_good(&mut good, run, &outcome);
    prop_assert_eq!(&changes, &outcome.changes, "without the bad ones");
    prop_assert_eq!(&snapshots(&mut good, BEFORE), &expected);
    let mut used = engine(codec);
    let before: Vec<Bytes> = JSON_BEFORE.iter().map(|text| encoded(text, codec)).collect();
    feed(&mut used, &before, 1_000_000);
    let told = feed(&mut used, &run.records, 0);
    prop_assert_eq!((&told.bad, &told.asks), (&outcome.bad, &outcome.asks), "after others");
    prop_assert_eq!(&snapshots(&mut used, BEFORE), &expected);
    Ok(())
}

fn encoded(text: &str, codec: Codec) -> Bytes {
    if codec == Codec::Json {
        return Bytes(text.into());
    }
    let mut packed = Vec::new();
    let data = afa_engine::raw::json::read(text.as_bytes()).expect("JSON");
    data.write_canonical(&mut packed);
    Bytes(packed)
}

/// Feeds what was neither refused nor left out, each record with the number that it had.
fn feed_good(engine: &mut Engine, run: &Run, outcome: &Outcome) -> Vec<String> {
    let mut changes = Vec::new();
    for (number, record) in (0_u64..).zip(&run.records) {
        let is_bad = outcome.bad.iter().any(|(bad, _)| *bad == number);
        if !is_bad && !outcome.asks.contains(&number) {
            changes.extend(feed(engine, std::slice::from_ref(record), number).changes);
        }
    }
    changes
}
