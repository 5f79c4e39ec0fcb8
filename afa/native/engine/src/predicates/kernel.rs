//! Predicates over whole columns: one bit per row, 64 rows per word.
//!
//! A row whose value is unknown (null, NaN, infinite) is not true, and is counted. Every function writes all bits of
//! `true_bits` that belong to rows, and zeros behind them.

use arrow_buffer::NullBuffer;

use crate::arrow::text::Texts;
use crate::program::value::{Comparison, Value};

/// How many rows one word of bits holds.
pub const WORD_ROWS: usize = 64;

const LANES: usize = 8;

/// The bit of each row in its word.
const BITS: [u64; WORD_ROWS] = {
    let mut bits = [0; WORD_ROWS];
    let mut row = 0;
    while row < WORD_ROWS {
        bits[row] = 1 << row;
        row += 1;
    }
    bits
};

/// The number of words for so many rows.
#[must_use]
pub const fn words(rows: usize) -> usize {
    rows.div_ceil(WORD_ROWS)
}

/// Does work with the widest vectors that the machine has; loops have to be inlined into it.
#[inline]
pub(crate) fn vectorized<T>(work: impl FnOnce() -> T) -> T {
    pulp::Arch::new().dispatch(work)
}

/// A comparison of a column with a finite constant.
#[derive(Clone, Copy, Debug)]
pub struct FloatTest {
    /// How it is compared.
    pub comparison: Comparison,
    /// With what.
    pub constant: f64,
    /// Where its words begin.
    pub begin: usize,
}

/// Floats compared with several constants in one go; the answer is how many rows are unknown to each.
///
/// # Panics
/// If `true_bits` has fewer words than the rows need, here and in all functions below.
#[must_use]
pub fn compare_floats(column: &[f64], nulls: Option<&NullBuffer>, tests: &[FloatTest], true_bits: &mut [u64]) -> u64 {
    let known = KnownRows::new(nulls);
    let mut unknown = 0;
    vectorized(
        #[inline(always)]
        || {
            for ((word, chunk), mut known) in column.chunks(WORD_ROWS).enumerate().zip(known.words(column.len())) {
                let mut filled = [0.0; WORD_ROWS];
                let whole = <&[f64; WORD_ROWS]>::try_from(chunk).unwrap_or_else(|_| {
                    filled[..chunk.len()].copy_from_slice(chunk);
                    &filled
                });
                if !all_finite(whole) {
                    known &= packed_word(whole, f64::is_finite);
                }
                for test in tests {
                    true_bits[test.begin + word] = test.word(whole) & known;
                }
                unknown += missing(known, chunk.len());
            }
        },
    );
    unknown
}

impl FloatTest {
    /// The truths of 64 numbers; without meaning for those that are not finite.
    #[inline(always)]
    #[allow(clippy::inline_always)] // into the code for the machine's vectors
    #[allow(clippy::float_cmp)] // what the expression says
    fn word(&self, numbers: &[f64; WORD_ROWS]) -> u64 {
        let constant = self.constant;
        match self.comparison {
            Comparison::Equal => packed_word(numbers, |number| number == constant),
            Comparison::NotEqual => packed_word(numbers, |number| number != constant),
            Comparison::Less => packed_word(numbers, |number| number < constant),
            Comparison::LessEqual => packed_word(numbers, |number| number <= constant),
            Comparison::Greater => packed_word(numbers, |number| number > constant),
            Comparison::GreaterEqual => packed_word(numbers, |number| number >= constant),
        }
    }
}

/// Ints compared with an int, exactly.
pub fn compare_ints(
    column: &[i64],
    nulls: Option<&NullBuffer>,
    comparison: Comparison,
    constant: i64,
    true_bits: &mut [u64],
    unknown: &mut u64,
) {
    let constant = i128::from(constant);
    let range = accepted(comparison, constant, constant + 1);
    ints(column, nulls, range, true_bits, unknown);
}

/// Which rows have a value; the answer is how many have none.
pub fn find_known(rows: usize, nulls: Option<&NullBuffer>, true_bits: &mut [u64]) -> u64 {
    let words = KnownRows::new(nulls).words(rows);
    let mut unknown = rows as u64;
    for (bits, known) in true_bits.iter_mut().zip(words) {
        *bits = known;
        unknown -= u64::from(known.count_ones());
    }
    unknown
}

/// Ints compared with a finite float, as floats.
pub fn compare_ints_as_floats(
    column: &[i64],
    nulls: Option<&NullBuffer>,
    comparison: Comparison,
    constant: f64,
    true_bits: &mut [u64],
    unknown: &mut u64,
) {
    // Rounding to a float keeps the order, so each comparison holds for the ints on one side of a bound.
    let equal_from = first_int(|number| number >= constant);
    let equal_below = first_int(|number| number > constant);
    ints(
        column,
        nulls,
        accepted(comparison, equal_from, equal_below),
        true_bits,
        unknown,
    );
}

/// Whether ints leave this rest when they are divided; the answer is how many rows are unknown. The rest is less than
/// the divisor.
///
/// A number is a multiple of 2^k * odd iff its product with the inverse of the odd factor, turned right by k bits, is no
/// more than the greatest quotient: a remainder is no work for vectors.
#[must_use]
pub fn divide_ints(
    column: &[i64],
    nulls: Option<&NullBuffer>,
    (divisor, rest): (u64, u64),
    negated: bool,
    true_bits: &mut [u64],
) -> u64 {
    const SIGN: u64 = 1 << 63;
    let (shift, flip) = (divisor.trailing_zeros(), if negated { u64::MAX } else { 0 });
    let (inverse, greatest) = (inverse_of(divisor >> shift), u64::MAX / divisor);
    // Numbers from 0 on, which leave another rest.
    let least = (SIGN % divisor + rest) % divisor;
    // What is no more than the greatest quotient if the number leaves the rest.
    let turned = |number: i64| {
        let above = (number.cast_unsigned() ^ SIGN).wrapping_sub(least);
        let product = above.wrapping_mul(inverse).rotate_right(shift);
        if above <= u64::MAX - least { product } else { u64::MAX }
    };
    let known = KnownRows::new(nulls);
    let true_bits = &mut true_bits[..words(column.len())];
    let mut unknown = 0;
    vectorized(
        #[inline(always)]
        || {
            for ((chunk, bits), known) in column.chunks(WORD_ROWS).zip(true_bits).zip(known.words(column.len())) {
                // In a loop of its own: with the comparison in it, compilers gather numbers from afar.
                let mut products = [0; WORD_ROWS];
                for (product, number) in products.iter_mut().zip(chunk) {
                    *product = turned(*number);
                }
                let found = packed_word(&products, |product| product <= greatest);
                *bits = (found ^ flip) & known;
                unknown += missing(known, chunk.len());
            }
        },
    );
    unknown
}

/// The number whose product with an odd one is 1, modulo 2^64: each step doubles the bits that are right.
fn inverse_of(odd: u64) -> u64 {
    let mut inverse = odd;
    for _ in 0..5 {
        inverse = inverse.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(inverse)));
    }
    inverse
}

/// Whether texts, of which the first `offset` are left out, are among some constants, or with `negated` are not.
pub fn find_texts(
    texts: &Texts,
    offset: usize,
    constants: &[&str],
    negated: bool,
    rows: usize,
    true_bits: &mut [u64],
    unknown: &mut u64,
) {
    let wanted = |text: &str| constants.contains(&text) != negated;
    let is_whole = |nulls: &NullBuffer| offset == 0 && rows == nulls.len();
    let cut = |nulls: NullBuffer| {
        if is_whole(&nulls) {
            nulls
        } else {
            nulls.slice(offset, rows)
        }
    };
    let nulls = texts.nulls().map(cut);
    let known = KnownRows::new(nulls.as_ref());
    let true_bits = &mut true_bits[..words(rows)];
    if let Texts::Dictionary(dictionary) = texts {
        // Each distinct text is looked at once.
        let values = &dictionary.values;
        let truths: Vec<bool> = (0..values.len())
            .map(|value| values.get(value).is_some_and(wanted))
            .collect();
        let indices = &dictionary.indices[offset..offset + rows];
        for ((chunk, bits), known) in indices.chunks(WORD_ROWS).zip(true_bits).zip(known.words(rows)) {
            let truth = |index: &i32| usize::try_from(*index).ok().and_then(|index| truths.get(index)) == Some(&true);
            *bits = packed(chunk.iter().map(truth)) & known;
            *unknown += missing(known, chunk.len());
        }
        return;
    }
    if let Texts::Alike(alike) = texts {
        let all = if wanted(&alike.text) { u64::MAX } else { 0 };
        for ((word, bits), known) in true_bits.iter_mut().enumerate().zip(known.words(rows)) {
            *bits = all & known;
            *unknown += missing(known, WORD_ROWS.min(rows - word * WORD_ROWS));
        }
        return;
    }
    for ((word, bits), known) in true_bits.iter_mut().enumerate().zip(known.words(rows)) {
        let first = word * WORD_ROWS;
        let last = rows.min(first + WORD_ROWS);
        *bits = match texts.all_alike(offset + first..offset + last) {
            Some(text) => {
                if wanted(text) {
                    rows_mask(last - first)
                } else {
                    0
                }
            }
            None => packed((first..last).map(|row| texts.get(offset + row).is_some_and(wanted))),
        };
        *unknown += missing(known, last - first);
    }
}

/// The ints that a comparison accepts: those in (or, if negated, not in) `from..below`.
#[derive(Clone, Copy)]
struct Accepted {
    from: i128,
    below: i128,
    negated: bool,
}

const LEAST: i128 = i64::MIN as i128;
const BEYOND: i128 = i64::MAX as i128 + 1;

/// `equal_from..equal_below` are the ints that equal the constant.
fn accepted(comparison: Comparison, equal_from: i128, equal_below: i128) -> Accepted {
    let (from, below) = match comparison {
        Comparison::Equal | Comparison::NotEqual => (equal_from, equal_below),
        Comparison::Less => (LEAST, equal_from),
        Comparison::LessEqual => (LEAST, equal_below),
        Comparison::Greater => (equal_below, BEYOND),
        Comparison::GreaterEqual => (equal_from, BEYOND),
    };
    Accepted {
        from,
        below,
        negated: comparison == Comparison::NotEqual,
    }
}

/// An int is on the upper side of a bound, a constant of a comparison, iff it is at least this.
pub(crate) fn int_threshold(comparison: Comparison, constant: &Value) -> i128 {
    let (equal_from, equal_below) = match constant {
        Value::Int(number) => (i128::from(*number), i128::from(*number) + 1),
        Value::Float(number) => (first_int(|int| int >= *number), first_int(|int| int > *number)),
        _ => (BEYOND, BEYOND),
    };
    match comparison {
        Comparison::Greater | Comparison::LessEqual => equal_below,
        _ => equal_from,
    }
}

/// The first int whose float has a property that holds from some float on; one beyond the range if none has.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)] // both bounds stay within 64 bits
fn first_int(holds: impl Fn(f64) -> bool) -> i128 {
    let (mut from, mut below) = (LEAST, BEYOND);
    while from < below {
        let middle = (from + below).div_euclid(2);
        if holds(middle as i64 as f64) {
            below = middle;
        } else {
            from = middle + 1;
        }
    }
    from
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // an empty range is dealt with before
fn ints(column: &[i64], nulls: Option<&NullBuffer>, range: Accepted, true_bits: &mut [u64], unknown: &mut u64) {
    let Accepted { from, below, negated } = range;
    let flip = if negated { u64::MAX } else { 0 };
    let known = KnownRows::new(nulls);
    let true_bits = &mut true_bits[..words(column.len())];
    // One unsigned comparison tests both bounds.
    let (first, width) = (from as i64, (below - 1 - from) as u64);
    let nothing = if from >= below { 0 } else { u64::MAX };
    let holds = |number: i64| number.wrapping_sub(first) as u64 <= width;
    vectorized(
        #[inline(always)]
        || {
            for ((chunk, bits), known) in column.chunks(WORD_ROWS).zip(true_bits).zip(known.words(column.len())) {
                let inside = match <&[i64; WORD_ROWS]>::try_from(chunk) {
                    Ok(whole) => packed_ints(whole, holds),
                    Err(_) => packed(chunk.iter().map(|number| holds(*number))),
                };
                *bits = ((inside & nothing) ^ flip) & known;
                *unknown += missing(known, chunk.len());
            }
        },
    );
}

/// Whether no number is infinite or NaN: of such a number all bits of the exponent are set, and one more in the last of
/// them carries into the sign's place.
#[inline(always)]
#[allow(clippy::inline_always)] // into the code for the machine's vectors
fn all_finite(numbers: &[f64; WORD_ROWS]) -> bool {
    const SIGN: u64 = 1 << 63;
    const LAST_OF_EXPONENT: u64 = 1 << 52;
    let mut carries = 0;
    for number in numbers {
        carries |= (number.to_bits() & !SIGN) + LAST_OF_EXPONENT;
    }
    carries & SIGN == 0
}

/// 64 truths as one word. Eight lanes, so that compilers make it comparisons and masks of whole vectors.
#[inline(always)]
#[allow(clippy::inline_always)] // into the code for the machine's vectors
pub(crate) fn packed_word<T: Copy>(rows: &[T; WORD_ROWS], holds: impl Fn(T) -> bool) -> u64 {
    let mut lanes = [0_u64; LANES];
    for (rows, bits) in rows.as_chunks::<LANES>().0.iter().zip(BITS.as_chunks::<LANES>().0) {
        for lane in 0..LANES {
            lanes[lane] |= if holds(rows[lane]) { bits[lane] } else { 0 };
        }
    }
    lanes.iter().fold(0, |word, lane| word | lane)
}

/// The same for ints that come from memory, in order: of the one loop above compilers may make vectors of rows that lie
/// far apart, which have to be waited for all at once.
#[inline(always)]
#[allow(clippy::inline_always)] // into the code for the machine's vectors
pub(crate) fn packed_ints(rows: &[i64; WORD_ROWS], holds: impl Fn(i64) -> bool) -> u64 {
    let mut found = [0_u64; WORD_ROWS];
    for ((found, row), bit) in found.iter_mut().zip(rows).zip(BITS) {
        *found = if holds(*row) { bit } else { 0 };
    }
    let mut lanes = [0_u64; LANES];
    for found in found.as_chunks::<LANES>().0 {
        for lane in 0..LANES {
            lanes[lane] |= found[lane];
        }
    }
    lanes.iter().fold(0, |word, lane| word | lane)
}

fn packed(truths: impl Iterator<Item = bool>) -> u64 {
    truths
        .enumerate()
        .fold(0, |word, (place, truth)| word | u64::from(truth) << place)
}

fn missing(known: u64, rows: usize) -> u64 {
    rows as u64 - u64::from((known & rows_mask(rows)).count_ones())
}

/// The bits of so many rows.
#[inline]
pub(crate) fn rows_mask(rows: usize) -> u64 {
    if rows >= WORD_ROWS { u64::MAX } else { (1 << rows) - 1 }
}

/// The validity of rows, word by word, with zeros behind the last row.
struct KnownRows<'a>(Option<&'a NullBuffer>);

impl<'a> KnownRows<'a> {
    fn new(nulls: Option<&'a NullBuffer>) -> Self {
        Self(nulls.filter(|nulls| nulls.null_count() > 0))
    }

    fn words(&self, rows: usize) -> impl Iterator<Item = u64> + use<'a> {
        let chunks = self.0.map(|nulls| nulls.inner().bit_chunks());
        let mut valid = chunks.map(|chunks| chunks.iter().chain(std::iter::once(chunks.remainder_bits())));
        // The iterator of chunks borrows nothing but the buffer.
        (0..words(rows)).map(move |word| {
            let mask = rows_mask(rows - word * WORD_ROWS);
            valid.as_mut().map_or(u64::MAX, |valid| valid.next().unwrap_or(0)) & mask
        })
    }
}
