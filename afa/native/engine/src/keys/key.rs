//! The state of one key: its ordered events, the partial matches after them, and its retractions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::bindings::selecting::Forgotten;
use crate::keys::spine::{Place, Spine};
use crate::lists::configuration::Word;
use crate::lists::lane::{Lane, Lanes, List};
use crate::rows::event::{Id, IdRef};
use crate::rows::store::Rows;

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

/// What few keys have.
#[derive(Debug, Default)]
pub struct Rare {
    /// Retractions by identity.
    pub tombs: BTreeMap<(i64, Id), Tomb>,
    /// Partial matches of linear patterns before the first stored event, by pattern.
    pub carried: Vec<(usize, List)>,
    /// By lane; only where a pattern asks for AFA+O.
    pub covers: Vec<Cover>,
    /// By lane; only where a pattern chooses among its matches.
    pub forgotten: Vec<Forgotten>,
}

static NOTHING_RARE: Rare = Rare {
    tombs: BTreeMap::new(),
    carried: Vec::new(),
    covers: Vec::new(),
    forgotten: Vec::new(),
};

static NOTHING_FORGOTTEN: Forgotten = Forgotten {
    before: None,
    ends: BTreeMap::new(),
    counted: None,
};

/// One key. Every event touches all of it, so it is small: where keys are many, memory is what they wait for.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Key {
    /// What patterns that keep lists know after the last event, by lane.
    pub lanes: Lanes,
    /// Its stored events.
    pub spine: Spine,
    /// What it has that few have.
    pub rare: Option<Box<Rare>>,
    /// Its name.
    pub name: Arc<str>,
    domain: u32,
    /// A limit was met: its results may be incomplete.
    pub degraded: bool,
    /// Whether it waits in the queue of keys to be cleaned.
    pub queued: bool,
    /// Whether it was idle when it was cleaned, and was not met since: it counts as unknown.
    pub is_resting: bool,
    /// Whether it waits among the keys that rest, or did.
    pub is_listed_as_resting: bool,
}

/// Three cache lines.
const _: () = assert!(size_of::<Key>() == 192);

impl Key {
    /// A key without events.
    #[must_use]
    pub fn new(name: Arc<str>, domain: usize, lanes: usize) -> Self {
        #[allow(clippy::cast_possible_truncation)] // partitions are numbered by 32 bits
        Self {
            name,
            domain: domain as u32,
            spine: Spine::default(),
            lanes: Lanes::from_elem(Lane::default(), lanes),
            rare: None,
            degraded: false,
            queued: false,
            is_resting: false,
            is_listed_as_resting: false,
        }
    }

    /// From idle it becomes what a new key is, in a partition.
    pub(crate) fn begin_again(&mut self, domain: usize) {
        self.move_to(domain);
        self.is_resting = false;
    }

    /// The number of its partition is another now.
    #[allow(clippy::cast_possible_truncation)] // as above
    pub(crate) fn move_to(&mut self, domain: usize) {
        self.domain = domain as u32;
    }

    /// Nothing of it need be kept: it rests until it is met again, or let go.
    pub(crate) fn rest(&mut self) {
        (self.rare, self.degraded, self.is_resting) = (None, false, true);
    }

    /// The partition that it belongs to, by the engine's number.
    #[must_use]
    #[inline]
    pub fn domain(&self) -> usize {
        self.domain as usize
    }

    /// What it has that few have.
    #[must_use]
    #[inline]
    pub fn rare(&self) -> &Rare {
        self.rare.as_deref().unwrap_or(&NOTHING_RARE)
    }

    /// The same, to be changed.
    pub fn rare_mut(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// Whether retractions are remembered.
    #[must_use]
    #[inline]
    pub fn has_tombs(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| !rare.tombs.is_empty())
    }

    /// Whether nothing of it need be kept.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let no_lists = self.lanes.iter().all(|lane| lane.list().is_empty()) && self.rare().carried.is_empty();
        self.spine.is_empty() && !self.has_tombs() && no_lists
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
        for (pattern, list) in &self.rare().carried {
            for word in list {
                visit(Owner::Pattern(*pattern), *word);
            }
        }
    }

    /// What is left of matches of a lane whose start is forgotten.
    #[must_use]
    pub fn forgotten(&self, lane: usize) -> &Forgotten {
        self.rare().forgotten.get(lane).unwrap_or(&NOTHING_FORGOTTEN)
    }

    /// The same, made if there is none.
    pub fn forgotten_mut(&mut self, lane: usize) -> &mut Forgotten {
        let forgotten = &mut self.rare_mut().forgotten;
        if forgotten.len() <= lane {
            forgotten.resize_with(lane + 1, Forgotten::default);
        }
        &mut forgotten[lane]
    }

    /// The cover of a lane, made if there is none.
    pub fn cover_mut(&mut self, lane: usize) -> &mut Cover {
        let covers = &mut self.rare_mut().covers;
        if covers.len() <= lane {
            covers.resize_with(lane + 1, Cover::default);
        }
        &mut covers[lane]
    }
}
