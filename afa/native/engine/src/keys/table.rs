//! Names of keys and their numbers. What a look-up touches is small, because keys are many and their names come in any
//! order: a table of hashes and numbers, then the name itself, which is short.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::FixedState;
use prefetch_index::prefetch_index;
use smallvec::SmallVec;

use crate::keys::packing::Renumbering;
use crate::keys::slots::Slots;

/// So many names are looked up at once.
pub(crate) const TOGETHER: usize = 32;

/// A name: one that is short lies in one cache line.
#[derive(Clone, Debug, Default)]
#[repr(align(32))]
struct Name(SmallVec<[u8; 24]>);

const _: () = assert!(size_of::<Name>() == 32);

/// What a number stands for: whether its key is idle, and how often the number was given to another name. One that is
/// the same as before stands for the same key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing(u32);

impl Standing {
    const IDLE: u32 = 1;
    const NEXT: u32 = 2;
    /// What no number stands for while its key is not idle.
    pub(crate) const NONE: Self = Self(Self::IDLE);

    fn is_idle(self) -> bool {
        self.0 & Self::IDLE != 0
    }

    fn awake(self) -> Self {
        Self(self.0 & !Self::IDLE)
    }
}

/// All names. A key that is *idle* counts as unknown: it is only kept because it may be met again soon.
#[derive(Debug, Default)]
pub(crate) struct KeyTable {
    slots: Slots,
    /// By number; empty where there is none.
    names: Vec<Name>,
    /// By number.
    standings: Vec<Standing>,
    hashing: FixedState,
    idle: usize,
    /// What a number stands for that was not given before.
    fresh: Standing,
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
        self.slots.len() - self.idle
    }

    /// The number of a name, unless its key is idle.
    #[inline]
    pub(crate) fn find(&self, name: &str) -> Option<u32> {
        self.find_any(name)
            .filter(|number| !self.standings[*number as usize].is_idle())
    }

    #[inline]
    fn find_any(&self, name: &str) -> Option<u32> {
        self.slots
            .find(self.mark(name.as_bytes()), |number| self.is(number, name.as_bytes()))
    }

    /// The same for several names at once, with what each stands for while it is not idle: first all marks, then what is
    /// likely each, then whether it is, so that they wait for memory together. One that is in the way of another may
    /// make that unknown.
    pub(crate) fn find_together(&self, names: &[&[u8]; TOGETHER]) -> [Option<(u32, Standing)>; TOGETHER] {
        let marks = names.map(|name| self.mark(name));
        for mark in marks {
            self.slots.prefetch(mark);
        }
        let likely = marks.map(|mark| {
            let number = self.slots.find(mark, |_| true)?;
            prefetch_index(&self.names, number as usize);
            Some(number)
        });
        std::array::from_fn(|place| {
            let number = likely[place]?;
            let standing = self.standings[number as usize].awake();
            self.is(number, names[place]).then_some((number, standing))
        })
    }

    /// Whether a number stands for what it did, and its key is not idle.
    #[inline]
    pub(crate) fn is_still(&self, number: u32, standing: Standing) -> bool {
        self.standings.get(number as usize) == Some(&standing)
    }

    /// What a number stands for while its key is not idle.
    pub(crate) fn standing(&self, number: u32) -> Standing {
        self.standings[number as usize].awake()
    }

    /// What is known of a name; if its key is idle, that is over, unless as many keys are known as there may be.
    #[inline]
    pub(crate) fn wake(&mut self, name: &str, most: usize) -> Known {
        let is_full = self.len() >= most;
        let Some(number) = self.find_any(name) else {
            return Known::Nothing;
        };
        let standing = &mut self.standings[number as usize];
        if !standing.is_idle() {
            return Known::Key(number);
        }
        if is_full {
            return Known::Nothing;
        }
        *standing = standing.awake();
        self.idle -= 1;
        Known::Woken(number)
    }

    /// Adds a name that is not there, with a number that is free.
    pub(crate) fn insert(&mut self, name: &str, number: u32) {
        let place = number as usize;
        if place >= self.names.len() {
            self.names.resize_with(place + 1, Name::default);
            self.standings.resize(place + 1, self.fresh);
        }
        self.names[place] = Name(name.as_bytes().into());
        self.slots.insert(self.mark(name.as_bytes()), number);
    }

    /// A key is idle from now on.
    pub(crate) fn lay_down(&mut self, number: u32) {
        let standing = &mut self.standings[number as usize];
        if !standing.is_idle() {
            standing.0 |= Standing::IDLE;
            self.idle += 1;
        }
    }

    /// Takes a name out; the answer is its number.
    pub(crate) fn remove(&mut self, name: &str) -> Option<u32> {
        let number = self.find_any(name)?;
        self.slots.remove(self.mark(name.as_bytes()), number);
        let standing = &mut self.standings[number as usize];
        self.idle -= usize::from(standing.is_idle());
        *standing = Standing(standing.awake().0.wrapping_add(Standing::NEXT));
        self.names[number as usize] = Name::default();
        Some(number)
    }

    /// Keys have other numbers, of which none stands for what it ever stood for.
    pub(crate) fn renumber(&mut self, numbering: &Renumbering) {
        numbering.pack(&mut self.names);
        let latest = self.standings.iter().map(|standing| standing.awake().0).max();
        self.fresh = Standing(latest.unwrap_or_default().wrapping_add(Standing::NEXT));
        numbering.pack(&mut self.standings);
        for standing in &mut self.standings {
            standing.0 = self.fresh.0 | standing.0 & Standing::IDLE;
        }
        self.slots.renumber(numbering);
    }

    #[inline]
    fn is(&self, number: u32, name: &[u8]) -> bool {
        are_equal(&self.names[number as usize].0, name)
    }

    /// A part of a name's hash, which is all that is kept of that.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // a part
    fn mark(&self, name: &[u8]) -> u32 {
        let mut hasher = self.hashing.build_hasher();
        hasher.write(name);
        (hasher.finish() >> u32::BITS) as u32
    }
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
    use crate::keys::packing::Renumbering;

    #[test]
    fn an_idle_key_counts_as_unknown_until_it_is_woken() {
        let mut table = KeyTable::default();
        table.insert("one", 1);
        table.insert("a name that is longer than most names are", 2);
        table.lay_down(1);
        table.lay_down(1);
        assert_eq!((table.len(), table.idle, table.find("one")), (1, 1, None));
        assert_eq!(table.wake("one", 1), Known::Nothing, "there may be no more");
        assert_eq!(table.wake("one", 2), Known::Woken(1));
        assert_eq!(table.wake("one", 2), Known::Key(1));
        assert_eq!((table.len(), table.idle, table.find("one")), (2, 0, Some(1)));
        table.lay_down(1);
        assert_eq!((table.remove("one"), table.remove("one")), (Some(1), None));
        assert_eq!((table.len(), table.idle, table.wake("one", 2)), (1, 0, Known::Nothing));
        assert_eq!(table.find("a name that is longer than most names are"), Some(2));
    }

    #[test]
    fn a_number_stands_for_another_key_after_its_name_went() {
        let mut table = KeyTable::default();
        table.insert("one", 1);
        let standing = table.standing(1);
        assert!(table.is_still(1, standing) && !table.is_still(7, standing));
        table.lay_down(1);
        assert!(!table.is_still(1, standing), "idle");
        assert_eq!(table.wake("one", 1), Known::Woken(1));
        assert!(table.is_still(1, standing));
        table.remove("one");
        assert!(!table.is_still(1, standing));
        table.insert("two", 1);
        assert!(!table.is_still(1, standing) && table.is_still(1, table.standing(1)));
        assert_eq!((table.find("one"), table.find("two")), (None, Some(1)));
    }

    #[test]
    fn names_are_found_by_their_new_numbers_and_no_number_stands_for_what_it_did() {
        let mut table = KeyTable::default();
        let names: Vec<String> = (0..1000).map(|number| format!("name {number}")).collect();
        for (name, number) in names.iter().zip(0..) {
            table.insert(name, number);
        }
        table.lay_down(9);
        let before: Vec<_> = (0..1000).map(|number| table.standing(number)).collect();
        let goes = |number: &usize| !number.is_multiple_of(9);
        for number in (0..1000).filter(goes) {
            table.remove(&names[number]);
        }
        table.renumber(&Renumbering::of((0..1000).map(|number| !goes(&number))));
        assert_eq!((table.len(), table.names.len(), table.slots.len()), (111, 112, 112));
        assert_eq!(
            (table.find("name 9"), table.wake("name 9", 1000)),
            (None, Known::Woken(1))
        );
        for (number, name) in names.iter().enumerate() {
            let new = (!goes(&number)).then(|| u32::try_from(number / 9).unwrap());
            assert_eq!(table.find(name), new);
        }
        for number in 112..1000 {
            table.insert(&format!("another {number}"), number);
        }
        for (number, standing) in (0..1000).zip(before) {
            assert!(!table.is_still(number, standing));
            assert!(table.is_still(number, table.standing(number)));
        }
    }

    #[test]
    fn names_are_found_together() {
        let mut table = KeyTable::default();
        let names: Vec<String> = (0..1000).map(|number| format!("name {number}")).collect();
        for (name, number) in names.iter().zip(0..).skip(TOGETHER / 2) {
            table.insert(name, number);
        }
        table.lay_down(15);
        let found = table.find_together(&std::array::from_fn(|place| names[place].as_bytes()));
        assert!(found[..TOGETHER / 2].iter().all(Option::is_none));
        assert!(found[15].is_none_or(|(number, standing)| number == 15 && !table.is_still(15, standing)));
        let later: Vec<_> = names.as_chunks().0.iter().skip(1).collect();
        let count = later
            .iter()
            .flat_map(|names| table.find_together(&names.each_ref().map(String::as_bytes)));
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
