//! Replaying records of which keys hold some already: their snapshots were taken after them.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::FixedState;
use smallvec::SmallVec;

use crate::engine::Engine;
use crate::progress::domain::Domain;

/// By topic, the first offset that a key does not hold.
type Held = SmallVec<[(usize, i64); 1]>;

/// What keys of a partition hold.
#[derive(Debug, Default)]
pub(crate) struct HeldOffsets {
    by_key: HashMap<Arc<str>, Held, FixedState>,
}

impl HeldOffsets {
    /// Whether a key holds a record.
    pub(crate) fn has(&self, key: &str, topic: usize, offset: i64) -> bool {
        let held = self.by_key.get(key);
        held.into_iter()
            .flatten()
            .any(|(other, end)| *other == topic && offset < *end)
    }
}

impl Domain {
    /// Notes what a key holds, and no more.
    fn hold(&mut self, key: &str, held: Held) {
        if held.is_empty() {
            self.held_offsets.by_key.remove(key);
        } else {
            self.held_offsets.by_key.insert(key.into(), held);
        }
    }
}

impl Engine {
    /// Notes what a key of a partition holds: by topic, the first offset that it does not.
    pub(crate) fn note_held<'a>(&mut self, partition: u32, key: &str, held: impl Iterator<Item = (&'a str, i64)>) {
        let mut domain = self.find_domain(partition);
        let mut known = Held::new();
        for (topic, offset) in held {
            let origin = self.origin(topic, partition);
            domain = Some(origin.domain);
            if origin.is_read() {
                known.push((origin.topic, offset));
            }
        }
        if let Some(domain) = domain {
            self.domains[domain].hold(key, known);
        }
    }

    /// Forgets what keys of a partition hold.
    pub fn end_replay(&mut self, partition: u32) {
        if let Some(domain) = self.find_domain(partition) {
            self.domains[domain].held_offsets = HeldOffsets::default();
        }
    }
}
