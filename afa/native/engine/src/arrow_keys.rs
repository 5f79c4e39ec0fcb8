//! The keys of the rows of a record batch.

use arrow_array::Array;

use crate::arrow_rows::ArrowRows;
use crate::arrow_text::Texts;
use crate::engine::Engine;
use crate::input::{Feeding, index_of};
use crate::kernel::{WORD_ROWS, vectorized};
use crate::key_table::TOGETHER;
use crate::segment::NO_KEY;

impl Engine {
    /// The keys of rows that all have one, by the numbers of a dictionary.
    fn find_dictionary_keys(
        &mut self,
        feeding: &mut Feeding,
        values: &Texts,
        indices: &[i32],
        first: usize,
        last_key: &mut Option<(i32, u32)>,
    ) {
        // Most dictionaries are of this kind; the others are asked what they are for each text.
        let short = match values {
            Texts::Short(array) if array.null_count() == 0 => Some(array),
            _ => None,
        };
        let text_of = |index: i32| match (usize::try_from(index), short) {
            (Ok(index), Some(array)) => array.value(index),
            (Ok(index), None) => values.get(index).unwrap_or_default(),
            (Err(_), _) => "",
        };
        feeding.segment.keys.reserve(indices.len());
        let mut at = 0;
        while at < indices.len() {
            let block = indices[at..].first_chunk().filter(|block| are_apart(block));
            if let Some(block) = block {
                let texts = block.map(text_of);
                let numbers = self.numbers.find_together(&texts);
                for (place, (number, text)) in numbers.into_iter().zip(texts).enumerate() {
                    let key = number.or_else(|| self.number_of(feeding, text));
                    self.add_rows(feeding, key, first + at + place, 1);
                }
                at += block.len();
                continue;
            }
            let same = count_same(&indices[at..]);
            let known = last_key.filter(|(index, _)| *index == indices[at]).map(|(_, key)| key);
            let key = known.or_else(|| self.number_of(feeding, text_of(indices[at])));
            self.add_rows(feeding, key, first + at, same);
            *last_key = key.map(|key| (indices[at], key));
            at += same;
        }
    }

    #[allow(clippy::cast_possible_truncation)] // numbers of keys fit: limited by max_keys
    fn number_of(&mut self, feeding: &Feeding, name: &str) -> Option<u32> {
        let number = self.key_number(name, feeding.segment.origin.domain);
        number.map(|number| number as u32)
    }

    /// Adds rows of one key to the segment; without one they are noted as bad.
    #[inline]
    fn add_rows(&self, feeding: &mut Feeding, key: Option<u32>, first: usize, count: usize) {
        let keys = &mut feeding.segment.keys;
        if count == 1 {
            keys.push(key.unwrap_or(NO_KEY));
        } else {
            keys.resize(keys.len() + count, key.unwrap_or(NO_KEY));
        }
        if key.is_none() {
            let refused = (first..first + count).map(|row| (index_of(row), self.too_many_keys()));
            feeding.fed.bad.extend(refused);
        }
    }

    /// Finds the keys of rows, and adds them to the segment; a row without one is noted as bad.
    pub(crate) fn find_keys(
        &mut self,
        feeding: &mut Feeding,
        rows: &ArrowRows,
        from: usize,
        to: usize,
        base: usize,
        last_key: &mut Option<(i32, u32)>,
    ) {
        if let Some((values, indices)) = rows.whole_stretch(from, to) {
            self.find_dictionary_keys(feeding, values, indices, base + from, last_key);
            return;
        }
        let mut keys = std::mem::take(&mut feeding.segment.keys);
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
                    let known = known.or_else(|| self.number_of(feeding, key));
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
}

/// Whether none is the same as its neighbour.
fn are_apart(indices: &[i32; TOGETHER]) -> bool {
    indices.iter().zip(&indices[1..]).all(|(one, next)| one != next)
}

/// How many of the first numbers are the same.
#[inline]
fn count_same(indices: &[i32]) -> usize {
    let first = indices[0];
    if indices.get(1) != Some(&first) {
        return 1;
    }
    let blocks = |indices: &[i32]| {
        let same = |block: &[i32; WORD_ROWS]| block.iter().fold(0, |differs, index| differs | (index ^ first)) == 0;
        indices.as_chunks().0.iter().take_while(|block| same(block)).count()
    };
    // Whole blocks at a time: one key often has many rows in a row.
    let count = 1 + WORD_ROWS
        * vectorized(
            #[inline(always)]
            || blocks(&indices[1..]),
        );
    count + indices[count..].iter().take_while(|index| **index == first).count()
}
