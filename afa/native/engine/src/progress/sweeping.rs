//! Letting go of what all keys share once none of them refers to it: chunks, epochs, bodies, sets.

use crate::engine::Engine;
use crate::keys::key::Key;
use crate::lists::configuration::{code_of, start_row, unmarked};
use crate::program::compiled::Program;
use crate::program::pattern::Window;
use crate::rows::store::parts;

/// What is known of patterns as long as no arc changes: there may be many, and most have nothing to let go.
#[derive(Debug, Default)]
pub(crate) struct Sweeping {
    arcs_version: Option<u64>,
    /// Patterns with more than one epoch.
    changing: Vec<usize>,
    /// If all windows are in time.
    longest_window: Option<i64>,
    /// A limit has let events go since it was looked what went with them.
    pub(crate) has_dropped: bool,
}

impl Sweeping {
    fn of(programs: &[Program], arcs_version: u64) -> Self {
        let changes = |pattern: &usize| programs[*pattern].alive_until(i64::MIN) < i64::MAX;
        let windows = programs.iter().map(|program| match program.window {
            Window::Time(length) => Some(length),
            _ => None,
        });
        Self {
            arcs_version: Some(arcs_version),
            changing: (0..programs.len()).filter(changes).collect(),
            longest_window: windows.reduce(|one, other| Some(one?.max(other?))).unwrap_or(Some(0)),
            has_dropped: false,
        }
    }
}

impl Engine {
    /// What all keys share: chunks, epochs, sets.
    pub(crate) fn clean_shared(&mut self) {
        let Some(punctuation) = self.domains.iter().map(|domain| domain.effective).min().flatten() else {
            return;
        };
        if self.sweeping.arcs_version != Some(self.shared.arcs_version) {
            let has_dropped = self.sweeping.has_dropped;
            self.sweeping = Sweeping {
                has_dropped,
                ..Sweeping::of(&self.programs, self.shared.arcs_version)
            };
        }
        for pattern in &self.sweeping.changing {
            self.programs[*pattern].forget_epochs(punctuation);
        }
        if let Some(length) = self.sweeping.longest_window {
            self.rows.clean([self.open, self.busy], |_, newest| {
                newest.saturating_add(length) <= punctuation
            });
        } else if self.rows.live_chunks() > 2 * self.chunks_after_sweep {
            self.sweep_chunks();
        }
        self.forget_bodies_if_grown();
        let sets: usize = self.programs.iter().map(|program| program.sets.len()).sum();
        if sets > 2 * self.sets_after_sweep {
            self.sweep_sets(None);
        }
    }

    /// When no row waits.
    pub(crate) fn clean_after_batch(&mut self) {
        self.clean_dropped();
        self.pack_keys();
    }

    /// Lets go what belongs to events that went at a limit. Without punctuations nothing else would.
    fn clean_dropped(&mut self) {
        if !std::mem::take(&mut self.sweeping.has_dropped) {
            return;
        }
        if self.rows.live_chunks() > 2 * self.chunks_after_sweep {
            self.sweep_chunks();
        } else {
            self.rows.clean([self.open, self.busy], |_, _| false);
        }
    }

    /// Lets chunks go that no partial match refers to, where no window says so.
    fn sweep_chunks(&mut self) {
        self.unfold_all();
        let mut marks = self.rows.marks();
        for key in self.keys.iter().flatten() {
            key.each_word(|_, word| {
                if let Some(mark) = marks.get_mut(parts(start_row(word)).0) {
                    *mark = true;
                }
            });
        }
        self.rows.clean([self.open, self.busy], |chunk, _| !marks[chunk]);
        self.chunks_after_sweep = self.rows.live_chunks().max(64);
    }

    /// Drops sets and configurations that nothing refers to any more; `taken` is a key that is being worked on.
    pub(crate) fn sweep_sets(&mut self, taken: Option<&Key>) {
        self.unfold_all();
        let mut marks: Vec<Vec<bool>> = self.programs.iter().map(|_| vec![true]).collect();
        let lanes = &self.lanes;
        for key in self.keys.iter().flatten().map(|key| &**key).chain(taken) {
            key.each_word(|owner, word| {
                let pattern = owner.pattern(lanes);
                let number = unmarked(code_of(word));
                let marks: &mut Vec<bool> = &mut marks[pattern];
                if marks.len() <= number {
                    marks.resize(number + 1, false);
                }
                marks[number] = true;
            });
        }
        for (number, (program, marks)) in self.programs.iter_mut().zip(&mut marks).enumerate() {
            let found = self.findings.list.iter().filter(|found| found.pattern == number);
            program.sweep(marks, found.map(|found| found.configuration));
        }
        self.telling.forget_outcomes();
        if let Some(scratch) = &mut self.scratch {
            scratch.words.forget();
        }
        let left: usize = self.programs.iter().map(|program| program.sets.len()).sum();
        self.sets_after_sweep = left.max(4096);
        self.set_bytes_after_sweep = self.programs.iter().map(|program| program.sets.bytes()).sum();
    }
}
