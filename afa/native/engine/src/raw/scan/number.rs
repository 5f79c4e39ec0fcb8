//! Numbers in JSON: an int unless there is a `.` or an exponent, exact, by hand where that is easy.

use super::capture::Kind;
use super::json::{Failed, Parser};
use super::shape::Target;

/// So many digits always fit into 64 bits.
const MOST_DIGITS: usize = 19;
/// Integers up to here, and these powers of ten, are exact as floats: one operation on two of them rounds once.
const MOST_EXACT: u64 = 1 << 53;
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

const TENS: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// The digits' values, and the high bit of every character that is none. (Exact up to the first one that is neither a
/// digit nor a point, which is as far as anybody looks.)
#[inline]
fn split(word: u64) -> (u64, u64) {
    let digits = word ^ 0x3030_3030_3030_3030;
    let others = (digits | digits.wrapping_add(0x7676_7676_7676_7676)) & 0x8080_8080_8080_8080;
    (digits, others)
}

/// Eight digits, the first one in the lowest byte: pairs, then fours, then all eight are put together.
#[inline]
fn together(digits: u64) -> u64 {
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul(100).wrapping_add(pairs >> 16) & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(10_000).wrapping_add(fours >> 32) & 0xffff_ffff
}

/// Whether the lowest byte is an `e` or an `E`.
#[inline]
fn is_exponent(word: u64) -> bool {
    word & 0xdf == u64::from(b'E')
}

/// How many of the eight characters are digits before another one comes, and their value.
#[inline]
fn leading_digits(word: u64) -> (u32, u64) {
    let (digits, others) = split(word);
    let count = others.trailing_zeros() / 8;
    // Behind as many zeros as there are characters missing. (In two steps, for no digit at all.)
    let missing = 4 * (8 - count);
    (count, together(digits << missing << missing))
}

/// A number of nothing but digits, at most eight; none if it is not that.
#[inline]
pub(super) fn short_digits(word: u64, length: u32) -> Option<i64> {
    // Behind as many zeros as there are characters missing.
    let (digits, others) = split(word);
    let missing = 64 - 8 * length;
    let is_number = others << missing == 0 && (digits & 0xff != 0 || length == 1);
    is_number.then(|| together(digits << missing).cast_signed())
}

/// A number of which all characters are known, at most eight.
#[derive(Clone, Copy)]
pub(super) struct ShortNumber {
    negative: bool,
    /// What stands behind the sign.
    digits: u64,
    bits: u32,
    /// How many bits stand before the point; none: it is an int.
    point: Option<u32>,
}

impl ShortNumber {
    /// None if the first `length` characters are no number, or one with an exponent.
    #[inline]
    pub(super) fn read(word: u64, length: u32) -> Option<Self> {
        let negative = word & 0xff == u64::from(b'-');
        let sign_bits = 8 * u32::from(negative);
        let bits = 8 * length - sign_bits;
        if bits == 0 {
            return None;
        }
        let (digits, others) = split(word >> sign_bits);
        let others = others & (u64::MAX >> (64 - bits));
        let starts_with_zero = digits.trailing_zeros() >= 8;
        let number = |point| Self {
            negative,
            digits,
            bits,
            point,
        };
        if others == 0 {
            return (!starts_with_zero || bits == 8).then_some(number(None));
        }
        let point = others.trailing_zeros() & !7;
        let is_point = others.is_power_of_two() && digits >> point & 0xff == u64::from(b'.' ^ b'0');
        let has_digits = point >= 8 && point + 8 < bits && (!starts_with_zero || point == 8);
        (is_point && has_digits).then_some(number(Some(point)))
    }

    /// As a slot holds it.
    #[inline]
    pub(super) fn value(self) -> (Kind, u64) {
        let Some(point) = self.point else {
            let size = together(self.digits << (64 - self.bits)).cast_signed();
            let number = if self.negative { -size } else { size };
            return (Kind::Int, number.cast_unsigned());
        };
        // Without the point, behind as many zeros as there are characters missing.
        let before = (1 << point) - 1;
        let digits = (self.digits & before) | (self.digits >> 8 & !before);
        let mantissa = together(digits << (72 - self.bits));
        let places = (self.bits - point) / 8 - 1;
        #[allow(clippy::cast_precision_loss)] // at most seven digits
        let size = mantissa.cast_signed() as f64 / POWERS[(places & 7) as usize];
        let sign = u64::from(self.negative) << 63;
        (Kind::Float, size.to_bits() | sign)
    }
}

impl Parser<'_> {
    /// A number, read in two loads if it has at most seven digits before the point and seven behind it.
    #[inline]
    pub(super) fn number(&mut self, begin: usize, target: Target) -> Result<usize, Failed> {
        let negative = self.byte(begin) == b'-';
        let first = begin + usize::from(negative);
        let word = self.word(first);
        let (digits, others) = split(word);
        let bits = others.trailing_zeros() & !7; // eight per digit
        if !(8..64).contains(&bits) || (bits > 8 && digits.trailing_zeros() >= 8) {
            return self.long_number(begin, target);
        }
        let whole = together(digits << (64 - bits));
        let (next, at) = (word >> bits & 0xff, first + (bits / 8) as usize);
        if next == u64::from(b'.') {
            let rest = self.word(at + 1);
            let (places, fraction) = leading_digits(rest);
            if !(1..8).contains(&places) || is_exponent(rest >> (8 * places)) {
                return self.long_number(begin, target);
            }
            let mantissa = whole * TENS[places as usize] + fraction;
            #[allow(clippy::cast_precision_loss)] // at most 14 digits
            let size = mantissa.cast_signed() as f64 / POWERS[places as usize];
            let sign = u64::from(negative) << 63;
            self.capture.store_float(target, f64::from_bits(size.to_bits() | sign));
            return Ok(at + 1 + places as usize);
        }
        if is_exponent(next) {
            return self.long_number(begin, target);
        }
        let size = whole.cast_signed();
        self.capture.store_int(target, if negative { -size } else { size });
        Ok(at)
    }

    /// Any number.
    fn long_number(&mut self, begin: usize, target: Target) -> Result<usize, Failed> {
        let negative = self.byte(begin) == b'-';
        let first = begin + usize::from(negative);
        let (mantissa, at) = self.whole_part(first)?;
        if !matches!(self.byte(at), b'.' | b'e' | b'E') {
            match integer(negative, mantissa, at - first) {
                Some(number) => self.capture.store_int(target, number),
                None => self.capture.store_unknown(target, Kind::OutOfRange),
            }
            return Ok(at);
        }
        let (mantissa, exponent, after) = self.rest_of_float(at, mantissa)?;
        if target == Target::NOTHING {
            return Ok(after);
        }
        // The point and the exponent are counted as digits: a few more take the slower way.
        let number = match float(mantissa, exponent, after - first) {
            Some(size) if negative => -size,
            Some(size) => size,
            None => self.float_by_the_library(begin, after),
        };
        if number.is_finite() {
            self.capture.store_float(target, number);
        } else {
            self.capture.store_unknown(target, Kind::OutOfRange);
        }
        Ok(after)
    }

    /// The digits before the point: nothing follows a leading zero.
    #[inline]
    fn whole_part(&mut self, at: usize) -> Result<(u64, usize), Failed> {
        if self.byte(at) == b'0' {
            return Ok((0, at + 1));
        }
        self.digits(at, 0)
    }

    /// From the point or the `e` on: all digits as one number, the exponent of ten, and the end.
    #[inline]
    fn rest_of_float(&mut self, mut at: usize, mut mantissa: u64) -> Result<(u64, i32, usize), Failed> {
        let mut exponent = 0;
        if self.byte(at) == b'.' {
            let (longer, after) = self.digits(at + 1, mantissa)?;
            exponent = -i32::try_from(after - at - 1).unwrap_or(i32::MAX);
            mantissa = longer;
            at = after;
        }
        if matches!(self.byte(at), b'e' | b'E') {
            let (written, after) = self.exponent(at + 1)?;
            exponent = exponent.saturating_add(written);
            at = after;
        }
        Ok((mantissa, exponent, at))
    }

    /// At least one digit, appended to those of `value`.
    #[inline]
    fn digits(&mut self, begin: usize, mut value: u64) -> Result<(u64, usize), Failed> {
        let mut at = begin;
        loop {
            let (count, digits) = leading_digits(self.word(at));
            value = value.wrapping_mul(TENS[count as usize]).wrapping_add(digits);
            at += count as usize;
            if count < 8 {
                break;
            }
        }
        if at == begin {
            return Err(self.fail("a digit is needed", at));
        }
        Ok((value, at))
    }

    #[cold]
    fn exponent(&mut self, at: usize) -> Result<(i32, usize), Failed> {
        let sign = self.byte(at);
        let first = at + usize::from(matches!(sign, b'+' | b'-'));
        let (value, after) = self.digits(first, 0)?;
        // With more digits it may be wrong: then it is as good as endless, and the exact way decides.
        let size = if after - first > MOST_DIGITS { u64::MAX } else { value };
        let size = i32::try_from(size).unwrap_or(i32::MAX);
        Ok((if sign == b'-' { -size } else { size }, after))
    }

    #[cold]
    fn float_by_the_library(&self, begin: usize, end: usize) -> f64 {
        let text = std::str::from_utf8(&self.bytes[begin..end]).unwrap_or_default();
        text.parse().unwrap_or(f64::NAN)
    }
}

/// The size of a float, if it is easy; `digits` are at least as many as there are.
#[inline]
fn float(mantissa: u64, exponent: i32, digits: usize) -> Option<f64> {
    let power = POWERS.get(exponent.unsigned_abs() as usize)?;
    if digits > MOST_DIGITS || mantissa >= MOST_EXACT {
        return None;
    }
    #[allow(clippy::cast_precision_loss)] // below 2^53
    let mantissa = mantissa as f64;
    Some(if exponent < 0 {
        mantissa / power
    } else {
        mantissa * power
    })
}

#[inline]
fn integer(negative: bool, mantissa: u64, digits: usize) -> Option<i64> {
    if digits > MOST_DIGITS {
        None
    } else if negative {
        0_i64.checked_sub_unsigned(mantissa)
    } else {
        i64::try_from(mantissa).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::leading_digits;

    #[test]
    fn eight_digits_are_read_at_once() {
        assert_eq!(leading_digits(u64::from_le_bytes(*b"12345678")), (8, 12_345_678));
        assert_eq!(leading_digits(u64::from_le_bytes(*b"00000000")), (8, 0));
        assert_eq!(leading_digits(u64::from_le_bytes(*b"99999999")), (8, 99_999_999));
        let values = [0, 1, 12, 123, 1_239, 12_395, 123_956, 1_239_567];
        for (count, value) in (0..).zip(values) {
            for byte in (0..=255_u8).filter(|byte| !byte.is_ascii_digit()) {
                let mut bytes = *b"12395678";
                bytes[count as usize] = byte;
                assert_eq!(leading_digits(u64::from_le_bytes(bytes)), (count, value), "{byte}");
            }
        }
    }
}
