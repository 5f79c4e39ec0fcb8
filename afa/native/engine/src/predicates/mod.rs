//! Event predicates, evaluated column by column for all patterns, and the classes that follow from them.

pub(crate) mod asked;
pub(crate) mod bounds;
pub(crate) mod class_reader;
pub(crate) mod classifying;
pub(crate) mod column_logic;
pub(crate) mod column_tests;
pub(crate) mod constants;
pub(crate) mod field_values;
pub mod index;
pub mod kernel;
pub(crate) mod measuring;
pub(crate) mod others;
pub(crate) mod pinning;
pub mod predicate;
pub mod truths;
