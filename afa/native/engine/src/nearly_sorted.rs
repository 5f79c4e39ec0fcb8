//! Sorting what is nearly in order: what comes late is sorted by itself, and merged with the rest.

/// Words that are put into order, in memory that is used again.
#[derive(Debug, Default)]
pub(crate) struct NearlySorted<W> {
    words: Vec<W>,
    late: Vec<W>,
}

impl<W: Copy + Ord + Default> NearlySorted<W> {
    /// Puts words into order.
    #[inline]
    pub(crate) fn sort(&mut self, words: impl Iterator<Item = W>) -> &[W] {
        self.words.clear();
        self.words.extend(words);
        if self.late.len() < self.words.len() {
            self.late.resize(self.words.len(), W::default());
        }
        let late = self.part();
        self.late[..late].sort_unstable();
        self.merge(late);
        &self.words
    }

    /// Parts words that come after all before them, which are put in front, from the others; the answer is how many those
    /// are.
    fn part(&mut self) -> usize {
        let (mut ascending, mut newest) = (0, W::default());
        for at in 0..self.words.len() {
            // Both are written, and one of them stays: that one is late comes as a surprise.
            let word = self.words[at];
            self.words[ascending] = word;
            self.late[at - ascending] = word;
            ascending += usize::from(word >= newest);
            newest = newest.max(word);
        }
        self.words.len() - ascending
    }

    /// Merges them from the end on: what lies before all late ones stays where it is.
    fn merge(&mut self, mut late: usize) {
        let words = self.words.as_mut_slice();
        let mut ascending = words.len() - late;
        while late > 0 && ascending > 0 {
            let (newest, newest_late) = (words[ascending - 1], self.late[late - 1]);
            let is_late = newest_late > newest;
            words[ascending + late - 1] = newest.max(newest_late);
            late -= usize::from(is_late);
            ascending -= usize::from(!is_late);
        }
        words[..late].copy_from_slice(&self.late[..late]);
    }
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
            assert_eq!(memory.sort(given.into_iter()), expected);
        }
    }

    #[test]
    fn late_words_may_come_before_all_others() {
        assert_eq!(NearlySorted::default().sort([5, 4, 9, 1].into_iter()), [1, 4, 5, 9]);
    }
}
