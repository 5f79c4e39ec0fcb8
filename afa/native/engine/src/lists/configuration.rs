//! Configurations, interned, and the sets of them that one start event has reached.
//!
//! A *configuration* is a state and the values of all registers. All partial matches with one start event form a *set*
//! of configurations, and that set, interned, is one number: a partial match list holds one word per start event. Where
//! an event class leads from a set is computed once and looked up ever after, as a lazy DFA does; so merging of equal
//! partial matches, non-determinism and epsilon arcs cost nothing while events flow.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::FixedState;

use crate::program::value::Value;

/// The partial matches of one start event: its row in the upper half, their set's code in the lower.
pub type Word = u64;
/// The number of a set, with `FINAL` if one of its configurations is in a final state.
pub type Code = u32;

/// Nothing is left: the empty set.
pub const DEAD: Code = 0;
/// Marks the code of a set with a final configuration.
pub const FINAL: Code = 1 << 31;
/// In the table of transitions: look closer, nothing to be copied stands here.
pub const SLOW: Code = 1 << 30;
/// In the table of transitions: not computed yet.
pub const UNKNOWN: Code = SLOW | (SLOW - 1);

const FIRST_STRIDE: usize = 64;

/// The start row of a word.
#[must_use]
#[allow(clippy::cast_possible_truncation)]
pub fn start_row(word: Word) -> u32 {
    (word >> 32) as u32
}

/// The code of a word.
#[must_use]
#[allow(clippy::cast_possible_truncation)]
pub fn code_of(word: Word) -> Code {
    word as u32
}

/// Puts the two halves together.
#[must_use]
pub fn word(row: u32, code: Code) -> Word {
    u64::from(row) << 32 | u64::from(code)
}

/// The number of a set without its mark.
#[must_use]
pub fn unmarked(code: Code) -> usize {
    (code & !FINAL) as usize
}

/// A state and the values of all registers, in order of names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Configuration {
    /// The state's number.
    pub state: u32,
    /// The register values.
    pub registers: Arc<[Value]>,
}

/// What one start event has reached.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Set {
    /// Numbers of configurations, sorted.
    pub members: Arc<[u32]>,
    /// How many events were consumed; counted only for windows in events, else 0.
    pub consumed: u64,
    /// It had more members than a limit allows, and was cut.
    pub is_cut: bool,
}

/// Where a class leads from a set when that depends on the event itself.
#[derive(Clone, Debug)]
pub struct Conditional {
    /// What is reached in any case, not yet closed under epsilon arcs.
    pub certain: Arc<[Link]>,
    /// Configurations and bodies that have to look at the event.
    pub open: Arc<[(u32, u32)]>,
    /// Whether the bodies only decide by the event, and do not compute from it.
    pub decides_only: bool,
    /// What each outcome of the decisions leads to, as far as it was seen.
    pub outcomes: Vec<(u64, Code)>,
}

/// How an event leads from one configuration of a set to one of the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The configuration before the event.
    pub from: u32,
    /// The one after it.
    pub to: u32,
    /// The variable that the event was bound to.
    pub binds: Option<u16>,
}

/// Interned things: numbers of what went are given out again.
#[derive(Debug)]
struct Interned<T> {
    known: Vec<Option<T>>,
    numbers: HashMap<T, u32, FixedState>,
    free: Vec<u32>,
}

impl<T> Default for Interned<T> {
    fn default() -> Self {
        Self {
            known: Vec::new(),
            numbers: HashMap::default(),
            free: Vec::new(),
        }
    }
}

impl<T: Clone + Eq + std::hash::Hash> Interned<T> {
    fn number(&mut self, thing: T) -> u32 {
        if let Some(number) = self.numbers.get(&thing) {
            return *number;
        }
        let number = self.free.pop().unwrap_or_else(|| {
            self.known.push(None);
            u32::try_from(self.known.len() - 1).expect("fewer than 2^32 at once")
        });
        self.known[number as usize] = Some(thing.clone());
        self.numbers.insert(thing, number);
        number
    }

    fn get(&self, number: usize) -> &T {
        self.known[number].as_ref().expect("in use")
    }

    fn sweep(&mut self, in_use: &[bool]) {
        for (number, known) in self.known.iter_mut().enumerate() {
            if !in_use.get(number).copied().unwrap_or(false)
                && let Some(thing) = known.take()
            {
                self.numbers.remove(&thing);
                #[allow(clippy::cast_possible_truncation)] // it was a u32 when it was given out
                self.free.push(number as u32);
            }
        }
    }
}

/// All configurations and sets of a pattern that are in use, and the transitions found so far.
#[derive(Debug)]
pub struct Sets {
    configurations: Interned<Configuration>,
    interned: Interned<Set>,
    /// Per class and set the code that it leads to, or a code with `SLOW`.
    table: Vec<Code>,
    stride: usize,
    conditionals: Vec<Conditional>,
    /// Per class and set how members lead to members, as far as it was asked for.
    links: HashMap<(u32, usize), Arc<[Link]>, FixedState>,
    /// No set has more members.
    largest: usize,
    /// What sets and configurations take, about.
    bytes: usize,
    /// Of a query: several runs of one start event may have come to one configuration, or have bound the same.
    pub(crate) ways_meet: bool,
}

/// What a set and a configuration take beside their members and values: twice the thing, its numbers and its place in
/// a table.
const SET_BYTES: usize = 96;
const CONFIGURATION_BYTES: usize = 96;

fn configuration_bytes(configuration: &Configuration) -> usize {
    CONFIGURATION_BYTES + size_of::<Value>() * configuration.registers.len()
}

impl Default for Sets {
    fn default() -> Self {
        let mut sets = Self {
            configurations: Interned::default(),
            interned: Interned::default(),
            table: Vec::new(),
            stride: FIRST_STRIDE,
            conditionals: Vec::new(),
            links: HashMap::default(),
            largest: 1,
            bytes: 0,
            ways_meet: false,
        };
        let empty = sets.interned.number(Set {
            members: Arc::new([]),
            consumed: 0,
            is_cut: false,
        });
        debug_assert_eq!(empty, DEAD);
        sets
    }
}

impl Sets {
    /// The number of a configuration.
    pub fn configuration_number(&mut self, configuration: Configuration) -> u32 {
        let bytes = configuration_bytes(&configuration);
        let before = self.configurations.numbers.len();
        let number = self.configurations.number(configuration);
        self.bytes += bytes * (self.configurations.numbers.len() - before);
        number
    }

    /// The configuration of a number.
    #[must_use]
    pub fn configuration(&self, number: u32) -> &Configuration {
        self.configurations.get(number as usize)
    }

    /// The number of a set: its members sorted, each once. None is `DEAD`, whatever was consumed.
    ///
    /// # Panics
    /// If there are more than 2^30 sets at once.
    pub fn set_number(&mut self, mut members: Vec<u32>, consumed: u64, is_cut: bool) -> u32 {
        if members.is_empty() {
            return DEAD;
        }
        members.sort_unstable();
        members.dedup();
        self.largest = self.largest.max(members.len());
        let bytes = SET_BYTES + size_of::<u32>() * members.len();
        let before = self.interned.numbers.len();
        let number = self.interned.number(Set {
            members: members.into(),
            consumed,
            is_cut,
        });
        self.bytes += bytes * (self.interned.numbers.len() - before);
        assert!(number < SLOW - 1, "fewer than 2^30 sets at once");
        number
    }

    /// The set of a code.
    #[must_use]
    pub fn set(&self, code: Code) -> &Set {
        self.interned.get(unmarked(code))
    }

    /// How many partial matches a code stands for.
    #[must_use]
    pub fn size(&self, code: Code) -> usize {
        if code == DEAD { 0 } else { self.set(code).members.len() }
    }

    /// The most partial matches that a code may stand for.
    #[must_use]
    #[inline]
    pub fn largest(&self) -> usize {
        self.largest
    }

    /// About how many bytes sets and configurations take, those that nobody uses any more included.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many sets and configurations are in use.
    #[must_use]
    pub fn len(&self) -> usize {
        self.interned.numbers.len() + self.configurations.numbers.len()
    }

    /// Whether there are none; there is always the empty set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The transitions of one class, by set number; sets beyond its end are unknown.
    #[must_use]
    pub fn row(&self, class: u32) -> &[Code] {
        let begin = class as usize * self.stride;
        self.table.get(begin..begin + self.stride).unwrap_or(&[])
    }

    /// The remembered transition of a class from a set, or a code with `SLOW`.
    #[must_use]
    #[inline]
    pub fn transition(&self, class: u32, set: usize) -> Code {
        if set >= self.stride {
            return UNKNOWN;
        }
        self.table
            .get(class as usize * self.stride + set)
            .copied()
            .unwrap_or(UNKNOWN)
    }

    /// Remembers a transition.
    pub fn remember(&mut self, class: u32, set: usize, code: Code) {
        if set >= self.stride {
            self.widen(set);
        }
        let at = class as usize * self.stride + set;
        if at >= self.table.len() {
            let known = self.table.len();
            self.table.resize((class as usize + 1) * self.stride, UNKNOWN);
            // Nothing leads to nothing.
            let rows = self.table[known..].chunks_exact_mut(self.stride);
            rows.for_each(|row| row[DEAD as usize] = DEAD);
        }
        self.table[at] = code;
    }

    fn widen(&mut self, set: usize) {
        let wider = (set + 1).next_power_of_two();
        let classes = self.table.len() / self.stride;
        let mut table = vec![UNKNOWN; classes * wider];
        for class in 0..classes {
            let row = &self.table[class * self.stride..(class + 1) * self.stride];
            table[class * wider..class * wider + self.stride].copy_from_slice(row);
        }
        (self.table, self.stride) = (table, wider);
    }

    /// Remembers a transition that depends on the event; the answer is its code.
    ///
    /// # Panics
    /// If there are more than 2^30 of them at once.
    pub fn remember_conditional(&mut self, class: u32, set: usize, conditional: Conditional) -> Code {
        self.conditionals.push(conditional);
        let index = u32::try_from(self.conditionals.len() - 1).expect("fewer than 2^30 at once");
        assert!(index < SLOW - 1, "fewer than 2^30 at once");
        self.remember(class, set, SLOW | index);
        SLOW | index
    }

    /// The conditional transition of a code with `SLOW` that is not `UNKNOWN`.
    pub fn conditional(&mut self, code: Code) -> &mut Conditional {
        &mut self.conditionals[(code & !SLOW) as usize]
    }

    /// The remembered links of a class from a set.
    #[must_use]
    pub fn links(&self, class: u32, set: usize) -> Option<&Arc<[Link]>> {
        self.links.get(&(class, set))
    }

    /// Remembers links, which must not depend on the event itself.
    pub fn remember_links(&mut self, class: u32, set: usize, links: Arc<[Link]>) {
        self.links.insert((class, set), links);
    }

    /// Forgets all sets but those in use (by number), the configurations that only they had, except those that were
    /// found, and all transitions.
    pub fn sweep(&mut self, in_use: &mut Vec<bool>, found: impl Iterator<Item = u32>) {
        if in_use.is_empty() {
            in_use.push(true);
        }
        in_use[DEAD as usize] = true;
        self.interned.sweep(in_use);
        let mut configurations = vec![false; self.configurations.known.len()];
        for set in self.interned.known.iter().flatten() {
            set.members
                .iter()
                .for_each(|member| configurations[*member as usize] = true);
        }
        found.for_each(|number| configurations[number as usize] = true);
        self.configurations.sweep(&configurations);
        self.measure();
        self.forget_transitions();
    }

    fn measure(&mut self) {
        (self.largest, self.bytes) = (1, 0);
        for set in self.interned.known.iter().flatten() {
            self.largest = self.largest.max(set.members.len());
            self.bytes += SET_BYTES + size_of::<u32>() * set.members.len();
        }
        let configurations = self.configurations.known.iter().flatten();
        self.bytes += configurations.map(configuration_bytes).sum::<usize>();
    }

    /// Forgets what classes lead to: they may mean something else now.
    pub fn forget_transitions(&mut self) {
        self.table = Vec::new();
        self.conditionals.clear();
        self.links.clear();
        self.stride = self.interned.known.len().next_power_of_two().max(FIRST_STRIDE);
    }
}
