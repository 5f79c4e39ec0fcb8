//! The state of one key: its ordered events, what remains of those before the punctuation, and its retractions.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use foldhash::fast::FixedState;

use crate::configuration::PartialMatch;
use crate::event::Id;
use crate::pattern::Window;
use crate::rows::Rows;
use crate::spine::{Place, Spine, UNSEEN};

/// What one pattern keeps of the events before the punctuation: the last of them, without the event itself.
#[derive(Debug, Default)]
pub struct Cover {
    /// The partial matches that end there.
    pub list: Vec<PartialMatch>,
    /// Its sequence number, if the pattern saw any event.
    pub seq: Option<i64>,
    /// How many events the pattern saw before the punctuation (for windows in events).
    pub count: u64,
    /// Sequence numbers of retracted or unseen events that were cleaned up, still after the cover's.
    pub hidden_seqs: BTreeSet<i64>,
}

/// One key.
#[derive(Debug)]
pub struct Key {
    /// Its name.
    pub name: Arc<str>,
    /// Its events at or after the punctuation of the last cleanup.
    pub spine: Spine,
    /// Per pattern, what was before.
    pub covers: Vec<Cover>,
    /// Retractions by identity: their rows.
    pub tombs: BTreeMap<(i64, Id), u32>,
    /// Partial matches that end at its last event.
    pub live: usize,
    /// Per pattern with a window in events: the ordinal of each start event's row.
    pub ordinals: Vec<HashMap<u32, u64, FixedState>>,
}

impl Key {
    /// A key without events.
    #[must_use]
    pub fn new(name: Arc<str>, patterns: usize) -> Self {
        Self {
            name,
            spine: Spine::new(patterns),
            covers: (0..patterns).map(|_| Cover::default()).collect(),
            tombs: BTreeMap::new(),
            live: 0,
            ordinals: (0..patterns).map(|_| HashMap::default()).collect(),
        }
    }

    /// Whether nothing of it need be kept.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.spine.is_empty() && self.tombs.is_empty() && self.covers.iter().all(|cover| cover.list.is_empty())
    }

    /// The entry with this identity.
    #[must_use]
    pub fn find(&self, rows: &Rows, ts: i64, id: &Id) -> Option<Place> {
        let mut place = self.spine.search(|other, _| other < ts);
        while let Some(here) = place {
            if self.spine.ts(here) != ts {
                return None;
            }
            if rows.event(self.spine.row(here)).id == *id {
                return Some(here);
            }
            place = self.spine.next(here);
        }
        None
    }

    /// The entry before this one that the pattern sees.
    fn seen_before(&self, pattern: usize, place: Place) -> Option<Place> {
        let mut before = self.spine.previous(place);
        while let Some(here) = before {
            if self.spine.cell(pattern, here).is_seen() {
                return Some(here);
            }
            before = self.spine.previous(here);
        }
        None
    }

    /// AFA+O: marks anew over which gaps a pattern may step, and dirties what changed.
    pub fn relink(&mut self, rows: &Rows, pattern: usize, punctuation: Option<i64>) {
        let mut place = self.spine.first();
        while let Some(here) = place {
            if self.spine.cell(pattern, here).is_seen() {
                let linked = self.is_linked(rows, pattern, here, punctuation);
                let cell = self.spine.cell_mut(pattern, here);
                if cell.linked != linked {
                    cell.linked = linked;
                    cell.dirty = true;
                }
            }
            place = self.spine.next(here);
        }
    }

    fn is_linked(&self, rows: &Rows, pattern: usize, place: Place, punctuation: Option<i64>) -> bool {
        if punctuation.is_some_and(|punctuation| self.spine.ts(place) < punctuation) {
            return true;
        }
        let before = match self.seen_before(pattern, place) {
            Some(before) => rows.event(self.spine.row(before)).seq,
            None => self.covers[pattern].seq,
        };
        let (Some(before), Some(here)) = (before, rows.event(self.spine.row(place)).seq) else {
            return false;
        };
        here > before && (here - 1 == before || self.all_hidden(rows, pattern, before, here))
    }

    /// Whether every number between the two is that of a retracted or unseen event.
    fn all_hidden(&self, rows: &Rows, pattern: usize, before: i64, here: i64) -> bool {
        let between = |seq: &i64| before < *seq && *seq < here;
        let mut gone: BTreeSet<i64> = self.covers[pattern]
            .hidden_seqs
            .iter()
            .copied()
            .filter(between)
            .collect();
        let mut hidden: Vec<u32> = self.tombs.values().copied().collect();
        let mut place = self.spine.first();
        while let Some(at) = place {
            if self.spine.cell(pattern, at).class == UNSEEN {
                hidden.push(self.spine.row(at));
            }
            place = self.spine.next(at);
        }
        for row in hidden {
            gone.extend(rows.get(row).seqs().filter(between));
        }
        i128::try_from(gone.len()).is_ok_and(|count| count == i128::from(here) - i128::from(before) - 1)
    }

    /// Windows in events: numbers what the pattern sees.
    pub fn renumber(&mut self, pattern: usize) {
        let mut ordinal = self.covers[pattern].count;
        let mut place = self.spine.first();
        while let Some(here) = place {
            if self.spine.cell(pattern, here).is_seen() {
                self.ordinals[pattern].insert(self.spine.row(here), ordinal);
                ordinal += 1;
            }
            place = self.spine.next(here);
        }
    }

    /// Drops what lies before the punctuation, down to the cover. Everything there must be computed.
    pub fn clean(&mut self, rows: &Rows, windows: &[Window], punctuation: i64) {
        let mut place = self.spine.first().filter(|first| self.spine.ts(*first) < punctuation);
        let mut last = None;
        while let Some(here) = place {
            for (pattern, cover) in self.covers.iter_mut().enumerate() {
                let cell = self.spine.cell(pattern, here);
                debug_assert!(!cell.dirty, "cleaned up before it was computed");
                let row = rows.get(self.spine.row(here));
                if cell.class == UNSEEN {
                    cover.hidden_seqs.extend(row.seqs());
                } else {
                    cover.seq = row.event.seq;
                    cover.count += 1;
                }
            }
            last = Some(here);
            place = self.spine.next(here).filter(|next| self.spine.ts(*next) < punctuation);
        }
        if let Some(last) = last {
            for (pattern, cover) in self.covers.iter_mut().enumerate() {
                cover.list.clear();
                cover.list.extend_from_slice(self.spine.list(pattern, last));
            }
            self.spine.drop_through(last);
        }
        self.clean_covers(rows, windows, punctuation);
        self.clean_tombs(rows, punctuation);
    }

    fn clean_covers(&mut self, rows: &Rows, windows: &[Window], punctuation: i64) {
        for (pattern, window) in windows.iter().enumerate() {
            let cover = &mut self.covers[pattern];
            let ordinals = &mut self.ordinals[pattern];
            match window {
                Window::None => {}
                Window::Time(length) => cover.list.retain(|partial| {
                    let start = rows.event(crate::configuration::start_row(*partial)).ts;
                    start.saturating_add(*length) > punctuation
                }),
                Window::Events(events) => {
                    let count = cover.count;
                    ordinals.retain(|_, ordinal| *ordinal + events > count);
                    cover
                        .list
                        .retain(|partial| ordinals.contains_key(&crate::configuration::start_row(*partial)));
                }
            }
        }
    }

    fn clean_tombs(&mut self, rows: &Rows, punctuation: i64) {
        while let Some(entry) = self.tombs.first_entry() {
            if entry.key().0 >= punctuation {
                break;
            }
            let row = rows.get(entry.remove());
            self.covers
                .iter_mut()
                .for_each(|cover| cover.hidden_seqs.extend(row.seqs()));
        }
        for cover in &mut self.covers {
            // A number at or before the cover's can be in no gap any more.
            if let Some(seq) = cover.seq {
                cover.hidden_seqs = cover.hidden_seqs.split_off(&seq);
            }
        }
    }
}
