//! Checks the content of a column from elsewhere, so that nothing wrong in it can do harm later.
//!
//! The same guarantees as the Arrow crate's own full validation, at a fraction of its price: that one looks at every
//! text and every index by itself, which costs more than to match the events.

use std::ops::BitOr;

use arrow_buffer::{ArrowNativeType, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;

use crate::predicates::kernel::vectorized;

/// The bits of so few rows lie within a word: cutting a stretch out of a bitmap costs more.
const FEW_ROWS: usize = 32;

/// Checks a column.
///
/// # Errors
/// What is wrong with it.
pub fn check(data: &ArrayData) -> Result<(), String> {
    let told = |error: arrow_schema::ArrowError| error.to_string();
    data.validate().map_err(told)?;
    data.validate_nulls().map_err(told)?;
    let sound = match data.data_type() {
        DataType::Utf8 => texts_of_are_sound::<i32>(data),
        DataType::LargeUtf8 => texts_of_are_sound::<i64>(data),
        // Also of rows that are null: if those are out of range, the slower way finds out that they are null.
        DataType::Dictionary(width, _) => indices_are_sound(width, data),
        DataType::Struct(_) | DataType::Boolean | DataType::Null => true,
        other => other.is_primitive(),
    };
    if !sound {
        // Slower, and either finds the exact place or that a null hides what looked wrong.
        data.validate_values().map_err(told)?;
    }
    data.child_data().iter().try_for_each(check)
}

fn texts_of_are_sound<T: ArrowNativeType + Ord>(data: &ArrayData) -> bool {
    data.is_empty() || texts_are_sound(&data.buffer::<T>(0)[..=data.len()], data.buffers()[1].as_slice())
}

/// Whether offsets ascend within the bytes and every text is UTF-8.
#[must_use]
pub fn texts_are_sound<T: ArrowNativeType + Ord>(offsets: &[T], bytes: &[u8]) -> bool {
    let (Some(first), Some(last)) = (offsets.first(), offsets.last()) else {
        return false;
    };
    let descents = offsets
        .windows(2)
        .map(|pair| u32::from(pair[0] > pair[1]))
        .fold(0, |found, one| found | one);
    let (Some(first), Some(last)) = (first.to_usize(), last.to_usize()) else {
        return false;
    };
    let Some(used) = bytes.get(first..last).filter(|_| descents == 0) else {
        return false;
    };
    // Every byte of ASCII is a text of its own, so it does not matter where the texts are cut.
    used.is_ascii()
        || std::str::from_utf8(used).is_ok_and(|used| {
            offsets
                .iter()
                .all(|offset| used.is_char_boundary(offset.as_usize() - first))
        })
}

fn indices_are_sound(width: &DataType, data: &ArrayData) -> bool {
    match width {
        DataType::Int8 => indices_below::<i8>(data),
        DataType::Int16 => indices_below::<i16>(data),
        DataType::Int32 => indices_below::<i32>(data),
        DataType::Int64 => indices_below::<i64>(data),
        DataType::UInt8 => indices_below::<u8>(data),
        DataType::UInt16 => indices_below::<u16>(data),
        DataType::UInt32 => indices_below::<u32>(data),
        DataType::UInt64 => indices_below::<u64>(data),
        _ => false,
    }
}

fn indices_below<T: ArrowNativeType + Ord + BitOr<Output = T>>(data: &ArrayData) -> bool {
    are_below(&data.buffer::<T>(0)[..data.len()], data.child_data()[0].len())
}

/// Whether indices lead into a dictionary of this length.
#[must_use]
pub fn are_below<T: ArrowNativeType + Ord + BitOr<Output = T>>(indices: &[T], length: usize) -> bool {
    let below = |index: T| index.to_usize().is_some_and(|index| index < length);
    // All their bits together are no less than the greatest and negative if one is, and the fastest to find.
    let bits = vectorized(
        #[inline(always)]
        || indices.iter().fold(T::default(), |bits, index| bits | *index),
    );
    if below(bits) {
        return true;
    }
    let (mut least, mut most) = (T::default(), T::default());
    for index in indices {
        least = least.min(*index);
        most = most.max(*index);
    }
    indices.is_empty() || (least == T::default() && below(most))
}

/// How many bits of a bitmap are set, of so many from one on, which it has.
#[must_use]
pub fn count_set(bitmap: &[u8], offset: usize, length: usize) -> usize {
    if length == 0 {
        return 0;
    }
    let (first, last) = (offset / 8, (offset + length - 1) / 8);
    let bytes = &bitmap[first..=last];
    let (words, rest) = bytes.as_chunks();
    let all: u32 = vectorized(
        #[inline(always)]
        || words.iter().map(|word| u64::from_le_bytes(*word).count_ones()).sum(),
    );
    let rest: u32 = rest.iter().map(|byte| byte.count_ones()).sum();
    let before = bitmap[first] & !(u8::MAX << (offset % 8));
    let behind = bitmap[last] & !(u8::MAX >> (7 - (offset + length - 1) % 8));
    (all + rest - before.count_ones() - behind.count_ones()) as usize
}

/// Whether none of some rows is null.
pub(crate) fn are_valid(nulls: Option<&NullBuffer>, from: usize, to: usize) -> bool {
    let Some(nulls) = nulls.filter(|_| from < to) else {
        return true;
    };
    if to - from > FEW_ROWS {
        return count_set(nulls.validity(), nulls.offset() + from, to - from) == to - from;
    }
    let (first, last) = (nulls.offset() + from, nulls.offset() + to - 1);
    let bytes = &nulls.validity()[first / 8..=last / 8];
    let bits = bytes.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte));
    let wanted = (1 << (to - from)) - 1;
    bits >> (first % 8) & wanted == wanted
}

#[cfg(test)]
mod tests {
    use super::count_set;

    #[test]
    fn bits_are_counted_from_any_one_on() {
        let bitmap: Vec<u8> = (0..40_u8).map(|byte| byte.wrapping_mul(73) ^ 0x5a).collect();
        let is_set = |bit: &usize| bitmap[bit / 8] >> (bit % 8) & 1 != 0;
        for offset in 0..70 {
            for length in 0..200 {
                let expected = (offset..offset + length).filter(is_set).count();
                assert_eq!(
                    count_set(&bitmap, offset, length),
                    expected,
                    "{length} from {offset} on"
                );
            }
        }
    }
}
