//! The predicates that all patterns ask for, evaluated together.

use crate::engine::Engine;
use crate::predicate_index::PredicateIndex;

/// The predicates that patterns ask for, as long as the same arcs are alive.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    index: PredicateIndex,
    /// The version of predicates that it was made with.
    index_version: u64,
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
            let (index, predicates) = (&self.asked.index, &mut self.shared.predicates);
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
        // Most changes of arcs bring back what was asked for before.
        if asked.index_version != version || wanted != asked.index.predicates() {
            (asked.index, asked.index_version) = (PredicateIndex::new(wanted, predicates), version);
        }
        asked.made_for = Some((arcs_version, version));
    }
}
