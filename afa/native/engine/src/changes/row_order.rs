//! The order in which what was found is told: by record, retracts first, by start and by end.

use crate::changes::table::ChangeRow;
use crate::rows::nearly_sorted::NearlySorted;

/// Where a row stands in a word behind what it is ordered by.
const PLACE_BITS: u32 = 30;

/// Puts rows into order, in memory that is used again.
#[derive(Debug, Default)]
pub(crate) struct RowOrder {
    words: NearlySorted<u128>,
    ordered: Vec<ChangeRow>,
}

impl RowOrder {
    /// Puts them into order; of what is equal the first comes first.
    pub(crate) fn apply(&mut self, rows: &mut [ChangeRow]) {
        let words = rows.iter().zip(0_u128..).map(|(row, place)| {
            let kind = u128::from(row.record) << 2 | row.kind as u128;
            let start = u128::from(row.start.abs_diff(i64::MIN));
            (kind << u64::BITS | start) << PLACE_BITS | place
        });
        self.words.given.clear();
        self.words.given.extend(words);
        let words = self.words.sort();
        self.ordered.clear();
        self.ordered.extend(words.iter().map(|word| rows[place_in(*word)]));
        let mut at = 0;
        // Matches of one pattern are found in the order of their ends.
        for same in words.chunk_by(|one, next| one >> PLACE_BITS == next >> PLACE_BITS) {
            let equal = &mut self.ordered[at..at + same.len()];
            if equal.len() > 1 && !equal.is_sorted_by_key(|row| row.end) {
                equal.sort_by_key(|row| row.end);
            }
            at += same.len();
        }
        rows.copy_from_slice(&self.ordered);
    }
}

#[allow(clippy::cast_possible_truncation)] // masked
fn place_in(word: u128) -> usize {
    (word & ((1 << PLACE_BITS) - 1)) as usize
}
