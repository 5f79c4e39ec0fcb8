//! The functions of the expression language.

use crate::program::value::{Comparison, Value};

/// A function that an expression may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Function {
    /// Absolute value.
    Abs,
    /// The least of two or more.
    Min,
    /// The greatest of two or more.
    Max,
    /// Square root.
    Sqrt,
    /// Rounds down to an int.
    Floor,
    /// Rounds up to an int.
    Ceil,
    /// Rounds to the nearest int, halves to even.
    Round,
    /// Code points of a text, items of a list.
    Len,
    /// Lower case.
    Lower,
    /// Upper case.
    Upper,
    /// Whether a text begins with another.
    StartsWith,
    /// Whether a text ends with another.
    EndsWith,
    /// Whether a text contains another.
    Contains,
    /// Pearson's correlation of two lists.
    Corr,
}

impl Function {
    /// The function of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "abs" => Self::Abs,
            "min" => Self::Min,
            "max" => Self::Max,
            "sqrt" => Self::Sqrt,
            "floor" => Self::Floor,
            "ceil" => Self::Ceil,
            "round" => Self::Round,
            "len" => Self::Len,
            "lower" => Self::Lower,
            "upper" => Self::Upper,
            "startswith" => Self::StartsWith,
            "endswith" => Self::EndsWith,
            "contains" => Self::Contains,
            "corr" => Self::Corr,
            _ => return None,
        })
    }

    /// Calls the function; unknown if an argument is unknown or of the wrong type.
    #[must_use]
    pub fn call(self, arguments: &[Value]) -> Value {
        if arguments.iter().any(Value::is_unknown) {
            return Value::Unknown;
        }
        match (self, arguments) {
            (Self::Min, _) => extreme(arguments, Comparison::Less),
            (Self::Max, _) => extreme(arguments, Comparison::Greater),
            (Self::StartsWith, [Value::Str(whole), Value::Str(part)]) => Value::Bool(whole.starts_with(&**part)),
            (Self::EndsWith, [Value::Str(whole), Value::Str(part)]) => Value::Bool(whole.ends_with(&**part)),
            (Self::Contains, [Value::Str(whole), Value::Str(part)]) => Value::Bool(whole.contains(&**part)),
            (Self::Lower, [Value::Str(text)]) => Value::Str(text.to_lowercase().into()),
            (Self::Upper, [Value::Str(text)]) => Value::Str(text.to_uppercase().into()),
            (Self::Len, [Value::Str(text)]) => count(text.chars().count()),
            (Self::Len, [Value::List(items)]) => count(items.len()),
            (Self::Corr, [Value::List(left), Value::List(right)]) => correlation(left, right),
            (_, [Value::Int(number)]) => self.of_int(*number),
            (_, [Value::Float(number)]) => self.of_float(*number),
            _ => Value::Unknown,
        }
    }

    #[allow(clippy::cast_precision_loss)]
    fn of_int(self, number: i64) -> Value {
        match self {
            Self::Abs => Value::int(number.checked_abs()),
            Self::Floor | Self::Ceil | Self::Round => Value::Int(number),
            Self::Sqrt => self.of_float(number as f64),
            _ => Value::Unknown,
        }
    }

    fn of_float(self, number: f64) -> Value {
        match self {
            Self::Abs => Value::Float(number.abs()),
            Self::Floor => whole(number.floor()),
            Self::Ceil => whole(number.ceil()),
            Self::Round => whole(number.round_ties_even()),
            Self::Sqrt if number >= 0.0 => Value::float(number.sqrt()),
            _ => Value::Unknown,
        }
    }
}

fn count(number: usize) -> Value {
    Value::int(i64::try_from(number).ok())
}

/// A float that is a whole number, as an int if it fits.
#[allow(clippy::cast_possible_truncation)]
fn whole(number: f64) -> Value {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&number) {
        Value::Int(number as i64)
    } else {
        Value::Unknown
    }
}

fn extreme(arguments: &[Value], wanted: Comparison) -> Value {
    let any_float = arguments.iter().any(|value| matches!(value, Value::Float(_)));
    let mut best: Option<Value> = None;
    for value in arguments {
        if !matches!(value, Value::Int(_) | Value::Float(_) | Value::Str(_)) {
            return Value::Unknown;
        }
        let value = if any_float {
            value.clone().widened()
        } else {
            value.clone()
        };
        best = match best {
            None => Some(value),
            Some(known) => match wanted.apply(&value, &known) {
                None => return Value::Unknown,
                Some(better) => Some(if better { value } else { known }),
            },
        };
    }
    best.unwrap_or(Value::Unknown)
}

/// Pearson's, in two passes, sums from left to right: every engine adds in this order.
#[allow(clippy::cast_precision_loss)]
fn correlation(left: &[f64], right: &[f64]) -> Value {
    if left.len() != right.len() || left.len() < 2 {
        return Value::Unknown;
    }
    let sum = |parts: &mut dyn Iterator<Item = f64>| parts.fold(0.0, |total, part| total + part);
    let count = left.len() as f64;
    let left_mean = sum(&mut left.iter().copied()) / count;
    let right_mean = sum(&mut right.iter().copied()) / count;
    let shared = sum(&mut left.iter().zip(right).map(|(a, b)| (a - left_mean) * (b - right_mean)));
    let left_spread = sum(&mut left.iter().map(|a| (a - left_mean) * (a - left_mean)));
    let right_spread = sum(&mut right.iter().map(|b| (b - right_mean) * (b - right_mean)));
    let spread = left_spread * right_spread;
    if spread > 0.0 && spread.is_finite() {
        Value::float(shared / spread.sqrt())
    } else {
        Value::Unknown
    }
}
