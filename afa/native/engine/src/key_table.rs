//! Names of keys and their numbers. A name lies beside its number, so that most look-ups are one access to memory.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use smallvec::SmallVec;

/// So many names are looked up at once.
pub(crate) const TOGETHER: usize = 16;

/// A name, its number, and whether its key is idle.
#[derive(Debug)]
struct Named {
    name: SmallVec<[u8; 16]>,
    number: u32,
    is_idle: bool,
}

/// All names. A key that is *idle* counts as unknown: it is only kept because it may be met again soon.
#[derive(Debug, Default)]
pub(crate) struct KeyTable {
    table: HashTable<Named>,
    hashing: FixedState,
    idle: usize,
}

/// What is known of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// Its key has this number.
    Key(u32),
    /// Its key was idle until now, and has this number.
    Woken(u32),
    /// Nothing.
    Nothing,
}

impl KeyTable {
    /// How many keys are known; idle ones are not.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.table.len() - self.idle
    }

    /// The number of a name, unless its key is idle.
    #[inline]
    pub(crate) fn find(&self, name: &str) -> Option<u32> {
        let found = self.table.find(self.hash(name), |named| named.is(name));
        found.filter(|named| !named.is_idle).map(|named| named.number)
    }

    /// The same for several names at once: first where each must be, if it is there, then what is there, so that they
    /// wait for memory together. One that is in the way of another may make that unknown.
    pub(crate) fn find_together(&self, names: &[&str; TOGETHER]) -> [Option<u32>; TOGETHER] {
        let likely = names.map(|name| self.table.find(self.hash(name), |_| true));
        std::array::from_fn(|place| {
            let found = likely[place].filter(|named| named.is(names[place]) && !named.is_idle);
            found.map(|named| named.number)
        })
    }

    /// What is known of a name; if its key is idle, that is over, unless as many keys are known as there may be.
    #[inline]
    pub(crate) fn wake(&mut self, name: &str, most: usize) -> Known {
        let is_full = self.len() >= most;
        match self.table.find_mut(self.hash(name), |named| named.is(name)) {
            Some(named) if named.is_idle && is_full => Known::Nothing,
            Some(named) if named.is_idle => {
                named.is_idle = false;
                self.idle -= 1;
                Known::Woken(named.number)
            }
            Some(named) => Known::Key(named.number),
            None => Known::Nothing,
        }
    }

    /// Adds a name that is not there.
    pub(crate) fn insert(&mut self, name: &str, number: u32) {
        let named = Named {
            name: name.as_bytes().into(),
            number,
            is_idle: false,
        };
        let hashing = &self.hashing;
        let hash = |named: &Named| hash(hashing, &named.name);
        self.table.insert_unique(hash(&named), named, hash);
    }

    /// The key of a name is idle from now on.
    pub(crate) fn lay_down(&mut self, name: &str) {
        let found = self.table.find_mut(self.hash(name), |named| named.is(name));
        if let Some(named) = found.filter(|named| !named.is_idle) {
            named.is_idle = true;
            self.idle += 1;
        }
    }

    /// Takes a name out; the answer is its number.
    pub(crate) fn remove(&mut self, name: &str) -> Option<u32> {
        let entry = self.table.find_entry(self.hash(name), |named| named.is(name));
        let (named, _) = entry.ok()?.remove();
        self.idle -= usize::from(named.is_idle);
        Some(named.number)
    }

    #[inline]
    fn hash(&self, name: &str) -> u64 {
        hash(&self.hashing, name.as_bytes())
    }
}

impl Named {
    #[inline]
    fn is(&self, name: &str) -> bool {
        are_equal(&self.name, name.as_bytes())
    }
}

#[inline]
fn hash(hashing: &FixedState, name: &[u8]) -> u64 {
    let mut hasher = hashing.build_hasher();
    hasher.write(name);
    hasher.finish()
}

/// Whether two texts are equal: most keys are short, and a call to compare them costs more than the comparison.
#[inline]
pub(crate) fn are_equal(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    match one.len() {
        8..=16 => ends::<8>(one) == ends::<8>(other),
        4..8 => ends::<4>(one) == ends::<4>(other),
        0..4 => std::iter::zip(one, other).fold(0, |differs, (one, other)| differs | (one ^ other)) == 0,
        _ => one == other,
    }
}

/// The first and the last bytes of a text.
#[inline]
fn ends<const COUNT: usize>(text: &[u8]) -> Option<(&[u8; COUNT], &[u8; COUNT])> {
    Some((text.first_chunk()?, text.last_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::{KeyTable, Known, TOGETHER, are_equal};

    #[test]
    fn an_idle_key_counts_as_unknown_until_it_is_woken() {
        let mut table = KeyTable::default();
        table.insert("one", 1);
        table.insert("a name that is longer than most names are", 2);
        table.lay_down("one");
        table.lay_down("one");
        assert_eq!((table.len(), table.idle, table.find("one")), (1, 1, None));
        assert_eq!(table.wake("one", 1), Known::Nothing, "there may be no more");
        assert_eq!(table.wake("one", 2), Known::Woken(1));
        assert_eq!(table.wake("one", 2), Known::Key(1));
        assert_eq!((table.len(), table.idle, table.find("one")), (2, 0, Some(1)));
        table.lay_down("one");
        assert_eq!((table.remove("one"), table.remove("one")), (Some(1), None));
        assert_eq!((table.len(), table.idle, table.wake("one", 2)), (1, 0, Known::Nothing));
        assert_eq!(table.find("a name that is longer than most names are"), Some(2));
    }

    #[test]
    fn names_are_found_together() {
        let mut table = KeyTable::default();
        let names: Vec<String> = (0..1000).map(|number| format!("name {number}")).collect();
        for (name, number) in names.iter().zip(0..).skip(TOGETHER / 2) {
            table.insert(name, number);
        }
        table.lay_down(&names[TOGETHER - 1]);
        let found = table.find_together(&std::array::from_fn(|place| &*names[place]));
        assert!(found[..TOGETHER / 2].iter().all(Option::is_none) && found[TOGETHER - 1].is_none());
        let later: Vec<_> = names.as_chunks().0.iter().skip(1).collect();
        let count = later
            .iter()
            .flat_map(|names| table.find_together(&names.each_ref().map(|name| &**name)));
        let count = count.flatten().count();
        assert!(count > TOGETHER * later.len() * 9 / 10, "{count}");
    }

    #[test]
    fn texts_of_all_lengths_are_compared() {
        let text = b"the quick brown fox jumps";
        for length in 0..text.len() {
            let one = &text[..length];
            assert!(are_equal(one, one) && !are_equal(one, &text[..=length]));
            for place in 0..length {
                let mut other = one.to_vec();
                other[place] ^= 1;
                assert!(!are_equal(one, &other), "{place} of {length}");
            }
        }
    }
}
