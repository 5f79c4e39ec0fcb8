//! Arcs as a second input: a change over stored events yields the inserts and retractions that the law demands.

use std::collections::HashMap;

use crate::arcs::book::{ASKED, KnownArc, Looked, Verdict, read_arc_record};
use crate::bindings::observing::Scope;
use crate::engine::{Engine, live};
use crate::input::index_of;
use crate::keys::key::Key;
use crate::keys::page::Page;
use crate::keys::spine::Place;
use crate::late::walk::Plan;
use crate::lists::lane::Lane;
use crate::program::epochs::{Epochs, Life};
use crate::rows::store::parts;
use crate::segment::Fed;

/// What is to be done with an arc record.
pub(crate) enum Judged<'a> {
    /// The arc changes.
    Change(ArcChange<'a>),
    /// It is like that already.
    Nothing,
    /// Not applied, for this reason.
    Late(String),
    /// The full rules must judge.
    Ask,
}

/// An arc that comes, changes or goes, before that is done.
pub(crate) struct ArcChange<'a> {
    pattern: usize,
    id: &'a str,
    looked: Looked,
    old: Option<Life>,
    new: Option<Life>,
}

impl KnownArc {
    fn life(&self) -> Life {
        Life {
            body: self.body,
            le: self.le,
            re: self.re,
        }
    }
}

impl Engine {
    /// The number of a pattern by its name.
    #[must_use]
    pub fn pattern_number(&self, name: &str) -> Option<usize> {
        self.programs.binary_search_by(|program| (*program.name).cmp(name)).ok()
    }

    /// Takes an arc record whose texts were checked before; false if they were not, or it may be bad.
    pub fn take_arc(&mut self, json: &[u8], index: u32, fed: &mut Fed) -> bool {
        let Ok(json) = std::str::from_utf8(json) else {
            return false;
        };
        let judged = self.judge_arc(json);
        self.take_judged(judged, index, fed)
    }

    /// Does what was judged just now; false if the full rules must judge.
    pub(crate) fn take_judged(&mut self, judged: Judged<'_>, index: u32, fed: &mut Fed) -> bool {
        match judged {
            Judged::Ask => return false,
            Judged::Nothing => {}
            Judged::Late(reason) => {
                self.counters.late += 1;
                fed.late.push((index, reason));
            }
            Judged::Change(change) => self.change_arc(&change),
        }
        true
    }

    /// What an arc record demands, before it is done.
    pub(crate) fn judge_arc<'a>(&mut self, json: &'a str) -> Judged<'a> {
        let Some(said) = self.arc_shapes.read(json) else {
            return self.judge_new_shape(json);
        };
        let book = &self.books[said.pattern];
        let looked = book.look_up(said.id);
        let known = book.arc(looked);
        let body = said.body.or(known.map(|known| known.body));
        let verdict = body.map_or(Verdict::Ask, |body| {
            book.judge_life(said.id, body, said.valid, known, self.arc_bound())
        });
        self.judged(said.pattern, said.id, looked, verdict)
    }

    /// The same for a record that has to be read from end to end.
    fn judge_new_shape<'a>(&mut self, json: &'a str) -> Judged<'a> {
        let Some(record) = read_arc_record(json.as_bytes()) else {
            return Judged::Ask;
        };
        let Some(pattern) = self.pattern_number(record.pattern) else {
            return Judged::Ask;
        };
        let book = &self.books[pattern];
        let body = record.body.map(|text| book.body(text));
        if body != Some(None) {
            self.arc_shapes.learn(json, &record, pattern, body.flatten());
        }
        let looked = book.look_up(record.id);
        let verdict = book.judge_known(&record, book.arc(looked), self.arc_bound());
        self.judged(pattern, record.id, looked, verdict)
    }

    fn judged<'a>(&mut self, pattern: usize, id: &'a str, looked: Looked, verdict: Verdict<'a>) -> Judged<'a> {
        let new = match verdict {
            Verdict::Ask => return Judged::Ask,
            Verdict::Nothing => return Judged::Nothing,
            Verdict::Late(reason) => return Judged::Late(reason),
            Verdict::Remove { .. } => None,
            Verdict::Set { body, le, re, .. } => Some(Life { body, le, re }),
        };
        let old = self.books[pattern].arc(looked).map(|known| known.life());
        if old.is_none() && self.too_many_arcs() {
            return Judged::Ask;
        }
        Judged::Change(ArcChange {
            pattern,
            id,
            looked,
            old,
            new,
        })
    }

    /// Does what a record demands, which was judged just now.
    pub(crate) fn change_arc(&mut self, change: &ArcChange<'_>) {
        let book = &mut self.books[change.pattern];
        match &change.new {
            Some(Life { body, le, re }) => {
                let (body, le, re) = (*body, *le, *re);
                book.put(change.looked, change.id, KnownArc { body, le, re });
            }
            None => {
                book.remove(change.id);
            }
        }
        self.change_life(change.pattern, change.old.as_ref(), change.new.as_ref());
    }

    /// Whether a change may be done before events up to this instant are taken, because it is about later ones only.
    pub(crate) fn comes_after(&self, change: &ArcChange<'_>, newest: Option<i64>) -> bool {
        let was_alive = |life: &Life| self.programs[change.pattern].was_alive(life.body);
        let from = first_difference(change.old.as_ref(), change.new.as_ref());
        change.new.as_ref().is_none_or(was_alive) && from.is_none_or(|from| Some(from) > newest)
    }

    /// Whether another arc would be more than `max_program_arcs`.
    pub fn too_many_arcs(&mut self) -> bool {
        let live = |engine: &Self| engine.books.iter().map(crate::arcs::book::ArcBook::live).sum::<usize>();
        if live(self) < self.limits.max_program_arcs {
            return false;
        }
        let bound = self.domains.iter().map(|domain| domain.effective).min().flatten();
        for book in &mut self.books {
            book.mark_dead_if(|arc| arc.re.is_some_and(|re| Some(re) <= bound));
        }
        live(self) >= self.limits.max_program_arcs
    }

    /// Inserts or replaces an arc; what it means for stored events is computed at once. `asked`: its lifetime is to be
    /// judged by the caller next time too.
    pub fn set_arc(&mut self, pattern: usize, id: &str, life: Life, asked: bool) {
        let old = self.life_of(pattern, id);
        let body = if asked { ASKED } else { life.body };
        let (le, re) = (life.le, life.re);
        self.books[pattern].set(id, KnownArc { body, le, re });
        if asked {
            self.asked_lives.insert((pattern, id.into()), life);
        } else if !self.asked_lives.is_empty() {
            self.asked_lives.remove(&(pattern, id.into()));
        }
        self.change_life(pattern, old.as_ref(), Some(&life));
    }

    /// Makes a state final that no arc names, or named only before; a pattern with another final state than its last
    /// one is not linear.
    pub fn make_final(&mut self, pattern: usize, state: &str) {
        if !self.programs[pattern].make_final(state) {
            return;
        }
        self.programs[pattern].forget_transitions();
        if !self.programs[pattern].chain.is_empty() {
            self.keep_lists(pattern);
        }
    }

    /// Removes an arc, its past included.
    pub fn remove_arc(&mut self, pattern: usize, id: &str) {
        let old = self.life_of(pattern, id);
        self.books[pattern].remove(id);
        self.asked_lives.remove(&(pattern, id.into()));
        self.change_life(pattern, old.as_ref(), None);
    }

    /// The body and lifetime of an arc as they are now.
    #[must_use]
    pub fn life_of(&self, pattern: usize, id: &str) -> Option<Life> {
        let known = self.books[pattern].get(id)?;
        if known.body == ASKED {
            return self.asked_lives.get(&(pattern, id.into())).copied();
        }
        Some(known.life())
    }

    fn change_life(&mut self, pattern: usize, old: Option<&Life>, new: Option<&Life>) {
        if let Some(life) = new
            && !self.programs[pattern].note_alive(life.body)
        {
            self.meet_body(pattern, life.body);
        }
        let from = first_difference(old, new);
        let Some(newest) = self.newest.filter(|newest| from.is_some_and(|from| from <= *newest)) else {
            return self.programs[pattern].change_life(old, new, &mut self.shared);
        };
        let before = self.programs[pattern].epochs();
        self.programs[pattern].change_life(old, new, &mut self.shared);
        let from = from.unwrap_or(i64::MIN);
        self.prepare_all(pattern, from, newest);
        self.for_each_key(|engine, key| engine.reclassify(pattern, key, from, &before));
    }

    /// An arc has a body that none had before.
    fn meet_body(&mut self, pattern: usize, body: u32) {
        let program = &self.programs[pattern];
        let fields = program.body(body).fields();
        if !program.chain.is_empty() && !program.fits_chain(body) {
            self.keep_lists(pattern);
        }
        self.rows.add_fields(&fields);
    }

    fn prepare_all(&mut self, pattern: usize, from: i64, to: i64) {
        let mut wanted = Vec::new();
        self.programs[pattern].ask_between(from, to, &mut wanted);
        let chunks = self.rows.chunks_mut().filter(|(_, chunk)| chunk.stored > 0);
        let stored: Vec<usize> = chunks.map(|(number, _)| number).collect();
        for chunk in stored {
            self.ready_missing(chunk, &wanted);
        }
    }

    /// Does something to every key, and orders what is told.
    fn for_each_key(&mut self, mut act: impl FnMut(&mut Self, &mut Key)) {
        let first = self.table.rows.len();
        self.unfold_all();
        for number in 0..self.keys.len() {
            let Some(mut key) = self.keys[number].take() else {
                continue;
            };
            let (before, was_degraded) = (live(&key), key.degraded);
            let watched = self.watch(&key, Scope::Key);
            act(self, &mut key);
            self.after(&mut key, before, was_degraded);
            self.tell_watched(&mut key, watched, Scope::Key, None);
            self.agenda.touch(index_of(number));
            self.keys[number] = Some(key);
        }
        self.order_from(first);
    }

    fn reclassify(&mut self, pattern: usize, key: &mut Key, from: i64, before: &Epochs) {
        let is_lane = self.programs[pattern].chain.is_empty();
        let mut changed = HashMap::default();
        let mut new_classes = Vec::new();
        for (ts, row) in key.spine.pages.iter().flat_map(|page| page.entries(0, &self.rows)) {
            if ts < from {
                continue;
            }
            let (chunk, offset) = parts(row);
            let chunk = self.rows.chunk(chunk);
            let old = if is_lane {
                chunk.class(pattern, offset)
            } else {
                self.programs[pattern].class_in(before.alive_at(ts), chunk, offset)
            };
            let program = &mut self.programs[pattern];
            let new = program.class_of(chunk, offset);
            let new = program.pin(new, &self.rows.view_of(chunk, offset));
            if old < crate::program::compiled::UNRELEASED && old != new {
                changed.insert(row, (old, new));
                new_classes.push((row, new));
            }
        }
        if changed.is_empty() {
            return;
        }
        let plan = Plan {
            reclassed: Some((pattern, changed)),
            ..Plan::default()
        };
        self.matcher(key.domain()).apply(key, &plan);
        if is_lane {
            for (row, class) in new_classes {
                self.rows.set_class(pattern, row, class);
            }
        }
    }

    /// A linear pattern becomes one that keeps lists.
    fn keep_lists(&mut self, pattern: usize) {
        self.unfold_all();
        for number in 0..self.keys.len() {
            let Some(mut key) = self.keys[number].take() else {
                continue;
            };
            for page in 0..key.spine.pages.len() {
                let place = Some(Place { page, slot: 0 });
                let list = self.matcher(key.domain()).linear_list(&key, pattern, place);
                key.spine.pages[page].entering.push(Lane::of(list));
            }
            let mut tail = self.matcher(key.domain()).linear_list(&key, pattern, None);
            if key.spine.is_empty() {
                let carried = key.rare().carried.iter().find(|(carrier, _)| *carrier == pattern);
                tail = carried.map(|(_, list)| list.clone()).unwrap_or_default();
            }
            if let Some(rare) = &mut key.rare {
                rare.carried.retain(|(carrier, _)| *carrier != pattern);
            }
            self.live_partial_matches += tail.len();
            key.lanes.push(Lane::of(tail));
            for row in key.spine.pages.iter().flat_map(Page::rows).collect::<Vec<u32>>() {
                self.fill_class(pattern, row);
            }
            self.keys[number] = Some(key);
        }
        self.linear.retain(|other| *other != pattern);
        self.lanes.push(pattern);
        self.programs[pattern].drop_chain();
    }

    fn fill_class(&mut self, pattern: usize, row: u32) {
        let (number, offset) = parts(row);
        let chunk = self.rows.chunk(number);
        let length = chunk.len();
        let class = self.programs[pattern].class_of(chunk, offset);
        let classes = self.rows.chunk_mut(number).classes_mut(pattern);
        if classes.len() < length {
            classes.resize(length, crate::program::compiled::UNSEEN);
        }
        classes[offset] = class;
    }
}

/// The first instant at which the two differ; none if they do not.
fn first_difference(old: Option<&Life>, new: Option<&Life>) -> Option<i64> {
    let (old, new) = (old.filter(|life| !life.is_empty()), new.filter(|life| !life.is_empty()));
    if let (Some(old), Some(new)) = (old, new)
        && (old.body, old.le) == (new.body, new.le)
    {
        return if old.re == new.re {
            None
        } else {
            [old.re, new.re].into_iter().flatten().min()
        };
    }
    [old, new].into_iter().flatten().map(|life| life.le).min()
}
