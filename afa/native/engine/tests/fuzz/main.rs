//! Whatever comes from outside, made up at random: no panic, no memory out of proportion, and one meaning whatever way
//! it is read. `cargo test` tries a few fixed cases of each target, `make fuzz` as many new ones as its time allows.

mod arc_records;
mod bytes;
mod decoders;
mod engines;
mod expressions;
mod feeding;
mod nodes;
mod predicates;
mod runner;
mod snapshots;

use afa_engine::raw::scan::Codec;

/// A test for each target, `name: cases in cargo test, strategy, check`; the time of `make fuzz` is divided among them.
macro_rules! targets {
    ($($name:ident: $cases:expr, $strategy:expr, $check:expr;)*) => {
        const TARGETS: usize = [$(stringify!($name)),*].len();
        $(#[test]
        fn $name() {
            runner::run(stringify!($name), TARGETS, $cases, &$strategy, $check);
        })*
    };
}

targets! {
    json_records_mean_the_same_to_used_and_new_scanners: 150, bytes::json_records(), |case| decoders::check(case, Codec::Json);
    msgpack_records_mean_the_same_to_used_and_new_scanners: 150, bytes::msgpack_records(), |case| decoders::check(case, Codec::Msgpack);
    bad_records_leave_engines_unharmed: 50, feeding::runs(), |case| feeding::check(case, Codec::Json);
    bad_msgpack_records_leave_engines_unharmed: 50, feeding::msgpack_runs(), |case| feeding::check(case, Codec::Msgpack);
    expressions_keep_the_laws: 150, expressions::cases(), expressions::check_laws;
    packed_expressions_are_read_or_refused: 150, expressions::packed(), expressions::check_packed;
    predicates_by_columns_and_by_rows_agree: 50, predicates::cases(), predicates::check;
    snapshots_bring_back_what_was: 50, snapshots::runs(), snapshots::check_round_trip;
    snapshots_that_lie_are_refused_or_restored: 100, snapshots::mutants(), snapshots::check_mutant;
    bytes_that_are_no_snapshot_are_refused: 150, bytes::noise(300), snapshots::check_noise;
    arc_records_are_read_as_json: 400, arc_records::records(), arc_records::check;
}
