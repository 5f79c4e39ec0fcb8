//! Folded keys whose events come closer together than the punctuation lies behind: never are all entries passed, but some
//! are, and these can go once the list after them is known again.

use crate::engine::Engine;
use crate::keys::folded::{Folded, left_of};

impl Engine {
    /// Lets entries of a folded key go that the punctuation has passed. The answer is whether there is room for another
    /// one then.
    #[inline(never)]
    pub(crate) fn settle_passed(&mut self, pattern: usize, number: usize, punctuation: i64) -> bool {
        let folded = self.folded[number].clone();
        let passed = folded.stored().iter().map(|row| self.rows.ts(*row));
        let count = passed.take_while(|ts| *ts < punctuation).count();
        if count == 0 {
            return false;
        }
        let Some(after) = self.step_again(pattern, &folded, count) else {
            return false;
        };
        for row in &folded.stored()[..count] {
            self.rows.release(*row);
        }
        self.folded[number] = folded.without_first(count, &after);
        self.folded[number].has_room()
    }

    /// The list after some of the first entries, found as it was before. None if a move is not known any more.
    fn step_again(&mut self, pattern: usize, folded: &Folded, count: usize) -> Option<Folded> {
        let (program, rows) = (&mut self.programs[pattern], &self.rows);
        let mut after = folded.before_entries(program, rows);
        for row in &folded.stored()[..count] {
            let (ts, class) = (rows.ts(*row), rows.class(pattern, *row));
            if ts >= after.expires() || !program.shapes.has(after.shape()) {
                let left = left_of(program, rows, &after, ts)?;
                after.become_left(&left);
            }
            let found = program.shapes.find_move(after.shape(), class);
            if found.is_stuck() {
                return None;
            }
            let shape = program.shapes.first() + found.next;
            after.follow(found, shape, (*row, ts), ts.saturating_add(program.window.span()));
            after.let_entries_go();
        }
        Some(after)
    }
}
