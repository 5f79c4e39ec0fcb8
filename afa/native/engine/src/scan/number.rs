//! Numbers in JSON: an int unless there is a `.` or an exponent, exact, by hand where that is easy.

use super::capture::Found;
use super::json::{Failed, Parser};

/// So many digits always fit into 64 bits.
const MOST_DIGITS: usize = 19;
/// Integers up to here, and these powers of ten, are exact as floats: one operation on two of them rounds once.
const MOST_EXACT: u64 = 1 << 53;
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

/// What the text of a number says, as far as it was easy to keep.
struct Decimal {
    negative: bool,
    /// Wrong if there are too many digits.
    mantissa: u64,
    digits: usize,
    exponent: i32,
    float: bool,
}

/// The value of eight digits, if these are digits.
#[inline]
fn eight_digits(word: u64) -> Option<u64> {
    let digits = word ^ 0x3030_3030_3030_3030;
    if (digits | digits.wrapping_add(0x7676_7676_7676_7676)) & 0x8080_8080_8080_8080 != 0 {
        return None;
    }
    // The first digit is in the lowest byte: pairs, then fours, then all eight are put together.
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul(100).wrapping_add(pairs >> 16) & 0x0000_ffff_0000_ffff;
    Some(fours.wrapping_mul(10_000).wrapping_add(fours >> 32) & 0xffff_ffff)
}

impl Parser<'_> {
    /// A number that is wanted.
    #[inline]
    pub(super) fn number(&mut self, at: usize) -> Result<(Found, usize), Failed> {
        let (decimal, after) = self.decimal(at)?;
        let found = if decimal.float {
            self.float(&decimal, at, after)
        } else {
            integer(&decimal)
        };
        Ok((found, after))
    }

    /// Checks a number that nobody wants.
    #[inline]
    pub(super) fn skip_number(&mut self, at: usize) -> Result<usize, Failed> {
        self.decimal(at).map(|(_, after)| after)
    }

    #[inline]
    fn decimal(&mut self, begin: usize) -> Result<(Decimal, usize), Failed> {
        let negative = self.byte(begin) == b'-';
        let first = begin + usize::from(negative);
        let (mut mantissa, mut at) = if self.byte(first) == b'0' {
            (0, first + 1)
        } else {
            self.digits(first, 0)?
        };
        let mut digits = at - first;
        let mut exponent = 0;
        let mut float = false;
        if self.byte(at) == b'.' {
            let (longer, after) = self.digits(at + 1, mantissa)?;
            let places = after - at - 1;
            mantissa = longer;
            digits += places;
            exponent = -i32::try_from(places).unwrap_or(i32::MAX);
            float = true;
            at = after;
        }
        if matches!(self.byte(at), b'e' | b'E') {
            let (written, after) = self.exponent(at + 1)?;
            exponent = exponent.saturating_add(written);
            float = true;
            at = after;
        }
        let decimal = Decimal {
            negative,
            mantissa,
            digits,
            exponent,
            float,
        };
        Ok((decimal, at))
    }

    /// At least one digit, appended to those of `value`.
    #[inline]
    fn digits(&mut self, begin: usize, mut value: u64) -> Result<(u64, usize), Failed> {
        let mut at = begin;
        while let Some(eight) = eight_digits(self.word(at)) {
            value = value.wrapping_mul(100_000_000).wrapping_add(eight);
            at += 8;
        }
        loop {
            let digit = self.byte(at).wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
            at += 1;
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

    #[inline]
    fn float(&self, decimal: &Decimal, begin: usize, end: usize) -> Found {
        let power = POWERS.get(decimal.exponent.unsigned_abs() as usize);
        let Some(power) = power.filter(|_| decimal.digits <= MOST_DIGITS && decimal.mantissa < MOST_EXACT) else {
            return self.float_by_the_library(begin, end);
        };
        #[allow(clippy::cast_precision_loss)] // below 2^53
        let mantissa = decimal.mantissa as f64;
        let size = if decimal.exponent < 0 {
            mantissa / power
        } else {
            mantissa * power
        };
        Found::Float(if decimal.negative { -size } else { size })
    }

    #[cold]
    fn float_by_the_library(&self, begin: usize, end: usize) -> Found {
        let text = std::str::from_utf8(&self.bytes[begin..end]).unwrap_or_default();
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Found::Float(number),
            _ => Found::OutOfRange,
        }
    }
}

#[inline]
fn integer(decimal: &Decimal) -> Found {
    if decimal.digits > MOST_DIGITS {
        return Found::OutOfRange;
    }
    let signed = if decimal.negative {
        0_i64.checked_sub_unsigned(decimal.mantissa)
    } else {
        i64::try_from(decimal.mantissa).ok()
    };
    signed.map_or(Found::OutOfRange, Found::Int)
}

#[cfg(test)]
mod tests {
    use super::eight_digits;

    #[test]
    fn eight_digits_are_read_at_once() {
        assert_eq!(eight_digits(u64::from_le_bytes(*b"12345678")), Some(12_345_678));
        assert_eq!(eight_digits(u64::from_le_bytes(*b"00000000")), Some(0));
        assert_eq!(eight_digits(u64::from_le_bytes(*b"99999999")), Some(99_999_999));
        for place in 0..8 {
            for byte in (0..=255_u8).filter(|byte| !byte.is_ascii_digit()) {
                let mut bytes = *b"12395678";
                bytes[place] = byte;
                assert_eq!(eight_digits(u64::from_le_bytes(bytes)), None, "{byte} at {place}");
            }
        }
    }
}
