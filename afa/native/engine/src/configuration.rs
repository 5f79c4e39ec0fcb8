//! Configurations: a state and register values, interned, with their transitions remembered.
//!
//! A partial match is one word: the row of its start event and the number of its configuration. For everything that
//! does not read the event itself, where an event *class* leads from a configuration is always the same, so it is
//! computed once and looked up ever after, as a lazy DFA does.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::FixedState;

use crate::value::Value;

/// A partial match: row of the start event in the upper half, configuration (with `FINAL`) in the lower.
pub type PartialMatch = u64;

/// Marks a configuration whose state is final, so that lists can be scanned for matches without a look-up.
pub const FINAL: u32 = 1 << 31;

/// The start row of a partial match.
#[must_use]
#[allow(clippy::cast_possible_truncation)]
pub fn start_row(partial: PartialMatch) -> u32 {
    (partial >> 32) as u32
}

/// The configuration of a partial match, with its mark.
#[must_use]
#[allow(clippy::cast_possible_truncation)]
pub fn marked(partial: PartialMatch) -> u32 {
    partial as u32
}

/// Puts the two halves together.
#[must_use]
pub fn partial_match(row: u32, marked: u32) -> PartialMatch {
    u64::from(row) << 32 | u64::from(marked)
}

/// A state and the values of all registers, in order of names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Configuration {
    /// The state's number.
    pub state: u32,
    /// The register values.
    pub registers: Arc<[Value]>,
}

/// Where a class leads from a configuration.
#[derive(Clone, Debug)]
pub enum Transition {
    /// Nowhere.
    None,
    /// To exactly one configuration.
    One(u32),
    /// To several, sorted.
    Several(Arc<[u32]>),
    /// To these, and through bodies that have to look at the event.
    Dynamic(Arc<[u32]>, Arc<[u32]>),
}

/// All configurations of a pattern that are in use, and the transitions found so far.
#[derive(Debug, Default)]
pub struct Configurations {
    known: Vec<Option<Configuration>>,
    numbers: HashMap<Configuration, u32, FixedState>,
    free: Vec<u32>,
    /// Per class and configuration a code, 0 where the transition is not known yet.
    memo: Vec<Vec<u64>>,
    others: Vec<Transition>,
}

/// Codes of the memo: the kind in the upper half, the marked configuration or index in the lower.
const KIND_ONE: u64 = 1 << 32;
const KIND_NONE: u64 = 2 << 32;
const KIND_OTHER: u64 = 3 << 32;

impl Configurations {
    /// The number of a configuration (not yet marked).
    ///
    /// # Panics
    /// If there are more than 2^31 of them at once.
    pub fn number(&mut self, configuration: Configuration) -> u32 {
        if let Some(number) = self.numbers.get(&configuration) {
            return *number;
        }
        let number = self.free.pop().unwrap_or_else(|| {
            self.known.push(None);
            u32::try_from(self.known.len() - 1).expect("configurations fit in 31 bits")
        });
        assert!(number < FINAL, "configurations fit in 31 bits");
        self.known[number as usize] = Some(configuration.clone());
        self.numbers.insert(configuration, number);
        number
    }

    /// The configuration of a number, with or without its mark.
    ///
    /// # Panics
    /// If it is not in use.
    #[must_use]
    pub fn get(&self, number: u32) -> &Configuration {
        self.known[(number & !FINAL) as usize]
            .as_ref()
            .expect("a configuration in use")
    }

    /// How many are in use.
    #[must_use]
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Whether none is in use.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// The remembered transition, if it is to nowhere or to one configuration (marked); `Err(None)`: not yet known.
    ///
    /// # Errors
    /// If it is not one of these two.
    #[inline]
    pub fn quick(&self, class: u32, configuration: u32) -> Result<Option<u32>, Option<&Transition>> {
        let code = self
            .memo
            .get(class as usize)
            .and_then(|row| row.get((configuration & !FINAL) as usize));
        let code = code.copied().unwrap_or(0);
        #[allow(clippy::cast_possible_truncation)]
        let low = code as u32;
        match code & !0xFFFF_FFFF {
            KIND_ONE => Ok(Some(low)),
            KIND_NONE => Ok(None),
            KIND_OTHER => Err(Some(&self.others[low as usize])),
            _ => Err(None),
        }
    }

    /// Remembers a transition.
    ///
    /// # Panics
    /// If there are more than 2^32 transitions to several configurations.
    pub fn remember(&mut self, class: u32, configuration: u32, transition: Transition) {
        let code = match transition {
            Transition::None => KIND_NONE,
            Transition::One(marked) => KIND_ONE | u64::from(marked),
            other => {
                self.others.push(other);
                KIND_OTHER | u64::from(u32::try_from(self.others.len() - 1).expect("fewer transitions"))
            }
        };
        let class = class as usize;
        if self.memo.len() <= class {
            self.memo.resize_with(class + 1, Vec::new);
        }
        let row = &mut self.memo[class];
        let at = (configuration & !FINAL) as usize;
        if row.len() <= at {
            row.resize((at + 1).next_power_of_two(), 0);
        }
        row[at] = code;
    }

    /// Forgets all configurations but those in use (by number), and all transitions.
    pub fn sweep(&mut self, in_use: &[bool]) {
        for (number, known) in self.known.iter_mut().enumerate() {
            if !in_use.get(number).copied().unwrap_or(false)
                && let Some(configuration) = known.take()
            {
                self.numbers.remove(&configuration);
                #[allow(clippy::cast_possible_truncation)]
                self.free.push(number as u32);
            }
        }
    }

    /// Forgets what classes lead to: they may mean something else now.
    pub fn forget_transitions(&mut self) {
        self.memo.clear();
        self.others.clear();
    }
}
