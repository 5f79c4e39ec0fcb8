//! How long observed patterns need a key's events, and what is left of matches whose start goes.

use std::sync::Arc;

use crate::bindings::observing::{Progress, Scope};
use crate::bindings::selecting::{Counted, CountedEnds};
use crate::engine::Engine;
use crate::keys::key::Key;
use crate::lists::configuration::{Word, start_row};
use crate::lists::matcher::expiry;
use crate::program::pattern::{Window, first_open};
use crate::program::query::Output;
use crate::state::form::Writer;

impl Engine {
    /// Forgets the starts of matches that nothing can change any more; the answer is the time before which no event is
    /// needed.
    pub(crate) fn forget_starts(&mut self, key: &mut Key, punctuation: i64) -> i64 {
        let needs = self.needs(key, punctuation);
        for (lane, needed) in &needs {
            if self.programs[self.lanes[*lane]].output == Output::NonOverlapping {
                let ends = self.ends_before(key, *lane, *needed);
                let forgotten = key.forgotten_mut(*lane);
                (forgotten.before, forgotten.ends) = (forgotten.before.max(Some(*needed)), ends);
                if let Some(counted) = &mut forgotten.counted {
                    counted.forget(*needed);
                }
            }
        }
        self.kept_for(&needs, punctuation)
    }

    /// By observed lane, the time from which it needs start events.
    fn needs(&mut self, key: &Key, punctuation: i64) -> Vec<(usize, i64)> {
        let lanes = self.observed.clone();
        let need = |lane: usize| (lane, self.needed_from(key, lane, punctuation));
        lanes.into_iter().map(need).collect()
    }

    fn kept_for(&self, needs: &[(usize, i64)], punctuation: i64) -> i64 {
        let looks_back = |lane: usize| self.programs[self.lanes[lane]].looks_back();
        let kept = needs
            .iter()
            .map(|(lane, needed)| needed.saturating_sub(looks_back(*lane)));
        kept.fold(punctuation, i64::min)
    }

    /// The time before which no event is needed.
    pub(crate) fn kept_from(&mut self, key: &Key, punctuation: i64) -> i64 {
        let needs = self.needs(key, punctuation);
        self.kept_for(&needs, punctuation)
    }

    /// Writes where matches ended whose start is forgotten, if there are such.
    pub(crate) fn write_forgotten(&mut self, writer: &mut Writer, key: &Key, punctuation: i64) {
        let mut kept: Vec<(Arc<str>, CountedEnds)> = Vec::new();
        for lane in self.observed.clone() {
            let pattern = self.lanes[lane];
            if self.programs[pattern].output == Output::NonOverlapping {
                let needed = self.needed_from(key, lane, punctuation);
                let ends = self.ends_before(key, lane, needed);
                kept.push((self.programs[pattern].name.clone(), ends));
            }
        }
        kept.retain(|(_, ends)| !ends.is_empty());
        if kept.is_empty() {
            return;
        }
        writer.length(kept.len());
        for (name, ends) in kept {
            writer.text(&name);
            writer.length(ends.len());
            for (partition, end) in &ends {
                writer.binary(partition);
                writer.signed(end.ts);
                writer.signed(end.seq);
                writer.text(&end.id.text());
            }
        }
    }

    /// The time from which a lane needs start events.
    pub(crate) fn needed_from(&mut self, key: &Key, lane: usize, punctuation: i64) -> i64 {
        let pattern = self.lanes[lane];
        let program = &self.programs[pattern];
        if let Window::Time(length) = program.window
            && program.needs_whole_windows()
        {
            let emitted = self.domains[key.domain()].progress(program, pattern).emitted;
            let decided = emitted.map_or(i64::MIN, |emitted| emitted.min(punctuation));
            return first_open(decided, length);
        }
        // Events that come are for partial matches that live at the punctuation, or begin later.
        let place = key.spine.search(&self.rows, punctuation);
        let list = self.matcher(key.domain()).list_at(key, lane, place);
        let program = &self.programs[pattern];
        // What is over would keep its own start event, and so itself, where nothing comes any more.
        let lives = |word: &&Word| expiry(program, &self.rows, start_row(**word)) > punctuation;
        let oldest = list.iter().find(lives);
        let oldest = oldest.and_then(|word| self.rows.start_ts(start_row(*word)));
        oldest.map_or(punctuation, |oldest| oldest.min(punctuation))
    }

    /// By partition, where the last match ended that counts and begins before an instant, as far as that matters to
    /// what begins later.
    pub(crate) fn ends_before(&mut self, key: &Key, lane: usize, needed: i64) -> CountedEnds {
        let known = key.forgotten(lane);
        let mut ends = known.ends.clone();
        let has_more = key
            .spine
            .search(&self.rows, i64::MIN)
            .is_some_and(|first| key.spine.ts(first, &self.rows) < needed);
        if has_more && known.before < Some(needed) {
            match &known.counted {
                Some(counted) => counted.add_ends(needed, &mut ends),
                None => self.counted_now(key, lane).add_ends(needed, &mut ends),
            }
        }
        ends.retain(|_, end| end.ts >= needed);
        ends
    }

    /// The matches of a key that count.
    fn counted_now(&mut self, key: &Key, lane: usize) -> Counted {
        let pattern = self.lanes[lane];
        let progress = self.domains[key.domain()].progress(&self.programs[pattern], pattern);
        self.counted_at(key, lane, progress)
    }

    /// Keeps those that counted when the key's partition had come so far, unless it is known already which count.
    pub(crate) fn know_counted(&mut self, key: &mut Key, lane: usize, progress: Progress) {
        if key.forgotten(lane).counted.is_none() {
            let counted = self.counted_at(key, lane, progress);
            key.forgotten_mut(lane).counted = Some(counted);
        }
    }

    /// Those that counted when the key's partition had come so far.
    fn counted_at(&mut self, key: &Key, lane: usize, progress: Progress) -> Counted {
        let told = self.matches_of(key, lane, Scope::Key, progress);
        Counted::of(&self.rows, &told)
    }
}
