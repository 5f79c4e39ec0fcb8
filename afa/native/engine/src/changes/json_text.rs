//! JSON as Python's `json.dumps(value, ensure_ascii=False, separators=(",", ":"))` writes it, byte for byte.

use std::io::Write as _;

use crate::program::value::Value;

/// Writes a text with its quotes.
pub fn write_text(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut done = 0;
    for (place, byte) in text.bytes().enumerate() {
        if byte >= b' ' && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&text.as_bytes()[done..place]);
        done = place + 1;
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            control => write(out, format_args!("\\u{control:04x}")),
        }
    }
    out.extend_from_slice(&text.as_bytes()[done..]);
    out.push(b'"');
}

/// Writes an int.
pub fn write_int(out: &mut Vec<u8>, number: i64) {
    if number < 0 {
        out.push(b'-');
    }
    write_digits(out, number.unsigned_abs(), 1);
}

/// Writes a number with at least so many digits, 20 at most.
fn write_digits(out: &mut Vec<u8>, mut number: u64, at_least: usize) {
    let mut digits = [b'0'; 20];
    let mut first = digits.len();
    while number > 0 {
        first -= 1;
        digits[first] += (number % 10) as u8;
        number /= 10;
    }
    out.extend_from_slice(&digits[first.min(digits.len() - at_least.min(digits.len()))..]);
}

/// Writes a position as an id: at least twelve digits.
pub fn write_position(out: &mut Vec<u8>, number: u64) {
    Positions::default().write(out, number);
}

/// The digits of a position, unless it has more.
pub const POSITION_DIGITS: usize = 12;
/// Positions from here on have more.
pub const LONG_POSITION: u64 = 1_000_000_000_000;

/// Writes positions as ids, fast if they are near each other: their upper digits are kept.
pub struct Positions {
    /// The least position with these upper digits.
    from: u64,
    upper_digits: [u8; 8],
}

impl Default for Positions {
    fn default() -> Self {
        Self {
            from: 0,
            upper_digits: [b'0'; 8],
        }
    }
}

impl Positions {
    /// Writes a position: at least twelve digits.
    pub fn write(&mut self, out: &mut Vec<u8>, number: u64) {
        if number >= LONG_POSITION {
            return write_digits(out, number, POSITION_DIGITS);
        }
        let mut digits = [0; POSITION_DIGITS];
        self.put(&mut digits, number);
        out.extend_from_slice(&digits);
    }

    /// Puts the digits of a position that has no more than twelve.
    #[inline]
    pub fn put(&mut self, cell: &mut [u8; POSITION_DIGITS], number: u64) {
        if number.wrapping_sub(self.from) >= 10_000 {
            let upper = number / 10_000;
            self.from = upper * 10_000;
            self.upper_digits[..4].copy_from_slice(&four_digits(upper / 10_000));
            self.upper_digits[4..].copy_from_slice(&four_digits(upper % 10_000));
        }
        cell[..8].copy_from_slice(&self.upper_digits);
        cell[8..].copy_from_slice(&four_digits(number - self.from));
    }
}

/// The digits of a number below 10,000, all four at once: halves, then digits, each in a byte of its own.
#[allow(clippy::cast_possible_truncation)]
#[inline]
fn four_digits(number: u64) -> [u8; 4] {
    let number = number as u32;
    let halves = (number / 100) | ((number % 100) << 16);
    // 103 / 1024 is a tenth as far as numbers below 100 are concerned.
    let tens = ((halves * 103) >> 10) & 0x000F_000F;
    let digits = tens | ((halves - tens * 10) << 8);
    (digits | 0x3030_3030).to_le_bytes()
}

/// Writes a finite float: the shortest digits that read back the same, and Python's form of the exponent.
pub fn write_float(out: &mut Vec<u8>, number: f64) {
    let start = out.len();
    write(out, format_args!("{number:?}"));
    let Some(mark) = out[start..].iter().position(|byte| *byte == b'e') else {
        return;
    };
    let exponent = out.split_off(start + mark + 1);
    let (sign, digits) = match exponent.split_first() {
        Some((b'-', digits)) => (b'-', digits),
        _ => (b'+', &exponent[..]),
    };
    out.push(sign);
    if digits.len() < 2 {
        out.push(b'0');
    }
    out.extend_from_slice(digits);
}

/// Writes the value of a register.
pub fn write_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Int(number) => write_int(out, *number),
        Value::Float(number) => write_float(out, *number),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Str(text) => write_text(out, text),
        Value::Unknown | Value::List(_) => out.extend_from_slice(b"null"),
    }
}

fn write(out: &mut Vec<u8>, what: std::fmt::Arguments<'_>) {
    let written = out.write_fmt(what);
    debug_assert!(written.is_ok(), "writing into memory cannot fail");
}

#[cfg(test)]
mod tests {
    use super::{write_float, write_int, write_position, write_text};

    fn written(write: impl Fn(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn floats_as_python_writes_them() {
        let pairs = [
            (1e16, "1e+16"),
            (1e15, "1000000000000000.0"),
            (9_999_999_999_999_998.0, "9999999999999998.0"),
            (123_456_789_012_345_678.0, "1.2345678901234568e+17"),
            (1e-7, "1e-07"),
            (2.5e-5, "2.5e-05"),
            (9.999e-5, "9.999e-05"),
            (1e-4, "0.0001"),
            (5.0, "5.0"),
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (-1e22, "-1e+22"),
            (f64::MAX, "1.7976931348623157e+308"),
            (5e-324, "5e-324"),
            (1e100, "1e+100"),
            (0.1, "0.1"),
        ];
        for (number, expected) in pairs {
            assert_eq!(written(|out| write_float(out, number)), expected);
        }
    }

    #[test]
    fn texts_as_python_writes_them() {
        let text = "é\"\\\n\r\t\u{8}\u{c}\0\u{1f}\u{7f}\u{2028}/";
        let expected = "\"é\\\"\\\\\\n\\r\\t\\b\\f\\u0000\\u001f\u{7f}\u{2028}/\"";
        assert_eq!(written(|out| write_text(out, text)), expected);
        assert_eq!(written(|out| write_text(out, "")), "\"\"");
    }

    #[test]
    fn ints_to_the_ends_of_the_range() {
        for number in [0, -1, 10, 1_000_001, i64::MIN, i64::MAX] {
            assert_eq!(written(|out| write_int(out, number)), number.to_string());
        }
        for number in [0, 7, 999_999_999_999, 1_000_000_000_000, u64::MAX] {
            assert_eq!(written(|out| write_position(out, number)), format!("{number:012}"));
        }
        for number in 0..10_000 {
            assert_eq!(
                written(|out| write_position(out, number * 100_010_001)),
                format!("{:012}", number * 100_010_001)
            );
        }
    }
}
