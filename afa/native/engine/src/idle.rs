//! Entries that leave a list as it is: queries pass over most events, and so over many at a time.

use crate::kernel::{WORD_ROWS, packed_word, vectorized};

/// So many entries are looked at one by one first: where partial matches live the next event that matters is near.
const FIRST: usize = 8;

/// How many of the first entries have classes that change nothing; those are given as bits.
#[inline]
pub(crate) fn count_idle(idle: u64, classes: &[u32]) -> usize {
    let is_idle = |class: &u32| *class < u64::BITS && idle >> (class % u64::BITS) & 1 != 0;
    let first = &classes[..classes.len().min(FIRST)];
    let passed = first.iter().take_while(|class| is_idle(class)).count();
    if passed < FIRST {
        return passed;
    }
    FIRST + count_many(idle, &classes[FIRST..])
}

/// The same, with vectors.
#[inline(never)] // the loop that calls it needs the registers
fn count_many(idle: u64, classes: &[u32]) -> usize {
    vectorized(
        #[inline(always)]
        || {
            let (blocks, rest) = classes.as_chunks::<WORD_ROWS>();
            for (number, block) in blocks.iter().enumerate() {
                let busy = find_busy(idle, block);
                if busy != 0 {
                    return WORD_ROWS * number + busy.trailing_zeros() as usize;
                }
            }
            // What lies behind the end is not idle.
            let mut last = [u32::MAX; WORD_ROWS];
            last[..rest.len()].copy_from_slice(rest);
            classes.len() - rest.len() + find_busy(idle, &last).trailing_zeros() as usize
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
    use super::count_idle;

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
