//! Run-time values and the rules of the expression language that do not depend on where a value comes from.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A value of an expression. `Unknown` is what a missing field, a clash or an overflow gives.
#[derive(Clone, Debug)]
pub enum Value {
    /// Missing, null, out of range, or the result of a clash.
    Unknown,
    /// A 64-bit integer.
    Int(i64),
    /// A finite float.
    Float(f64),
    /// True or false.
    Bool(bool),
    /// A text.
    Str(Arc<str>),
    /// A list of finite floats.
    List(Arc<[f64]>),
}

impl Value {
    /// A float result: unknown unless finite.
    #[must_use]
    pub fn float(number: f64) -> Self {
        if number.is_finite() {
            Self::Float(number)
        } else {
            Self::Unknown
        }
    }

    /// An integer result that may have overflowed.
    #[must_use]
    pub fn int(number: Option<i64>) -> Self {
        number.map_or(Self::Unknown, Self::Int)
    }

    /// A truth value that may be unknown.
    #[must_use]
    pub fn truth(truth: Option<bool>) -> Self {
        truth.map_or(Self::Unknown, Self::Bool)
    }

    /// The truth of a condition; `None` is unknown, and so is anything that is no bool.
    #[must_use]
    pub fn as_truth(&self) -> Option<bool> {
        if let Self::Bool(truth) = self {
            Some(*truth)
        } else {
            None
        }
    }

    /// Whether this is `Unknown`.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown)
    }

    /// An int as a float; everything else as it is.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // the language computes int with float as float64
    pub fn widened(self) -> Self {
        if let Self::Int(number) = self {
            Self::Float(number as f64)
        } else {
            self
        }
    }
}

/// Identity, not the language's `==`: 1 and 1.0 are two values, and minus zero is zero.
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Unknown, Self::Unknown) => true,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a == b,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Str(a), Self::Str(b)) => a == b,
            (Self::List(a), Self::List(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Value {}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Self::Unknown => {}
            Self::Int(number) => number.hash(state),
            Self::Float(number) => (number + 0.0).to_bits().hash(state),
            Self::Bool(truth) => truth.hash(state),
            Self::Str(text) => text.hash(state),
            Self::List(items) => items.iter().for_each(|item| (item + 0.0).to_bits().hash(state)),
        }
    }
}

/// A pair of numbers ready to be computed with: both ints, or both floats.
enum Numbers {
    Ints(i64, i64),
    Floats(f64, f64),
}

#[allow(clippy::cast_precision_loss)]
fn numbers(left: &Value, right: &Value) -> Option<Numbers> {
    match (left, right) {
        (Value::Int(a), Value::Int(b)) => Some(Numbers::Ints(*a, *b)),
        (Value::Int(a), Value::Float(b)) => Some(Numbers::Floats(*a as f64, *b)),
        (Value::Float(a), Value::Int(b)) => Some(Numbers::Floats(*a, *b as f64)),
        (Value::Float(a), Value::Float(b)) => Some(Numbers::Floats(*a, *b)),
        _ => None,
    }
}

/// The arithmetic operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`, always of floats
    Div,
    /// `//`, rounding down
    FloorDiv,
    /// `%`, with the sign of the divisor
    Mod,
}

impl Arithmetic {
    /// Applies the operator; unknown for clashes, overflow and division by zero.
    #[must_use]
    pub fn apply(self, left: &Value, right: &Value) -> Value {
        match numbers(left, right) {
            None => Value::Unknown,
            Some(Numbers::Ints(a, b)) => self.ints(a, b),
            Some(Numbers::Floats(a, b)) => self.floats(a, b),
        }
    }

    #[allow(clippy::cast_precision_loss)]
    fn ints(self, a: i64, b: i64) -> Value {
        Value::int(match self {
            Self::Add => a.checked_add(b),
            Self::Sub => a.checked_sub(b),
            Self::Mul => a.checked_mul(b),
            Self::Div => return self.floats(a as f64, b as f64),
            Self::FloorDiv => a.checked_div(b).map(|quotient| {
                if a % b != 0 && (a < 0) != (b < 0) {
                    quotient - 1
                } else {
                    quotient
                }
            }),
            Self::Mod if b == -1 => Some(0),
            Self::Mod => a.checked_rem(b).map(|rest| {
                if rest != 0 && (rest < 0) != (b < 0) {
                    rest + b
                } else {
                    rest
                }
            }),
        })
    }

    fn floats(self, a: f64, b: f64) -> Value {
        if b == 0.0 && matches!(self, Self::Div | Self::FloorDiv | Self::Mod) {
            return Value::Unknown;
        }
        Value::float(match self {
            Self::Add => a + b,
            Self::Sub => a - b,
            Self::Mul => a * b,
            Self::Div => a / b,
            Self::FloorDiv => floor_and_rest(a, b).0,
            Self::Mod => floor_and_rest(a, b).1,
        })
    }
}

/// Python's float `//` and `%`: the rest has the sign of the divisor, the quotient is rounded from the exact one.
fn floor_and_rest(a: f64, b: f64) -> (f64, f64) {
    let mut rest = a % b;
    let mut quotient = (a - rest) / b;
    if rest == 0.0 {
        rest = 0.0_f64.copysign(b);
    } else if (b < 0.0) != (rest < 0.0) {
        rest += b;
        quotient -= 1.0;
    }
    if quotient == 0.0 {
        return (0.0_f64.copysign(a / b), rest);
    }
    let floored = quotient.floor();
    (
        if quotient - floored > 0.5 {
            floored + 1.0
        } else {
            floored
        },
        rest,
    )
}

/// The comparison operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
}

impl Comparison {
    /// Compares; `None` is unknown.
    #[must_use]
    pub fn apply(self, left: &Value, right: &Value) -> Option<bool> {
        let order = match (left, right) {
            (Value::Str(a), Value::Str(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Value::Bool(a), Value::Bool(b)) if self.is_equality() => a.cmp(b),
            _ => match numbers(left, right)? {
                Numbers::Ints(a, b) => a.cmp(&b),
                Numbers::Floats(a, b) => a.partial_cmp(&b)?,
            },
        };
        Some(self.accepts(order))
    }

    /// Whether this operator accepts an order of its operands.
    #[must_use]
    pub fn accepts(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterEqual => order.is_ge(),
        }
    }

    /// The operator that says the same with its operands exchanged.
    #[must_use]
    pub fn flipped(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessEqual => Self::GreaterEqual,
            Self::Greater => Self::Less,
            Self::GreaterEqual => Self::LessEqual,
            same @ (Self::Equal | Self::NotEqual) => same,
        }
    }

    /// The operator that is true where this one is false.
    #[must_use]
    pub fn opposite(self) -> Self {
        match self {
            Self::Equal => Self::NotEqual,
            Self::NotEqual => Self::Equal,
            Self::Less => Self::GreaterEqual,
            Self::LessEqual => Self::Greater,
            Self::Greater => Self::LessEqual,
            Self::GreaterEqual => Self::Less,
        }
    }

    fn is_equality(self) -> bool {
        matches!(self, Self::Equal | Self::NotEqual)
    }
}
