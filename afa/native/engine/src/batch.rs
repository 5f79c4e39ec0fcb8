//! Changes net per batch: everything is inserted first, each key at once, and then followed up.

use crate::engine::{Engine, live};
use crate::key::Key;
use crate::rows::{Reader, Stretch};
use crate::segment::Segment;
use crate::walk::Plan;

impl Engine {
    /// Takes the rows that wait; the answer is whether a key was taken up more than once, so that what was told may come
    /// and go.
    pub(crate) fn take_pending(&mut self, segment: &mut Segment) -> bool {
        let mut pending = std::mem::take(&mut segment.pending);
        if !pending.is_sorted_by_key(|(key, _)| *key) {
            pending.sort_by_key(|(key, _)| *key);
        }
        let (mut at, mut repeats) = (0, false);
        let mut rows = Vec::new();
        while at < pending.len() {
            let key = pending[at].0;
            rows.clear();
            rows.extend(
                pending[at..]
                    .iter()
                    .take_while(|(other, _)| *other == key)
                    .map(|(_, row)| *row),
            );
            at += rows.len();
            repeats |= self.take_together(key as usize, &mut rows);
        }
        pending.clear();
        segment.pending = pending;
        repeats
    }

    /// Takes rows of one key, in order of arrival; true if one by one.
    fn take_together(&mut self, number: usize, rows: &mut Vec<u32>) -> bool {
        if self.must_look_closer || self.keys[number].as_ref().is_some_and(|key| key.has_tombs()) {
            for row in rows.iter() {
                self.insert(number, *row);
            }
            return true;
        }
        let again = self.sort_rows(rows);
        let mut key = self.take_key(number);
        let (before, was_degraded) = (live(&key), key.degraded);
        let again = self.insert_together(&mut key, rows, again);
        self.newest = self.newest.max(key.spine.last_ts());
        self.after(&mut key, before, was_degraded);
        self.put_key(number, key);
        let repeats = !again.is_empty();
        for row in again {
            self.insert(number, row);
        }
        repeats
    }

    /// Puts rows into event order. Those of an identity that stands there already are taken out and answered.
    fn sort_rows(&self, rows: &mut Vec<u32>) -> Vec<u32> {
        let mut late: Vec<(i64, u32)> = Vec::new();
        let mut ordered: Vec<(i64, u32)> = Vec::with_capacity(rows.len());
        let mut reader = Reader::new(&self.rows);
        for row in rows.iter() {
            let ts = reader.ts(*row);
            if ordered.last().is_none_or(|(newest, _)| *newest < ts) {
                ordered.push((ts, *row));
            } else {
                late.push((ts, *row));
            }
        }
        if late.is_empty() {
            return Vec::new();
        }
        late.sort_unstable();
        let (mut merged, has_ties) = merge(&ordered, &late);
        rows.clear();
        if has_ties {
            return self.settle_ties(&mut merged, rows);
        }
        rows.extend(merged.iter().map(|(_, row)| *row));
        Vec::new()
    }

    /// Orders rows of equal time, and sets aside those that are not the first of their identity.
    fn settle_ties(&self, merged: &mut [(i64, u32)], rows: &mut Vec<u32>) -> Vec<u32> {
        let mut again = Vec::new();
        let mut at = 0;
        while at < merged.len() {
            let ts = merged[at].0;
            let count = merged[at..].iter().take_while(|(other, _)| *other == ts).count();
            let ties = &mut merged[at..at + count];
            if count > 1 {
                // By arrival first: of one identity the first to come is inserted, the others revise it.
                ties.sort_by(|a, b| self.rows.id(a.1).cmp(&self.rows.id(b.1)).then(a.1.cmp(&b.1)));
                let mut firsts: Vec<u32> = Vec::with_capacity(count);
                for (_, row) in ties.iter() {
                    if firsts
                        .last()
                        .is_some_and(|last| self.rows.id(*last) == self.rows.id(*row))
                    {
                        again.push(*row);
                    } else {
                        firsts.push(*row);
                    }
                }
                firsts.sort_by(|a, b| self.rows.order(*a, *b));
                rows.extend(firsts);
            } else {
                rows.push(ties[0].1);
            }
            at += count;
        }
        again
    }

    /// Inserts rows that are in event order; the answer are those whose identity is stored already.
    fn insert_together(&mut self, key: &mut Key, rows: &mut Vec<u32>, mut again: Vec<u32>) -> Vec<u32> {
        let last = key.spine.last_ts();
        let late = rows.partition_point(|row| last.is_some_and(|last| self.rows.ts(*row) <= last));
        if late > 0 {
            let (known, mut inserts): (Vec<u32>, Vec<u32>) = rows[..late]
                .iter()
                .partition(|row| key.find(&self.rows, self.rows.ts(**row), self.rows.id(**row)).is_some());
            again.extend(known);
            // Of equal time as the last entry, but after it: appended with the rest.
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
            rows.splice(..late, rest);
        }
        if !rows.is_empty() {
            self.append_rows(key, Stretch::Listed(rows), None);
        }
        again
    }
}

/// Merges two ordered lists; true if two rows have one time.
fn merge(one: &[(i64, u32)], other: &[(i64, u32)]) -> (Vec<(i64, u32)>, bool) {
    let mut merged = Vec::with_capacity(one.len() + other.len());
    let mut rest = one;
    let mut has_ties = false;
    for late in other {
        let before = rest.iter().take_while(|(ts, _)| *ts < late.0).count();
        merged.extend_from_slice(&rest[..before]);
        rest = &rest[before..];
        has_ties |= merged.last().is_some_and(|(ts, _): &(i64, u32)| *ts == late.0);
        has_ties |= rest.first().is_some_and(|(ts, _)| *ts == late.0);
        merged.push(*late);
    }
    merged.extend_from_slice(rest);
    (merged, has_ties)
}
