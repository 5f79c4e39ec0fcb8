//! How a lane has passed the entries of a page: a late event finds the list before it without stepping up to it.

use crate::keys::page::MOST_ENTRIES;
use crate::lists::shapes::{MOST_WORDS, Move, Moves};

/// An entry that was passed: its class, and the move that it led to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passed {
    pub(crate) class: u32,
    pub(crate) found: Move,
}

impl Passed {
    const NOT_YET: Self = Self {
        class: 0,
        found: Move::UNKNOWN,
    };
}

/// What a track was written under: how often stored entries were changed other than by a late event, and the number of
/// the first shape.
pub(crate) type Edition = (u64, u32);

/// The first entries of a page as a lane has passed them. Of another edition it says nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Track {
    edition: Edition,
    passed: Vec<Passed>,
}

impl Track {
    /// Makes it one of this edition: what it said under another is forgotten.
    #[inline]
    pub(crate) fn turn_to(&mut self, edition: Edition) {
        if self.edition != edition {
            self.edition = edition;
            self.passed.clear();
        }
    }

    /// How many entries it says were passed.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.passed.len()
    }

    #[inline]
    pub(crate) fn steps(&self) -> &[Passed] {
        &self.passed
    }

    /// The steps before one, and those from it on.
    #[inline]
    pub(crate) fn split_at_mut(&mut self, step: usize) -> (&[Passed], &mut [Passed]) {
        let (before, after) = self.passed.split_at_mut(step);
        (before, after)
    }

    /// Passes entries of these classes, from one of them on, from a shape on, as far as moves are known; the answer is the
    /// shape after them, and how many were passed.
    #[inline(never)] // small enough to have all of it in registers
    pub(crate) fn pass(&mut self, moves: Moves<'_>, classes: &[u32], shape: u32, from: usize) -> (u32, usize) {
        if self.passed.capacity() == 0 {
            self.passed.reserve_exact(MOST_ENTRIES + 1);
        }
        let (begin, mut shape, mut at) = (self.passed.len(), shape, from);
        // Room for all of them is made first: to look for it each time would take as long as the rest.
        self.passed.resize(begin + classes.len() - from, Passed::NOT_YET);
        for (step, class) in self.passed[begin..].iter_mut().zip(&classes[from..]) {
            let Some(found) = moves.get(shape, *class).filter(|found| !found.is_stuck()) else {
                break;
            };
            (step.class, step.found) = (*class, *found);
            shape = found.next;
            at += 1;
        }
        self.passed.truncate(begin + at - from);
        (shape, at)
    }

    /// Puts a step before others.
    #[inline]
    pub(crate) fn insert(&mut self, slot: usize, passed: Passed) {
        self.passed.insert(slot, passed);
    }

    /// Forgets all from a slot on.
    pub(crate) fn truncate(&mut self, slot: usize) {
        self.passed.truncate(slot);
    }

    /// Takes what it says from a slot on.
    pub(crate) fn split_off(&mut self, slot: usize) -> Self {
        let slot = slot.min(self.passed.len());
        Self {
            edition: self.edition,
            passed: self.passed.drain(slot..).collect(),
        }
    }
}

/// Where the words of a list come from, four bits for each: the place that one had before a late event, that event, or an
/// event after it. The words that began after it are the same whether it is there or not; so two lists of one shape are
/// the same if their origins are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origins(u64);

impl Origins {
    /// The late event itself.
    pub(crate) const LATE: u64 = 14;
    /// An event after it.
    pub(crate) const LATER: u64 = 15;
    /// Those of the list before the late event.
    pub(crate) const BEFORE: Self = Self(0xba98_7654_3210);
    const BITS: usize = 4;
    const MASK: u64 = 15;

    /// Follows a move; a word that begins has this origin.
    #[inline]
    pub(crate) fn follow(self, found: Move, born: u64) -> Self {
        if found.is_scattered() {
            return Self(self.gather(found.kept)).cut(found, born);
        }
        Self(self.0 >> (Self::BITS * usize::from(found.front))).cut(found, born)
    }

    /// The same for words that stay next to each other, at an event after the late one.
    #[inline]
    pub(crate) fn follow_plainly(self, found: Move) -> Self {
        Self(self.0 >> (Self::BITS * usize::from(found.front))).cut(found, Self::LATER)
    }

    #[inline]
    fn cut(self, found: Move, born: u64) -> Self {
        let end = 1 << (Self::BITS * found.count());
        Self(self.0 & (end - 1) | if found.begins() { end * born } else { 0 })
    }

    /// Those of the words that stay, next to each other.
    #[cold]
    fn gather(self, kept: u16) -> u64 {
        let places = (0..MOST_WORDS).filter(|place| kept >> place & 1 != 0);
        let origins = places.map(|place| self.of(place)).enumerate();
        origins.fold(0, |all, (place, origin)| all | origin << (Self::BITS * place))
    }

    /// That of one word.
    #[inline]
    pub(crate) fn of(self, place: usize) -> u64 {
        self.0 >> (Self::BITS * place) & Self::MASK
    }
}

const _: () = assert!(MOST_WORDS <= 12, "an origin for each, and two more");

#[cfg(test)]
mod tests {
    use super::{Edition, Origins, Passed, Track};
    use crate::lists::shapes::Move;

    const EDITION: Edition = (1, 0);

    fn track(classes: &[u32]) -> Track {
        let mut track = Track::default();
        track.turn_to(EDITION);
        for (slot, class) in classes.iter().enumerate() {
            let (class, found) = (*class, Move::standing(0));
            track.insert(slot, Passed { class, found });
        }
        track
    }

    fn classes(track: &Track) -> Vec<u32> {
        track.steps().iter().map(|passed| passed.class).collect()
    }

    #[test]
    fn another_edition_says_nothing() {
        let mut known = track(&[1, 2]);
        known.turn_to(EDITION);
        assert_eq!(classes(&known), [1, 2]);
        known.turn_to((2, 0));
        assert_eq!(known.len(), 0);
    }

    #[test]
    fn a_cut_page_has_its_part_of_the_track() {
        let mut lower = track(&[1, 2, 3]);
        let upper = lower.split_off(2);
        assert_eq!((classes(&lower), classes(&upper)), (vec![1, 2], vec![3]));
        assert_eq!(lower.split_off(7).len(), 0);
    }

    #[test]
    fn words_keep_their_origins() {
        let origins = Origins::BEFORE.follow(Move::of(0, 0b110, true, false), Origins::LATE);
        assert_eq!([0, 1, 2].map(|place| origins.of(place)), [1, 2, Origins::LATE]);
        let scattered = origins.follow(Move::of(0, 0b101, true, false), Origins::LATER);
        assert_eq!(
            [0, 1, 2].map(|place| scattered.of(place)),
            [1, Origins::LATE, Origins::LATER]
        );
        assert_eq!(Move::of(0, 0b101, true, false).place_before(1), 2);
        let none = scattered.follow(Move::of(0, 0, false, false), Origins::LATER);
        assert_eq!(none, origins.follow(Move::of(0, 0, false, false), Origins::LATER));
    }
}
