//! Texts with numbers that stay: what lets dictionaries of one table of changes serve the next.

use std::borrow::Cow;
use std::collections::HashMap;

use foldhash::fast::FixedState;

use crate::changes::arrow::{TextBuffer, Texts};

/// More texts than so many are not remembered: they come and go.
const MOST_TEXTS: usize = 4096;
/// So many at once are not looked up: to make a new dictionary of them costs no more.
const MOST_AT_ONCE: usize = 128;

/// Distinct texts in the order in which they became known.
#[derive(Clone, Debug)]
pub struct KnownTexts {
    buffer: TextBuffer,
    numbers: HashMap<Box<[u8]>, i32, FixedState>,
}

impl Default for KnownTexts {
    fn default() -> Self {
        Self {
            buffer: TextBuffer::for_texts(1, 16),
            numbers: HashMap::default(),
        }
    }
}

/// Numbers of a table's texts as those of known ones.
#[derive(Debug)]
pub enum Numbering {
    /// They are the same.
    Same,
    /// The known number of each.
    Other(Vec<i32>),
    /// Not all of them were known; unless there are many, now they are.
    New,
}

impl KnownTexts {
    /// All of them.
    #[must_use]
    pub fn texts(&self) -> Texts<'_> {
        self.buffer.texts()
    }

    /// The known numbers of texts.
    pub fn number(&mut self, texts: Texts<'_>) -> Numbering {
        let known = self.texts();
        // What few batches do not hold: the texts of the one before, or the first of them.
        if known.offsets.starts_with(texts.offsets) && known.bytes.starts_with(texts.bytes) {
            return Numbering::Same;
        }
        if texts.offsets.len() > MOST_AT_ONCE {
            return Numbering::New;
        }
        let count = known.offsets.len();
        let mut numbers = Vec::with_capacity(texts.offsets.len());
        for text in texts.iter() {
            numbers.push(self.number_of(text));
        }
        if self.texts().offsets.len() == count {
            return Numbering::Other(numbers);
        }
        if self.numbers.len() > MOST_TEXTS {
            *self = Self::default();
        }
        Numbering::New
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // there are not so many
    fn number_of(&mut self, text: &[u8]) -> i32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.numbers.len() as i32;
        self.buffer.push(text);
        self.numbers.insert(text.into(), number);
        number
    }
}

impl Numbering {
    /// The known number of a text; any where there is none.
    #[must_use]
    pub fn of<'a>(&self, indices: &'a [i32]) -> Cow<'a, [i32]> {
        match self {
            Self::Same | Self::New => Cow::Borrowed(indices),
            Self::Other(numbers) => {
                let number = |index: &i32| usize::try_from(*index).ok().and_then(|index| numbers.get(index));
                indices
                    .iter()
                    .map(|index| number(index).copied().unwrap_or(0))
                    .collect()
            }
        }
    }
}
