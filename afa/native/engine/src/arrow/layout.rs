//! Which columns a record batch has: looked at once for all batches of a schema.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::DataType;
use foldhash::fast::FixedState;

use crate::arrow::cells::Cells;
use crate::arrow::text::Texts;

/// The columns that are no data fields.
const OWN_COLUMNS: [&str; 9] = ["key", "ts", "id", "seq", "rev", "op", "type", "arc", "when"];

/// What the columns of a batch are for.
#[derive(Debug)]
pub struct Layout {
    /// Of each column the place in [`OWN_COLUMNS`], or beyond it that among the fields.
    roles: Vec<usize>,
    fields: Vec<Arc<str>>,
    places: HashMap<Arc<str>, usize, FixedState>,
}

/// A column as it is given.
#[derive(Clone, Debug)]
pub enum Given {
    /// Of one of the types that most columns have, and read already.
    Cells(Cells),
    /// Of any type.
    Array(ArrayRef),
}

/// Numbers, and which rows have one; `None`: all.
#[derive(Debug)]
pub(crate) struct Numbers(pub(crate) ScalarBuffer<i64>, pub(crate) Option<NullBuffer>);

/// The columns that are no data fields; of those that need not be there `None` too if all rows are null.
pub(crate) struct OwnColumns {
    pub(crate) keys: Texts,
    pub(crate) times: Numbers,
    pub(crate) ids: Option<Texts>,
    pub(crate) seqs: Option<Numbers>,
    pub(crate) revs: Option<Numbers>,
    pub(crate) kinds: Option<Texts>,
    pub(crate) operations: Option<Texts>,
    pub(crate) arcs: Option<Texts>,
    pub(crate) conditions: Option<Texts>,
}

impl Layout {
    /// The layout of columns with these names.
    ///
    /// # Errors
    /// If two columns that are no data have the same name.
    pub fn of_names<'a>(names: impl Iterator<Item = &'a str>) -> Result<Self, String> {
        let mut layout = Self {
            roles: Vec::new(),
            fields: Vec::new(),
            places: HashMap::default(),
        };
        for name in names {
            let own = OWN_COLUMNS.iter().position(|own| *own == name);
            if own.is_some_and(|own| layout.roles.contains(&own)) {
                return Err(format!("two columns are named `{name}`; drop or rename one"));
            }
            layout
                .roles
                .push(own.unwrap_or(OWN_COLUMNS.len() + layout.fields.len()));
            if own.is_none() {
                let name: Arc<str> = name.into();
                // Of equal names the last.
                layout.places.insert(name.clone(), layout.fields.len());
                layout.fields.push(name);
            }
        }
        Ok(layout)
    }

    /// The names of the data fields.
    pub(crate) fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.fields.iter()
    }

    /// The place of a data field among them.
    pub(crate) fn place(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied()
    }

    /// Parts the columns of a batch from its data fields.
    ///
    /// # Errors
    /// If one that every batch needs is missing, or one that has a meaning has another type: what, and the fix.
    pub(crate) fn parted(&self, columns: Vec<Given>) -> Result<(OwnColumns, Vec<Given>), String> {
        let mut own: [Option<Given>; OWN_COLUMNS.len()] = Default::default();
        let mut fields = Vec::with_capacity(self.fields.len());
        for (role, column) in self.roles.iter().zip(columns) {
            match own.get_mut(*role) {
                Some(place) => *place = Some(column),
                None => fields.push(column),
            }
        }
        let [key, time, id, seq, rev, operation, kind, arc, condition] = own;
        let time = time.ok_or("no column `ts`; it is event time, as int64")?;
        let key = key.ok_or("no column `key`; it says which stream a row belongs to")?;
        let own = OwnColumns {
            times: times(time)?,
            keys: texts(key, "key")?,
            ids: some_texts(id, "id")?,
            seqs: some_numbers(seq, "seq")?,
            revs: some_numbers(rev, "rev")?,
            kinds: some_texts(kind, "type")?,
            operations: some_texts(operation, "op")?,
            arcs: some_texts(arc, "arc")?,
            conditions: some_texts(condition, "when")?,
        };
        Ok((own, fields))
    }
}

/// Checks that a column of a type that nothing is read of may be left out: that of a data field may.
///
/// # Errors
/// If it has a meaning of its own, and may have values: what, and the fix.
pub fn check_unread(name: &str, found: &DataType) -> Result<(), String> {
    let has_values = match found {
        DataType::Dictionary(_, values) => **values != DataType::Null,
        other => *other != DataType::Null,
    };
    match name {
        _ if !has_values => Ok(()),
        "ts" | "seq" | "rev" => Err(wrong_type(name, found, "int64")),
        own if OWN_COLUMNS.contains(&own) => Err(wrong_type(name, found, "string")),
        _ => Ok(()),
    }
}

fn times(column: Given) -> Result<Numbers, String> {
    let cells = match &column {
        Given::Array(array) if *array.data_type() == DataType::Int64 => Cells::of(array),
        Given::Array(array) => return Err(wrong_type("ts", array.data_type(), "int64")),
        Given::Cells(_) => cells_of(column),
    };
    match cells {
        Cells::Ints(numbers, nulls, None) => Ok(Numbers(numbers, nulls)),
        _ => Err(no_such("ts", "int64")),
    }
}

fn texts(column: Given, name: &str) -> Result<Texts, String> {
    match column {
        Given::Cells(Cells::Texts(texts)) => Ok(texts),
        Given::Cells(_) => Err(no_such(name, "string")),
        Given::Array(array) => Texts::of(&array).ok_or_else(|| wrong_type(name, array.data_type(), "string")),
    }
}

/// An optional column of texts; `None` too if all are null.
fn some_texts(column: Option<Given>, name: &str) -> Result<Option<Texts>, String> {
    let Some(column) = column else {
        return Ok(None);
    };
    Ok(Some(texts(column, name)?).filter(Texts::has_any))
}

/// An optional column of ints; `None` too if all are null.
fn some_numbers(column: Option<Given>, name: &str) -> Result<Option<Numbers>, String> {
    let Some(column) = column else {
        return Ok(None);
    };
    if let Given::Array(array) = &column {
        match array.data_type() {
            DataType::Null => return Ok(None),
            other if other.is_integer() && *other != DataType::UInt64 => {}
            _ => return Err(wrong_type(name, array.data_type(), "int64")),
        }
    }
    match cells_of(column) {
        Cells::Ints(numbers, nulls, _) => {
            let missing = nulls.as_ref().map_or(0, NullBuffer::null_count);
            Ok((missing < numbers.len()).then_some(Numbers(numbers, nulls)))
        }
        _ => Err(no_such(name, "int64")),
    }
}

fn cells_of(column: Given) -> Cells {
    match column {
        Given::Cells(cells) => cells,
        Given::Array(array) => Cells::of(&array),
    }
}

fn wrong_type(name: &str, found: &DataType, wanted: &str) -> String {
    let hint = match found {
        DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => ", in the unit that patterns count in",
        _ => "",
    };
    format!("column `{name}` is {found}, not {wanted}{hint}; cast it, in pyarrow with `column.cast(\"{wanted}\")`")
}

fn no_such(name: &str, wanted: &str) -> String {
    format!("column `{name}` is not {wanted}; cast it, in pyarrow with `column.cast(\"{wanted}\")`")
}
