//! Arcs as a second input: a change over stored events yields the inserts and retractions that the law demands.

use std::sync::Arc;

use crate::configuration::{marked, partial_match, start_row};
use crate::engine::{Engine, Outcome};
use crate::key::Key;
use crate::pattern::Body;

/// An arc to be inserted, or to take the place of the one with its id.
#[derive(Clone, Debug)]
pub struct NewArc {
    /// Its id.
    pub id: Arc<str>,
    /// What it does.
    pub body: Body,
    /// Alive from here.
    pub le: i64,
    /// Alive before here; none is for ever.
    pub re: Option<i64>,
    /// Whether its target is a final state.
    pub is_final: bool,
}

impl Engine {
    /// Inserts or replaces an arc; what it means for stored events is computed at once.
    pub fn set_arc(&mut self, pattern: usize, arc: NewArc) -> Outcome {
        let program = &mut self.programs[pattern];
        let target = program.state_name(arc.body.target).clone();
        let remark = arc.is_final && program.make_final(&target);
        program.set_arc(&arc.id, arc.body, arc.le, arc.re);
        if remark {
            self.remark(pattern);
        }
        self.after_arc_change(pattern)
    }

    /// Removes an arc, its past included.
    pub fn remove_arc(&mut self, pattern: usize, id: &str) -> Outcome {
        self.programs[pattern].remove_arc(id);
        self.after_arc_change(pattern)
    }

    fn after_arc_change(&mut self, pattern: usize) -> Outcome {
        let changes = self.for_each_key(|engine, key, _| engine.reclassify(pattern, key));
        Outcome {
            changes,
            ..Outcome::default()
        }
    }

    fn reclassify(&mut self, pattern: usize, key: &mut Key) {
        let mut place = key.spine.first();
        while let Some(here) = place {
            let cell = key.spine.cell(pattern, here);
            if cell.is_seen() {
                let class = self.programs[pattern].class_of(self.rows.event(key.spine.row(here)));
                if class != cell.class {
                    let cell = key.spine.cell_mut(pattern, here);
                    (cell.class, cell.dirty) = (class, true);
                }
            }
            place = key.spine.next(here);
        }
    }

    /// A state became final after partial matches had reached it: their marks are put right, as matches to come.
    fn remark(&mut self, pattern: usize) {
        self.programs[pattern].forget_transitions();
        for key in self.keys.iter_mut().flatten() {
            let cover = &mut key.covers[pattern].list;
            for partial in cover.iter_mut() {
                *partial = partial_match(start_row(*partial), self.programs[pattern].remarked(marked(*partial)));
            }
            let mut place = key.spine.first();
            while let Some(here) = place {
                key.spine.cell_mut(pattern, here).dirty = true;
                place = key.spine.next(here);
            }
        }
    }
}
