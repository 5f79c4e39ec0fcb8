//! The matching engine. It knows no interpreter, so its tests and benches run without one.

#![forbid(unsafe_code)]

pub mod arcs;
pub mod arrow;
pub mod batch;
pub mod bindings;
pub mod changes;
pub mod engine;
pub mod input;
pub mod keys;
pub mod late;
pub mod linear;
pub mod lists;
pub mod predicates;
pub mod program;
pub mod progress;
pub mod raw;
pub mod rows;
pub mod segment;
pub mod state;

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
