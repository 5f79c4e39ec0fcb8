//! What was found, put into words: tables of changes, as records, JSON and Arrow.

pub mod arrow;
pub(crate) mod bound_columns;
pub(crate) mod bound_telling;
pub mod bound_text;
pub mod found;
pub(crate) mod graph_text;
pub mod graphs;
pub mod json_text;
pub mod known_texts;
pub(crate) mod match_ids;
pub mod outcomes;
pub(crate) mod row_order;
pub mod table;
pub(crate) mod teller;
pub mod telling;
pub(crate) mod ways_telling;
