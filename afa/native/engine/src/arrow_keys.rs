//! The keys of the rows of a record batch.

use arrow_array::Array;

use crate::arrow_rows::ArrowRows;
use crate::arrow_text::Texts;
use crate::engine::Engine;
use crate::input::{Feeding, index_of};
use crate::kernel::{WORD_ROWS, vectorized};
use crate::segment::NO_KEY;

impl Engine {
    /// The keys of rows that all have one, by the numbers of a dictionary.
    #[allow(clippy::cast_possible_truncation)] // numbers of keys fit: limited by max_keys
    fn find_dictionary_keys(
        &mut self,
        feeding: &mut Feeding,
        values: &Texts,
        indices: &[i32],
        first: usize,
        last_key: &mut Option<(i32, u32)>,
    ) {
        let domain = feeding.segment.origin.domain;
        // Most dictionaries are of this kind; the others are asked what they are for each text.
        let short = match values {
            Texts::Short(array) if array.null_count() == 0 => Some(array),
            _ => None,
        };
        let text_of = |index: usize| match short {
            Some(array) => array.value(index),
            None => values.get(index).unwrap_or_default(),
        };
        feeding.segment.keys.reserve(indices.len());
        let mut at = 0;
        while at < indices.len() {
            let same = count_same(&indices[at..]);
            let key = match *last_key {
                Some((index, key)) if index == indices[at] => key,
                _ => {
                    let text = usize::try_from(indices[at]).map_or("", text_of);
                    let number = self.key_number(text, domain);
                    number.map_or(NO_KEY, |number| number as u32)
                }
            };
            if key == NO_KEY {
                let refused = (at..at + same).map(|row| (index_of(first + row), self.too_many_keys()));
                feeding.fed.bad.extend(refused);
            } else {
                *last_key = Some((indices[at], key));
            }
            let keys = &mut feeding.segment.keys;
            if same == 1 {
                keys.push(key);
            } else {
                keys.resize(keys.len() + same, key);
            }
            at += same;
        }
    }

    /// Finds the keys of rows, and adds them to the segment; a row without one is noted as bad.
    #[allow(clippy::cast_possible_truncation)] // numbers of keys fit: limited by max_keys
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
