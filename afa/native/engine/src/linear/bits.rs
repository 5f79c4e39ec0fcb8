//! Bits of events at positions: how those of steps come together.

use crate::predicates::kernel::{WORD_ROWS, vectorized};
use crate::predicates::truths::Truths;

/// The bits of a word that stand for positions `[begin, end)`.
#[inline]
pub(crate) fn mask(index: usize, begin: usize, end: usize) -> u64 {
    let mut mask = !0;
    if index == begin / WORD_ROWS {
        mask &= !0 << (begin % WORD_ROWS);
    }
    if index == (end - 1) / WORD_ROWS {
        mask &= !0 >> (WORD_ROWS - 1 - (end - 1) % WORD_ROWS);
    }
    mask
}

/// Copies bits from an offset on to where so many of the first word come before them; what lies there, or behind the
/// last word that has bits, is without meaning.
pub(crate) fn copy_from(bits: &[u64], offset: usize, before: usize, out: &mut [u64]) {
    let Some((head, rest)) = out.split_first_mut() else {
        return;
    };
    let bits = Truths::of(bits);
    *head = bits.word(offset) << before;
    let offset = offset + WORD_ROWS - before;
    let Some((tail, middle)) = rest.split_last_mut() else {
        return;
    };
    *tail = bits.word(offset + middle.len() * WORD_ROWS);
    let (from, shift) = (offset / WORD_ROWS, offset % WORD_ROWS);
    let words = &bits.words()[from..];
    if shift == 0 {
        return middle.copy_from_slice(&words[..middle.len()]);
    }
    for (out, (low, high)) in middle.iter_mut().zip(words.iter().zip(&words[1..])) {
        *out = low >> shift | high << (WORD_ROWS - shift);
    }
}

/// Takes the bits of positions `[begin, end)` from others, where there are none yet.
pub(crate) fn take_between(out: &mut [u64], bits: &[u64], begin: usize, end: usize) {
    let (first, last) = (begin / WORD_ROWS, (end - 1) / WORD_ROWS);
    out[first] |= bits[first] & mask(first, begin, end);
    if first < last {
        out[first + 1..last].copy_from_slice(&bits[first + 1..last]);
        out[last] |= bits[last] & mask(last, begin, end);
    }
}

/// At which positions the last step ends, if `bits` says for each step which positions take it.
pub(crate) fn find_ends(bits: &[&[u64]], ends: &mut Vec<u64>) {
    let Some((last, others)) = bits.split_last() else {
        return;
    };
    ends.clear();
    ends.extend_from_slice(last);
    vectorized(
        #[inline(always)]
        || {
            for (step, bits) in others.iter().enumerate() {
                let distance = others.len() - step;
                // Nothing stands before the first word.
                ends[0] &= bits[0] << distance;
                for (ends, (before, bits)) in ends[1..].iter_mut().zip(bits.iter().zip(&bits[1..])) {
                    *ends &= bits << distance | before >> (WORD_ROWS - distance);
                }
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::{copy_from, find_ends, take_between};

    /// Words with about half of their bits set, another one for every step.
    fn words(step: usize, count: usize) -> Vec<u64> {
        let mut state = step as u64 + 1;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 17) | (state << 41)
        };
        (0..count).map(|_| next() | next()).collect()
    }

    #[test]
    fn a_match_ends_where_each_step_is_taken_in_its_place() {
        let is_set = |bits: &[u64], at: usize| bits[at / 64] >> (at % 64) & 1 != 0;
        for (steps, count) in [(1, 1), (2, 1), (3, 2), (8, 5), (8, 17), (62, 3)] {
            let columns: Vec<Vec<u64>> = (0..steps).map(|step| words(step, count)).collect();
            let views: Vec<&[u64]> = columns.iter().map(Vec::as_slice).collect();
            let mut ends = Vec::new();
            find_ends(&views, &mut ends);
            for at in 0..count * 64 {
                let takes = |step: usize| {
                    (at + step + 1)
                        .checked_sub(steps)
                        .is_some_and(|at| is_set(views[step], at))
                };
                assert_eq!(is_set(&ends, at), (0..steps).all(takes), "{steps} steps up to {at}");
            }
        }
    }

    #[test]
    fn bits_are_copied_to_any_place() {
        let is_set = |bits: &[u64], at: usize| bits.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 != 0);
        let bits = words(1, 9);
        for (offset, before) in (0..150).flat_map(|offset| [0, 1, 31, 63].map(|before| (offset, before))) {
            for count in [1_usize, 63, 64, 65, 200, 9 * 64 - offset] {
                let mut out = vec![!0; (before + count).div_ceil(64)];
                copy_from(&bits, offset, before, &mut out);
                for at in 0..count {
                    assert_eq!(
                        is_set(&out, before + at),
                        is_set(&bits, offset + at),
                        "{offset} {before} {at}"
                    );
                }
            }
        }
    }

    #[test]
    fn positions_are_put_together_from_several_columns() {
        let is_set = |bits: &[u64], at: usize| bits[at / 64] >> (at % 64) & 1 != 0;
        let columns: Vec<Vec<u64>> = (0..3).map(|step| words(step, 6)).collect();
        let ends = [3, 64, 65, 66, 130, 256, 300, 384];
        let mut out = vec![0; 6];
        let mut begin = 0;
        for (place, end) in ends.into_iter().enumerate() {
            take_between(&mut out, &columns[place % 3], begin, end);
            for at in begin..end {
                assert_eq!(is_set(&out, at), is_set(&columns[place % 3], at), "{at}");
            }
            assert!((end..384).all(|at| !is_set(&out, at)));
            begin = end;
        }
    }
}
