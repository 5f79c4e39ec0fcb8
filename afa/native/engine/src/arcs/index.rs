//! Arcs by id, as small as they can be kept: most of them are long dead, and only a retraction takes one away.
//!
//! An arc costs 32 bytes, its id's text, and 8 bytes in a hash table that is between 7/16 and 7/8 full: 41 to 50 bytes
//! and the id. Growing doubles, so what is allocated may be twice that for a while. A hundred new ids of eight bytes a
//! second are about 450 MB after a day; whoever has more retracts arcs, or uses an id again.

use foldhash::fast::FixedState;
use std::hash::{BuildHasher, Hasher};

/// An arc as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownArc {
    /// The number of its body.
    pub body: u32,
    /// Alive from here; `i64::MIN` is unbounded.
    pub le: i64,
    /// Alive before here; none is unbounded.
    pub re: Option<i64>,
}

impl KnownArc {
    /// `re <= le` is never.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.re.is_some_and(|re| re <= self.le)
    }
}

#[derive(Clone, Copy)]
struct Entry {
    le: i64,
    re: i64,
    id_at: usize,
    body: u32,
    id_length: u16,
    is_bounded: bool,
    is_live: bool,
}

const _: () = assert!(size_of::<Entry>() == 32);

impl Entry {
    fn arc(&self) -> KnownArc {
        KnownArc {
            body: self.body,
            le: self.le,
            re: self.is_bounded.then_some(self.re),
        }
    }
}

/// Where an id is, or would be: good until the next arc is added or removed.
#[derive(Clone, Copy, Debug)]
pub struct Looked {
    /// Without meaning if there is an entry.
    hash: u32,
    entry: Option<usize>,
}

/// A free slot of the hash table; else the hash is in its upper half and one more than the entry's index below.
const FREE: u64 = 0;
/// Texts of ids that went are left where they were until they are half of all, and more than this.
const LEAST_WASTE: usize = 4096;

/// Arcs by id.
#[derive(Default)]
pub struct ArcIndex {
    entries: Vec<Entry>,
    ids: String,
    wasted_id_bytes: usize,
    /// Its length is a power of two, or 0 before the first arc.
    slots: Vec<u64>,
    live: usize,
}

fn hash_of(id: &str) -> u32 {
    let mut hasher = FixedState::default().build_hasher();
    hasher.write(id.as_bytes());
    (hasher.finish() >> 32) as u32
}

#[allow(clippy::cast_possible_truncation)] // the two halves of a slot
fn halves(slot: u64) -> (u32, usize) {
    ((slot >> 32) as u32, (slot as u32 - 1) as usize)
}

impl ArcIndex {
    /// How many arcs are known, dead ones included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether none is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many arcs cleanup has not taken away.
    #[must_use]
    pub fn live(&self) -> usize {
        self.live
    }

    /// The bytes that are allocated.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>() + self.slots.capacity() * size_of::<u64>() + self.ids.capacity()
    }

    /// Looks for an id.
    #[must_use]
    pub fn look_up(&self, id: &str) -> Looked {
        // Where arcs take turns, the one that ends is often the newest.
        let newest = self.entries.len().checked_sub(1);
        if newest.is_some_and(|newest| self.has_id(newest, id)) {
            return Looked { hash: 0, entry: newest };
        }
        let hash = hash_of(id);
        let slot = self.find(id, hash);
        Looked {
            hash,
            entry: slot.map(|slot| halves(self.slots[slot]).1),
        }
    }

    /// The arc of an id that was looked for.
    #[must_use]
    pub fn arc(&self, looked: Looked) -> Option<KnownArc> {
        looked.entry.map(|index| self.entries[index].arc())
    }

    /// The arc of this id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<KnownArc> {
        self.arc(self.look_up(id))
    }

    /// Inserts or replaces the arc of this id; it is live.
    ///
    /// # Panics
    /// If the id is longer than 65,535 bytes, or there are 2^32 arcs.
    pub fn set(&mut self, id: &str, arc: KnownArc) {
        self.put(self.look_up(id), id, arc);
    }

    /// The same for an id that was looked for.
    ///
    /// # Panics
    /// As `set`.
    pub fn put(&mut self, looked: Looked, id: &str, arc: KnownArc) {
        let index = looked.entry.unwrap_or_else(|| self.push(id, looked.hash));
        let entry = &mut self.entries[index];
        self.live += usize::from(!entry.is_live);
        entry.is_live = true;
        entry.body = arc.body;
        entry.le = arc.le;
        (entry.re, entry.is_bounded) = arc.re.map_or((0, false), |re| (re, true));
    }

    /// Marks the live arcs dead for which it says so.
    pub fn mark_dead_if(&mut self, is_dead: impl Fn(&KnownArc) -> bool) {
        for entry in self.entries.iter_mut().filter(|entry| entry.is_live) {
            if is_dead(&entry.arc()) {
                entry.is_live = false;
                self.live -= 1;
            }
        }
    }

    /// Cleanup took the arc away: it stays known, and is live no more. False if the id is unknown.
    pub fn mark_dead(&mut self, id: &str) -> bool {
        let Some(slot) = self.find(id, hash_of(id)) else {
            return false;
        };
        let entry = &mut self.entries[halves(self.slots[slot]).1];
        self.live -= usize::from(entry.is_live);
        entry.is_live = false;
        true
    }

    /// Makes the id unknown. False if it was.
    pub fn remove(&mut self, id: &str) -> bool {
        let Some(slot) = self.find(id, hash_of(id)) else {
            return false;
        };
        let (_, index) = halves(self.slots[slot]);
        self.close_gap(slot);
        let last = self.entries.len() - 1;
        if index < last {
            self.renumber(last, index);
        }
        let gone = self.entries.swap_remove(index);
        self.live -= usize::from(gone.is_live);
        self.wasted_id_bytes += usize::from(gone.id_length);
        if self.wasted_id_bytes > LEAST_WASTE && self.wasted_id_bytes * 2 > self.ids.len() {
            self.pack_ids();
        }
        true
    }

    /// Visits all arcs.
    pub fn each(&self, visit: impl FnMut(KnownArc)) {
        self.entries.iter().map(Entry::arc).for_each(visit);
    }

    /// All arcs in order of their ids, and whether they are live.
    #[must_use]
    pub fn in_order(&self) -> Vec<(&str, KnownArc, bool)> {
        let entries = self.entries.iter().enumerate();
        let mut all: Vec<_> = entries
            .map(|(index, entry)| (self.id(index), entry.arc(), entry.is_live))
            .collect();
        all.sort_unstable_by_key(|(id, _, _)| *id);
        all
    }

    fn id(&self, index: usize) -> &str {
        let entry = &self.entries[index];
        &self.ids[entry.id_at..entry.id_at + usize::from(entry.id_length)]
    }

    fn has_id(&self, index: usize, id: &str) -> bool {
        let entry = &self.entries[index];
        usize::from(entry.id_length) == id.len() && self.ids.as_bytes()[entry.id_at..].starts_with(id.as_bytes())
    }

    /// Where a search for this hash begins: the upper bits, so that growing keeps neighbours together.
    fn home(&self, hash: u32) -> usize {
        ((u64::from(hash) * self.slots.len() as u64) >> 32) as usize
    }

    fn find(&self, id: &str, hash: u32) -> Option<usize> {
        if self.slots.is_empty() {
            return None;
        }
        let mut slot = self.home(hash);
        loop {
            let found = self.slots[slot];
            if found == FREE {
                return None;
            }
            let (other, index) = halves(found);
            if other == hash && self.has_id(index, id) {
                return Some(slot);
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    /// Every entry has a slot: tells the one of this entry that it is moving.
    fn renumber(&mut self, from: usize, to: usize) {
        let id = self.id(from);
        if let Some(slot) = self.find(id, hash_of(id)) {
            self.slots[slot] -= (from - to) as u64;
        }
    }

    /// A new dead entry for an id that has none.
    fn push(&mut self, id: &str, hash: u32) -> usize {
        if (self.entries.len() + 1) * 8 > self.slots.len() * 7 {
            self.grow();
        }
        let index = self.entries.len();
        self.entries.push(Entry {
            le: 0,
            re: 0,
            id_at: self.ids.len(),
            body: 0,
            id_length: u16::try_from(id.len()).expect("an id is a short name"),
            is_bounded: false,
            is_live: false,
        });
        self.ids.push_str(id);
        let number = u32::try_from(index + 1).expect("fewer than 2^32 arcs");
        self.occupy(u64::from(hash) << 32 | u64::from(number));
        index
    }

    fn occupy(&mut self, slot: u64) {
        let mut place = self.home((slot >> 32) as u32);
        while self.slots[place] != FREE {
            place = (place + 1) & (self.slots.len() - 1);
        }
        self.slots[place] = slot;
    }

    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(16);
        let old = std::mem::replace(&mut self.slots, vec![FREE; size]);
        old.into_iter()
            .filter(|slot| *slot != FREE)
            .for_each(|slot| self.occupy(slot));
    }

    /// Frees a slot and moves those after it that a search would no longer reach.
    fn close_gap(&mut self, mut gap: usize) {
        let last = self.slots.len() - 1;
        let mut place = gap;
        loop {
            place = (place + 1) & last;
            if self.slots[place] == FREE {
                break;
            }
            let home = self.home((self.slots[place] >> 32) as u32);
            if (place.wrapping_sub(home) & last) >= (place.wrapping_sub(gap) & last) {
                self.slots[gap] = self.slots[place];
                gap = place;
            }
        }
        self.slots[gap] = FREE;
    }

    fn pack_ids(&mut self) {
        let mut packed = String::with_capacity(self.ids.len() - self.wasted_id_bytes);
        for index in 0..self.entries.len() {
            let begin = packed.len();
            packed.push_str(self.id(index));
            self.entries[index].id_at = begin;
        }
        self.ids = packed;
        self.wasted_id_bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::{ArcIndex, KnownArc};
    use std::collections::BTreeMap;

    fn arc(body: u32) -> KnownArc {
        let re = (!body.is_multiple_of(3)).then_some(i64::from(body));
        KnownArc { body, le: 1, re }
    }

    #[test]
    fn it_behaves_like_a_map() {
        let mut index = ArcIndex::default();
        let mut map = BTreeMap::new();
        let mut state = 7_u64;
        for step in 0..60_000_u32 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let id = format!("arc-{}", (state >> 33) % 2000);
            match state >> 61 {
                0..=2 => {
                    index.set(&id, arc(step));
                    map.insert(id, (arc(step), true));
                }
                3 => {
                    let known = map.get_mut(&id).map(|(_, live)| *live = false).is_some();
                    assert_eq!(index.mark_dead(&id), known);
                }
                _ => assert_eq!(index.remove(&id), map.remove(&id).is_some()),
            }
            let probe = format!("arc-{}", (state >> 20) % 2000);
            assert_eq!(index.get(&probe), map.get(&probe).map(|(arc, _)| *arc));
            assert_eq!((index.len(), index.is_empty()), (map.len(), map.is_empty()));
            if step % 997 == 0 {
                let expected: Vec<_> = map.iter().map(|(id, (arc, live))| (&**id, *arc, *live)).collect();
                assert_eq!(index.in_order(), expected);
                assert_eq!(index.live(), expected.iter().filter(|(_, _, live)| *live).count());
            }
        }
    }

    #[test]
    fn ids_that_went_leave_no_bytes_behind() {
        let mut index = ArcIndex::default();
        for step in 0..200_000 {
            index.set(&format!("{step}"), arc(step));
            if step >= 10 {
                assert!(index.remove(&format!("{}", step - 10)));
            }
        }
        assert_eq!((index.len(), index.live()), (10, 10));
        assert!(index.bytes() < 50_000, "{}", index.bytes());
    }

    #[test]
    fn a_dead_arc_costs_about_what_the_page_says() {
        let mut index = ArcIndex::default();
        let mut text = 0;
        for step in 0..200_000 {
            let id = format!("{step}");
            text += id.len();
            index.set(&id, arc(step));
            index.mark_dead(&id);
        }
        let used = index.entries.len() * 32 + index.slots.len() * 8;
        assert!((8_200_000..=10_200_000).contains(&used), "{used}");
        assert!(index.bytes() <= 2 * (used + text), "{}", index.bytes());
        assert_eq!(index.live(), 0);
    }
}
