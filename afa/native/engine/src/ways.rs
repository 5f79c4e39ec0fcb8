//! The ways of one start event, followed forth: where no two ever meet, what a match has bound is known as its events
//! come, and what several matches have bound alike is kept once.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::class_reader::ClassReader;
use crate::configuration::{Code, DEAD, Link, SLOW, unmarked};
use crate::found::Found;
use crate::key::Key;
use crate::program::{Program, UNRELEASED, UNSEEN};
use crate::rows::Rows;
use crate::spine::Place;

/// The events that were bound to one variable: the first ones of a trail.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Part {
    pub(crate) trail: usize,
    pub(crate) length: usize,
}

/// By variable what was bound; few queries have many.
type Parts = SmallVec<[Part; 4]>;

/// What leads to one configuration: by variable what was bound.
#[derive(Clone, Debug)]
struct Way {
    configuration: u32,
    parts: Parts,
}

/// A match, and by variable what it has bound.
#[derive(Debug)]
pub(crate) struct Followed {
    pub(crate) record: u32,
    pub(crate) end: u32,
    pub(crate) configuration: u32,
    pub(crate) parts: Parts,
}

/// Where a class leads from a set, and how; of no class if that depends on the event itself.
#[derive(Debug)]
struct Step {
    class: u32,
    code: Code,
    next: Code,
    links: Arc<[Link]>,
}

/// Steps that were asked for last.
#[derive(Debug)]
pub(crate) struct Steps(Vec<Step>);

/// The ways of one start event.
#[derive(Debug, Default)]
pub(crate) struct Ways {
    live: Vec<Way>,
    /// Rows, each list in order.
    pub(crate) trails: Vec<Vec<u32>>,
    pub(crate) matches: Vec<Followed>,
}

impl Default for Steps {
    fn default() -> Self {
        let nothing = || Step {
            class: UNSEEN,
            code: DEAD,
            next: DEAD,
            links: Arc::new([]),
        };
        Self(std::iter::repeat_with(nothing).take(Self::MOST).collect())
    }
}

impl Steps {
    const MOST: usize = 64;

    #[inline]
    fn find(&mut self, program: &mut Program, rows: &Rows, class: u32, code: Code, row: u32) -> &Step {
        let place = (class as usize * 8 + unmarked(code)) % Self::MOST;
        if (self.0[place].class, self.0[place].code) != (class, code) {
            self.0[place] = Self::ask(program, rows, class, code, row);
        }
        &self.0[place]
    }

    #[inline(never)]
    fn ask(program: &mut Program, rows: &Rows, class: u32, code: Code, row: u32) -> Step {
        let (set, view) = (unmarked(code), rows.view(row));
        let next = program.step(class, code, &view);
        let links = program.links(class, set, &view);
        let is_lasting = program.sets.transition(class, set) & SLOW == 0;
        Step {
            class: if is_lasting { class } else { UNSEEN },
            code,
            next,
            links,
        }
    }
}

impl Ways {
    /// Follows those of the event at a place to the last of some matches, which are in order of their ends.
    pub(crate) fn follow(
        program: &mut Program,
        rows: &Rows,
        key: &Key,
        place: Place,
        found: &[Found],
        steps: &mut Steps,
    ) -> Self {
        let mut classes = ClassReader::new(rows, found[0].pattern);
        let mut code = program.origin(classes.of(key.spine.row(place)));
        let variables = program.query.as_ref().map_or(0, |query| query.variables.len());
        let mut followed = Self::default();
        followed
            .live
            .extend(program.sets.set(code).members.iter().map(|configuration| Way {
                configuration: *configuration,
                parts: SmallVec::from_elem(Part::default(), variables),
            }));
        let (mut left, mut first) = (found, place.slot);
        for number in place.page..key.spine.pages.len() {
            let page = &key.spine.pages[number];
            for slot in first..page.len() {
                if left.is_empty() || code == DEAD {
                    return followed;
                }
                let row = page.row(slot);
                let class = classes.of(row);
                if class < UNRELEASED {
                    let step = steps.find(program, rows, class, code, row);
                    followed.go(&step.links, row);
                    code = step.next;
                    let ending = left.iter().take_while(|found| found.end == row).count();
                    followed.end(&left[..ending]);
                    left = &left[ending..];
                }
            }
            first = 0;
        }
        followed
    }

    /// Follows links at an event.
    #[inline]
    fn go(&mut self, links: &[Link], row: u32) {
        if let ([way], [link]) = (&mut self.live[..], links) {
            way.configuration = link.to;
            if let Some(variable) = link.binds {
                bind(&mut self.trails, &mut way.parts[usize::from(variable)], row);
            }
            return;
        }
        let before = std::mem::take(&mut self.live);
        for link in links {
            let Some(way) = before.iter().find(|way| way.configuration == link.from) else {
                continue;
            };
            let mut way = way.clone();
            way.configuration = link.to;
            if let Some(variable) = link.binds {
                bind(&mut self.trails, &mut way.parts[usize::from(variable)], row);
            }
            self.live.push(way);
        }
    }

    /// Notes matches that end here.
    fn end(&mut self, found: &[Found]) {
        for found in found {
            let is_its = |way: &&Way| way.configuration == found.configuration;
            self.matches.extend(self.live.iter().find(is_its).map(|way| Followed {
                record: found.record,
                end: found.end,
                configuration: found.configuration,
                parts: way.parts.clone(),
            }));
        }
    }
}

/// Binds an event: the trail goes on, or another one begins like it if it went on otherwise.
fn bind(trails: &mut Vec<Vec<u32>>, part: &mut Part, row: u32) {
    let is_open = part.length > 0 && trails[part.trail].len() == part.length;
    if !is_open {
        let begun = trails.get(part.trail).map_or(&[][..], |trail| &trail[..part.length]);
        let trail = begun.to_vec();
        part.trail = trails.len();
        trails.push(trail);
    }
    trails[part.trail].push(row);
    part.length += 1;
}
