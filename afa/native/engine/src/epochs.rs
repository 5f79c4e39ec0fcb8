//! Which arc bodies are alive when: event time cut into epochs at the ends of lifetimes.
//!
//! The set of bodies alive in an epoch is interned together with what is computed from it, so a change that brings back
//! bodies seen before, under other ids, finds its tables ready.

use std::collections::HashMap;

use foldhash::fast::FixedState;

/// The number of no bodies at all.
pub const NOTHING: u32 = 0;

/// With more predicates than this, classes are looked up by hash instead of by index.
const MAX_DENSE_PREDICATES: usize = 10;

/// The class that each combination of truths makes, as far as it was seen.
#[derive(Debug)]
pub enum ClassTable {
    /// By the number that the truths spell; 0 is not known yet, else the class plus one.
    Dense(Vec<u32>),
    /// By the truths, packed.
    Sparse(HashMap<Vec<u64>, u32, FixedState>),
}

/// Bodies that are alive together, and what follows from that alone.
#[derive(Debug)]
pub struct Alive {
    /// The bodies, sorted; one that several arcs have stands several times.
    pub bodies: Vec<u32>,
    /// The event predicates that decide between them, sorted.
    pub predicates: Vec<u32>,
    /// Their classes.
    pub classes: ClassTable,
    /// In a linear pattern: per step the column of triggers that takes it.
    pub columns: Vec<u32>,
}

impl Alive {
    /// With nothing known yet.
    #[must_use]
    pub fn new(bodies: Vec<u32>, predicates: Vec<u32>, columns: Vec<u32>) -> Self {
        let classes = if predicates.len() <= MAX_DENSE_PREDICATES {
            ClassTable::Dense(vec![0; 1 << predicates.len()])
        } else {
            ClassTable::Sparse(HashMap::default())
        };
        Self {
            bodies,
            predicates,
            classes,
            columns,
        }
    }
}

/// From an instant on, until the next epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch {
    /// Its first instant.
    pub from: i64,
    /// The number of the bodies alive in it.
    pub alive: u32,
}

/// A body that is alive from `le` until before `re`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// The body's number.
    pub body: u32,
    /// Its first instant.
    pub le: i64,
    /// The first instant after it; none: for ever.
    pub re: Option<i64>,
}

impl Life {
    /// Whether it is alive at no instant.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.re.is_some_and(|re| re <= self.le)
    }
}

/// The epochs of a pattern; the first begins at the least instant.
#[derive(Clone, Debug)]
pub struct Epochs {
    list: Vec<Epoch>,
}

impl Epochs {
    /// One epoch, with the bodies of this number.
    #[must_use]
    pub fn new(alive: u32) -> Self {
        Self {
            list: vec![Epoch { from: i64::MIN, alive }],
        }
    }

    /// The index of the epoch of an instant.
    #[must_use]
    pub fn index_at(&self, ts: i64) -> usize {
        let last = self.list.len() - 1;
        if self.list[last].from <= ts {
            return last;
        }
        self.list.partition_point(|epoch| epoch.from <= ts) - 1
    }

    /// The bodies alive at an instant, by number.
    #[must_use]
    pub fn alive_at(&self, ts: i64) -> u32 {
        self.list[self.index_at(ts)].alive
    }

    /// The last instant of the epoch of an instant.
    #[must_use]
    pub fn last_instant(&self, ts: i64) -> i64 {
        self.list
            .get(self.index_at(ts) + 1)
            .map_or(i64::MAX, |next| next.from - 1)
    }

    /// Lets `change` give every epoch within the life another number; neighbours that became equal stay apart only
    /// until they are forgotten.
    pub fn change(&mut self, life: &Life, mut change: impl FnMut(u32) -> u32) {
        if life.is_empty() {
            return;
        }
        let begin = self.cut(life.le);
        let end = life.re.map_or(self.list.len(), |re| self.cut(re));
        for epoch in &mut self.list[begin..end] {
            epoch.alive = change(epoch.alive);
        }
        self.list.dedup_by(|later, earlier| later.alive == earlier.alive);
    }

    /// Makes an epoch begin at an instant and answers with its index.
    fn cut(&mut self, at: i64) -> usize {
        let index = self.index_at(at);
        if self.list[index].from == at {
            return index;
        }
        let alive = self.list[index].alive;
        self.list.insert(index + 1, Epoch { from: at, alive });
        index + 1
    }

    /// Forgets the epochs that end at or before an instant: in their place nothing is alive. What is stored from then
    /// was not prepared for the bodies of later epochs, and whatever it began has expired.
    /// True if there were any.
    pub fn forget_before(&mut self, instant: i64) -> bool {
        let keep = self.index_at(instant);
        let forgets = keep > 1 || keep == 1 && self.list[0].alive != NOTHING;
        if forgets {
            self.list.drain(..keep - 1);
            self.list[0] = Epoch {
                from: i64::MIN,
                alive: NOTHING,
            };
        }
        forgets
    }
}

#[cfg(test)]
mod tests {
    use super::{Epochs, Life, NOTHING};

    #[test]
    fn lives_cut_and_change_their_epochs_only() {
        let mut epochs = Epochs::new(0);
        let life = |le, re| Life { body: 0, le, re };
        epochs.change(&life(10, Some(20)), |alive| alive + 1);
        epochs.change(&life(15, None), |alive| alive + 10);
        let seen: Vec<u32> = [9, 10, 14, 15, 19, 20, 99].map(|ts| epochs.alive_at(ts)).to_vec();
        assert_eq!(seen, [0, 1, 1, 11, 11, 10, 10]);
        assert_eq!(epochs.last_instant(12), 14);
        epochs.change(&life(30, Some(30)), |_| unreachable!("never alive"));
        epochs.change(&life(i64::MIN, None), |alive| alive / 10);
        assert_eq!(
            (epochs.alive_at(0), epochs.alive_at(17), epochs.alive_at(25)),
            (0, 1, 1)
        );
        epochs.forget_before(16);
        assert_eq!((epochs.alive_at(14), epochs.alive_at(16)), (NOTHING, 1));
    }
}
