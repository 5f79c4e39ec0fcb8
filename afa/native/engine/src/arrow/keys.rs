//! The keys of the rows of a record batch.

use arrow_array::{Array, StringArray};

use crate::arrow::rows::ArrowRows;
use crate::arrow::text::Texts;
use crate::engine::Engine;
use crate::input::{Feeding, index_of};
use crate::keys::table::{KeyTable, Standing, TOGETHER};
use crate::predicates::kernel::{WORD_ROWS, vectorized};
use crate::segment::NO_KEY;

/// The keys of a dictionary's texts, as far as they are known, with what their numbers stood for then.
#[derive(Debug, Default)]
pub(crate) struct DictionaryKeys {
    found: Vec<(u32, Standing)>,
}

/// A text that is not known, or not looked up.
const NOT_FOUND: (u32, Standing) = (NO_KEY, Standing::NONE);

impl DictionaryKeys {
    /// Looks up all texts of a dictionary, unless they are known or far more than the rows that they are for.
    fn look_up(&mut self, numbers: &KeyTable, values: &DictionaryTexts<'_>, rows: usize) {
        if !self.found.is_empty() || values.len() > rows {
            return;
        }
        self.found.resize(values.len(), NOT_FOUND);
        for (block, found) in self.found.chunks_mut(TOGETHER).enumerate() {
            let last = values.len() - 1;
            let texts = std::array::from_fn(|place| values.get((block * TOGETHER + place).min(last)).as_bytes());
            for (known, found) in numbers.find_together(&texts).into_iter().zip(found) {
                *found = known.unwrap_or(NOT_FOUND);
            }
        }
    }
}

/// The texts of a dictionary.
struct DictionaryTexts<'a> {
    all: &'a Texts,
    /// Most dictionaries are of this kind; the others are asked what they are for each text.
    short: Option<&'a StringArray>,
}

impl<'a> DictionaryTexts<'a> {
    fn of(all: &'a Texts) -> Self {
        let short = match all {
            Texts::Short(array) if array.null_count() == 0 => Some(array),
            _ => None,
        };
        Self { all, short }
    }

    fn len(&self) -> usize {
        self.all.len()
    }

    #[inline]
    fn get(&self, index: usize) -> &'a str {
        match self.short {
            Some(array) => array.value(index),
            None => self.all.get(index).unwrap_or_default(),
        }
    }
}

impl Engine {
    /// The keys of rows that all have one, by the numbers of a dictionary; `rows` is how many there are in all.
    fn find_dictionary_keys(
        &mut self,
        feeding: &mut Feeding,
        (values, indices): (&Texts, &[i32]),
        first: usize,
        rows: usize,
        domain: usize,
        known: &mut DictionaryKeys,
    ) {
        let values = DictionaryTexts::of(values);
        known.look_up(&self.numbers, &values, rows);
        feeding.segment.keys.reserve(indices.len());
        let mut at = 0;
        while at < indices.len() {
            let index = usize::try_from(indices[at]).unwrap_or(usize::MAX);
            let same = count_same(&indices[at..]);
            let (number, standing) = known.found.get(index).copied().unwrap_or(NOT_FOUND);
            if self.numbers.is_still(number, standing) {
                self.add_rows(feeding, Some(number), first + at, same);
            } else {
                let key = self.number_of(values.get(index), domain);
                self.add_rows(feeding, key, first + at, same);
                if let (Some(found), Some(key)) = (known.found.get_mut(index), key) {
                    *found = (key, self.numbers.standing(key));
                }
            }
            at += same;
        }
    }

    #[allow(clippy::cast_possible_truncation)] // numbers of keys fit: limited by max_keys
    fn number_of(&mut self, name: &str, domain: usize) -> Option<u32> {
        let number = self.key_number(name, domain);
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

    /// Finds the keys of rows from one partition, and adds them to the segment; a row without one is noted as bad.
    pub(crate) fn find_keys(
        &mut self,
        feeding: &mut Feeding,
        rows: &ArrowRows,
        (from, to): (usize, usize),
        base: usize,
        domain: usize,
        known: &mut DictionaryKeys,
    ) {
        if let Some(stretch) = rows.whole_stretch(from, to) {
            self.find_dictionary_keys(feeding, stretch, base + from, rows.batch_len(), domain, known);
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
                    let known = known.or_else(|| self.number_of(key, domain));
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
