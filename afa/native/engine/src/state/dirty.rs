//! Which keys have changed since a snapshot of them was taken, for whoever keeps the snapshots.
//!
//! Batches then have stamps, which never fall. A key is dirty since the stamp of the batch that changed it first after
//! its last snapshot. Keys do not go while they are dirty, even if nothing of them need be kept: whoever keeps a snapshot
//! has to be told.

use std::sync::Arc;

use crate::engine::Engine;
use crate::keys::packing::Renumbering;
use crate::segment::NO_KEY;
use crate::state::form::SnapshotFault;

/// The name of a key, and its snapshot; none if it is back at the start.
pub type Snapshot = (Arc<str>, Option<Vec<u8>>);

/// No stamp.
const NEVER: u64 = u64::MAX;

/// When a key was changed.
#[derive(Clone, Copy, Debug)]
struct Mark {
    /// Since then it is dirty.
    since: u64,
    /// The last batch since then that changed it.
    last: u64,
}

const CLEAN: Mark = Mark {
    since: NEVER,
    last: NEVER,
};

/// The marks of all keys.
#[derive(Debug, Default)]
pub(crate) struct Dirty {
    /// The stamp of the last batch; none: nobody asks which keys are dirty.
    stamp: Option<u64>,
    /// By number of the key.
    marks: Vec<Mark>,
    /// By number of the key, whether somebody may keep a snapshot of it.
    kept: Vec<bool>,
}

impl Dirty {
    /// Makes room for the marks of so many keys.
    fn grow(&mut self, keys: usize) {
        if self.stamp.is_some() && self.marks.len() < keys {
            self.marks.resize(keys, CLEAN);
            self.kept.resize(keys, false);
        }
    }

    /// A number stands for a new key.
    pub(crate) fn begin_key(&mut self, number: usize) {
        self.grow(number + 1);
        self.note_snapshot(number, false);
    }

    /// A key is clean now, and a snapshot of it is kept or not.
    fn note_snapshot(&mut self, number: usize, is_kept: bool) {
        if let (Some(mark), Some(kept)) = (self.marks.get_mut(number), self.kept.get_mut(number)) {
            (*mark, *kept) = (CLEAN, is_kept);
        }
    }

    /// Keys have other numbers.
    pub(crate) fn renumber(&mut self, numbering: &Renumbering) {
        numbering.pack(&mut self.marks);
        numbering.pack(&mut self.kept);
    }

    /// Whether a key is dirty.
    pub(crate) fn has(&self, number: usize) -> bool {
        self.marks.get(number).is_some_and(|mark| mark.since != NEVER)
    }
}

impl Engine {
    /// The batches from now on have this stamp. False if the one before was greater.
    pub fn set_stamp(&mut self, stamp: u64) -> bool {
        if stamp == NEVER || self.dirty.stamp.is_some_and(|before| stamp < before) {
            return false;
        }
        self.dirty.stamp = Some(stamp);
        self.dirty.grow(self.keys.len());
        true
    }

    /// The keys of rows are changed by a batch.
    #[inline]
    pub(crate) fn mark_changed(&mut self, keys: &[u32]) {
        if let Some(stamp) = self.dirty.stamp {
            self.mark_rows(keys, stamp);
        }
    }

    fn mark_rows(&mut self, keys: &[u32], stamp: u64) {
        let mut at = 0;
        while at < keys.len() {
            let number = keys[at];
            if number != NO_KEY && self.dirty.marks[number as usize].last != stamp {
                self.mark(number, stamp);
            }
            at += keys[at..].iter().take_while(|other| **other == number).count();
        }
    }

    fn mark(&mut self, number: u32, stamp: u64) {
        let Some(key) = &self.keys[number as usize] else {
            return;
        };
        let mark = &mut self.dirty.marks[number as usize];
        mark.last = stamp;
        if mark.since == NEVER {
            mark.since = stamp;
            self.domains[key.domain()].dirty.push_back((stamp, number));
        }
    }

    /// Nothing of a key need be kept any more: whoever keeps a snapshot of it has to be told.
    pub(crate) fn mark_idle(&mut self, number: u32) {
        let place = number as usize;
        if let Some(stamp) = self.dirty.stamp
            && self.dirty.kept[place]
            && !self.dirty.has(place)
        {
            self.mark(number, stamp);
        }
    }

    /// A key was restored from a snapshot, which is kept.
    pub(crate) fn mark_restored(&mut self, number: usize) {
        self.dirty.note_snapshot(number, true);
    }

    /// Whoever restores keys keeps snapshots of them.
    pub(crate) fn expect_stamps(&mut self) {
        self.dirty.stamp = self.dirty.stamp.or(Some(0));
        self.dirty.grow(self.keys.len());
    }

    /// The stamp since which the key that is dirty longest is, of those of a partition.
    pub fn oldest_dirty(&mut self, partition: u32) -> Option<u64> {
        let domain = self.find_domain(partition)?;
        self.first_dirty(domain).map(|(stamp, _)| stamp)
    }

    /// How many keys of a partition are dirty. Some that went meanwhile may be among them.
    #[must_use]
    pub fn dirty_keys(&self, partition: u32) -> usize {
        self.find_domain(partition)
            .map_or(0, |domain| self.domains[domain].dirty.len())
    }

    /// The key of a partition that is dirty longest. What does not count any more leaves the queue.
    fn first_dirty(&mut self, domain: usize) -> Option<(u64, u32)> {
        while let Some((stamp, number)) = self.domains[domain].dirty.front().copied() {
            let place = number as usize;
            let is_of = self.keys[place].as_ref().is_some_and(|key| key.domain() == domain);
            if is_of && self.dirty.marks[place].since == stamp {
                return Some((stamp, number));
            }
            self.domains[domain].dirty.pop_front();
        }
        None
    }

    /// Keys of a partition that are dirty since before a stamp, the longest first, at most so many; they are clean then.
    ///
    /// # Errors
    /// If the snapshot of one would have 4 GB or more.
    pub fn take_dirty(&mut self, partition: u32, before: u64, most: usize) -> Result<Vec<Snapshot>, SnapshotFault> {
        let Some(domain) = self.find_domain(partition) else {
            return Ok(Vec::new());
        };
        let mut taken = Vec::new();
        while taken.len() < most
            && let Some((stamp, number)) = self.first_dirty(domain)
            && stamp < before
        {
            let place = number as usize;
            let snapshot = self.seal_key(place)?;
            self.dirty.note_snapshot(place, snapshot.is_some());
            self.list_as_resting(place);
            // Also if no snapshot was ever taken of one that is back at the start: who replays from a point in the midst
            // of its records must leave out all of them.
            taken.extend(self.keys[place].as_ref().map(|key| (key.name.clone(), snapshot)));
        }
        Ok(taken)
    }
}
