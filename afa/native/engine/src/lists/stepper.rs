//! The innermost loop: the list of one pattern, stepped over entries in event order.

use std::ops::Range;

use crate::lists::configuration::{DEAD, FINAL, Word, code_of, start_row, word};
use crate::lists::idle::Outlook;
use crate::lists::lane::{Lane, List, SHORT_LIST};
use crate::lists::matcher::expiry;
use crate::lists::shapes::{MOST_WORDS, Move, Moves};
use crate::program::compiled::{Program, UNRELEASED};
use crate::program::pattern::Window;
use crate::progress::keeping::keep_to;
use crate::rows::store::Rows;

/// Entries to be stepped over, by their number among them.
pub(crate) struct Entries<'a, R: Fn(usize) -> u32> {
    pub(crate) row: R,
    pub(crate) times: &'a [i64],
    pub(crate) classes: &'a [u32],
}

/// Start events go round in this many places: more than a list with a shape has words, and one that begins.
const RING: usize = 16;

/// Who looks on while a list is stepped.
pub(crate) trait Witness {
    /// A word has a final state after the entry of this number.
    fn note(&mut self, program: &Program, at: usize, word: Word);

    /// The same of one final configuration.
    fn note_one(&mut self, at: usize, word: Word, configuration: u32);

    /// The next entry before which the list is to be kept.
    #[inline]
    fn next_page(&self) -> usize {
        usize::MAX
    }

    /// Begins the page of that entry; the answer is where the list goes.
    fn begin_page(&mut self) -> Option<&mut Lane> {
        None
    }
}

/// Only the list counts.
pub(crate) struct Nobody;

impl Witness for Nobody {
    #[inline]
    fn note(&mut self, _: &Program, _: usize, _: Word) {}

    #[inline]
    fn note_one(&mut self, _: usize, _: Word, _: u32) {}
}

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
    pub(crate) starts: Starts,
    pub(crate) head: usize,
    pub(crate) length: usize,
}

pub(crate) type Starts = [u32; RING];

/// A list that has a shape, without its start events: apart from them, so that a loop has it in registers.
#[derive(Clone, Copy)]
pub(crate) struct Cursor {
    pub(crate) shape: u32,
    pub(crate) head: usize,
    /// The move that led here: it knows how long the list is.
    pub(crate) last: Move,
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
    /// Steps the list of a lane over entries. The witness hears of every word with a final state, with the number of the
    /// entry that led there.
    #[inline]
    pub(crate) fn step_over<R: Fn(usize) -> u32>(
        &mut self,
        lane: &mut Lane,
        entries: &Entries<'_, R>,
        mut witness: impl Witness,
    ) {
        let mut at = 0;
        loop {
            let shape = self.shape_of(lane);
            if shape.is_some() {
                at = self.step_shaped(lane, entries, at, &mut witness);
            }
            let (Some(ts), Some(class)) = (entries.times.get(at), entries.classes.get(at)) else {
                return;
            };
            if at == witness.next_page()
                && let Some(entering) = witness.begin_page()
            {
                entering.copy(lane);
            }
            if *class >= UNRELEASED {
                at += 1;
                continue;
            }
            if *ts >= lane.expires {
                lane.expires = expire(self.program, self.rows, lane.edit(), *ts);
            }
            let is_known = shape.is_some() && *ts < i64::MAX && self.learn(lane, *class, (entries.row)(at));
            if !is_known {
                self.step_any(lane, entries, at, &mut witness);
                at += 1;
            }
        }
    }

    /// Whether the move that comes next is known, now at the latest.
    pub(crate) fn learn(&mut self, lane: &mut Lane, class: u32, row: u32) -> bool {
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
        witness: &mut impl Witness,
    ) -> usize {
        let (mut cursor, mut starts, mut expires) = Shaped::of(self.program, lane).apart();
        let end = entries.times.len().min(entries.classes.len());
        let mut at = from;
        while at < end {
            let program = &*self.program;
            if at == witness.next_page()
                && let Some(entering) = witness.begin_page()
            {
                cursor.put_into(&starts, expires, program, entering);
            }
            let page_end = end.min(witness.next_page());
            let stop = at + count_open(&entries.times[at..page_end], expires, program.window.span());
            at = cursor.go(&mut starts, program, entries, at..stop, witness);
            expires = cursor.expires(&starts, program, self.rows);
            if at == page_end {
                continue;
            }
            let (ts, class) = (entries.times[at], entries.classes[at]);
            let goes_on = if at == stop {
                ts < expires
            } else {
                self.learn_beside(cursor.shape, class, (entries.row)(at))
            };
            if !goes_on {
                break;
            }
        }
        cursor.put_into(&starts, expires, self.program, lane);
        self.program.shapes.note_uses(at - from);
        at
    }

    /// Whether the move of a class from a shape can be followed now, if that can be found out without any shape being
    /// forgotten.
    fn learn_beside(&mut self, shape: u32, class: u32, row: u32) -> bool {
        let (rows, shapes) = (self.rows, &self.program.shapes);
        let shape = shapes.first() + shape;
        shapes.has_room(class)
            && self.program.learn_move(shape, class, || rows.view(row))
            && !self.may_be_full(MOST_WORDS + 1)
    }

    fn step_any<R: Fn(usize) -> u32>(
        &mut self,
        lane: &mut Lane,
        entries: &Entries<'_, R>,
        at: usize,
        witness: &mut impl Witness,
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
            finals.for_each(|word| witness.note(program, at, *word));
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
        let mut cursor = self.cursor();
        cursor.follow(&mut self.starts, found, row);
        self.expires = if found.is_fresh() { closes } else { self.expires };
        self.stand_at(cursor);
    }

    #[inline]
    pub(crate) fn stand_at(&mut self, cursor: Cursor) {
        (self.shape, self.head, self.length) = (cursor.shape, cursor.head, cursor.last.length());
    }

    /// Finds out when the first word expires.
    #[inline]
    pub(crate) fn look_up_expiry(&mut self, program: &Program, rows: &Rows) {
        self.expires = self.cursor().expires(&self.starts, program, rows);
    }

    /// Whether two lists of one shape have the same start events.
    #[inline]
    pub(crate) fn has_starts_of(&self, other: &Self) -> bool {
        let (one, another) = (self.cursor(), other.cursor());
        (0..self.length).all(|place| self.starts[one.place(place)] == other.starts[another.place(place)])
    }

    /// The words of the list.
    #[inline]
    pub(crate) fn words<'a>(&'a self, program: &'a Program) -> impl Iterator<Item = Word> + Clone + 'a {
        let codes = program.shapes.codes(program.shapes.first() + self.shape);
        let places = self.head..self.head + self.length;
        places
            .zip(codes)
            .map(|(place, code)| word(self.starts[place % RING], *code))
    }

    /// Writes the list back.
    #[inline]
    pub(crate) fn put_into(&mut self, program: &Program, lane: &mut Lane) {
        self.cursor().put_into(&self.starts, self.expires, program, lane);
    }

    #[inline]
    fn cursor(&self) -> Cursor {
        Cursor {
            shape: self.shape,
            head: self.head,
            last: Move::standing(self.length),
        }
    }

    #[inline]
    fn apart(self) -> (Cursor, Starts, i64) {
        (self.cursor(), self.starts, self.expires)
    }
}

impl Cursor {
    #[inline]
    fn place(self, place: usize) -> usize {
        (self.head + place) % RING
    }

    /// Goes over entries as far as moves are known; the answer is the first that was not taken. No window closes on the
    /// way.
    #[inline]
    fn go<R: Fn(usize) -> u32>(
        &mut self,
        starts: &mut Starts,
        program: &Program,
        entries: &Entries<'_, R>,
        range: Range<usize>,
        witness: &mut impl Witness,
    ) -> usize {
        let moves = program.shapes.moves();
        let (mut at, classes) = (range.start, &entries.classes[..range.end]);
        let mut outlook = Outlook::default();
        loop {
            // Queries ignore most events, other patterns hardly any.
            at = if program.query.is_some() {
                outlook.next_busy(self.shape, moves.idle(self.shape), classes, at)
            } else {
                self.go_plainly(starts, moves, classes, at, &entries.row)
            };
            let class = classes.get(at);
            let Some(found) = class.and_then(|class| moves.get(self.shape, *class)) else {
                return at;
            };
            if found.is_stuck() {
                return at;
            }
            self.follow(starts, *found, (entries.row)(at));
            if found.is_final() {
                self.note_finals(starts, program, at, witness);
            }
            at += 1;
        }
    }

    /// The same as long as there is nothing special to the moves.
    #[inline(never)] // small enough to have all of it in registers
    fn go_plainly(
        &mut self,
        starts: &mut Starts,
        moves: Moves<'_>,
        classes: &[u32],
        from: usize,
        row: &impl Fn(usize) -> u32,
    ) -> usize {
        let (mut shape, mut head, before) = (self.shape, self.head, self.last);
        let (mut at, mut last) = (from, &before);
        while at < classes.len() {
            let Some(found) = moves.get(shape, classes[at]).filter(|found| !found.is_special()) else {
                break;
            };
            head += usize::from(found.front);
            starts[(head + found.count()) % RING] = row(at);
            (shape, last) = (found.next, found);
            at += 1;
        }
        (self.shape, self.head, self.last) = (shape, head, *last);
        at
    }

    #[inline]
    fn follow(&mut self, starts: &mut Starts, found: Move, row: u32) {
        if found.is_scattered() {
            self.scatter(starts, found.kept);
        }
        self.head += usize::from(found.front);
        starts[self.place(found.count())] = row;
        (self.shape, self.last) = (found.next, found);
    }

    /// Brings words together that stay, not all of which are neighbours.
    pub(crate) fn scatter(self, starts: &mut Starts, kept: u16) {
        let mut to = 0;
        for from in 0..self.last.length() {
            starts[self.place(to)] = starts[self.place(from)];
            to += usize::from(kept >> from & 1);
        }
    }

    /// When the first word expires.
    #[inline]
    fn expires(self, starts: &Starts, program: &Program, rows: &Rows) -> i64 {
        if self.last.length() == 0 {
            return i64::MAX;
        }
        expiry(program, rows, starts[self.place(0)])
    }

    #[inline(never)] // seldom called, and the loop needs the registers
    fn note_finals(self, starts: &Starts, program: &Program, at: usize, witness: &mut impl Witness) {
        let shape = program.shapes.first() + self.shape;
        let (codes, endings) = (program.shapes.codes(shape), program.shapes.endings(shape));
        let word_at = |place: usize| word(starts[self.place(place)], codes[place]);
        if !endings.is_empty() {
            for (place, configuration) in endings {
                witness.note_one(at, word_at((*place).into()), *configuration);
            }
            return;
        }
        for place in (0..self.last.length()).filter(|place| codes[*place] & FINAL != 0) {
            witness.note(program, at, word_at(place));
        }
    }

    #[inline]
    fn put_into(self, starts: &Starts, expires: i64, program: &Program, lane: &mut Lane) {
        let shape = program.shapes.first() + self.shape;
        let (codes, length) = (program.shapes.codes(shape), self.last.length().min(MOST_WORDS));
        let word_at = |place: usize| word(starts[self.place(place)], codes[place]);
        let list = lane.edit();
        if length <= SHORT_LIST && !list.spilled() {
            // What lies behind the end does not matter.
            *list = List::from_buf_and_len(std::array::from_fn(word_at), length);
        } else {
            list.clear();
            list.extend((0..length).map(word_at));
        }
        (lane.shape, lane.expires) = (shape, expires);
    }
}

/// Of entries in order, how many of the first lie before every window that may close: that of the list's first word,
/// and one that begins with the first entry.
#[inline]
fn count_open(times: &[i64], expires: i64, span: i64) -> usize {
    let limit = expires.min(times[0].saturating_add(span.max(1)));
    if times[times.len() - 1] < limit {
        return times.len();
    }
    times.partition_point(|ts| *ts < limit)
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
