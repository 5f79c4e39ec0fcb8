//! Changes as the C structures of Arrow, made by hand: one piece of memory for all structures of a batch.

use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicUsize, Ordering};

use afa_engine::change_arrow::{COLUMNS, ChangeColumns, Column, Values};
use pyo3::prelude::*;

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
    /// What the pointers lead to. It is never changed, and the memory of its buffers stays in place.
    content: ChangeColumns,
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

/// A `pyarrow.RecordBatch` that shares the memory of the columns.
///
/// # Errors
/// If pyarrow is not installed.
pub(crate) fn to_pyarrow(py: Python<'_>, columns: ChangeColumns, with_ids: bool) -> PyResult<Bound<'_, PyAny>> {
    let pyarrow = Pyarrow::get(py)?;
    let mut outermost = Outermost(structures(columns));
    let address = (&raw mut outermost.0).expose_provenance();
    pyarrow.import.bind(py).call1((address, pyarrow.schema(with_ids)))
}

/// The outermost structure, a struct of the columns.
fn structures(content: ChangeColumns) -> ArrowArray {
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
        let content = &(*batch).content;
        let mut children = 0;
        for (place, column) in content.columns().enumerate().take(COLUMNS.len()) {
            link(batch, place, content.rows(), &column);
            children += 1;
        }
        ArrowArray {
            child_count: children,
            children: (&raw mut (*batch).children).cast(),
            ..owning(batch, content.rows(), 1, (&raw const (*batch).no_validity).cast())
        }
    }
}

/// Makes the structure of a column, and of its dictionary.
///
/// # Safety
/// The batch has to be alive, without any reference to its structures, and `column` one of its content.
unsafe fn link(batch: *mut Batch, place: usize, rows: usize, column: &Column<'_>) {
    let validity = column.validity.map_or(null(), start);
    // SAFETY: the caller's promise; the places are within the arrays.
    unsafe {
        let buffers = &raw mut (*batch).column_buffers[place];
        let mut dictionary = null_mut();
        *buffers = match &column.values {
            Values::Times(times) => [validity, start(times), null()],
            Values::Texts(texts) => [validity, start(texts.offsets), start(texts.bytes)],
            Values::Dictionary(indices, texts) => {
                let buffers = &raw mut (*batch).dictionary_buffers[place];
                *buffers = [null(), start(texts.offsets), start(texts.bytes)];
                dictionary = &raw mut (*batch).dictionaries[place];
                *dictionary = owning(batch, texts.offsets.len() - 1, 3, buffers.cast());
                [validity, start(indices), null()]
            }
        };
        let buffer_count = if matches!(column.values, Values::Texts(_)) {
            3
        } else {
            2
        };
        let structure = &raw mut (*batch).columns[place];
        *structure = ArrowArray {
            null_count: signed(column.null_count),
            dictionary,
            ..owning(batch, rows, buffer_count, buffers.cast())
        };
        (*batch).children[place] = structure;
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
