//! What follows when something changes between stored events: `PropagateInsert` and its like for removals, revisions,
//! arcs, releases and links, all as one walk over the entries from the first change on.
//!
//! Partial matches of different start events never touch each other. So the walk carries, per start event, only the
//! *difference*: the set on the old side and the set on the new side. Where the two are equal the start event is done
//! with; where no difference is left the walk stops.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use crate::keys::key::Key;
use crate::keys::page::Page;
use crate::keys::page_edit::{Here, Step};
use crate::keys::spine::Place;
use crate::late::walker::{Side, Walker, apply_deltas, new_list};
use crate::lists::configuration::{DEAD, start_row, word};
use crate::lists::lane::{Lane, Lanes, List};
use crate::lists::matcher::{Matcher, expiry, is_closed};
use crate::program::compiled::UNRELEASED;
use crate::rows::store::parts;
use crate::rows::stretch::Stretch;

/// Rows with the class that they had and the one that they get.
pub type Reclassed = HashMap<u32, (u32, u32), FixedState>;

/// What is to be changed in one key.
#[derive(Debug, Default)]
pub struct Plan {
    /// Rows to be inserted, in event order.
    pub inserts: Vec<u32>,
    /// Rows to be taken out, in event order.
    pub removals: Vec<u32>,
    /// A pattern whose rows change their class: from, to.
    pub reclassed: Option<(usize, Reclassed)>,
    /// Sequence numbers may have come or gone anywhere: look at every link.
    pub relinks: bool,
}

impl Matcher<'_> {
    /// Changes the entries of a key and finds what that means.
    pub fn apply(&mut self, key: &mut Key, plan: &Plan) {
        let begin = self.findings.list.len();
        self.change(key, plan);
        if plan.relinks && !plan.is_only_links() {
            // A number fills a gap, or leaves one, only when its entry has come or gone.
            let links = Plan {
                relinks: true,
                ..Plan::default()
            };
            self.change(key, &links);
            self.findings.cancel_from(begin);
        }
    }

    fn change(&mut self, key: &mut Key, plan: &Plan) {
        if key.spine.is_empty() {
            if !plan.inserts.is_empty() {
                self.append(key, Stretch::Listed(&plan.inserts), None);
            }
            return;
        }
        self.late.edition += 1;
        let mut walkers = self.walkers(plan);
        let (mut inserts, mut removals) = (plan.inserts.as_slice(), plan.removals.as_slice());
        let mut changed = self.changed_rows(key, plan, &walkers);
        changed.reverse();
        let mut page = 0;
        loop {
            let idle = walkers
                .iter()
                .all(|walker| walker.deltas.is_empty() && !walker.relinks_next);
            if idle {
                let next = self.next_place(key, inserts, removals, changed.last());
                let Some(next) = next else { break };
                page = self.cut_before(key, next);
            }
            if page >= key.spine.pages.len() {
                break;
            }
            self.cut_after(key, page);
            let here = Here::of(self.rows, &key.spine, page, &mut inserts, &mut removals, &mut changed);
            page += self.walk_page(key, page, &here, &mut walkers, plan);
        }
        for walker in &walkers {
            if let Some(lane) = walker.lane {
                apply_deltas(self.rows, key.lanes[lane].edit(), &walker.deltas);
            }
        }
        self.keep_all(key);
    }

    fn walkers(&self, plan: &Plan) -> Vec<Walker> {
        let lanes = self
            .lanes
            .iter()
            .enumerate()
            .map(|(lane, pattern)| (*pattern, Some(lane)));
        let linear = self.linear.iter().map(|pattern| (*pattern, None));
        let only = plan.reclassed.as_ref().map(|(pattern, _)| *pattern);
        lanes
            .chain(linear)
            .filter(|(pattern, _)| only.is_none_or(|only| only == *pattern))
            .filter(|(pattern, _)| !plan.relinks || self.programs[*pattern].gap_free || !plan.is_only_links())
            .map(|(pattern, lane)| Walker {
                pattern,
                lane,
                common: List::new(),
                deltas: Vec::new(),
                converged: List::new(),
                relinks_next: false,
                before: None,
                links: Vec::new(),
                snapshots: Vec::new(),
            })
            .collect()
    }

    /// The stored entries that change though they stay: their class or their link becomes another.
    fn changed_rows(&self, key: &Key, plan: &Plan, walkers: &[Walker]) -> Vec<u32> {
        let mut changed = Vec::new();
        let gap_free: Vec<usize> = walkers
            .iter()
            .filter(|walker| plan.relinks && self.programs[walker.pattern].gap_free)
            .filter_map(|walker| walker.lane)
            .collect();
        if plan.reclassed.is_none() && gap_free.is_empty() {
            return changed;
        }
        let mut befores: Vec<Option<i64>> = gap_free.iter().map(|lane| self.seq_before_all(key, *lane)).collect();
        for entries in key.spine.pages.iter() {
            for (slot, row) in entries.rows().enumerate() {
                let mut differs = plan.reclassed.as_ref().is_some_and(|(_, rows)| rows.contains_key(&row));
                for (before, lane) in befores.iter_mut().zip(&gap_free) {
                    if self.rows.class(self.lanes[*lane], row) < UNRELEASED {
                        differs |= self.is_linked(key, *lane, *before, row) != entries.is_linked(*lane, slot);
                        *before = self.rows.seq(row);
                    }
                }
                if differs {
                    changed.push(row);
                }
            }
        }
        changed
    }

    fn seq_before_all(&self, key: &Key, lane: usize) -> Option<i64> {
        self.seq_before(key, lane, Some(Place { page: 0, slot: 0 }))
    }

    /// The place of the next change; what comes after all entries belongs to the last page.
    fn next_place(&self, key: &Key, inserts: &[u32], removals: &[u32], changed: Option<&u32>) -> Option<Place> {
        let page = key.spine.pages.len().checked_sub(1)?;
        let slot = key.spine.pages[page].len() - 1;
        let place = |row: &u32| key.spine.place_of(self.rows, *row).unwrap_or(Place { page, slot });
        let places = [
            inserts.first().map(place),
            removals.first().map(place),
            changed.map(place),
        ];
        places.into_iter().flatten().min()
    }

    /// Walks over one page with all patterns; the answer is how many pages it is now.
    fn walk_page(&mut self, key: &mut Key, page: usize, here: &Here, walkers: &mut [Walker], plan: &Plan) -> usize {
        let cuts = here.cuts();
        for walker in walkers.iter_mut() {
            // A pattern that is done with would else leave the links of an earlier page here.
            walker.links.clear();
            if let Some(lane) = walker.lane
                && !walker.deltas.is_empty()
            {
                let entering = key.spine.pages[page].entering[lane].edit();
                apply_deltas(self.rows, entering, &walker.deltas);
                self.keep_list(walker.pattern, entering);
            }
            let edited = here.is_edited() || walker.relinks_next;
            if edited || !walker.deltas.is_empty() {
                self.walk(key, page, here, &cuts, walker, plan, edited);
            }
        }
        if !here.moves() {
            // The page's entries stay, and so do the links of patterns that do not walk.
            write_links(&mut key.spine.pages[page], walkers, 0);
            return 1;
        }
        self.rewrite(key, page, here, &cuts, walkers)
    }

    #[allow(clippy::too_many_arguments)]
    fn walk(
        &mut self,
        key: &Key,
        page: usize,
        here: &Here,
        cuts: &[usize],
        walker: &mut Walker,
        plan: &Plan,
        edited: bool,
    ) {
        walker.snapshots.clear();
        if edited {
            self.enter(key, page, walker);
        }
        let gap_free = self.programs[walker.pattern].gap_free;
        if gap_free && let Some(lane) = walker.lane {
            walker.before = self.seq_before(key, lane, Some(Place { page, slot: 0 }));
        }
        let needed = here
            .last_edit()
            .max(cuts.last().copied().map_or(0, |cut| here.step_of_new(cut)));
        let (mut old_slot, mut new_slot, mut tracked) = (0, 0, edited);
        for (index, step) in here.steps.iter().enumerate() {
            if step.in_new && cuts.contains(&new_slot) {
                walker.snapshots.push(new_list(self.rows, walker));
            }
            let (old, new) = self.sides(key, page, old_slot, *step, walker, plan);
            self.step_walker(walker, step.row, old, new, tracked);
            old_slot += usize::from(step.in_old);
            new_slot += usize::from(step.in_new);
            if tracked && index >= needed && !walker.relinks_next {
                tracked = false;
                walker.common.clear();
            }
            if !tracked && walker.deltas.is_empty() && !gap_free {
                break;
            }
        }
        walker.common.clear();
    }

    /// The partial matches that enter a page and are the same on both sides.
    fn enter(&mut self, key: &Key, page: usize, walker: &mut Walker) {
        let mut list = match walker.lane {
            Some(lane) => key.spine.pages[page].entering[lane].list().into(),
            None => self.linear_list(key, walker.pattern, Some(Place { page, slot: 0 })),
        };
        list.retain(|word| walker.deltas.iter().all(|delta| delta.start != start_row(*word)));
        walker.common = list;
    }

    /// The list of a linear pattern before a place (none: the end), computed from the events before it.
    pub(crate) fn linear_list(&mut self, key: &Key, pattern: usize, place: Option<Place>) -> List {
        let reach = self.programs[pattern].chain.len() - 1;
        let mut rows = Vec::with_capacity(reach);
        key.spine.rows_before(place, reach, &mut rows);
        let mut list = List::new();
        if rows.len() < reach {
            let carried = key.rare().carried.iter().find(|(carrier, _)| *carrier == pattern);
            list.extend(carried.iter().flat_map(|(_, list)| list.iter().copied()));
        }
        for row in rows {
            self.step_plainly(pattern, &mut list, row, true);
        }
        list
    }

    /// Steps a list over an event that its pattern sees.
    pub(crate) fn step_plainly(&mut self, pattern: usize, list: &mut List, row: u32, begins: bool) {
        let program = &mut self.programs[pattern];
        let (chunk, offset) = parts(row);
        let chunk = self.rows.chunk(chunk);
        let ts = chunk.times()[offset];
        let view = || self.rows.view_of(chunk, offset);
        let class = if program.chain.is_empty() {
            // Kept, because epochs are forgotten while partial matches without an end in time live on.
            chunk.class(pattern, offset)
        } else {
            program.class_of(chunk, offset)
        };
        list.retain(|word| !is_closed(program, expiry(program, self.rows, start_row(*word)), ts));
        program.step_list(class, list, view);
        let started = program.begin(class, view);
        if begins && started != DEAD && !is_closed(program, expiry(program, self.rows, row), ts) {
            list.push(word(row, started));
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn sides(
        &mut self,
        key: &Key,
        page: usize,
        old_slot: usize,
        step: Step,
        walker: &mut Walker,
        plan: &Plan,
    ) -> (Side, Side) {
        let (old_class, new_class) = self.classes(step.row, walker, plan);
        let mut old = Side::ABSENT;
        let mut new = Side::ABSENT;
        if step.in_old && old_class < UNRELEASED {
            old.class = old_class;
        }
        if step.in_new && new_class < UNRELEASED {
            new.class = new_class;
        }
        if let Some(lane) = walker.lane
            && self.programs[walker.pattern].gap_free
        {
            if old.sees() {
                old.linked = key.spine.pages[page].is_linked(lane, old_slot);
            }
            if new.sees() {
                // Other links stay until they are known to change: what is common to both sides is not followed there.
                new.linked = if step.edited || walker.relinks_next {
                    self.is_linked(key, lane, walker.before, step.row)
                } else {
                    old.linked
                };
                walker.before = self.rows.seq(step.row);
                walker.relinks_next = false;
            }
            walker.relinks_next |= step.edited || old.sees() != new.sees();
            if step.in_new {
                walker.links.push(new.linked && new.sees());
            }
        }
        (old, new)
    }

    fn classes(&mut self, row: u32, walker: &Walker, plan: &Plan) -> (u32, u32) {
        if let Some((_, rows)) = &plan.reclassed
            && let Some(classes) = rows.get(&row)
        {
            return *classes;
        }
        let class = if walker.lane.is_some() {
            self.rows.class(walker.pattern, row)
        } else {
            let (chunk, offset) = parts(row);
            self.programs[walker.pattern].class_of(self.rows.chunk(chunk), offset)
        };
        (class, class)
    }

    /// Writes the new entries of a page, as one page, several, or none.
    fn rewrite(&mut self, key: &mut Key, page: usize, here: &Here, cuts: &[usize], walkers: &mut [Walker]) -> usize {
        let rows: Vec<u32> = here
            .steps
            .iter()
            .filter(|step| step.in_new)
            .map(|step| step.row)
            .collect();
        for step in here.steps.iter().filter(|step| step.in_old != step.in_new) {
            if step.in_new {
                self.rows.store(parts(step.row).0, 1, self.rows.ts(step.row));
            } else {
                self.rows.release(step.row);
            }
        }
        if rows.is_empty() {
            key.spine.pages.remove(page);
            return 0;
        }
        let mut begin = 0;
        for (piece, end) in cuts.iter().copied().chain([rows.len()]).enumerate() {
            if piece > 0 {
                let entering = Self::entering_of(key, walkers, piece - 1);
                key.spine.pages.insert(page + piece, Page::new(entering));
            }
            let target = &mut key.spine.pages[page + piece];
            target.clear();
            for row in &rows[begin..end] {
                target.push(self.rows.ts(*row), *row);
            }
            write_links(target, walkers, begin);
            begin = end;
        }
        cuts.len() + 1
    }

    /// The lists that enter a page which a cut has made.
    fn entering_of(key: &Key, walkers: &mut [Walker], cut: usize) -> Lanes {
        let mut entering = Lanes::from_elem(Lane::default(), key.lanes.len());
        for walker in walkers.iter_mut() {
            if let Some(lane) = walker.lane {
                entering[lane] = Lane::of(std::mem::take(&mut walker.snapshots[cut]));
            }
        }
        entering
    }
}

impl Plan {
    fn is_only_links(&self) -> bool {
        self.inserts.is_empty() && self.removals.is_empty() && self.reclassed.is_none()
    }
}

fn write_links(page: &mut Page, walkers: &[Walker], begin: usize) {
    for walker in walkers {
        if let Some(lane) = walker.lane
            && !walker.links.is_empty()
        {
            for slot in 0..page.len() {
                page.set_link(lane, slot, walker.links[begin + slot]);
            }
        }
    }
}
