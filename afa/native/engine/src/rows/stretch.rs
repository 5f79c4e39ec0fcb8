//! Rows in event order, as they are handed to whoever takes them.

use crate::rows::chunk::CHUNK_ROWS;
use crate::rows::store::parts;

/// Rows in event order: those of a run, or any.
#[derive(Clone, Copy, Debug)]
pub enum Stretch<'a> {
    /// The first row and how many follow each other from it on, in one chunk.
    Run(u32, usize),
    /// Rows one by one.
    Listed(&'a [u32]),
    /// A run with gaps.
    Gapped(Gapped<'a>),
}

/// Rows of one chunk, most of which follow each other.
#[derive(Clone, Copy, Debug)]
pub struct Gapped<'a> {
    /// For each run the place of its first row among all rows, and that row.
    runs: &'a [(usize, u32)],
    /// Those from this place on.
    from: usize,
    to: usize,
}

impl Gapped<'_> {
    /// The row at a place, and the place after the run that it belongs to.
    #[inline]
    fn find(self, place: usize) -> (u32, usize) {
        let next = self.runs.partition_point(|(first, _)| *first <= place);
        let (first, row) = self.runs[next - 1];
        let end = self.runs.get(next).map_or(self.to, |(first, _)| self.to.min(*first));
        #[allow(clippy::cast_possible_truncation)] // a run lies in one chunk
        (row + (place - first) as u32, end)
    }
}

impl Stretch<'_> {
    /// How many rows there are.
    #[must_use]
    #[inline]
    pub fn len(self) -> usize {
        match self {
            Self::Run(_, count) => count,
            Self::Listed(rows) => rows.len(),
            Self::Gapped(gapped) => gapped.to - gapped.from,
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// One of the rows.
    #[must_use]
    #[inline]
    pub fn row(self, at: usize) -> u32 {
        match self {
            #[allow(clippy::cast_possible_truncation)] // a run lies in one chunk
            Self::Run(first, _) => first + at as u32,
            Self::Listed(rows) => rows[at],
            Self::Gapped(gapped) => gapped.find(gapped.from + at).0,
        }
    }

    /// All of them.
    pub fn rows(self) -> impl Iterator<Item = u32> {
        (0..self.len()).map(move |at| self.row(at))
    }

    /// Some of them.
    #[must_use]
    pub fn part(self, begin: usize, end: usize) -> Self {
        match self {
            Self::Run(..) => Self::Run(self.row(begin), end - begin),
            Self::Listed(rows) => Self::Listed(&rows[begin..end]),
            Self::Gapped(Gapped { runs, from, .. }) => Self::Gapped(Gapped {
                runs,
                from: from + begin,
                to: from + end,
            }),
        }
    }

    /// How many rows follow each other from one on, of which no more than `most` are looked at; at least one.
    #[must_use]
    #[inline]
    pub fn count_run(self, at: usize, most: usize) -> usize {
        match self {
            Self::Run(_, count) => most.min(count - at),
            Self::Listed(rows) => count_run(&rows[at..rows.len().min(at + most)]),
            Self::Gapped(gapped) => {
                let place = gapped.from + at;
                most.min(gapped.find(place).1 - place)
            }
        }
    }
}

/// Runs of one chunk on their way to become a stretch.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    parts: Vec<(usize, u32)>,
    length: usize,
    /// All rows, if the runs are short.
    rows: Vec<u32>,
}

/// Runs shorter than this are listed row by row: to look for the run of a row would cost more.
const LONG_RUN: usize = 32;

impl Runs {
    pub(crate) fn clear(&mut self) {
        self.parts.clear();
        self.length = 0;
    }

    pub(crate) fn push(&mut self, first: u32, count: usize) {
        self.parts.push((self.length, first));
        self.length += count;
    }

    /// All of them.
    pub(crate) fn stretch(&mut self) -> Stretch<'_> {
        if let [(_, first)] = self.parts[..] {
            return Stretch::Run(first, self.length);
        }
        let gapped = Stretch::Gapped(Gapped {
            runs: &self.parts,
            from: 0,
            to: self.length,
        });
        if self.length >= self.parts.len() * LONG_RUN {
            return gapped;
        }
        self.rows.clear();
        for (run, (place, first)) in self.parts.iter().enumerate() {
            let end = self.parts.get(run + 1).map_or(self.length, |(next, _)| *next);
            self.rows.extend((*first..).take(end - place));
        }
        Stretch::Listed(&self.rows)
    }
}

/// Of a run so many rows are looked at one by one first: a block is too much for a short one.
const FIRST_ROWS: usize = 16;

/// How many of the first rows follow each other in one chunk; at least one.
fn count_run(rows: &[u32]) -> usize {
    let first = rows[0];
    let most = rows.len().min(CHUNK_ROWS - parts(first).1);
    let rows = &rows[..most];
    let apart = |gaps: u32, (row, next): (&u32, u32)| gaps | (row ^ next);
    let mut count = 1;
    while count < most.min(FIRST_ROWS) && rows[count] == rows[count - 1] + 1 {
        count += 1;
    }
    if count < FIRST_ROWS {
        return count;
    }
    // Whole blocks at a time: most streams are in order.
    while let Some(block) = rows.get(count..count + 64) {
        if block.iter().zip(rows[count - 1] + 1..=u32::MAX).fold(0, apart) != 0 {
            break;
        }
        count += 64;
    }
    while count < most && rows[count] == rows[count - 1] + 1 {
        count += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::{Runs, Stretch};

    #[test]
    fn a_run_with_gaps_is_what_its_rows_are() {
        for length in [1, 10, 40, 100] {
            let mut runs = Runs::default();
            let firsts = [7_u32, 200, 330, 500];
            let mut rows: Vec<u32> = Vec::new();
            for (number, first) in firsts.into_iter().enumerate() {
                runs.push(first, length + number);
                rows.extend((first..).take(length + number));
                let stretch = runs.stretch();
                assert_eq!(stretch.rows().collect::<Vec<_>>(), rows);
                for (from, to) in [(0, rows.len()), (1, rows.len()), (length / 2, rows.len() - 1)] {
                    let (part, listed) = (stretch.part(from, to), Stretch::Listed(&rows[from..to]));
                    assert_eq!(part.rows().collect::<Vec<_>>(), &rows[from..to]);
                    for at in 0..part.len() {
                        assert_eq!(part.count_run(at, 50), listed.count_run(at, 50), "{at} of {from}..{to}");
                    }
                }
            }
        }
    }
}
