//! The state of one key: its ordered events, the partial matches after them, and its retractions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::configuration::Word;
use crate::event::{Id, IdRef};
use crate::lane::{Lane, Lanes, List};
use crate::rows::Rows;
use crate::spine::{Place, Spine};

/// A retraction that is remembered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tomb {
    /// Its revision.
    pub rev: i64,
    /// The sequence numbers that records of its identity carried.
    pub seqs: Vec<i64>,
}

impl Tomb {
    /// Notes another sequence number.
    pub fn remember_seq(&mut self, seq: Option<i64>) {
        if let Some(seq) = seq
            && !self.seqs.contains(&seq)
        {
            self.seqs.push(seq);
        }
    }
}

/// For AFA+O: what is left of the events before the first stored one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cover {
    /// The sequence number of the last event that the pattern saw.
    pub seq: Option<i64>,
    /// Sequence numbers of retracted or unseen events, still after the cover's.
    pub hidden_seqs: BTreeSet<i64>,
}

/// Who keeps a word.
#[derive(Clone, Copy, Debug)]
pub enum Owner {
    /// A lane.
    Lane(usize),
    /// A linear pattern.
    Pattern(usize),
}

impl Owner {
    /// The pattern.
    #[must_use]
    pub fn pattern(self, lanes: &[usize]) -> usize {
        match self {
            Self::Lane(lane) => lanes[lane],
            Self::Pattern(pattern) => pattern,
        }
    }
}

/// One key. What every event touches comes first: a key that is rarely met should cost few cache lines.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Key {
    /// What patterns that keep lists know after the last event, by lane.
    pub lanes: Lanes,
    /// Its stored events.
    pub spine: Spine,
    /// The partition that it belongs to, by the engine's number.
    pub domain: usize,
    /// With this many pages it is measured again.
    pub next_measure: usize,
    /// A limit was met: its results may be incomplete.
    pub degraded: bool,
    /// Whether it waits in the queue of keys to be cleaned.
    pub queued: bool,
    /// Its name.
    pub name: Arc<str>,
    /// Retractions by identity.
    pub tombs: BTreeMap<(i64, Id), Tomb>,
    /// Partial matches of linear patterns before the first stored event, by pattern.
    pub carried: Vec<(usize, List)>,
    /// By lane; only where a pattern asks for AFA+O.
    pub covers: Vec<Cover>,
}

impl Key {
    /// A key without events.
    #[must_use]
    pub fn new(name: Arc<str>, domain: usize, lanes: usize) -> Self {
        Self {
            name,
            domain,
            spine: Spine::default(),
            lanes: Lanes::from_elem(Lane::default(), lanes),
            carried: Vec::new(),
            covers: Vec::new(),
            tombs: BTreeMap::new(),
            degraded: false,
            queued: false,
            next_measure: 0,
        }
    }

    /// Reads a little of every part that an event needs.
    #[inline]
    pub(crate) fn touch(&self) -> usize {
        let last = self
            .spine
            .pages
            .back()
            .map_or(0, |page| page.len() ^ page.entering.len());
        self.lanes.len() ^ last ^ self.domain ^ self.tombs.len()
    }

    /// Whether nothing of it need be kept.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let no_lists = self.lanes.iter().all(|lane| lane.list().is_empty()) && self.carried.is_empty();
        self.spine.is_empty() && self.tombs.is_empty() && no_lists
    }

    /// The entry with this identity.
    #[must_use]
    pub fn find(&self, rows: &Rows, ts: i64, id: IdRef<'_>) -> Option<Place> {
        let mut place = self.spine.search(rows, ts);
        while let Some(here) = place {
            let row = self.spine.row(here);
            if rows.ts(row) != ts {
                return None;
            }
            if rows.id(row) == id {
                return Some(here);
            }
            place = self.spine.next(here);
        }
        None
    }

    /// Visits every word that is kept, with the lane or pattern that keeps it.
    pub fn each_word(&self, mut visit: impl FnMut(Owner, Word)) {
        for (lane, state) in self.lanes.iter().enumerate() {
            for word in state.list() {
                visit(Owner::Lane(lane), *word);
            }
        }
        for page in self.spine.pages.iter() {
            for (lane, entering) in page.entering.iter().enumerate() {
                for word in entering.list() {
                    visit(Owner::Lane(lane), *word);
                }
            }
        }
        for (pattern, list) in &self.carried {
            for word in list {
                visit(Owner::Pattern(*pattern), *word);
            }
        }
    }

    /// The cover of a lane, made if there is none.
    pub fn cover_mut(&mut self, lane: usize) -> &mut Cover {
        if self.covers.len() <= lane {
            self.covers.resize_with(lane + 1, Cover::default);
        }
        &mut self.covers[lane]
    }
}
