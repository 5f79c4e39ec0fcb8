//! The matching engine. It knows no interpreter, so its tests and benches run without one.

#![forbid(unsafe_code)]

mod agenda;
mod appending;
pub mod arc_book;
pub mod arc_index;
mod arc_layout;
pub mod arc_record;
mod arc_shapes;
pub mod arrow_alike;
pub mod arrow_cells;
pub mod arrow_check;
pub mod arrow_input;
mod arrow_keys;
pub mod arrow_layout;
pub mod arrow_rows;
pub mod arrow_text;
mod asked;
pub mod batch;
mod bound_columns;
pub mod bound_matches;
mod bound_telling;
pub mod bound_text;
mod bounds;
mod chain;
pub mod change_arrow;
pub mod change_table;
pub mod chunk;
mod class_reader;
mod classifying;
mod column_logic;
mod column_tests;
mod compiled_body;
pub mod configuration;
mod constants;
pub mod dirty;
pub mod domain;
mod dropping;
pub mod engine;
pub mod epochs;
pub mod event;
mod event_order;
pub mod expression;
mod few_events;
mod field_values;
mod finding;
mod folded;
pub mod forgetting;
pub mod found;
pub mod function;
pub mod gauges;
mod growth;
mod holding;
mod idle;
pub mod input;
pub mod json;
pub mod json_text;
mod keeping;
pub mod kernel;
pub mod key;
mod key_slots;
mod key_table;
pub mod known_texts;
pub mod lane;
pub mod late;
mod late_course;
mod late_walk;
pub mod limits;
pub mod linear;
mod linear_bits;
mod linear_column;
mod linear_nodes;
mod linear_words;
pub mod live_arcs;
pub mod matcher;
mod measuring;
mod merging;
mod mixed;
mod moves;
pub mod msgpack;
mod naming;
mod nearly_sorted;
mod observing;
mod one_event;
pub mod outcomes;
mod overtaking;
pub mod page;
mod page_edit;
mod pair;
mod parting;
pub mod pattern;
mod pinning;
pub mod predicate;
pub mod predicate_index;
pub mod program;
pub mod query;
pub mod rebuild;
#[cfg(test)]
mod record;
mod replaying;
mod resting;
pub mod restore;
mod retaining;
mod row_order;
pub mod row_view;
pub mod rows;
mod run_ends;
mod runs;
pub mod scan;
pub mod scanned;
pub mod scanned_column;
pub mod segment;
pub mod selecting;
mod settling;
mod shapes;
mod side_by_side;
pub mod slack;
pub mod snapshot;
pub mod snapshot_form;
pub mod spine;
mod stepper;
pub mod stretch;
mod sweeping;
mod teller;
pub mod telling;
mod timeouts;
mod track;
mod trails;
pub mod transition;
pub mod truths;
pub mod value;
pub mod walk;
mod walker;
mod ways;
mod ways_telling;

/// The version of this crate, which is that of the wheel it is shipped in.
#[must_use]
pub const fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// `"release"` or `"debug"`: a benchmark must refuse to measure the latter.
#[must_use]
pub const fn build_profile() -> &'static str {
    if cfg!(debug_assertions) { "debug" } else { "release" }
}

#[cfg(test)]
mod tests {
    use super::{build_profile, version};

    #[test]
    fn version_has_three_numbers() {
        let numbers: Result<Vec<u32>, _> = version().split('.').map(str::parse).collect();
        assert_eq!(numbers.map(|found| found.len()), Ok(3));
    }

    #[test]
    fn profile_is_that_of_this_build() {
        let expected = if cfg!(debug_assertions) { "debug" } else { "release" };
        assert_eq!(build_profile(), expected);
    }
}
