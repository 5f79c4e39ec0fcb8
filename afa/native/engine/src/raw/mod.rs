//! Raw records: JSON and msgpack, read by a source's mapping.

pub mod column;
pub mod json;
pub mod msgpack;
#[cfg(test)]
pub(crate) mod record;
pub(crate) mod replaying;
pub mod rows;
pub mod scan;
