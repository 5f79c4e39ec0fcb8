//! Sorting what is nearly in order: what comes late is sorted by itself, and merged with the rest.

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
        if self.late.len() < count {
            self.late.resize(count, W::default());
            self.merged.resize(count, W::default());
        }
        let late = self.part();
        if late == 0 {
            return &self.given;
        }
        self.late[..late].sort_unstable();
        merge(
            &self.given[..count - late],
            &self.late[..late],
            &mut self.merged[..count],
        );
        &self.merged[..count]
    }

    /// Parts words that come after all before them, which are put in front, from the others; the answer is how many those
    /// are.
    fn part(&mut self) -> usize {
        let count = self.given.len();
        let (words, late) = (&mut self.given[..count], &mut self.late[..count]);
        let (mut ascending, mut newest) = (0, W::default());
        for at in 0..count {
            // Both are written, and one of them stays: that one is late comes as a surprise.
            let word = words[at];
            words[ascending] = word;
            late[at - ascending] = word;
            ascending += usize::from(word >= newest);
            newest = newest.max(word);
        }
        count - ascending
    }
}

/// Merges words in order; which of them comes next is a surprise too.
fn merge<W: Copy + Ord>(one: &[W], other: &[W], merged: &mut [W]) {
    let mut from_one = 0;
    let (mut at, count) = (0, merged.len());
    while at < count
        && let (Some(word), Some(late)) = (one.get(from_one), other.get(at - from_one))
    {
        merged[at] = *word.min(late);
        from_one += usize::from(word <= late);
        at += 1;
    }
    let from_other = at - from_one;
    let left = one.len() - from_one;
    merged[at..at + left].copy_from_slice(&one[from_one..]);
    merged[at + left..].copy_from_slice(&other[from_other..]);
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
                let is_late = state >> 60 < length % 16;
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
