//! Bounded disorder: of some topics is promised that no record comes more than a slack behind the newest one of its
//! topic and partition. That punctuation moves with every record, and is what decides which ones are late; what follows
//! from it (releases, what is told, cleaning) waits for the end of the batch.

use std::sync::Arc;

use crate::engine::{Engine, SOURCE};
use crate::progress::domain::{Origin, Topic};
use crate::raw::scan::{Mapping, Operation};
use crate::segment::{Fed, NO_KEY, Net, Segment};

/// Why changes of patterns among the records of a source are bad.
pub(crate) const NO_EVENT: &str = "a source brings events, no changes of patterns";

/// What is promised of a topic.
#[derive(Clone, Copy, Debug, Default)]
pub struct Promise {
    /// No record comes more than this behind the newest of its partition.
    pub slack: Option<i64>,
    /// A record that is further ahead of the clock moves nothing.
    pub max_ahead: Option<i64>,
    /// It has no punctuations among its records.
    pub has_no_punctuations: bool,
}

/// Which times of records are believed: a clock may be wrong.
#[derive(Clone, Copy, Debug)]
pub struct Trust {
    /// Records with a greater time move nothing.
    pub until: i64,
    /// The clock of whoever feeds.
    pub now: Option<i64>,
}

/// What is promised of all topics.
#[derive(Debug)]
pub(crate) struct Promises {
    by_topic: Vec<(Arc<str>, Promise)>,
    /// Of several topics, what reads the records of each; none: nothing does.
    scanners: Vec<(Arc<str>, Option<usize>)>,
    pub(crate) has_slack: bool,
    pub(crate) trust: Trust,
    /// Raw records are events, and no changes of patterns.
    pub(crate) only_events: bool,
}

impl Default for Promises {
    fn default() -> Self {
        let trust = Trust {
            until: i64::MAX,
            now: None,
        };
        Self {
            by_topic: Vec::new(),
            scanners: Vec::new(),
            has_slack: false,
            trust,
            only_events: false,
        }
    }
}

impl Promises {
    /// That of a topic.
    pub(crate) fn of(&self, topic: &str) -> Promise {
        let known = self.by_topic.iter().find(|(name, _)| **name == *topic);
        known.map_or(Promise::default(), |(_, promise)| *promise)
    }

    /// What reads the records of a topic, if anything does.
    pub(crate) fn scanner_of(&self, topic: &str) -> Option<usize> {
        let known = self.scanners.iter().find(|(name, _)| **name == *topic);
        known.map_or(Some(SOURCE), |(_, scanner)| *scanner)
    }

    /// The topics that a partition begins with: those that were named.
    pub(crate) fn topics(&self) -> Vec<Topic> {
        let read = self
            .scanners
            .iter()
            .filter_map(|(name, scanner)| Some((name, (*scanner)?)));
        read.map(|(name, scanner)| Topic::new(name.clone(), scanner, self.of(name)))
            .collect()
    }
}

impl Topic {
    /// A record of this time comes. The answer is the bound that is in force, if it is behind the slack.
    pub(crate) fn meet(&mut self, ts: i64, trust: Trust) -> Option<i64> {
        let behind = self.behind().filter(|behind| ts < *behind);
        let bound = behind.map(|behind| self.punctuation.map_or(behind, |known| known.max(behind)));
        if self.believes(ts, trust) {
            self.newest = self.newest.max(Some(ts));
        }
        bound
    }

    /// Whether a record of this time may move the punctuation.
    fn believes(&self, ts: i64, trust: Trust) -> bool {
        ts <= trust.until && ts <= self.clock_allows(trust)
    }

    /// The greatest time that the clock has nothing against.
    fn clock_allows(&self, trust: Trust) -> i64 {
        let ahead = trust.now.zip(self.promise.max_ahead);
        ahead.map_or(i64::MAX, |(now, ahead)| now.saturating_add(ahead))
    }

    /// The punctuation that the newest record leads to, if one comes from it.
    fn behind(&self) -> Option<i64> {
        let (newest, slack) = self.newest.zip(self.promise.slack)?;
        Some(newest.saturating_sub(slack))
    }
}

impl Engine {
    /// Says what is promised of a topic.
    pub fn promise(&mut self, name: &str, promise: Promise) {
        self.promises.has_slack |= promise.slack.is_some();
        self.promises.by_topic.push((name.into(), promise));
        let topics = self.domains.iter_mut().flat_map(|domain| &mut domain.topics);
        for known in topics.filter(|known| *known.name == *name) {
            known.promise = promise;
        }
    }

    /// Names a topic, before the first record, and the mapping that its records are read by; without one they are as if
    /// they had never come.
    pub fn name_topic(&mut self, name: &str, mapping: Option<Mapping>) {
        let scanner = mapping.map(|mapping| self.rows.scanner(mapping));
        self.promises.scanners.push((name.into(), scanner));
    }

    /// From now on changes of patterns among records are bad records.
    pub fn take_only_events(&mut self) {
        self.promises.only_events = true;
    }

    /// Why a raw record is bad whatever it says, if it is.
    pub(crate) fn refusal(&self, operation: Operation, origin: Origin) -> Option<&'static str> {
        let promise = self.domains[origin.domain].topics[origin.topic].promise;
        match operation {
            Operation::Arc | Operation::ArcPunctuation if self.promises.only_events => Some(NO_EVENT),
            Operation::Punctuation if promise.has_no_punctuations => {
                Some("this source has no punctuations (`in_band`)")
            }
            _ => None,
        }
    }

    /// Whether a punctuation among the records moves nothing, as a record of its time would not. One that is too far
    /// ahead of the clock is a bad record: whoever relies on it has to hear of that.
    pub(crate) fn disbelieves(&self, origin: Origin, ts: i64, index: u32, fed: &mut Fed) -> bool {
        let trust = self.promises.trust;
        let topic = &self.domains[origin.domain].topics[origin.topic];
        if ts > topic.clock_allows(trust) {
            let reason = format!("the punctuation {ts} is further ahead of the clock than `max_ahead`");
            fed.bad.push((index, reason));
        }
        !topic.believes(ts, trust)
    }

    /// Says which times are believed from now on.
    pub fn trust_times(&mut self, trust: Trust) {
        self.promises.trust = trust;
    }

    /// By topic and partition, what is known: its punctuation, and the greatest time that was believed.
    pub fn reached(&self) -> impl Iterator<Item = (&str, u32, Option<i64>, Option<i64>)> {
        self.domains.iter().flat_map(|domain| {
            let topics = domain.topics.iter();
            topics.map(|topic| (&*topic.name, domain.partition, topic.punctuation, topic.newest))
        })
    }

    /// By pattern and partition, the emitted punctuation.
    pub fn emitted(&self) -> impl Iterator<Item = (&str, u32, i64)> {
        self.domains.iter().flat_map(|domain| {
            let programs = self.programs.iter().enumerate();
            programs.filter_map(|(pattern, program)| {
                let emitted = domain.progress(program, pattern).emitted?;
                Some((&*program.name, domain.partition, emitted))
            })
        })
    }

    /// By topic and partition, the conditional punctuations that hold: time and condition.
    pub fn conditions(&self) -> impl Iterator<Item = (&str, u32, i64, &str)> {
        self.domains.iter().flat_map(|domain| {
            let known = domain
                .topics
                .iter()
                .flat_map(|topic| topic.predicated.iter().map(move |known| (topic, known)));
            known.map(|(topic, known)| (&*topic.name, domain.partition, known.ts, &*known.text))
        })
    }

    /// Rows come: those that are too far behind the ones before them are not to be taken. `newest` is their greatest
    /// time if all of them are to be.
    pub(crate) fn meet_rows(&mut self, segment: &mut Segment, newest: Option<i64>, fed: &mut Fed) {
        let trust = self.promises.trust;
        if !self.promises.has_slack && segment.origins.is_empty() && segment.skipped.is_empty() {
            let Some(newest) = newest.or_else(|| self.newest_of(segment)) else {
                return;
            };
            let topic = self.topic_mut(segment.origin);
            if topic.believes(newest, trust) {
                topic.meet(newest, trust);
                return;
            }
        }
        let mut skipped = std::mem::take(&mut segment.skipped).into_iter().peekable();
        for place in 0..segment.keys.len() {
            while let Some((_, origin, ts)) = skipped.next_if(|(before, ..)| *before <= place) {
                self.topic_mut(origin).meet(ts, trust);
            }
            if segment.keys[place] == NO_KEY {
                continue;
            }
            let ts = self.rows.chunk(segment.chunk).times()[segment.first + place];
            if let Some(bound) = self.topic_mut(segment.origin(place)).meet(ts, trust) {
                segment.keys[place] = NO_KEY;
                self.counters.late += 1;
                fed.late.push((segment.record(place), below(ts, bound)));
            }
        }
        for (_, origin, ts) in skipped {
            self.topic_mut(origin).meet(ts, trust);
        }
    }

    /// The greatest time of the rows that are to be taken.
    fn newest_of(&self, segment: &Segment) -> Option<i64> {
        let times = &self.rows.chunk(segment.chunk).times()[segment.first..];
        let rows = segment.keys.iter().zip(times);
        rows.filter(|(key, _)| **key != NO_KEY).map(|(_, ts)| *ts).max()
    }

    fn topic_mut(&mut self, origin: Origin) -> &mut Topic {
        &mut self.domains[origin.domain].topics[origin.topic]
    }

    /// A retraction comes: why it is too far behind the records before it, if it is.
    pub(crate) fn meet_retraction(&mut self, origin: Origin, ts: i64) -> Option<String> {
        let trust = self.promises.trust;
        let bound = self.topic_mut(origin).meet(ts, trust)?;
        Some(below(ts, bound))
    }

    /// At the end of a batch the punctuations come to where its records have moved them.
    pub(crate) fn settle_slack(&mut self, net: Net, fed: &mut Fed) {
        if !self.promises.has_slack {
            return;
        }
        fed.late.sort_by_key(|(record, _)| *record);
        for domain in 0..self.domains.len() {
            for topic in 0..self.domains[domain].topics.len() {
                let known = &self.domains[domain].topics[topic];
                if let Some(ts) = known.behind().filter(|ts| known.punctuation < Some(*ts)) {
                    self.punctuate(Origin { domain, topic }, ts, false);
                }
            }
        }
        if net == Net::Record {
            self.advance_all();
        }
    }
}

/// The reason for which a record is late.
pub(crate) fn below(ts: i64, bound: i64) -> String {
    format!("ts {ts} is below the punctuation {bound}")
}
