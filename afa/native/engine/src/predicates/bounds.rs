//! Predicates that compare one field with bounds, by the order of these.
//!
//! Every comparison of numbers says on which side of a threshold a value lies: `value >= threshold` or not. The rank of a
//! value is the number of thresholds that it reaches.

use crate::predicates::field_values::{FieldValue, Known, Values};
use crate::predicates::kernel::{WORD_ROWS, int_threshold};
use crate::program::value::{Comparison, Value};

/// Bounds for ints and for floats: rounding may make another order of them.
#[derive(Debug)]
pub(crate) struct Bounds {
    ints: Thresholds<i64>,
    floats: Thresholds<f64>,
}

/// Predicates in the order of their thresholds.
#[derive(Debug)]
struct Thresholds<T> {
    /// Without those, at the end, that no value reaches.
    sorted: Vec<T>,
    places: Vec<Side>,
    has_above: bool,
    has_below: bool,
}

/// A predicate by its place in the group.
#[derive(Clone, Copy, Debug)]
struct Side {
    place: u32,
    /// All bits: true below the threshold; none: true from it on.
    flip: u64,
}

impl Bounds {
    /// Of predicates in the order of their group.
    pub(crate) fn new<'a>(bounds: impl Iterator<Item = (Comparison, &'a Value)>) -> Self {
        let (mut ints, mut floats) = (Vec::new(), Vec::new());
        for (place, (comparison, constant)) in bounds.enumerate() {
            #[allow(clippy::cast_possible_truncation)] // limited by max_program_arcs
            let side = Side {
                place: place as u32,
                flip: match comparison {
                    Comparison::Less | Comparison::LessEqual => u64::MAX,
                    _ => 0,
                },
            };
            ints.push((int_threshold(comparison, constant), side));
            floats.push((float_threshold(comparison, constant), side));
        }
        ints.sort_by_key(|(threshold, _)| *threshold);
        floats.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        Self {
            ints: Thresholds::new(&ints, |threshold| i64::try_from(threshold).ok()),
            floats: Thresholds::new(&floats, |threshold| Some(threshold).filter(|number| number.is_finite())),
        }
    }

    /// Evaluates all predicates, whose words begin where `begins` says, for rows that are not known yet.
    pub(crate) fn evaluate(&self, values: &Values<'_>, begins: &[usize], bits: &mut [u64], known: &mut Known) {
        let mut ints = Ranked::new(&self.ints, begins);
        let mut floats = Ranked::new(&self.floats, begins);
        let mut word = known.from / WORD_ROWS;
        values.each(known.rows(), |row, value| {
            if row / WORD_ROWS != word {
                known.add(word, ints.tell(word, bits) | floats.tell(word, bits));
                word = row / WORD_ROWS;
            }
            match value {
                FieldValue::Int(number) => ints.add(row, number),
                FieldValue::Float(number) => floats.add(row, number),
                _ => {}
            }
        });
        known.add(word, ints.tell(word, bits) | floats.tell(word, bits));
    }
}

/// A value is on the upper side of a bound iff it is at least this.
fn float_threshold(comparison: Comparison, constant: &Value) -> f64 {
    #[allow(clippy::cast_precision_loss)] // int with float compares as float64
    let number = match constant {
        Value::Int(number) => *number as f64,
        Value::Float(number) => *number,
        _ => f64::INFINITY,
    };
    match comparison {
        Comparison::Greater | Comparison::LessEqual => number.next_up(),
        // Minus zero is zero, but would be sorted before it.
        _ => number + 0.0,
    }
}

impl<T: PartialOrd + Copy> Thresholds<T> {
    fn new<W: Copy>(sorted: &[(W, Side)], reachable: impl Fn(W) -> Option<T>) -> Self {
        Self {
            sorted: sorted
                .iter()
                .map_while(|(threshold, _)| reachable(*threshold))
                .collect(),
            places: sorted.iter().map(|(_, side)| *side).collect(),
            has_above: sorted.iter().any(|(_, side)| side.flip == 0),
            has_below: sorted.iter().any(|(_, side)| side.flip != 0),
        }
    }
}

/// Up to 64 rows by their ranks.
struct Ranked<'a, T> {
    thresholds: &'a Thresholds<T>,
    /// By the order of thresholds: where the words of the predicate begin, and its flip.
    columns: Vec<(usize, u64)>,
    /// By rank: the rows that have it.
    by_rank: Vec<u64>,
    rows: u64,
    least: usize,
    most: usize,
}

impl<'a, T: PartialOrd + Copy> Ranked<'a, T> {
    fn new(thresholds: &'a Thresholds<T>, begins: &[usize]) -> Self {
        let column = |side: &Side| (begins[side.place as usize], side.flip);
        Self {
            thresholds,
            columns: thresholds.places.iter().map(column).collect(),
            by_rank: vec![0; thresholds.places.len() + 1],
            rows: 0,
            least: usize::MAX,
            most: 0,
        }
    }

    #[inline]
    fn add(&mut self, row: usize, value: T) {
        let rank = self.thresholds.sorted.partition_point(|threshold| *threshold <= value);
        let bit = 1 << (row % WORD_ROWS);
        self.by_rank[rank] |= bit;
        self.rows |= bit;
        (self.least, self.most) = (self.least.min(rank), self.most.max(rank));
    }

    /// Adds a word of truths to each predicate and begins anew. The answer is which rows there were.
    fn tell(&mut self, word: usize, bits: &mut [u64]) -> u64 {
        let rows = std::mem::take(&mut self.rows);
        if rows == 0 {
            return 0;
        }
        // Below the least rank all rows reach a threshold, from the greatest on none does.
        let begin = if self.thresholds.has_above { 0 } else { self.least };
        let end = if self.thresholds.has_below {
            self.columns.len()
        } else {
            self.most
        };
        let mut reaching = rows;
        for ((column, flip), leaving) in self.columns[begin..end].iter().zip(&self.by_rank[begin..]) {
            reaching &= !leaving;
            bits[column + word] |= (reaching ^ flip) & rows;
        }
        self.by_rank[self.least..=self.most].fill(0);
        (self.least, self.most) = (usize::MAX, 0);
        rows
    }
}
