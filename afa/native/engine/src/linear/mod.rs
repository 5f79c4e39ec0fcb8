//! Linear patterns without registers, bit-parallel.

pub(crate) mod bits;
pub(crate) mod chain;
pub(crate) mod column;
pub mod matching;
pub(crate) mod nodes;
pub(crate) mod words;
