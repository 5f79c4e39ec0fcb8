//! Small batches of changes as slices of one large batch.
//!
//! To hand a batch to pyarrow costs some microseconds, however few rows it has; to cut a slice of one that pyarrow has
//! already costs a fraction of that. So memory for many rows, all zero, is handed over once, and the rows of each small
//! batch are written behind those of the one before. Nobody reads what has not been cut out yet, and what has is never
//! written again. A batch whose dictionaries have a new text goes by itself, and the next one to a new sheet.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::Mutex;

use afa_engine::changes::arrow::{COLUMNS, ChangeColumns, Column, Kind, Values};
use afa_engine::changes::known_texts::{KnownTexts, Numbering};
use pyo3::prelude::*;

use super::export::{Content, Links, import};

/// Rows of a sheet: so few that its memory, which has to be zero, stays near, and so many that it takes several batches
/// of hundreds of rows.
const ROWS: usize = 2048;
/// Batches with more rows go by themselves.
const FEW_ROWS: usize = 512;
/// The bytes of the texts of a column, per row: ids are longer, but most batches do not fill the rows that they take.
const TEXT_BYTES: usize = 12;
/// Batches with more bytes of texts in a column go by themselves.
const FEW_BYTES: usize = ROWS * TEXT_BYTES;
/// All columns but that of match ids.
const PLACES: usize = COLUMNS.len() - 1;
/// No two batches share a word of validity bits, and every buffer is aligned as Arrow recommends.
const ALIGNMENT: usize = 64;

/// The dictionaries of batches so far, and the sheet that has them.
#[derive(Default)]
pub(crate) struct Sheets {
    known: [KnownTexts; PLACES],
    sheet: Option<Sheet>,
}

/// Where the buffers of a column begin in the memory of a sheet.
#[derive(Clone, Copy, Default)]
struct Place {
    validity: usize,
    values: usize,
    bytes: usize,
}

/// The memory of a sheet, which belongs to pyarrow.
pub(super) struct Memory {
    start: NonNull<u8>,
    /// Of columns that are dictionaries.
    dictionaries: [KnownTexts; PLACES],
}

/// A sheet as the one who writes it sees it.
struct Sheet {
    /// Of the batch that is all of the sheet: it keeps the memory.
    slice: Py<PyAny>,
    start: NonNull<u8>,
    rows: usize,
    text_bytes: [usize; PLACES],
}

// SAFETY: nothing in the memory belongs to a thread; it is written by the one sheet only.
unsafe impl Send for Memory {}
// SAFETY: as above, and a sheet is written through a mutable reference.
unsafe impl Send for Sheet {}

/// A small batch as a slice of a sheet; `None` if it has to go by itself.
pub(super) fn slice_of_sheet<'py>(
    py: Python<'py>,
    columns: &ChangeColumns,
    sheets: &Mutex<Sheets>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if columns.rows() > FEW_ROWS {
        return Ok(None);
    }
    let is_short = |column: &Column<'_>| match column.values {
        Values::Texts(texts) => texts.bytes.len() <= FEW_BYTES,
        _ => true,
    };
    let list: Vec<Column<'_>> = columns.columns().collect();
    if !list.iter().all(is_short) {
        return Ok(None);
    }
    // Whoever holds the lock may wait for the interpreter, which this thread has: never wait.
    match sheets.try_lock() {
        Ok(mut sheets) => sheets.slice(py, &list, columns.rows()),
        Err(_) => Ok(None),
    }
}

impl Sheets {
    fn slice<'py>(
        &mut self,
        py: Python<'py>,
        columns: &[Column<'_>],
        rows: usize,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(numberings) = self.number(columns) else {
            self.sheet = None;
            return Ok(None);
        };
        if let Some(sheet) = &mut self.sheet
            && let Some(first) = sheet.add(columns, rows, &numberings)
        {
            return sheet.cut(py, first, rows).map(Some);
        }
        let mut sheet = Sheet::new(py, &self.known)?;
        let Some(first) = sheet.add(columns, rows, &numberings) else {
            return Ok(None);
        };
        let batch = sheet.cut(py, first, rows)?;
        self.sheet = Some(sheet);
        Ok(Some(batch))
    }

    /// The numbers of all texts of dictionaries; `None` if some were new.
    fn number(&mut self, columns: &[Column<'_>]) -> Option<[Numbering; PLACES]> {
        let mut numberings = [const { Numbering::Same }; PLACES];
        let mut is_new = false;
        for ((column, known), numbering) in columns.iter().zip(&mut self.known).zip(&mut numberings) {
            if let Values::Dictionary(_, texts) = column.values {
                *numbering = known.number(texts);
                is_new |= matches!(numbering, Numbering::New);
            }
        }
        (!is_new).then_some(numberings)
    }
}

impl Sheet {
    fn new(py: Python<'_>, known: &[KnownTexts; PLACES]) -> PyResult<Self> {
        let memory = Memory::new(known.clone());
        let start = memory.start;
        let batch = import(py, Content::Sheet(Box::new(memory)), false)?;
        Ok(Self {
            slice: batch.getattr(pyo3::intern!(py, "slice"))?.unbind(),
            start,
            rows: 0,
            text_bytes: [0; PLACES],
        })
    }

    fn cut<'py>(&self, py: Python<'py>, first: usize, rows: usize) -> PyResult<Bound<'py, PyAny>> {
        self.slice.bind(py).call1((first, rows))
    }

    /// Writes rows behind those that are there; the answer is the first of them, `None` if there is no room.
    fn add(&mut self, columns: &[Column<'_>], rows: usize, numberings: &[Numbering; PLACES]) -> Option<usize> {
        let first = self.rows.next_multiple_of(ALIGNMENT);
        let fits = |(column, used): (&Column<'_>, &usize)| match column.values {
            Values::Texts(texts) => used + texts.bytes.len() <= ROWS * TEXT_BYTES,
            _ => true,
        };
        // The last offset of all stays: it says how many bytes of texts the sheet has.
        if first + rows >= ROWS || !columns.iter().zip(&self.text_bytes).all(fits) {
            return None;
        }
        let (places, _) = PLAN;
        for (number, (column, place)) in columns.iter().zip(places).enumerate() {
            // SAFETY: the sheet's batch keeps the memory alive. The rows from `first` on have not been cut out, there
            // is room for so many, and for the texts too.
            unsafe {
                self.write_validity(place, first, rows, column.validity);
                match column.values {
                    Values::Times(times) => copy(times, self.start.add(place.values).cast::<i64>().add(first)),
                    Values::Dictionary(indices, _) => {
                        let indices = numberings[number].of(indices);
                        copy(&indices, self.start.add(place.values).cast::<i32>().add(first));
                    }
                    Values::Texts(texts) => {
                        let used = self.text_bytes[number];
                        copy(texts.bytes, self.start.add(place.bytes + used));
                        let offsets = self.start.add(place.values).cast::<i32>().add(first);
                        for (row, offset) in texts.offsets.iter().enumerate() {
                            offsets.add(row).write(offset + signed(used));
                        }
                        self.text_bytes[number] += texts.bytes.len();
                    }
                }
            }
        }
        self.rows = first + rows;
        Some(first)
    }

    /// # Safety
    /// As in [`Self::add`].
    unsafe fn write_validity(&self, place: Place, first: usize, rows: usize, validity: Option<&[u8]>) {
        // SAFETY: the caller's promise; there is a bit for each row, and `first` begins a byte.
        unsafe {
            let bits = self.start.add(place.validity + first / 8);
            match validity {
                Some(validity) => copy(validity, bits),
                None => bits.write_bytes(u8::MAX, rows.div_ceil(8)),
            }
        }
    }
}

impl Memory {
    fn new(dictionaries: [KnownTexts; PLACES]) -> Self {
        let (places, layout) = PLAN;
        // SAFETY: the layout has a size.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else {
            handle_alloc_error(layout);
        };
        for ((_, kind), place) in COLUMNS.iter().zip(places) {
            if *kind == Kind::Text {
                // SAFETY: texts have one offset more than there are rows.
                unsafe {
                    let last = start.add(place.values).cast::<i32>().add(ROWS);
                    last.write(signed(ROWS * TEXT_BYTES));
                }
            }
        }
        Self { start, dictionaries }
    }

    pub(super) fn rows() -> usize {
        ROWS
    }

    /// The columns as they are handed over.
    pub(super) fn links(&self) -> impl Iterator<Item = Links> {
        let (places, _) = PLAN;
        let columns = COLUMNS.iter().zip(places).zip(&self.dictionaries);
        columns.map(|(((_, kind), place), dictionary)| {
            // SAFETY: places in the memory.
            let at = |place: usize| unsafe { self.start.add(place) }.as_ptr().cast_const().cast();
            Links {
                validity: at(place.validity),
                // Who wants to know has to count.
                null_count: -1,
                values: at(place.values),
                bytes: (*kind == Kind::Text).then(|| at(place.bytes)),
                dictionary: (*kind == Kind::Dictionary).then(|| dictionary.texts().into()),
            }
        })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and nobody has it any more.
        unsafe { dealloc(self.start.as_ptr(), PLAN.1) };
    }
}

/// Where the columns of a sheet lie, and what they take in all.
const PLAN: ([Place; PLACES], Layout) = plan();

const fn plan() -> ([Place; PLACES], Layout) {
    let mut places = [Place {
        validity: 0,
        values: 0,
        bytes: 0,
    }; PLACES];
    let (mut end, mut number) = (0, 0);
    while number < PLACES {
        places[number].validity = end;
        places[number].values = end + (ROWS / 8).next_multiple_of(ALIGNMENT);
        let width = match COLUMNS[number].1 {
            Kind::Time => 8,
            Kind::Text | Kind::Dictionary => 4,
        };
        end = places[number].values + ((ROWS + 1) * width).next_multiple_of(ALIGNMENT);
        places[number].bytes = end;
        if matches!(COLUMNS[number].1, Kind::Text) {
            end += (ROWS * TEXT_BYTES).next_multiple_of(ALIGNMENT);
        }
        number += 1;
    }
    match Layout::from_size_align(end, ALIGNMENT) {
        Ok(layout) => (places, layout),
        Err(_) => panic!("a power of two"),
    }
}

/// # Safety
/// There has to be room for all items.
unsafe fn copy<T: Copy>(items: &[T], target: NonNull<T>) {
    // SAFETY: the caller's promise; what is being written is nowhere else.
    unsafe { target.copy_from_nonoverlapping(NonNull::from(items).cast(), items.len()) };
}

/// A number of bytes, all of which a sheet has.
#[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
const fn signed(bytes: usize) -> i32 {
    bytes as i32
}
