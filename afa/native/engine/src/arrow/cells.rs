//! A data column, whatever its Arrow type, as the values that expressions and stored events hold.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{AnyDictionaryArray, Array, ArrayRef, ArrowPrimitiveType};
use arrow_buffer::{BooleanBuffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType;

use crate::arrow::text::Texts;
use crate::program::value::Value;
use crate::rows::event::Data;

/// Structs and lists below this depth are unknown: what reads them is recursive.
const MAX_DEPTH: usize = 64;

/// A column in one of the few shapes that the engine reads. 64-bit numbers and texts are the producer's memory;
/// narrower numbers are widened, once, when first asked for.
#[derive(Clone, Debug)]
pub enum Cells {
    /// A type that the expression language does not have; the rows that are not null.
    Foreign(Option<NullBuffer>),
    /// Bools.
    Bools(BooleanBuffer, Option<NullBuffer>),
    /// Ints. Rows beyond 64 bits are null, and marked so that a stored event can tell them from missing ones.
    Ints(ScalarBuffer<i64>, Option<NullBuffer>, Option<BooleanBuffer>),
    /// Floats, NaN and infinity among them.
    Floats(ScalarBuffer<f64>, Option<NullBuffer>),
    /// Texts.
    Texts(Texts),
    /// Lists.
    Lists(Spans, Box<Cells>, Option<NullBuffer>),
    /// Structs; a null struct has null members.
    Structs(Vec<(Arc<str>, Cells)>, Option<NullBuffer>),
}

/// Which elements belong to a row's list.
#[derive(Clone, Debug)]
pub enum Spans {
    /// Offsets of 32 bits.
    Short(OffsetBuffer<i32>),
    /// Offsets of 64 bits.
    Long(OffsetBuffer<i64>),
    /// As many for each row.
    Fixed(usize),
}

impl Spans {
    fn of(&self, row: usize) -> std::ops::Range<usize> {
        let place = |offset: Option<usize>| offset.unwrap_or(0);
        match self {
            Self::Short(offsets) => {
                place(usize::try_from(offsets[row]).ok())..place(usize::try_from(offsets[row + 1]).ok())
            }
            Self::Long(offsets) => {
                place(usize::try_from(offsets[row]).ok())..place(usize::try_from(offsets[row + 1]).ok())
            }
            Self::Fixed(size) => row * size..(row + 1) * size,
        }
    }
}

impl Cells {
    /// Reads a column.
    #[must_use]
    pub fn of(array: &ArrayRef) -> Self {
        Self::within(array, None, 0)
    }

    /// A column of which rows are missing because what holds them is.
    fn within(array: &ArrayRef, outer: Option<&NullBuffer>, depth: usize) -> Self {
        let nulls = NullBuffer::union(outer, array.logical_nulls().as_ref()).filter(|nulls| nulls.null_count() > 0);
        if let Some(texts) = Texts::of(array) {
            return Self::Texts(texts.masked(outer));
        }
        if depth >= MAX_DEPTH {
            return Self::Foreign(nulls);
        }
        match array.data_type() {
            DataType::Boolean => Self::Bools(array.as_boolean().values().clone(), nulls),
            DataType::Int64 => Self::Ints(array.as_primitive::<Int64Type>().values().clone(), nulls, None),
            DataType::Float64 => Self::Floats(array.as_primitive::<Float64Type>().values().clone(), nulls),
            DataType::Int8 => ints::<Int8Type>(array, nulls),
            DataType::Int16 => ints::<Int16Type>(array, nulls),
            DataType::Int32 => ints::<Int32Type>(array, nulls),
            DataType::UInt8 => ints::<UInt8Type>(array, nulls),
            DataType::UInt16 => ints::<UInt16Type>(array, nulls),
            DataType::UInt32 => ints::<UInt32Type>(array, nulls),
            DataType::UInt64 => unsigned(array, nulls),
            DataType::Float16 => floats::<Float16Type>(array, nulls),
            DataType::Float32 => floats::<Float32Type>(array, nulls),
            _ => Self::nested(array, nulls, depth),
        }
    }

    fn nested(array: &ArrayRef, nulls: Option<NullBuffer>, depth: usize) -> Self {
        let items = |values: &ArrayRef| Box::new(Self::within(values, None, depth + 1));
        match array.data_type() {
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                Self::Lists(Spans::Short(list.offsets().clone()), items(list.values()), nulls)
            }
            DataType::LargeList(_) => {
                let list = array.as_list::<i64>();
                Self::Lists(Spans::Long(list.offsets().clone()), items(list.values()), nulls)
            }
            DataType::FixedSizeList(_, size) => {
                let list = array.as_fixed_size_list();
                Self::Lists(
                    Spans::Fixed(usize::try_from(*size).unwrap_or(0)),
                    items(list.values()),
                    nulls,
                )
            }
            DataType::Struct(fields) => {
                let columns = array.as_struct().columns();
                let members = fields.iter().zip(columns).map(|(field, column)| {
                    (
                        Arc::from(field.name().as_str()),
                        Self::within(column, nulls.as_ref(), depth + 1),
                    )
                });
                Self::Structs(members.collect(), nulls)
            }
            DataType::Dictionary(..) => {
                let dictionary = array.as_any_dictionary();
                let values = items(dictionary.values());
                values.picked(dictionary, nulls)
            }
            _ => Self::Foreign(nulls),
        }
    }

    /// The numbers or bools that a dictionary's rows name.
    fn picked(&self, dictionary: &dyn AnyDictionaryArray, nulls: Option<NullBuffer>) -> Self {
        if dictionary.values().is_empty() {
            return Self::Foreign(nulls);
        }
        let places = dictionary.normalized_keys().into_iter();
        match self {
            Self::Bools(bits, _) => Self::Bools(places.map(|place| bits.value(place)).collect(), nulls),
            Self::Floats(numbers, _) => Self::Floats(places.map(|place| numbers[place]).collect(), nulls),
            Self::Ints(numbers, _, None) => Self::Ints(places.map(|place| numbers[place]).collect(), nulls, None),
            _ => Self::Foreign(nulls),
        }
    }

    /// The member of this name; of equal names the last.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Structs(members, _) => members
                .iter()
                .rev()
                .find(|(known, _)| &**known == name)
                .map(|(_, cells)| cells),
            _ => None,
        }
    }

    /// The value of a row as an expression sees it.
    #[must_use]
    pub fn value(&self, row: usize) -> Value {
        match self {
            Self::Bools(bits, nulls) if valid(nulls.as_ref(), row) => Value::Bool(bits.value(row)),
            Self::Ints(numbers, nulls, _) if valid(nulls.as_ref(), row) => Value::Int(numbers[row]),
            Self::Floats(numbers, nulls) if valid(nulls.as_ref(), row) => Value::float(numbers[row]),
            Self::Texts(texts) => texts.get(row).map_or(Value::Unknown, |text| Value::Str(text.into())),
            Self::Lists(spans, items, nulls) if valid(nulls.as_ref(), row) => {
                let numbers = spans
                    .of(row)
                    .map(|item| items.number(item))
                    .collect::<Option<Vec<f64>>>();
                numbers.map_or(Value::Unknown, |list| Value::List(list.into()))
            }
            _ => Value::Unknown,
        }
    }

    /// The number of a row, if there is a finite one.
    #[allow(clippy::cast_precision_loss)] // lists are of floats
    fn number(&self, row: usize) -> Option<f64> {
        match self {
            Self::Ints(numbers, nulls, _) if valid(nulls.as_ref(), row) => Some(numbers[row] as f64),
            Self::Floats(numbers, nulls) if valid(nulls.as_ref(), row) => {
                Some(numbers[row]).filter(|number| number.is_finite())
            }
            _ => None,
        }
    }

    /// The value of a row as an event keeps it; `None`: the row has none.
    #[must_use]
    pub fn data(&self, row: usize) -> Option<Data> {
        Some(match self {
            Self::Ints(_, _, Some(beyond)) if beyond.value(row) => Data::OutOfRange,
            Self::Texts(texts) => Data::Str(texts.get(row)?.into()),
            Self::Foreign(nulls)
            | Self::Bools(_, nulls)
            | Self::Ints(_, nulls, _)
            | Self::Floats(_, nulls)
            | Self::Lists(_, _, nulls)
            | Self::Structs(_, nulls)
                if !valid(nulls.as_ref(), row) =>
            {
                return None;
            }
            Self::Bools(bits, _) => Data::Bool(bits.value(row)),
            Self::Ints(numbers, _, _) => Data::Int(numbers[row]),
            Self::Floats(numbers, _) if numbers[row].is_finite() => Data::Float(numbers[row]),
            Self::Foreign(_) | Self::Floats(..) => Data::OutOfRange,
            Self::Lists(spans, items, _) => Data::List(
                spans
                    .of(row)
                    .map(|item| items.data(item).unwrap_or(Data::Null))
                    .collect(),
            ),
            Self::Structs(members, _) => members_of(members.iter().map(|(name, cells)| (name, cells)), row),
        })
    }
}

/// The members of an object that a row has; of equal names the last.
pub(crate) fn members_of<'a>(cells: impl Iterator<Item = (&'a Arc<str>, &'a Cells)>, row: usize) -> Data {
    let mut members: Vec<(Arc<str>, Data)> = Vec::new();
    for (name, cells) in cells {
        let known = members.iter().position(|(known, _)| known == name);
        match (known, cells.data(row)) {
            (Some(place), Some(data)) => members[place].1 = data,
            (Some(place), None) => drop(members.remove(place)),
            (None, Some(data)) => members.push((name.clone(), data)),
            (None, None) => {}
        }
    }
    Data::Map(members)
}

#[inline]
fn valid(nulls: Option<&NullBuffer>, row: usize) -> bool {
    nulls.is_none_or(|nulls| nulls.is_valid(row))
}

fn ints<T: ArrowPrimitiveType>(array: &ArrayRef, nulls: Option<NullBuffer>) -> Cells
where
    i64: From<T::Native>,
{
    let numbers = array.as_primitive::<T>().values();
    Cells::Ints(numbers.iter().map(|number| i64::from(*number)).collect(), nulls, None)
}

fn floats<T: ArrowPrimitiveType>(array: &ArrayRef, nulls: Option<NullBuffer>) -> Cells
where
    f64: From<T::Native>,
{
    let numbers = array.as_primitive::<T>().values();
    Cells::Floats(numbers.iter().map(|number| f64::from(*number)).collect(), nulls)
}

/// Unsigned 64-bit ints in place: those beyond the signed range are marked.
fn unsigned(array: &ArrayRef, nulls: Option<NullBuffer>) -> Cells {
    let numbers = array.as_primitive::<UInt64Type>().values();
    let signed = ScalarBuffer::new(numbers.inner().clone(), 0, numbers.len());
    if i64::try_from(numbers.iter().fold(0, |all, number| all | number)).is_ok() {
        return Cells::Ints(signed, nulls, None);
    }
    let beyond = BooleanBuffer::collect_bool(numbers.len(), |row| {
        valid(nulls.as_ref(), row) && i64::try_from(numbers[row]).is_err()
    });
    let within = NullBuffer::new(!&beyond);
    Cells::Ints(signed, NullBuffer::union(nulls.as_ref(), Some(&within)), Some(beyond))
}
