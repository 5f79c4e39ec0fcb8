//! Event time as sources write it, floored to the fleet's unit.

/// How a source writes time, and the unit of the fleet's `ts`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    written: Written,
    nanoseconds_per_unit: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    /// As the fleet does.
    Plain,
    /// In a coarser unit.
    Times(i64),
    /// In a finer unit.
    Over(i64),
    /// As a text.
    Iso8601,
}

impl Default for Clock {
    /// Time stands as it should; a record's own timestamp is in milliseconds, and so is the rest.
    fn default() -> Self {
        Self {
            written: Written::Plain,
            nanoseconds_per_unit: MILLISECOND,
        }
    }
}

const MILLISECOND: i64 = 1_000_000;
const SECOND: i64 = 1_000_000_000;

fn nanoseconds(unit: &str) -> Option<i64> {
    match unit {
        "s" => Some(SECOND),
        "ms" => Some(MILLISECOND),
        "us" => Some(1_000),
        "ns" => Some(1),
        _ => None,
    }
}

impl Clock {
    /// The clock of a source that writes `written` in a fleet of unit `fleet`; none if these are no units.
    #[must_use]
    pub fn new(written: &str, fleet: &str) -> Option<Self> {
        let nanoseconds_per_unit = nanoseconds(fleet).filter(|_| fleet != "s")?;
        let written = if written == "iso8601" {
            Written::Iso8601
        } else {
            match nanoseconds(written)? {
                same if same == nanoseconds_per_unit => Written::Plain,
                coarser if coarser > nanoseconds_per_unit => Written::Times(coarser / nanoseconds_per_unit),
                finer => Written::Over(nanoseconds_per_unit / finer),
            }
        };
        Some(Self {
            written,
            nanoseconds_per_unit,
        })
    }

    /// Whether the source writes texts instead of numbers.
    #[must_use]
    pub fn is_text(self) -> bool {
        self.written == Written::Iso8601
    }

    /// A number in the source's unit; none if it leaves 64 bits.
    #[must_use]
    pub fn number(self, number: i64) -> Option<i64> {
        match self.written {
            Written::Plain | Written::Iso8601 => Some(number),
            Written::Times(factor) => number.checked_mul(factor),
            Written::Over(divisor) => Some(number.div_euclid(divisor)),
        }
    }

    /// A record's own timestamp.
    #[must_use]
    pub fn milliseconds(self, number: i64) -> Option<i64> {
        number.checked_mul(MILLISECOND / self.nanoseconds_per_unit)
    }

    /// An RFC 3339 time.
    ///
    /// # Errors
    /// Says for people what is wrong with the text.
    pub fn text(self, text: &[u8]) -> Result<i64, &'static str> {
        let nanoseconds = rfc3339(text).ok_or("is no time such as 2025-01-31T08:00:00.5Z")?;
        let floored = nanoseconds.div_euclid(i128::from(self.nanoseconds_per_unit));
        i64::try_from(floored).map_err(|_| "is outside 64 bits")
    }
}

/// Nanoseconds since 1970; digits of the fraction after the ninth are cut, which is a floor.
fn rfc3339(text: &[u8]) -> Option<i128> {
    let (head, rest) = text.split_at_checked(19)?;
    let separated = head[4] == b'-' && head[7] == b'-' && head[13] == b':' && head[16] == b':';
    if !separated || !matches!(head[10], b'T' | b't' | b' ') {
        return None;
    }
    let part = |begin: usize, end: usize| number(&head[begin..end]);
    let (year, month, day) = (part(0, 4)?, part(5, 7)?, part(8, 10)?);
    let (hour, minute, second) = (part(11, 13)?, part(14, 16)?, part(17, 19)?);
    // 60 is a leap second: it is the next minute's first, as in POSIX time.
    if !(1..=12).contains(&month) || day < 1 || day > days_in(year, month) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let (fraction, rest) = fraction(rest)?;
    let seconds = days_since_1970(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second - offset(rest)?;
    Some(i128::from(seconds) * i128::from(SECOND) + i128::from(fraction))
}

fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |sum, digit| {
        digit
            .is_ascii_digit()
            .then(|| sum * 10 + i64::from(digit.wrapping_sub(b'0')))
    })
}

fn fraction(text: &[u8]) -> Option<(i64, &[u8])> {
    let Some(digits) = text.strip_prefix(b".") else {
        return Some((0, text));
    };
    let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let kept = length.min(9);
    let missing = u32::try_from(9 - kept).ok()?;
    let nanoseconds = number(&digits[..kept])? * 10_i64.pow(missing);
    (length > 0).then(|| (nanoseconds, &digits[length..]))
}

/// Seconds east of Greenwich.
fn offset(text: &[u8]) -> Option<i64> {
    match text {
        b"Z" | b"z" => Some(0),
        [sign @ (b'+' | b'-'), hours @ .., b':', _, _] if hours.len() == 2 => {
            let (hours, minutes) = (number(hours)?, number(&text[4..])?);
            let seconds = hours * 3_600 + minutes * 60;
            let east = if *sign == b'+' { seconds } else { -seconds };
            (hours <= 23 && minutes <= 59).then_some(east)
        }
        _ => None,
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// In the Gregorian calendar, for years from 0 on.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    const BEFORE_MONTH: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    const BEFORE_1970: i64 = 719_528;
    let past = year - 1;
    let leap_days = past.div_euclid(4) - past.div_euclid(100) + past.div_euclid(400) + 1; // the year 0 is one
    let this_year = i64::from(month > 2 && is_leap(year));
    let index = usize::try_from(month - 1).unwrap_or(0);
    year * 365 + leap_days + BEFORE_MONTH[index] + this_year + day - 1 - BEFORE_1970
}

#[cfg(test)]
mod tests {
    use super::{Clock, days_since_1970};

    fn clock(written: &str, fleet: &str) -> Clock {
        Clock::new(written, fleet).expect("units")
    }

    #[test]
    fn units_are_floored_to_the_fleets() {
        assert_eq!(clock("ms", "ms").number(7), Some(7));
        assert_eq!(clock("s", "ns").number(-2), Some(-2_000_000_000));
        assert_eq!(clock("s", "ns").number(i64::MAX), None);
        assert_eq!(clock("us", "ms").number(-1), Some(-1));
        assert_eq!(clock("ns", "ms").number(1_999_999), Some(1));
        assert_eq!(clock("s", "us").milliseconds(5), Some(5_000));
        assert_eq!(Clock::new("s", "s"), None);
        assert_eq!(Clock::new("h", "ms"), None);
    }

    #[test]
    fn days_are_counted_over_leap_years() {
        assert_eq!(days_since_1970(1970, 1, 1), 0);
        assert_eq!(days_since_1970(2000, 3, 1), 11_017);
        assert_eq!(days_since_1970(1969, 12, 31), -1);
        assert_eq!(days_since_1970(0, 1, 1), -719_528);
        assert_eq!(days_since_1970(2100, 3, 1) - days_since_1970(2100, 2, 28), 1);
    }

    #[test]
    fn times_are_read_with_fraction_and_offset() {
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2025-01-31T08:00:00Z", 1_738_310_400_000),
            ("2025-01-31t08:00:00.5z", 1_738_310_400_500),
            ("2025-01-31 10:30:00.1239999999999+02:30", 1_738_310_400_123),
            ("2025-01-31T07:00:00-01:00", 1_738_310_400_000),
            ("1969-12-31T23:59:59.9995Z", -1),
            ("2016-12-31T23:59:60Z", 1_483_228_800_000),
            ("2024-02-29T00:00:00Z", 1_709_164_800_000),
        ] {
            assert_eq!(clock("iso8601", "ms").text(text.as_bytes()), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "2025-01-31",
            "2025-01-31T08:00:00",
            "2025-01-31T08:00:00.Z",
            "2025-02-29T08:00:00Z",
            "2025-13-01T08:00:00Z",
            "2025-01-00T08:00:00Z",
            "2025-01-31T24:00:00Z",
            "2025-01-31T08:00:61Z",
            "2025-01-31T08:00:00+24:00",
            "2025-01-31T08:00:00+0100",
            "2025-01-31T08:00:00Z ",
            "+025-01-31T08:00:00Z",
            "2025-01-31T08:00:0\u{e9}Z",
        ] {
            assert!(clock("iso8601", "ms").text(text.as_bytes()).is_err(), "{text}");
        }
        let distant = b"9999-01-01T00:00:00Z";
        assert_eq!(clock("iso8601", "ns").text(distant), Err("is outside 64 bits"));
    }
}
