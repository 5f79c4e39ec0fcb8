//! The classes of events, column by column: a class says which bodies an event may take, by the truths of predicates.

use std::ops::Range;

use crate::epochs::ClassTable;
use crate::kernel::{WORD_ROWS, rows_mask, vectorized};
use crate::program::Program;
use crate::rows::Rows;
use crate::truths::Truths;

/// Finds the classes of the rows of a chunk after those that have one, up to `end`; the truths that decide are known.
pub(crate) fn classify_rows(
    program: &mut Program,
    rows: &Rows,
    chunk: usize,
    end: usize,
    classes: &mut Vec<u32>,
    oldest: i64,
    newest: i64,
) {
    let (chunk, begin) = (rows.chunk(chunk), classes.len());
    // All at once: a chunk may come in many parts.
    classes.reserve_exact(chunk.len().max(end) - begin);
    if program.alive_until(oldest) < newest {
        classes.extend((begin..end).map(|offset| program.class_of(chunk, offset)));
        return;
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
        let known: Vec<(usize, u32)> = (0..)
            .zip(table)
            .filter_map(|(index, known)| known.checked_sub(1).map(|class| (index, class)))
            .collect();
        let is_done = vectorized(
            #[inline(always)]
            || classify_sliced(&truths, begin..end, &known, classes),
        );
        if is_done {
            return;
        }
        classes.truncate(begin);
    }
    classes.extend((begin..end).map(|offset| program.class_in(number, chunk, offset)));
}

/// With more predicates there are too many combinations of truths.
const MOST_SLICED: usize = 8;

/// Adds the class of each row by its truths, for 64 rows at once: a word for each combination of truths, then one for
/// each bit of the class. `known` are the combinations that have a class; false if a row has another.
#[inline(always)]
#[allow(clippy::inline_always)] // into the code for the machine's vectors
fn classify_sliced(truths: &[Truths<'_>], rows: Range<usize>, known: &[(usize, u32)], classes: &mut Vec<u32>) -> bool {
    let class_bits = known.iter().fold(0, |bits, (_, class)| bits | class);
    let class_bits = (u32::BITS - class_bits.leading_zeros()) as usize;
    let mut is_done = true;
    for begin in rows.clone().step_by(WORD_ROWS) {
        let count = WORD_ROWS.min(rows.end - begin);
        let mut words = [0; MOST_SLICED];
        for (word, truths) in words.iter_mut().zip(truths) {
            *word = truths.word(begin);
        }
        let mut slices = [0_u64; u32::BITS as usize];
        let mut all = !rows_mask(count);
        for (index, class) in known {
            let mut rows = u64::MAX;
            for (bit, word) in words[..truths.len()].iter().enumerate() {
                rows &= if index >> bit & 1 != 0 { *word } else { !word };
            }
            all |= rows;
            for (bit, slice) in slices[..class_bits].iter_mut().enumerate() {
                *slice |= if class >> bit & 1 != 0 { rows } else { 0 };
            }
        }
        is_done &= all == u64::MAX;
        classes.extend_from_slice(&join_slices(&slices[..class_bits])[..count]);
    }
    is_done
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

    use super::classify_sliced;
    use crate::truths::Truths;

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
        let known: Vec<(usize, u32)> = (0..8)
            .map(|index| (index, [5, 0, 130, 7, 1, 2, 3, 64][index]))
            .collect();
        let by_row = |row: usize| {
            known[(0..3)
                .map(|bit| usize::from(truths[bit].get(row)) << bit)
                .sum::<usize>()]
            .1
        };
        let classes_of = |truths: &[Truths<'_>], rows: Range<usize>, known: &[(usize, u32)]| {
            let mut classes = Vec::new();
            classify_sliced(truths, rows, known, &mut classes).then_some(classes)
        };
        for rows in [0..200, 7..71, 64..65, 130..199] {
            let expected: Vec<u32> = rows.clone().map(by_row).collect();
            let is_first_missing = expected.contains(&known[0].1);
            assert_eq!(
                classes_of(&truths, rows.clone(), &known[1..]).is_none(),
                is_first_missing
            );
            assert_eq!(classes_of(&truths, rows, &known), Some(expected));
        }
        assert_eq!(classes_of(&[], 0..9, &[]), None);
        assert_eq!(classes_of(&[], 0..9, &[(0, 4)]), Some(vec![4; 9]));
    }
}
