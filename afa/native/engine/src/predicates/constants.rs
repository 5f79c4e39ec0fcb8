//! Predicates about equality of one field, by their constants.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use smallvec::SmallVec;

use crate::predicates::field_values::{FieldValue, Kind, Known, Values};
use crate::predicates::kernel::WORD_ROWS;
use crate::program::value::Value;

/// The predicates that look for a constant, by their place in the group.
type Seekers = SmallVec<[u32; 2]>;
type Table<K> = HashMap<K, Seekers, FixedState>;

/// Which predicates look for which constant.
#[derive(Debug, Default)]
pub(crate) struct Constants {
    /// Ints, for ints.
    ints: Table<i64>,
    /// Floats by their bits, for ints, which are compared with them as floats.
    floats: Table<u64>,
    /// Ints as floats and floats, for floats.
    numbers: Table<u64>,
    texts: Table<Box<str>>,
    truths: [Seekers; 2],
    /// Those that are true of all other values.
    negated: Vec<u32>,
}

impl Constants {
    /// Of predicates in the order of their group: what each looks for, and whether it is true of all other values.
    #[allow(clippy::cast_precision_loss)] // int with float compares as float64
    #[allow(clippy::cast_possible_truncation)] // limited by max_program_arcs
    pub(crate) fn new<'a>(sought: impl Iterator<Item = (&'a [Value], bool)>) -> Self {
        let mut table = Self::default();
        for (place, (constants, negated)) in sought.enumerate() {
            let place = place as u32;
            for constant in constants {
                match constant {
                    Value::Int(number) => {
                        table.ints.entry(*number).or_default().push(place);
                        table.numbers.entry(bits_of(*number as f64)).or_default().push(place);
                    }
                    Value::Float(number) => {
                        table.floats.entry(bits_of(*number)).or_default().push(place);
                        table.numbers.entry(bits_of(*number)).or_default().push(place);
                    }
                    Value::Str(text) => table.texts.entry((&**text).into()).or_default().push(place),
                    Value::Bool(truth) => table.truths[usize::from(*truth)].push(place),
                    Value::Unknown | Value::List(_) => {}
                }
            }
            if negated {
                table.negated.push(place);
            }
        }
        table
    }

    /// Evaluates all predicates, whose words begin where `begins` says, for rows that are not known yet.
    pub(crate) fn evaluate(
        &self,
        values: &Values<'_>,
        kind: Kind,
        begins: &[usize],
        bits: &mut [u64],
        known: &mut Known,
    ) {
        let mut note = |row: usize, seekers: Option<&Seekers>| {
            for place in seekers.into_iter().flatten() {
                bits[begins[*place as usize] + row / WORD_ROWS] |= 1 << (row % WORD_ROWS);
            }
        };
        match kind {
            Kind::Text => self.each_text(values, known, note),
            Kind::Number => self.each_number(values, known, note),
            Kind::Bool => values.each(known.rows(), |row, value| {
                if let FieldValue::Bool(truth) = value {
                    known.set(row);
                    note(row, Some(&self.truths[usize::from(truth)]));
                }
            }),
        }
        for place in &self.negated {
            known.negate(&mut bits[begins[*place as usize]..]);
        }
    }

    #[inline]
    #[allow(clippy::cast_precision_loss)] // int with float compares as float64
    fn each_number(&self, values: &Values<'_>, known: &mut Known, mut note: impl FnMut(usize, Option<&Seekers>)) {
        values.each(known.rows(), |row, value| match value {
            FieldValue::Int(number) => {
                known.set(row);
                note(row, self.ints.get(&number));
                if !self.floats.is_empty() {
                    note(row, self.floats.get(&bits_of(number as f64)));
                }
            }
            FieldValue::Float(number) => {
                known.set(row);
                note(row, self.numbers.get(&bits_of(number)));
            }
            _ => {}
        });
    }

    #[inline]
    fn each_text(&self, values: &Values<'_>, known: &mut Known, mut note: impl FnMut(usize, Option<&Seekers>)) {
        if let Some((dictionary, offset)) = values.dictionary()
            && dictionary.values.len() <= known.rows().len()
        {
            // Each distinct text is looked up once.
            let seekers: Vec<Option<&Seekers>> = (0..dictionary.values.len())
                .map(|value| dictionary.values.get(value).and_then(|text| self.texts.get(text)))
                .collect();
            for row in known.rows() {
                if let Some(index) = dictionary.index(offset + row) {
                    known.set(row);
                    note(row, seekers.get(index).copied().flatten());
                }
            }
            return;
        }
        values.each(known.rows(), |row, value| {
            if let FieldValue::Text(text) = value {
                known.set(row);
                note(row, self.texts.get(text));
            }
        });
    }
}

/// The bits of a float; both zeros are one.
fn bits_of(number: f64) -> u64 {
    (number + 0.0).to_bits()
}
