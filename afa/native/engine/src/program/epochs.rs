//! Which arc bodies are alive when: event time cut into epochs at the ends of lifetimes.
//!
//! The set of bodies alive in an epoch is interned together with what is computed from it, so a change that brings back
//! bodies seen before, under other ids, finds its tables ready.

use std::collections::HashMap;

use foldhash::fast::FixedState;

/// The number of no bodies at all.
pub const NOTHING: u32 = 0;

/// With more predicates than this, classes are looked up by hash instead of by index.
pub(crate) const MAX_DENSE_PREDICATES: usize = 10;

/// So many epochs are joined with their neighbours one by one: most changes touch the last of hundreds.
const FEW_EPOCHS: usize = 8;

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

    /// The parts of it before and after another one, each of which may be empty.
    #[must_use]
    pub fn outside(&self, other: &Self) -> [Self; 2] {
        let ends_first = self.re.is_some_and(|re| re < other.le);
        let before = Self {
            re: if ends_first { self.re } else { Some(other.le) },
            ..*self
        };
        let after = other.re.map_or(
            Self {
                re: Some(self.le),
                ..*self
            },
            |end| Self {
                le: self.le.max(end),
                ..*self
            },
        );
        [before, after]
    }
}

/// What bodies become when one more is alive or one less, as far as it was asked lately.
#[derive(Debug)]
pub struct Moves {
    known: [Move; Self::PLACES],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Move {
    from: u32,
    body: u32,
    comes: bool,
    to: u32,
}

impl Default for Moves {
    fn default() -> Self {
        let nothing = Move {
            from: u32::MAX,
            body: u32::MAX,
            comes: false,
            to: NOTHING,
        };
        Self {
            known: [nothing; Self::PLACES],
        }
    }
}

impl Moves {
    const PLACES: usize = 32;

    fn place(from: u32, body: u32, comes: bool) -> usize {
        (from.wrapping_mul(7).wrapping_add(body).wrapping_mul(2) as usize + usize::from(comes)) % Self::PLACES
    }

    /// The number of the bodies that these become.
    #[must_use]
    pub fn get(&self, from: u32, body: u32, comes: bool) -> Option<u32> {
        let known = self.known[Self::place(from, body, comes)];
        ((known.from, known.body, known.comes) == (from, body, comes)).then_some(known.to)
    }

    /// Notes it.
    pub fn put(&mut self, from: u32, body: u32, comes: bool, to: u32) {
        self.known[Self::place(from, body, comes)] = Move { from, body, comes, to };
    }
}

/// The epochs of a pattern; the first begins at the least instant. The default has none, and is good for nothing but to
/// stand where the epochs were taken from.
#[derive(Clone, Debug, Default)]
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

    /// The epochs from the one of an instant on.
    #[must_use]
    pub fn from_instant(&self, ts: i64) -> &[Epoch] {
        &self.list[self.index_at(ts)..]
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

    /// Lets `change` give every epoch within the life another number; neighbours that became equal become one.
    pub fn change(&mut self, life: &Life, mut change: impl FnMut(u32) -> u32) {
        if life.is_empty() {
            return;
        }
        let begin = self.cut(life.le);
        let end = life.re.map_or(self.list.len(), |re| self.cut(re));
        for epoch in &mut self.list[begin..end] {
            epoch.alive = change(epoch.alive);
        }
        self.join(begin, end);
    }

    /// Joins neighbours with the same bodies, from an epoch and the one before it on.
    fn join(&mut self, begin: usize, end: usize) {
        if end - begin > FEW_EPOCHS {
            self.list.dedup_by(|later, earlier| later.alive == earlier.alive);
            return;
        }
        for index in (begin.max(1)..self.list.len().min(end + 1)).rev() {
            if self.list[index].alive == self.list[index - 1].alive {
                self.list.remove(index);
            }
        }
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
    use super::{Epochs, Life, Moves, NOTHING};

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

    #[test]
    fn neighbours_that_became_equal_are_one() {
        let life = |le, re| Life { body: 0, le, re };
        let mut epochs = Epochs::new(0);
        for start in (0..400).step_by(10) {
            epochs.change(&life(start, Some(start + 5)), |alive| alive + 1);
        }
        assert_eq!(epochs.list.len(), 81);
        epochs.change(&life(20, Some(25)), |alive| alive - 1);
        assert_eq!((epochs.list.len(), epochs.alive_at(22)), (79, 0));
        epochs.change(&life(0, None), |_| 3);
        assert_eq!((epochs.list.len(), epochs.alive_at(-1), epochs.alive_at(0)), (2, 0, 3));
    }

    #[test]
    fn the_parts_outside_of_another_life() {
        let ends = [None, Some(1), Some(2), Some(3), Some(4)];
        let is_alive = |life: &Life, ts: i64| life.le <= ts && life.re.is_none_or(|re| ts < re);
        for (le, other_le) in (0..4).flat_map(|le| (0..4).map(move |other| (le, other))) {
            for (re, other_re) in ends.iter().flat_map(|re| ends.iter().map(move |other| (*re, *other))) {
                let life = Life { body: 7, le, re };
                let other = Life {
                    body: 7,
                    le: other_le,
                    re: other_re,
                };
                if life.is_empty() || other.is_empty() {
                    continue;
                }
                let parts = life.outside(&other);
                for ts in 0..6 {
                    let times = parts.iter().filter(|part| is_alive(part, ts)).count();
                    let expected = usize::from(is_alive(&life, ts) && !is_alive(&other, ts));
                    assert_eq!(times, expected, "{life:?} without {other:?} at {ts}");
                }
            }
        }
    }

    #[test]
    fn moves_are_known_until_another_takes_their_place() {
        let mut moves = Moves::default();
        for (from, body) in (0..100).flat_map(|from| (0..10).map(move |body| (from, body))) {
            assert_eq!(moves.get(from, body, true), None);
            moves.put(from, body, true, from + body);
            assert_eq!(moves.get(from, body, true), Some(from + body));
            assert_eq!(moves.get(from, body, false), None);
        }
    }
}
