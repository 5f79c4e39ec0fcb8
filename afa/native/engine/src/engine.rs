//! The engine: records in, changes out. What a match is, is decided by the sets of events and arcs alone.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use foldhash::fast::FixedState;

use crate::change::Change;
use crate::configuration::{marked, start_row};
use crate::event::Event;
use crate::expression::{EventView, Node};
use crate::key::Key;
use crate::pattern::Window;
use crate::program::Program;
use crate::propagate::{Differences, Found, Propagation, Scratch};
use crate::rows::Rows;
use crate::spine::{Cell, Place, UNRELEASED, UNSEEN};
use crate::value::Value;

/// What has been counted since the engine began.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Event records.
    pub events: u64,
    /// Records that came too late.
    pub late: u64,
    /// Different inserts of one identity at equal `rev`.
    pub conflicts: u64,
    /// Retractions with a lower `rev` than their event.
    pub idle_retractions: u64,
    /// Events that a pattern does not see because its key field differs.
    pub unseen: u64,
    /// Partial matches that end at the last event of their key, over all keys.
    pub partial_matches: usize,
    /// The most of them that there ever were.
    pub peak_partial_matches: usize,
}

/// What one record led to.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Retractions, then inserts, in order.
    pub changes: Vec<Change>,
    /// The punctuation that every pattern emits after them, if it rose.
    pub punctuation: Option<i64>,
    /// Why the record came too late, if it did.
    pub late: Option<String>,
}

pub(crate) struct Predicated {
    pub(crate) condition: Node,
    pub(crate) text: Arc<str>,
    pub(crate) ts: i64,
}

/// Patterns and the state of all keys.
pub struct Engine {
    /// The patterns, in order of names.
    pub programs: Vec<Program>,
    /// Counted so far.
    pub counters: Counters,
    pub(crate) numbers: HashMap<Arc<str>, usize, FixedState>,
    pub(crate) keys: Vec<Option<Box<Key>>>,
    pub(crate) free_keys: Vec<usize>,
    pub(crate) rows: Rows,
    pub(crate) event_punctuation: Option<i64>,
    pub(crate) arc_punctuation: Option<i64>,
    pub(crate) effective_punctuation: Option<i64>,
    pub(crate) predicated: Vec<Predicated>,
    pub(crate) held: Vec<BTreeMap<(i64, [u8; 16]), Change>>,
    scratch: Scratch,
    pub(crate) rows_after_sweep: usize,
    pub(crate) configurations_after_sweep: usize,
}

impl Engine {
    /// An engine for these patterns.
    #[must_use]
    pub fn new(mut programs: Vec<Program>) -> Self {
        programs.sort_by(|a, b| a.name.cmp(&b.name));
        Self {
            held: programs.iter().map(|_| BTreeMap::new()).collect(),
            programs,
            counters: Counters::default(),
            numbers: HashMap::default(),
            keys: Vec::new(),
            free_keys: Vec::new(),
            rows: Rows::default(),
            event_punctuation: None,
            arc_punctuation: None,
            effective_punctuation: None,
            predicated: Vec::new(),
            scratch: Scratch::default(),
            rows_after_sweep: 1024,
            configurations_after_sweep: 4096,
        }
    }

    /// The bound below which an arc record is late.
    #[must_use]
    pub fn arc_bound(&self) -> Option<i64> {
        self.arc_punctuation.max(self.effective_punctuation)
    }

    /// The names of the keys that have state.
    #[must_use]
    pub fn key_names(&self) -> Vec<Arc<str>> {
        let mut names: Vec<_> = self.keys.iter().flatten().map(|key| key.name.clone()).collect();
        names.sort_unstable();
        names
    }

    /// Takes an insert, revision or retraction.
    ///
    /// # Panics
    /// Never: the key that it names is in use.
    pub fn feed(&mut self, event: Event) -> Outcome {
        self.counters.events += 1;
        if let Some(reason) = self.why_late(&event) {
            self.counters.late += 1;
            return Outcome {
                late: Some(reason),
                ..Outcome::default()
            };
        }
        let number = self.key_number(&event.key);
        let mut key = self.keys[number].take().expect("a key in use");
        let mut differences = Differences::default();
        if event.retracts {
            self.retract(&mut key, event, &mut differences);
        } else {
            self.insert(&mut key, event, &mut differences);
        }
        let changes = self.deliver(&key.name, differences);
        self.keys[number] = Some(key);
        Outcome {
            changes,
            ..Outcome::default()
        }
    }

    fn why_late(&self, event: &Event) -> Option<String> {
        if let Some(bound) = self.event_punctuation.filter(|bound| event.ts < *bound) {
            return Some(format!("ts {} is below the punctuation {bound}", event.ts));
        }
        let late = self.predicated.iter().find(|known| {
            let certain = event.retracts || event.rev > 0;
            event.ts < known.ts && (certain || known.condition.evaluate(Some(event), &[]).as_truth() == Some(true))
        })?;
        Some(format!(
            "ts {} is below the punctuation {} when {}",
            event.ts, late.ts, late.text
        ))
    }

    fn key_number(&mut self, name: &Arc<str>) -> usize {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let key = Some(Box::new(Key::new(name.clone(), self.programs.len())));
        let number = if let Some(number) = self.free_keys.pop() {
            self.keys[number] = key;
            number
        } else {
            self.keys.push(key);
            self.keys.len() - 1
        };
        self.numbers.insert(name.clone(), number);
        number
    }

    fn insert(&mut self, key: &mut Key, event: Event, differences: &mut Differences) {
        let newest = key.spine.last_ts().is_none_or(|last| last < event.ts);
        let known = if newest {
            None
        } else {
            key.find(&self.rows, event.ts, &event.id)
        };
        if let Some(place) = known {
            return self.revise(key, place, event, differences);
        }
        let identity = (event.ts, event.id.clone());
        let row = match key.tombs.get(&identity).copied() {
            Some(row) => {
                self.remember_seq(row, event.seq);
                if event.rev <= self.rows.event(row).rev {
                    return self.after_tomb_change(key, differences);
                }
                key.tombs.remove(&identity);
                self.replace(row, event);
                row
            }
            None => self.rows.add(event),
        };
        let place = self.place(key, row);
        self.settle(key, Some(place), differences);
    }

    /// An insert for an identity that is there: the greater rank stays.
    fn revise(&mut self, key: &mut Key, place: Place, event: Event, differences: &mut Differences) {
        let row = key.spine.row(place);
        let old = self.rows.event(row);
        // Without a number and number 0 have the same bytes, but are not the same to AFA+O: the number wins.
        let before = (old.canonical_bytes(), old.seq.is_some());
        let after = (event.canonical_bytes(), event.seq.is_some());
        self.counters.conflicts += u64::from(old.rev == event.rev && before != after);
        if (event.rev, after) <= (old.rev, before) {
            return self.remember_seq(row, event.seq);
        }
        self.take_out(key, place, differences);
        self.replace(row, event);
        self.place(key, row);
        self.settle(key, None, differences);
    }

    fn retract(&mut self, key: &mut Key, event: Event, differences: &mut Differences) {
        let identity = (event.ts, event.id.clone());
        if let Some(place) = key.find(&self.rows, event.ts, &event.id) {
            let row = key.spine.row(place);
            if event.rev < self.rows.event(row).rev {
                self.counters.idle_retractions += 1;
                return self.remember_seq(row, event.seq);
            }
            self.take_out(key, place, differences);
            self.replace(row, event);
            key.tombs.insert(identity, row);
            return self.settle(key, None, differences);
        }
        if let Some(row) = key.tombs.get(&identity).copied() {
            if event.rev > self.rows.event(row).rev {
                self.replace(row, event);
            } else {
                self.remember_seq(row, event.seq);
            }
        } else {
            let row = self.rows.add(event);
            key.tombs.insert(identity, row);
        }
        self.after_tomb_change(key, differences);
    }

    /// Puts another winner into a row; the number stays, so that what depends on it can be compared.
    fn replace(&mut self, row: u32, event: Event) {
        let old = self.rows.event(row).seq;
        self.rows.get_mut(row).event = event;
        self.remember_seq(row, old);
    }

    fn remember_seq(&mut self, row: u32, seq: Option<i64>) {
        let Some(seq) = seq else { return };
        let row = self.rows.get_mut(row);
        if row.event.seq != Some(seq) && !row.other_seqs.contains(&seq) {
            row.other_seqs.push(seq);
        }
    }

    fn after_tomb_change(&mut self, key: &mut Key, differences: &mut Differences) {
        if self.programs.iter().any(|program| program.gap_free) {
            self.settle(key, None, differences);
        }
    }

    /// Puts a row's event where it belongs in the order of its key.
    fn place(&mut self, key: &mut Key, row: u32) -> Place {
        let event = self.rows.event(row);
        let in_order = key.spine.last_ts().is_none_or(|last| last < event.ts);
        let before = if in_order {
            None
        } else {
            key.spine
                .search(|ts, other| ts < event.ts || (ts == event.ts && self.rows.event(other).order(event).is_lt()))
        };
        let punctuation = self.effective_punctuation;
        let (programs, counters) = (&mut self.programs, &mut self.counters);
        let cells = programs
            .iter_mut()
            .map(|program| Cell::fresh(class_of(program, event, punctuation, counters), true));
        let place = key.spine.insert(before, event.ts, row, cells);
        self.touch(key, key.spine.next(place));
        place
    }

    /// The entry after one that came or went follows another one now.
    fn touch(&self, key: &mut Key, place: Option<Place>) {
        let Some(place) = place else { return };
        for pattern in 0..self.programs.len() {
            key.spine.cell_mut(pattern, place).dirty = true;
        }
    }

    fn take_out(&mut self, key: &mut Key, place: Place, differences: &mut Differences) {
        let row = key.spine.row(place);
        for pattern in 0..self.programs.len() {
            if key.spine.cell(pattern, place).is_seen() {
                differences.take_out(pattern, row, key.spine.list(pattern, place));
            }
        }
        let after = key.spine.remove(place);
        self.touch(key, after);
    }

    /// Computes what is dirty in a key. `only` is the entry that came, if nothing but it and the next are dirty.
    pub(crate) fn settle(&mut self, key: &mut Key, only: Option<Place>, differences: &mut Differences) {
        for pattern in 0..self.programs.len() {
            let program = &mut self.programs[pattern];
            if program.gap_free {
                key.relink(&self.rows, pattern, self.effective_punctuation);
            }
            if matches!(program.window, Window::Events(_)) {
                key.renumber(pattern);
            }
            let (from, dirty) = match only {
                Some(place) if !program.gap_free => (only, 1 + usize::from(key.spine.next(place).is_some())),
                _ => find_dirty(key, pattern),
            };
            let mut propagation = Propagation {
                pattern,
                program,
                key,
                rows: &self.rows,
                scratch: &mut self.scratch,
            };
            propagation.run(from, dirty, differences);
        }
        let live = key.spine.live();
        self.counters.partial_matches = self.counters.partial_matches + live - key.live;
        self.counters.peak_partial_matches = self.counters.peak_partial_matches.max(self.counters.partial_matches);
        key.live = live;
    }

    /// Nets, names and orders what happened to one key.
    pub(crate) fn deliver(&mut self, key: &Arc<str>, mut differences: Differences) -> Vec<Change> {
        differences.net();
        let mut gone: Vec<Change> = differences
            .gone
            .iter()
            .map(|found| self.change(key, *found, true))
            .collect();
        let mut come: Vec<Change> = differences
            .come
            .iter()
            .map(|found| self.change(key, *found, false))
            .collect();
        if self.programs.iter().any(|program| program.hold) {
            gone.retain(|change| !self.programs[change.pattern].hold || self.unhold(change));
            let (now, later) = come.into_iter().partition(|change| self.may_tell(change));
            come = now;
            for change in later {
                self.held[change.pattern].insert((change.end, change.id()), change);
            }
        }
        Change::sort(&mut gone);
        Change::sort(&mut come);
        gone.append(&mut come);
        gone
    }

    fn may_tell(&self, change: &Change) -> bool {
        !self.programs[change.pattern].hold || self.effective_punctuation.is_some_and(|bound| change.end < bound)
    }

    /// Forgets a held insert that was wrong; true if it had been told already.
    fn unhold(&mut self, change: &Change) -> bool {
        self.held[change.pattern].remove(&(change.end, change.id())).is_none()
    }

    fn change(&self, key: &Arc<str>, (pattern, end_row, partial): Found, retracts: bool) -> Change {
        let program = &self.programs[pattern];
        let (first, last) = (self.rows.event(start_row(partial)), self.rows.event(end_row));
        let configuration = program.configurations.get(marked(partial));
        let until = match program.window {
            Window::Time(length) => Some(first.ts.saturating_add(length)),
            _ => None,
        };
        Change {
            retracts,
            pattern,
            name: program.name.clone(),
            key: key.clone(),
            start: first.ts,
            end: last.ts,
            until,
            first: first.id.clone(),
            last: last.id.clone(),
            state: program.state_name(configuration.state).clone(),
            registers: configuration.registers.clone(),
        }
    }
}

fn find_dirty(key: &Key, pattern: usize) -> (Option<Place>, usize) {
    let (mut first, mut count) = (None, 0);
    let mut place = key.spine.first();
    while let Some(here) = place {
        if key.spine.cell(pattern, here).dirty {
            first = first.or(Some(here));
            count += 1;
        }
        place = key.spine.next(here);
    }
    (first, count)
}

/// The class of an event for a pattern that sees it now, else `UNSEEN`.
pub(crate) fn class_of(program: &mut Program, event: &Event, punctuation: Option<i64>, counters: &mut Counters) -> u32 {
    if let Some(path) = &program.key_field {
        let value = match (&*path.steps[0], path.steps.len()) {
            ("ts", 1) => Value::Int(event.ts),
            ("type", 1) => EventView::kind(event),
            ("id", 1) => EventView::id(event),
            _ => EventView::field(event, path),
        };
        let field = match value {
            Value::Str(text) => text == event.key,
            Value::Int(number) => number.to_string() == *event.key,
            _ => false,
        };
        if !field {
            counters.unseen += 1;
            return UNSEEN;
        }
    }
    if let Some(sigma) = program.speculation {
        let released = punctuation.is_some_and(|bound| i128::from(event.ts) < i128::from(bound) + i128::from(sigma));
        if !released {
            return UNRELEASED;
        }
    }
    program.class_of(event)
}
