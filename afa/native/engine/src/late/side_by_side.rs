//! The innermost loops of a late event: a list that has a shape goes up to its place, and from there on two of them go
//! side by side. Most ways are short, so that little is made ready for them.

use crate::lists::shapes::{Move, Moves};
use crate::lists::stepper::{Cursor, Shaped, Starts};
use crate::program::compiled::Program;
use crate::rows::store::Rows;

/// A list that has a shape, without its start events, in registers.
#[derive(Clone, Copy)]
struct Runner<'a> {
    shape: u32,
    head: usize,
    /// The move that led here: it knows how long the list is. Copied it would take several registers.
    last: &'a Move,
}

impl<'a> Runner<'a> {
    #[inline]
    fn new(list: &Shaped, standing: &'a Move) -> Self {
        Self {
            shape: list.shape,
            head: list.head,
            last: standing,
        }
    }

    #[inline]
    fn cursor(self) -> Cursor {
        Cursor {
            shape: self.shape,
            head: self.head,
            last: *self.last,
        }
    }

    #[inline]
    fn follow(&mut self, starts: &mut Starts, found: &'a Move, row: u32) {
        if found.is_scattered() {
            self.cursor().scatter(starts, found.kept);
        }
        self.head += usize::from(found.front);
        starts[(self.head + found.count()) % starts.len()] = row;
        (self.shape, self.last) = (found.next, found);
    }

    /// Whether two lists are the same.
    #[inline]
    fn is(self, starts: &Starts, other: Self, others: &Starts) -> bool {
        let place = |head: usize, place: usize| (head + place) % starts.len();
        self.shape == other.shape
            && (0..self.last.length()).all(|at| starts[place(self.head, at)] == others[place(other.head, at)])
    }
}

impl Shaped {
    /// Goes over entries, whose rows and classes are told, as far as moves are known and no window closes; the answer is
    /// the first that was not taken.
    #[inline(never)] // the loop needs the registers
    pub(crate) fn go(
        &mut self,
        program: &Program,
        rows: &Rows,
        times: &[i64],
        mut event: impl FnMut(usize) -> (u32, u32),
    ) -> usize {
        let (moves, standing) = (program.shapes.moves(), Move::standing(self.length));
        let mut runner = Runner::new(self, &standing);
        let limit = first_close(times, self.expires, program.window.span());
        let mut at = 0;
        while at < times.len() && times[at] < limit {
            let (row, class) = event(at);
            let Some(found) = moves.get(runner.shape, class).filter(|found| !found.is_stuck()) else {
                break;
            };
            runner.follow(&mut self.starts, found, row);
            at += 1;
        }
        self.stand_at(runner.cursor());
        self.look_up_expiry(program, rows);
        at
    }

    /// The same with another list beside it, and until they are the same, which is answered too. Told is after which row
    /// a word of either has a final state.
    #[inline(never)] // the loop needs the registers
    pub(crate) fn go_beside(
        &mut self,
        other: &mut Self,
        (moves, span): (Moves<'_>, i64),
        times: &[i64],
        mut event: impl FnMut(usize) -> (u32, u32),
        mut note: impl FnMut(&Self, &Self, u32),
    ) -> (usize, bool) {
        let standing = (Move::standing(self.length), Move::standing(other.length));
        let (mut one, mut another) = (Runner::new(self, &standing.0), Runner::new(other, &standing.1));
        let limit = first_close(times, self.expires.min(other.expires), span);
        let (mut at, mut are_same) = (0, false);
        while at < times.len() && times[at] < limit && !are_same {
            let (row, class) = event(at);
            let (Some(left), Some(right)) = (moves.get(one.shape, class), moves.get(another.shape, class)) else {
                break;
            };
            if left.is_stuck() || right.is_stuck() {
                break;
            }
            one.follow(&mut self.starts, left, row);
            another.follow(&mut other.starts, right, row);
            if left.is_final() || right.is_final() {
                self.stand_at(one.cursor());
                other.stand_at(another.cursor());
                note(self, other, row);
            }
            at += 1;
            are_same = one.is(&self.starts, another, &other.starts);
        }
        self.stand_at(one.cursor());
        other.stand_at(another.cursor());
        (at, are_same)
    }
}

/// The first instant at which a window may close: that of a list's first word, or one that begins with the first entry.
#[inline]
pub(crate) fn first_close(times: &[i64], expires: i64, span: i64) -> i64 {
    let begun = times.first().map_or(i64::MAX, |ts| ts.saturating_add(span.max(1)));
    expires.min(begun)
}
