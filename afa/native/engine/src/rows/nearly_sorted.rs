//! Sorting what is nearly in order: what comes late is sorted by itself, and merged with the rest.

use std::ops::Range;

use crate::predicates::kernel::vectorized;

/// Words that are put into order, in memory that is used again.
#[derive(Debug, Default)]
pub(crate) struct NearlySorted<W> {
    /// The words as they come.
    pub(crate) given: Vec<W>,
    late: Vec<W>,
    merged: Vec<W>,
}

impl<W: Copy + Ord + Default> NearlySorted<W> {
    /// The given words in order; they are given anew the next time.
    pub(crate) fn sort(&mut self) -> &[W] {
        let count = self.given.len();
        let descents = count_descents(&self.given);
        if descents == 0 {
            return &self.given;
        }
        if self.late.len() < count {
            self.late.resize(count, W::default());
            self.merged.resize(count, W::default());
        }
        // Where few are late it is worth while to look at several together.
        let are_few = descents * 2 * BLOCK <= count;
        let late = self.part(are_few);
        self.late[..late].sort_unstable();
        let (ascending, late) = (&self.given[..count - late], &self.late[..late]);
        let merged = &mut self.merged[..count];
        if are_few {
            merge_few(ascending, late, merged);
        } else {
            merge(ascending, late, merged);
        }
        merged
    }

    /// Parts words that come after all before them, which are put in front, from the others; the answer is how many those
    /// are.
    fn part(&mut self, are_few: bool) -> usize {
        let count = self.given.len();
        let (words, late) = (&mut self.given[..count], &mut self.late[..count]);
        if !are_few {
            return count - part_each(words, late, 0..count, (0, W::default())).0;
        }
        let (mut ascending, mut newest) = (0, W::default());
        for at in (0..count).step_by(BLOCK) {
            let end = count.min(at + BLOCK);
            let block = &words[at..end];
            if block[0] >= newest && block.is_sorted() {
                newest = block[block.len() - 1];
                words.copy_within(at..end, ascending);
                ascending += end - at;
            } else {
                (ascending, newest) = part_each(words, late, at..end, (ascending, newest));
            }
        }
        count - ascending
    }
}

/// The same for some words one by one, after so many in front with this one as the last; the answer is the same after them.
#[inline]
fn part_each<W: Copy + Ord>(
    words: &mut [W],
    late: &mut [W],
    places: Range<usize>,
    (mut ascending, mut newest): (usize, W),
) -> (usize, W) {
    for at in places {
        // Both are written, and one of them stays: that one is late comes as a surprise.
        let word = words[at];
        words[ascending] = word;
        late[at - ascending] = word;
        ascending += usize::from(word >= newest);
        newest = newest.max(word);
    }
    (ascending, newest)
}

/// How many words come after a greater one.
fn count_descents<W: Copy + Ord>(words: &[W]) -> usize {
    vectorized(
        #[inline(always)]
        || {
            let pairs = words.iter().zip(words.get(1..).unwrap_or_default());
            pairs.map(|(word, next)| usize::from(word > next)).sum()
        },
    )
}

/// So many words are looked at together: most are in order.
const BLOCK: usize = 8;

/// Merges words in order.
fn merge<W: Copy + Ord>(one: &[W], other: &[W], merged: &mut [W]) {
    let (mut at, mut from_one) = (0, 0);
    while let (Some(word), Some(late), Some(place)) = (one.get(from_one), other.get(at - from_one), merged.get_mut(at))
    {
        // Which of them comes next is a surprise too.
        *place = *word.min(late);
        from_one += usize::from(word <= late);
        at += 1;
    }
    let (from_other, left) = (at - from_one, one.len() - from_one);
    merged[at..at + left].copy_from_slice(&one[from_one..]);
    merged[at + left..].copy_from_slice(&other[from_other..]);
}

/// The same if there are few others: what lies between them is copied as a whole.
fn merge_few<W: Copy + Ord>(mut one: &[W], others: &[W], mut merged: &mut [W]) {
    for other in others {
        let mut count = 0;
        while one.get(count + BLOCK).is_some_and(|word| word <= other) {
            count += BLOCK;
        }
        count += one[count..].iter().take_while(|word| *word <= other).count();
        let (before, after) = one.split_at(count);
        merged[..count].copy_from_slice(before);
        merged[count] = *other;
        (one, merged) = (after, &mut merged[count + 1..]);
    }
    merged.copy_from_slice(one);
}

#[cfg(test)]
mod tests {
    use super::NearlySorted;

    #[test]
    fn any_order_becomes_the_right_one() {
        let (mut state, mut memory) = (1_u64, NearlySorted::default());
        for length in 0..200 {
            let mut given = Vec::new();
            for at in 0..length {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let is_late = state >> 58 < length % 64;
                given.push(at + 31 - if is_late { state >> 40 & 31 } else { 0 });
            }
            let mut expected = given.clone();
            expected.sort_unstable();
            memory.given = given;
            assert_eq!(memory.sort(), expected);
        }
    }

    #[test]
    fn late_words_may_come_before_all_others() {
        let mut memory = NearlySorted {
            given: vec![5, 4, 9, 1],
            ..NearlySorted::default()
        };
        assert_eq!(memory.sort(), [1, 4, 5, 9]);
    }
}
