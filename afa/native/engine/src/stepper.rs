//! The innermost loop: the list of one pattern, stepped over entries in event order.

use crate::configuration::{DEAD, FINAL, Word, code_of, start_row, word};
use crate::keeping::keep_to;
use crate::lane::{Lane, List};
use crate::matcher::expiry;
use crate::pattern::Window;
use crate::program::{Program, UNRELEASED};
use crate::rows::Rows;
use crate::shapes::{MOST_WORDS, Move};

/// Entries to be stepped over, by their number among them.
pub(crate) struct Entries<'a, R: Fn(usize) -> u32> {
    pub(crate) row: R,
    pub(crate) times: &'a [i64],
    pub(crate) classes: &'a [u32],
}

/// Start events go round in this many places: more than a list with a shape has words, and one that begins.
const RING: usize = 16;

/// A pattern that steps its lists.
pub(crate) struct Stepper<'a> {
    pub(crate) program: &'a mut Program,
    pub(crate) rows: &'a Rows,
    pub(crate) max_partial_matches: usize,
    /// Partial matches that the limit has refused.
    pub(crate) refused: usize,
}

/// A list that has a shape (numbered from 0 on), on its way: the start events of its words, from `head` on, go round.
#[derive(Clone, Debug)]
pub(crate) struct Shaped {
    pub(crate) shape: u32,
    pub(crate) expires: i64,
    starts: [u32; RING],
    head: usize,
    length: usize,
}

impl<'a> Stepper<'a> {
    /// One that steps again what was stepped before, so that no limit has to be looked at.
    pub(crate) fn unlimited(program: &'a mut Program, rows: &'a Rows) -> Self {
        Self {
            program,
            rows,
            max_partial_matches: usize::MAX,
            refused: 0,
        }
    }
}

impl Stepper<'_> {
    /// Steps the list of a lane over entries. `note` hears of every word with a final state, with the number of the
    /// entry that led there.
    #[inline]
    pub(crate) fn step_over<R: Fn(usize) -> u32>(
        &mut self,
        lane: &mut Lane,
        entries: &Entries<'_, R>,
        mut note: impl FnMut(&Program, usize, Word),
    ) {
        let mut at = 0;
        loop {
            let shape = self.shape_of(lane);
            if shape.is_some() {
                at = self.step_shaped(lane, entries, at, &mut note);
            }
            let (Some(ts), Some(class)) = (entries.times.get(at), entries.classes.get(at)) else {
                return;
            };
            if *class >= UNRELEASED {
                at += 1;
                continue;
            }
            if *ts >= lane.expires {
                lane.expires = expire(self.program, self.rows, lane.edit(), *ts);
            }
            let is_known = shape.is_some() && *ts < i64::MAX && self.learn(lane, *class, (entries.row)(at));
            if !is_known {
                self.step_any(lane, entries, at, &mut note);
                at += 1;
            }
        }
    }

    /// Whether the move that comes next is known, now at the latest.
    fn learn(&mut self, lane: &mut Lane, class: u32, row: u32) -> bool {
        let rows = self.rows;
        self.shape_of(lane)
            .is_some_and(|shape| self.program.learn_move(shape, class, || rows.view(row)))
    }

    /// The shape of a list, unless it is long or the limit is near.
    #[inline]
    pub(crate) fn shape_of(&mut self, lane: &mut Lane) -> Option<u32> {
        if self.may_be_full(MOST_WORDS + 1) {
            return None;
        }
        if !self.program.shapes.has(lane.shape) {
            lane.shape = self.program.shapes.shape_of(lane.list())?;
        }
        Some(lane.shape)
    }

    /// Steps the list of a lane over one entry, if its move is known; `None`: nothing was done. The answer is
    /// whether a word has a final state.
    #[inline]
    pub(crate) fn step_one(&mut self, lane: &mut Lane, row: u32, ts: i64, class: u32) -> Option<bool> {
        let program = &*self.program;
        let found = program.find_plain_move(lane, ts, class)?;
        if self.may_be_full(MOST_WORDS + 1) {
            return None;
        }
        let next = program.shapes.first() + found.next;
        let closes = ts.saturating_add(program.window.span());
        lane.follow(found, next, program.shapes.codes(next), row, closes);
        Some(found.is_final())
    }

    /// Whether so many start events may have as many partial matches as a key may have, or more.
    #[inline]
    fn may_be_full(&self, starts: usize) -> bool {
        self.program.sets.largest().saturating_mul(starts) >= self.max_partial_matches
    }

    /// Steps a list that has a shape as far as its moves are known. The answer is the first entry that was not taken.
    #[inline]
    fn step_shaped<R: Fn(usize) -> u32>(
        &mut self,
        lane: &mut Lane,
        entries: &Entries<'_, R>,
        from: usize,
        note: &mut impl FnMut(&Program, usize, Word),
    ) -> usize {
        let program = &*self.program;
        let (span, moves) = (program.window.span(), program.shapes.moves());
        let mut list = Shaped::of(program, lane);
        let mut at = from;
        let end = entries.times.len().min(entries.classes.len());
        let (times, classes) = (&entries.times[..end], &entries.classes[..end]);
        while at < end {
            let (ts, found) = (times[at], moves.find(list.shape, classes[at]));
            if ts >= list.expires || found.is_stuck() {
                break;
            }
            list.follow(found, (entries.row)(at), ts.saturating_add(span));
            if found.is_final() {
                list.note_finals(program, at, note);
            }
            at += 1;
        }
        list.put_into(program, lane);
        self.program.shapes.note_uses(at - from);
        at
    }

    fn step_any<R: Fn(usize) -> u32>(
        &mut self,
        lane: &mut Lane,
        entries: &Entries<'_, R>,
        at: usize,
        note: &mut impl FnMut(&Program, usize, Word),
    ) {
        let (row, ts, class) = ((entries.row)(at), entries.times[at], entries.classes[at]);
        let (program, rows) = (&mut *self.program, self.rows);
        let mut expires = lane.expires;
        let list = lane.edit();
        let mut seen = program.step_list(class, list, || rows.view(row));
        let started = program.begin(class, || rows.view(row));
        if started != DEAD {
            let closes = ts.saturating_add(program.window.span());
            if ts < closes || !matches!(program.window, Window::Time(_)) {
                if list.is_empty() {
                    expires = closes;
                }
                list.push(word(row, started));
                seen |= started;
            }
        }
        if seen & FINAL != 0 {
            let finals = list.iter().filter(|word| code_of(**word) & FINAL != 0);
            finals.for_each(|word| note(program, at, *word));
        }
        if list.len().saturating_mul(program.sets.largest()) >= self.max_partial_matches {
            self.refused += keep_to(&program.sets, list, self.max_partial_matches);
        }
        lane.expires = expires;
    }
}

impl Shaped {
    /// The list of a lane that has a shape.
    #[inline]
    pub(crate) fn of(program: &Program, lane: &Lane) -> Self {
        let mut starts = [0; RING];
        for (start, word) in starts.iter_mut().zip(lane.list()) {
            *start = start_row(*word);
        }
        Self {
            shape: lane.shape - program.shapes.first(),
            expires: lane.expires,
            starts,
            head: 0,
            length: lane.list().len(),
        }
    }

    /// Follows a move at a row; a window that begins now closes then.
    #[inline]
    pub(crate) fn follow(&mut self, found: Move, row: u32, closes: i64) {
        if found.is_scattered() {
            self.scatter(found.kept);
        } else {
            self.head += usize::from(found.front);
        }
        self.length = found.count();
        if found.is_fresh() {
            self.expires = closes;
        }
        *self.start(self.length) = row;
        self.length += usize::from(found.begins());
        self.shape = found.next;
    }

    /// Whether two lists of one shape have the same start events.
    #[inline]
    pub(crate) fn has_starts_of(&self, other: &Self) -> bool {
        let start = |list: &Self, place: usize| list.starts[(list.head + place) % RING];
        (0..self.length).all(|place| start(self, place) == start(other, place))
    }

    /// The list as it is.
    pub(crate) fn list(&mut self, program: &Program) -> List {
        let codes = program.shapes.codes(program.shapes.first() + self.shape);
        (0..self.length)
            .map(|place| word(*self.start(place), codes[place]))
            .collect()
    }

    #[inline]
    fn start(&mut self, place: usize) -> &mut u32 {
        &mut self.starts[(self.head + place) % RING]
    }

    /// Keeps some words, not all of which are neighbours.
    fn scatter(&mut self, kept: u16) {
        let mut to = 0;
        for from in 0..self.length {
            *self.start(to) = *self.start(from);
            to += usize::from(kept >> from & 1);
        }
    }

    #[inline(never)] // seldom called, and the loop needs the registers
    fn note_finals(&mut self, program: &Program, at: usize, note: &mut impl FnMut(&Program, usize, Word)) {
        let codes = program.shapes.codes(program.shapes.first() + self.shape);
        for (place, code) in codes.iter().enumerate().take(self.length) {
            if code & FINAL != 0 {
                note(program, at, word(*self.start(place), *code));
            }
        }
    }

    /// Writes the list back.
    #[inline]
    pub(crate) fn put_into(&mut self, program: &Program, lane: &mut Lane) {
        let shape = program.shapes.first() + self.shape;
        let (codes, length) = (program.shapes.codes(shape), self.length);
        let list = lane.edit();
        let mut words = [0; MOST_WORDS];
        for place in 0..length.min(MOST_WORDS) {
            words[place] = word(*self.start(place), codes[place]);
        }
        list.clear();
        list.extend_from_slice(&words[..length]);
        (lane.shape, lane.expires) = (shape, self.expires);
    }
}

/// Drops the partial matches whose window closes at or before an instant: lists are ordered by start. The answer is
/// when the first of the others expires.
#[cold]
pub(crate) fn expire(program: &Program, rows: &Rows, list: &mut List, ts: i64) -> i64 {
    if !matches!(program.window, Window::Time(_)) {
        return i64::MAX;
    }
    let closed = |word: &Word| expiry(program, rows, start_row(*word)) <= ts;
    let count = list.iter().take_while(|word| closed(word)).count();
    list.drain(..count);
    list.first()
        .map_or(i64::MAX, |word| expiry(program, rows, start_row(*word)))
}
