//! Lists of partial matches, and how an event steps them.

pub(crate) mod appending;
pub mod configuration;
pub(crate) mod few_events;
pub(crate) mod idle;
pub mod lane;
pub mod matcher;
pub(crate) mod moves;
pub(crate) mod one_event;
pub(crate) mod shapes;
pub(crate) mod stepper;
pub(crate) mod track;
pub mod transition;
