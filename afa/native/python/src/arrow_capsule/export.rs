//! Changes as the C structures of Arrow, made by hand: one piece of memory for all structures of a batch.

use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use afa_engine::changes::arrow::{COLUMNS, ChangeColumns, Column, Texts, Values};
use pyo3::prelude::*;

use super::sheet::{Memory, Sheets, slice_of_sheet};
use crate::pyarrow::Pyarrow;

/// The structure `ArrowArray` of the C data interface.
#[repr(C)]
#[derive(Clone, Copy)]
struct ArrowArray {
    length: i64,
    null_count: i64,
    offset: i64,
    buffer_count: i64,
    child_count: i64,
    buffers: *const *const c_void,
    children: *mut *mut ArrowArray,
    dictionary: *mut ArrowArray,
    release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    private_data: *mut c_void,
}

const RELEASED: ArrowArray = ArrowArray {
    length: 0,
    null_count: 0,
    offset: 0,
    buffer_count: 0,
    child_count: 0,
    buffers: null(),
    children: null_mut(),
    dictionary: null_mut(),
    release: None,
    private_data: null_mut(),
};

/// The buffers of a batch and all structures but the outermost. A consumer may move a column or a dictionary out and
/// keep it longer than the rest, so each structure owns the whole, and the last one to be released frees it.
struct Batch {
    owners: AtomicUsize,
    columns: [ArrowArray; COLUMNS.len()],
    dictionaries: [ArrowArray; COLUMNS.len()],
    column_buffers: [[*const c_void; 3]; COLUMNS.len()],
    dictionary_buffers: [[*const c_void; 3]; COLUMNS.len()],
    children: [*mut ArrowArray; COLUMNS.len()],
    no_validity: [*const c_void; 1],
    /// What the pointers lead to: its buffers stay in place.
    content: Content,
}

/// The memory of a batch.
#[allow(clippy::large_enum_variant)] // most batches have the large one, and it is in a box with the rest
pub(super) enum Content {
    /// That of one table of changes.
    Columns(ChangeColumns),
    /// That of many, one after the other.
    Sheet(Box<Memory>),
}

/// What the structure of a column points to.
pub(super) struct Links {
    pub(super) validity: *const c_void,
    pub(super) null_count: i64,
    /// Numbers or offsets.
    pub(super) values: *const c_void,
    /// Of texts.
    pub(super) bytes: Option<*const c_void>,
    pub(super) dictionary: Option<TextLinks>,
}

/// What the structure of a dictionary points to.
pub(super) struct TextLinks {
    count: usize,
    offsets: *const c_void,
    bytes: *const c_void,
}

/// A structure that is released unless somebody has moved it out.
struct Outermost(ArrowArray);

impl Drop for Outermost {
    fn drop(&mut self) {
        if let Some(release) = self.0.release {
            // SAFETY: a structure that nobody has moved out or released.
            unsafe { release(&raw mut self.0) };
        }
    }
}

/// A `pyarrow.RecordBatch` of the columns.
///
/// # Errors
/// If pyarrow is not installed.
pub(crate) fn to_pyarrow<'py>(
    py: Python<'py>,
    columns: ChangeColumns,
    with_ids: bool,
    sheets: &Mutex<Sheets>,
) -> PyResult<Bound<'py, PyAny>> {
    if !with_ids && let Some(slice) = slice_of_sheet(py, &columns, sheets)? {
        return Ok(slice);
    }
    import(py, Content::Columns(columns), with_ids)
}

/// A `pyarrow.RecordBatch` that shares the memory.
pub(super) fn import(py: Python<'_>, content: Content, with_ids: bool) -> PyResult<Bound<'_, PyAny>> {
    let pyarrow = Pyarrow::get(py)?;
    let mut outermost = Outermost(structures(content));
    let address = (&raw mut outermost.0).expose_provenance();
    pyarrow.import.bind(py).call1((address, pyarrow.schema(with_ids)))
}

/// The outermost structure, a struct of the columns.
fn structures(content: Content) -> ArrowArray {
    let batch = Box::into_raw(Box::new(Batch {
        owners: AtomicUsize::new(0),
        columns: [RELEASED; COLUMNS.len()],
        dictionaries: [RELEASED; COLUMNS.len()],
        column_buffers: [[null(); 3]; COLUMNS.len()],
        dictionary_buffers: [[null(); 3]; COLUMNS.len()],
        children: [null_mut(); COLUMNS.len()],
        no_validity: [null()],
        content,
    }));
    // SAFETY: the batch is alive and nobody else knows of it. From here on its fields are reached only through pointers
    // that are made from the one to the whole; of its content, which stays as it is, there may be references.
    unsafe {
        let (rows, children) = match &(*batch).content {
            Content::Columns(columns) => {
                let rows = columns.rows();
                (
                    rows,
                    link_all(batch, rows, columns.columns().map(|column| Links::of(&column))),
                )
            }
            Content::Sheet(memory) => (Memory::rows(), link_all(batch, Memory::rows(), memory.links())),
        };
        ArrowArray {
            child_count: children,
            children: (&raw mut (*batch).children).cast(),
            ..owning(batch, rows, 1, (&raw const (*batch).no_validity).cast())
        }
    }
}

/// Makes the structures of columns; the answer is how many there are.
///
/// # Safety
/// As for [`link`].
unsafe fn link_all(batch: *mut Batch, rows: usize, columns: impl Iterator<Item = Links>) -> i64 {
    let mut count = 0;
    for (place, links) in columns.enumerate().take(COLUMNS.len()) {
        // SAFETY: the caller's promise.
        unsafe { link(batch, place, rows, &links) };
        count += 1;
    }
    count
}

/// Makes the structure of a column, and of its dictionary.
///
/// # Safety
/// The batch has to be alive, without any reference to its structures, and the links have to lead into its content.
unsafe fn link(batch: *mut Batch, place: usize, rows: usize, links: &Links) {
    // SAFETY: the caller's promise; the places are within the arrays.
    unsafe {
        let buffers = &raw mut (*batch).column_buffers[place];
        *buffers = [links.validity, links.values, links.bytes.unwrap_or(null())];
        let mut dictionary = null_mut();
        if let Some(texts) = &links.dictionary {
            let buffers = &raw mut (*batch).dictionary_buffers[place];
            *buffers = [null(), texts.offsets, texts.bytes];
            dictionary = &raw mut (*batch).dictionaries[place];
            *dictionary = owning(batch, texts.count, 3, buffers.cast());
        }
        let buffer_count = if links.bytes.is_some() { 3 } else { 2 };
        let structure = &raw mut (*batch).columns[place];
        *structure = ArrowArray {
            null_count: links.null_count,
            dictionary,
            ..owning(batch, rows, buffer_count, buffers.cast())
        };
        (*batch).children[place] = structure;
    }
}

impl Links {
    fn of(column: &Column<'_>) -> Self {
        let (values, bytes, dictionary) = match column.values {
            Values::Times(times) => (start(times), None, None),
            Values::Texts(texts) => (start(texts.offsets), Some(start(texts.bytes)), None),
            Values::Dictionary(indices, texts) => (start(indices), None, Some(texts.into())),
        };
        Self {
            validity: column.validity.map_or(null(), start),
            null_count: signed(column.null_count),
            values,
            bytes,
            dictionary,
        }
    }
}

impl From<Texts<'_>> for TextLinks {
    fn from(texts: Texts<'_>) -> Self {
        Self {
            count: texts.offsets.len() - 1,
            offsets: start(texts.offsets),
            bytes: start(texts.bytes),
        }
    }
}

/// A structure that is one more owner of the batch.
///
/// # Safety
/// The batch has to be alive.
unsafe fn owning(batch: *mut Batch, length: usize, buffer_count: i64, buffers: *const *const c_void) -> ArrowArray {
    // SAFETY: the caller's promise.
    let owners = unsafe { &(*batch).owners };
    owners.fetch_add(1, Ordering::Relaxed);
    ArrowArray {
        length: signed(length),
        buffer_count,
        buffers,
        release: Some(release),
        private_data: batch.cast(),
        ..RELEASED
    }
}

/// Releases a structure and those below it that nobody has moved out.
///
/// # Safety
/// `array` has to point to a structure made here, in its place or moved, that is not released yet.
unsafe extern "C" fn release(array: *mut ArrowArray) {
    // SAFETY: the caller's promise. What the structure points to is alive, because the structure is one of its owners;
    // those below it own for themselves, and are marked as released if they were moved out.
    unsafe {
        let ArrowArray {
            child_count,
            children,
            dictionary,
            private_data,
            ..
        } = *array;
        let count = usize::try_from(child_count).unwrap_or(0);
        let below = (0..count).map(|place| *children.add(place)).chain([dictionary]);
        for inner in below.filter(|inner| !inner.is_null()) {
            if let Some(release) = (*inner).release {
                release(inner);
            }
        }
        (*array).release = None;
        let batch = private_data.cast::<Batch>();
        let owners = &(*batch).owners;
        if owners.fetch_sub(1, Ordering::AcqRel) == 1 {
            drop(Box::from_raw(batch));
        }
    }
}

/// Where a buffer begins; an empty one need not be anywhere.
fn start<T>(buffer: &[T]) -> *const c_void {
    if buffer.is_empty() {
        null()
    } else {
        buffer.as_ptr().cast()
    }
}

/// A length as the structures have it: no memory is so large that this matters.
fn signed(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}
