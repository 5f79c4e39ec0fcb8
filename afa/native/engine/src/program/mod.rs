//! Patterns compiled: expressions, bodies of arcs, epochs.

pub(crate) mod body;
pub mod compiled;
pub mod epochs;
pub mod expression;
pub mod function;
pub(crate) mod parting;
pub mod pattern;
pub mod query;
pub mod value;
