//! The rows of a batch by key, and in event order.

use crate::predicates::kernel::vectorized;
use crate::rows::chunk::{CHUNK_BITS, Chunk};
use crate::rows::nearly_sorted::NearlySorted;
use crate::segment::NO_KEY;

/// Rows of a chunk from one on, and the key of each; those with `NO_KEY` do not count.
pub(crate) struct Given<'a> {
    pub(crate) keys: &'a [u32],
    pub(crate) chunk: &'a Chunk,
    pub(crate) first: usize,
}

/// The order of rows, in memory that is used again.
#[derive(Debug, Default)]
pub(crate) struct EventOrder {
    /// All rows that were given: in event order by key, those of `again`, and those that do not count.
    pub(crate) rows: Vec<u16>,
    /// Keys, and how many of the rows are theirs.
    pub(crate) groups: Vec<(u32, usize)>,
    /// The keys of rows whose identity another row has that came before.
    pub(crate) again: Vec<u32>,
    left_out: Vec<u16>,
    /// Rows of one key, by a time that leaves room for them in a word.
    narrow: NearlySorted<u64>,
    /// Rows of any keys and times.
    wide: NearlySorted<u128>,
}

impl Given<'_> {
    fn times(&self) -> &[i64] {
        &self.chunk.times()[self.first..self.first + self.keys.len()]
    }

    fn key_of(&self, row: u16) -> u32 {
        self.keys[usize::from(row) - self.first]
    }

    fn instant(&self, row: u16) -> (u32, i64) {
        (self.key_of(row), self.chunk.times()[usize::from(row)])
    }

    /// The only key, if there is no other.
    fn only_key(&self) -> Option<u32> {
        let key = *self.keys.iter().find(|key| **key != NO_KEY)?;
        let others = vectorized(
            #[inline(always)]
            || {
                let is_other = |other: &u32| u32::from(*other != key) & u32::from(*other != NO_KEY);
                self.keys.iter().fold(0, |any, other| any | is_other(other))
            },
        );
        (others == 0).then_some(key)
    }

    /// The least time, if all are so near to it that a word has room for a row beside the distance.
    fn narrow_from(&self) -> Option<i64> {
        let (least, most) = vectorized(
            #[inline(always)]
            || {
                let both = |(least, most): (i64, i64), ts: &i64| (least.min(*ts), most.max(*ts));
                self.times().iter().fold((i64::MAX, i64::MIN), both)
            },
        );
        (most.abs_diff(least) < u64::MAX >> CHUNK_BITS).then_some(least)
    }
}

impl EventOrder {
    /// Finds the order of rows.
    pub(crate) fn find(&mut self, given: &Given<'_>) {
        let only_key = given.only_key();
        let has_ties = match given.narrow_from() {
            Some(from) if only_key.is_some() => self.sort_narrow(given, from),
            _ => self.sort_wide(given),
        };
        self.find_groups(given, only_key);
        self.again.clear();
        if has_ties {
            self.settle_ties(given);
        }
        self.rows.extend_from_slice(&self.left_out);
    }

    /// Whether the rows were in order already.
    pub(crate) fn is_as_given(&self, first: usize) -> bool {
        vectorized(
            #[inline(always)]
            || {
                let moved = |(row, place): (&u16, u16)| row ^ place;
                let pairs = self.rows.iter().zip(row_number(first)..);
                pairs.fold(0, |any, pair| any | moved(pair)) == 0
            },
        )
    }

    /// Sorts rows of one key whose times are not far from this one; true if two have one time.
    fn sort_narrow(&mut self, given: &Given<'_>, from: i64) -> bool {
        let words = &mut self.narrow.given;
        words.clear();
        vectorized(
            #[inline(always)]
            || {
                let rows = given.keys.iter().zip(given.times()).enumerate();
                words.extend(rows.map(|(at, (key, ts))| {
                    // What does not count comes before all others.
                    let counts = 0_u64.wrapping_sub(u64::from(*key != NO_KEY));
                    let instant = ts.wrapping_sub(from).cast_unsigned().wrapping_add(1);
                    (instant & counts) << CHUNK_BITS | (given.first + at) as u64
                }));
            },
        );
        let (left_out, words) = self.narrow.sort().split_at(count_left_out(given.keys));
        self.left_out.clear();
        self.left_out.extend(left_out.iter().map(|word| row_in(*word)));
        self.rows.clear();
        vectorized(
            #[inline(always)]
            || {
                self.rows.extend(words.iter().map(|word| row_in(*word)));
                let nexts = words.get(1..).unwrap_or_default();
                let is_tie = |(one, next): (&u64, &u64)| u64::from(one >> CHUNK_BITS == next >> CHUNK_BITS);
                words.iter().zip(nexts).fold(0, |any, pair| any | is_tie(pair)) != 0
            },
        )
    }

    /// Sorts rows; true if two have one key and time.
    #[allow(clippy::cast_possible_truncation)] // the row is in the last bits
    fn sort_wide(&mut self, given: &Given<'_>) -> bool {
        let words = given.keys.iter().zip(given.times()).zip(given.first as u128..);
        let words = words.map(|((key, ts), row)| {
            let instant = u128::from(*key) << u64::BITS | u128::from(ts.abs_diff(i64::MIN));
            let instant = if *key == NO_KEY { 0 } else { instant + 1 };
            instant << CHUNK_BITS | row
        });
        self.wide.given.clear();
        self.wide.given.extend(words);
        let (left_out, words) = self.wide.sort().split_at(count_left_out(given.keys));
        self.left_out.clear();
        self.left_out.extend(left_out.iter().map(|word| row_in(*word as u64)));
        self.rows.clear();
        self.rows.extend(words.iter().map(|word| row_in(*word as u64)));
        !words.is_sorted_by(|one, next| one >> CHUNK_BITS < next >> CHUNK_BITS)
    }

    fn find_groups(&mut self, given: &Given<'_>, only_key: Option<u32>) {
        self.groups.clear();
        if let Some(key) = only_key {
            self.groups.push((key, self.rows.len()));
            return;
        }
        let same = self
            .rows
            .chunk_by(|one, next| given.key_of(*one) == given.key_of(*next));
        self.groups.extend(same.map(|rows| (given.key_of(rows[0]), rows.len())));
    }

    /// Orders rows of equal time, and puts those behind all others that are not the first of their identity.
    fn settle_ties(&mut self, given: &Given<'_>) {
        let (mut again, mut kept, mut begin) = (Vec::new(), 0, 0);
        for (key, count) in &mut self.groups {
            let (end, kept_before) = (begin + *count, kept);
            while begin < end {
                let now = given.instant(self.rows[begin]);
                let same = self.rows[begin..end].iter();
                let tied = same.take_while(|row| given.instant(**row) == now).count();
                let firsts = settle(given.chunk, &mut self.rows[begin..begin + tied], &mut again);
                self.rows.copy_within(begin..begin + firsts, kept);
                kept += firsts;
                begin += tied;
            }
            *count = kept - kept_before;
            self.again.resize(again.len(), *key);
        }
        self.rows.truncate(kept);
        self.rows.extend(again);
    }
}

/// Orders rows of one key and time. Those of an identity that another has which came before are noted in `again`; the answer
/// is how many others there are.
fn settle(chunk: &Chunk, ties: &mut [u16], again: &mut Vec<u16>) -> usize {
    if ties.len() == 1 {
        return 1;
    }
    let id = |row: u16| chunk.id(usize::from(row));
    // By arrival then: of one identity the first to come is inserted, the others revise it.
    ties.sort_by(|a, b| id(*a).cmp(&id(*b)).then(a.cmp(b)));
    let mut firsts = 0;
    for at in 0..ties.len() {
        if firsts > 0 && id(ties[firsts - 1]) == id(ties[at]) {
            again.push(ties[at]);
        } else {
            ties[firsts] = ties[at];
            firsts += 1;
        }
    }
    ties[..firsts].sort_by_key(|row| chunk.seq(usize::from(*row)).unwrap_or(0));
    firsts
}

fn count_left_out(keys: &[u32]) -> usize {
    vectorized(
        #[inline(always)]
        || keys.iter().map(|key| usize::from(*key == NO_KEY)).sum(),
    )
}

/// The row that a word has beside its time.
#[inline]
#[allow(clippy::cast_possible_truncation)] // masked
fn row_in(word: u64) -> u16 {
    (word & ((1 << CHUNK_BITS) - 1)) as u16
}

#[allow(clippy::cast_possible_truncation)] // rows of a chunk
fn row_number(row: usize) -> u16 {
    row as u16
}
