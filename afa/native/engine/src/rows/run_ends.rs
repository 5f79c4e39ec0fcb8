//! Where the runs of a segment end: found for all of its rows at once, because most runs of a stream with late events are
//! too short to be worth a look of their own.

use crate::predicates::kernel::{WORD_ROWS, packed_word, rows_mask, vectorized, words};

/// A bit per row of a segment: the next row does not go on with its run.
#[derive(Debug, Default)]
pub(crate) struct RunEnds {
    words: Vec<u64>,
}

impl RunEnds {
    /// Finds them, if that was not done yet: a run has one key, and with times each of its rows has a later one than the
    /// row before. The last row ends one.
    pub(crate) fn find(&mut self, keys: &[u32], times: Option<&[i64]>) {
        if !self.words.is_empty() {
            return;
        }
        self.words.reserve(words(keys.len()));
        vectorized(
            #[inline(always)]
            || {
                for begin in (0..keys.len()).step_by(WORD_ROWS) {
                    self.words.push(ends_from(keys, times, begin));
                }
            },
        );
    }

    pub(crate) fn forget(&mut self) {
        self.words.clear();
    }

    /// The row at which the run ends that a row belongs to.
    #[inline]
    pub(crate) fn at_or_after(&self, row: usize) -> usize {
        let mut number = row / WORD_ROWS;
        let mut word = self.words[number] & u64::MAX << (row % WORD_ROWS);
        while word == 0 {
            number += 1;
            word = self.words[number];
        }
        number * WORD_ROWS + word.trailing_zeros() as usize
    }
}

/// The ends among 64 rows, or as many as there are.
#[inline(always)]
#[allow(clippy::inline_always)] // into the code for the machine's vectors
fn ends_from(keys: &[u32], times: Option<&[i64]>, begin: usize) -> u64 {
    let Some(keys_here) = keys.get(begin..=begin + WORD_ROWS) else {
        return last_ends(keys, times, begin);
    };
    let others: [u32; WORD_ROWS] = std::array::from_fn(|row| keys_here[row] ^ keys_here[row + 1]);
    let ends = packed_word(&others, |other| other != 0);
    times.map_or(ends, |times| {
        let times = &times[begin..=begin + WORD_ROWS];
        let descents: [bool; WORD_ROWS] = std::array::from_fn(|row| times[row] >= times[row + 1]);
        ends | packed_word(&descents, |descends| descends)
    })
}

/// The ends among the last rows, the very last one included.
fn last_ends(keys: &[u32], times: Option<&[i64]>, begin: usize) -> u64 {
    let goes_on = |row: usize| keys[row] == keys[row + 1] && times.is_none_or(|times| times[row] < times[row + 1]);
    let last = keys.len() - 1;
    let going_on = (begin..last).filter(|row| goes_on(*row));
    let going_on = going_on.fold(0, |word, row| word | 1 << (row - begin));
    !going_on & rows_mask(keys.len() - begin)
}

#[cfg(test)]
mod tests {
    use super::RunEnds;

    #[test]
    fn runs_end_where_keys_or_times_say() {
        for length in [1, 63, 64, 65, 130, 200] {
            let keys: Vec<u32> = (0..length).map(|row| row / 70).collect();
            let times: Vec<i64> = (0..i64::from(length)).map(|row| row % 67 - row % 9 / 8).collect();
            for times in [None, Some(&times[..])] {
                let mut ends = RunEnds::default();
                ends.find(&keys, times);
                let mut expected = keys.len() - 1;
                for row in (0..keys.len()).rev() {
                    let ends_here = keys.get(row + 1).is_none_or(|key| *key != keys[row])
                        || times.is_some_and(|times| times[row] >= times[row + 1]);
                    expected = if ends_here { row } else { expected };
                    assert_eq!(ends.at_or_after(row), expected, "{row} of {length}");
                }
            }
        }
    }
}
