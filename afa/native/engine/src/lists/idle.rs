//! Entries that leave a list as it is: queries pass over most events, and so over many at a time.

use crate::predicates::kernel::{WORD_ROWS, packed_word, vectorized};

/// So many entries are looked at one by one first: where partial matches live the next event that matters is near.
const FIRST: usize = 8;

/// Which of some entries may change a list of one shape.
#[derive(Default)]
pub(crate) struct Outlook {
    shape: u32,
    from: usize,
    /// A bit for each of 64 entries; none: nothing was looked at.
    busy: u64,
}

impl Outlook {
    /// The first entry from one on that may change a list of this shape, which these classes, given as bits, do not; the
    /// end if there is none.
    #[inline]
    pub(crate) fn next_busy(&mut self, shape: u32, idle: u64, classes: &[u32], mut at: usize) -> usize {
        if idle == 0 {
            return at;
        }
        // Where a match ends, a list has another shape only until the next event.
        if self.shape == shape && self.busy != 0 && (self.from..self.from + WORD_ROWS).contains(&at) {
            let left = self.busy >> (at - self.from);
            if left != 0 {
                return at + left.trailing_zeros() as usize;
            }
            at = self.from + WORD_ROWS;
        }
        let (passed, busy) = look_ahead(idle, &classes[at..]);
        let from = at + passed;
        *self = Self { shape, from, busy };
        from + busy.trailing_zeros() as usize
    }
}

/// How many of the first entries have classes that change nothing; those are given as bits.
#[inline]
pub(crate) fn count_idle(idle: u64, classes: &[u32]) -> usize {
    let is_idle = |class: &u32| *class < u64::BITS && idle >> (class % u64::BITS) & 1 != 0;
    let first = &classes[..classes.len().min(FIRST)];
    let passed = first.iter().take_while(|class| is_idle(class)).count();
    if passed < FIRST {
        return passed;
    }
    let (blocks, busy) = look_ahead(idle, &classes[FIRST..]);
    FIRST + blocks + busy.trailing_zeros() as usize
}

/// How many of the first entries are idle, in whole blocks, and a bit for each entry of the next block that is not. What
/// lies behind the end is not.
#[inline(never)] // the loops that call it need the registers
fn look_ahead(idle: u64, classes: &[u32]) -> (usize, u64) {
    vectorized(
        #[inline(always)]
        || {
            let (blocks, rest) = classes.as_chunks::<WORD_ROWS>();
            for (number, block) in blocks.iter().enumerate() {
                let busy = find_busy(idle, block);
                if busy != 0 {
                    return (WORD_ROWS * number, busy);
                }
            }
            let mut last = [u32::MAX; WORD_ROWS];
            last[..rest.len()].copy_from_slice(rest);
            (classes.len() - rest.len(), find_busy(idle, &last))
        },
    )
}

/// A bit for each class that may change something.
#[inline(always)]
#[allow(clippy::inline_always)] // into the code for the machine's vectors
#[allow(clippy::cast_possible_truncation)] // half a word at a time
fn find_busy(idle: u64, classes: &[u32; WORD_ROWS]) -> u64 {
    let (low, high) = (idle as u32, (idle >> 32) as u32);
    let busy: [u32; WORD_ROWS] = std::array::from_fn(|row| {
        let class = classes[row];
        let half = if class & 32 == 0 { low } else { high };
        class >> 6 | (!half >> (class & 31) & 1)
    });
    packed_word(&busy, |busy| busy != 0)
}

#[cfg(test)]
mod tests {
    use super::{Outlook, count_idle};

    #[test]
    fn whoever_comes_back_to_a_shape_sees_the_same() {
        let classes: Vec<u32> = (0..500)
            .map(|row| u32::from(row % 9 == 0) + 2 * u32::from(row % 70 == 1))
            .collect();
        for idle in [[0b1, 0b11], [0b101, 0], [0b1, 0b1]] {
            let mut outlook = Outlook::default();
            let (mut at, mut step) = (0, 0);
            while at < classes.len() {
                let shape = step / 2 % 2;
                let idle = idle[shape as usize];
                let found = outlook.next_busy(shape, idle, &classes, at);
                assert_eq!(found, at + count_idle(idle, &classes[at..]), "from {at} on");
                (at, step) = (found + 1, step + 1);
            }
            let from = at.min(classes.len());
            assert_eq!(outlook.next_busy(0, idle[0], &classes, from), classes.len());
        }
    }

    #[test]
    fn the_first_class_that_is_not_idle_is_found() {
        let idle = 1 << 3 | 1 << 31 | 1 << 32 | 1 << 63;
        let some = [3, 31, 32, 63];
        for length in [0, 1, 7, 8, 9, 71, 72, 73, 200] {
            let mut classes: Vec<u32> = (0..length).map(|row| some[row % 4]).collect();
            assert_eq!(count_idle(idle, &classes), length);
            for place in (0..length).rev() {
                classes[place] = [4, 62, 64, 67, 95, u32::MAX][place % 6];
                assert_eq!(count_idle(idle, &classes), place);
            }
        }
        assert_eq!(count_idle(0, &[0]), 0);
        assert_eq!(count_idle(u64::MAX, &[0, 63, 64]), 2);
    }
}
