//! Runs a target: some fixed cases, or with `ARCFLEET_FUZZ_SECONDS` new ones until its share of the time is over.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestCaseResult, TestError, TestRng, TestRunner};

/// Cases that share a seed: few, so that a failure is found again at once.
const CASES_OF_A_SEED: u32 = 50;
/// No case is worth more memory; allocators reserve some for each thread.
const MOST_KIB: u64 = 512 * 1024;

fn number_from(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable}={text} is no number")),
    )
}

/// Tries cases of a strategy, and panics with what finds the failure again.
pub(crate) fn run<S: Strategy>(
    name: &str,
    targets: usize,
    cases: u32,
    strategy: &S,
    check: impl Fn(&S::Value) -> TestCaseResult,
) where
    S::Value: std::fmt::Debug,
{
    let share =
        number_from("ARCFLEET_FUZZ_SECONDS").map(|seconds| Duration::from_millis(seconds * 1000 / targets as u64));
    let start = Instant::now();
    let first = number_from("ARCFLEET_FUZZ_SEED").unwrap_or_else(|| share.map_or(0, |_| new_seed()));
    if share.is_some() {
        // Before the first case: what takes the whole process with it has a seed, too.
        eprintln!("{name}: seed {first}");
    }
    let mut tried = 0;
    for seed in first.. {
        try_seed(name, seed, strategy, &check);
        tried += CASES_OF_A_SEED;
        if share.map_or(tried >= cases, |share| start.elapsed() >= share) {
            break;
        }
    }
    if share.is_some() {
        eprintln!("{name}: {tried} cases");
    }
}

fn new_seed() -> u64 {
    // Short enough to be typed.
    RandomState::new().hash_one(std::process::id()) % 1_000_000_000
}

fn try_seed<S: Strategy>(name: &str, seed: u64, strategy: &S, check: &impl Fn(&S::Value) -> TestCaseResult)
where
    S::Value: std::fmt::Debug,
{
    let config = Config {
        cases: CASES_OF_A_SEED,
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..Config::default()
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let outcome = TestRunner::new_with_rng(config, random).run(strategy, |case| within_memory(|| check(&case)));
    let again = format!("ARCFLEET_FUZZ_SEED={seed} cargo test -p afa-engine --test fuzz {name}");
    match outcome {
        Ok(()) => {}
        Err(TestError::Abort(reason)) => panic!("{reason}\nonce more: {again}"),
        Err(TestError::Fail(reason, case)) => panic!("{reason}\nthe least case found: {case:?}\nonce more: {again}"),
    }
}

/// Fails a case that raises the most memory that the process ever had by far.
fn within_memory(check: impl FnOnce() -> TestCaseResult) -> TestCaseResult {
    let before = peak_kib();
    check()?;
    match (before, peak_kib()) {
        (Some(before), Some(after)) if after - before > MOST_KIB => {
            Err(TestCaseError::fail(format!("took {} KiB at once", after - before)))
        }
        _ => Ok(()),
    }
}

/// The most memory ever mapped, touched or not, where the system tells.
fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmPeak:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
