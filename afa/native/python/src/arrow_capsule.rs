//! Record batches from any Python library and to pyarrow, through the Arrow C data interface and without a copy.
//!
//! The one module of this project with unsafe code: the interface hands over C structures behind bare pointers. What
//! a pointer leads to has to be believed; everything that the structures say is checked before it is relied upon:
//! counts of buffers and children, lengths, offsets, dictionary indices, UTF-8.

mod export;
mod plain;
mod sheet;

use std::ffi::CStr;
use std::ptr::NonNull;
use std::sync::Arc;

use afa_engine::arrow::check::check;
use afa_engine::arrow::layout::{Given, Layout, check_unread};
use afa_engine::arrow::rows::ArrowRows;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi_and_data_type};
use arrow_array::{ArrayRef, NullArray, make_array};
use arrow_data::{ArrayData, layout};
use arrow_schema::{DataType, Fields};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::pyarrow::Pyarrow;

pub(crate) use export::to_pyarrow;
pub(crate) use sheet::Sheets;

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
/// Types nested deeper than this are refused: whatever walks them is recursive.
const MAX_DEPTH: usize = 64;
/// Lengths and offsets up to here can be added and multiplied without a care.
const MAX_LENGTH: usize = 1 << 40;

/// The schema of the last batch from pyarrow, and what it says: most batches have that of the batch before.
pub(crate) struct KnownSchema {
    schema: Py<PyAny>,
    shape: Shape,
}

/// What a schema says.
#[derive(Clone)]
struct Shape {
    fields: Fields,
    layout: Arc<Layout>,
}

/// The record batch that an object hands out; its memory stays where it is, and the object's own.
///
/// # Errors
/// If the object is no record batch, or one that breaks the rules of Arrow or lacks a column.
pub(crate) fn import_batch(object: &Bound<'_, PyAny>, known: &mut Option<KnownSchema>) -> PyResult<ArrowRows> {
    // The Arrow crate asserts what it cannot report.
    let import = || {
        let (array, shape) = if Pyarrow::made(object) {
            from_pyarrow(object, known)?
        } else {
            from_capsules(object)?
        };
        rows_of(array, shape).map_err(PyValueError::new_err)
    };
    let imported = std::panic::catch_unwind(std::panic::AssertUnwindSafe(import));
    imported.unwrap_or_else(|_| Err(PyValueError::new_err("a malformed Arrow record batch")))
}

/// From a `pyarrow.RecordBatch`, which fills structures of ours: two capsules less, and a schema only if it is new.
fn from_pyarrow(batch: &Bound<'_, PyAny>, known: &mut Option<KnownSchema>) -> PyResult<(FFI_ArrowArray, Shape)> {
    let py = batch.py();
    let export = pyo3::intern!(py, "_export_to_c");
    let schema = batch.getattr(pyo3::intern!(py, "schema"))?;
    let mut array = FFI_ArrowArray::empty();
    let address = (&raw mut array).expose_provenance();
    if let Some(known) = known {
        let equal = known
            .schema
            .bind(py)
            .call_method1(pyo3::intern!(py, "equals"), (&schema,))?;
        if equal.is_truthy()? {
            batch.call_method1(export, (address,))?;
            return Ok((array, known.shape.clone()));
        }
    }
    let mut structure = FFI_ArrowSchema::empty();
    batch.call_method1(export, (address, (&raw mut structure).expose_provenance()))?;
    let shape = read_shape(&structure).map_err(PyValueError::new_err)?;
    *known = Some(KnownSchema {
        schema: schema.unbind(),
        shape: shape.clone(),
    });
    Ok((array, shape))
}

fn from_capsules(object: &Bound<'_, PyAny>) -> PyResult<(FFI_ArrowArray, Shape)> {
    let (schema, array) = capsules(object)?;
    let schema = pointer::<FFI_ArrowSchema>(&schema, SCHEMA)?;
    // SAFETY: the capsule has the name that the interface reserves for a pointer to an `ArrowSchema`, which lives as
    // long as the capsule; nobody writes to it while this thread is attached to the interpreter.
    let shape = read_shape(unsafe { schema.as_ref() }).map_err(PyValueError::new_err)?;
    let source = pointer::<FFI_ArrowArray>(&array, ARRAY)?;
    // SAFETY: as above, for an `ArrowArray`. It is moved out, and what stays behind is marked as released, so that the
    // capsule's destructor leaves it alone.
    Ok((unsafe { FFI_ArrowArray::from_raw(source.as_ptr()) }, shape))
}

fn rows_of(array: FFI_ArrowArray, shape: Shape) -> Result<ArrowRows, String> {
    if array.is_released() {
        return Err("an Arrow array that was taken already".into());
    }
    let length = array.len();
    let array = Arc::new(array);
    let columns = match plain::columns(&array, &shape.fields) {
        Some(columns) => columns,
        // Nobody else holds the array.
        None => any_columns(Arc::into_inner(array).ok_or("an array in use")?, shape.fields)?,
    };
    ArrowRows::of_columns(shape.layout, columns, length)
}

/// The columns of a batch, whatever their types.
fn any_columns(array: FFI_ArrowArray, fields: Fields) -> Result<Vec<Given>, String> {
    let data_type = DataType::Struct(fields);
    check_shape(&array, &data_type)?;
    // SAFETY: counts, lengths and the ends of offset buffers were checked; the content of buffers is checked below,
    // before anything reads it.
    let data = unsafe { from_ffi_and_data_type(array, data_type) };
    checked_columns(&data.map_err(|error| error.to_string())?)
}

fn capsules<'py>(object: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
    let py = object.py();
    let method = object
        .getattr_opt(pyo3::intern!(py, "__arrow_c_array__"))?
        .ok_or_else(|| {
            let found = object
                .get_type()
                .name()
                .map_or_else(|_| String::from("this"), |name| name.to_string());
            PyTypeError::new_err(format!(
                "{found} is no Arrow record batch: it has no method `__arrow_c_array__`"
            ))
        })?;
    let pair = method.call0()?;
    pair.extract()
        .map_err(|_| PyTypeError::new_err("`__arrow_c_array__` has to return a pair of capsules"))
}

fn pointer<T>(capsule: &Bound<'_, PyCapsule>, name: &CStr) -> PyResult<NonNull<T>> {
    let found = capsule.pointer_checked(Some(name))?.cast::<T>();
    if found.is_aligned() {
        Ok(found)
    } else {
        Err(PyValueError::new_err("a misaligned Arrow structure"))
    }
}

/// What the schema of a batch says: it is that of a struct.
fn read_shape(schema: &FFI_ArrowSchema) -> Result<Shape, String> {
    if schema.release().is_none() {
        return Err("an Arrow schema that was released already".into());
    }
    check_depth(schema, 0)?;
    match DataType::try_from(schema).map_err(|error| error.to_string())? {
        DataType::Struct(fields) => {
            let layout = Layout::of_names(fields.iter().map(|field| field.name().as_str()))?;
            let layout = Arc::new(layout);
            Ok(Shape { fields, layout })
        }
        other => Err(format!("an Arrow array of {other} is no record batch")),
    }
}

fn check_depth(schema: &FFI_ArrowSchema, depth: usize) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err(format!("Arrow types nested deeper than {MAX_DEPTH}"));
    }
    schema
        .children()
        .chain(schema.dictionary())
        .try_for_each(|child| check_depth(child, depth + 1))
}

/// Checks everything that an import relies on before it looks into buffers.
fn check_shape(array: &FFI_ArrowArray, data_type: &DataType) -> Result<(), String> {
    let broken = |what: &str| Err(format!("a malformed Arrow array of {data_type}: {what}"));
    if array.len() > MAX_LENGTH || array.offset() > MAX_LENGTH {
        return broken("its length or offset is negative or too large");
    }
    let layout = layout(data_type);
    let buffers = usize::from(layout.can_contain_null_mask) + layout.buffers.len() + usize::from(layout.variadic);
    if array.num_buffers() < buffers || (array.num_buffers() > buffers && !layout.variadic) {
        // Some producers give arrays of nulls a buffer, and unions one for validity.
        if !matches!(data_type, DataType::Null | DataType::Union(..)) {
            return broken("the number of buffers");
        }
    }
    if !ends_are_sane(array, data_type) {
        return broken("offsets");
    }
    let children = child_types(data_type);
    if array.num_children() != children.len() {
        return broken("the number of children");
    }
    for (index, child_type) in children.into_iter().enumerate() {
        let child = array.child(index);
        if matches!(data_type, DataType::Struct(_)) && child.len() < array.len() + array.offset() {
            return broken("a child that is too short");
        }
        check_shape(child, child_type)?;
    }
    match (data_type, array.dictionary()) {
        (DataType::Dictionary(_, values), Some(dictionary)) => check_shape(dictionary, values),
        (DataType::Dictionary(..), None) => broken("no dictionary"),
        (_, Some(_)) => broken("a dictionary"),
        (_, None) => Ok(()),
    }
}

fn child_types(data_type: &DataType) -> Vec<&DataType> {
    match data_type {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::Map(item, _) => vec![item.data_type()],
        DataType::Struct(fields) => fields.iter().map(|field| field.data_type()).collect(),
        DataType::Union(fields, _) => fields.iter().map(|(_, field)| field.data_type()).collect(),
        DataType::RunEndEncoded(ends, values) => vec![ends.data_type(), values.data_type()],
        _ => Vec::new(),
    }
}

/// Whether what tells the length of other buffers is there and makes sense.
fn ends_are_sane(array: &FFI_ArrowArray, data_type: &DataType) -> bool {
    let entries = array.len() + array.offset();
    match data_type {
        DataType::Utf8 | DataType::Binary if entries > 0 => {
            number_at::<i32>(array.buffer(1), entries).is_some_and(|end| end >= 0)
        }
        DataType::LargeUtf8 | DataType::LargeBinary if entries > 0 => {
            number_at::<i64>(array.buffer(1), entries).is_some_and(|end| usize::try_from(end).is_ok_and(sane))
        }
        DataType::Utf8View | DataType::BinaryView => {
            let lengths = array.buffer(array.num_buffers() - 1);
            (0..array.num_buffers() - 3).all(|index| {
                number_at::<i64>(lengths, index).is_some_and(|length| usize::try_from(length).is_ok_and(sane))
            })
        }
        _ => true,
    }
}

fn sane(length: usize) -> bool {
    length <= MAX_LENGTH
}

/// A number of a buffer, if there is a buffer and it is aligned.
fn number_at<T: Copy>(buffer: *const u8, index: usize) -> Option<T> {
    let numbers = buffer.cast::<T>();
    // SAFETY: not null, aligned, and an entry that an array of this length and offset has.
    (!numbers.is_null() && numbers.is_aligned()).then(|| unsafe { *numbers.add(index) })
}

/// The columns of a struct, each checked in the rows it has; those that the engine reads nothing of become nulls.
fn checked_columns(data: &ArrayData) -> Result<Vec<Given>, String> {
    if data.null_count() > 0 {
        return Err("a record batch cannot have rows that are null as a whole".into());
    }
    let DataType::Struct(fields) = data.data_type() else {
        return Err("no record batch".into());
    };
    let columns = fields.iter().zip(data.child_data()).map(|(field, child)| {
        if !is_read(child.data_type()) {
            check_unread(field.name(), child.data_type())?;
            return Ok(Given::Array(Arc::new(NullArray::new(data.len()))));
        }
        let column = column_of(child.slice(data.offset(), data.len()));
        column
            .map(Given::Array)
            .map_err(|error| format!("column `{}`: {error}", field.name()))
    });
    columns.collect()
}

fn column_of(data: ArrayData) -> Result<ArrayRef, String> {
    check(&data)?;
    Ok(make_array(data))
}

/// Whether the engine reads anything of such a column.
fn is_read(data_type: &DataType) -> bool {
    match data_type {
        DataType::List(_)
        | DataType::LargeList(_)
        | DataType::FixedSizeList(..)
        | DataType::Struct(_)
        | DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Boolean => true,
        DataType::Dictionary(_, values) => is_read(values),
        // Also times and dates: wrongly used as `ts`, their type is in the error message.
        other => other.is_numeric() || other.is_temporal(),
    }
}
