//! Changes net per batch: everything is inserted first, each key at once, and then followed up.

use crate::engine::{Engine, live};
use crate::keys::key::Key;
use crate::late::walk::Plan;
use crate::lists::one_event::{Given, PlainRows};
use crate::rows::event_order::EventOrder;
use crate::rows::store::row_number;
use crate::rows::stretch::Stretch;
use crate::segment::NO_KEY;

/// With more rows for each key that is known, they are brought together by key.
const ROWS_PER_KEY: usize = 4;

/// After a batch with few rows that could be taken as they came, so many are brought together by key.
const BATCHES_APART: u32 = 64;

/// Rows of one chunk that wait for the end of the batch.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    chunk: usize,
    first: usize,
    /// The key of each row from the first on, or `NO_KEY`: it does not wait.
    keys: Vec<u32>,
    /// The partition that all of them come from, if it is one.
    domain: Option<usize>,
    /// Of so many more batches the rows are brought together by key, because of one before few could be taken as they
    /// came.
    batches_apart: u32,
    order: EventOrder,
}

impl Waiting {
    /// Adds rows with these keys, which come from this partition, or from several. All that wait are of one chunk.
    pub(crate) fn add(&mut self, chunk: usize, first: usize, keys: &[u32], domain: Option<usize>) {
        if self.keys.is_empty() {
            (self.chunk, self.first, self.domain) = (chunk, first, domain);
        }
        if self.domain != domain {
            self.domain = None;
        }
        debug_assert_eq!(self.chunk, chunk, "taken before another chunk is added");
        self.keys.resize(first - self.first, NO_KEY);
        self.keys.extend_from_slice(keys);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.keys.clear();
    }
}

impl Engine {
    /// Takes the rows that wait; the answer is whether a key was taken up more than once, so that what was told may come
    /// and go.
    pub(crate) fn take_waiting(&mut self, waiting: &mut Waiting) -> bool {
        if let Some(plain) = self.interleaved_rows(waiting) {
            return self.take_interleaved(waiting, plain);
        }
        let (number, first) = (waiting.chunk, waiting.first);
        let chunk = self.rows.chunk_mut(number);
        waiting.order.find(&crate::rows::event_order::Given {
            keys: &waiting.keys,
            chunk,
            first,
        });
        let order = &waiting.order;
        if !order.is_as_given(first) {
            chunk.reorder(first, &order.rows);
        }
        let (mut at, mut repeats) = (first, !order.again.is_empty());
        for (key, count) in &order.groups {
            repeats |= self.take_together(*key as usize, row_number(number, at), *count);
            at += count;
        }
        for (key, at) in order.again.iter().zip(at..) {
            self.insert(*key as usize, row_number(number, at));
        }
        waiting.clear();
        repeats
    }

    /// Where most keys have no more than a row of those that wait, to bring these together would cost more than it saves.
    fn interleaved_rows(&self, waiting: &mut Waiting) -> Option<PlainRows> {
        waiting.batches_apart = waiting.batches_apart.saturating_sub(1);
        if waiting.batches_apart > 0 {
            return None;
        }
        let domain = waiting
            .domain
            .filter(|_| waiting.keys.len() <= ROWS_PER_KEY * self.numbers.len())?;
        // What came too late was left out before.
        self.plain_rows(domain, i64::MIN)
    }

    /// Takes the rows that wait one after the other; answers like `take_waiting`.
    fn take_interleaved(&mut self, waiting: &mut Waiting, mut plain: PlainRows) -> bool {
        self.forget_old_shapes();
        let given = Given {
            keys: &waiting.keys,
            chunk: waiting.chunk,
            first: waiting.first,
            records: (self.findings.record, 0),
        };
        let (mut place, mut others, mut repeats) = (0, 0, false);
        loop {
            place = self.take_plain(&mut plain, given, place);
            let Some(number) = given.keys.get(place) else {
                break;
            };
            if *number != NO_KEY {
                others += 1;
                let row = given.row(place);
                repeats |= !self.is_behind_all(*number as usize, self.rows.ts(row));
                repeats |= self.take_together(*number as usize, row, 1);
            }
            place += 1;
        }
        if 4 * others > place {
            waiting.batches_apart = BATCHES_APART;
        }
        waiting.clear();
        repeats
    }

    /// Whether an instant comes after all that a key has.
    fn is_behind_all(&mut self, number: usize, ts: i64) -> bool {
        self.unfold_key(number);
        let key = self.keys[number].as_ref();
        key.is_some_and(|key| key.spine.last_ts().is_none_or(|last| last < ts))
    }

    /// Takes rows of one key that follow each other in event order; true if some were taken one by one.
    fn take_together(&mut self, number: usize, first: u32, count: usize) -> bool {
        let rows = Stretch::Run(first, count);
        if self.must_look_closer || self.keys[number].as_ref().is_some_and(|key| key.has_tombs()) {
            for row in rows.rows() {
                self.insert(number, row);
            }
            return true;
        }
        let mut key = self.take_key(number);
        let (before, was_degraded) = (live(&key), key.degraded);
        let again = self.insert_together(&mut key, rows);
        self.newest = self.newest.max(key.spine.last_ts());
        self.after(&mut key, before, was_degraded);
        self.put_key(number, key);
        let repeats = !again.is_empty();
        for row in again {
            self.insert(number, row);
        }
        repeats
    }

    /// Inserts rows that are in event order; the answer are those whose identity is stored already.
    fn insert_together(&mut self, key: &mut Key, rows: Stretch<'_>) -> Vec<u32> {
        let mut again = Vec::new();
        let late = match key.spine.last_ts() {
            Some(last) => self.count_until(rows, last),
            None => 0,
        };
        if late > 0 && !self.matcher(key.domain()).merge_in(key, rows.part(0, late)) {
            again = self.insert_late_ones(key, rows.part(0, late));
        }
        if late < rows.len() {
            self.append_rows(key, rows.part(late, rows.len()), None);
        }
        again
    }

    /// How many of the rows, which are in event order, do not come after an instant.
    fn count_until(&self, rows: Stretch<'_>, last: i64) -> usize {
        let (mut low, mut high) = (0, rows.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.rows.ts(rows.row(middle)) <= last {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Inserts rows that do not come after all entries in time, whatever they meet there.
    fn insert_late_ones(&mut self, key: &mut Key, rows: Stretch<'_>) -> Vec<u32> {
        let (known, mut inserts): (Vec<u32>, Vec<u32>) = rows
            .rows()
            .partition(|row| key.find(&self.rows, self.rows.ts(*row), self.rows.id(*row)).is_some());
        // Of equal time as the last entry, but after it.
        let end = inserts.partition_point(|row| key.spine.place_of(&self.rows, *row).is_some());
        let rest = inserts.split_off(end);
        let plan = Plan {
            relinks: inserts.iter().chain(&rest).any(|row| self.hides(*row)),
            inserts,
            ..Plan::default()
        };
        if !plan.inserts.is_empty() || plan.relinks {
            self.matcher(key.domain()).apply(key, &plan);
        }
        if !rest.is_empty() {
            self.append_rows(key, Stretch::Listed(&rest), None);
        }
        known
    }
}
