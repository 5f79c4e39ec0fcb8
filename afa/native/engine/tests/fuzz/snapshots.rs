//! Snapshots: taken and restored they are the same, and whatever they say is restored or refused.

use afa_engine::raw::scan::Codec;
use afa_engine::state::form::{open, seal};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use crate::bytes::{Bytes, Damage, damage, json_records, spoil};
use crate::engines::{engine, feed, snapshots};

/// Records before a snapshot, and after it.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    before: Vec<Bytes>,
    after: Vec<Bytes>,
}

pub(crate) fn runs() -> impl Strategy<Value = Run> {
    // Only from a punctuation on are there partial matches without their events.
    let punctuation = proptest::option::of(0..60_i64);
    (json_records(), json_records(), punctuation).prop_map(|(mut before, after, punctuation)| {
        let record = punctuation.map(|ts| format!("{{\"op\":\"punctuation\",\"ts\":{ts}}}"));
        before.extend(record.map(|record| Bytes(record.into())));
        Run { before, after }
    })
}

/// A run whose snapshots are changed and sealed anew.
#[derive(Clone, Debug)]
pub(crate) struct Mutant {
    run: Run,
    damages: Vec<Damage>,
}

pub(crate) fn mutants() -> impl Strategy<Value = Mutant> {
    (runs(), vec(damage(), 1..3)).prop_map(|(run, damages)| Mutant { run, damages })
}

/// Past all numbers that records without an id get before.
const AFTER: u64 = 1000;

pub(crate) fn check_round_trip(run: &Run) -> TestCaseResult {
    let mut first = engine(Codec::Json);
    feed(&mut first, &run.before, 0);
    let mut second = engine(Codec::Json);
    let taken = snapshots(&mut first, "");
    for (name, snapshot) in &taken {
        prop_assert_eq!(second.restore(name, &snapshot.0), Ok(()));
        let again = second.snapshot(name).expect("small").map(Bytes);
        prop_assert_eq!(again.as_ref(), Some(snapshot));
        prop_assert_eq!(second.state_hash(name), first.state_hash(name));
    }
    // Punctuations come with the keys that they are about.
    if !taken.is_empty() {
        let expected = feed(&mut first, &run.after, AFTER);
        let told = feed(&mut second, &run.after, AFTER);
        prop_assert_eq!(told, expected);
        prop_assert_eq!(snapshots(&mut second, ""), snapshots(&mut first, ""));
    }
    Ok(())
}

pub(crate) fn check_mutant(mutant: &Mutant) -> TestCaseResult {
    let mut first = engine(Codec::Json);
    feed(&mut first, &mutant.run.before, 0);
    for (name, snapshot) in snapshots(&mut first, "") {
        let mut body = open(&snapshot.0).expect("sound").to_vec();
        spoil(&mut body, &mutant.damages);
        let before = snapshots(&mut first, "");
        let changed = seal(body);
        if first.restore(&name, &changed).is_err() {
            prop_assert_eq!(snapshots(&mut first, ""), before, "a refusal changes nothing");
            continue;
        }
        let mut second = engine(Codec::Json);
        prop_assert_eq!(second.restore(&name, &changed), Ok(()));
        if let Some(taken) = second.snapshot(&name).expect("small") {
            let mut third = engine(Codec::Json);
            prop_assert_eq!(third.restore(&name, &taken), Ok(()));
            prop_assert_eq!(third.snapshot(&name).expect("small").map(Bytes), Some(Bytes(taken)));
        }
        feed(&mut second, &mutant.run.after, AFTER);
        snapshots(&mut second, "");
    }
    feed(&mut first, &mutant.run.after, AFTER);
    Ok(())
}

pub(crate) fn check_noise(noise: &Bytes) -> TestCaseResult {
    let mut engine = engine(Codec::Json);
    prop_assert!(engine.restore("a", &noise.0).is_err());
    let mut body = vec![1, b'a'];
    body.extend_from_slice(&noise.0);
    if engine.restore("a", &seal(body)).is_err() {
        prop_assert_eq!(engine.key_names(), Vec::<String>::new());
    }
    Ok(())
}

/// Found by the target above: the event was before the punctuation of its topic, but not of the arcs.
#[test]
fn a_partition_that_waits_for_arcs_is_restored_where_it_was() {
    let record = |text: &str| Bytes(text.into());
    let before = [
        r#"{"op":"arc-punctuation","ts":0}"#,
        r#"{"key":"a","ts":0,"data":{"x":0,"n":0}}"#,
        r#"{"op":"punctuation","ts":1}"#,
    ];
    let run = Run {
        before: before.map(record).to_vec(),
        after: vec![record(r#"{"key":"a","ts":0,"data":{"x":1,"n":1}}"#)],
    };
    check_round_trip(&run).expect("the same state");
}

/// The same for a partition of two topics.
#[test]
fn a_partition_that_waits_for_a_topic_is_restored_where_it_was() {
    let mut first = engine(Codec::Json);
    let topics = ["one", "two"].map(|topic| first.origin(topic, 0));
    feed(
        &mut first,
        &[Bytes(r#"{"key":"a","ts":4,"data":{"x":0,"n":0}}"#.into())],
        0,
    );
    for (origin, ts) in topics.into_iter().zip([5, 3]) {
        first.punctuate(origin, ts, true);
    }
    let taken = snapshots(&mut first, "");
    let mut second = engine(Codec::Json);
    for (name, snapshot) in &taken {
        assert_eq!(second.restore(name, &snapshot.0), Ok(()));
    }
    assert_eq!(snapshots(&mut second, ""), taken);
}
