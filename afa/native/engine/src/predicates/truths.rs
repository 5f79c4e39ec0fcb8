//! The truths of predicates in the rows of a chunk: a bit per row, as far as they were computed.

use crate::predicates::kernel::WORD_ROWS;
use crate::rows::chunk::CHUNK_ROWS;

/// What a predicate is in the rows of a chunk.
#[derive(Clone, Copy, Debug)]
pub struct Truths<'a> {
    bits: &'a [u64],
}

impl<'a> Truths<'a> {
    /// Those that these bits say.
    #[must_use]
    pub fn of(bits: &'a [u64]) -> Self {
        Self { bits }
    }

    /// Whether the predicate is true of a row, which must have been evaluated.
    #[must_use]
    #[inline]
    pub fn get(self, offset: usize) -> bool {
        self.bits[offset / WORD_ROWS] >> (offset % WORD_ROWS) & 1 != 0
    }

    /// All bits, 64 rows per word.
    #[must_use]
    pub fn words(self) -> &'a [u64] {
        self.bits
    }

    /// 64 bits from a row on; what lies beyond the end is 0.
    #[must_use]
    #[inline]
    pub fn word(self, offset: usize) -> u64 {
        let (index, shift) = (offset / WORD_ROWS, offset % WORD_ROWS);
        let low = self.bits.get(index).copied().unwrap_or(0) >> shift;
        if shift == 0 {
            return low;
        }
        low | self.bits.get(index + 1).copied().unwrap_or(0) << (WORD_ROWS - shift)
    }
}

/// Where the bits of a predicate lie.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// Its first word, plus one; 0: it has none yet.
    after: u32,
    /// How many rows were evaluated.
    filled: u32,
    /// The words in which it is true of a row.
    some: u64,
}

// A bit for each word of a chunk's rows.
const _: () = assert!(CHUNK_ROWS <= WORD_ROWS * WORD_ROWS);

/// The truths of all predicates in the rows of a chunk. They lie in one piece of memory: a thousand small ones would take
/// longer to get than to fill.
#[derive(Debug, Default)]
pub struct TruthTable {
    bits: Vec<u64>,
    places: Vec<Place>,
    /// The words of a predicate.
    width: usize,
}

impl TruthTable {
    /// How many rows a predicate was evaluated for.
    #[must_use]
    #[inline]
    pub fn filled(&self, predicate: u32) -> usize {
        self.places
            .get(predicate as usize)
            .map_or(0, |place| place.filled as usize)
    }

    /// What is known of a predicate.
    #[must_use]
    #[inline]
    pub fn of(&self, predicate: u32) -> Truths<'_> {
        let bits = match self.places.get(predicate as usize) {
            Some(place) if place.after > 0 => {
                let begin = place.after as usize - 1;
                &self.bits[begin..begin + self.width]
            }
            _ => &[],
        };
        Truths::of(bits)
    }

    /// The words of 64 rows, as bits, in which a predicate is true of any.
    #[must_use]
    #[inline]
    pub fn some(&self, predicate: u32) -> u64 {
        self.places.get(predicate as usize).map_or(0, |place| place.some)
    }

    /// Makes room for predicates; each takes so many words, the same number in all calls.
    #[allow(clippy::cast_possible_truncation)] // 64 words for each of fewer predicates than max_program_arcs
    pub fn make_room(&mut self, predicates: &[u32], width: usize) {
        self.width = width;
        let mut end = self.bits.len();
        for predicate in predicates {
            let number = *predicate as usize;
            if self.places.len() <= number {
                self.places.resize(number + 1, Place::default());
            }
            if self.places[number].after == 0 {
                self.places[number].after = end as u32 + 1;
                end += width;
            }
        }
        self.bits.resize(end, 0);
    }

    /// The first word of a predicate that has room.
    #[must_use]
    pub fn begin(&self, predicate: u32) -> usize {
        self.places[predicate as usize].after as usize - 1
    }

    /// The words of all predicates.
    pub fn all_bits(&mut self) -> &mut [u64] {
        &mut self.bits
    }

    /// The words of a predicate that has room.
    pub fn bits(&mut self, predicate: u32) -> &mut [u64] {
        let begin = self.begin(predicate);
        &mut self.bits[begin..begin + self.width]
    }

    /// A predicate was evaluated for so many rows.
    #[allow(clippy::cast_possible_truncation)] // rows of a chunk
    pub fn note_filled(&mut self, predicate: u32, rows: usize) {
        let words = self.bits(predicate).iter().enumerate();
        let some = words.fold(0, |some, (word, bits)| some | u64::from(*bits != 0) << word);
        let place = &mut self.places[predicate as usize];
        (place.filled, place.some) = (rows as u32, some);
    }

    /// Forgets what is known of a predicate.
    pub fn forget(&mut self, predicate: u32) {
        if let Some(place) = self.places.get_mut(predicate as usize)
            && place.after > 0
        {
            (place.filled, place.some) = (0, 0);
            self.bits(predicate).fill(0);
        }
    }
}
