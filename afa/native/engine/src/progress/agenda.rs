//! Which keys a punctuation has to look at: those in which a window closes, an event is released, or something becomes
//! final by then. Of many keys most have nothing to do with most punctuations.

use crate::engine::Engine;
use crate::input::index_of;
use crate::keys::key::Key;
use crate::keys::packing::Renumbering;
use crate::program::compiled::Program;
use crate::program::pattern::Window;
use crate::segment::NO_KEY;

/// No punctuation has to look, but the very last one.
const NEVER: i64 = i64::MAX;

/// When keys are to be looked at.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    /// How long after an event its key has to be looked at, each length once, the shortest first; none: never.
    delays: Vec<i64>,
    /// By number of the key: the punctuation from which on it has to be. It may be too early, never too late.
    dues: Vec<i64>,
    /// Whether there are patterns whose open candidates hold their punctuation back.
    has_candidates: bool,
    /// The keys in which candidates may have come or gone since the last punctuation, each once.
    touched: Vec<u32>,
    /// By number of the key: whether it is one of them.
    is_touched: Vec<bool>,
}

impl Agenda {
    /// That of these patterns.
    pub(crate) fn of(programs: &[Program]) -> Self {
        let mut delays: Vec<i64> = programs.iter().flat_map(delays_of).collect();
        delays.sort_unstable();
        delays.dedup();
        Self {
            delays,
            has_candidates: programs.iter().any(Program::has_open_candidates),
            ..Self::default()
        }
    }

    /// Notes that something of a key has changed.
    pub(crate) fn touch(&mut self, number: u32) {
        let place = number as usize;
        if !self.has_candidates {
            return;
        }
        if self.is_touched.len() <= place {
            self.is_touched.resize(place + 1, false);
        }
        if !self.is_touched[place] {
            self.is_touched[place] = true;
            self.touched.push(number);
        }
    }

    /// Keys have other numbers.
    pub(crate) fn renumber(&mut self, numbering: &Renumbering) {
        numbering.pack(&mut self.dues);
        numbering.pack(&mut self.is_touched);
        let touched = self.touched.iter().filter_map(|number| numbering.of_key(*number));
        self.touched = touched.collect();
    }

    /// Takes out those of the touched keys that are asked for.
    pub(crate) fn take_touched(&mut self, is_asked_for: impl Fn(u32) -> bool) -> Vec<u32> {
        let (taken, left) = self.touched.drain(..).partition(|number| is_asked_for(*number));
        self.touched = left;
        for number in &taken {
            self.is_touched[*number as usize] = false;
        }
        taken
    }

    fn set(&mut self, number: usize, due: i64) {
        if self.dues.len() <= number {
            self.dues.resize(number + 1, NEVER);
        }
        self.dues[number] = due;
    }

    /// Notes events of keys, each with its time.
    pub(crate) fn meet(&mut self, keys: &[u32], times: &[i64]) {
        let Some(delay) = self.delays.first().copied() else {
            return;
        };
        for (key, ts) in keys.iter().zip(times).filter(|(key, _)| **key != NO_KEY) {
            let (number, due) = (*key as usize, ts.saturating_add(delay));
            if self.dues.get(number).is_none_or(|known| due < *known) {
                self.set(number, due);
            }
            self.touch(*key);
        }
    }

    /// Notes that a key has come from elsewhere.
    pub(crate) fn meet_all(&mut self, number: u32) {
        if !self.delays.is_empty() {
            self.set(number as usize, i64::MIN);
            self.touch(number);
        }
    }
}

/// How long after an event a pattern's punctuations have to look at its key.
fn delays_of(program: &Program) -> impl Iterator<Item = i64> + use<> {
    let query = program.query.as_deref();
    let closes = program.has_open_candidates() || query.is_some_and(|query| query.timeouts);
    let length = match program.window {
        Window::Time(length) if closes => Some(length),
        _ => None,
    };
    let is_final = program.gap_free || program.is_observed() && program.hold;
    let released = program.speculation.map(|sigma| 1_i64.saturating_sub(sigma));
    length.into_iter().chain(is_final.then_some(1)).chain(released)
}

impl Engine {
    /// The keys of a partition that a punctuation has to look at.
    pub(crate) fn due_keys(&mut self, domain: usize, punctuation: i64) -> Vec<usize> {
        let dues = self.agenda.dues.iter().enumerate();
        let due: Vec<usize> = dues.filter(|(_, due)| **due <= punctuation).map(|due| due.0).collect();
        due.into_iter().filter(|number| self.is_due(*number, domain)).collect()
    }

    /// Whether a key of which something was due is one of a partition and has events left.
    fn is_due(&mut self, number: usize, domain: usize) -> bool {
        let has_events = self.has_events(number, domain);
        let is_elsewhere = self
            .keys
            .get(number)
            .and_then(Option::as_ref)
            .is_some_and(|key| key.domain() != domain);
        if !has_events && !is_elsewhere {
            self.agenda.set(number, NEVER);
            self.agenda.touch(index_of(number));
        }
        has_events
    }

    /// Whether a key has events, and belongs to a partition.
    pub(crate) fn has_events(&mut self, number: usize, domain: usize) -> bool {
        if self.keys.get(number).is_none_or(Option::is_none) {
            return false;
        }
        self.unfold_key(number);
        let key = self.keys[number].as_ref();
        key.is_some_and(|key| key.domain() == domain && !key.spine.is_empty())
    }

    /// A punctuation has looked at keys: from which one on the next has to.
    pub(crate) fn settle_dues(&mut self, keys: &[usize], punctuation: i64) {
        for number in keys {
            let due = self.keys[*number]
                .as_ref()
                .map_or(NEVER, |key| self.next_due(key, punctuation));
            self.agenda.set(*number, due);
        }
    }

    fn next_due(&self, key: &Key, punctuation: i64) -> i64 {
        let after = |delay: i64| {
            // The first event whose time is up only later.
            let first = i128::from(punctuation) - i128::from(delay) + 1;
            let first = i64::try_from(first.max(i64::MIN.into())).ok()?;
            let place = key.spine.search(&self.rows, first)?;
            Some(key.spine.ts(place, &self.rows).saturating_add(delay))
        };
        let delays = self.agenda.delays.iter().copied();
        delays.filter_map(after).min().unwrap_or(NEVER)
    }
}
