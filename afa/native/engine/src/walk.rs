//! What follows when something changes between stored events: `PropagateInsert` and its like for removals, revisions,
//! arcs, releases and links, all as one walk over the entries from the first change on.
//!
//! Partial matches of different start events never touch each other. So the walk carries, per start event, only the
//! *difference*: the set on the old side and the set on the new side. Where the two are equal the start event is done
//! with; where no difference is left the walk stops.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use crate::configuration::{Code, DEAD, Word, code_of, start_row, word};
use crate::key::Key;
use crate::matcher::{Matcher, expiry, is_closed};
use crate::program::UNRELEASED;
use crate::rows::{Rows, parts};
use crate::spine::{PAGE_ENTRIES, Page, Place, Spine};

/// What is to be changed in one key.
#[derive(Debug, Default)]
pub struct Plan {
    /// Rows to be inserted, in event order.
    pub inserts: Vec<u32>,
    /// Rows to be taken out, in event order.
    pub removals: Vec<u32>,
    /// A pattern whose rows change their class: from, to.
    pub reclassed: Option<(usize, HashMap<u32, (u32, u32), FixedState>)>,
    /// Sequence numbers may have come or gone anywhere: look at every link.
    pub relinks: bool,
}

/// One start event whose partial matches differ.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delta {
    pub(crate) start: u32,
    pub(crate) old: Code,
    pub(crate) new: Code,
    pub(crate) expires: i64,
}

/// One entry, as it was and as it is to be.
#[derive(Clone, Copy, Debug)]
struct Step {
    row: u32,
    in_old: bool,
    in_new: bool,
    edited: bool,
}

/// What one pattern makes of an entry, before or after the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Side {
    class: u32,
    linked: bool,
}

impl Side {
    const ABSENT: Self = Self {
        class: u32::MAX,
        linked: true,
    };

    fn sees(self) -> bool {
        self.class < UNRELEASED
    }
}

/// One pattern on its way over the entries.
#[derive(Debug)]
struct Walker {
    pattern: usize,
    /// Linear patterns have none.
    lane: Option<usize>,
    /// Partial matches that are the same on both sides; only while changes are ahead in the page.
    common: Vec<Word>,
    deltas: Vec<Delta>,
    /// Partial matches that became the same at the entry at hand: part of `common` from the next one on.
    converged: Vec<Word>,
    /// AFA+O: the next entry follows another one now.
    relinks_next: bool,
    /// AFA+O: the sequence number of the entry before.
    before: Option<i64>,
    /// AFA+O: the links of the new entries of the page.
    links: Vec<bool>,
    /// Lists that enter the pages that this one is cut into.
    snapshots: Vec<Vec<Word>>,
}

impl Matcher<'_> {
    /// Changes the entries of a key and finds what that means.
    pub fn apply(&mut self, key: &mut Key, plan: &Plan) {
        if key.spine.is_empty() {
            if !plan.inserts.is_empty() {
                self.append(key, &plan.inserts, None);
            }
            return;
        }
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
                let next = self.next_page(key, inserts, removals, changed.last());
                let Some(next) = next else { break };
                page = next;
            }
            if page >= key.spine.pages.len() {
                break;
            }
            let here = Here::of(self.rows, &key.spine, page, &mut inserts, &mut removals, &mut changed);
            page += self.walk_page(key, page, &here, &mut walkers, plan);
        }
        for walker in &walkers {
            if let Some(lane) = walker.lane {
                apply_deltas(self.rows, &mut key.lanes[lane].tail, &walker.deltas);
                key.lanes[lane].expires = i64::MIN;
            }
        }
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
                common: Vec::new(),
                deltas: Vec::new(),
                converged: Vec::new(),
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
        for entries in &key.spine.pages {
            for (slot, row) in entries.rows().iter().enumerate() {
                let mut differs = plan.reclassed.as_ref().is_some_and(|(_, rows)| rows.contains_key(row));
                for (before, lane) in befores.iter_mut().zip(&gap_free) {
                    if self.rows.class(self.lanes[*lane], *row) < UNRELEASED {
                        differs |= self.is_linked(key, *lane, *before, *row) != entries.is_linked(*lane, slot);
                        *before = self.rows.seq(*row);
                    }
                }
                if differs {
                    changed.push(*row);
                }
            }
        }
        changed
    }

    fn seq_before_all(&self, key: &Key, lane: usize) -> Option<i64> {
        self.seq_before(key, lane, Some(Place { page: 0, slot: 0 }))
    }

    /// The page of the next change.
    fn next_page(&self, key: &Key, inserts: &[u32], removals: &[u32], changed: Option<&u32>) -> Option<usize> {
        let last = key.spine.pages.len().checked_sub(1)?;
        let page = |row: &u32| key.spine.place_of(self.rows, *row).map_or(last, |place| place.page);
        let pages = [inserts.first().map(page), removals.first().map(page), changed.map(page)];
        pages.into_iter().flatten().min()
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
                apply_deltas(self.rows, &mut key.spine.pages[page].entering[lane], &walker.deltas);
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
            let (old, new) = self.sides(key, page, old_slot, step, walker, plan, edited && gap_free);
            self.step_walker(walker, step.row, old, new, tracked);
            old_slot += usize::from(step.in_old);
            new_slot += usize::from(step.in_new);
            if tracked && index >= needed && !walker.relinks_next {
                tracked = false;
                walker.common.clear();
            }
            if !tracked {
                if walker.deltas.is_empty() && !gap_free {
                    break;
                }
            }
        }
        walker.common.clear();
    }

    /// The partial matches that enter a page and are the same on both sides.
    fn enter(&mut self, key: &Key, page: usize, walker: &mut Walker) {
        let mut list = match walker.lane {
            Some(lane) => key.spine.pages[page].entering[lane].clone(),
            None => self.linear_list(key, walker.pattern, Some(Place { page, slot: 0 })),
        };
        list.retain(|word| walker.deltas.iter().all(|delta| delta.start != start_row(*word)));
        walker.common = list;
    }

    /// The list of a linear pattern before a place (none: the end), computed from the events before it.
    pub(crate) fn linear_list(&mut self, key: &Key, pattern: usize, place: Option<Place>) -> Vec<Word> {
        let reach = self.programs[pattern].chain.len() - 1;
        let mut rows = Vec::with_capacity(reach);
        key.spine.rows_before(place, reach, &mut rows);
        let mut list = Vec::new();
        if rows.len() < reach {
            let carried = key.carried.iter().find(|(carrier, _)| *carrier == pattern);
            list.extend(carried.iter().flat_map(|(_, list)| list));
        }
        for row in rows {
            self.step_plainly(pattern, &mut list, row, true);
        }
        list
    }

    /// Steps a list of a linear pattern over an event.
    pub(crate) fn step_plainly(&mut self, pattern: usize, list: &mut Vec<Word>, row: u32, begins: bool) {
        let program = &mut self.programs[pattern];
        let (chunk, offset) = parts(row);
        let chunk = self.rows.chunk(chunk);
        let ts = chunk.times()[offset];
        let view = || self.rows.view_of(chunk, offset);
        let class = program.class_of(chunk, offset);
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
        step: &Step,
        walker: &mut Walker,
        plan: &Plan,
        relinks: bool,
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
                new.linked = if relinks || walker.relinks_next {
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

    fn step_walker(&mut self, walker: &mut Walker, row: u32, old: Side, new: Side, tracked: bool) {
        if !old.sees() && !new.sees() {
            return;
        }
        let ts = self.rows.ts(row);
        self.step_deltas(walker, row, ts, old, new, tracked);
        if old != new {
            self.split_common(walker, row, ts, old, new);
        } else if tracked {
            self.step_common(walker, row, ts, old);
        }
        for converged in std::mem::take(&mut walker.converged) {
            insert_ordered(self.rows, &mut walker.common, converged);
        }
    }

    fn step_common(&mut self, walker: &mut Walker, row: u32, ts: i64, side: Side) {
        let view = || self.rows.view(row);
        let program = &mut self.programs[walker.pattern];
        let closed = |word: &Word| is_closed(program, expiry(program, self.rows, start_row(*word)), ts);
        let count = walker.common.iter().take_while(|word| closed(word)).count();
        walker.common.drain(..count);
        if side.linked {
            program.step_list(side.class, &mut walker.common, view);
        } else {
            walker.common.clear();
        }
        let started = program.begin(side.class, view);
        if started != DEAD && !is_closed(program, expiry(program, self.rows, row), ts) {
            walker.common.push(word(row, started));
        }
    }

    fn step_deltas(&mut self, walker: &mut Walker, row: u32, ts: i64, old: Side, new: Side, tracked: bool) {
        let mut at = 0;
        while at < walker.deltas.len() {
            let delta = walker.deltas[at];
            let closed = is_closed(&self.programs[walker.pattern], delta.expires, ts);
            let before = self.step_side(walker.pattern, old, delta.old, row, closed);
            let after = self.step_side(walker.pattern, new, delta.new, row, closed);
            self.note(walker.pattern, delta.start, row, (old, before), (new, after));
            if before != after {
                (walker.deltas[at].old, walker.deltas[at].new) = (before, after);
                at += 1;
                continue;
            }
            walker.deltas.remove(at);
            if tracked && after != DEAD {
                walker.converged.push(word(delta.start, after));
            }
        }
    }

    /// Where a set stands after an entry. A window that has closed ends only what sees the entry: without it the partial
    /// match lives on, for a later record may bring an event before the end of its window.
    fn step_side(&mut self, pattern: usize, side: Side, code: Code, row: u32, closed: bool) -> Code {
        if !side.sees() {
            code
        } else if side.linked && !closed && code != DEAD {
            self.programs[pattern].step(side.class, code, &self.rows.view(row))
        } else {
            DEAD
        }
    }

    fn note(&mut self, pattern: usize, start: u32, end: u32, old: (Side, Code), new: (Side, Code)) {
        let told = |(side, code): (Side, Code)| side.sees().then_some(code);
        let program = &self.programs[pattern];
        self.findings
            .note_difference(program, pattern, start, end, told(old), told(new));
    }

    /// At an entry where the two sides part, every start event has to be looked at.
    fn split_common(&mut self, walker: &mut Walker, row: u32, ts: i64, old: Side, new: Side) {
        let pattern = walker.pattern;
        let mut kept = Vec::with_capacity(walker.common.len());
        for entry in std::mem::take(&mut walker.common) {
            let expires = expiry(&self.programs[pattern], self.rows, start_row(entry));
            let closed = is_closed(&self.programs[pattern], expires, ts);
            let before = self.step_side(pattern, old, code_of(entry), row, closed);
            let after = self.step_side(pattern, new, code_of(entry), row, closed);
            self.note(pattern, start_row(entry), row, (old, before), (new, after));
            if before != after {
                walker.deltas.push(Delta {
                    start: start_row(entry),
                    old: before,
                    new: after,
                    expires,
                });
            } else if after != DEAD {
                kept.push(word(start_row(entry), after));
            }
        }
        walker.common = kept;
        let expires = expiry(&self.programs[pattern], self.rows, row);
        if is_closed(&self.programs[pattern], expires, ts) {
            return;
        }
        let view = || self.rows.view(row);
        let before = if old.sees() {
            self.programs[pattern].begin(old.class, view)
        } else {
            DEAD
        };
        let after = if new.sees() {
            self.programs[pattern].begin(new.class, view)
        } else {
            DEAD
        };
        self.note(pattern, row, row, (old, before), (new, after));
        if before != after {
            walker.deltas.push(Delta {
                start: row,
                old: before,
                new: after,
                expires,
            });
        } else if after != DEAD {
            walker.common.push(word(row, after));
        }
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
                self.rows.release(&[step.row]);
            }
        }
        if rows.is_empty() {
            key.spine.pages.remove(page);
            return 0;
        }
        let mut begin = 0;
        for (piece, end) in cuts.iter().copied().chain([rows.len()]).enumerate() {
            if piece > 0 {
                let entering = self.entering_of(key, walkers, piece - 1);
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
    fn entering_of(&self, key: &Key, walkers: &mut [Walker], cut: usize) -> Vec<Vec<Word>> {
        let mut entering = vec![Vec::new(); key.lanes.len()];
        for walker in walkers.iter_mut() {
            if let Some(lane) = walker.lane {
                entering[lane] = std::mem::take(&mut walker.snapshots[cut]);
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

/// The entries of one page, as they were and as they are to be.
struct Here {
    steps: Vec<Step>,
    new_length: usize,
    edited: bool,
}

impl Here {
    /// Merges a page with the changes that fall into it, which are taken from the front of their lists (from the back
    /// of `changed`, which is in reverse).
    fn of(
        rows: &Rows,
        spine: &Spine,
        page: usize,
        inserts: &mut &[u32],
        removals: &mut &[u32],
        changed: &mut Vec<u32>,
    ) -> Self {
        let is_last = page + 1 == spine.pages.len();
        let mut steps = Vec::with_capacity(PAGE_ENTRIES + inserts.len().min(PAGE_ENTRIES));
        let mut edited = false;
        let insert = |row: u32| Step {
            row,
            in_old: false,
            in_new: true,
            edited: true,
        };
        for (ts, row) in spine.pages[page].times().iter().zip(spine.pages[page].rows()) {
            while let Some(first) = inserts.first()
                && (rows.ts(*first) < *ts || rows.ts(*first) == *ts && rows.order(*first, *row).is_lt())
            {
                steps.push(insert(*first));
                *inserts = &inserts[1..];
                edited = true;
            }
            let removed = removals.first() == Some(row);
            let changes = changed.last() == Some(row);
            if removed {
                *removals = &removals[1..];
            }
            if changes {
                changed.pop();
            }
            edited |= removed || changes;
            steps.push(Step {
                row: *row,
                in_old: true,
                in_new: !removed,
                edited: removed || changes,
            });
        }
        if is_last && !inserts.is_empty() {
            steps.extend(inserts.iter().map(|row| insert(*row)));
            *inserts = &[];
            edited = true;
        }
        let new_length = steps.iter().filter(|step| step.in_new).count();
        Self {
            steps,
            new_length,
            edited,
        }
    }

    fn is_edited(&self) -> bool {
        self.edited
    }

    /// Whether entries come or go.
    fn moves(&self) -> bool {
        self.edited && self.steps.iter().any(|step| step.in_old != step.in_new)
    }

    fn last_edit(&self) -> usize {
        self.steps.iter().rposition(|step| step.edited).unwrap_or(0)
    }

    fn step_of_new(&self, slot: usize) -> usize {
        let mut places = self.steps.iter().enumerate().filter(|(_, step)| step.in_new);
        places.nth(slot).map_or(0, |(index, _)| index)
    }

    /// The new slots at which new pages begin.
    fn cuts(&self) -> Vec<usize> {
        if self.new_length <= PAGE_ENTRIES {
            return Vec::new();
        }
        let pieces = self.new_length.div_ceil(PAGE_ENTRIES * 3 / 4);
        (1..pieces).map(|piece| piece * self.new_length / pieces).collect()
    }
}

fn write_links(page: &mut Page, walkers: &[Walker], begin: usize) {
    for walker in walkers {
        if let Some(lane) = walker.lane
            && !walker.links.is_empty()
        {
            for slot in 0..page.rows().len() {
                page.set_link(lane, slot, walker.links[begin + slot]);
            }
        }
    }
}

/// The list of the new side.
fn new_list(rows: &Rows, walker: &Walker) -> Vec<Word> {
    let mut list = walker.common.clone();
    for delta in walker.deltas.iter().filter(|delta| delta.new != DEAD) {
        insert_ordered(rows, &mut list, word(delta.start, delta.new));
    }
    list
}

/// Turns a list of the old side into one of the new side.
pub(crate) fn apply_deltas(rows: &Rows, list: &mut Vec<Word>, deltas: &[Delta]) {
    for delta in deltas {
        let at = list.iter().position(|known| start_row(*known) == delta.start);
        match (at, delta.new) {
            (Some(at), DEAD) => {
                list.remove(at);
            }
            (Some(at), new) => list[at] = word(delta.start, new),
            (None, DEAD) => {}
            (None, new) => insert_ordered(rows, list, word(delta.start, new)),
        }
    }
}

/// Puts a word where its start event belongs; what is past every window comes first.
fn insert_ordered(rows: &Rows, list: &mut Vec<Word>, entry: Word) {
    let start = start_row(entry);
    let is_before =
        |other: &Word| rows.start_ts(start_row(*other)).is_none() || rows.order(start_row(*other), start).is_lt();
    let at = list.iter().rposition(is_before).map_or(0, |at| at + 1);
    list.insert(at, entry);
}
