//! Text columns in which every row that has a text has the same one, as the type of events mostly is.

use std::sync::Arc;

use arrow_buffer::{ArrowNativeType, NullBuffer};

use crate::predicates::kernel::vectorized;

/// It is not looked for among fewer rows.
const LEAST_ROWS: usize = 32;
/// Nor where more than one row in so many has no text.
const FEW: usize = 16;

/// One text for all rows but those that are null: neither a check nor a search has to look at them.
#[derive(Clone, Debug)]
pub struct Alike {
    pub(crate) nulls: Option<NullBuffer>,
    pub(crate) length: usize,
    pub(crate) text: Arc<str>,
}

impl Alike {
    /// The texts between offsets, if they are all the same and nothing is wrong with them. Nulls have no bytes.
    #[must_use]
    pub fn of<T: ArrowNativeType>(nulls: Option<&NullBuffer>, offsets: &[T], bytes: &[u8]) -> Option<Self> {
        let length = offsets.len().checked_sub(1)?;
        let null_count = nulls.map_or(0, NullBuffer::null_count);
        if length < LEAST_ROWS || null_count > length / FEW {
            return None;
        }
        let all = [(0, length)];
        let stretches: &mut dyn Iterator<Item = (usize, usize)> = match nulls {
            Some(nulls) => &mut nulls.valid_slices(),
            None => &mut all.into_iter(),
        };
        let (begin, end) = (offsets[0].to_usize()?, offsets[length].to_usize()?);
        let used = bytes.get(begin..end)?;
        let width = used.len() / (length - null_count);
        if width == 0 || width * (length - null_count) != used.len() {
            return None;
        }
        let mut place = begin;
        for (from, to) in stretches {
            if !ascend_by(&offsets[from..=to], place, width) {
                return None;
            }
            place += (to - from) * width;
        }
        // Bytes that are the same one text further on are those of one text again and again.
        let is_one = used[width..] == used[..used.len() - width];
        let text = std::str::from_utf8(&used[..width]).ok().filter(|_| is_one)?;
        Some(Self {
            nulls: nulls.cloned(),
            length,
            text: text.into(),
        })
    }

    /// Whether a row has the text.
    #[inline]
    pub(crate) fn get(&self, row: usize) -> Option<&str> {
        let is_null = self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
        (!is_null).then_some(&self.text)
    }
}

/// Whether offsets begin at a place, and each is so much greater than the one before.
fn ascend_by<T: ArrowNativeType>(offsets: &[T], begin: usize, width: usize) -> bool {
    let differs = |(row, offset): (usize, &T)| u32::from(offset.as_usize() != begin + row * width);
    let differences = vectorized(
        #[inline(always)]
        || offsets.iter().enumerate().map(differs).fold(0, |all, one| all | one),
    );
    differences == 0
}

#[cfg(test)]
mod tests {
    use arrow_buffer::NullBuffer;

    use super::Alike;

    /// A column of rows with these texts, of which null ones have none.
    fn alike(rows: &[Option<&str>]) -> Option<Alike> {
        let (mut bytes, mut offsets) = (b"before".to_vec(), vec![6_i32]);
        for text in rows {
            bytes.extend_from_slice(text.unwrap_or_default().as_bytes());
            offsets.push(i32::try_from(bytes.len()).expect("few"));
        }
        bytes.extend_from_slice(b"behind");
        let nulls: NullBuffer = rows.iter().map(Option::is_some).collect();
        Alike::of(Some(&nulls).filter(|nulls| nulls.null_count() > 0), &offsets, &bytes)
    }

    #[test]
    fn one_text_for_all_rows_is_seen() {
        for gaps in [&[][..], &[0], &[99], &[3, 4, 50]] {
            let rows: Vec<Option<&str>> = (0..100).map(|row| (!gaps.contains(&row)).then_some("Stöck")).collect();
            let found = alike(&rows).expect("one text");
            for (row, text) in rows.iter().enumerate() {
                assert_eq!(found.get(row), *text);
            }
        }
    }

    #[test]
    fn another_text_anywhere_is_seen() {
        for place in [0, 1, 50, 99] {
            for other in ["Stocks", "", "stock", "Sto", "tockS"] {
                let mut rows = [Some("Stock"); 100];
                rows[place] = Some(other);
                assert!(alike(&rows).is_none(), "{other:?} in row {place}");
                // As long together as two of the others.
                rows[(place + 1) % 100] = Some("StockStock").filter(|_| other.is_empty()).or(rows[2]);
                assert!(alike(&rows).is_none());
            }
        }
        assert!(alike(&[Some("Stock"); 9]).is_none(), "too few");
        assert!(alike(&[None; 100]).is_none(), "nothing");
        assert!(alike(&[Some(""); 100]).is_none(), "nothing to see");
    }

    #[test]
    fn what_is_wrong_is_left_to_the_check() {
        let offsets: Vec<i32> = (0..=100).map(|row| row * 2).collect();
        assert!(Alike::of(None, &offsets, &b"ab".repeat(100)).is_some());
        assert!(Alike::of(None, &offsets, &b"ab".repeat(99)).is_none(), "too short");
        assert!(Alike::of(None, &offsets, &[0xff; 200]).is_none(), "no UTF-8");
        let cut = "ü".repeat(100);
        let odd: Vec<i32> = (0..=100).map(|row| row * 2 + 1).collect();
        assert!(Alike::of(None, &odd, ("a".to_owned() + &cut).as_bytes()).is_some());
        assert!(Alike::of(None, &odd, (cut + "a").as_bytes()).is_none(), "cut in two");
        let back: Vec<i32> = (0..=100).map(|row| if row == 50 { -100 } else { row * 2 }).collect();
        assert!(
            Alike::of(None, &back, &b"ab".repeat(100)).is_none(),
            "offsets that go back"
        );
        assert!(Alike::of::<i32>(None, &[], &[]).is_none());
    }
}
