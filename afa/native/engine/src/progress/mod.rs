//! Punctuations and what they let go: slack, limits, gauges, and the memory that nobody needs any more.

pub(crate) mod agenda;
pub mod counters;
pub mod domain;
pub(crate) mod dropping;
pub mod gauges;
pub(crate) mod keeping;
pub mod limits;
pub(crate) mod overtaking;
pub mod slack;
pub(crate) mod sweeping;
