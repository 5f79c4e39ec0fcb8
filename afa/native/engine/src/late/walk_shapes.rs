//! A late event where all moves are known and no window closes: only shapes are stepped, from the one that its page's
//! track has for its place. Of the words it is known where they come from, which is enough to see when the list as it
//! was and the list as it is now are the same again; their start events are looked up only for what is found.

use crate::changes::found::Findings;
use crate::keys::key::Key;
use crate::keys::page::{MOST_ENTRIES, Page};
use crate::keys::spine::Place;
use crate::late::course::{Course, Home, Passing, Sides};
use crate::late::pair::Event;
use crate::late::side_by_side::first_close;
use crate::lists::configuration::{DEAD, start_row, word};
use crate::lists::lane::{Lane, List};
use crate::lists::matcher::{Matcher, expiry};
use crate::lists::shapes::{MOST_WORDS, Move};
use crate::lists::track::{Edition, Origins, Passed, Track};
use crate::program::compiled::{Program, UNRELEASED};
use crate::rows::store::Rows;

/// So many entries are passed at a time if it is not known yet how: most late events are forgotten soon.
const PASSED_AHEAD: usize = 8;

/// How a walk over pages ended.
#[derive(Clone, Copy, Debug)]
enum Outcome {
    /// The lists are the same again.
    Same,
    /// They differ to the end.
    Differs,
    /// They differ where they enter this page, and from there on moves are not enough.
    StuckAt(usize),
}

/// Entries of a page that are to be stepped over: from one on, whose step is this one of the page's track.
#[derive(Clone, Copy, Debug)]
struct Part {
    first: usize,
    step: usize,
    /// When a window of either list closes first.
    expires: i64,
}

/// One lane, on its way over the entries behind a late event.
struct LateWalk<'a> {
    program: &'a mut Program,
    rows: &'a Rows,
    findings: &'a mut Findings,
    /// The list as it was where the walk came into a page.
    was: &'a mut Lane,
    max_partial_matches: usize,
    edition: Edition,
    course: Course,
}

impl Matcher<'_> {
    /// What a late event does to the list of a lane, which is short, at its place, and what follows from that; false, with
    /// nothing done, if moves are not enough to tell.
    pub(crate) fn insert_tracked(&mut self, key: &mut Key, lane: usize, event: Event, place: Place) -> bool {
        let pattern = self.lanes[lane];
        let (program, begin) = (&mut self.programs[pattern], self.findings.list.len());
        let page = &mut key.spine.pages[place.page];
        let Some(expires) = ready(program, self.rows, &mut page.entering[lane]) else {
            return false;
        };
        let mut walk = LateWalk {
            edition: (self.late.edition, program.shapes.first()),
            program,
            rows: self.rows,
            findings: self.findings,
            was: &mut self.late.lane,
            max_partial_matches: self.max_partial_matches,
            course: Course {
                pattern,
                lane,
                row: event.0,
                place,
            },
        };
        let mut track = walk.open_track(page);
        let came_to = walk.insert(page, &mut track, event, expires);
        page.put_track(lane, track);
        let Some((are_same, sides)) = came_to else {
            self.findings.list.truncate(begin);
            return false;
        };
        if !are_same {
            match walk.follow(key, sides) {
                Outcome::Same => {}
                Outcome::Differs => self.keep_all(key),
                Outcome::StuckAt(page) => self.follow_paired(key, lane, page),
            }
        }
        true
    }
}

impl LateWalk<'_> {
    /// The track of a page that is come to; it has to be given back.
    fn open_track(&mut self, page: &mut Page) -> Track {
        let mut track = page.take_track(self.course.lane);
        track.turn_to(self.edition);
        track
    }

    /// Takes the late event into its page, and steps both lists to where they are the same, or to the page's end. None
    /// if moves are not enough to tell.
    fn insert(&mut self, page: &Page, track: &mut Track, event: Event, expires: i64) -> Option<(bool, Sides)> {
        let (slot, (row, ts, class)) = (self.course.place.slot, event);
        // Its own window may be the first that closes, or one that began in the page.
        let span = self.program.window.span();
        let expires = first_close(page.times(self.rows), first_close(&[ts], expires, span), span);
        if ts >= expires {
            return None;
        }
        if track.len() < slot {
            let shape = self.shape_after(page, track, track.len());
            self.pass(page, track, (track.len(), slot), shape)?;
        }
        let shape = self.shape_after(page, track, slot);
        let found = self.find_move(shape, class, row)?;
        let old = Passing {
            shape,
            origins: Origins::BEFORE,
        };
        let new = old.follow(found, Origins::LATE);
        let mut sides = Sides { old, new };
        track.insert(slot, Passed { class, found });
        if found.is_final() {
            let home = Home::new(page, track.steps());
            self.course
                .note(self.findings, self.program, home, row, sides, (false, true));
        }
        let part = Part {
            first: slot,
            step: slot + 1,
            expires,
        };
        let are_same = self.go(page, track, part, None, &mut sides)?;
        Some((are_same, sides))
    }

    /// The shape of the list after so many entries of a page, which were passed.
    #[inline]
    fn shape_after(&self, page: &Page, track: &Track, count: usize) -> u32 {
        match count.checked_sub(1) {
            Some(last) => track.steps()[last].found.next,
            None => page.entering[self.course.lane].shape - self.program.shapes.first(),
        }
    }

    /// Passes entries of a page that were not passed yet, before which the list has this shape.
    fn pass(&mut self, page: &Page, track: &mut Track, (from, to): (usize, usize), shape: u32) -> Option<()> {
        let mut gathered = [0; MOST_ENTRIES];
        let classes = page.classes(self.course.pattern, (from, to), self.rows, &mut gathered);
        let (mut shape, mut taken) = (shape, 0);
        loop {
            (shape, taken) = track.pass(self.program.shapes.moves(), classes, shape, taken);
            let Some(class) = classes.get(taken) else {
                return Some(());
            };
            if !self.learn(shape, *class, page.row(from + taken)) {
                return None;
            }
        }
    }

    /// The move of a class from a shape, which is learnt if need be.
    #[inline]
    fn find_move(&mut self, shape: u32, class: u32, row: u32) -> Option<Move> {
        let found = self.program.shapes.moves().find(shape, class);
        if !found.is_stuck() {
            return Some(found);
        }
        self.learn(shape, class, row)
            .then(|| self.program.shapes.moves().find(shape, class))
    }

    /// Whether a move can be followed now, if that can be found out without any shape being forgotten.
    #[cold]
    fn learn(&mut self, shape: u32, class: u32, row: u32) -> bool {
        let (rows, program) = (self.rows, &mut *self.program);
        class < UNRELEASED
            && program.shapes.has_room(class)
            && program.learn_move(program.shapes.first() + shape, class, || rows.view(row))
            && program.sets.largest().saturating_mul(MOST_WORDS + 1) < self.max_partial_matches
    }

    /// Steps both lists over a part of a page; the answer is whether they are the same then, none if moves are not enough
    /// to tell. The late event came in here unless its home is another page.
    fn go(
        &mut self,
        page: &Page,
        track: &mut Track,
        part: Part,
        home: Option<Home<'_>>,
        sides: &mut Sides,
    ) -> Option<bool> {
        let (times, mut taken) = (&page.times(self.rows)[part.first..], 0);
        let open = count_open(times, part.expires, self.program.window.span());
        loop {
            if track.len() == part.step + taken && taken < open {
                let (from, to) = (part.first + taken, part.first + open.min(taken + PASSED_AHEAD));
                self.pass(page, track, (from, to), sides.old.shape)?;
            }
            let (before, steps) = track.split_at_mut(part.step);
            let known = steps.len().min(open);
            let home = home.unwrap_or(Home::new(page, before));
            if self.go_over(page, &mut steps[..known], (part.first, &mut taken), home, sides)? {
                return Some(true);
            }
            if taken == open {
                return (open == times.len()).then_some(false);
            }
        }
    }

    /// The same over steps that are known for the old list, the first of which is that over the entry `first`.
    fn go_over(
        &mut self,
        page: &Page,
        steps: &mut [Passed],
        (first, taken): (usize, &mut usize),
        home: Home<'_>,
        sides: &mut Sides,
    ) -> Option<bool> {
        loop {
            *taken += sides.go_plainly(self.program.shapes.moves(), &mut steps[*taken..]);
            if sides.are_same() {
                return Some(true);
            }
            let Some(step) = steps.get_mut(*taken) else {
                return Some(false);
            };
            let row = page.row(first + *taken);
            let (old, new) = (step.found, self.find_move(sides.new.shape, step.class, row)?);
            step.found = new;
            sides.follow(old, new);
            if old.is_final() || new.is_final() {
                let finals = (old.is_final(), new.is_final());
                self.course.note(self.findings, self.program, home, row, *sides, finals);
            }
            *taken += 1;
        }
    }

    /// Steps both lists over the pages behind that of the late event.
    fn follow(&mut self, key: &mut Key, mut sides: Sides) -> Outcome {
        let Course { lane, place, .. } = self.course;
        for number in place.page + 1.. {
            let expires = self.cross(key, number, sides.new);
            let Some(page) = key.spine.pages.get_mut(number) else {
                break;
            };
            let (mut track, begin) = (self.open_track(page), self.findings.list.len());
            let part = Part {
                first: 0,
                step: 0,
                expires,
            };
            let home = &key.spine.pages[place.page];
            let home = Home::new(home, home.steps(lane));
            let came_to = self.go(&key.spine.pages[number], &mut track, part, Some(home), &mut sides);
            key.spine.pages[number].put_track(lane, track);
            match came_to {
                Some(true) => return Outcome::Same,
                Some(false) => {}
                None => {
                    self.findings.list.truncate(begin);
                    return Outcome::StuckAt(number);
                }
            }
        }
        Outcome::Differs
    }

    /// Brings the new list into a page, or behind the last; the answer is when a window of either list closes first.
    fn cross(&mut self, key: &mut Key, number: usize, new: Passing) -> i64 {
        let (course, program) = (self.course, &*self.program);
        let pages = &key.spine.pages;
        let target = match pages.get(number) {
            Some(page) => &page.entering[course.lane],
            None => &key.lanes[course.lane],
        };
        self.was.copy(target);
        let (shape, before) = (program.shapes.first() + new.shape, target.list());
        let codes = program.shapes.codes(shape);
        let length = codes.iter().take_while(|code| **code != DEAD).count();
        let home = &pages[course.place.page];
        let home = Home::new(home, home.steps(course.lane));
        let start = |place: usize| match new.origins.of(place) {
            // Both lists end with the same words.
            Origins::LATER => start_row(before[before.len() + place - length]),
            origin => course.start_of(home, origin),
        };
        let list: List = (0..length).map(|place| word(start(place), codes[place])).collect();
        let target = match key.spine.pages.get_mut(number) {
            Some(page) => &mut page.entering[course.lane],
            None => &mut key.lanes[course.lane],
        };
        *target.edit() = list;
        target.shape = shape;
        target.expires = first_expiry(program, self.rows, target.list());
        first_expiry(program, self.rows, self.was.list()).min(target.expires)
    }
}

/// Sees to it that a list has a shape; the answer is when its first word expires.
fn ready(program: &mut Program, rows: &Rows, lane: &mut Lane) -> Option<i64> {
    if !program.shapes.has(lane.shape) {
        lane.shape = program.shapes.shape_of(lane.list())?;
    }
    if lane.expires == i64::MIN {
        lane.expires = first_expiry(program, rows, lane.list());
    }
    Some(lane.expires)
}

/// When the first word of a list expires.
fn first_expiry(program: &Program, rows: &Rows, list: &[u64]) -> i64 {
    list.first()
        .map_or(i64::MAX, |word| expiry(program, rows, start_row(*word)))
}

/// Of entries in order, how many of the first lie before every window that may close.
fn count_open(times: &[i64], expires: i64, span: i64) -> usize {
    let limit = first_close(times, expires, span);
    if times.last().is_none_or(|last| *last < limit) {
        return times.len();
    }
    times.partition_point(|ts| *ts < limit)
}
