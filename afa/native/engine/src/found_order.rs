//! The order in which what was found is told: by record, retracts first, by start and by end.

use crate::found::Found;
use crate::nearly_sorted::NearlySorted;
use crate::rows::Rows;

/// Where something was found stands in a word behind what it is ordered by.
const PLACE_BITS: u32 = 31;

/// Puts what was found into order, in memory that is used again.
#[derive(Debug, Default)]
pub(crate) struct FoundOrder {
    words: NearlySorted<u128>,
    ordered: Vec<Found>,
}

impl FoundOrder {
    /// Puts it into order; of what is equal the first comes first.
    pub(crate) fn apply(&mut self, found: &mut Vec<Found>, rows: &Rows) {
        let words = found.iter().zip(0_u128..).map(|(found, place)| {
            let kind = u128::from(found.record) << 1 | u128::from(!found.retracts);
            let start = u128::from(rows.ts(found.start).abs_diff(i64::MIN));
            (kind << u64::BITS | start) << PLACE_BITS | place
        });
        self.words.given.clear();
        self.words.given.extend(words);
        let words = self.words.sort();
        self.ordered.clear();
        self.ordered.extend(words.iter().map(|word| found[place_in(*word)]));
        let mut at = 0;
        // Matches of one pattern are found in the order of their ends.
        for same in words.chunk_by(|one, next| one >> PLACE_BITS == next >> PLACE_BITS) {
            let equal = &mut self.ordered[at..at + same.len()];
            if equal.len() > 1 && !equal.is_sorted_by_key(|found| rows.ts(found.end)) {
                equal.sort_by_key(|found| rows.ts(found.end));
            }
            at += same.len();
        }
        std::mem::swap(found, &mut self.ordered);
    }
}

#[allow(clippy::cast_possible_truncation)] // masked
fn place_in(word: u128) -> usize {
    (word & ((1 << PLACE_BITS) - 1)) as usize
}
