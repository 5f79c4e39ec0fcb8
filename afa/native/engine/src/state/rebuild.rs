//! The second half of restoring: what a snapshot says becomes rows, lists and entries again.

use crate::engine::{Engine, RESTORED, live};
use crate::input::index_of;
use crate::input::span;
use crate::keys::key::Key;
use crate::keys::spine::Spine;
use crate::late::walk::Plan;
use crate::lists::configuration::{Configuration, word};
use crate::lists::lane::{Lane, Lanes, List};
use crate::progress::domain::Origin;
use crate::raw::scan::{Envelope, Head, Operation, Padded, Span};
use crate::rows::chunk::{Chunk, Payload};
use crate::rows::store::{parts, row_number};
use crate::rows::stretch::Stretch;
use crate::state::form::open;
use crate::state::restore::{RestoreFault, Restored, RestoredCover, RestoredEvent};

/// Of the chunks that restored rows are added to.
const EVENTS: usize = 0;
const STARTS: usize = 1;

/// What the scanner of restored records wants to see beside the data.
const BESIDE: Envelope<'_> = Envelope {
    key: Some(b""),
    timestamp_ms: Some(0),
    headers: &[],
    position: None,
};
/// msgpack of a mapping without members.
const NO_DATA: &[u8] = &[0x80];

impl Engine {
    /// Makes a key what it was when its snapshot was taken; what is known of it now is forgotten.
    ///
    /// # Errors
    /// If the bytes are no snapshot of this key that fits the patterns; then nothing is changed.
    pub fn restore(&mut self, name: &str, bytes: &[u8]) -> Result<(), RestoreFault> {
        let restored = self.read_snapshot(name, bytes)?;
        let told = self.table.rows.len();
        self.forget_key(name);
        let domain = self.raise_punctuations(&restored);
        self.rebuild_in(domain, name, restored);
        self.table.rows.truncate(told);
        Ok(())
    }

    /// The same for a key that belongs to this partition now, whose punctuations stay what they are. Without bytes
    /// nothing is known of the key. `held`: by topic, the first offset of which it knows nothing. With `tells`, what
    /// stands of the stored events is told as if it were new.
    ///
    /// # Errors
    /// As `restore`.
    pub fn restore_in<'a>(
        &mut self,
        partition: u32,
        name: &str,
        bytes: Option<&[u8]>,
        held: impl Iterator<Item = (&'a str, i64)>,
        tells: bool,
    ) -> Result<(), RestoreFault> {
        let restored = bytes.map(|bytes| self.read_snapshot(name, bytes)).transpose()?;
        let told = self.table.rows.len();
        self.forget_key(name);
        self.note_held(partition, name, held);
        let Some(restored) = restored else {
            return Ok(());
        };
        let mut domain = 0;
        for (topic, _) in &restored.topics {
            domain = self.origin(topic, partition).domain;
        }
        self.expect_stamps();
        self.rebuild_in(domain, name, restored);
        if tells {
            self.tell_known(name);
            self.order_from(told);
        } else {
            self.table.rows.truncate(told);
        }
        Ok(())
    }

    /// Reads a snapshot of a key for which there is room.
    fn read_snapshot(&mut self, name: &str, bytes: &[u8]) -> Result<Restored, RestoreFault> {
        let restored = Restored::read(open(bytes)?, name, &self.programs)?;
        self.check_data(&restored.events)?;
        if self.numbers.find(name).is_none() && self.numbers.len() >= self.limits.max_keys {
            return Err(RestoreFault::TooManyKeys(self.limits.max_keys));
        }
        Ok(restored)
    }

    fn check_data(&mut self, events: &[RestoredEvent]) -> Result<(), RestoreFault> {
        let (mut arena, mut room) = (Vec::new(), Vec::new());
        for event in events {
            arena.clear();
            let record = Padded::copied(&event.data, &mut room);
            let scanned = self.rows.scanners[RESTORED].scan(&mut arena, record, &BESIDE);
            scanned.map_err(|bad| RestoreFault::BadEvent(event.id.clone(), bad.what))?;
        }
        Ok(())
    }

    fn forget_key(&mut self, name: &str) {
        let Some(number) = self.numbers.find(name) else {
            return;
        };
        let number = number as usize;
        let mut key = self.take_key(number);
        self.empty_key(&mut key);
        for held in &mut self.domains[key.domain()].held {
            held.retain(|_, held| *held.key != *name);
        }
        for open in &mut self.domains[key.domain()].open_ends {
            open.remove(&index_of(number));
        }
        self.put_key(number, key);
        self.lay_down(number);
    }

    /// Lets go of all that is known of a key.
    pub(crate) fn empty_key(&mut self, key: &mut Key) {
        for page in key.spine.pages.iter() {
            page.release(&mut self.rows);
        }
        self.live_partial_matches -= live(key);
        key.spine = Spine::default();
        key.lanes = Lanes::from_elem(Lane::default(), self.lanes.len());
    }

    fn rebuild_in(&mut self, domain: usize, name: &str, restored: Restored) {
        if let Some(number) = self.key_number(name, domain) {
            self.mark_restored(number);
            let oldest = restored.events.first().map(|event| event.ts);
            if oldest.is_some_and(|oldest| Some(oldest) < self.domains[domain].effective) {
                // Events that are kept from before the punctuation took arcs that may be over for all that comes.
                self.recall_epochs();
            }
            self.rebuild(number, restored);
        }
    }

    /// Lets all punctuations come to those of the snapshot; the answer is the partition.
    fn raise_punctuations(&mut self, restored: &Restored) -> usize {
        // All topics and the arcs first: without them the partition would come as far as one topic alone.
        let topics = restored.topics.iter();
        let topics: Vec<(Origin, Option<i64>)> = topics
            .map(|(name, punctuation)| (self.origin(name, restored.partition), *punctuation))
            .collect();
        if let Some(ts) = restored.arcs {
            self.punctuate_arcs(ts, false);
        }
        let mut domain = 0;
        for (origin, punctuation) in topics {
            domain = origin.domain;
            if let Some(ts) = punctuation {
                self.punctuate(origin, ts, false);
            }
        }
        self.advance_all();
        if let Some(effective) = restored.effective {
            self.advance_to(domain, effective);
        }
        domain
    }

    fn rebuild(&mut self, number: usize, restored: Restored) {
        let rows: Vec<u32> = restored
            .events
            .iter()
            .map(|event| self.add_restored(EVENTS, event, &event.data))
            .collect();
        self.classify_restored(number, &rows);
        let mut key = self.take_key(number);
        for cover in restored.covers {
            self.rebuild_cover(&mut key, cover);
        }
        if !restored.tombs.is_empty() {
            key.rare_mut().tombs.extend(restored.tombs);
        }
        key.degraded = restored.degraded;
        self.counters.degraded_keys += u64::from(key.degraded);
        if !rows.is_empty() {
            let mut matcher = self.matcher(key.domain());
            matcher.append(&mut key, Stretch::Listed(&rows), None);
        }
        if self.any_gap_free() {
            // Only now is known which sequence numbers later events fill.
            let plan = Plan {
                relinks: true,
                ..Plan::default()
            };
            self.matcher(key.domain()).apply(&mut key, &plan);
        }
        for (pattern, ends) in restored.ends {
            if let Some(lane) = self.lanes.iter().position(|known| *known == pattern) {
                key.forgotten_mut(lane).ends = ends;
            }
        }
        self.lower_emitted(&key);
        self.agenda.meet_all(index_of(number));
        self.newest = self.newest.max(key.spine.last_ts());
        let was_degraded = key.degraded;
        self.after(&mut key, 0, was_degraded);
        let is_idle = key.is_idle();
        self.put_key(number, key);
        if is_idle {
            self.lay_down(number);
        }
    }

    fn rebuild_cover(&mut self, key: &mut Key, cover: RestoredCover) {
        let program = &mut self.programs[cover.pattern];
        let numbers: Vec<u32> = cover
            .configurations
            .into_iter()
            .map(|(state, registers)| {
                let registers = registers.into();
                program.sets.configuration_number(Configuration { state, registers })
            })
            .collect();
        let mut list = List::with_capacity(cover.starts.len());
        for start in cover.starts {
            let row = self.add_restored(STARTS, &start.event, NO_DATA);
            let members = start.members.iter().map(|member| numbers[*member]).collect();
            let program = &mut self.programs[cover.pattern];
            let set = program.sets.set_number(members, start.consumed, false);
            list.push(word(row, program.code(set)));
        }
        let Some(lane) = self.lanes.iter().position(|pattern| *pattern == cover.pattern) else {
            key.rare_mut().carried.push((cover.pattern, list));
            return;
        };
        key.lanes[lane] = Lane::of(list);
        if self.programs[cover.pattern].gap_free {
            let kept = key.cover_mut(lane);
            (kept.seq, kept.hidden_seqs) = (cover.seq, cover.hidden);
        }
    }

    /// Finds the classes of restored rows, chunk by chunk.
    fn classify_restored(&mut self, number: usize, rows: &[u32]) {
        let mut at = 0;
        while at < rows.len() {
            let (chunk, first) = parts(rows[at]);
            let length = rows[at..].iter().take_while(|row| parts(**row).0 == chunk).count();
            #[allow(clippy::cast_possible_truncation)] // numbers of keys fit: limited by max_keys
            self.classify(chunk, first, &vec![number as u32; length]);
            at += length;
        }
    }

    /// Adds a row whose data was checked before.
    fn add_restored(&mut self, which: usize, event: &RestoredEvent, data: &[u8]) -> u32 {
        let number = self.restored_chunk(which);
        let (chunk, scanners) = self.rows.chunk_and_scanners(number);
        let Payload::Scanned(rows) = &mut chunk.payload else {
            unreachable!("chunks of restored rows hold raw records");
        };
        let record = span(rows.arena.len(), data.len());
        let read = scanners[RESTORED].scan(&mut rows.arena, Padded::copied(data, &mut Vec::new()), &BESIDE);
        debug_assert!(read.is_ok(), "checked before");
        let head = Head {
            operation: Operation::Insert,
            key: None,
            ts: event.ts,
            id: Some(append(&mut rows.arena, event.id.as_bytes())),
            seq: event.seq,
            rev: event.rev,
            kind: event.kind.as_ref().map(|kind| append(&mut rows.arena, kind.as_bytes())),
            when: None,
        };
        self.rows.push_scanned(number, record, &head, 0);
        let chunk = self.rows.chunk_mut(number);
        if which == STARTS {
            // Nothing is stored; the window keeps it.
            chunk.newest = chunk.newest.max(Some(event.ts));
        }
        let row = row_number(number, chunk.len() - 1);
        for seq in &event.other_seqs {
            self.rows.remember_seq(row, Some(*seq));
        }
        row
    }

    /// A chunk with room for another restored row.
    fn restored_chunk(&mut self, which: usize) -> usize {
        if let Some(number) = self.restored[which].filter(|number| self.rows.takes_records_of(*number, RESTORED)) {
            return number;
        }
        let chunk = Chunk::scanned(RESTORED, self.rows.fields.paths.len(), 0, 0);
        let number = self.add_chunk(chunk);
        self.restored[which] = Some(number);
        number
    }
}

fn append(arena: &mut Vec<u8>, bytes: &[u8]) -> Span {
    let begin = arena.len();
    arena.extend_from_slice(bytes);
    span(begin, bytes.len())
}
