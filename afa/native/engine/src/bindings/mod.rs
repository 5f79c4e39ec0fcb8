//! Queries and other patterns that tell more, or less, than the ends of partial matches: what their runs have bound.

pub(crate) mod finding;
pub(crate) mod folding;
pub(crate) mod graphs;
pub(crate) mod growth;
pub(crate) mod holding;
pub(crate) mod layers;
pub mod matches;
pub(crate) mod observing;
pub(crate) mod retaining;
pub(crate) mod runs;
pub mod selecting;
pub(crate) mod timeouts;
pub(crate) mod trails;
pub(crate) mod tries;
pub(crate) mod ways;
pub(crate) mod weaving;
