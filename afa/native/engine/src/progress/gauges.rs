//! How much there is of what, for whoever watches a process.
//!
//! What only the keys themselves know is found by a walk over them, of which every look does a part: where keys are many,
//! the sums are those of the last walk that came to its end.

use crate::engine::Engine;
use crate::keys::folded::Folded;
use crate::keys::key::Key;
use crate::keys::page::Page;
use crate::lists::configuration::Word;
use crate::lists::lane::{List, SHORT_LIST};
use crate::progress::keeping::{ROW_BYTES, count};

/// So many keys are walked over at one look.
const KEYS_AT_ONCE: usize = 1 << 16;
/// What is kept by number, also of one that is free, about: the state of a folded key, and its name.
const NUMBER_BYTES: usize = size_of::<Folded>() + 64;

/// What there is of one partition.
#[derive(Clone, Debug, Default)]
pub struct PartitionGauges {
    /// Its number.
    pub partition: u32,
    /// Keys that have state.
    pub keys: usize,
    /// Keys that a limit has degraded.
    pub degraded_keys: usize,
    /// By pattern: partial matches, each configuration of a start event counted.
    pub partial_matches: Vec<usize>,
}

/// What there is.
#[derive(Clone, Debug, Default)]
pub struct Gauges {
    /// Keys that have state, those included that are not found to be idle yet.
    pub keys: usize,
    /// Events that are stored.
    pub events: usize,
    /// What all of it takes, about.
    pub bytes: usize,
    /// By partition.
    pub partitions: Vec<PartitionGauges>,
}

/// What a walk over the keys has come to.
#[derive(Debug, Default)]
struct Sums {
    /// By the engine's number of the partition.
    partitions: Vec<PartitionGauges>,
    /// Of pages and lists that do not lie in their keys.
    bytes: usize,
}

/// A walk over all keys.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    /// The next key.
    next: usize,
    sums: Sums,
    /// What the walk before has come to.
    last: Option<Sums>,
}

impl Engine {
    /// Unknown fences and failed transfers, and evaluations, of predicates and all patterns.
    #[must_use]
    pub fn evaluations(&self) -> (u64, u64) {
        let predicates = &self.shared.predicates;
        let start = (predicates.unknown, predicates.evaluations);
        self.programs.iter().fold(start, |(errors, evaluations), program| {
            (errors + program.errors, evaluations + program.evaluations)
        })
    }

    /// What there is now.
    pub fn gauges(&mut self) -> Gauges {
        let is_first = self.walk.last.is_none();
        let end = if is_first || self.keys.len() <= KEYS_AT_ONCE {
            (self.walk.next, self.walk.sums) = (0, Sums::default());
            self.keys.len()
        } else {
            self.keys.len().min(self.walk.next + KEYS_AT_ONCE)
        };
        for number in self.walk.next..end {
            self.walk_over(number);
        }
        self.walk.next = end;
        if end == self.keys.len() {
            self.walk.last = Some(std::mem::take(&mut self.walk.sums));
            self.walk.next = 0;
        }
        let sets: usize = self.programs.iter().map(|program| program.sets.bytes()).sum();
        let taken = self.keys.len() - self.free_keys.len();
        let mut gauges = Gauges {
            keys: self.numbers.len(),
            bytes: sets + self.keys.len() * NUMBER_BYTES + taken * size_of::<Key>(),
            ..Gauges::default()
        };
        for (_, chunk) in self.rows.chunks_mut() {
            gauges.events += chunk.stored;
            gauges.bytes += chunk.len() * (ROW_BYTES + chunk.average_bytes());
        }
        if let Some(last) = &self.walk.last {
            gauges.bytes += last.bytes;
            gauges.partitions.clone_from(&last.partitions);
        }
        self.complete(&mut gauges.partitions);
        gauges
    }

    /// Numbers the partitions, and adds those that have no keys.
    fn complete(&self, partitions: &mut Vec<PartitionGauges>) {
        partitions.resize_with(self.domains.len(), PartitionGauges::default);
        for (gauges, domain) in partitions.iter_mut().zip(&self.domains) {
            gauges.partition = domain.partition;
            gauges.partial_matches.resize(self.programs.len(), 0);
        }
    }

    fn walk_over(&mut self, number: usize) {
        let Some(key) = self.keys[number].take() else {
            return;
        };
        if !key.is_resting {
            let domain = key.domain();
            let mut partitions = std::mem::take(&mut self.walk.sums.partitions);
            if partitions.len() <= domain {
                self.complete(&mut partitions);
            }
            let gauges = &mut partitions[domain];
            gauges.keys += 1;
            gauges.degraded_keys += usize::from(key.degraded);
            self.count_partial_matches(number, &key, &mut gauges.partial_matches);
            self.walk.sums.partitions = partitions;
            self.walk.sums.bytes += far_bytes(&key);
        }
        self.keys[number] = Some(key);
    }

    fn count_partial_matches(&mut self, number: usize, key: &Key, counts: &mut [usize]) {
        if self.folded[number].is_folded() {
            let pattern = self.lanes[0];
            counts[pattern] += self.folded[number].partial_matches(&self.programs[pattern]);
        } else {
            for (lane, pattern) in key.lanes.iter().zip(&self.lanes) {
                counts[*pattern] += count(&self.programs[*pattern].sets, lane.list());
            }
        }
        for place in 0..self.linear.len() {
            let pattern = self.linear[place];
            counts[pattern] += self.matcher(key.domain()).linear_list(key, pattern, None).len();
        }
    }
}

/// What a key's pages and lists take where they do not lie in it, about.
fn far_bytes(key: &Key) -> usize {
    let lists = key.lanes.iter().map(|lane| lane.list().len());
    let mut bytes = list_bytes(lists) + key.spine.pages.len().saturating_sub(1) * size_of::<Page>();
    for page in key.spine.pages.iter() {
        bytes += list_bytes(page.entering.iter().map(|lane| lane.list().len()));
        if !page.is_run() {
            bytes += page.len() * (size_of::<i64>() + size_of::<u32>());
        }
    }
    bytes
}

/// What lists of these lengths take, beyond the first one that lies in its place.
fn list_bytes(lengths: impl Iterator<Item = usize>) -> usize {
    let far = lengths.enumerate().map(|(place, length)| {
        let own = if place > 0 { size_of::<List>() } else { 0 };
        own + if length > SHORT_LIST {
            length * size_of::<Word>()
        } else {
            0
        }
    });
    far.sum()
}
