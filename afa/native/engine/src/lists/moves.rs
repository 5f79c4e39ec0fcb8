//! A move: what an event of a class does to a list of a shape.

use crate::lists::shapes::NO_SHAPE;

/// Where a class leads from a shape.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Move {
    /// The next shape, numbered from 0 on.
    pub(crate) next: u32,
    /// A bit per word that stays.
    pub(crate) kept: u16,
    /// How many words before the first that stays; none if words go from between others, which is done first.
    pub(crate) front: u8,
    /// How many words stay (lower half), and what is true of the move.
    marks: u8,
}

impl Move {
    const COUNT: u8 = 0x0f;
    const BEGINS: u8 = 0x10;
    const FINAL: u8 = 0x20;
    const SCATTERED: u8 = 0x40;
    /// It cannot be followed: not known yet, or it depends on the event itself.
    const STUCK: u8 = 0x80;

    pub(crate) const UNKNOWN: Self = Self {
        next: NO_SHAPE,
        kept: 0,
        front: 0,
        marks: Self::STUCK,
    };
    pub(crate) const NEVER: Self = Self {
        front: 1,
        ..Self::UNKNOWN
    };

    /// One that leads to a list of this length.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // at most MOST_WORDS
    pub(crate) fn standing(length: usize) -> Self {
        Self {
            marks: length as u8 & Self::COUNT,
            ..Self::UNKNOWN
        }
    }

    /// Whether it leaves all words where they are, of which there are so many, and adds none.
    pub(crate) fn keeps(self, length: usize) -> bool {
        self.count() == length && !self.is_special() && !self.begins()
    }

    /// Whether there is more to it than that words go at either end, and one begins.
    #[inline]
    pub(crate) fn is_special(self) -> bool {
        self.marks & (Self::STUCK | Self::SCATTERED | Self::FINAL) != 0
    }

    /// How long the list is then.
    #[inline]
    pub(crate) fn length(self) -> usize {
        self.count() + usize::from(self.begins())
    }

    #[inline]
    pub(crate) fn is_stuck(self) -> bool {
        self.marks & Self::STUCK != 0
    }

    pub(crate) fn is_unknown(self) -> bool {
        self.is_stuck() && self.front == 0
    }

    /// How many words stay.
    #[inline]
    pub(crate) fn count(self) -> usize {
        usize::from(self.marks & Self::COUNT)
    }

    /// The place that a word which stays had before.
    #[inline]
    pub(crate) fn place_before(self, place: usize) -> usize {
        if !self.is_scattered() {
            return place + usize::from(self.front);
        }
        let mut kept = self.kept;
        for _ in 0..place {
            kept &= kept - 1;
        }
        kept.trailing_zeros() as usize
    }

    /// Whether computations begin with the event.
    #[inline]
    pub(crate) fn begins(self) -> bool {
        self.marks & Self::BEGINS != 0
    }

    /// Whether a set of the next shape has a final state.
    #[inline]
    pub(crate) fn is_final(self) -> bool {
        self.marks & Self::FINAL != 0
    }

    /// Whether words go from between others that stay.
    #[inline]
    pub(crate) fn is_scattered(self) -> bool {
        self.marks & Self::SCATTERED != 0
    }

    /// Whether all that is left begins with the event.
    #[inline]
    pub(crate) fn is_fresh(self) -> bool {
        self.marks & (Self::COUNT | Self::BEGINS) == Self::BEGINS
    }

    /// The move to a shape by which words are kept.
    pub(crate) fn of(next: u32, kept: u16, begins: bool, is_final: bool) -> Self {
        let front = kept.trailing_zeros().min(15);
        let together = kept >> front;
        let is_scattered = together & (together + 1) != 0;
        let mark = |truth: bool, mark: u8| if truth { mark } else { 0 };
        #[allow(clippy::cast_possible_truncation)] // at most MOST_WORDS
        Self {
            next,
            kept,
            front: if kept == 0 || is_scattered { 0 } else { front as u8 },
            marks: kept.count_ones() as u8
                | mark(begins, Self::BEGINS)
                | mark(is_final, Self::FINAL)
                | mark(is_scattered, Self::SCATTERED),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Move;

    #[test]
    fn a_move_says_which_words_stay() {
        let all = Move::of(3, 0b111, true, false);
        assert!(all.begins() && !all.is_scattered() && !all.is_final() && !all.is_stuck());
        assert_eq!((all.count(), all.front), (3, 0));
        let later = Move::of(3, 0b1100, false, true);
        assert!(later.is_final() && !later.is_scattered() && !later.begins());
        assert_eq!((later.count(), later.front), (2, 2));
        assert!(Move::of(3, 0b101, false, false).is_scattered());
        let none = Move::of(3, 0, false, false);
        assert_eq!((none.count(), none.front, none.is_scattered()), (0, 0, false));
    }
}
