//! Bits of events at positions: how those of steps come together.

use crate::kernel::{WORD_ROWS, vectorized};

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
    use super::find_ends;

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
}
