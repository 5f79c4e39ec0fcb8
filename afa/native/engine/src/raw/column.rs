//! A field of raw records, row by row: numbers of one type as such, so that predicates can be evaluated for many rows at
//! once.

use std::ops::Range;

use crate::predicates::kernel::{FloatTest, compare_floats, compare_ints, compare_ints_as_floats};
use crate::program::value::{Comparison, Value};
use crate::raw::scan::Scalar;

/// The values of a field, in order of arrival.
#[derive(Debug)]
pub enum ScannedColumn {
    /// Floats, NaN where there is no value: a record holds none.
    Floats(Vec<f64>),
    /// Ints.
    Ints(Vec<i64>),
    /// Anything.
    Mixed(Vec<Scalar>),
}

impl Default for ScannedColumn {
    fn default() -> Self {
        Self::Floats(Vec::new())
    }
}

impl ScannedColumn {
    /// An empty column with room for some rows.
    #[must_use]
    pub fn with_capacity(rows: usize) -> Self {
        Self::Floats(Vec::with_capacity(rows))
    }

    /// Adds the value of the next row.
    #[inline]
    pub fn push(&mut self, value: Scalar) {
        match (&mut *self, value) {
            (Self::Floats(column), Scalar::Float(number)) => column.push(number),
            (Self::Ints(column), Scalar::Int(number)) => column.push(number),
            (Self::Mixed(column), value) => column.push(value),
            (_, value) => self.push_other(value),
        }
    }

    /// A value of another type than those before it.
    fn push_other(&mut self, value: Scalar) {
        match (&mut *self, value) {
            (Self::Floats(column), Scalar::Missing) => column.push(f64::NAN),
            (Self::Floats(column), Scalar::Int(number)) if column.is_empty() => *self = Self::Ints(vec![number]),
            _ => {
                let known = (0..self.len()).map(|row| self.get(row));
                *self = Self::Mixed(known.chain([value]).collect());
            }
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Floats(column) => column.len(),
            Self::Ints(column) => column.len(),
            Self::Mixed(column) => column.len(),
        }
    }

    /// The value of a row.
    #[must_use]
    pub fn get(&self, row: usize) -> Scalar {
        match self {
            Self::Floats(column) if column[row].is_nan() => Scalar::Missing,
            Self::Floats(column) => Scalar::Float(column[row]),
            Self::Ints(column) => Scalar::Int(column[row]),
            Self::Mixed(column) => column[row],
        }
    }

    /// Compares the values from the first `known` row on with a constant, if they are numbers as `declared`. The answer
    /// is how many of those behind the `known` ones are unknown.
    pub fn compare(
        &self,
        declared: u8,
        comparison: Comparison,
        constant: &Value,
        known: Range<usize>,
        bits: &mut [u64],
    ) -> Option<u64> {
        let (from, mut unknown) = (known.start, 0);
        match (self, declared, constant) {
            (Self::Floats(column), 0 | 2, Value::Float(_) | Value::Int(_)) => {
                let test = FloatTest {
                    comparison,
                    constant: as_float(constant)?,
                    begin: 0,
                };
                unknown = compare_floats(&column[from..], None, &[test], bits);
                // These were counted when they came.
                unknown -= column[known].iter().filter(|number| number.is_nan()).count() as u64;
            }
            (Self::Ints(column), 0 | 1, Value::Int(number)) => {
                compare_ints(&column[from..], None, comparison, *number, bits, &mut unknown);
            }
            (Self::Ints(column), 2, Value::Int(_)) | (Self::Ints(column), 0..=2, Value::Float(_)) => {
                compare_ints_as_floats(
                    &column[from..],
                    None,
                    comparison,
                    as_float(constant)?,
                    bits,
                    &mut unknown,
                );
            }
            _ => return None,
        }
        Some(unknown)
    }
}

#[allow(clippy::cast_precision_loss)] // int with float compares as float64
pub(crate) fn as_float(constant: &Value) -> Option<f64> {
    match constant {
        Value::Float(number) => Some(*number),
        Value::Int(number) => Some(*number as f64),
        _ => None,
    }
}
