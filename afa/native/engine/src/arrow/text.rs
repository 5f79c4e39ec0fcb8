//! Text columns of any Arrow layout, read the same way.

use std::ops::Range;

use arrow_array::types::ArrowDictionaryKeyType;
use arrow_array::types::{Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{
    AnyDictionaryArray, Array, ArrayRef, DictionaryArray, LargeStringArray, StringArray, StringViewArray, cast::AsArray,
};
use arrow_buffer::{ArrowNativeType, NullBuffer, ScalarBuffer};
use arrow_schema::DataType;

use crate::arrow::alike::Alike;
use crate::arrow::check::are_valid;

/// Texts are few if at most one row in so many has one.
const FEW: usize = 16;

/// A column of texts.
#[derive(Clone, Debug)]
pub enum Texts {
    /// Every row is null.
    Nothing(usize),
    /// Offsets of 32 bits.
    Short(StringArray),
    /// Offsets of 64 bits.
    Long(LargeStringArray),
    /// Views.
    View(StringViewArray),
    /// Numbers of texts.
    Dictionary(Dictionary),
    /// Nearly every row is null.
    Few(Few),
    /// Every row has the same text, or is null.
    Alike(Alike),
}

/// The texts of the few rows that have one, copied: neither a check nor a search has to look at the others.
#[derive(Clone, Debug)]
pub struct Few {
    nulls: NullBuffer,
    /// Ascending.
    rows: Vec<usize>,
    /// Where each text begins and ends.
    spans: Vec<(usize, usize)>,
    texts: String,
}

/// A dictionary column: for each row the number of a text.
#[derive(Clone, Debug)]
pub struct Dictionary {
    /// The number of each row's text; without meaning where the row is null.
    pub indices: ScalarBuffer<i32>,
    /// The rows that have a text. A row that names a null of the dictionary has none.
    pub nulls: Option<NullBuffer>,
    /// The texts; never a dictionary again.
    pub values: Box<Texts>,
}

impl Texts {
    /// The column, if it is one of texts.
    #[must_use]
    pub fn of(array: &ArrayRef) -> Option<Self> {
        Some(match array.data_type() {
            DataType::Null => Self::Nothing(array.len()),
            DataType::Utf8 => Self::Short(array.as_string::<i32>().clone()),
            DataType::LargeUtf8 => Self::Long(array.as_string::<i64>().clone()),
            DataType::Utf8View => Self::View(array.as_string_view().clone()),
            DataType::Dictionary(_, values) => match **values {
                DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => {
                    Self::Dictionary(Dictionary::of(array)?)
                }
                _ => return None,
            },
            _ => return None,
        })
    }

    /// The number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Nothing(length) => *length,
            Self::Short(array) => array.len(),
            Self::Long(array) => array.len(),
            Self::View(array) => array.len(),
            Self::Dictionary(dictionary) => dictionary.indices.len(),
            Self::Few(few) => few.nulls.len(),
            Self::Alike(alike) => alike.length,
        }
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The text of a row.
    #[inline]
    #[must_use]
    pub fn get(&self, row: usize) -> Option<&str> {
        match self {
            Self::Nothing(_) => None,
            Self::Short(array) => array.is_valid(row).then(|| array.value(row)),
            Self::Long(array) => array.is_valid(row).then(|| array.value(row)),
            Self::View(array) => array.is_valid(row).then(|| array.value(row)),
            Self::Dictionary(dictionary) => dictionary.index(row).and_then(|index| dictionary.values.get(index)),
            Self::Few(few) => few.get(row),
            Self::Alike(alike) => alike.get(row),
        }
    }

    /// The text that all of these rows have, if that is seen at once.
    #[must_use]
    pub(crate) fn all_alike(&self, rows: Range<usize>) -> Option<&str> {
        let array = match self {
            Self::Short(array) => array,
            Self::Alike(alike) => return are_valid(alike.nulls.as_ref(), rows.start, rows.end).then_some(&alike.text),
            _ => return None,
        };
        let offsets = array.offsets().get(rows.start..=rows.end)?;
        let (first, width) = (offsets[0], offsets.get(1)? - offsets[0]);
        let mut differences = 0;
        for pair in offsets.windows(2) {
            differences |= (pair[1] - pair[0]) ^ width;
        }
        let (begin, end) = (first.as_usize(), offsets[rows.len()].as_usize());
        let bytes = array.value_data().get(begin..end)?;
        // Bytes that are the same one text further on are those of one text again and again. A null has none.
        let is_one =
            differences == 0 && width > 0 && bytes[width.as_usize()..] == bytes[..end - begin - width.as_usize()];
        (is_one && are_valid(array.nulls(), rows.start, rows.end)).then(|| array.value(rows.start))
    }

    /// Whether any row has a text.
    #[must_use]
    pub fn has_any(&self) -> bool {
        match self {
            Self::Nothing(_) => false,
            Self::Few(few) => !few.rows.is_empty(),
            _ => self.nulls().map_or(0, |nulls| nulls.null_count()) < self.len(),
        }
    }

    /// Which rows have a text; `None`: all.
    #[must_use]
    pub fn nulls(&self) -> Option<NullBuffer> {
        match self {
            Self::Nothing(length) => Some(NullBuffer::new_null(*length)),
            Self::Short(array) => array.nulls().cloned(),
            Self::Long(array) => array.nulls().cloned(),
            Self::View(array) => array.nulls().cloned(),
            Self::Dictionary(dictionary) => dictionary.nulls.clone(),
            Self::Few(few) => Some(few.nulls.clone()),
            Self::Alike(alike) => alike.nulls.clone(),
        }
    }

    /// The same texts with more rows null.
    #[must_use]
    pub fn masked(self, mask: Option<&NullBuffer>) -> Self {
        let Some(mask) = mask.filter(|mask| mask.null_count() > 0) else {
            return self;
        };
        let nulls = NullBuffer::union(Some(mask), self.nulls().as_ref());
        match self {
            Self::Nothing(length) => Self::Nothing(length),
            Self::Short(array) => {
                let (offsets, values, _) = array.into_parts();
                StringArray::try_new(offsets, values, nulls).map_or(Self::Nothing(mask.len()), Self::Short)
            }
            Self::Long(array) => {
                let (offsets, values, _) = array.into_parts();
                LargeStringArray::try_new(offsets, values, nulls).map_or(Self::Nothing(mask.len()), Self::Long)
            }
            Self::View(array) => {
                let (views, buffers, _) = array.into_parts();
                StringViewArray::try_new(views, buffers, nulls).map_or(Self::Nothing(mask.len()), Self::View)
            }
            Self::Dictionary(dictionary) => Self::Dictionary(Dictionary { nulls, ..dictionary }),
            Self::Few(few) => few.masked(mask).map_or(Self::Nothing(mask.len()), Self::Few),
            Self::Alike(alike) => Self::Alike(Alike { nulls, ..alike }),
        }
    }

    /// Whether both are views of the same memory, so that what is known about the one holds for the other.
    #[must_use]
    pub fn same_memory(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Short(a), Self::Short(b)) => {
                a.offsets().inner().ptr_eq(b.offsets().inner()) && a.values().ptr_eq(b.values())
            }
            (Self::Long(a), Self::Long(b)) => {
                a.offsets().inner().ptr_eq(b.offsets().inner()) && a.values().ptr_eq(b.values())
            }
            (Self::View(a), Self::View(b)) => {
                a.views().ptr_eq(b.views())
                    && a.data_buffers().len() == b.data_buffers().len()
                    && a.data_buffers()
                        .iter()
                        .zip(b.data_buffers().iter())
                        .all(|(one, two)| one.ptr_eq(two))
            }
            _ => false,
        }
    }
}

/// Texts that are asked for row by row, each row after the one before.
#[derive(Debug)]
pub(crate) struct Ascending<'a> {
    texts: Option<&'a Texts>,
    /// Among few texts: the first that was not passed.
    place: usize,
}

impl<'a> Ascending<'a> {
    pub(crate) fn of(texts: Option<&'a Texts>) -> Self {
        Self { texts, place: 0 }
    }

    /// The text of a row.
    pub(crate) fn get(&mut self, row: usize) -> Option<&'a str> {
        let Texts::Few(few) = self.texts? else {
            return self.texts?.get(row);
        };
        let passed = few.rows[self.place..].iter().take_while(|known| **known < row);
        self.place += passed.count();
        few.rows.get(self.place).filter(|known| **known == row)?;
        let (begin, end) = few.spans[self.place];
        few.texts.get(begin..end)
    }
}

impl Few {
    /// The rows that have a text, if they are few.
    #[must_use]
    pub fn rows_of(nulls: &NullBuffer) -> Option<Vec<usize>> {
        let count = nulls.len() - nulls.null_count();
        if count > nulls.len() / FEW {
            return None;
        }
        let mut rows = Vec::with_capacity(count);
        rows.extend(nulls.valid_indices());
        Some(rows)
    }

    /// The texts of such rows between offsets, if they lie together and nothing is wrong with them.
    #[must_use]
    pub fn of<T: ArrowNativeType>(nulls: &NullBuffer, rows: Vec<usize>, offsets: &[T], bytes: &[u8]) -> Option<Self> {
        // All offsets before the first text: they are waited for together.
        let mut spans = Vec::with_capacity(rows.len());
        for row in &rows {
            spans.push((offsets.get(*row)?.to_usize()?, offsets.get(row + 1)?.to_usize()?));
        }
        let (first, last) = (
            spans.first().map_or(0, |span| span.0),
            spans.last().map_or(0, |span| span.1),
        );
        let length: usize = spans.iter().map(|(begin, end)| end.saturating_sub(*begin)).sum();
        // As a rule nulls have no bytes.
        if last.saturating_sub(first) > length * 2 {
            return None;
        }
        for (begin, end) in &mut spans {
            (*begin, *end) = (begin.checked_sub(first)?, end.checked_sub(first)?);
        }
        let texts = std::str::from_utf8(bytes.get(first..last)?).ok()?.to_owned();
        let is_text = |(begin, end): &(usize, usize)| texts.get(*begin..*end).is_some();
        spans.iter().all(is_text).then(|| Self {
            nulls: nulls.clone(),
            rows,
            spans,
            texts,
        })
    }

    /// The rows that have a text, ascending, with it.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &str)> {
        let texts = self.spans.iter().map(|(begin, end)| &self.texts[*begin..*end]);
        self.rows.iter().copied().zip(texts)
    }

    fn get(&self, row: usize) -> Option<&str> {
        let (begin, end) = self.spans[self.rows.binary_search(&row).ok()?];
        self.texts.get(begin..end)
    }

    fn masked(mut self, mask: &NullBuffer) -> Option<Self> {
        self.nulls = NullBuffer::union(Some(mask), Some(&self.nulls))?;
        let kept = self
            .rows
            .iter()
            .zip(&self.spans)
            .filter(|(row, _)| mask.is_valid(**row));
        (self.rows, self.spans) = kept.map(|(row, span)| (*row, *span)).unzip();
        Some(self)
    }
}

impl Dictionary {
    fn of(array: &ArrayRef) -> Option<Self> {
        let dictionary = array.as_any_dictionary_opt()?;
        let values = Texts::of(dictionary.values())?;
        i32::try_from(values.len()).ok()?;
        let DataType::Dictionary(width, _) = array.data_type() else {
            return None;
        };
        let indices = match **width {
            DataType::Int8 => widened(typed::<Int8Type>(dictionary)?, i32::from),
            DataType::Int16 => widened(typed::<Int16Type>(dictionary)?, i32::from),
            DataType::Int32 => typed::<Int32Type>(dictionary)?.clone(),
            DataType::Int64 => widened(typed::<Int64Type>(dictionary)?, |index| {
                i32::try_from(index).unwrap_or(0)
            }),
            DataType::UInt8 => widened(typed::<UInt8Type>(dictionary)?, i32::from),
            DataType::UInt16 => widened(typed::<UInt16Type>(dictionary)?, i32::from),
            DataType::UInt32 => widened(typed::<UInt32Type>(dictionary)?, |index| {
                i32::try_from(index).unwrap_or(0)
            }),
            DataType::UInt64 => widened(typed::<UInt64Type>(dictionary)?, |index| {
                i32::try_from(index).unwrap_or(0)
            }),
            _ => return None,
        };
        let nulls = dictionary.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        Some(Self {
            indices,
            nulls,
            values: Box::new(values),
        })
    }

    /// The number of a row's text.
    #[inline]
    #[must_use]
    pub fn index(&self, row: usize) -> Option<usize> {
        match &self.nulls {
            Some(nulls) if nulls.is_null(row) => None,
            _ => usize::try_from(self.indices[row]).ok(),
        }
    }
}

fn typed<T: ArrowDictionaryKeyType>(dictionary: &dyn AnyDictionaryArray) -> Option<&ScalarBuffer<T::Native>> {
    let found = dictionary.as_any().downcast_ref::<DictionaryArray<T>>()?;
    Some(found.keys().values())
}

/// Indices of another width as 32 bits. Those that do not fit are indices of null rows: the dictionary is not so long.
fn widened<T: Copy>(indices: &[T], to: impl Fn(T) -> i32) -> ScalarBuffer<i32> {
    indices.iter().map(|index| to(*index)).collect()
}

#[cfg(test)]
mod tests {
    use arrow_buffer::NullBuffer;

    use super::{Ascending, Few, Texts};

    /// A column of 100 rows, of which these have a text; each null has so many bytes.
    fn few(texts: &[(usize, &str)], null_bytes: usize) -> Option<Few> {
        let (mut bytes, mut offsets) = (Vec::new(), vec![0_i32]);
        for row in 0..100 {
            match texts.iter().find(|(known, _)| *known == row) {
                Some((_, text)) => bytes.extend_from_slice(text.as_bytes()),
                None => bytes.resize(bytes.len() + null_bytes, 0xff),
            }
            offsets.push(i32::try_from(bytes.len()).expect("few"));
        }
        let nulls: NullBuffer = (0..100)
            .map(|row| texts.iter().any(|(known, _)| *known == row))
            .collect();
        Few::of(&nulls, Few::rows_of(&nulls)?, &offsets, &bytes)
    }

    #[test]
    fn few_texts_are_found_by_row() {
        let texts = [(3, "arc"), (4, "über"), (70, ""), (99, "insert")];
        let found = few(&texts, 0).expect("few");
        assert_eq!(found.iter().collect::<Vec<_>>(), texts);
        let column = Texts::Few(found);
        let mut ascending = Ascending::of(Some(&column));
        for row in 0..100 {
            let expected = texts.iter().find(|(known, _)| *known == row).map(|(_, text)| *text);
            assert_eq!((column.get(row), ascending.get(row)), (expected, expected));
        }
        let mask: NullBuffer = (0..100).map(|row| row != 4).collect();
        let masked = column.masked(Some(&mask));
        assert_eq!(
            (masked.get(3), masked.get(4), masked.get(99)),
            (Some("arc"), None, Some("insert"))
        );
    }

    #[test]
    fn what_is_unusual_is_left_to_the_general_way() {
        assert!(
            few(&[(3, "arc"), (4, "arc")], 1).is_some(),
            "nulls with bytes that are not between texts"
        );
        assert!(few(&[(3, "arc"), (5, "arc")], 1).is_none(), "no text between texts");
        assert!(few(&[(3, "arc"), (70, "arc")], 100).is_none(), "too far apart");
        assert!(
            few(
                &[(1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, "e"), (6, "f"), (7, "g")],
                0
            )
            .is_none(),
            "too many"
        );
        let nulls: NullBuffer = (0..100).map(|row| row == 0 || row == 1).collect();
        let offsets: Vec<i32> = (0..=100).map(|row| row.min(2)).collect();
        let rows = Few::rows_of(&nulls).expect("few");
        assert!(
            Few::of(&nulls, rows, &offsets, "ü".as_bytes()).is_none(),
            "a character cut in two"
        );
    }
}
