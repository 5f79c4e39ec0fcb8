//! What a late event's walk has to know of the lists on its way: where their words come from, and what of them is final.

use crate::changes::found::{Findings, Found};
use crate::keys::page::Page;
use crate::keys::spine::Place;
use crate::lists::configuration::{Code, DEAD, FINAL, start_row};
use crate::lists::shapes::{Move, Moves};
use crate::lists::track::{Origins, Passed};
use crate::program::compiled::Program;

/// A list on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Passing {
    pub(crate) shape: u32,
    pub(crate) origins: Origins,
}

/// The list as it was and the list as it is now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sides {
    pub(crate) old: Passing,
    pub(crate) new: Passing,
}

/// Where a late event comes in, and for whom.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Course {
    pub(crate) pattern: usize,
    pub(crate) lane: usize,
    /// The late event.
    pub(crate) row: u32,
    pub(crate) place: Place,
}

/// The page of a late event, and how the entries before it were passed.
#[derive(Clone, Copy)]
pub(crate) struct Home<'a> {
    page: &'a Page,
    steps: &'a [Passed],
}

/// What of a list is final: one word at most, by its origin, and in one configuration, or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Finals {
    None,
    Only { origin: u64, configuration: u32 },
    Several,
}

impl<'a> Home<'a> {
    #[inline]
    pub(crate) fn new(page: &'a Page, steps: &'a [Passed]) -> Self {
        Self { page, steps }
    }
}

impl Sides {
    /// Whether the lists are the same.
    #[inline]
    pub(crate) fn are_same(&self) -> bool {
        self.old == self.new
    }

    /// Follows the moves of an event after the late one.
    #[inline]
    pub(crate) fn follow(&mut self, old: Move, new: Move) {
        self.old = self.old.follow(old, Origins::LATER);
        self.new = self.new.follow(new, Origins::LATER);
    }

    /// Goes over entries that the old list has passed, until the lists are the same, as long as there is nothing special to
    /// their moves; the answer is over how many. Their steps are those of the new list then.
    #[inline(never)] // small enough to have all of it in registers
    pub(crate) fn go_plainly(&mut self, moves: Moves<'_>, steps: &mut [Passed]) -> usize {
        let Self { mut old, mut new } = *self;
        let mut taken = 0;
        for step in steps {
            let Some(found) = moves.get(new.shape, step.class) else {
                break;
            };
            if step.found.is_special() || found.is_special() {
                break;
            }
            old = old.follow_plainly(step.found);
            new = new.follow_plainly(*found);
            step.found = *found;
            taken += 1;
            if old == new {
                break;
            }
        }
        *self = Self { old, new };
        taken
    }
}

impl Passing {
    /// Follows a move; a word that begins has this origin.
    #[inline]
    pub(crate) fn follow(self, found: Move, born: u64) -> Self {
        Self {
            shape: found.next,
            origins: self.origins.follow(found, born),
        }
    }

    /// The same if there is nothing special to the move, at an event after the late one.
    #[inline]
    fn follow_plainly(self, found: Move) -> Self {
        Self {
            shape: found.next,
            origins: self.origins.follow_plainly(found),
        }
    }

    fn finals(self, program: &Program, is_final: bool) -> Finals {
        if !is_final {
            return Finals::None;
        }
        let only = program.shapes.only_ending(program.shapes.first() + self.shape);
        only.map_or(Finals::Several, |(place, configuration)| Finals::Only {
            origin: self.origins.of(place),
            configuration,
        })
    }

    /// Origins and codes of the words.
    fn words(self, program: &Program) -> impl Iterator<Item = (u64, Code)> + Clone {
        let codes = program.shapes.codes(program.shapes.first() + self.shape).iter();
        let codes = codes.copied().take_while(|code| *code != DEAD);
        codes
            .enumerate()
            .map(move |(place, code)| (self.origins.of(place), code))
    }
}

impl Course {
    /// The start event of a word that did not begin after the late event: it is followed back to where it began.
    pub(crate) fn start_of(&self, home: Home<'_>, origin: u64) -> u32 {
        if origin == Origins::LATE {
            return self.row;
        }
        #[allow(clippy::cast_possible_truncation)] // the place of a word
        let mut place = origin as usize;
        for (slot, passed) in home.steps[..self.place.slot].iter().enumerate().rev() {
            if place == passed.found.count() {
                return home.page.row(slot);
            }
            place = passed.found.place_before(place);
        }
        start_row(home.page.entering[self.lane].list()[place])
    }

    /// Notes what ends at a row now and did not before, and the other way round; which of the lists may have final words
    /// is known.
    pub(crate) fn note(
        &self,
        findings: &mut Findings,
        program: &Program,
        home: Home<'_>,
        row: u32,
        sides: Sides,
        (before, after): (bool, bool),
    ) {
        let (old, new) = (sides.old.finals(program, before), sides.new.finals(program, after));
        if old == Finals::Several || new == Finals::Several {
            return self.note_words(findings, program, home, row, sides, (before, after));
        }
        if old == new {
            return;
        }
        for (finals, retracts) in [(old, true), (new, false)] {
            // What began after the late event is in both.
            if let Finals::Only { origin, configuration } = finals
                && origin != Origins::LATER
            {
                findings.list.push(Found {
                    record: findings.record,
                    retracts,
                    pattern: self.pattern,
                    start: self.start_of(home, origin),
                    end: row,
                    configuration,
                });
            }
        }
    }

    #[cold]
    fn note_words(
        &self,
        findings: &mut Findings,
        program: &Program,
        home: Home<'_>,
        row: u32,
        Sides { old, new }: Sides,
        (before, after): (bool, bool),
    ) {
        let finals = |list: Passing, has_any: bool| {
            let words = list.words(program).filter(|(_, code)| code & FINAL != 0);
            words.filter(move |(origin, _)| has_any && *origin != Origins::LATER)
        };
        for (origin, code) in finals(old, before) {
            let now = finals(new, after).find(|(other, _)| *other == origin);
            let start = self.start_of(home, origin);
            findings.note_difference(program, self.pattern, start, row, Some(code), now.map(|(_, code)| code));
        }
        for (origin, code) in finals(new, after) {
            if finals(old, before).all(|(other, _)| other != origin) {
                let start = self.start_of(home, origin);
                findings.note_difference(program, self.pattern, start, row, None, Some(code));
            }
        }
    }
}
