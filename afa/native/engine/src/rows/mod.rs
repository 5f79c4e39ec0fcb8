//! Events as they are kept: chunks of rows in order of arrival, and runs of them in event order.

pub mod chunk;
pub mod event;
pub(crate) mod event_order;
pub(crate) mod nearly_sorted;
pub(crate) mod run_ends;
pub mod store;
pub mod stretch;
pub mod view;
