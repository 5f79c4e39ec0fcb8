//! Record batches: their rows are taken where they lie.

use crate::arrow_rows::{ArrowRows, Keys};
use crate::arrow_text::Texts;
use crate::chunk::{CHUNK_ROWS, Chunk};
use crate::domain::Origin;
use crate::engine::{Engine, Retraction};
use crate::event::IdRef;
use crate::input::{Feeding, index_of};
use crate::segment::{NO_KEY, Net};

impl Engine {
    /// Takes rows of a record batch from one index on; `first_number` makes the ids of rows without one. Stops like
    /// `feed_raw`.
    pub fn feed_arrow(
        &mut self,
        feeding: &mut Feeding,
        rows: &ArrowRows,
        from: usize,
        first_number: u64,
        origin: Origin,
    ) {
        (feeding.fed.asks, feeding.fed.condition) = (None, None);
        let mut begin = from;
        while begin < rows.len() {
            let length = (rows.len() - begin).min(CHUNK_ROWS);
            let slice = rows.slice(begin, length);
            let chunk = self.add_chunk(Chunk::arrow(slice.clone(), first_number + begin as u64));
            // A punctuation among the rows must not clean up the chunk before the rows after it are taken.
            self.busy = Some(chunk);
            let asks = self.feed_slice(feeding, &slice, chunk, begin, origin);
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
        origin: Origin,
    ) -> Option<usize> {
        let mut at = 0;
        while at < rows.len() {
            let other = rows.next_operation(at).unwrap_or(rows.len());
            if other > at {
                feeding.segment.clear();
                (feeding.segment.chunk, feeding.segment.first) = (chunk, at);
                (feeding.segment.first_record, feeding.segment.origin) = (index_of(base + at), origin);
                self.find_keys(feeding, rows, at, other, base);
                self.take_segment(&mut feeding.segment, feeding.net, &mut feeding.fed);
            }
            if other < rows.len() {
                self.before_other(
                    feeding,
                    matches!(rows.operation(other), Some("punctuation" | "arc-punctuation")),
                );
                if feeding.net == Net::Record {
                    self.findings.record = index_of(base + other);
                }
                if !self.take_arrow_other(feeding, rows, other, index_of(base + other), origin) {
                    return Some(base + other);
                }
            }
            at = other + 1;
        }
        None
    }

    /// The keys of rows that all have one, by the numbers of a dictionary.
    #[allow(clippy::cast_possible_truncation)] // numbers of keys fit: limited by max_keys
    fn find_dictionary_keys(
        &mut self,
        feeding: &mut Feeding,
        values: &Texts,
        indices: &[i32],
        first: usize,
        keys: &mut Vec<u32>,
    ) {
        let domain = feeding.segment.origin.domain;
        let mut at = 0;
        while at < indices.len() {
            let same = count_same(&indices[at..]);
            let text = usize::try_from(indices[at]).ok().and_then(|index| values.get(index));
            let number = self.key_number(text.unwrap_or_default(), domain);
            let key = number.map_or(NO_KEY, |number| number as u32);
            if key == NO_KEY {
                let refused = (at..at + same).map(|row| (index_of(first + row), self.too_many_keys()));
                feeding.fed.bad.extend(refused);
            }
            keys.resize(keys.len() + same, key);
            at += same;
        }
    }

    #[allow(clippy::cast_possible_truncation)] // numbers of keys fit: limited by max_keys
    fn find_keys(&mut self, feeding: &mut Feeding, rows: &ArrowRows, from: usize, to: usize, base: usize) {
        let mut keys = std::mem::take(&mut feeding.segment.keys);
        if let Keys::Dictionary { values, indices, nulls } = rows.keys()
            && rows.have_times(from, to)
            && nulls.is_none_or(|nulls| nulls.slice(from, to - from).null_count() == 0)
        {
            self.find_dictionary_keys(feeding, values, &indices[from..to], base + from, &mut keys);
            feeding.segment.keys = keys;
            return;
        }
        for row in from..to {
            let reason = match rows.key(row) {
                None => "a record needs `key`".into(),
                Some(_) if !rows.has_time(row) => "a record needs `ts`".into(),
                Some(key) => {
                    let same = row > from && rows.same_key_as_previous(row);
                    let known = if same {
                        keys.last().copied().filter(|key| *key != NO_KEY)
                    } else {
                        None
                    };
                    let known = known.or_else(|| {
                        let number = self.key_number(key, feeding.segment.origin.domain);
                        number.map(|number| number as u32)
                    });
                    if let Some(number) = known {
                        keys.push(number);
                        continue;
                    }
                    self.too_many_keys()
                }
            };
            feeding.fed.bad.push((index_of(base + row), reason));
            keys.push(NO_KEY);
        }
        feeding.segment.keys = keys;
    }

    fn take_arrow_other(
        &mut self,
        feeding: &mut Feeding,
        rows: &ArrowRows,
        row: usize,
        index: u32,
        origin: Origin,
    ) -> bool {
        let now = feeding.net == Net::Record;
        let ts = rows.times()[row];
        let operation = rows.operation(row).unwrap_or_default();
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
            "arc" | "arc-retract" => match rows.arc(row) {
                Some(json) => return self.take_arc(json.as_bytes(), index, &mut feeding.fed),
                None => "an arc change needs its JSON in the column `arc`".into(),
            },
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

/// How many of the first numbers are the same.
fn count_same(indices: &[i32]) -> usize {
    let first = indices[0];
    let mut count = 1;
    // Whole blocks at a time: one key often has many rows in a row.
    while let Some(block) = indices.get(count..count + 64) {
        if block[0] != first || block.iter().fold(0, |differs, index| differs | (index ^ first)) != 0 {
            break;
        }
        count += 64;
    }
    count + indices[count..].iter().take_while(|index| **index == first).count()
}
