//! Events as the engine keeps them: identity, order, and data that any later arc may still read.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

use crate::program::value::Value;

/// JSON-like data.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// Null.
    Null,
    /// A number outside 64 bits or float64: as a value it is unknown.
    OutOfRange,
    /// True or false.
    Bool(bool),
    /// A 64-bit integer.
    Int(i64),
    /// A finite float.
    Float(f64),
    /// A text.
    Str(Arc<str>),
    /// A list.
    List(Vec<Data>),
    /// An object; of equal names the last one counts, and only it is kept.
    Map(Vec<(Arc<str>, Data)>),
}

impl Data {
    /// The member of this name, if this is an object that has it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Map(members) => members.iter().find(|(known, _)| &**known == name).map(|(_, data)| data),
            _ => None,
        }
    }

    /// As an expression sees it: objects, and lists of anything but numbers, are unknown.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn value(&self) -> Value {
        match self {
            Self::Bool(truth) => Value::Bool(*truth),
            Self::Int(number) => Value::Int(*number),
            Self::Float(number) => Value::Float(*number),
            Self::Str(text) => Value::Str(text.clone()),
            Self::List(items) => {
                let numbers = items.iter().map(|item| match item {
                    Self::Int(number) => Some(*number as f64),
                    Self::Float(number) => Some(*number),
                    _ => None,
                });
                numbers
                    .collect::<Option<Vec<f64>>>()
                    .map_or(Value::Unknown, |list| Value::List(list.into()))
            }
            Self::Null | Self::OutOfRange | Self::Map(_) => Value::Unknown,
        }
    }

    /// The canonical msgpack form: sorted members, shortest ints, minus zero as zero, no number out of range.
    pub fn write_canonical(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null | Self::OutOfRange => written(&rmp::encode::write_nil(out)),
            Self::Bool(truth) => written(&rmp::encode::write_bool(out, *truth)),
            Self::Int(number) => written(&rmp::encode::write_sint(out, *number)),
            Self::Float(number) => written(&rmp::encode::write_f64(out, number + 0.0)),
            Self::Str(text) => written(&rmp::encode::write_str(out, text)),
            Self::List(items) => {
                written(&rmp::encode::write_array_len(out, length(items.len())));
                for item in items {
                    item.write_canonical(out);
                }
            }
            Self::Map(members) => {
                let mut sorted: Vec<_> = members.iter().collect();
                sorted.sort_by(|a, b| a.0.cmp(&b.0));
                written(&rmp::encode::write_map_len(out, length(sorted.len())));
                for (name, data) in sorted {
                    written(&rmp::encode::write_str(out, name));
                    data.write_canonical(out);
                }
            }
        }
    }
}

/// Writing into memory cannot fail.
fn written<T, E>(result: &Result<T, E>) {
    debug_assert!(result.is_ok());
}

#[allow(clippy::cast_possible_truncation)] // records are far smaller
fn length(items: usize) -> u32 {
    items as u32
}

/// An event's id: given by its source, or its position.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Id {
    /// As the source wrote it.
    Text(Arc<str>),
    /// The number of its position, written with twelve digits.
    Number(u64),
}

impl Id {
    /// As it is printed and compared.
    #[must_use]
    pub fn text(&self) -> Arc<str> {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(number) => format!("{number:012}").into(),
        }
    }

    /// A text id in its one form.
    #[must_use]
    pub fn of(text: &str) -> Self {
        IdRef::of(text).owned()
    }
}

impl Id {
    /// Borrowed.
    #[must_use]
    pub fn borrowed(&self) -> IdRef<'_> {
        match self {
            Self::Text(text) => IdRef::Text(text),
            Self::Number(number) => IdRef::Number(*number),
        }
    }
}

impl Ord for Id {
    fn cmp(&self, other: &Self) -> Ordering {
        self.borrowed().cmp(&other.borrowed())
    }
}

impl PartialOrd for Id {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// An event's id where it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdRef<'a> {
    /// As the source wrote it.
    Text(&'a str),
    /// The number of its position, written with twelve digits.
    Number(u64),
}

impl<'a> IdRef<'a> {
    /// A text id in its one form: positions stay numbers, so that equal ids are equal.
    #[must_use]
    pub fn of(text: &'a str) -> Self {
        let canonical = text.len() >= 12 && text.len() <= 19 && text.bytes().all(|byte| byte.is_ascii_digit());
        if canonical
            && (text.len() == 12 || !text.starts_with('0'))
            && let Ok(number) = text.parse()
        {
            return Self::Number(number);
        }
        Self::Text(text)
    }

    /// As it is printed and compared.
    #[must_use]
    pub fn text(self) -> Cow<'a, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Number(number) => Cow::Owned(format!("{number:012}")),
        }
    }

    /// To be kept.
    #[must_use]
    pub fn owned(self) -> Id {
        match self {
            Self::Text(text) => Id::Text(text.into()),
            Self::Number(number) => Id::Number(number),
        }
    }
}

impl Ord for IdRef<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) if *a < 1_000_000_000_000 && *b < 1_000_000_000_000 => a.cmp(b),
            _ => self.text().as_bytes().cmp(other.text().as_bytes()),
        }
    }
}

impl PartialOrd for IdRef<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// What decides between two different inserts of equal `rev`.
#[must_use]
pub fn canonical_bytes(kind: Option<&str>, seq: Option<i64>, data: &Data) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    written(&rmp::encode::write_array_len(&mut out, 3));
    kind.map_or(Data::Null, |kind| Data::Str(kind.into()))
        .write_canonical(&mut out);
    Data::Int(seq.unwrap_or(0)).write_canonical(&mut out);
    data.write_canonical(&mut out);
    out
}
