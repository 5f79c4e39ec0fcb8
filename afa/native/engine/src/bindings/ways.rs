//! The ways of one start event, followed forth: where no two ever meet, what a match has bound is known as its events
//! come, and what several matches have bound alike is kept once.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::bindings::trails::{Bound, Part, Trails};
use crate::changes::found::Found;
use crate::keys::key::Key;
use crate::keys::page::{MOST_ENTRIES, Page};
use crate::keys::spine::Place;
use crate::lists::configuration::{Code, DEAD, FINAL, Link, SLOW, unmarked};
use crate::lists::idle::count_idle;
use crate::program::compiled::{Program, UNRELEASED};
use crate::rows::store::Rows;

/// By variable what was bound; few queries have many.
type Parts = SmallVec<[Part; 4]>;

/// What leads to one configuration: by variable what was bound.
#[derive(Debug)]
struct Way {
    configuration: u32,
    parts: Parts,
}

/// A match, and by variable what it has bound.
#[derive(Debug)]
pub(crate) struct Followed {
    /// Its place among those that are asked for.
    pub(crate) number: u32,
    pub(crate) parts: Parts,
}

/// Matches of one pattern, and the places of those that begin with one event, in order of their ends.
#[derive(Clone, Copy)]
pub(crate) struct AskedFor<'a> {
    pub(crate) found: &'a [Found],
    pub(crate) places: &'a [u32],
}

/// Where a class leads from a set, and how.
#[derive(Debug)]
struct Step {
    class: u32,
    code: Code,
    links: Arc<[Link]>,
    /// What is reached, without configurations that lead nowhere.
    next: Code,
    /// The configurations that are left, if some were.
    left: Option<Arc<[u32]>>,
}

/// A set of one configuration that is not final, and the classes, as bits, whose events leave it as it is, but for
/// configurations that lead nowhere, as far as they were met.
#[derive(Clone, Copy, Debug, Default)]
struct Plain {
    code: Code,
    idle: u64,
    /// Those whose events are bound to this variable.
    binds: u64,
    variable: u16,
}

/// Steps that were asked for last.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    known: Vec<Option<Step>>,
    plain: [Plain; Self::MOST_PLAIN],
}

/// The ways of one start event.
#[derive(Debug, Default)]
pub(crate) struct Ways {
    live: Vec<Way>,
    before: Vec<Way>,
    pub(crate) trails: Trails,
    pub(crate) matches: Vec<Followed>,
}

impl Steps {
    const MOST: usize = 64;
    const MOST_PLAIN: usize = 16;

    /// What is known of a set.
    #[inline]
    fn plain(&mut self, code: Code) -> &mut Plain {
        let plain = &mut self.plain[unmarked(code) % Self::MOST_PLAIN];
        if plain.code != code {
            *plain = Plain {
                code,
                ..Plain::default()
            };
        }
        plain
    }

    #[inline]
    fn find(&mut self, program: &mut Program, rows: &Rows, class: u32, code: Code, row: u32) -> &Step {
        if self.known.is_empty() {
            self.known.resize_with(Self::MOST, || None);
        }
        let place = (class as usize * 8 + unmarked(code)) % Self::MOST;
        let is_it = |known: &Step| (known.class, known.code) == (class, code);
        if !self.known[place].as_ref().is_some_and(is_it) {
            let step = self.ask(program, rows, class, code, row);
            self.known[place] = Some(step);
        }
        self.known[place].as_ref().expect("asked for right before")
    }

    #[inline(never)]
    fn ask(&mut self, program: &mut Program, rows: &Rows, class: u32, code: Code, row: u32) -> Step {
        let (set, view) = (unmarked(code), rows.view(row));
        // What was counted when the list was stepped is not counted again.
        let counted = (program.errors, program.evaluations);
        let next = program.step(class, code, &view);
        let links = program.links(class, set, &view);
        let is_lasting = program.sets.transition(class, set) & SLOW == 0;
        (program.errors, program.evaluations) = counted;
        let left = program.without_dead_ends(next);
        let is_alone = program.sets.size(code) == 1 && code & FINAL == 0 && left == code;
        if is_alone && is_lasting && class < u64::BITS {
            let mut staying = links.iter().filter(|link| link.from == link.to);
            if let (Some(link), None) = (staying.next(), staying.next()) {
                self.plain(code).learn(class, link.binds);
            }
        }
        Step {
            // Of no class if it depends on the event itself.
            class: if is_lasting { class } else { UNRELEASED },
            code,
            links,
            next: left,
            left: (left != next).then(|| program.sets.set(left).members.clone()),
        }
    }
}

/// How many entries of a page, from a slot on, come before this row.
#[inline]
fn count_before(page: &Page, from: usize, row: u32) -> usize {
    if page.is_run() {
        let ahead = row.wrapping_sub(page.row(from)) as usize;
        return ahead.min(page.len() - from);
    }
    (from..page.len()).take_while(|slot| page.row(*slot) != row).count()
}

impl Plain {
    fn learn(&mut self, class: u32, binds: Option<u16>) {
        match binds {
            None => self.idle |= 1 << class,
            Some(variable) if self.binds == 0 || self.variable == variable => {
                self.binds |= 1 << class;
                self.variable = variable;
            }
            Some(_) => {}
        }
    }
}

impl Program {
    /// A set without the configurations of states that no arc leaves.
    fn without_dead_ends(&mut self, code: Code) -> Code {
        if code & FINAL == 0 {
            return code;
        }
        let goes_on = |member: &u32| {
            let state = self.sets.configuration(*member).state;
            self.bodies.iter().any(|known| known.body.source == state)
        };
        let set = self.sets.set(code).clone();
        let members: Vec<u32> = set.members.iter().copied().filter(goes_on).collect();
        if members.len() == set.members.len() {
            return code;
        }
        let left = self.sets.set_number(members, set.consumed, set.is_cut);
        self.code(left)
    }
}

impl Ways {
    /// Follows those of the event at a place to the last of the matches that are asked for.
    pub(crate) fn follow(
        &mut self,
        program: &mut Program,
        (rows, key): (&Rows, &Key),
        place: Place,
        asked: AskedFor<'_>,
        steps: &mut Steps,
    ) {
        let (mut places, pattern) = (asked.places, asked.found[0].pattern);
        let mut code = program.origin(rows.class(pattern, key.spine.row(place)));
        self.begin(program, code);
        let mut first = place.slot;
        let mut gathered = [0; MOST_ENTRIES];
        for number in place.page..key.spine.pages.len() {
            let page = &key.spine.pages[number];
            let classes = page.classes(pattern, (first, page.len()), rows, &mut gathered);
            let mut at = 0;
            while at < classes.len() {
                let Some(next) = places.first().filter(|_| code != DEAD) else {
                    return;
                };
                let from = first + at;
                let end = at + count_before(page, from, asked.found[*next as usize].end);
                at += self.go_plainly(*steps.plain(code), &classes[at..end], |slot| page.row(from + slot));
                let Some(class) = classes.get(at).filter(|class| **class < UNRELEASED) else {
                    at += 1;
                    continue;
                };
                let row = page.row(first + at);
                let step = steps.find(program, rows, *class, code, row);
                self.go(&step.links, row);
                code = step.next;
                places = self.end(asked.found, places, row);
                if let Some(left) = &step.left {
                    self.live.retain(|way| left.contains(&way.configuration));
                }
                at += 1;
            }
            first = 0;
        }
    }

    /// Of each trail, how much of it a match has bound.
    pub(crate) fn lengths(&self) -> Vec<usize> {
        let mut lengths = vec![0; self.trails.all().len()];
        for part in self.matches.iter().flat_map(|found| &found.parts) {
            if let Bound::Trail(trail) = part.events() {
                lengths[trail] = lengths[trail].max(part.length as usize);
            }
        }
        lengths
    }

    fn begin(&mut self, program: &Program, code: Code) {
        let variables = program.query.as_ref().map_or(0, |query| query.variables.len());
        let way = |configuration: &u32| Way {
            configuration: *configuration,
            parts: SmallVec::from_elem(Part::default(), variables),
        };
        self.trails.clear();
        self.matches.clear();
        self.live.clear();
        self.live.extend(program.sets.set(code).members.iter().map(way));
    }

    /// Goes over events that leave the only way as it is but for what it binds; the answer is over how many.
    #[inline]
    fn go_plainly(&mut self, plain: Plain, classes: &[u32], row: impl Fn(usize) -> u32) -> usize {
        let known = plain.idle | plain.binds;
        let ([way], false) = (&mut self.live[..], known == 0) else {
            return 0;
        };
        let count = count_idle(known, classes);
        if plain.binds != 0 {
            let part = &mut way.parts[usize::from(plain.variable)];
            let is_bound = |at: usize| plain.binds >> (classes[at] % u64::BITS) & 1 != 0;
            self.trails.bind_some(part, count, is_bound, row);
        }
        count
    }

    /// Follows links at an event. Ways that have no link end here.
    #[inline]
    fn go(&mut self, links: &[Link], row: u32) {
        if let ([way], [link]) = (&mut self.live[..], links) {
            way.configuration = link.to;
            if let Some(variable) = link.binds {
                self.trails.bind(&mut way.parts[usize::from(variable)], row);
            }
            return;
        }
        std::mem::swap(&mut self.live, &mut self.before);
        self.live.clear();
        for link in links {
            let Some(way) = self.before.iter().find(|way| way.configuration == link.from) else {
                continue;
            };
            let mut parts = Parts::from_slice(&way.parts);
            if let Some(variable) = link.binds {
                self.trails.bind(&mut parts[usize::from(variable)], row);
            }
            self.live.push(Way {
                configuration: link.to,
                parts,
            });
        }
    }

    /// Notes matches that end here; the answer is what is left to be found.
    fn end<'a>(&mut self, found: &[Found], places: &'a [u32], row: u32) -> &'a [u32] {
        let is_here = |number: &&u32| found[**number as usize].end == row;
        let ending = places.iter().take_while(is_here).count();
        for number in &places[..ending] {
            let configuration = found[*number as usize].configuration;
            let way = self.live.iter().find(|way| way.configuration == configuration);
            self.matches.extend(way.map(|way| Followed {
                number: *number,
                parts: Parts::from_slice(&way.parts),
            }));
        }
        &places[ending..]
    }
}
