//! The rows of a batch by key, and in event order. Most streams are nearly in order: what comes late is sorted by itself,
//! and merged with the rest.

use crate::chunk::Chunk;
use crate::kernel::vectorized;
use crate::segment::NO_KEY;

/// Rows of a chunk from one on, and the key of each; those with `NO_KEY` do not count.
pub(crate) struct Given<'a> {
    pub(crate) keys: &'a [u32],
    pub(crate) chunk: &'a Chunk,
    pub(crate) first: usize,
}

/// Key and time as one number, in their order.
type Instant = u128;

/// Behind the instant, its row in the chunk.
const ROW_BITS: u32 = 16;

/// The order of rows, in memory that is used again.
#[derive(Debug, Default)]
pub(crate) struct EventOrder {
    /// All rows that were given: in event order by key, those of `again`, and those that do not count.
    pub(crate) rows: Vec<u16>,
    /// Keys, and how many of the rows are theirs.
    pub(crate) groups: Vec<(u32, usize)>,
    /// The keys of rows whose identity another row has that came before.
    pub(crate) again: Vec<u32>,
    /// Rows that come after all before them.
    ascending: Vec<u16>,
    late: Vec<u128>,
    left_out: Vec<u16>,
}

impl Given<'_> {
    #[inline]
    fn instant(&self, row: u16) -> Instant {
        let row = usize::from(row);
        instant(self.keys[row - self.first], self.chunk.times()[row])
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
}

#[inline]
fn instant(key: u32, ts: i64) -> Instant {
    u128::from(key) << i64::BITS | u128::from(ts.cast_unsigned() ^ 1 << (i64::BITS - 1))
}

#[inline]
#[allow(clippy::cast_possible_truncation)] // its last bits
fn row_of(late: u128) -> u16 {
    late as u16
}

impl EventOrder {
    /// Finds the order of rows.
    pub(crate) fn find(&mut self, given: &Given<'_>) {
        self.part(given);
        self.late.sort_unstable();
        let has_ties = self.merge(given);
        self.again.clear();
        self.find_groups(given);
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
                let moved = |(row, place): (&u16, usize)| usize::from(*row) ^ place;
                self.rows.iter().zip(first..).fold(0, |any, pair| any | moved(pair)) == 0
            },
        )
    }

    /// Parts those that come after all before them from those that come late.
    #[allow(clippy::cast_possible_truncation)] // rows of a chunk
    fn part(&mut self, given: &Given<'_>) {
        let length = given.keys.len();
        self.left_out.clear();
        self.ascending.resize(length, 0);
        self.late.resize(length, 0);
        let (mut ascending, mut late) = (0, 0);
        let mut next: Instant = 0;
        let times = &given.chunk.times()[given.first..given.first + length];
        for ((key, ts), row) in given.keys.iter().zip(times).zip(given.first as u16..) {
            if *key == NO_KEY {
                self.left_out.push(row);
                continue;
            }
            // Both are written, and one of them counts: that a row is late comes as a surprise.
            let instant = instant(*key, *ts);
            let ascends = instant >= next;
            self.ascending[ascending] = row;
            self.late[late] = instant << ROW_BITS | u128::from(row);
            ascending += usize::from(ascends);
            late += usize::from(!ascends);
            next = next.max(instant + 1);
        }
        self.ascending.truncate(ascending);
        self.late.truncate(late);
    }

    /// Merges them; true if two rows have one key and time.
    fn merge(&mut self, given: &Given<'_>) -> bool {
        let (mut ascending, mut late) = (self.ascending.as_slice(), self.late.as_slice());
        let pairs = || late.iter().zip(&late[1..]);
        let mut has_ties = late.len() > 1 && pairs().any(|(one, next)| one >> ROW_BITS == next >> ROW_BITS);
        self.rows.clear();
        self.rows.reserve(given.keys.len());
        while let (Some(row), Some(late_row)) = (ascending.first(), late.first()) {
            let (here, there) = (given.instant(*row), late_row >> ROW_BITS);
            let is_late = there < here;
            has_ties |= there == here;
            self.rows.push(if is_late { row_of(*late_row) } else { *row });
            ascending = &ascending[usize::from(!is_late)..];
            late = &late[usize::from(is_late)..];
        }
        self.rows.extend_from_slice(ascending);
        self.rows.extend(late.iter().map(|late| row_of(*late)));
        has_ties
    }

    fn find_groups(&mut self, given: &Given<'_>) {
        self.groups.clear();
        if let Some(key) = given.only_key() {
            self.groups.push((key, self.rows.len()));
            return;
        }
        let key_of = |row: &u16| given.keys[usize::from(*row) - given.first];
        let same = self.rows.chunk_by(|one, next| key_of(one) == key_of(next));
        self.groups.extend(same.map(|rows| (key_of(&rows[0]), rows.len())));
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
