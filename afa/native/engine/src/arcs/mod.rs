//! Arcs as a second input: records read and judged, lifetimes, and what a change means for stored events.

pub mod book;
pub mod forgetting;
pub mod index;
pub(crate) mod layout;
pub mod live;
pub mod record;
pub(crate) mod shapes;
