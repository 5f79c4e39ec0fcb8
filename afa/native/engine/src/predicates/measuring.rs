//! Rows that wait to be taken: what is known of their times, and when they are classified.

use crate::engine::Engine;
use crate::predicates::classifying::classify_rows;
use crate::predicates::kernel::vectorized;
use crate::program::compiled::UNSEEN;
use crate::segment::Segment;

/// What was measured of the rows of a segment.
#[derive(Debug)]
pub(crate) struct Measured {
    /// Rows side by side, by their place in the segment; between two lies what is no event.
    stretches: Vec<Measure>,
    /// So many of them are classified.
    classified: usize,
    pub(crate) oldest: i64,
    pub(crate) newest: i64,
    /// Each row has a later time than the row before.
    pub(crate) ascends: bool,
}

#[derive(Clone, Copy, Debug)]
struct Measure {
    begin: usize,
    count: usize,
    times: TimesOfRows,
}

impl Default for Measured {
    fn default() -> Self {
        Self {
            stretches: Vec::new(),
            classified: 0,
            oldest: i64::MAX,
            newest: i64::MIN,
            ascends: true,
        }
    }
}

impl Measured {
    pub(crate) fn is_empty(&self) -> bool {
        self.stretches.is_empty()
    }

    /// How many rows there are.
    pub(crate) fn rows(&self) -> usize {
        self.stretches.iter().map(|stretch| stretch.count).sum()
    }

    /// The greatest time, if there are rows.
    pub(crate) fn newest(&self) -> Option<i64> {
        (!self.is_empty()).then_some(self.newest)
    }

    pub(crate) fn clear(&mut self) {
        self.stretches.clear();
        *self = Self {
            stretches: std::mem::take(&mut self.stretches),
            ..Self::default()
        };
    }

    fn add(&mut self, begin: usize, count: usize, times: TimesOfRows) {
        self.ascends &= times.ascend && (self.is_empty() || self.newest < times.oldest);
        self.stretches.push(Measure { begin, count, times });
        (self.oldest, self.newest) = (self.oldest.min(times.oldest), self.newest.max(times.newest));
    }
}

impl Engine {
    /// Measures the rows of a segment from one on.
    pub(crate) fn measure(&self, segment: &mut Segment, begin: usize) {
        let (first, end) = (segment.first + begin, segment.first + segment.keys.len());
        let times = TimesOfRows::of(&self.rows.chunk(segment.chunk).times()[first..end]);
        segment.measured.add(begin, end - first, times);
    }

    /// Classifies the rows of a segment that were measured but not classified yet.
    pub(crate) fn classify_measured(&mut self, segment: &mut Segment) {
        let measured = &mut segment.measured;
        let new = measured.classified..measured.stretches.len();
        measured.classified = new.end;
        if new.is_empty() {
            return;
        }
        // Of all at once where they lie in one epoch, as most do.
        let span = |oldest: i64, stretch: &Measure| oldest.min(stretch.times.oldest);
        let oldest = measured.stretches[new.clone()].iter().fold(i64::MAX, span);
        self.prepare(segment.chunk, oldest, measured.newest);
        for Measure { begin, count, times } in &measured.stretches[new] {
            let keys = &segment.keys[*begin..begin + count];
            self.classify_stretch(segment.chunk, segment.first + begin, keys, *times);
        }
    }

    /// Evaluates the predicates that rows of a chunk with these keys need, and classifies them.
    pub(crate) fn classify(&mut self, chunk: usize, begin: usize, keys: &[u32]) {
        let times = TimesOfRows::of(&self.rows.chunk(chunk).times()[begin..begin + keys.len()]);
        self.prepare(chunk, times.oldest, times.newest);
        self.classify_stretch(chunk, begin, keys, times);
    }

    /// Finds the classes of rows for patterns that keep lists; their predicates were evaluated.
    fn classify_stretch(&mut self, chunk: usize, begin: usize, keys: &[u32], times: TimesOfRows) {
        for lane in 0..self.lanes.len() {
            let pattern = self.lanes[lane];
            let mut classes = std::mem::take(self.rows.chunk_mut(chunk).classes_mut(pattern));
            classes.resize(begin, UNSEEN);
            let program = &mut self.programs[pattern];
            let end = begin + keys.len();
            let is_pinned = classify_rows(
                program,
                &self.rows,
                chunk,
                end,
                &mut classes,
                times.oldest,
                times.newest,
            );
            if program.pinned.is_some() && !is_pinned {
                program.pin_rows(&self.rows, chunk, begin, keys, &mut classes);
            }
            if program.key_field.is_some() || program.speculation.is_some() {
                self.hide(chunk, begin, keys, pattern, &mut classes);
            }
            *self.rows.chunk_mut(chunk).classes_mut(pattern) = classes;
        }
    }
}

/// Whether each time is later than the one before.
#[inline(always)]
#[allow(clippy::inline_always)] // into the code for the machine's vectors
fn ascend(times: &[i64]) -> bool {
    let mut descents = 0;
    for (ts, next) in times.iter().zip(times.get(1..).unwrap_or_default()) {
        descents |= i64::from(ts >= next);
    }
    descents == 0
}

/// What is known of the times of rows.
#[derive(Clone, Copy, Debug)]
struct TimesOfRows {
    oldest: i64,
    newest: i64,
    /// Each is later than the one before.
    ascend: bool,
}

impl TimesOfRows {
    fn of(times: &[i64]) -> Self {
        let are_ascending = vectorized(
            #[inline(always)]
            || ascend(times),
        );
        if let (true, Some(first), Some(last)) = (are_ascending, times.first(), times.last()) {
            return Self {
                oldest: *first,
                newest: *last,
                ascend: true,
            };
        }
        let (oldest, newest) = vectorized(
            #[inline(always)]
            || {
                times.iter().fold((i64::MAX, i64::MIN), |(least, most), ts| {
                    (least.min(*ts), most.max(*ts))
                })
            },
        );
        Self {
            oldest,
            newest,
            ascend: false,
        }
    }
}
