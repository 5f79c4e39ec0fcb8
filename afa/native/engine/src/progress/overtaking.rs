//! A punctuation of a record batch that comes before none of the rows waiting to be taken: it need not wait for them, nor
//! they for it. So the rows between several punctuations are taken together.

use crate::changes::table::ChangeRow;
use crate::engine::Engine;
use crate::input::Feeding;
use crate::program::compiled::Program;
use crate::progress::domain::Origin;
use crate::rows::chunk::CHUNK_ROWS;
use crate::segment::{Net, Segment};

/// A key whose limit is smaller than so many chunks of events, each of so many bytes, would meet it noticeably earlier.
const EVENTS_OF_A_LIMIT: usize = 16;
const EVENT_BYTES: usize = 128;

/// How punctuations get on with rows that wait.
#[derive(Debug)]
pub(crate) struct Overtaking {
    /// Whether they only say what is late, and what can be let go, whatever the pattern.
    is_allowed: bool,
    /// Whether one is overtaking now: what it lets go is let go when the rows are taken.
    is_under_way: bool,
}

impl Overtaking {
    pub(crate) fn of(programs: &[Program]) -> Self {
        Self {
            is_allowed: programs.iter().all(Program::only_forgets),
            is_under_way: false,
        }
    }
}

impl Program {
    /// Whether nothing of this pattern is told, or found, because of a punctuation.
    fn only_forgets(&self) -> bool {
        !self.gap_free && !self.hold && self.speculation.is_none() && !self.is_observed()
    }
}

impl Engine {
    /// Takes a punctuation before the rows that wait, if no row of them lies below it; false if they have to be taken
    /// first. What it tells comes after what they tell all the same.
    pub(crate) fn overtake(&mut self, feeding: &mut Feeding, origin: Origin, ts: i64, index: u32) -> bool {
        let segment = &mut feeding.segment;
        let topic = &self.domains[origin.domain].topics[origin.topic];
        let is_plain = self.overtaking.is_allowed && !self.promises.has_slack && topic.predicated.is_empty();
        let is_theirs = segment.origins.is_empty() && segment.origin == origin && segment.measured.oldest >= ts;
        if segment.measured.is_empty() || !is_plain || !is_theirs || !self.has_room_to_wait() {
            return false;
        }
        let now = feeding.net == Net::Record;
        if now {
            segment.overtaken_from.get_or_insert(self.table.rows.len());
            self.findings.record = index;
        }
        self.overtaking.is_under_way = true;
        self.punctuate(origin, ts, now);
        self.overtaking.is_under_way = false;
        true
    }

    /// Whether it makes no difference that what is let go is so a little later: keys do not move between partitions, and
    /// no limit is near.
    fn has_room_to_wait(&self) -> bool {
        let events = CHUNK_ROWS * EVENTS_OF_A_LIMIT;
        self.domains.len() == 1
            && self.numbers.len() + CHUNK_ROWS <= self.limits.max_keys
            && self.limits.max_events_per_key >= events
            && self.limits.max_bytes_per_key >= events * EVENT_BYTES
    }

    /// Lets go what a partition's punctuation allows; while rows wait, when they are taken.
    pub(crate) fn clean_now_or_later(&mut self, domain: usize) {
        self.domains[domain].is_to_be_cleaned = true;
        if !self.overtaking.is_under_way {
            self.clean_domains();
        }
    }

    /// Lets go what was to be let go later.
    pub(crate) fn clean_domains(&mut self) {
        let mut are_cleaned = false;
        for number in 0..self.domains.len() {
            let domain = &mut self.domains[number];
            if let (true, Some(punctuation)) = (domain.is_to_be_cleaned, domain.effective) {
                domain.is_to_be_cleaned = false;
                self.clean_queue(number, punctuation);
                are_cleaned = true;
            }
        }
        if are_cleaned {
            self.clean_shared();
        }
    }

    /// Takes out of the table what punctuations told that have overtaken rows.
    pub(crate) fn take_overtakers(&mut self, segment: &mut Segment) -> Vec<ChangeRow> {
        let from = segment.overtaken_from.take();
        from.map_or_else(Vec::new, |from| self.table.rows.split_off(from))
    }

    /// Puts it back among what is told from a place on, in order of records.
    pub(crate) fn weave(&mut self, told: &[ChangeRow], from: usize) {
        let rows = &mut self.table.rows;
        let mut end = rows.len();
        rows.extend_from_slice(told);
        for (before, row) in told.iter().enumerate().rev() {
            let place = from + rows[from..end].partition_point(|other| other.record <= row.record);
            rows.copy_within(place..end, place + before + 1);
            rows[place + before] = *row;
            end = place;
        }
    }
}
