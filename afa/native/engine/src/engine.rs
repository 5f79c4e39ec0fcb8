//! The engine: records in, changes out. What a match is, is decided by the sets of events and arcs alone.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use foldhash::fast::FixedState;

use crate::arcs::book::ArcBook;
use crate::bindings::observing::{Scope, Touched};
use crate::changes::found::Findings;
use crate::changes::table::ChangeTable;
use crate::keys::folded::Folded;
use crate::keys::key::{Key, Tomb};
use crate::keys::spine::Place;
use crate::keys::table::{KeyTable, Known};
use crate::late::walk::Plan;
use crate::linear::matching::LinearScratch;
use crate::lists::matcher::Matcher;
use crate::predicates::asked::Asked;
use crate::program::compiled::{Program, Shared};
use crate::progress::counters::Counters;
use crate::progress::domain::Domain;
use crate::progress::limits::Limits;
use crate::raw::scan::{Mapping, Scanner};
use crate::rows::event::{Id, IdRef};
use crate::rows::store::Rows;
use crate::rows::stretch::Stretch;

/// What a retraction names.
#[derive(Clone, Copy, Debug)]
pub struct Retraction<'a> {
    /// Event time.
    pub ts: i64,
    /// The event's id.
    pub id: IdRef<'a>,
    /// Its revision.
    pub rev: i64,
    /// The sequence number, if it carries one.
    pub seq: Option<i64>,
}

/// The scanner of records that a snapshot brings back.
pub(crate) const RESTORED: usize = 0;
/// The scanner of records that come from outside, if their topics do not say otherwise.
pub(crate) const SOURCE: usize = 1;

/// Patterns and the state of all keys.
pub struct Engine {
    /// The patterns, in order of names.
    pub programs: Vec<Program>,
    /// Their arcs as the second input sees them.
    pub books: Vec<ArcBook>,
    /// Counted so far.
    pub counters: Counters,
    /// The limits.
    pub limits: Limits,
    /// What was said since the last `take_changes`.
    pub(crate) table: ChangeTable,
    pub(crate) telling: crate::changes::telling::Telling,
    pub(crate) shared: Shared,
    pub(crate) rows: Rows,
    /// Patterns that keep lists, by lane.
    pub(crate) lanes: Vec<usize>,
    /// Lanes whose patterns tell more, or less, than the ends of their partial matches.
    pub(crate) observed: Vec<usize>,
    /// Patterns that are linear.
    pub(crate) linear: Vec<usize>,
    pub(crate) numbers: KeyTable,
    pub(crate) keys: Vec<Option<Box<Key>>>,
    /// The state of those that are folded.
    pub(crate) folded: Vec<Folded>,
    pub(crate) free_keys: Vec<usize>,
    /// Keys that were idle when they were cleaned, the longest idle first.
    pub(crate) resting: VecDeque<usize>,
    pub(crate) dirty: crate::state::dirty::Dirty,
    pub(crate) walk: crate::progress::gauges::Walk,
    pub(crate) domains: Vec<Domain>,
    pub(crate) arc_punctuation: Option<i64>,
    /// Lives of arcs that their book does not tell.
    pub(crate) asked_lives: HashMap<(usize, Box<str>), crate::program::epochs::Life, FixedState>,
    pub(crate) arc_shapes: crate::arcs::shapes::Shapes,
    /// The greatest time of any stored event.
    pub(crate) newest: Option<i64>,
    /// The chunk that raw records are added to.
    pub(crate) open: Option<usize>,
    /// Some pattern has a key field.
    pub(crate) has_key_fields: bool,
    /// A pattern with AFA+O has a key field: an event that it does not see may fill a gap anywhere.
    pub(crate) must_look_closer: bool,
    /// The chunk whose rows are being taken.
    pub(crate) busy: Option<usize>,
    /// The chunks that restored events, and starts of restored partial matches, are added to.
    pub(crate) restored: [Option<usize>; 2],
    pub(crate) findings: Findings,
    /// None while it is in use.
    pub(crate) scratch: Option<Box<LinearScratch>>,
    pub(crate) asked: Asked,
    pub(crate) late: crate::late::one::LateScratch,
    pub(crate) sweeping: crate::progress::sweeping::Sweeping,
    pub(crate) sets_after_sweep: usize,
    pub(crate) set_bytes_after_sweep: usize,
    pub(crate) chunks_after_sweep: usize,
    pub(crate) known_after_sweep: usize,
    pub(crate) live_partial_matches: usize,
    pub(crate) promises: crate::progress::slack::Promises,
    pub(crate) overtaking: crate::progress::overtaking::Overtaking,
    pub(crate) agenda: crate::progress::agenda::Agenda,
}

impl Engine {
    /// An engine for these patterns, which have no arcs yet; raw records are read by this mapping.
    #[must_use]
    pub fn new(mut programs: Vec<Program>, shared: Shared, mapping: Mapping, limits: Limits) -> Self {
        programs.sort_by(|a, b| a.name.cmp(&b.name));
        let mut engine = Self {
            books: programs.iter().map(|_| ArcBook::default()).collect(),
            counters: Counters::default(),
            limits,
            table: ChangeTable::new(crate::changes::telling::faces(&programs)),
            telling: crate::changes::telling::Telling::default(),
            shared,
            rows: Rows::default(),
            lanes: Vec::new(),
            observed: Vec::new(),
            linear: Vec::new(),
            numbers: KeyTable::default(),
            keys: Vec::new(),
            folded: Vec::new(),
            free_keys: Vec::new(),
            resting: VecDeque::new(),
            dirty: crate::state::dirty::Dirty::default(),
            walk: crate::progress::gauges::Walk::default(),
            domains: vec![Domain::new(0, programs.len())],
            arc_punctuation: None,
            asked_lives: HashMap::default(),
            arc_shapes: crate::arcs::shapes::Shapes::default(),
            newest: None,
            open: None,
            busy: None,
            has_key_fields: programs.iter().any(|program| program.key_field.is_some()),
            must_look_closer: programs
                .iter()
                .any(|program| program.gap_free && program.key_field.is_some()),
            restored: [None; 2],
            findings: Findings::default(),
            scratch: None,
            asked: Asked::default(),
            late: crate::late::one::LateScratch::default(),
            sweeping: crate::progress::sweeping::Sweeping::default(),
            sets_after_sweep: 4096,
            set_bytes_after_sweep: 0,
            chunks_after_sweep: 64,
            known_after_sweep: 0,
            live_partial_matches: 0,
            promises: crate::progress::slack::Promises::default(),
            overtaking: crate::progress::overtaking::Overtaking::of(&programs),
            agenda: crate::progress::agenda::Agenda::of(&programs),
            programs,
        };
        engine.rows.scanners = vec![Scanner::new(Mapping::only_data(), &[]), Scanner::new(mapping, &[])];
        for (number, program) in engine.programs.iter_mut().enumerate() {
            program.max_set_size = limits.max_partial_matches_per_key;
            if program.chain.is_empty() {
                if program.is_observed() {
                    engine.observed.push(engine.lanes.len());
                }
                engine.lanes.push(number);
            } else {
                engine.linear.push(number);
            }
            let fields = program.fields();
            engine.rows.add_fields(&fields);
        }
        engine
    }

    /// The names of the keys that have state, in order.
    pub fn key_names(&mut self) -> Vec<String> {
        self.clean_all();
        let keys = self.keys.iter().flatten().filter(|key| !key.is_resting);
        let mut names: Vec<String> = keys.map(|key| key.name.to_string()).collect();
        names.sort_unstable();
        names
    }

    /// A pattern and what all share, to bring in a new body.
    pub fn program_and_shared(&mut self, pattern: usize) -> (&mut Program, &mut Shared) {
        (&mut self.programs[pattern], &mut self.shared)
    }

    /// The number of a key, made if there is none; none if there are too many.
    #[inline]
    pub(crate) fn key_number(&mut self, name: &str, domain: usize) -> Option<usize> {
        match self.numbers.wake(name, self.limits.max_keys) {
            Known::Key(number) => Some(number as usize),
            Known::Woken(number) => {
                self.wake_key(number as usize, domain);
                Some(number as usize)
            }
            Known::Nothing => self.new_key(name, domain),
        }
    }

    #[cold]
    fn new_key(&mut self, name: &str, domain: usize) -> Option<usize> {
        if self.numbers.len() >= self.limits.max_keys {
            self.counters.refused_keys += 1;
            return None;
        }
        let name: Arc<str> = name.into();
        let key = Some(Box::new(Key::new(name.clone(), domain, self.lanes.len())));
        let number = if let Some(number) = self.free_keys.pop() {
            self.keys[number] = key;
            number
        } else {
            self.keys.push(key);
            self.folded.push(Folded::NOT);
            self.keys.len() - 1
        };
        self.queue_key(number);
        self.dirty.begin_key(number);
        #[allow(clippy::cast_possible_truncation)] // limited by max_keys
        self.numbers.insert(&name, number as u32);
        Some(number)
    }

    /// The matcher for keys of a partition.
    pub(crate) fn matcher(&mut self, domain: usize) -> Matcher<'_> {
        Matcher {
            programs: &mut self.programs,
            shared: &mut self.shared,
            rows: &mut self.rows,
            lanes: &self.lanes,
            linear: &self.linear,
            scratch: &mut self.scratch,
            late: &mut self.late,
            punctuation: self.domains[domain].effective,
            max_partial_matches: self.limits.max_partial_matches_per_key,
            limits: &self.limits,
            findings: &mut self.findings,
        }
    }

    /// Takes a key out to work on it.
    pub(crate) fn take_key(&mut self, number: usize) -> Box<Key> {
        self.unfold_key(number);
        self.keys[number].take().expect("a key in use")
    }

    /// Puts it back.
    pub(crate) fn put_key(&mut self, number: usize, key: Box<Key>) {
        self.keys[number] = Some(key);
    }

    /// Takes rows that come after all that their key has, in order.
    pub(crate) fn append(&mut self, number: usize, rows: Stretch<'_>, first_record: Option<u32>) {
        if !self.observed.is_empty() {
            return self.append_observed(number, rows, first_record);
        }
        let mut key = self.take_key(number);
        let was_degraded = key.degraded;
        let before = live(&key);
        if let Stretch::Run(row, 1) = rows {
            self.matcher(key.domain()).append_one(&mut key, row, first_record);
        } else {
            self.append_rows(&mut key, rows, first_record);
        }
        self.newest = self.newest.max(key.spine.last_ts());
        self.after(&mut key, before, was_degraded);
        self.put_key(number, key);
    }

    /// Counts, limits and tells after a key was worked on.
    pub(crate) fn after(&mut self, key: &mut Key, before: usize, was_degraded: bool) {
        if !self.observed.is_empty() {
            self.forget_observed();
        }
        self.tell_after(key, before, was_degraded);
        self.sweep_if_grown(key);
    }

    /// The same where all that was found is to be told, and more may be that was taken out: no set goes before that.
    pub(crate) fn tell_after(&mut self, key: &mut Key, before: usize, was_degraded: bool) {
        self.live_partial_matches = self.live_partial_matches + live(key) - before;
        self.counters.peak_partial_matches = self.counters.peak_partial_matches.max(self.live_partial_matches);
        self.keep_limits(key);
        self.counters.degraded_keys += u64::from(key.degraded && !was_degraded);
        if !self.findings.list.is_empty() {
            self.tell(key);
        }
    }

    /// Takes one insert or revision, wherever it belongs.
    pub(crate) fn insert(&mut self, number: usize, row: u32) {
        let mut key = self.take_key(number);
        let was_degraded = key.degraded;
        let before = live(&key);
        let ts = self.rows.ts(row);
        let place = key.spine.search(&self.rows, ts);
        let is_alone = place.is_none_or(|place| key.spine.ts(place, &self.rows) > ts);
        let known = if is_alone {
            None
        } else {
            key.find(&self.rows, ts, self.rows.id(row))
        };
        let rows = [Some(row), known.map(|place| key.spine.row(place))];
        let (from, touched) = (self.table.rows.len(), Touched { ts, rows });
        let watched = self.watch_event(&key, touched);
        let replaced = known.map(|place| (row, key.spine.row(place)));
        if let Some(place) = known {
            self.revise(&mut key, place, row);
        } else if !key.has_tombs() || self.outranks_tomb(&mut key, row) {
            let place = if is_alone {
                place
            } else {
                key.spine.place_of(&self.rows, row)
            };
            self.place(&mut key, row, place);
        }
        self.newest = self.newest.max(key.spine.last_ts());
        self.after(&mut key, before, was_degraded);
        self.tell_watched(&mut key, watched, Scope::Around(touched), replaced);
        self.order_observed(from);
        self.put_key(number, key);
    }

    /// Puts a row before the entry where it belongs (at the end if none); no entry has its identity.
    fn place(&mut self, key: &mut Key, row: u32, place: Option<Place>) {
        let gap_free = self.any_gap_free();
        let hides = gap_free && self.hides(row);
        let is_observed = !self.observed.is_empty();
        let mut matcher = self.matcher(key.domain());
        match place {
            // Observed patterns may need entries that lie before the punctuation.
            None if !hides && is_observed => matcher.append(key, Stretch::Run(row, 1), None),
            None if !hides => matcher.append_one(key, row, None),
            Some(place) if !gap_free => matcher.insert_late(key, row, place),
            _ => {
                let plan = Plan {
                    inserts: vec![row],
                    relinks: hides,
                    ..Plan::default()
                };
                matcher.apply(key, &plan);
            }
        }
    }

    /// Whether a row is unseen by a pattern with AFA+O, so that its sequence number fills gaps.
    pub(crate) fn hides(&self, row: u32) -> bool {
        self.lanes.iter().any(|pattern| {
            let program = &self.programs[*pattern];
            program.gap_free
                && program.key_field.is_some()
                && self.rows.class(*pattern, row) == crate::program::compiled::UNSEEN
        })
    }

    pub(crate) fn any_gap_free(&self) -> bool {
        self.programs.iter().any(|program| program.gap_free)
    }

    /// Whether an insert wins against the retraction of its identity, if there is one, which is then forgotten.
    fn outranks_tomb(&mut self, key: &mut Key, row: u32) -> bool {
        let identity = (self.rows.ts(row), self.rows.id(row).owned());
        let tombs = &mut key.rare_mut().tombs;
        let Some(tomb) = tombs.get_mut(&identity) else {
            return true;
        };
        if self.rows.rev(row) <= tomb.rev {
            tomb.remember_seq(self.rows.seq(row));
            self.relink(key);
            return false;
        }
        for seq in tombs.remove(&identity).map(|tomb| tomb.seqs).unwrap_or_default() {
            self.rows.remember_seq(row, Some(seq));
        }
        if self.any_gap_free() {
            // What the retraction filled may be a gap again.
            self.relink(key);
        }
        true
    }

    /// Sequence numbers came or went that belong to no entry.
    fn relink(&mut self, key: &mut Key) {
        if self.any_gap_free() {
            let plan = Plan {
                relinks: true,
                ..Plan::default()
            };
            self.matcher(key.domain()).apply(key, &plan);
        }
    }

    /// An insert for an identity that is there: the greater rank stays.
    fn revise(&mut self, key: &mut Key, place: Place, row: u32) {
        let old = key.spine.row(place);
        let (before, after) = (self.rows.rank(old), self.rows.rank(row));
        self.counters.conflicts += u64::from(before.0 == after.0 && before != after);
        if after <= before {
            return self.rows.remember_seq(old, self.rows.seq(row));
        }
        for seq in self.rows.seqs(old) {
            self.rows.remember_seq(row, Some(seq));
        }
        self.findings.aliases.push((row, old));
        let plan = Plan {
            inserts: vec![row],
            removals: vec![old],
            relinks: self.hides(old) || self.hides(row),
            ..Plan::default()
        };
        self.matcher(key.domain()).apply(key, &plan);
        self.findings.net(0);
    }

    /// Takes one retraction.
    pub(crate) fn retract(&mut self, number: usize, retraction: &Retraction<'_>) {
        let mut key = self.take_key(number);
        let was_degraded = key.degraded;
        let before = live(&key);
        let identity = (retraction.ts, retraction.id.owned());
        let known = key.find(&self.rows, retraction.ts, retraction.id);
        let row = known.map(|place| key.spine.row(place));
        let touched = Touched {
            ts: retraction.ts,
            rows: [row, None],
        };
        let from = self.table.rows.len();
        let watched = self.watch_event(&key, touched);
        if let Some(place) = known {
            self.take_out(&mut key, place, retraction, identity);
        } else {
            let tomb = key.rare_mut().tombs.entry(identity).or_insert_with(|| Tomb {
                rev: retraction.rev,
                seqs: Vec::new(),
            });
            tomb.rev = tomb.rev.max(retraction.rev);
            tomb.remember_seq(retraction.seq);
            self.relink(&mut key);
        }
        self.after(&mut key, before, was_degraded);
        self.tell_watched(&mut key, watched, Scope::Around(touched), None);
        self.order_observed(from);
        self.put_key(number, key);
    }

    fn take_out(&mut self, key: &mut Key, place: Place, retraction: &Retraction<'_>, identity: (i64, Id)) {
        let row = key.spine.row(place);
        if retraction.rev < self.rows.rev(row) {
            self.counters.idle_retractions += 1;
            return self.rows.remember_seq(row, retraction.seq);
        }
        let mut tomb = Tomb {
            rev: retraction.rev,
            seqs: self.rows.seqs(row),
        };
        tomb.remember_seq(retraction.seq);
        key.rare_mut().tombs.insert(identity, tomb);
        let plan = Plan {
            removals: vec![row],
            relinks: self.any_gap_free(),
            ..Plan::default()
        };
        self.matcher(key.domain()).apply(key, &plan);
    }
}

/// The partial matches after the last event, a start event counted once.
pub(crate) fn live(key: &Key) -> usize {
    key.lanes.iter().map(|lane| lane.list().len()).sum()
}
