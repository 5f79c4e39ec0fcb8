//! Shapes: the sets of a whole list, without its start events, as one number.
//!
//! Most lists are short, and the same few sequences of sets come again and again. So where a class leads from a whole
//! list is remembered too, as one *move*: which words go, whether one begins, which shape the list has then. A step is
//! one look-up, however many start events the list has; only their rows are carried along.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use prefetch_index::prefetch_index;

use crate::lists::configuration::{Code, DEAD, FINAL, SLOW, UNKNOWN, Word, code_of, unmarked};
pub(crate) use crate::lists::moves::Move;
use crate::program::compiled::Program;
use crate::program::expression::EventView;

/// No shape, or one that is to be looked up.
pub(crate) const NO_SHAPE: u32 = u32::MAX;
/// Longer lists have no shape.
pub(crate) const MOST_WORDS: usize = 12;
/// Of a shape with more endings than this it is not noted what they are.
const MOST_ENDINGS: usize = 2 * MOST_WORDS;
/// With more moves than this the shapes begin anew.
const MOST_MOVES: usize = 1 << 18;
/// Shapes that came again less often than this on average are not worth their memory.
const WORTHY_USES: usize = 8;

/// A word of a shape that has a final state, by its place, and the configuration.
pub(crate) type Ending = (u8, u32);

/// The moves of all shapes.
#[derive(Clone, Copy)]
pub(crate) struct Moves<'a> {
    all: &'a [Move],
    class_bits: u32,
    /// There is room for so many.
    classes: u32,
    idle: &'a [u64],
}

impl<'a> Moves<'a> {
    /// The classes, as bits, whose events leave a list of this shape as it is, as far as that is known.
    #[inline]
    pub(crate) fn idle(self, shape: u32) -> u64 {
        self.idle.get(shape as usize).copied().unwrap_or(0)
    }

    /// The move of a class from a shape.
    #[inline]
    pub(crate) fn find(self, shape: u32, class: u32) -> Move {
        self.get(shape, class).copied().unwrap_or(Move::UNKNOWN)
    }

    /// Fetches a move from memory, for whoever asks for it soon.
    #[inline]
    pub(crate) fn prefetch(self, shape: u32, class: u32) {
        prefetch_index(self.all, (shape as usize) << self.class_bits | class as usize);
    }

    /// The same; none if there is no room for it.
    #[inline]
    pub(crate) fn get(self, shape: u32, class: u32) -> Option<&'a Move> {
        if class >= self.classes {
            return None;
        }
        let at = (shape as usize) << self.class_bits | class as usize;
        self.all.get(at)
    }
}

fn hash_of(codes: &[Code; MOST_WORDS]) -> u64 {
    let mut hasher = FixedState::default().build_hasher();
    // Two at a time, and not more than there are.
    for pair in codes.as_chunks::<2>().0.iter().take_while(|pair| pair[0] != DEAD) {
        hasher.write_u64(u64::from(pair[0]) << 32 | u64::from(pair[1]));
    }
    hasher.finish()
}

/// The shapes that a pattern's lists have had.
#[derive(Debug, Default)]
pub(crate) struct Shapes {
    /// Numbers from 0 on, by the codes.
    numbers: HashTable<u32>,
    /// The codes of each; what is `DEAD` lies behind the end.
    codes: Vec<[Code; MOST_WORDS]>,
    /// What of each is final, if a move leads there: where it begins and ends among all endings.
    endings_of: Vec<(u32, u32)>,
    endings: Vec<Ending>,
    /// By shape and class.
    moves: Vec<Move>,
    /// By shape, the first classes that change nothing, as bits.
    idle: Vec<u64>,
    /// There is room for as many classes as this power of two.
    class_bits: u32,
    /// Numbers below this one belong to shapes that were forgotten.
    first: u32,
    /// Steps since they were forgotten last.
    uses: usize,
    /// They hardly ever came again.
    are_worthless: bool,
    /// The codes of shapes that were forgotten, by the number of the first: folded keys may still have them.
    old: Vec<(u32, Vec<[Code; MOST_WORDS]>)>,
}

impl Shapes {
    /// The move of a class from a shape.
    #[inline]
    pub(crate) fn find_move(&self, shape: u32, class: u32) -> Move {
        self.moves().find(shape - self.first, class)
    }

    /// The moves themselves, for a loop over many; there shapes are numbered from 0 on.
    #[inline]
    pub(crate) fn moves(&self) -> Moves<'_> {
        Moves {
            all: &self.moves,
            class_bits: self.class_bits,
            classes: 1 << self.class_bits,
            idle: &self.idle,
        }
    }

    /// The number of the first shape.
    #[inline]
    pub(crate) fn first(&self) -> u32 {
        self.first
    }

    /// The codes of a shape, up to the first that is `DEAD`.
    #[inline]
    pub(crate) fn codes(&self, shape: u32) -> &[Code; MOST_WORDS] {
        &self.codes[(shape - self.first) as usize]
    }

    /// The same, if the shape was forgotten too, but not its codes.
    pub(crate) fn codes_ever(&self, shape: u32) -> &[Code; MOST_WORDS] {
        if shape >= self.first {
            return self.codes(shape);
        }
        let (first, codes) = &self.old[self.old.partition_point(|(first, _)| *first <= shape) - 1];
        &codes[(shape - first) as usize]
    }

    /// Whether codes of forgotten shapes are kept.
    pub(crate) fn has_old(&self) -> bool {
        !self.old.is_empty()
    }

    /// Nobody has a forgotten shape any more.
    pub(crate) fn forget_old(&mut self) {
        self.old.clear();
    }

    /// What of a shape is final, if that is not much; a move must lead there.
    #[inline]
    pub(crate) fn endings(&self, shape: u32) -> &[Ending] {
        let (begin, end) = self.endings_of[(shape - self.first) as usize];
        &self.endings[begin as usize..end as usize]
    }

    /// The only one of these, if there is only one.
    #[inline]
    pub(crate) fn only_ending(&self, shape: u32) -> Option<(usize, u32)> {
        match self.endings(shape) {
            [(place, configuration)] => Some((usize::from(*place), *configuration)),
            _ => None,
        }
    }

    /// Notes them, unless they are known.
    fn note_endings(&mut self, shape: u32, endings: impl Iterator<Item = Ending>) {
        let place = (shape - self.first) as usize;
        if self.endings_of[place] == (0, 0) {
            let begin = number_of(self.endings.len());
            self.endings.extend(endings);
            self.endings_of[place] = (begin, number_of(self.endings.len()));
        }
    }

    /// Whether a number still stands for a shape.
    #[inline]
    pub(crate) fn has(&self, shape: u32) -> bool {
        shape != NO_SHAPE && shape >= self.first
    }

    /// The shape of a list, if it is short.
    pub(crate) fn shape_of(&mut self, list: &[Word]) -> Option<u32> {
        if list.len() > MOST_WORDS {
            return None;
        }
        let mut codes = [DEAD; MOST_WORDS];
        for (code, word) in codes.iter_mut().zip(list) {
            *code = code_of(*word);
        }
        self.shape_of_codes(codes)
    }

    /// The shape of these codes.
    pub(crate) fn shape_of_codes(&mut self, codes: [Code; MOST_WORDS]) -> Option<u32> {
        (!self.are_worthless).then(|| self.number(codes))
    }

    /// Counts steps.
    pub(crate) fn note_uses(&mut self, count: usize) {
        self.uses += count;
    }

    /// Forgets all of them: codes of sets mean something else now.
    pub(crate) fn forget(&mut self) {
        self.begin_anew();
        self.are_worthless = false;
    }

    fn begin_anew(&mut self) {
        // Numbers are not used again, so that who remembers one knows that it is gone.
        let (first, codes) = (self.first, std::mem::take(&mut self.codes));
        self.first = first.saturating_add(number_of(codes.len()));
        if !codes.is_empty() {
            self.old.push((first, codes));
        }
        self.numbers.clear();
        self.endings_of.clear();
        self.endings.clear();
        self.idle.clear();
        self.moves = Vec::new();
        (self.class_bits, self.uses) = (0, 0);
    }

    /// Whether a move of this class can be remembered without any shape being forgotten.
    pub(crate) fn has_room(&self, class: u32) -> bool {
        class >> self.class_bits == 0 && !self.is_full()
    }

    /// Whether there is no room for another shape.
    fn is_full(&self) -> bool {
        (self.codes.len() + 1) << self.class_bits > MOST_MOVES
    }

    fn number(&mut self, codes: [Code; MOST_WORDS]) -> u32 {
        let hash = hash_of(&codes);
        let is_it = |number: &u32| self.codes[*number as usize] == codes;
        if let Some(number) = self.numbers.find(hash, is_it) {
            return self.first.saturating_add(*number);
        }
        if self.is_full() {
            self.are_worthless = self.uses < WORTHY_USES * self.codes.len();
            self.begin_anew();
        }
        let place = number_of(self.codes.len());
        self.codes.push(codes);
        self.endings_of.push((0, 0));
        self.idle.push(0);
        self.moves.resize(self.codes.len() << self.class_bits, Move::UNKNOWN);
        let hash_again = |number: &u32| hash_of(&self.codes[*number as usize]);
        self.numbers.insert_unique(hash, place, hash_again);
        let number = self.first.saturating_add(place);
        self.are_worthless |= number >= NO_SHAPE - 1;
        number
    }

    /// Remembers a move; false if its shape was forgotten, or there are too many.
    fn remember(&mut self, shape: u32, class: u32, found: Move) -> bool {
        if class >> self.class_bits != 0 {
            let bits = u32::BITS - class.leading_zeros();
            if self.codes.len() << bits > MOST_MOVES {
                self.begin_anew();
            } else {
                self.widen(bits);
            }
        }
        if !self.has(shape) {
            return false;
        }
        let place = (shape - self.first) as usize;
        self.moves[place << self.class_bits | class as usize] = found;
        let length = self.codes[place].iter().take_while(|code| **code != DEAD).count();
        if class < u64::BITS && found.next as usize == place && found.keeps(length) {
            self.idle[place] |= 1 << class;
        }
        true
    }

    fn widen(&mut self, class_bits: u32) {
        let mut moves = vec![Move::UNKNOWN; self.codes.len() << class_bits];
        let rows = self.moves.chunks_exact(1 << self.class_bits);
        for (wide, row) in moves.chunks_exact_mut(1 << class_bits).zip(rows) {
            wide[..row.len()].copy_from_slice(row);
        }
        (self.moves, self.class_bits) = (moves, class_bits);
    }
}

impl Program {
    /// Finds out where a class leads from a shape, if that is not known; true if the move can be followed now.
    #[cold]
    pub(crate) fn learn_move<E: EventView>(&mut self, shape: u32, class: u32, event: impl Fn() -> E) -> bool {
        let known = self.shapes.find_move(shape, class);
        if !known.is_unknown() {
            return !known.is_stuck();
        }
        let found = self.move_from(*self.shapes.codes(shape), class, event);
        self.shapes.remember(shape, class, found) && !found.is_stuck()
    }

    fn move_from<E: EventView>(&mut self, codes: [Code; MOST_WORDS], class: u32, event: impl Fn() -> E) -> Move {
        let mut next = [DEAD; MOST_WORDS + 1];
        let (mut kept, mut count) = (0, 0);
        for (place, code) in codes.iter().enumerate().take_while(|(_, code)| **code != DEAD) {
            let set = unmarked(*code);
            let mut after = self.sets.transition(class, set);
            if after == UNKNOWN {
                after = self.find_transition(class, set);
            }
            if after & SLOW != 0 {
                return Move::NEVER;
            }
            if after != DEAD {
                next[count] = after;
                kept |= 1 << place;
                count += 1;
            }
        }
        let started = self.begin(class, event);
        if self.starts[class as usize] & SLOW != 0 {
            return Move::NEVER;
        }
        if started != DEAD {
            next[count] = started;
        }
        if next[MOST_WORDS] != DEAD {
            return Move::NEVER;
        }
        let is_final = next.iter().any(|code| code & FINAL != 0);
        let next = std::array::from_fn(|place| next[place]);
        let endings = if is_final { self.endings_of(&next) } else { Vec::new() };
        let next = self.shapes.number(next);
        self.shapes.note_endings(next, endings.into_iter());
        Move::of(next - self.shapes.first, kept, started != DEAD, is_final)
    }

    /// What is final of these codes, if that is not much.
    fn endings_of(&self, codes: &[Code; MOST_WORDS]) -> Vec<Ending> {
        let marked = (0..).zip(codes).filter(|(_, code)| **code & FINAL != 0);
        let endings = marked.flat_map(|(place, code)| {
            let members = self.final_members(*code);
            members.map(move |configuration| (place, configuration))
        });
        let few: Vec<Ending> = endings.take(MOST_ENDINGS + 1).collect();
        if few.len() > MOST_ENDINGS { Vec::new() } else { few }
    }
}

#[allow(clippy::cast_possible_truncation)] // bounded by MOST_MOVES
fn number_of(count: usize) -> u32 {
    count as u32
}

#[cfg(test)]
mod tests {
    use super::{MOST_WORDS, Move, NO_SHAPE, Shapes};
    use crate::lists::configuration::word;

    #[test]
    fn a_shape_is_the_same_whatever_the_start_events() {
        let mut shapes = Shapes::default();
        let one = shapes.shape_of(&[word(7, 1), word(9, 2)]);
        assert_eq!(one, shapes.shape_of(&[word(1, 1), word(2, 2)]));
        assert_ne!(one, shapes.shape_of(&[word(1, 2), word(2, 1)]));
        assert_eq!(shapes.shape_of(&[word(1, 1); MOST_WORDS + 1]), None);
    }

    #[test]
    fn numbers_of_forgotten_shapes_are_not_used_again() {
        let mut shapes = Shapes::default();
        let old = shapes.shape_of(&[word(7, 1)]).expect("short");
        shapes.remember(old, 5, Move::of(0, 1, false, false));
        assert!(!shapes.find_move(old, 5).is_stuck() && shapes.find_move(old, 4).is_unknown());
        shapes.forget();
        let new = shapes.shape_of(&[word(7, 1)]).expect("short");
        assert!(!shapes.has(old) && shapes.has(new) && !shapes.has(NO_SHAPE));
        assert!(shapes.find_move(new, 5).is_unknown());
    }
}
