//! The predicates that all patterns ask for, evaluated together.

use crate::engine::Engine;
use crate::predicate::Predicates;
use crate::predicate_index::PredicateIndex;

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
}

impl Engine {
    /// Sees to it that the truths that patterns ask for in this stretch of time are known for all rows of a chunk.
    pub(crate) fn prepare(&mut self, chunk: usize, from: i64, to: i64) {
        self.ready_asked(from, to);
        if to <= self.asked.until {
            let (index, predicates) = (&self.asked.indexes[0], &mut self.shared.predicates);
            self.rows.ready_truths(chunk, index, predicates);
            return;
        }
        for program in &self.programs {
            program.prepare(&mut self.rows, chunk, &mut self.shared, from, to);
        }
    }

    /// Sees to it that it is known what patterns ask for, if they ask for the same all the time.
    fn ready_asked(&mut self, from: i64, to: i64) {
        let (asked, predicates) = (&mut self.asked, &self.shared.predicates);
        let (arcs_version, version) = (self.shared.arcs_version, predicates.version);
        if asked.made_for == Some((arcs_version, version)) && asked.from <= from && to <= asked.until {
            return;
        }
        let until = self.programs.iter().map(|program| program.alive_until(from)).min();
        (asked.from, asked.until) = (from, until.unwrap_or(i64::MAX));
        asked.made_for = None;
        if to > asked.until {
            return;
        }
        let alive = self
            .programs
            .iter()
            .map(|program| program.alive(program.alive_at(from)));
        let mut wanted: Vec<u32> = alive.flat_map(|alive| alive.predicates.iter().copied()).collect();
        wanted.sort_unstable();
        wanted.dedup();
        asked.find_index(wanted, predicates);
        asked.made_for = Some((arcs_version, version));
    }
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
