//! Columns of triggers: which of the events that are looked at take a step, 64 of them in a word.

use crate::linear::bits::{copy_from, mask};
use crate::predicates::kernel::{WORD_ROWS, rows_mask};
use crate::rows::chunk::Chunk;
use crate::rows::store::Rows;

/// Consecutive rows of one chunk among the rows that are looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) chunk: usize,
    pub(crate) offset: usize,
    pub(crate) begin: usize,
    pub(crate) length: usize,
}

/// Which events trigger.
#[derive(Debug, Default)]
pub(crate) struct Column {
    /// For which append it was filled.
    pub(crate) stamp: u64,
    pub(crate) bits: Vec<u64>,
    /// A bit for each word that is not 0, or may not be.
    pub(crate) touched: Vec<u64>,
}

/// The bits of a column for 64 rows of a chunk from an offset on; without meaning at rows where other arcs are alive.
fn column_word(form: &[Vec<u32>], chunk: &Chunk, offset: usize) -> u64 {
    let conjunction = |predicates: &Vec<u32>| {
        predicates
            .iter()
            .fold(!0, |bits, predicate| bits & chunk.truth_word(*predicate, offset))
    };
    form.iter().map(conjunction).fold(0, |bits, more| bits | more)
}

/// The words of a chunk's rows, as bits, in which a column may have a bit.
fn words_with_bits(form: &[Vec<u32>], chunk: &Chunk) -> u64 {
    if chunk.is_reordered() {
        return !0;
    }
    let conjunction = |predicates: &Vec<u32>| {
        predicates
            .iter()
            .fold(!0, |words, predicate| words & chunk.some_true(*predicate))
    };
    form.iter().map(conjunction).fold(0, |words, more| words | more)
}

impl Column {
    /// Puts the bits of a form at the positions of pieces, which stand in order, where there are none yet.
    pub(crate) fn fill(&mut self, rows: &Rows, pieces: &[Piece], form: &[Vec<u32>]) {
        for pieces in pieces.chunk_by(|a, b| a.chunk == b.chunk) {
            let chunk = rows.chunk(pieces[0].chunk);
            let words = words_with_bits(form, chunk);
            for piece in pieces {
                self.fill_piece(chunk, piece, form, words);
            }
        }
    }

    /// The same for one piece; only these words of its chunk may have a bit.
    #[inline]
    fn fill_piece(&mut self, chunk: &Chunk, piece: &Piece, form: &[Vec<u32>], words: u64) {
        if piece.length <= WORD_ROWS {
            let bits = column_word(form, chunk, piece.offset) & rows_mask(piece.length);
            return self.put_bits(piece.begin, bits);
        }
        let (first, last) = (piece.offset / 64, (piece.offset + piece.length - 1) / 64);
        let mut words = words & (!0 << first) & (!0 >> (63 - last));
        if words.count_ones() as usize * 2 > last - first && !chunk.is_reordered() {
            return self.take_words(form, chunk, piece);
        }
        while words != 0 {
            let from = words.trailing_zeros() as usize * 64;
            words &= words - 1;
            let begin = from.max(piece.offset);
            let count = (from + 64).min(piece.offset + piece.length) - begin;
            let bits = column_word(form, chunk, from) >> (begin - from) & rows_mask(count);
            self.put_bits(piece.begin + begin - piece.offset, bits);
        }
    }

    /// Takes all words of a piece.
    fn take_words(&mut self, form: &[Vec<u32>], chunk: &Chunk, piece: &Piece) {
        let (begin, end) = (piece.begin, piece.begin + piece.length);
        let (first, last) = (begin / WORD_ROWS, (end - 1) / WORD_ROWS);
        // What the past has left in the first word.
        let before = self.bits[first];
        let out = &mut self.bits[first..=last];
        match form {
            [conjunction] if conjunction.len() == 1 => {
                copy_from(chunk.truth_words(conjunction[0]), piece.offset, begin % WORD_ROWS, out);
            }
            _ => {
                out[0] = column_word(form, chunk, piece.offset) << (begin % WORD_ROWS);
                let offsets = (piece.offset + WORD_ROWS - begin % WORD_ROWS..).step_by(WORD_ROWS);
                for (out, offset) in out[1..].iter_mut().zip(offsets) {
                    *out = column_word(form, chunk, offset);
                }
            }
        }
        self.bits[first] = self.bits[first] & mask(first, begin, end) | before;
        self.bits[last] &= mask(last, begin.min(last * WORD_ROWS), end);
        for (touched, from) in self.touched[..=last / 64].iter_mut().zip((0..).step_by(64)) {
            if first < from + 64 {
                *touched |= !0 << first.saturating_sub(from) & !0 >> (63 - (last - from).min(63));
            }
        }
    }

    /// Adds bits from a position on, where there are none yet.
    #[inline]
    fn put_bits(&mut self, at: usize, bits: u64) {
        self.put_word(at / 64, bits << (at % 64));
        if !at.is_multiple_of(64) {
            self.put_word(at / 64 + 1, bits >> (64 - at % 64));
        }
    }

    #[inline]
    fn put_word(&mut self, word: usize, bits: u64) {
        if bits != 0 {
            self.bits[word] |= bits;
            self.touched[word / 64] |= 1 << (word % 64);
        }
    }

    /// Has so many words, all 0.
    pub(crate) fn clear(&mut self, words: usize) {
        self.bits.clear();
        self.bits.resize(words, 0);
        self.touched.clear();
        self.touched.resize(words.div_ceil(64), 0);
    }

    /// How many words are not 0, or may not be.
    pub(crate) fn count(&self) -> usize {
        self.touched.iter().map(|words| words.count_ones() as usize).sum()
    }
}
