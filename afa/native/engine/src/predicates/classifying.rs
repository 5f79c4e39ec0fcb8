//! The classes of events, column by column: a class says which bodies an event may take, by the truths of predicates.

use std::ops::Range;

use crate::predicates::kernel::{WORD_ROWS, packed_ints, rows_mask, vectorized};
use crate::predicates::pinning::{FEW_VALUES, Pinned, PinnedRows};
use crate::predicates::truths::Truths;
use crate::program::compiled::Program;
use crate::program::epochs::{ClassTable, MAX_DENSE_PREDICATES};
use crate::rows::store::Rows;

/// Finds the classes of the rows of a chunk after those that have one, up to `end`; the truths that decide are known. The
/// answer is whether they say which value the rows have, if the pattern tells values apart.
pub(crate) fn classify_rows(
    program: &mut Program,
    rows: &Rows,
    chunk: usize,
    end: usize,
    classes: &mut Vec<u32>,
    oldest: i64,
    newest: i64,
) -> bool {
    let (chunk, begin) = (rows.chunk(chunk), classes.len());
    // All at once: a chunk may come in many parts.
    classes.reserve_exact(chunk.len().max(end) - begin);
    if program.alive_until(oldest) < newest {
        classes.extend((begin..end).map(|offset| program.class_of(chunk, offset)));
        return false;
    }
    let number = program.alive_at(oldest);
    let alive = program.alive(number);
    if let ClassTable::Dense(table) = &alive.classes
        && alive.predicates.len() <= MOST_SLICED
    {
        let truths: Vec<Truths<'_>> = alive
            .predicates
            .iter()
            .map(|predicate| chunk.truths(*predicate))
            .collect();
        let pinned = program.pinned.as_ref();
        let pinned = pinned.and_then(|pinned| Some((pinned, pinned.rows(chunk, begin..end)?)));
        let ways = [pinned.as_ref(), None];
        for pinned in ways.into_iter().skip(usize::from(pinned.is_none())) {
            let slicing = Slicing::new(table, pinned);
            let is_done = vectorized(
                #[inline(always)]
                || slicing.classify(&truths, begin..end, classes),
            );
            if is_done {
                return pinned.is_some();
            }
            classes.truncate(begin);
        }
    }
    classes.extend((begin..end).map(|offset| program.class_in(number, chunk, offset)));
    false
}

/// With more predicates the table is not dense.
const MOST_SLICED: usize = MAX_DENSE_PREDICATES;

/// The classes of rows by their truths and, where patterns tell values apart, by these.
struct Slicing<'a> {
    ints: &'a [i64],
    /// The ints that are told apart; none: no value is.
    values: Vec<i64>,
    /// The combinations of truths that have a class, and the place of the value.
    known: Vec<Combination>,
    /// The greatest class has so many bits.
    class_bits: usize,
}

struct Combination {
    truths: usize,
    value: usize,
    class: u32,
    /// For each bit of the class all bits or none.
    bits: [u64; CLASS_BITS],
}

/// Greater classes are not found 64 at a time.
const CLASS_BITS: usize = 16;

impl<'a> Slicing<'a> {
    fn new(table: &[u32], pinned: Option<&(&Pinned, PinnedRows<'a>)>) -> Self {
        let by_truths = table.iter().enumerate();
        let by_truths = by_truths.filter_map(|(truths, known)| Some((truths, known.checked_sub(1)?)));
        let mut known = Vec::with_capacity(table.len());
        for (truths, class) in by_truths {
            let combination = |(value, class)| Combination {
                truths,
                value,
                class,
                bits: std::array::from_fn(|bit| if class >> bit & 1 != 0 { u64::MAX } else { 0 }),
            };
            match pinned {
                None => known.push(combination((0, class))),
                Some((pinned, rows)) => known.extend(pinned.classes_of(class, rows).map(combination)),
            }
        }
        let class_bits = known.iter().fold(0, |bits, known| bits | known.class);
        Self {
            ints: pinned.map_or(&[], |(_, rows)| rows.ints),
            values: pinned.iter().flat_map(|(_, rows)| rows.known()).collect(),
            known,
            class_bits: (u32::BITS - class_bits.leading_zeros()) as usize,
        }
    }

    /// Adds the class of each row, for 64 rows at once: a word for each combination, then one for each bit of the class.
    /// False if a row has a combination that is not known.
    #[inline(always)]
    #[allow(clippy::inline_always)] // into the code for the machine's vectors
    fn classify(&self, truths: &[Truths<'_>], rows: Range<usize>, classes: &mut Vec<u32>) -> bool {
        if self.class_bits > CLASS_BITS {
            return false;
        }
        let mut is_done = true;
        for begin in rows.clone().step_by(WORD_ROWS) {
            let count = WORD_ROWS.min(rows.end - begin);
            let mut words = [0; MOST_SLICED];
            for (word, truths) in words.iter_mut().zip(truths) {
                *word = truths.word(begin);
            }
            let values = self.values_from(begin - rows.start, count);
            let mut slices = [0; CLASS_BITS];
            let (mut all, mut last, mut rows) = (!rows_mask(count), usize::MAX, 0);
            for known in &self.known {
                if known.truths != last {
                    last = known.truths;
                    rows = have_truths(&words[..truths.len()], last);
                }
                let rows = rows & values[known.value];
                all |= rows;
                for (slice, bits) in slices.iter_mut().zip(known.bits) {
                    *slice |= rows & bits;
                }
            }
            is_done &= all == u64::MAX;
            classes.extend_from_slice(&join_slices(&slices[..self.class_bits])[..count]);
        }
        is_done
    }

    /// For each value which of 64 rows have it.
    #[inline(always)]
    #[allow(clippy::inline_always)] // into the code for the machine's vectors
    fn values_from(&self, begin: usize, count: usize) -> [u64; FEW_VALUES] {
        let mut words = [u64::MAX; FEW_VALUES];
        if self.values.is_empty() {
            return words;
        }
        let ints = &self.ints[begin..begin + count];
        let mut filled = [0; WORD_ROWS];
        let ints = <&[i64; WORD_ROWS]>::try_from(ints).unwrap_or_else(|_| {
            filled[..count].copy_from_slice(ints);
            &filled
        });
        for (word, value) in words.iter_mut().zip(&self.values) {
            *word = packed_ints(ints, |int| int == *value);
        }
        words
    }
}

/// Which of 64 rows have exactly these truths; a word for each predicate.
#[inline(always)]
#[allow(clippy::inline_always)] // into the code for the machine's vectors
fn have_truths(words: &[u64], truths: usize) -> u64 {
    let of_predicate = |(bit, word): (usize, &u64)| if truths >> bit & 1 != 0 { *word } else { !word };
    words
        .iter()
        .enumerate()
        .map(of_predicate)
        .fold(u64::MAX, |all, one| all & one)
}

/// Makes numbers of their bits: a slice has one bit of each.
#[inline(always)]
#[allow(clippy::inline_always)] // into the code for the machine's vectors
#[allow(clippy::cast_possible_truncation)] // half a word at a time
fn join_slices(slices: &[u64]) -> [u32; WORD_ROWS] {
    let mut joined = [0_u32; WORD_ROWS];
    for (bit, slice) in slices.iter().enumerate() {
        let (low, high) = joined.split_at_mut(WORD_ROWS / 2);
        for (row, (low, high)) in low.iter_mut().zip(high).enumerate() {
            *low |= ((*slice as u32) >> row & 1) << bit;
            *high |= (((*slice >> 32) as u32) >> row & 1) << bit;
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::Slicing;
    use crate::predicates::truths::Truths;

    fn bits(rows: usize, holds: impl Fn(usize) -> bool) -> Vec<u64> {
        let mut bits = vec![0; rows.div_ceil(64)];
        (0..rows)
            .filter(|row| holds(*row))
            .for_each(|row| bits[row / 64] |= 1 << (row % 64));
        bits
    }

    #[test]
    fn every_row_gets_the_class_of_its_truths() {
        let rows = 200;
        let bits = [
            bits(rows, |row| row % 2 == 0),
            bits(rows, |row| row % 3 == 0),
            bits(rows, |row| row % 64 > 50),
        ];
        let truths: Vec<Truths<'_>> = bits.iter().map(|bits| Truths::of(bits)).collect();
        let table = [6, 1, 131, 8, 2, 3, 4, 65];
        let by_row = |row: usize| {
            let bits = (0..3).map(|bit| usize::from(truths[bit].get(row)) << bit);
            table[bits.sum::<usize>()] - 1
        };
        let classes_of = |truths: &[Truths<'_>], rows: Range<usize>, table: &[u32]| {
            let mut classes = Vec::new();
            let slicing = Slicing::new(table, None);
            slicing.classify(truths, rows, &mut classes).then_some(classes)
        };
        for rows in [0..200, 7..71, 64..65, 130..199] {
            let expected: Vec<u32> = rows.clone().map(by_row).collect();
            let is_first_missing = expected.contains(&(table[0] - 1));
            let without_first = [&[0], &table[1..]].concat();
            assert_eq!(
                classes_of(&truths, rows.clone(), &without_first).is_none(),
                is_first_missing
            );
            assert_eq!(classes_of(&truths, rows, &table), Some(expected));
        }
        assert_eq!(classes_of(&[], 0..9, &[]), None);
        assert_eq!(classes_of(&[], 0..9, &[5]), Some(vec![4; 9]));
    }
}
