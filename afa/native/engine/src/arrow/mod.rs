//! Record batches: columns of any Arrow layout, read where they lie.

pub mod alike;
pub mod cells;
pub mod check;
pub mod input;
pub(crate) mod keys;
pub mod layout;
pub mod rows;
pub mod text;
