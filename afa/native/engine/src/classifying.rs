//! The classes of events, column by column: a class says which bodies an event may take, by the truths of predicates.

use crate::epochs::ClassTable;
use crate::kernel::{WORD_ROWS, rows_mask, vectorized};
use crate::truths::Truths;
use crate::program::Program;
use crate::rows::Rows;

/// Finds the classes of rows; the truths that decide are known.
pub(crate) fn classify_rows(
    program: &mut Program,
    rows: &Rows,
    chunk: usize,
    begin: usize,
    classes: &mut [u32],
    oldest: i64,
    newest: i64,
) {
    let chunk = rows.chunk(chunk);
    if program.alive_until(oldest) < newest {
        for (place, class) in classes.iter_mut().enumerate() {
            *class = program.class_of(chunk, begin + place);
        }
        return;
    }
    let number = program.alive_at(oldest);
    let alive = program.alive(number);
    let mut is_done = false;
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
        is_done = vectorized(
            #[inline(always)]
            || classify_sliced(&truths, begin, &known, classes),
        );
    }
    if !is_done {
        for (place, class) in classes.iter_mut().enumerate() {
            *class = program.class_in(number, chunk, begin + place);
        }
    }
}

/// With more predicates there are too many combinations of truths.
const MOST_SLICED: usize = 8;

/// Finds the class of each row by its truths, for 64 rows at once: a word for each combination of truths, then one for
/// each bit of the class. `known` are the combinations that have a class; false if a row has another.
#[inline(always)]
#[allow(clippy::inline_always)] // into the code for the machine's vectors
fn classify_sliced(truths: &[Truths<'_>], begin: usize, known: &[(usize, u32)], classes: &mut [u32]) -> bool {
    let class_bits = known.iter().fold(0, |bits, (_, class)| bits | class);
    let class_bits = (u32::BITS - class_bits.leading_zeros()) as usize;
    let mut combinations = [0; 1 << MOST_SLICED];
    let mut is_done = true;
    for (block, classes) in classes.chunks_mut(WORD_ROWS).enumerate() {
        combinations[0] = u64::MAX;
        for (bit, truths) in truths.iter().enumerate() {
            let word = truths.word(begin + block * WORD_ROWS);
            let (without, with) = combinations.split_at_mut(1 << bit);
            for (without, with) in without.iter_mut().zip(with) {
                (*without, *with) = (*without & !word, *without & word);
            }
        }
        let mut slices = [0_u64; u32::BITS as usize];
        let mut all = 0;
        for (index, class) in known {
            let rows = combinations[*index % combinations.len()];
            all |= rows;
            for (bit, slice) in slices[..class_bits].iter_mut().enumerate() {
                *slice |= if class >> bit & 1 != 0 { rows } else { 0 };
            }
        }
        is_done &= all | !rows_mask(classes.len()) == u64::MAX;
        join_slices(&slices[..class_bits], classes);
    }
    is_done
}

/// Makes numbers of their bits: a slice has one bit of each.
#[inline(always)]
#[allow(clippy::inline_always)] // into the code for the machine's vectors
#[allow(clippy::cast_possible_truncation)] // half a word at a time
fn join_slices(slices: &[u64], numbers: &mut [u32]) {
    let mut joined = [0_u32; WORD_ROWS];
    for (bit, slice) in slices.iter().enumerate() {
        let (low, high) = joined.split_at_mut(WORD_ROWS / 2);
        for (row, (low, high)) in low.iter_mut().zip(high).enumerate() {
            *low |= ((*slice as u32) >> row & 1) << bit;
            *high |= (((*slice >> 32) as u32) >> row & 1) << bit;
        }
    }
    numbers.copy_from_slice(&joined[..numbers.len()]);
}

#[cfg(test)]
mod tests {
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
        let by_row = |row: usize| known[(0..3).map(|bit| usize::from(truths[bit].get(row)) << bit).sum::<usize>()].1;
        for (begin, end) in [(0, 200), (7, 71), (64, 65), (130, 199)] {
            let mut classes = vec![u32::MAX; end - begin];
            assert!(classify_sliced(&truths, begin, &known, &mut classes));
            let expected: Vec<u32> = (begin..end).map(by_row).collect();
            assert_eq!(classes, expected, "{begin} to {end}");
            assert!(!classify_sliced(&truths, begin, &known[1..], &mut classes) || !expected.contains(&5));
        }
        let mut classes = [0; 9];
        assert!(!classify_sliced(&[], 0, &[], &mut classes));
        assert!(classify_sliced(&[], 0, &[(0, 4)], &mut classes));
        assert_eq!(classes, [4; 9]);
    }
}
