//! A list of partial matches, and what is known of it.

use smallvec::SmallVec;

use crate::lists::configuration::{Code, Word, start_row, word};
use crate::lists::shapes::{MOST_WORDS, Move, NO_SHAPE};

/// So many words of a list lie where it belongs.
pub(crate) const SHORT_LIST: usize = 4;

/// A list of partial matches. Most are short; then they lie where they belong, because a key's state should be in few
/// places.
pub type List = SmallVec<[Word; SHORT_LIST]>;
/// By lane; most engines have one.
pub type Lanes = SmallVec<[Lane; 1]>;

/// What one pattern that keeps lists knows at a place between events.
#[derive(Clone, Debug)]
pub struct Lane {
    tail: List,
    /// When the first of them expires; the least instant: to be looked up.
    pub(crate) expires: i64,
    /// The list's shape, or `NO_SHAPE`: to be looked up.
    pub(crate) shape: u32,
}

impl Default for Lane {
    fn default() -> Self {
        Self {
            tail: List::new(),
            expires: i64::MIN,
            shape: NO_SHAPE,
        }
    }
}

impl Lane {
    /// A lane with this list.
    #[must_use]
    pub fn of(tail: List) -> Self {
        Self {
            tail,
            ..Self::default()
        }
    }

    /// A lane with this list, of which more is known.
    pub(crate) fn known(tail: List, shape: u32, expires: i64) -> Self {
        Self { tail, expires, shape }
    }

    /// Becomes what another lane is, in its own memory.
    pub fn copy(&mut self, other: &Self) {
        self.tail.clear();
        self.tail.extend_from_slice(&other.tail);
        (self.expires, self.shape) = (other.expires, other.shape);
    }

    /// The partial matches, by start event.
    #[must_use]
    #[inline]
    pub fn list(&self) -> &[Word] {
        &self.tail
    }

    /// Follows a move to a shape with these codes; a window that begins now closes then.
    #[inline]
    pub(crate) fn follow(&mut self, found: Move, shape: u32, codes: &[Code; MOST_WORDS], row: u32, closes: i64) {
        let (count, mut kept) = (found.count(), found.kept);
        let words = self.tail.as_mut_slice();
        for place in 0..count {
            words[place] = word(start_row(words[kept.trailing_zeros() as usize]), codes[place]);
            kept &= kept - 1;
        }
        self.tail.truncate(count);
        if found.begins() {
            self.tail.push(word(row, codes[count]));
            if found.is_fresh() {
                self.expires = closes;
            }
        }
        self.shape = shape;
    }

    /// The same, to be changed: what is known of it has to be looked up anew.
    #[inline]
    pub fn edit(&mut self) -> &mut List {
        (self.expires, self.shape) = (i64::MIN, NO_SHAPE);
        &mut self.tail
    }
}
