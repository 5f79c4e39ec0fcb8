//! Each part of a mapping by example.
