//! What comes between stored events: from there on lists are stepped anew until they are as they were.

pub(crate) mod course;
pub(crate) mod merging;
pub(crate) mod mixed;
pub mod one;
pub(crate) mod pair;
pub(crate) mod side_by_side;
pub mod walk;
pub(crate) mod walk_shapes;
pub(crate) mod walker;
