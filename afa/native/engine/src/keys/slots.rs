//! Where the number of a name is found: an open table of marks and numbers, of which a place can be fetched from memory
//! before it is asked for. A mark is all that the table needs to know of a name.

use prefetch_index::prefetch_index;

use crate::keys::packing::Renumbering;

/// No number.
const NOTHING: u32 = u32::MAX;
/// How many bits of a mark say where it belongs at first.
const FIRST_BITS: u32 = 4;

/// A number, and the mark of its name: a part of the name's hash.
#[derive(Clone, Copy, Debug)]
struct Slot {
    mark: u32,
    number: u32,
}

const EMPTY: Slot = Slot {
    mark: 0,
    number: NOTHING,
};

/// All numbers, each at the first empty place from that on where its mark belongs. At most half of the places are
/// taken, so that this is mostly the first place that is looked at.
#[derive(Debug)]
pub(crate) struct Slots {
    all: Vec<Slot>,
    count: usize,
    bits: u32,
}

impl Default for Slots {
    fn default() -> Self {
        Self {
            all: vec![EMPTY; 1 << FIRST_BITS],
            count: 0,
            bits: FIRST_BITS,
        }
    }
}

impl Slots {
    /// How many numbers there are.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Where a mark belongs.
    #[inline]
    fn home(&self, mark: u32) -> usize {
        (mark >> (u32::BITS - self.bits)) as usize
    }

    #[inline]
    fn after(&self, place: usize) -> usize {
        (place + 1) & (self.all.len() - 1)
    }

    /// Fetches from memory what `find` looks at first.
    #[inline]
    pub(crate) fn prefetch(&self, mark: u32) {
        prefetch_index(&self.all, self.home(mark));
    }

    /// The first number with a mark that is the one that is looked for.
    #[inline]
    pub(crate) fn find(&self, mark: u32, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let mut place = self.home(mark);
        loop {
            let slot = self.all[place];
            if slot.number == NOTHING {
                return None;
            }
            if slot.mark == mark && is_it(slot.number) {
                return Some(slot.number);
            }
            place = self.after(place);
        }
    }

    /// Adds a number that is not there.
    pub(crate) fn insert(&mut self, mark: u32, number: u32) {
        if 2 * (self.count + 1) > self.all.len() {
            self.grow();
        }
        self.put(Slot { mark, number });
        self.count += 1;
    }

    fn put(&mut self, slot: Slot) {
        let mut place = self.home(slot.mark);
        while self.all[place].number != NOTHING {
            place = self.after(place);
        }
        self.all[place] = slot;
    }

    fn grow(&mut self) {
        self.bits += 1;
        let before = std::mem::replace(&mut self.all, vec![EMPTY; 1 << self.bits]);
        for slot in before {
            if slot.number != NOTHING {
                self.put(slot);
            }
        }
    }

    /// Takes a number out that is there. Those behind it that belong before it move up, so that no search for them ends
    /// too early.
    pub(crate) fn remove(&mut self, mark: u32, number: u32) {
        let mut gap = self.home(mark);
        while self.all[gap].number != number {
            gap = self.after(gap);
        }
        let mut place = self.after(gap);
        while self.all[place].number != NOTHING {
            let slot = self.all[place];
            if self.distance(self.home(slot.mark), place) >= self.distance(gap, place) {
                self.all[gap] = slot;
                gap = place;
            }
            place = self.after(place);
        }
        self.all[gap] = EMPTY;
        self.count -= 1;
    }

    /// The numbers are other ones, and may be far fewer than there were.
    pub(crate) fn renumber(&mut self, numbering: &Renumbering) {
        let bits = (2 * (numbering.count() + 1))
            .next_power_of_two()
            .ilog2()
            .max(FIRST_BITS);
        let before = std::mem::replace(&mut self.all, vec![EMPTY; 1 << bits]);
        (self.bits, self.count) = (bits, numbering.count());
        for Slot { mark, number } in before.into_iter().filter(|slot| slot.number != NOTHING) {
            if let Some(number) = numbering.of_key(number) {
                self.put(Slot { mark, number });
            }
        }
    }

    /// How many places lie from one to another, round the end.
    fn distance(&self, from: usize, to: usize) -> usize {
        to.wrapping_sub(from) & (self.all.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::Slots;

    /// Marks of which many belong to the same place, the last one among them.
    fn mark(number: u32) -> u32 {
        (number % 7).wrapping_sub(2) << 28 | number
    }

    #[test]
    fn numbers_are_found_until_they_go() {
        let mut slots = Slots::default();
        for number in 0..1000 {
            slots.insert(mark(number), number);
        }
        // In an order of their own.
        for gone in (0..1000).map(|count| count * 37 % 1000) {
            assert_eq!(slots.find(mark(gone), |number| number == gone), Some(gone));
            slots.remove(mark(gone), gone);
            assert_eq!(slots.find(mark(gone), |number| number == gone), None);
            let others = (0..1000).filter(|number| slots.find(mark(*number), |found| found == *number).is_some());
            assert_eq!(others.count(), slots.len());
        }
        assert_eq!(slots.len(), 0);
    }
}
