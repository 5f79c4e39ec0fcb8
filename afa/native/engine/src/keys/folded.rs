//! Keys *folded*: where keys are many and their events interleaved, the state of most is short, and every event waits for
//! the memory that it lies in. Of a short list its shape and the rows of its start events say all, and those of the last
//! list are some of the list's that enters the page and of the page's entries. So both lists and the page are a few rows
//! in one place, of which the first cache line is mostly enough. Whoever looks at a key itself unfolds it first.

use crate::engine::Engine;
use crate::keys::key::Key;
use crate::keys::page::{PAGE_ENTRIES, Page};
use crate::lists::configuration::{DEAD, start_row, word};
use crate::lists::lane::{Lane, Lanes, List};
use crate::lists::matcher::{expiry, is_closed};
use crate::lists::shapes::{MOST_WORDS, Move, NO_SHAPE};
use crate::program::compiled::Program;
use crate::rows::store::Rows;

/// So many rows lie where the state of a folded key does.
const MOST_ROWS: usize = 24;

/// The state of a folded key, which has one lane and one page at most, and nothing that few have.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Folded {
    /// The time of the last entry; the least instant if there is none.
    last_ts: i64,
    /// No partial match expires before.
    expires: i64,
    /// The shape of the list after the last entry; `NO_SHAPE`: the key is not folded.
    shape: u32,
    /// The shape of the list before the first entry.
    entering: u32,
    /// A bit per row that starts a word of the list after the last entry.
    kept: u32,
    domain: u16,
    /// So many rows start words of the list before the first entry.
    starts: u8,
    /// So many rows after them are those of the entries.
    entries: u8,
    rows: [u32; MOST_ROWS],
}

/// Two cache lines, of which the first has so many rows.
const NEAR_ROWS: usize = 8;
const _: () = assert!(size_of::<Folded>() == 128);

impl Folded {
    /// What stands for a key that is not folded.
    pub(crate) const NOT: Self = Self {
        last_ts: i64::MIN,
        expires: i64::MIN,
        shape: NO_SHAPE,
        entering: NO_SHAPE,
        kept: 0,
        domain: 0,
        starts: 0,
        entries: 0,
        rows: [0; MOST_ROWS],
    };

    /// Whether the key is folded.
    #[inline]
    pub(crate) fn is_folded(&self) -> bool {
        self.shape != NO_SHAPE
    }

    /// The shape of the list after the last entry.
    #[inline]
    pub(crate) fn shape(&self) -> u32 {
        self.shape
    }

    #[inline]
    pub(crate) fn domain(&self) -> usize {
        usize::from(self.domain)
    }

    /// The number of its partition is another now.
    pub(crate) fn move_to(&mut self, domain: usize) {
        self.domain = u16::try_from(domain).unwrap_or(u16::MAX);
    }

    #[inline]
    pub(crate) fn last_ts(&self) -> i64 {
        self.last_ts
    }

    #[inline]
    pub(crate) fn expires(&self) -> i64 {
        self.expires
    }

    /// How many words the list after the last entry has.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.kept.count_ones() as usize
    }

    /// How many partial matches that list has.
    pub(crate) fn partial_matches(&self, program: &Program) -> usize {
        let codes = program.shapes.codes_ever(self.shape).iter().take(self.count());
        codes.map(|code| program.sets.size(*code)).sum()
    }

    /// Whether there are entries, and all lie before a punctuation.
    #[inline]
    pub(crate) fn is_passed(&self, punctuation: i64) -> bool {
        self.last_ts < punctuation && self.entries > 0
    }

    /// Whether nothing need be kept.
    pub(crate) fn is_idle(&self) -> bool {
        self.kept == 0 && self.entries == 0
    }

    /// Whether there is room for another entry.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        usize::from(self.starts + self.entries) < MOST_ROWS && usize::from(self.entries) < PAGE_ENTRIES
    }

    /// The rows of the entries.
    #[inline]
    pub(crate) fn stored(&self) -> &[u32] {
        let (from, count) = (usize::from(self.starts), usize::from(self.entries));
        &self.rows[from..][..count]
    }

    /// The start rows of the list after the last entry.
    #[inline]
    pub(crate) fn start_rows(&self) -> impl Iterator<Item = u32> {
        places(self.kept).map(|place| self.rows[place])
    }

    /// All entries go: the list after them is all that is left. They are added to `released`. The answer is how many
    /// words the list has.
    #[inline]
    pub(crate) fn settle(&mut self, released: &mut Vec<u32>) -> usize {
        match *self.stored() {
            [only] => released.push(only),
            ref several => released.extend_from_slice(several),
        }
        self.let_entries_go()
    }

    /// The same where they are not noted.
    #[inline]
    pub(crate) fn let_entries_go(&mut self) -> usize {
        let count = match self.rows.first_chunk_mut() {
            Some(near) if self.kept >> NEAR_ROWS == 0 => pack(near, self.kept),
            _ => self.pack_all(),
        };
        (self.starts, self.entries, self.entering) = (byte(count), 0, self.shape);
        (self.kept, self.last_ts) = ((1 << count) - 1, i64::MIN);
        count
    }

    #[inline(never)]
    fn pack_all(&mut self) -> usize {
        let mut count = 0;
        for place in places(self.kept) {
            self.rows[count] = self.rows[place];
            count += 1;
        }
        count
    }

    /// Adds an entry, for which there must be room, by a move to a shape; a window that begins with it closes then.
    #[inline]
    pub(crate) fn follow(&mut self, found: Move, shape: u32, (row, ts): (u32, i64), closes: i64) {
        let place = usize::from(self.starts + self.entries);
        let mut kept = u32::from(found.kept);
        if self.kept != (1 << place) - 1 {
            kept = spread(kept, self.kept);
        }
        self.rows[place] = row;
        self.kept = kept | u32::from(found.begins()) << place;
        self.entries += 1;
        (self.last_ts, self.shape) = (ts, shape);
        if found.is_fresh() {
            self.expires = closes;
        }
    }

    /// Words go that have expired for the next entry, which has to be added at once: the list that enters the page still
    /// has them.
    pub(crate) fn become_left(&mut self, left: &Left) {
        for _ in 0..left.gone {
            self.kept &= self.kept - 1;
        }
        (self.shape, self.expires) = (left.shape, left.expires);
    }

    /// What it was before its first entry.
    pub(crate) fn before_entries(&self, program: &Program, rows: &Rows) -> Self {
        let first = self.rows[..usize::from(self.starts)].first();
        Self {
            last_ts: i64::MIN,
            expires: first.map_or(i64::MAX, |row| expiry(program, rows, *row)),
            shape: self.entering,
            kept: (1 << self.starts) - 1,
            entries: 0,
            ..self.clone()
        }
    }

    /// What it is without some of the first entries; `after` is the list after these.
    pub(crate) fn without_first(&self, count: usize, after: &Self) -> Self {
        let mut rest = self.clone();
        let rows = after.start_rows().chain(self.stored()[count..].iter().copied());
        let (mut left, mut kept) = (self.start_rows().peekable(), 0);
        for (place, row) in rows.enumerate() {
            rest.rows[place] = row;
            kept |= u32::from(left.next_if_eq(&row).is_some()) << place;
        }
        debug_assert!(left.next().is_none(), "what is left began before");
        (rest.starts, rest.entries) = (byte(after.count()), self.entries - byte(count));
        (rest.kept, rest.entering) = (kept, after.shape);
        rest
    }

    /// Folds a key: the shapes of its lists, and when the first word expires. The answer is whether that was possible.
    fn fold(&mut self, key: &Key, shapes: (u32, u32), expires: i64) -> bool {
        let Ok(domain) = u16::try_from(key.domain()) else {
            return false;
        };
        let (list, page) = (key.lanes[0].list(), key.spine.pages.back());
        let entering = page.map_or(list, |page| page.entering[0].list());
        let count = page.map_or(0, Page::len);
        if entering.len() + count > MOST_ROWS {
            return false;
        }
        let rows = entering.iter().map(|word| start_row(*word));
        let rows = rows.chain(page.into_iter().flat_map(Page::rows));
        let (mut left, mut kept) = (list, 0);
        for (place, row) in rows.enumerate() {
            self.rows[place] = row;
            if let Some((first, others)) = left.split_first()
                && start_row(*first) == row
            {
                (left, kept) = (others, kept | 1 << place);
            }
        }
        if !left.is_empty() {
            return false;
        }
        (self.starts, self.entries) = (byte(entering.len()), byte(count));
        (self.kept, self.domain, self.expires) = (kept, domain, expires);
        (self.shape, self.entering) = shapes;
        self.last_ts = key.spine.last_ts().unwrap_or(i64::MIN);
        true
    }

    /// Gives the key back what it had, and is folded no more.
    fn unfold(&mut self, key: &mut Key, program: &Program, rows: &Rows) {
        let words = |starts: &mut dyn Iterator<Item = u32>, shape| -> List {
            let codes = program.shapes.codes_ever(shape);
            starts.zip(codes).map(|(row, code)| word(row, *code)).collect()
        };
        let lane = Lane::known(words(&mut self.start_rows(), self.shape), self.shape, self.expires);
        key.lanes = Lanes::from_elem(lane, 1);
        if self.entries > 0 {
            let starts = &self.rows[..usize::from(self.starts)];
            let list = words(&mut starts.iter().copied(), self.entering);
            let mut page = Page::new(Lanes::from_elem(Lane::known(list, self.entering, i64::MIN), 1));
            match *self.stored() {
                [only] => page.extend_run(only, 1, self.last_ts),
                ref several => {
                    page.list_run(rows);
                    for row in several {
                        page.push(rows.ts(*row), *row);
                    }
                }
            }
            key.spine.pages.push_back(page);
        }
        *self = Self::NOT;
    }
}

/// Brings rows whose bits are set to the front; the answer is how many they are. All are written, wherever the next one
/// belongs: to ask for each whether it stays would cost more, because that cannot be foreseen.
#[inline]
fn pack(rows: &mut [u32; NEAR_ROWS], kept: u32) -> usize {
    let mut count = 0;
    for (place, row) in (*rows).into_iter().enumerate() {
        rows[count % NEAR_ROWS] = row;
        count += (kept >> place & 1) as usize;
    }
    count
}

/// The bits of one number at the places of those that are set in another.
fn spread(bits: u32, over: u32) -> u32 {
    let (mut bits, mut all) = (bits, 0);
    for place in places(over) {
        all |= (bits & 1) << place;
        bits >>= 1;
    }
    all
}

/// The places of the bits that are set, in order.
#[inline]
fn places(mut bits: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = bits.trailing_zeros();
        bits &= bits.wrapping_sub(1);
        (place < u32::BITS).then_some(place as usize)
    })
}

#[allow(clippy::cast_possible_truncation)] // at most MOST_ROWS
fn byte(count: usize) -> u8 {
    count as u8
}

impl Engine {
    /// Folds a key, if its state is short; `punctuation` is that of its partition.
    #[inline(never)]
    pub(crate) fn fold_key(&mut self, number: usize, punctuation: i64) -> bool {
        let ([pattern], Some(key)) = (&self.lanes[..], self.keys[number].as_deref_mut()) else {
            return false;
        };
        let has_lanes = |page: &Page| page.entering.len() == 1;
        let is_simple = key.rare.is_none() && !key.degraded && key.spine.pages.is_alone();
        if !is_simple || !key.spine.pages.back().is_none_or(has_lanes) {
            return false;
        }
        if key.spine.last_ts().is_some_and(|last| last < punctuation)
            && let Some(page) = key.spine.pages.pop_front()
        {
            page.release(&mut self.rows);
        }
        let program = &mut self.programs[*pattern];
        let Some(shapes) = program.shapes_of(key) else {
            return false;
        };
        let first = key.lanes[0].list().first();
        let expires = first.map_or(i64::MAX, |word| expiry(program, &self.rows, start_row(*word)));
        if !self.folded[number].fold(key, shapes, expires) {
            return false;
        }
        key.spine.pages.pop_front();
        key.lanes[0].edit().clear();
        true
    }

    /// Unfolds a key, if it is folded.
    #[inline]
    pub(crate) fn unfold_key(&mut self, number: usize) {
        if self.folded[number].is_folded() {
            self.unfold(number);
        }
    }

    /// The same, if it belongs to another partition than this.
    pub(crate) fn unfold_key_of_other(&mut self, number: usize, domain: usize) {
        if self.folded[number].domain() != domain {
            self.unfold_key(number);
        }
    }

    #[inline(never)]
    fn unfold(&mut self, number: usize) {
        if let Some(key) = self.keys[number].as_deref_mut() {
            self.folded[number].unfold(key, &self.programs[self.lanes[0]], &self.rows);
        }
    }

    /// Unfolds all keys, for whoever looks at all of them.
    pub(crate) fn unfold_all(&mut self) {
        for number in 0..self.keys.len() {
            self.unfold_key(number);
        }
    }

    /// Lets the entries of a folded key go, if all lie before the punctuation.
    pub(crate) fn settle_folded(&mut self, number: usize, punctuation: i64) {
        let folded = &mut self.folded[number];
        if folded.is_passed(punctuation) {
            let mut released = Vec::new();
            folded.settle(&mut released);
            for row in released {
                self.rows.release(row);
            }
        }
    }

    /// Lets go of shapes that were forgotten, which folded keys may still have.
    pub(crate) fn forget_old_shapes(&mut self) {
        for pattern in 0..self.programs.len() {
            if self.programs[pattern].shapes.has_old() {
                self.unfold_all();
                self.programs[pattern].shapes.forget_old();
            }
        }
    }

    /// What is left of a folded key's list at an instant, if that has a shape.
    pub(crate) fn left_at(&mut self, number: usize, ts: i64) -> Option<Left> {
        left_of(&mut self.programs[self.lanes[0]], &self.rows, &self.folded[number], ts)
    }
}

/// The same of a list that is known.
pub(crate) fn left_of(program: &mut Program, rows: &Rows, folded: &Folded, ts: i64) -> Option<Left> {
    let is_closed = |row: &u32| is_closed(program, expiry(program, rows, *row), ts);
    let gone = folded.start_rows().take_while(is_closed).count();
    let first = folded.start_rows().nth(gone);
    let expires = first.map_or(i64::MAX, |row| expiry(program, rows, row));
    let mut codes = [DEAD; MOST_WORDS];
    let others = &program.shapes.codes_ever(folded.shape)[gone..];
    codes[..others.len()].copy_from_slice(others);
    let shape = program.shapes.shape_of_codes(codes)?;
    Some(Left { gone, shape, expires })
}

/// What is left of a list at an instant.
pub(crate) struct Left {
    /// So many of the first words have expired.
    pub(crate) gone: usize,
    /// The shape of the others.
    pub(crate) shape: u32,
    /// When the first of them expires.
    pub(crate) expires: i64,
}

impl Program {
    /// The shapes of a key's list and of the one that enters its page, if they have any.
    fn shapes_of(&mut self, key: &Key) -> Option<(u32, u32)> {
        let shape = self.shape_of_lane(&key.lanes[0])?;
        let entering = key.spine.pages.back().map(|page| &page.entering[0]);
        let entering = entering.map_or(Some(shape), |lane| self.shape_of_lane(lane))?;
        (self.shapes.has(shape) && self.shapes.has(entering)).then_some((shape, entering))
    }

    fn shape_of_lane(&mut self, lane: &Lane) -> Option<u32> {
        if self.shapes.has(lane.shape) {
            return Some(lane.shape);
        }
        self.shapes.shape_of(lane.list())
    }
}
