//! A late event and a short list: the list as it was and the list as it is now are stepped side by side, until they are
//! the same again.

use crate::changes::found::Findings;
use crate::keys::key::Key;
use crate::keys::page::Page;
use crate::keys::spine::Place;
use crate::lists::configuration::{FINAL, Word, code_of, start_row};
use crate::lists::lane::{Lane, List};
use crate::lists::matcher::Matcher;
use crate::lists::shapes::MOST_WORDS;
use crate::lists::stepper::{Entries, Nobody, Shaped, Stepper};
use crate::predicates::class_reader::ClassReader;
use crate::program::compiled::{Program, UNRELEASED};
use crate::rows::store::{Rows, parts};
use crate::rows::stretch::Stretch;

/// A list on its way: with its shape if it has one, else as it stands in the lane.
#[derive(Debug, Default)]
pub(crate) struct Stepping {
    shaped: Option<Shaped>,
    lane: Lane,
}

/// An event: its row, time and class.
pub(crate) type Event = (u32, i64, u32);

impl Matcher<'_> {
    /// Whether the list that enters a page is so short that it is best stepped whole.
    pub(crate) fn may_be_paired(&self, pattern: usize, page: &Page, lane: usize) -> bool {
        page.entering[lane].list().len() < MOST_WORDS && !self.may_be_full(pattern, 2 * MOST_WORDS)
    }

    /// What a late event does to the list of a lane at its place, and what follows from that.
    pub(crate) fn insert_paired(&mut self, key: &mut Key, lane: usize, row: u32, class: u32, place: Place) {
        let (mut old, mut new) = std::mem::take(&mut self.late.pair);
        let ts = self.rows.ts(row);
        let mut walk = self.pair_walk(self.lanes[lane]);
        let page = &mut key.spine.pages[place.page];
        walk.stepper.enter(&mut old, &mut page.entering[lane]);
        walk.step_to(&mut old, page, place.slot);
        new.copy(&old);
        if walk.stepper.advance_beside(&mut new, &mut old, (row, ts, class)) {
            walk.note_inserts(&mut new, row);
        }
        let reaches_end = !old.is(&new) && walk.follow(key, lane, place, &mut old, &mut new);
        walk.count_refused();
        self.late.pair = (old, new);
        if reaches_end {
            self.keep_all(key);
        }
    }

    /// What follows from it that the list which enters a page was the one in the buffer.
    pub(crate) fn follow_paired(&mut self, key: &mut Key, lane: usize, number: usize) {
        let (mut old, mut new) = std::mem::take(&mut self.late.pair);
        let mut was = std::mem::take(&mut self.late.lane);
        let mut walk = self.pair_walk(self.lanes[lane]);
        let page = &mut key.spine.pages[number];
        page.forget_track(lane, 0);
        walk.stepper.enter(&mut new, &mut page.entering[lane]);
        walk.stepper.enter(&mut old, &mut was);
        let place = Place { page: number, slot: 0 };
        let reaches_end = walk.follow(key, lane, place, &mut old, &mut new);
        walk.count_refused();
        (self.late.pair, self.late.lane) = ((old, new), was);
        if reaches_end {
            self.keep_all(key);
        }
    }

    pub(crate) fn pair_walk(&mut self, pattern: usize) -> PairWalk<'_> {
        PairWalk {
            stepper: Stepper {
                program: &mut self.programs[pattern],
                rows: self.rows,
                max_partial_matches: self.max_partial_matches,
                refused: 0,
            },
            findings: self.findings,
            pattern,
        }
    }
}

impl Stepper<'_> {
    pub(crate) fn enter(&mut self, list: &mut Stepping, lane: &mut Lane) {
        list.shaped = self.shape_of(lane).map(|_| Shaped::of(self.program, lane));
        if list.shaped.is_none() {
            list.lane.copy(lane);
        }
    }

    /// Steps a list over one event; the answer is whether a word has a final state then.
    #[inline]
    pub(crate) fn advance(&mut self, list: &mut Stepping, event: Event) -> bool {
        self.advance_shaped(list, event)
            .unwrap_or_else(|| event.2 < UNRELEASED && self.advance_slowly(list, event))
    }

    /// The same while another list is on its way too: what is learnt for the one may make the shape of the other one
    /// forgotten.
    #[inline]
    pub(crate) fn advance_beside(&mut self, list: &mut Stepping, other: &mut Stepping, event: Event) -> bool {
        self.advance_shaped(list, event)
            .unwrap_or_else(|| event.2 < UNRELEASED && self.advance_slowly_beside(list, other, event))
    }

    #[inline]
    fn advance_shaped(&mut self, list: &mut Stepping, (row, ts, class): Event) -> Option<bool> {
        let shaped = list.shaped.as_mut()?;
        let found = self.program.shapes.moves().find(shaped.shape, class);
        if found.is_stuck() || ts >= shaped.expires {
            return None;
        }
        shaped.follow(found, row, ts.saturating_add(self.program.window.span()));
        Some(found.is_final())
    }

    #[cold]
    fn advance_slowly_beside(&mut self, list: &mut Stepping, other: &mut Stepping, event: Event) -> bool {
        if let Some(shaped) = &mut other.shaped {
            shaped.put_into(self.program, &mut other.lane);
        }
        let is_final = self.advance_slowly(list, event);
        if !self.program.shapes.has(other.lane.shape) {
            other.shaped = None;
        }
        is_final
    }

    #[cold]
    fn advance_slowly(&mut self, list: &mut Stepping, (row, ts, class): Event) -> bool {
        if let Some(shaped) = &mut list.shaped {
            let (shape, is_open) = (self.program.shapes.first() + shaped.shape, ts < shaped.expires);
            shaped.put_into(self.program, &mut list.lane);
            let is_known = is_open && self.learn(&mut list.lane, class, row);
            if is_known
                && self.shape_of(&mut list.lane) == Some(shape)
                && let Some(is_final) = self.advance_shaped(list, (row, ts, class))
            {
                return is_final;
            }
        }
        let event = Entries {
            row: |_| row,
            times: &[ts],
            classes: &[class],
        };
        self.step_over(&mut list.lane, &event, Nobody);
        let is_shaped = self.shape_of(&mut list.lane).is_some();
        list.shaped = is_shaped.then(|| Shaped::of(self.program, &list.lane));
        list.lane.list().iter().any(|word| code_of(*word) & FINAL != 0)
    }
}

impl Stepping {
    pub(crate) fn copy(&mut self, other: &Self) {
        self.shaped.clone_from(&other.shaped);
        if self.shaped.is_none() {
            self.lane.copy(&other.lane);
        }
    }

    /// Goes over entries, whose rows and classes are told, as far as moves are known and no window closes; the answer is
    /// over how many.
    pub(crate) fn go(
        &mut self,
        program: &Program,
        rows: &Rows,
        times: &[i64],
        event: impl FnMut(usize) -> (u32, u32),
    ) -> usize {
        let shaped = self.shaped.as_mut();
        shaped.map_or(0, |shaped| shaped.go(program, rows, times, event))
    }

    #[inline]
    pub(crate) fn is(&self, other: &Self) -> bool {
        match (&self.shaped, &other.shaped) {
            (Some(one), Some(other)) => one.shape == other.shape && one.has_starts_of(other),
            (None, None) => self.lane.list() == other.lane.list(),
            _ => false,
        }
    }

    fn list(&mut self, program: &Program) -> List {
        match &mut self.shaped {
            Some(shaped) => shaped.words(program).collect(),
            None => self.lane.list().into(),
        }
    }

    pub(crate) fn put_into(&mut self, program: &Program, lane: &mut Lane) {
        match &mut self.shaped {
            Some(shaped) => shaped.put_into(program, lane),
            None => lane.copy(&self.lane),
        }
    }
}

/// One pattern on its way over the entries behind a late event.
pub(crate) struct PairWalk<'a> {
    pub(crate) stepper: Stepper<'a>,
    pub(crate) findings: &'a mut Findings,
    pub(crate) pattern: usize,
}

impl PairWalk<'_> {
    /// Steps a list from where it enters a page to a slot.
    fn step_to(&mut self, list: &mut Stepping, page: &Page, slot: usize) {
        let (pattern, rows): (usize, &Rows) = (self.pattern, self.stepper.rows);
        let times = &page.times(rows)[..slot];
        let mut at = 0;
        while at < slot {
            if let (Some(shaped), Stretch::Listed(listed)) = (&mut list.shaped, page.stretch()) {
                let (listed, mut classes) = (&listed[at..slot], ClassReader::new(rows, pattern));
                let event = |next: usize| (listed[next], classes.of(listed[next]));
                at += shaped.go(self.stepper.program, rows, &times[at..], event);
            }
            if at < slot {
                let row = page.row(at);
                self.stepper.advance(list, (row, times[at], rows.class(pattern, row)));
                at += 1;
            }
        }
    }

    /// Steps both lists over the entries from a place on, until they are the same. Where they are not, what enters a
    /// page, or comes after the last, is the new one; true if it came so far.
    fn follow(&mut self, key: &mut Key, lane: usize, place: Place, old: &mut Stepping, new: &mut Stepping) -> bool {
        let (mut number, mut slot) = (place.page, place.slot);
        while let Some(page) = key.spine.pages.get(number) {
            if self.step_pair(page, slot, old, new) {
                return false;
            }
            (number, slot) = (number + 1, 0);
            if let Some(next) = key.spine.pages.get_mut(number) {
                next.forget_track(lane, 0);
                new.put_into(self.stepper.program, &mut next.entering[lane]);
            }
        }
        new.put_into(self.stepper.program, &mut key.lanes[lane]);
        true
    }

    /// Steps both lists over the entries of a page from a slot on; true as soon as they are the same.
    pub(crate) fn step_pair(&mut self, page: &Page, slot: usize, old: &mut Stepping, new: &mut Stepping) -> bool {
        let (pattern, rows): (usize, &Rows) = (self.pattern, self.stepper.rows);
        let times = page.times(rows);
        let mut at = slot;
        while at < times.len() {
            let (count, are_same) = match page.stretch().part(at, times.len()) {
                Stretch::Run(first, _) => {
                    let (chunk, offset) = parts(first);
                    let classes = &rows.chunk(chunk).classes(pattern)[offset..];
                    #[allow(clippy::cast_possible_truncation)] // a run lies in one chunk
                    let event = |next: usize| (first + next as u32, classes[next]);
                    self.step_known(old, new, &times[at..], event)
                }
                Stretch::Listed(listed) => {
                    let mut classes = ClassReader::new(rows, pattern);
                    let event = |next: usize| (listed[next], classes.of(listed[next]));
                    self.step_known(old, new, &times[at..], event)
                }
                Stretch::Gapped(_) => unreachable!("a page is a run or a list"),
            };
            at += count;
            if are_same {
                return true;
            }
            if at < times.len() {
                let row = page.row(at);
                self.step_both(old, new, (row, times[at], rows.class(pattern, row)));
                if old.is(new) {
                    return true;
                }
                at += 1;
            }
        }
        false
    }

    /// Steps both as far as their moves are known and no window closes, or until they are the same: then they are not
    /// stepped any further. The answer is over how many entries, and whether they are the same.
    #[inline]
    pub(crate) fn step_known(
        &mut self,
        old: &mut Stepping,
        new: &mut Stepping,
        times: &[i64],
        event: impl FnMut(usize) -> (u32, u32),
    ) -> (usize, bool) {
        let (Some(old), Some(new)) = (&mut old.shaped, &mut new.shaped) else {
            return (0, false);
        };
        let (program, rows) = (&*self.stepper.program, self.stepper.rows);
        let known = (program.shapes.moves(), program.window.span());
        let (count, are_same) = old.go_beside(new, known, times, event, |old, new, row| {
            let (old, new) = (old.words(program), new.words(program));
            note_words(self.findings, program, self.pattern, row, &old, &new);
        });
        old.look_up_expiry(program, rows);
        if !are_same {
            new.look_up_expiry(program, rows);
        }
        (count, are_same)
    }

    /// Steps both lists over one entry.
    #[inline]
    pub(crate) fn step_both(&mut self, old: &mut Stepping, new: &mut Stepping, event: Event) {
        let before = self.stepper.advance_beside(old, new, event);
        let after = self.stepper.advance_beside(new, old, event);
        if before || after {
            self.note_differences(old, new, event.0);
        }
    }

    /// What the limit has refused counts, whichever list it was.
    pub(crate) fn count_refused(&mut self) {
        self.findings.refused += std::mem::take(&mut self.stepper.refused);
    }

    pub(crate) fn note_inserts(&mut self, new: &mut Stepping, row: u32) {
        let program = &*self.stepper.program;
        self.findings.note_list(program, self.pattern, row, &new.list(program));
    }

    #[cold]
    fn note_differences(&mut self, old: &mut Stepping, new: &mut Stepping, row: u32) {
        let program = &*self.stepper.program;
        let (old, new) = (old.list(program), new.list(program));
        let (old, new) = (old.iter().copied(), new.iter().copied());
        note_words(self.findings, program, self.pattern, row, &old, &new);
    }
}

/// Notes what ends at a row now and did not before, and the other way round.
fn note_words(
    findings: &mut Findings,
    program: &Program,
    pattern: usize,
    row: u32,
    old: &(impl Iterator<Item = Word> + Clone),
    new: &(impl Iterator<Item = Word> + Clone),
) {
    let is_final = |word: &Word| code_of(*word) & FINAL != 0;
    for word in old.clone().filter(is_final) {
        let (start, code) = (start_row(word), code_of(word));
        let after = new.clone().find(|word| start_row(*word) == start).map(code_of);
        findings.note_difference(program, pattern, start, row, Some(code), after);
    }
    for word in new.clone().filter(is_final) {
        let (start, code) = (start_row(word), code_of(word));
        if !old.clone().any(|word| start_row(word) == start && is_final(&word)) {
            findings.note_difference(program, pattern, start, row, None, Some(code));
        }
    }
}
