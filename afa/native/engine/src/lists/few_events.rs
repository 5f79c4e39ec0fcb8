//! A few rows between late ones, after all that a key has: the shortest way to what `append` would do. Most of what it
//! costs to take them is to begin and to end.

use crate::keys::key::Key;
use crate::keys::spine::WORTHY_RUN;
use crate::lists::matcher::{LISTED_RUN, Matcher};
use crate::lists::shapes::MOST_WORDS;
use crate::rows::store::parts;

impl Matcher<'_> {
    /// Takes rows that follow each other in one chunk, and come after all that the key has, as long as their moves are known
    /// and the last page takes them; the answer is how many. None are if there is more than one pattern, or if they are
    /// so many that they are better taken together. The first has this record.
    pub(crate) fn append_few(&mut self, key: &mut Key, first: u32, count: usize, record: u32) -> u32 {
        let ([pattern], true, true) = (self.lanes, self.linear.is_empty(), count < WORTHY_RUN) else {
            return 0;
        };
        let program = &mut self.programs[*pattern];
        let most = program.sets.largest().saturating_mul(MOST_WORDS + 1);
        let Some(page) = key.spine.pages.back_mut() else {
            return 0;
        };
        if most >= self.max_partial_matches || program.gap_free {
            return 0;
        }
        let count = count.min(page.takes(first, LISTED_RUN));
        let (number, offset) = parts(first);
        let chunk = self.rows.chunk(number);
        let times = &chunk.times()[offset..offset + count];
        let classes = &chunk.classes(*pattern)[offset..offset + count];
        let (lane, shapes, span) = (&mut key.lanes[0], &program.shapes, program.window.span());
        let mut taken = 0;
        for (row, (ts, class)) in (first..).zip(times.iter().zip(classes)) {
            let Some(found) = program.find_plain_move(lane, *ts, *class) else {
                break;
            };
            let next = shapes.first() + found.next;
            lane.follow(found, next, shapes.codes(next), row, ts.saturating_add(span));
            if found.is_final() {
                self.findings.record = record + (row - first);
                self.findings.note_list(program, *pattern, row, lane.list());
            }
            taken += 1;
        }
        let times = &times[..taken as usize];
        if let Some(newest) = times.last().copied() {
            page.push_run(first, times);
            program.shapes.note_uses(times.len());
            self.rows.store(number, taken as usize, newest);
        }
        taken
    }
}
