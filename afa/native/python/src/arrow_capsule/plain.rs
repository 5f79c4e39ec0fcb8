//! Columns of the types that most batches have, read straight from the C structures.
//!
//! What is unusual or looks wrong here is left to the general way, which finds out whether it is wrong, and says so.

use std::ptr::NonNull;
use std::sync::Arc;

use afa_engine::arrow::alike::Alike;
use afa_engine::arrow::cells::Cells;
use afa_engine::arrow::check::{are_below, count_set, texts_are_sound};
use afa_engine::arrow::layout::Given;
use afa_engine::arrow::text::{Dictionary, Few, Texts};
use arrow_array::ffi::FFI_ArrowArray;
use arrow_array::{GenericStringArray, OffsetSizeTrait};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Fields};

use super::{MAX_LENGTH, number_at, sane};

/// The columns of a record batch; `None`: they have to be taken the general way.
pub(super) fn columns(batch: &Arc<FFI_ArrowArray>, fields: &Fields) -> Option<Vec<Given>> {
    let is_plain = !batch.is_empty()
        && sane(batch.len())
        && sane(batch.offset())
        && batch.num_buffers() == 1
        && batch.buffer(0).is_null()
        && batch.num_children() == fields.len();
    if !is_plain {
        return None;
    }
    let column = |(place, field): (usize, &Arc<arrow_schema::Field>)| {
        let rows = Stretch::of(batch, batch.child(place), batch.offset(), batch.len())?;
        rows.cells(field.data_type()).map(Given::Cells)
    };
    fields.iter().enumerate().map(column).collect()
}

/// Some rows of an array.
#[derive(Clone, Copy)]
struct Stretch<'a> {
    owner: &'a Arc<FFI_ArrowArray>,
    array: &'a FFI_ArrowArray,
    /// From the beginning of the buffers.
    offset: usize,
    length: usize,
}

impl<'a> Stretch<'a> {
    /// Rows of an array that `owner` holds; `None` if it does not have them.
    fn of(owner: &'a Arc<FFI_ArrowArray>, array: &'a FFI_ArrowArray, offset: usize, length: usize) -> Option<Self> {
        let has_them = sane(array.len()) && sane(array.offset()) && offset + length <= array.len();
        (has_them && array.num_children() == 0).then(|| Self {
            owner,
            array,
            offset: array.offset() + offset,
            length,
        })
    }

    fn cells(self, data_type: &DataType) -> Option<Cells> {
        match data_type {
            DataType::Int64 => Some(Cells::Ints(self.numbers()?, self.nulls()?, None)),
            DataType::Float64 => Some(Cells::Floats(self.numbers()?, self.nulls()?)),
            DataType::Dictionary(width, values) if **width == DataType::Int32 => self.dictionary(values),
            other => self.texts_of(other).map(Cells::Texts),
        }
    }

    fn numbers<T: ArrowNativeType>(self) -> Option<ScalarBuffer<T>> {
        (self.array.num_buffers() == 2 && self.array.dictionary().is_none())
            .then(|| self.items(self.length))
            .flatten()
    }

    fn dictionary(self, values: &DataType) -> Option<Cells> {
        let array = self.array.dictionary().filter(|_| self.array.num_buffers() == 2)?;
        let texts = Stretch::of(self.owner, array, 0, array.len())?;
        if i32::try_from(texts.length).is_err() || texts.nulls()?.is_some() {
            return None;
        }
        let indices: ScalarBuffer<i32> = self.items(self.length)?;
        let nulls = self.nulls()?;
        are_below(&indices, texts.length).then_some(())?;
        Some(Cells::Texts(Texts::Dictionary(Dictionary {
            indices,
            nulls,
            values: Box::new(texts.texts_of(values)?),
        })))
    }

    fn texts_of(self, data_type: &DataType) -> Option<Texts> {
        if self.array.num_buffers() != 3 || self.array.dictionary().is_some() {
            return None;
        }
        match data_type {
            DataType::Utf8 => self.texts::<i32>(Texts::Short),
            DataType::LargeUtf8 => self.texts::<i64>(Texts::Long),
            _ => None,
        }
    }

    fn texts<T: OffsetSizeTrait>(self, texts: impl Fn(GenericStringArray<T>) -> Texts) -> Option<Texts> {
        let nulls = self.nulls()?;
        let few_rows = nulls.as_ref().and_then(Few::rows_of);
        let offsets: ScalarBuffer<T> = self.items(self.length + 1)?;
        let end = number_at::<T>(self.array.buffer(1), self.array.offset() + self.array.len())?;
        let end = end.to_usize().filter(|end| *end <= MAX_LENGTH)?;
        let bytes = match NonNull::new(self.array.buffer(2).cast_mut()) {
            // SAFETY: an array of texts has as many bytes as its last offset says.
            Some(bytes) => unsafe { Buffer::from_custom_allocation(bytes, end, self.owner.clone()) },
            None => Buffer::default(),
        };
        if let (Some(nulls), Some(rows)) = (&nulls, few_rows)
            && let Some(few) = Few::of(nulls, rows, &offsets, &bytes)
        {
            return Some(Texts::Few(few));
        }
        if let Some(alike) = Alike::of(nulls.as_ref(), &offsets, &bytes) {
            return Some(Texts::Alike(alike));
        }
        // SAFETY: checked right before.
        texts_are_sound(&offsets, &bytes).then(|| unsafe {
            let offsets = OffsetBuffer::new_unchecked(offsets);
            texts(GenericStringArray::new_unchecked(offsets, bytes, nulls))
        })
    }

    /// As many items of the second buffer, from that of the first row on.
    fn items<T: ArrowNativeType>(self, count: usize) -> Option<ScalarBuffer<T>> {
        let items = NonNull::new(self.array.buffer(1).cast_mut())?.cast::<T>();
        if !items.is_aligned() {
            return None;
        }
        // SAFETY: the buffer has an item for each row, and texts one more offset; the rows are those of the array.
        let buffer = unsafe {
            let first = items.add(self.offset).cast();
            Buffer::from_custom_allocation(first, count * size_of::<T>(), self.owner.clone())
        };
        Some(ScalarBuffer::from(buffer))
    }

    /// Which rows are not null, `None`: all. Without an answer if the array's own count is wrong.
    #[allow(clippy::option_option)] // of two different meanings
    fn nulls(self) -> Option<Option<NullBuffer>> {
        let told = self.array.null_count_opt();
        let Some(bits) = NonNull::new(self.array.buffer(0).cast_mut()) else {
            return (told.unwrap_or(0) == 0).then_some(None);
        };
        let end = self.offset + self.length;
        // SAFETY: the buffer has a bit for each row, and the rows are those of the array.
        let bytes = unsafe { Buffer::from_custom_allocation(bits, end.div_ceil(8), self.owner.clone()) };
        let null_count = self.length - count_set(&bytes, self.offset, self.length);
        let bits = BooleanBuffer::new(bytes, self.offset, self.length);
        // SAFETY: counted right before.
        let nulls = unsafe { NullBuffer::new_unchecked(bits, null_count) };
        let is_whole = self.length == self.array.len();
        let is_right = !is_whole || told.is_none_or(|told| told == null_count);
        is_right.then(|| Some(nulls).filter(|_| null_count > 0))
    }
}
