//! Record batches: their rows are taken where they lie.

use crate::arcs::live::Judged;
use crate::arrow::keys::DictionaryKeys;
use crate::arrow::rows::{ArrowRows, Special};
use crate::engine::{Engine, Retraction};
use crate::input::{Feeding, index_of};
use crate::progress::domain::Origin;
use crate::progress::slack::NO_EVENT;
use crate::rows::chunk::{CHUNK_ROWS, Chunk};
use crate::rows::event::IdRef;
use crate::segment::{NO_KEY, Net};

impl Engine {
    /// Takes rows of a record batch from one index on; `first_number` makes the ids of rows without one, and `origins`
    /// says where each row comes from, or all of them. Stops like `feed_raw`.
    pub fn feed_arrow(
        &mut self,
        feeding: &mut Feeding,
        rows: &ArrowRows,
        from: usize,
        first_number: u64,
        origins: &[Origin],
    ) {
        (feeding.fed.asks, feeding.fed.condition) = (None, None);
        feeding.length = rows.len();
        let (mut begin, mut known) = (from, DictionaryKeys::default());
        while begin < rows.len() {
            let length = (rows.len() - begin).min(CHUNK_ROWS);
            let slice = rows.slice(begin, length);
            self.flush(feeding);
            let chunk = self.add_chunk(Chunk::arrow(slice.clone(), first_number + begin as u64));
            // A punctuation among the rows must not clean up the chunk before the rows after it are taken.
            self.busy = Some(chunk);
            let asks = self.feed_slice(feeding, &slice, chunk, begin, origins, &mut known);
            self.busy = None;
            if let Some(asks) = asks {
                feeding.fed.asks = Some(index_of(asks));
                return;
            }
            begin += length;
        }
    }

    /// Takes the rows of one chunk; the answer is the index at which it was left.
    fn feed_slice(
        &mut self,
        feeding: &mut Feeding,
        rows: &ArrowRows,
        chunk: usize,
        base: usize,
        origins: &[Origin],
        known: &mut DictionaryKeys,
    ) -> Option<usize> {
        feeding.segment.clear();
        feeding.segment.chunk = chunk;
        // One for all rows, or those of the rows from `base` on.
        let origins = if origins.len() > 1 { &origins[base..] } else { origins };
        let mut at = 0;
        for special in rows.special_rows() {
            let (other, operation) = (special.row, special.operation);
            self.add_stretch(feeding, rows, (at, other), base, origins, known);
            at = other + 1;
            let (index, origin) = (index_of(base + other), origin_of(origins, other));
            if !origin.is_read() {
                continue;
            }
            if self.promises.only_events && operation.starts_with("arc") {
                feeding.fed.bad.push((index, NO_EVENT.into()));
                continue;
            }
            if let ("arc" | "arc-retract", Some(json)) = (operation, special.arc) {
                if !self.take_arrow_arc(feeding, json, index) {
                    return Some(base + other);
                }
                continue;
            }
            let is_promise = operation == "punctuation" && rows.has_time(other);
            if is_promise && self.disbelieves(origin, rows.times()[other], index, &mut feeding.fed) {
                continue;
            }
            if is_simple(rows, &special) && self.overtake(feeding, origin, rows.times()[other], index) {
                continue;
            }
            self.before_other(feeding, matches!(operation, "punctuation" | "arc-punctuation"));
            if feeding.net == Net::Record {
                self.findings.record = index;
            }
            if !self.take_arrow_other(feeding, rows, &special, index, origin) {
                return Some(base + other);
            }
        }
        self.add_stretch(feeding, rows, (at, rows.len()), base, origins, known);
        self.take_segment(&mut feeding.segment, feeding.net, &mut feeding.fed);
        None
    }

    /// Adds the inserts from one row to before another to the segment; what lies between them and its other rows is not
    /// to be taken.
    fn add_stretch(
        &mut self,
        feeding: &mut Feeding,
        rows: &ArrowRows,
        (from, to): (usize, usize),
        base: usize,
        origins: &[Origin],
        known: &mut DictionaryKeys,
    ) {
        let from = from + count_unread(origins, from, to);
        if from == to {
            return;
        }
        let segment = &mut feeding.segment;
        if segment.keys.is_empty() {
            (segment.first, segment.first_record) = (from, index_of(base + from));
            segment.origin = origin_of(origins, from);
        }
        let begin = from - segment.first;
        segment.keys.resize(begin, NO_KEY);
        let mut at = from;
        while at < to {
            let (origin, end) = run_of(origins, at, to);
            let rows_before_end = end - feeding.segment.first;
            if origin.is_read() {
                feeding.segment.come_from(origin, rows_before_end);
                self.find_keys(feeding, rows, (at, end), base, origin.domain, known);
            } else {
                let first = feeding.segment.origin;
                feeding.segment.come_from(first, rows_before_end);
                feeding.segment.keys.resize(rows_before_end, NO_KEY);
            }
            at = end;
        }
        self.measure(&mut feeding.segment, begin);
    }

    /// Takes an arc record. What it changes after all events that came need not wait until those are taken, nor they
    /// for it: only if it is about earlier ones, the segment ends here.
    fn take_arrow_arc(&mut self, feeding: &mut Feeding, json: &str, index: u32) -> bool {
        let judged = self.judge_arc(json);
        if feeding.net == Net::Record {
            let newest = self.newest.max(feeding.segment.measured.newest());
            match &judged {
                Judged::Nothing => return true,
                Judged::Change(change) if self.comes_after(change, newest) => {
                    // Classes are of arcs as they were; linear patterns have none.
                    if !self.lanes.is_empty() {
                        self.classify_measured(&mut feeding.segment);
                    }
                    self.change_arc(change);
                    return true;
                }
                _ => {}
            }
        }
        self.before_other(feeding, false);
        if feeding.net == Net::Record {
            self.findings.record = index;
        }
        self.take_judged(judged, index, &mut feeding.fed)
    }

    fn take_arrow_other(
        &mut self,
        feeding: &mut Feeding,
        rows: &ArrowRows,
        special: &Special<'_>,
        index: u32,
        origin: Origin,
    ) -> bool {
        let now = feeding.net == Net::Record;
        let (row, operation) = (special.row, special.operation);
        let ts = rows.times()[row];
        let fault = match operation {
            "punctuation" | "arc-punctuation" | "retract" if !rows.has_time(row) => "a record needs `ts`".into(),
            "punctuation" if rows.when(row).is_some() => {
                feeding.fed.condition = rows.when(row).map(|text| (origin, ts, text.to_owned()));
                return false;
            }
            "punctuation" => {
                self.punctuate(origin, ts, now);
                return true;
            }
            "arc-punctuation" => {
                self.punctuate_arcs(ts, now);
                return true;
            }
            "arc" | "arc-retract" => "an arc change needs its JSON in the column `arc`".into(),
            "retract" => match (rows.key(row), rows.id(row)) {
                (Some(key), Some(id)) => {
                    let (rev, seq) = (rows.rev(row), rows.seq(row));
                    let id = IdRef::of(id);
                    let retraction = Retraction { ts, id, rev, seq };
                    self.take_retraction(key, origin, &retraction, index, &mut feeding.fed);
                    return true;
                }
                (None, _) => "a record needs `key`".into(),
                (_, None) => "a retraction needs the `id` of the event it takes back".into(),
            },
            other => format!("unknown op `{other}`"),
        };
        feeding.fed.bad.push((index, fault));
        true
    }
}

/// Whether a row is a punctuation without a condition.
fn is_simple(rows: &ArrowRows, special: &Special<'_>) -> bool {
    let row = special.row;
    special.operation == "punctuation" && rows.has_time(row) && rows.when(row).is_none()
}

/// Where a row comes from.
fn origin_of(origins: &[Origin], row: usize) -> Origin {
    origins[row.min(origins.len() - 1)]
}

/// Where rows from one on come from, and the first before `to` that comes from elsewhere.
fn run_of(origins: &[Origin], from: usize, to: usize) -> (Origin, usize) {
    let origin = origin_of(origins, from);
    if origins.len() == 1 {
        return (origin, to);
    }
    let same = origins[from..to].iter().take_while(|other| **other == origin).count();
    (origin, from + same)
}

/// How many of the first rows come from where nothing is read.
fn count_unread(origins: &[Origin], from: usize, to: usize) -> usize {
    (from..to).take_while(|row| !origin_of(origins, *row).is_read()).count()
}
