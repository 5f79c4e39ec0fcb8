//! The innermost loop: the list of one pattern, stepped over entries in event order.

use crate::configuration::{Code, DEAD, FINAL, SLOW, UNKNOWN, Word, code_of, start_row, unmarked, word};
use crate::keeping::keep_to;
use crate::key::Lane;
use crate::matcher::expiry;
use crate::pattern::Window;
use crate::program::{Program, UNRELEASED};
use crate::rows::Rows;
use crate::transition::ROW_MASK;

/// Lists up to this length are stepped without a branch per partial match.
const SHORT: usize = 8;

/// An entry and its number among those that are stepped over.
type Entry = (u32, (u32, i64, u32));

/// A pattern that steps its lists.
pub(crate) struct Stepper<'a> {
    pub(crate) program: &'a mut Program,
    pub(crate) rows: &'a Rows,
    pub(crate) max_partial_matches: usize,
    /// Partial matches that the limit has refused.
    pub(crate) refused: usize,
}

impl Stepper<'_> {
    /// Steps the list of a lane over entries: row, time and class of each. `note` hears of lists with a final state.
    #[inline]
    pub(crate) fn step_over(
        &mut self,
        lane: &mut Lane,
        entries: impl Iterator<Item = (u32, i64, u32)>,
        mut note: impl FnMut(&Program, u32, u32, &[Word]),
    ) {
        let mut list = std::mem::take(&mut lane.tail);
        let mut entries = (0..).zip(entries).filter(|(_, (_, _, class))| *class < UNRELEASED);
        let mut left = None;
        loop {
            let is_short = list.len() <= SHORT && left.is_none();
            if is_short && self.program.sets.largest().saturating_mul(SHORT + 1) < self.max_partial_matches {
                left = self.step_short(&mut list, &mut lane.expires, &mut entries, &mut note);
            }
            let Some(entry) = left.take().or_else(|| entries.next()) else {
                break;
            };
            self.step_any(&mut list, &mut lane.expires, entry, &mut note);
        }
        lane.tail = list;
    }

    /// Steps a short list as far as it stays one and everything is known. The answer is an entry that was not taken.
    #[inline]
    fn step_short(
        &mut self,
        list: &mut Vec<Word>,
        expires: &mut i64,
        entries: &mut impl Iterator<Item = Entry>,
        note: &mut impl FnMut(&Program, u32, u32, &[Word]),
    ) -> Option<Entry> {
        let program = &*self.program;
        let (span, timed) = (program.window.span(), matches!(program.window, Window::Time(_)));
        let mut words = [0; 2 * SHORT];
        let mut length = list.len();
        words[..length].copy_from_slice(list);
        let mut left = None;
        for entry in &mut *entries {
            let (step, (row, ts, class)) = entry;
            let started = program.starts[class as usize];
            let transitions = program.sets.row(class);
            let stepped = if ts >= *expires || started & SLOW != 0 {
                None
            } else if length <= SHORT / 2 {
                step_words::<{ SHORT / 2 }>(transitions, &mut words)
            } else {
                step_words::<SHORT>(transitions, &mut words)
            };
            let Some((kept, seen)) = stepped else {
                left = Some(entry);
                break;
            };
            let closes = ts.saturating_add(span);
            let begins = started != DEAD && (ts < closes || !timed);
            *expires = if begins && kept == 0 { closes } else { *expires };
            words[kept] = if begins { word(row, started) } else { 0 };
            length = kept + usize::from(begins);
            if (seen | started) & FINAL != 0 {
                note(program, step, row, &words[..length]);
            }
            if length > SHORT {
                break;
            }
        }
        list.clear();
        list.extend_from_slice(&words[..length]);
        left
    }

    fn step_any(
        &mut self,
        list: &mut Vec<Word>,
        expires: &mut i64,
        (step, (row, ts, class)): Entry,
        note: &mut impl FnMut(&Program, u32, u32, &[Word]),
    ) {
        let (program, rows) = (&mut *self.program, self.rows);
        if ts >= *expires {
            *expires = expire(program, rows, list, ts);
        }
        let mut seen = program.step_list(class, list, || rows.view(row));
        let started = program.begin(class, || rows.view(row));
        if started != DEAD {
            let closes = ts.saturating_add(program.window.span());
            if ts < closes || !matches!(program.window, Window::Time(_)) {
                if list.is_empty() {
                    *expires = closes;
                }
                list.push(word(row, started));
                seen |= started;
            }
        }
        if seen & FINAL != 0 {
            note(program, step, row, list);
        }
        if list.len().saturating_mul(program.sets.largest()) >= self.max_partial_matches {
            self.refused += keep_to(&program.sets, list, self.max_partial_matches);
        }
    }
}

/// Steps the first `N` words, behind which there are only zeros, and closes the gaps. The answer is how many are left,
/// and all their marks; none, and nothing is changed, if not everything is known.
#[inline(always)]
#[allow(clippy::inline_always)] // the loops are to be unrolled where N is known
fn step_words<const N: usize>(transitions: &[Code], words: &mut [Word; 2 * SHORT]) -> Option<(usize, Code)> {
    let mut next = [DEAD; N];
    let mut seen = 0;
    for at in 0..N {
        let set = unmarked(code_of(words[at]));
        next[at] = transitions.get(set).copied().unwrap_or(UNKNOWN);
        seen |= next[at];
    }
    // The empty set leads nowhere, though nobody may have asked yet.
    if seen & SLOW != 0 {
        return None;
    }
    let before: [Word; N] = std::array::from_fn(|at| words[at]);
    let mut kept = 0;
    for at in 0..N {
        words[kept & (2 * SHORT - 1)] = before[at] & ROW_MASK | Word::from(next[at]);
        kept += usize::from(next[at] != DEAD);
    }
    for at in 0..N {
        words[(kept + at) & (2 * SHORT - 1)] = 0;
    }
    Some((kept, seen))
}

/// Drops the partial matches whose window closes at or before an instant: lists are ordered by start. The answer is
/// when the first of the others expires.
#[cold]
pub(crate) fn expire(program: &Program, rows: &Rows, list: &mut Vec<Word>, ts: i64) -> i64 {
    if !matches!(program.window, Window::Time(_)) {
        return i64::MAX;
    }
    let closed = |word: &Word| expiry(program, rows, start_row(*word)) <= ts;
    let count = list.iter().take_while(|word| closed(word)).count();
    list.drain(..count);
    list.first()
        .map_or(i64::MAX, |word| expiry(program, rows, start_row(*word)))
}
