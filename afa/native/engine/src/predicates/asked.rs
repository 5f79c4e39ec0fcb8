//! The predicates that all patterns ask for, evaluated together.

use crate::engine::Engine;
use crate::predicates::index::PredicateIndex;
use crate::predicates::predicate::Predicates;

/// So many sets of predicates are remembered: most changes of arcs bring back what was asked for before.
const MOST_INDEXES: usize = 4;

/// The predicates that patterns ask for, as long as the same arcs are alive.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    /// What was asked for last, the last one first.
    indexes: Vec<PredicateIndex>,
    /// The version of predicates that they were made with.
    indexes_version: u64,
    /// What it is asked for: the versions of all arcs and of predicates, in this stretch of time.
    made_for: Option<(u64, u64)>,
    from: i64,
    until: i64,
    /// Memory for what is asked for in several epochs.
    wanted: Vec<u32>,
}

impl Engine {
    /// Sees to it that the truths that patterns ask for in this stretch of time are known for all rows of a chunk.
    pub(crate) fn prepare(&mut self, chunk: usize, from: i64, to: i64) {
        if self.asks_for_the_same(from, to) {
            let (index, predicates) = (&self.asked.indexes[0], &mut self.shared.predicates);
            return self.rows.ready_truths(chunk, index, predicates);
        }
        let mut wanted = std::mem::take(&mut self.asked.wanted);
        wanted.clear();
        for program in &self.programs {
            program.ask_between(from, to, &mut wanted);
        }
        self.ready_missing(chunk, &wanted);
        self.asked.wanted = wanted;
    }

    /// Sees to it that the truths of predicates are known for all rows of a chunk.
    pub(crate) fn ready_missing(&mut self, chunk: usize, wanted: &[u32]) {
        let missing = self.rows.chunk(chunk).missing_truths(wanted);
        if missing.is_empty() {
            return;
        }
        let predicates = &mut self.shared.predicates;
        self.asked.made_for = None;
        self.asked.find_index(distinct(missing), predicates);
        self.rows.ready_truths(chunk, &self.asked.indexes[0], predicates);
    }

    /// Whether patterns ask for the same all the time; the index of that is then the first.
    fn asks_for_the_same(&mut self, from: i64, to: i64) -> bool {
        let (asked, predicates) = (&mut self.asked, &self.shared.predicates);
        let (arcs_version, version) = (self.shared.arcs_version, predicates.version);
        if asked.made_for == Some((arcs_version, version)) && asked.from <= from && to <= asked.until {
            return true;
        }
        asked.made_for = None;
        let until = self.programs.iter().map(|program| program.alive_until(from)).min();
        let until = until.unwrap_or(i64::MAX);
        if to > until {
            return false;
        }
        let alive = self
            .programs
            .iter()
            .map(|program| program.alive(program.alive_at(from)));
        let wanted = alive.flat_map(|alive| alive.predicates.iter().copied());
        asked.find_index(distinct(wanted.collect()), predicates);
        asked.made_for = Some((arcs_version, version));
        (asked.from, asked.until) = (from, until);
        true
    }
}

fn distinct(mut predicates: Vec<u32>) -> Vec<u32> {
    predicates.sort_unstable();
    predicates.dedup();
    predicates
}

impl Asked {
    /// Puts the index of these predicates first.
    fn find_index(&mut self, wanted: Vec<u32>, predicates: &Predicates) {
        if self.indexes_version != predicates.version {
            self.indexes.clear();
            self.indexes_version = predicates.version;
        }
        let known = self.indexes.iter().position(|index| index.predicates() == wanted);
        let place = known.unwrap_or_else(|| {
            self.indexes.truncate(MOST_INDEXES - 1);
            self.indexes.push(PredicateIndex::new(wanted, predicates));
            self.indexes.len() - 1
        });
        self.indexes[..=place].rotate_right(1);
    }
}
