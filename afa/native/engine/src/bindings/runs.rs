//! The runs of one start event, followed over stored events: what they have bound is found on the way back.
//!
//! Nothing is kept per run. A key's events with their classes, and the links between configurations that patterns
//! remember per class, are the one structure that all runs share: where a start event leads is a walk over it, and so
//! is the way back from the end of a match to its start.

use std::sync::Arc;

use crate::keys::key::Key;
use crate::keys::spine::Place;
use crate::lists::configuration::{Code, DEAD, Link, unmarked};
use crate::lists::matcher::{expiry, is_closed};
use crate::program::compiled::{Program, UNRELEASED};
use crate::rows::store::Rows;

/// Events that a run has bound, in order: the number of the variable, and the row.
pub(crate) type Bound = Box<[(u16, u32)]>;

/// An event that was consumed.
struct Step {
    row: u32,
    class: u32,
    before: Code,
    /// How it leads on, once that was asked for.
    links: Option<Arc<[Link]>>,
}

/// The runs of a start event as far as they were followed.
pub(crate) struct Runs<'a> {
    pub(crate) program: &'a mut Program,
    rows: &'a Rows,
    key: &'a Key,
    lane: usize,
    pattern: usize,
    /// Where the last event that was consumed stands.
    pub(crate) place: Place,
    /// When their window closes.
    expires: i64,
    steps: Vec<Step>,
    /// What is reached.
    pub(crate) code: Code,
}

impl<'a> Runs<'a> {
    /// Those that begin with the event at a place, if there are such.
    pub(crate) fn begin(
        program: &'a mut Program,
        rows: &'a Rows,
        key: &'a Key,
        (lane, pattern): (usize, usize),
        place: Place,
    ) -> Option<Self> {
        let row = key.spine.row(place);
        let class = rows.class(pattern, row);
        if class >= UNRELEASED {
            return None;
        }
        let code = program.begin(class, || rows.view(row));
        if code == DEAD {
            return None;
        }
        let expires = expiry(program, rows, row);
        if is_closed(program, expires, rows.ts(row)) {
            return None; // at the end of time no window opens
        }
        let before = program.origin(class);
        let first = Step {
            row,
            class,
            before,
            links: None,
        };
        Some(Self {
            program,
            rows,
            key,
            lane,
            pattern,
            place,
            expires,
            steps: vec![first],
            code,
        })
    }

    /// The event that they began with.
    pub(crate) fn first(&self) -> u32 {
        self.steps[0].row
    }

    /// The event that was consumed last.
    pub(crate) fn last(&self) -> u32 {
        self.steps[self.steps.len() - 1].row
    }

    /// Lets them consume the next event; false if none of them goes on.
    pub(crate) fn go_on(&mut self) -> bool {
        while let Some(place) = self.key.spine.next(self.place) {
            self.place = place;
            let row = self.key.spine.row(place);
            let class = self.rows.class(self.pattern, row);
            if class >= UNRELEASED {
                continue;
            }
            let page = &self.key.spine.pages[place.page];
            let is_cut_off = self.program.gap_free && !page.is_linked(self.lane, place.slot);
            if is_cut_off || is_closed(self.program, self.expires, self.rows.ts(row)) {
                return false;
            }
            let before = self.code;
            self.code = self.program.step(class, before, &self.rows.view(row));
            self.steps.push(Step {
                row,
                class,
                before,
                links: None,
            });
            return self.code != DEAD;
        }
        false
    }

    /// What the runs have bound that have come to a configuration, each once; no more than so many, and then false. If
    /// `ends_bound`, only those that have bound the last event.
    pub(crate) fn bindings(&mut self, reached: u32, ends_bound: bool, most: usize, found: &mut Vec<Bound>) -> bool {
        let mut bound: Vec<(u16, u32)> = Vec::new();
        // From the end on: how many steps are left, the configuration after them, the next link to try, and how much
        // was bound behind them.
        let mut ways = vec![(self.steps.len(), reached, 0, 0)];
        while let Some((left, configuration, tried, behind)) = ways.last_mut() {
            bound.truncate(*behind);
            if *left == 0 {
                if found.len() == most {
                    return false;
                }
                found.push(bound.iter().rev().copied().collect());
                ways.pop();
                continue;
            }
            let (step, is_last) = (*left - 1, *left == self.steps.len());
            if self.steps[step].links.is_none() {
                let Step { row, class, before, .. } = self.steps[step];
                let links = self.program.links(class, unmarked(before), &self.rows.view(row));
                self.steps[step].links = Some(links);
            }
            let links = self.steps[step].links.as_deref().unwrap_or_default();
            let leads = |link: &Link| link.to == *configuration && (link.binds.is_some() || !(ends_bound && is_last));
            let Some(next) = links[*tried..].iter().position(leads) else {
                ways.pop();
                continue;
            };
            let link = links[*tried + next];
            *tried += next + 1;
            if let Some(variable) = link.binds {
                bound.push((variable, self.steps[step].row));
            }
            let behind = bound.len();
            ways.push((step, link.from, 0, behind));
        }
        true
    }
}
