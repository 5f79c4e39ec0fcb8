//! Snapshots: everything that is known of one key, in one form for one content.
//!
//! What a key is, is a function of accepted events, arcs and punctuations, and so are these bytes: they name patterns,
//! states and events, never rows, sets or the order of arrival. Before the punctuation only the partial matches that
//! are alive there are left (the cover), from it on the events themselves; what follows from both is computed again by
//! `restore`. Conditions of predicated punctuations are not part of a key, and not of its snapshot.
//!
//! The body: the key; partition and topics with their punctuations, arc punctuation, effective punctuation; whether a
//! limit was met; covers by pattern; events in order; retractions in order; and if there are such, where matches ended
//! whose start is forgotten. Patterns that bind events have no cover: the events of their partial matches are kept.

use std::collections::{BTreeMap, BTreeSet};

use crate::engine::Engine;
use crate::keys::key::{Key, Tomb};
use crate::keys::page::Page;
use crate::keys::spine::Place;
use crate::lists::configuration::{code_of, start_row};
use crate::lists::lane::List;
use crate::lists::matcher::{Matcher, expiry, is_closed};
use crate::program::compiled::{Program, UNSEEN};
use crate::rows::store::{Rows, parts};
use crate::state::form::{SnapshotFault, Writer, digest, seal};

impl Engine {
    /// The snapshot of a key; none if nothing is known of it.
    ///
    /// # Errors
    /// If it would have 4 GB or more.
    pub fn snapshot(&mut self, name: &str) -> Result<Option<Vec<u8>>, SnapshotFault> {
        match self.numbers.find(name) {
            Some(number) => self.seal_key(number as usize),
            None => Ok(None),
        }
    }

    /// The same of a key by its number.
    pub(crate) fn seal_key(&mut self, number: usize) -> Result<Option<Vec<u8>>, SnapshotFault> {
        let Some(body) = self.body_of(number) else {
            return Ok(None);
        };
        if u32::try_from(body.len()).is_err() {
            return Err(SnapshotFault::Malformed("it would have 4 GB or more"));
        }
        Ok(Some(seal(body)))
    }

    /// The hash of all that is known of a key: equal wherever that is equal. None if nothing is known of it.
    #[must_use]
    pub fn state_hash(&mut self, name: &str) -> Option<[u8; 16]> {
        let number = self.numbers.find(name)? as usize;
        self.body_of(number).map(|body| digest(&body))
    }

    fn body_of(&mut self, number: usize) -> Option<Vec<u8>> {
        let key = self.take_key(number);
        let body = self.write_key(&key);
        self.keys[number] = Some(key);
        body
    }

    fn write_key(&mut self, key: &Key) -> Option<Vec<u8>> {
        let bound = self.domains[key.domain()].effective.unwrap_or(i64::MIN);
        let kept = self.kept_from(key, bound);
        let first = key.spine.search(&self.rows, kept);
        let tombs = key.rare().tombs.iter().filter(|((ts, _), _)| *ts >= bound);
        let covers = self.covers(key, first, bound);
        if first.is_none() && covers.is_empty() && tombs.clone().next().is_none() {
            return None;
        }
        let mut writer = Writer::default();
        writer.text(&key.name);
        self.write_punctuations(&mut writer, key.domain());
        writer.truth(key.degraded);
        writer.length(covers.len());
        for cover in &covers {
            cover.write(&mut writer, &self.programs[cover.pattern], &self.rows);
        }
        write_events(&mut writer, &self.rows, key, first);
        writer.length(tombs.clone().count());
        for ((ts, id), tomb) in tombs {
            writer.signed(*ts);
            writer.text(&id.text());
            write_tomb(&mut writer, tomb);
        }
        self.write_forgotten(&mut writer, key, bound);
        Some(writer.finish())
    }

    fn write_punctuations(&self, writer: &mut Writer, domain: usize) {
        let domain = &self.domains[domain];
        writer.fixed_u32(domain.partition);
        let topics: BTreeMap<&str, Option<i64>> = domain
            .topics
            .iter()
            .map(|topic| (&*topic.name, topic.punctuation))
            .collect();
        writer.length(topics.len());
        for (name, punctuation) in topics {
            writer.text(name);
            writer.option(punctuation, Writer::signed);
        }
        writer.option(self.arc_punctuation, Writer::signed);
        writer.option(domain.effective, Writer::signed);
    }

    /// What patterns keep of the events before a place, in order of their names; patterns that keep nothing are left
    /// out.
    fn covers(&mut self, key: &Key, first: Option<Place>, bound: i64) -> Vec<Covered> {
        let mut matcher = self.matcher(key.domain());
        let mut covers = Vec::new();
        for pattern in 0..matcher.programs.len() {
            let lane = matcher.lanes.iter().position(|known| *known == pattern);
            let mut list = match lane {
                Some(lane) => matcher.list_at(key, lane, first),
                None => matcher.linear_list(key, pattern, first),
            };
            let program = &matcher.programs[pattern];
            list.retain(|word| !is_closed(program, expiry(program, matcher.rows, start_row(*word)), bound));
            let (mut seq, mut hidden) = (None, BTreeSet::new());
            if let Some(lane) = lane.filter(|_| program.gap_free) {
                // One that is observed has all events of its partial matches: what comes before them does not matter.
                seq = if program.is_observed() {
                    matcher.least_seq_from(key, first)
                } else {
                    matcher.seq_before(key, lane, first)
                };
                hidden = matcher.hidden_before(key, lane, first, bound);
                // Nothing follows an event without a number.
                hidden.retain(|number| seq.is_some_and(|seq| *number > seq));
            }
            if program.is_observed() {
                list.clear();
                seq = None;
            }
            if list.is_empty() && (hidden.is_empty() || !program.is_observed()) {
                continue;
            }
            list.sort_by(|a, b| matcher.rows.order(start_row(*a), start_row(*b)));
            covers.push(Covered {
                pattern,
                seq,
                hidden,
                list,
            });
        }
        covers
    }
}

impl Matcher<'_> {
    /// The list of a lane before a place (none: the end); all entries before it in its page are final.
    pub(crate) fn list_at(&mut self, key: &Key, lane: usize, place: Option<Place>) -> List {
        let Some(place) = place else {
            return List::from_slice(key.lanes[lane].list());
        };
        self.enter_page(key, lane, place);
        List::from_slice(self.late.lane.list())
    }

    /// AFA+O: the least sequence number of the entries from a place on.
    fn least_seq_from(&self, key: &Key, first: Option<Place>) -> Option<i64> {
        let place = first?;
        let pages = key.spine.pages.iter().skip(place.page);
        let rows = pages.flat_map(Page::rows).skip(place.slot);
        rows.filter_map(|row| self.rows.seq(row)).min()
    }

    /// AFA+O: the sequence numbers of retracted and unseen events before a place.
    fn hidden_before(&self, key: &Key, lane: usize, place: Option<Place>, bound: i64) -> BTreeSet<i64> {
        let mut hidden = key
            .rare()
            .covers
            .get(lane)
            .map(|cover| cover.hidden_seqs.clone())
            .unwrap_or_default();
        for (_, tomb) in key.rare().tombs.iter().filter(|((ts, _), _)| *ts < bound) {
            hidden.extend(&tomb.seqs);
        }
        let mut before = Vec::new();
        key.spine.rows_before(place, usize::MAX, &mut before);
        for row in before {
            if self.rows.class(self.lanes[lane], row) == UNSEEN {
                hidden.extend(self.rows.seqs(row));
            }
        }
        hidden
    }
}

/// What one pattern keeps of the events before the punctuation.
struct Covered {
    pattern: usize,
    /// AFA+O: the sequence number of the last event.
    seq: Option<i64>,
    /// AFA+O: sequence numbers after it that are present though no event has them.
    hidden: BTreeSet<i64>,
    list: List,
}

impl Covered {
    fn write(&self, writer: &mut Writer, program: &Program, rows: &Rows) {
        writer.text(&program.name);
        writer.length(program.registers.len());
        for register in &program.registers {
            writer.text(&register.name);
        }
        writer.option(self.seq, Writer::signed);
        writer.length(self.hidden.len());
        self.hidden.iter().for_each(|seq| writer.signed(*seq));
        let table = self.configurations(program);
        writer.length(table.len());
        for form in table.keys() {
            writer.binary(form);
        }
        let mut places: Vec<(u32, usize)> = table
            .values()
            .enumerate()
            .map(|(place, number)| (*number, place))
            .collect();
        places.sort_unstable();
        writer.length(self.list.len());
        for word in &self.list {
            write_start(writer, rows, start_row(*word));
            let set = program.sets.set(code_of(*word));
            writer.unsigned(set.consumed);
            let place = |member: &u32| places.binary_search_by_key(member, |known| known.0);
            let mut members: Vec<usize> = set
                .members
                .iter()
                .filter_map(|member| place(member).ok())
                .map(|at| places[at].1)
                .collect();
            members.sort_unstable();
            writer.length(members.len());
            for member in members {
                writer.length(member);
            }
        }
    }

    /// The configurations in use, by their form.
    fn configurations(&self, program: &Program) -> BTreeMap<Vec<u8>, u32> {
        let members = self.list.iter().map(|word| &program.sets.set(code_of(*word)).members);
        let used: BTreeSet<u32> = members.flat_map(|members| members.iter().copied()).collect();
        used.into_iter()
            .map(|number| {
                let configuration = program.sets.configuration(number);
                let mut writer = Writer::default();
                writer.text(program.state_name(configuration.state));
                configuration.registers.iter().for_each(|value| writer.value(value));
                (writer.finish(), number)
            })
            .collect()
    }
}

fn write_start(writer: &mut Writer, rows: &Rows, row: u32) {
    writer.signed(rows.ts(row));
    writer.option(rows.seq(row), Writer::signed);
    writer.text(&rows.id(row).text());
}

fn write_events(writer: &mut Writer, rows: &Rows, key: &Key, first: Option<Place>) {
    let mut events = Vec::new();
    if let Some(place) = first {
        let pages = key.spine.pages.iter().skip(place.page);
        events.extend(pages.flat_map(Page::rows).skip(place.slot));
    }
    writer.length(events.len());
    let mut data = Vec::new();
    for row in events {
        write_start(writer, rows, row);
        let (chunk, offset) = parts(row);
        let chunk = rows.chunk(chunk);
        writer.signed(chunk.rev(offset));
        writer.option(chunk.kind(offset), Writer::text);
        data.clear();
        chunk.data(offset, &rows.scanners).write_canonical(&mut data);
        writer.binary(&data);
        let own = chunk.seq(offset);
        let others = rows.seqs(row).into_iter().filter(|seq| Some(*seq) != own);
        write_seqs(writer, others.collect());
    }
}

fn write_tomb(writer: &mut Writer, tomb: &Tomb) {
    writer.signed(tomb.rev);
    write_seqs(writer, tomb.seqs.clone());
}

fn write_seqs(writer: &mut Writer, mut seqs: Vec<i64>) {
    seqs.sort_unstable();
    seqs.dedup();
    writer.length(seqs.len());
    for seq in seqs {
        writer.signed(seq);
    }
}
