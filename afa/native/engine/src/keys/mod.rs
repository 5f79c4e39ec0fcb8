//! The state of a key: its ordered events in pages, and how a key is found among many.

pub(crate) mod folded;
pub mod key;
pub(crate) mod naming;
pub(crate) mod packing;
pub mod page;
pub(crate) mod page_edit;
pub(crate) mod resting;
pub(crate) mod settling;
pub(crate) mod slots;
pub mod spine;
pub(crate) mod table;
