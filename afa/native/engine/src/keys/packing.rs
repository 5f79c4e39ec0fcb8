//! Giving room back: numbers of keys that went are free, and what is kept by number stays as long as the most keys that
//! there ever were. When most numbers are free the keys that are there are numbered anew. That costs as much as a part of
//! the keys that went has cost.

use std::collections::{BTreeMap, VecDeque};

use crate::engine::Engine;
use crate::input::index_of;
use crate::progress::gauges::Walk;
use crate::segment::NO_KEY;

/// Fewer numbers than so many stay as they are.
const FEW: usize = 1 << 10;
/// So many numbers for each key are too many.
const SPARSE: usize = 4;

/// New numbers of keys by their old ones, in the same order.
pub(crate) struct Renumbering {
    /// `NO_KEY`: the number was free.
    new: Vec<u32>,
    /// How many keys there are.
    count: usize,
}

impl Renumbering {
    /// Of numbers of which these are taken.
    pub(crate) fn of(taken: impl Iterator<Item = bool>) -> Self {
        let mut count = 0;
        let number = |is_taken| {
            count += usize::from(is_taken);
            if is_taken { index_of(count - 1) } else { NO_KEY }
        };
        let new = taken.map(number).collect();
        Self { new, count }
    }

    /// How many keys there are.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The new number of a key; none if it went.
    pub(crate) fn of_key(&self, number: u32) -> Option<u32> {
        Some(self.new[number as usize]).filter(|new| *new != NO_KEY)
    }

    /// What is kept by number, in memory of its own; of the last keys there may be nothing.
    pub(crate) fn pack<T>(&self, kept: &mut Vec<T>) {
        let mut packed = Vec::with_capacity(self.count);
        let all = std::mem::take(kept).into_iter().zip(&self.new);
        packed.extend(all.filter(|(_, new)| **new != NO_KEY).map(|(one, _)| one));
        *kept = packed;
    }

    /// A queue of keys.
    fn pack_queue(&self, queue: &mut VecDeque<usize>) {
        let left = queue.iter().filter_map(|number| self.of_key(index_of(*number)));
        *queue = left.map(|number| number as usize).collect();
    }
}

impl Engine {
    /// After a batch, when no row waits that has the number of a key.
    pub(crate) fn pack_keys(&mut self) {
        let taken = self.keys.len() - self.free_keys.len();
        if self.keys.len() < FEW || taken * SPARSE > self.keys.len() {
            return;
        }
        let numbering = Renumbering::of(self.keys.iter().map(Option::is_some));
        numbering.pack(&mut self.keys);
        numbering.pack(&mut self.folded);
        self.numbers.renumber(&numbering);
        self.free_keys = Vec::new();
        numbering.pack_queue(&mut self.resting);
        self.dirty.renumber(&numbering);
        self.agenda.renumber(&numbering);
        for domain in &mut self.domains {
            numbering.pack_queue(&mut domain.queue);
            let dirty = domain.dirty.iter();
            domain.dirty = dirty
                .filter_map(|(stamp, number)| Some((*stamp, numbering.of_key(*number)?)))
                .collect();
            for open in &mut domain.open_ends {
                let ends = std::mem::take(open).into_iter();
                *open = ends
                    .filter_map(|(number, end)| Some((numbering.of_key(number)?, end)))
                    .collect::<BTreeMap<_, _>>();
            }
        }
        // It goes by numbers.
        self.walk = Walk::default();
    }
}

#[cfg(test)]
mod tests {
    use super::Renumbering;

    #[test]
    fn keys_move_together_in_their_order() {
        let numbering = Renumbering::of([false, true, false, false, true, true].into_iter());
        let new: Vec<_> = (0..6).map(|number| numbering.of_key(number)).collect();
        assert_eq!(new, [None, Some(0), None, None, Some(1), Some(2)]);
        assert_eq!(numbering.count(), 3);
        let (mut all, mut first) = (vec!['a', 'b', 'c', 'd', 'e', 'f'], vec!["a", "b", "c"]);
        numbering.pack(&mut all);
        numbering.pack(&mut first);
        assert_eq!((all, first), (vec!['b', 'e', 'f'], vec!["b"]));
    }
}
