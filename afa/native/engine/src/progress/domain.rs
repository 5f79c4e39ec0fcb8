//! Progress, by partition: what a punctuation releases, finishes and lets go.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::changes::table::ChangeRow;
use crate::changes::telling::Held;
use crate::engine::{Engine, SOURCE, live};
use crate::keys::key::Key;
use crate::keys::page::Page;
use crate::keys::spine::Spine;
use crate::late::walk::Plan;
use crate::lists::configuration::start_row;
use crate::lists::matcher::expiry;
use crate::lists::stepper::expire;
use crate::program::compiled::{UNRELEASED, UNSEEN};
use crate::program::expression::Node;
use crate::progress::slack::Promise;
use crate::raw::replaying::HeldOffsets;
use crate::rows::store::{Rows, parts};

pub(crate) struct Predicated {
    pub(crate) condition: Node,
    pub(crate) text: Arc<str>,
    pub(crate) ts: i64,
}

/// One input topic of a partition.
pub(crate) struct Topic {
    pub(crate) name: Arc<str>,
    /// What reads its records.
    pub(crate) scanner: usize,
    pub(crate) punctuation: Option<i64>,
    pub(crate) predicated: Vec<Predicated>,
    pub(crate) promise: Promise,
    /// The greatest time of its records, as far as times are believed.
    pub(crate) newest: Option<i64>,
}

impl Topic {
    pub(crate) fn new(name: Arc<str>, scanner: usize, promise: Promise) -> Self {
        Self {
            name,
            scanner,
            punctuation: None,
            predicated: Vec::new(),
            promise,
            newest: None,
        }
    }

    /// Whether no punctuation of it is known.
    fn promises_nothing(&self) -> bool {
        self.punctuation.is_none() && self.predicated.is_empty()
    }
}

/// A partition: its topics, and how far it has come.
pub(crate) struct Domain {
    pub(crate) partition: u32,
    pub(crate) topics: Vec<Topic>,
    /// The effective punctuation.
    pub(crate) effective: Option<i64>,
    /// What it is to become: in a batch that is told net, what follows from punctuations waits.
    due: Option<i64>,
    /// Keys that may have something to be cleaned up, the longest untouched first.
    pub(crate) queue: VecDeque<usize>,
    /// It has come further since they were cleaned.
    pub(crate) is_to_be_cleaned: bool,
    /// What its keys hold of the records that are replayed.
    pub(crate) held_offsets: HeldOffsets,
    /// Stamps and keys that are dirty since then, the longest first.
    pub(crate) dirty: VecDeque<(u64, u32)>,
    /// The emitted punctuation of patterns with open candidates, by pattern.
    pub(crate) emitted: Vec<Option<i64>>,
    /// The first end of a candidate that is open, by pattern and number of the key.
    pub(crate) open_ends: Vec<BTreeMap<u32, i64>>,
    /// Matches that wait until they are final, by pattern.
    pub(crate) held: Vec<BTreeMap<(i64, [u8; 16]), Held>>,
}

impl Domain {
    pub(crate) fn new(partition: u32, patterns: usize) -> Self {
        Self {
            partition,
            topics: vec![Topic::new("".into(), SOURCE, Promise::default())],
            effective: None,
            due: None,
            queue: VecDeque::new(),
            is_to_be_cleaned: false,
            held_offsets: HeldOffsets::default(),
            dirty: VecDeque::new(),
            emitted: vec![None; patterns],
            open_ends: vec![BTreeMap::new(); patterns],
            held: (0..patterns).map(|_| BTreeMap::new()).collect(),
        }
    }

    /// The punctuation of all topics together.
    fn of_events(&self) -> Option<i64> {
        self.topics.iter().map(|topic| topic.punctuation).min().flatten()
    }

    /// What it has passed, as soon as what follows from that is told.
    pub(crate) fn reached(&self) -> Option<i64> {
        self.effective.max(self.due)
    }

    /// Notes how far the partition may come by the punctuations seen so far; it never goes back.
    fn come_due(&mut self, arcs: Option<i64>) {
        let events = self.of_events();
        let bound = match arcs {
            Some(arcs) => events.map(|events| events.min(arcs)),
            None => events,
        };
        self.due = self.due.max(bound);
    }
}

/// Where records come from: a partition and one of its topics, by the engine's numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The partition.
    pub domain: usize,
    /// The topic.
    pub topic: usize,
}

/// The number of topics that no pattern of the engine sees.
const UNREAD: usize = usize::MAX;

impl Origin {
    /// Whether records from there are read; others are as if they had never come.
    #[inline]
    pub(crate) fn is_read(self) -> bool {
        self.topic != UNREAD
    }
}

impl Engine {
    /// The numbers of a topic and partition, new or known. A partition has all topics that were named for it from its
    /// beginning, because it must not come further than the one that nothing came from yet.
    pub fn origin(&mut self, topic: &str, partition: u32) -> Origin {
        let patterns = self.programs.len();
        let mut named = self.promises.topics();
        let has_no_keys = self.keys.len() == self.free_keys.len();
        let first_use = self.domains.len() == 1 && self.domains[0].topics[0].name.is_empty() && has_no_keys;
        if first_use && self.domains[0].topics[0].promises_nothing() {
            self.domains[0].partition = partition;
            self.domains[0].topics = std::mem::take(&mut named);
        }
        let known = self.find_domain(partition);
        if known.is_none() {
            self.recall_epochs();
        }
        let domain = known.unwrap_or_else(|| {
            let mut domain = Domain::new(partition, patterns);
            domain.topics = named;
            self.domains.push(domain);
            self.domains.len() - 1
        });
        let Some(scanner) = self.promises.scanner_of(topic) else {
            return Origin { domain, topic: UNREAD };
        };
        let topics = &mut self.domains[domain].topics;
        let known = topics.iter().position(|known| &*known.name == topic);
        let topic = known.unwrap_or_else(|| {
            topics.push(Topic::new(topic.into(), scanner, self.promises.of(topic)));
            topics.len() - 1
        });
        Origin { domain, topic }
    }

    pub(crate) fn find_domain(&self, partition: u32) -> Option<usize> {
        self.domains.iter().position(|domain| domain.partition == partition)
    }

    /// A partition begins, and may be behind all others: arcs that were over for those are alive for its events.
    pub(crate) fn recall_epochs(&mut self) {
        for pattern in 0..self.programs.len() {
            if self.programs[pattern].has_forgotten() {
                let ids: Vec<String> = self.books[pattern].iter().map(|(id, ..)| id.to_owned()).collect();
                let lives: Vec<_> = ids.iter().filter_map(|id| self.life_of(pattern, id)).collect();
                self.programs[pattern].recall_epochs(&lives, &mut self.shared);
            }
        }
    }

    /// The bound below which an arc record is late.
    #[must_use]
    pub fn arc_bound(&self) -> Option<i64> {
        let effective = self.domains.iter().map(Domain::reached);
        self.arc_punctuation.max(effective.max().flatten())
    }

    /// No later event from there with a smaller `ts`. In a batch that is told net, what follows from it waits.
    pub fn punctuate(&mut self, origin: Origin, ts: i64, now: bool) {
        if !origin.is_read() {
            return;
        }
        let topic = &mut self.domains[origin.domain].topics[origin.topic];
        topic.punctuation = topic.punctuation.max(Some(ts));
        topic.predicated.retain(|known| known.ts > ts);
        self.domains[origin.domain].come_due(self.arc_punctuation);
        if now {
            self.advance(origin.domain);
        }
    }

    /// No later event with a smaller `ts` for which the condition holds.
    pub fn punctuate_when(&mut self, origin: Origin, ts: i64, condition: Node, text: &str) {
        if !origin.is_read() {
            return;
        }
        self.rows.add_fields(&condition.fields());
        let predicated = &mut self.domains[origin.domain].topics[origin.topic].predicated;
        match predicated.iter_mut().find(|known| known.condition == condition) {
            Some(known) => known.ts = known.ts.max(ts),
            None => predicated.push(Predicated {
                condition,
                text: text.into(),
                ts,
            }),
        }
    }

    /// No later arc record that changes anything before `ts`.
    pub fn punctuate_arcs(&mut self, ts: i64, now: bool) {
        self.arc_punctuation = self.arc_punctuation.max(Some(ts));
        for domain in &mut self.domains {
            domain.come_due(self.arc_punctuation);
        }
        if now {
            self.advance_all();
        }
    }

    /// Lets every partition come as far as its punctuations allow.
    pub fn advance_all(&mut self) {
        for domain in 0..self.domains.len() {
            self.advance(domain);
        }
    }

    fn advance(&mut self, number: usize) {
        if let Some(punctuation) = self.domains[number].due {
            self.advance_to(number, punctuation);
        }
    }

    /// Lets a partition come to an effective punctuation, if that is further.
    pub(crate) fn advance_to(&mut self, number: usize, punctuation: i64) {
        if Some(punctuation) <= self.domains[number].effective {
            return;
        }
        let from = self.table.rows.len();
        let due = self.due_keys(number, punctuation);
        let (passed, told) = self.watch_punctuation(number, &due);
        let domain = &mut self.domains[number];
        (domain.effective, domain.due) = (Some(punctuation), domain.due.max(Some(punctuation)));
        let waits = self
            .programs
            .iter()
            .any(|program| program.gap_free || program.speculation.is_some());
        if waits {
            self.release_all(number, &due);
        }
        self.tell_held(number);
        let risen = self.observe_punctuation(number, passed, told, &due);
        self.settle_dues(&due, punctuation);
        self.order_from(from);
        let partition = self.domains[number].partition;
        for pattern in 0..self.programs.len() {
            let Some(emitted) = risen.as_ref().map_or(Some(punctuation), |risen| risen[pattern]) else {
                continue;
            };
            #[allow(clippy::cast_possible_truncation)] // limited by max_program_arcs
            let row = ChangeRow::punctuation(pattern as u32, partition, emitted, self.findings.record);
            self.table.rows.push(row);
        }
        self.clean_now_or_later(number);
    }

    /// Cleanse and AFA+O: lets patterns see what the punctuation releases.
    fn release_all(&mut self, domain: usize, due: &[usize]) {
        for number in due.iter().copied() {
            let mut key = self.take_key(number);
            let (before, was_degraded) = (live(&key), key.degraded);
            self.ready_counts(&mut key);
            for lane in 0..self.lanes.len() {
                self.release(&mut key, lane);
            }
            if self.programs.iter().any(|program| program.gap_free) {
                let plan = Plan {
                    relinks: true,
                    ..Plan::default()
                };
                self.matcher(domain).apply(&mut key, &plan);
            }
            // What may change more than the ends is watched, where a punctuation may release anything.
            let added = self.take_added(|_| true);
            self.tell_after(&mut key, before, was_degraded);
            self.tell_added(&mut key, added);
            self.sweep_if_grown(&key);
            self.put_key(number, key);
        }
    }

    fn release(&mut self, key: &mut Key, lane: usize) {
        let pattern = self.lanes[lane];
        if self.programs[pattern].speculation.is_none() {
            return;
        }
        let mut plan = Plan::default();
        let mut rows = std::collections::HashMap::default();
        for row in key.spine.pages.iter().flat_map(Page::rows) {
            if self.rows.class(pattern, row) == UNRELEASED {
                let class = self.class_now(pattern, row, key.domain());
                if class != UNRELEASED {
                    rows.insert(row, (UNRELEASED, class));
                }
            }
        }
        if rows.is_empty() {
            return;
        }
        // Before the walk: links to the first entry of a page ask which entry was seen last.
        for (row, (_, class)) in &rows {
            self.rows.set_class(pattern, *row, *class);
        }
        plan.reclassed = Some((pattern, rows));
        self.matcher(key.domain()).apply(key, &plan);
    }

    /// The class of a seen row for a pattern that keeps lists, as the punctuation lets it see it.
    pub(crate) fn class_now(&mut self, pattern: usize, row: u32, domain: usize) -> u32 {
        let (chunk, offset) = parts(row);
        let chunk = self.rows.chunk(chunk);
        let program = &mut self.programs[pattern];
        if !is_released(
            program.speculation,
            self.domains[domain].effective,
            chunk.times()[offset],
        ) {
            return UNRELEASED;
        }
        let class = program.class_of(chunk, offset);
        program.pin(class, &self.rows.view_of(chunk, offset))
    }

    /// Drops what lies before the punctuation, down to the cover.
    pub(crate) fn clean_key(&mut self, key: &mut Key, punctuation: i64) {
        let before = live(key);
        let bound = self.forget_starts(key, punctuation);
        if key.spine.last_ts().is_none_or(|last| last < bound) {
            self.cover_all(key, punctuation);
        } else {
            let reach = self
                .linear
                .iter()
                .map(|pattern| self.programs[*pattern].chain.len())
                .max();
            let reach = reach.unwrap_or(0);
            while key.spine.pages.len() > 1 && can_drop_front(&key.spine, &self.rows, bound, reach) {
                self.drop_front(key);
            }
        }
        self.expire_carried(key, punctuation);
        self.clean_tombs(key, punctuation);
        self.live_partial_matches = self.live_partial_matches + live(key) - before;
    }

    /// Lets the first page go: the lists that enter the next one are what remains of it.
    pub(crate) fn drop_front(&mut self, key: &mut Key) {
        if let Some(rare) = &mut key.rare {
            rare.carried.clear();
        }
        let Some(page) = key.spine.pages.pop_front() else {
            return;
        };
        if self.lanes.iter().any(|pattern| self.programs[*pattern].gap_free) {
            self.note_cover(key, &page);
        }
        page.release(&mut self.rows);
    }

    /// All events lie before the punctuation: only the lists after the last one stay.
    fn cover_all(&mut self, key: &mut Key, punctuation: i64) {
        if !key.spine.is_empty() {
            let mut carried = Vec::new();
            for pattern in self.linear.clone() {
                let list = self.matcher(key.domain()).linear_list(key, pattern, None);
                if !list.is_empty() {
                    carried.push((pattern, list));
                }
            }
            if !carried.is_empty() || key.rare.is_some() {
                key.rare_mut().carried = carried;
            }
            while let Some(page) = key.spine.pages.pop_front() {
                self.note_cover(key, &page);
                page.release(&mut self.rows);
            }
        }
        for (lane, pattern) in self.lanes.iter().enumerate() {
            let state = &mut key.lanes[lane];
            if state.expires <= punctuation {
                state.expires = expire(&self.programs[*pattern], &self.rows, state.edit(), punctuation);
            }
        }
    }

    /// Drops partial matches from before the first stored event that no later one can take up.
    fn expire_carried(&self, key: &mut Key, punctuation: i64) {
        let Some(rare) = &mut key.rare else {
            return;
        };
        for (pattern, list) in &mut rare.carried {
            let program = &self.programs[*pattern];
            list.retain(|word| expiry(program, &self.rows, start_row(*word)) > punctuation);
        }
        rare.carried.retain(|(_, list)| !list.is_empty());
    }

    /// For AFA+O: what a page that goes leaves behind.
    fn note_cover(&mut self, key: &mut Key, page: &Page) {
        for (lane, pattern) in self.lanes.iter().enumerate() {
            if !self.programs[*pattern].gap_free {
                continue;
            }
            for row in page.rows() {
                if self.rows.class(*pattern, row) == UNSEEN {
                    key.cover_mut(lane).hidden_seqs.extend(self.rows.seqs(row));
                } else {
                    key.cover_mut(lane).seq = self.rows.seq(row);
                }
            }
        }
    }

    fn clean_tombs(&mut self, key: &mut Key, punctuation: i64) {
        if key.rare.is_none() {
            return;
        }
        let gap_free = |lane: &usize| self.programs[self.lanes[*lane]].gap_free;
        let lanes: Vec<usize> = (0..self.lanes.len()).filter(gap_free).collect();
        while let Some(entry) = key.rare_mut().tombs.first_entry() {
            if entry.key().0 >= punctuation {
                break;
            }
            let tomb = entry.remove();
            for lane in &lanes {
                key.cover_mut(*lane).hidden_seqs.extend(tomb.seqs.iter().copied());
            }
        }
        for cover in &mut key.rare_mut().covers {
            // A number at or before the cover's can be in no gap any more.
            if let Some(seq) = cover.seq {
                cover.hidden_seqs = cover.hidden_seqs.split_off(&seq);
            }
        }
    }
}

/// Cleanse releases events below the punctuation plus its factor.
pub(crate) fn is_released(speculation: Option<i64>, punctuation: Option<i64>, ts: i64) -> bool {
    speculation
        .is_none_or(|sigma| punctuation.is_some_and(|bound| i128::from(ts) < i128::from(bound) + i128::from(sigma)))
}

/// Whether the first page lies before the punctuation, and enough of what follows does too for linear patterns.
fn can_drop_front(spine: &Spine, rows: &Rows, punctuation: i64, reach: usize) -> bool {
    if spine.pages[0].last_ts() >= punctuation {
        return false;
    }
    if reach == 0 {
        return true;
    }
    let entries = spine.pages.iter().skip(1).flat_map(|page| page.entries(0, rows));
    let past = entries.take_while(|(ts, _)| *ts < punctuation);
    past.take(reach).count() == reach
}
