//! Raw records by the names of their keys. Where keys are many every look-up waits for memory, so several are made
//! together, a few records later.

use crate::engine::Engine;
use crate::input::{Feeding, index_of};
use crate::keys::table::{KeyTable, TOGETHER, are_equal};
use crate::raw::rows::ScannedRows;
use crate::raw::scan::Span;
use crate::rows::chunk::Payload;
use crate::segment::NO_KEY;

/// Fewer names than so many are looked up one by one.
const FEW: usize = 4;

/// Rows of a segment that follow each other and have one key, whose number is not known yet.
#[derive(Clone, Copy, Debug)]
struct Named {
    place: usize,
    count: usize,
    /// In the arena of the open chunk.
    name: Span,
    /// The partition that the first of them comes from.
    domain: usize,
}

/// Rows of a segment that wait for the numbers of their keys.
#[derive(Debug, Default)]
pub(crate) struct Naming {
    /// Names that were not looked up.
    waiting: Vec<Named>,
    /// Names that were not found.
    unknown: Vec<Named>,
}

impl Naming {
    /// The row at a place has this name.
    #[inline]
    pub(crate) fn note(&mut self, place: usize, name: Span, domain: usize, rows: &ScannedRows) {
        if let Some(last) = self.waiting.last_mut()
            && last.place + last.count == place
            && are_equal(name.of(&rows.arena), last.name.of(&rows.arena))
        {
            last.count += 1;
            return;
        }
        self.waiting.push(Named {
            place,
            count: 1,
            name,
            domain,
        });
    }

    /// Looks up the names that wait, if they are many enough.
    #[inline]
    pub(crate) fn find_if_many(&mut self, numbers: &KeyTable, rows: &ScannedRows, keys: &mut [u32]) {
        if self.waiting.len() == TOGETHER {
            self.find(numbers, rows, keys);
        }
    }

    fn find(&mut self, numbers: &KeyTable, rows: &ScannedRows, keys: &mut [u32]) {
        if self.waiting.len() < FEW {
            self.unknown.append(&mut self.waiting);
            return;
        }
        let last = self.waiting.len() - 1;
        let names = std::array::from_fn(|at| self.waiting[at.min(last)].name.of(&rows.arena));
        for (named, found) in self.waiting.drain(..).zip(numbers.find_together(&names)) {
            match found.filter(|(number, standing)| numbers.is_still(*number, *standing)) {
                Some((number, _)) => keys[named.place..][..named.count].fill(number),
                None => self.unknown.push(named),
            }
        }
    }
}

impl Engine {
    /// Gives all rows that wait the numbers of their keys; new keys are made in the order of their records.
    pub(crate) fn name_rows(&mut self, feeding: &mut Feeding, open: usize) {
        let segment = &mut feeding.segment;
        if let Payload::Scanned(rows) = &self.rows.chunk(open).payload {
            segment.naming.find(&self.numbers, rows, &mut segment.keys);
        }
        if segment.naming.unknown.is_empty() {
            return;
        }
        let mut unknown = std::mem::take(&mut segment.naming.unknown);
        for named in unknown.drain(..) {
            let name = self.rows.text(open, named.name).to_owned();
            match self.key_number(&name, named.domain) {
                Some(number) => feeding.segment.keys[named.place..][..named.count].fill(index_of(number)),
                None => self.refuse_rows(feeding, named.place, named.count),
            }
        }
        feeding.segment.naming.unknown = unknown;
    }

    /// Rows whose key is one too many are bad. The first of them has been counted.
    fn refuse_rows(&mut self, feeding: &mut Feeding, place: usize, count: usize) {
        self.counters.refused_keys += count as u64 - 1;
        for place in place..place + count {
            debug_assert_eq!(feeding.segment.keys[place], NO_KEY);
            let record = feeding.segment.record(place);
            feeding.fed.bad.push((record, self.too_many_keys()));
        }
        // Records after them may have been found bad before.
        feeding.fed.bad.sort_by_key(|(record, _)| *record);
    }
}
