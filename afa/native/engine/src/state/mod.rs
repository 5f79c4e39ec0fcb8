//! Snapshots of keys: what is dirty, the form, and the way back.

pub mod dirty;
pub mod form;
pub mod rebuild;
pub mod restore;
pub mod snapshot;
