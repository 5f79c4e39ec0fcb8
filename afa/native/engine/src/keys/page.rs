//! A page: a stretch of a key's entries, and the lists of partial matches that enter it.

use smallvec::SmallVec;

use crate::lists::lane::Lanes;
use crate::lists::track::{Passed, Track};
use crate::predicates::class_reader::ClassReader;
use crate::rows::chunk::CHUNK_BITS;
use crate::rows::store::{Rows, parts};
use crate::rows::stretch::Stretch;

/// So many entries a page lists before appended ones go into the next. Small pages make late events cheap, large ones
/// save lists.
pub const PAGE_ENTRIES: usize = 16;
/// The most entries that a page lists. Late events fill what appended ones leave: to cut a page costs more than to step
/// over a few entries more.
pub const MOST_ENTRIES: usize = 40;

/// Listed entries: they may lie anywhere.
#[derive(Clone, Debug, Default)]
struct Entries {
    times: SmallVec<[i64; MOST_ENTRIES]>,
    rows: SmallVec<[u32; MOST_ENTRIES]>,
    /// Per lane, a bit per entry: AFA+O lets computations come from the entry before. Only where a pattern asks, and
    /// never in runs.
    links: Vec<u16>,
    /// By lane; only where late events came.
    tracks: SmallVec<[Track; 1]>,
}

/// A stretch of entries: a *run* of rows that follow each other in one chunk, as events in order do, or a list of rows.
#[derive(Clone, Debug)]
pub struct Page {
    length: u32,
    /// The first row of a run; its chunk has the times.
    first: u32,
    last_ts: i64,
    /// None: it is a run.
    listed: Option<Box<Entries>>,
    /// Per lane, the list of partial matches before the first entry.
    pub entering: Lanes,
}

/// So many entries has what stands where there is no page.
const NO_PAGE: u32 = u32::MAX;

impl Page {
    /// A run without entries.
    #[must_use]
    pub fn new(entering: Lanes) -> Self {
        Self {
            length: 0,
            first: 0,
            last_ts: i64::MIN,
            listed: None,
            entering,
        }
    }

    /// What stands where there is no page.
    #[must_use]
    pub fn none() -> Self {
        Self {
            length: NO_PAGE,
            ..Self::new(Lanes::new())
        }
    }

    /// Whether it only stands where there is no page.
    #[must_use]
    #[inline]
    pub fn is_none(&self) -> bool {
        self.length == NO_PAGE
    }

    /// How many entries it has.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.length as usize
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Whether its rows follow each other in one chunk.
    #[must_use]
    #[inline]
    pub fn is_run(&self) -> bool {
        self.listed.is_none()
    }

    /// The time of the last entry.
    #[must_use]
    #[inline]
    pub fn last_ts(&self) -> i64 {
        self.last_ts
    }

    /// The row of an entry.
    #[must_use]
    #[inline]
    pub fn row(&self, slot: usize) -> u32 {
        match &self.listed {
            #[allow(clippy::cast_possible_truncation)] // a run lies in one chunk
            None => self.first + slot as u32,
            Some(listed) => listed.rows[slot],
        }
    }

    /// Event time of an entry.
    #[must_use]
    #[inline]
    pub fn ts(&self, slot: usize, rows: &Rows) -> i64 {
        match &self.listed {
            None => rows.ts(self.row(slot)),
            Some(listed) => listed.times[slot],
        }
    }

    /// Event times of all entries.
    #[must_use]
    #[inline]
    pub fn times<'a>(&'a self, rows: &'a Rows) -> &'a [i64] {
        match &self.listed {
            None => {
                let (chunk, offset) = parts(self.first);
                &rows.chunk(chunk).times()[offset..offset + self.len()]
            }
            Some(listed) => &listed.times,
        }
    }

    /// The rows of all entries, as they are kept.
    #[must_use]
    #[inline]
    pub fn stretch(&self) -> Stretch<'_> {
        match &self.listed {
            None => Stretch::Run(self.first, self.len()),
            Some(listed) => Stretch::Listed(&listed.rows),
        }
    }

    /// The classes of some entries for a pattern that keeps them; those of a list are gathered first.
    #[inline]
    pub fn classes<'a>(
        &self,
        pattern: usize,
        (from, to): (usize, usize),
        rows: &'a Rows,
        gathered: &'a mut [u32; MOST_ENTRIES],
    ) -> &'a [u32] {
        match &self.listed {
            None => {
                let (chunk, offset) = parts(self.first);
                &rows.chunk(chunk).classes(pattern)[offset + from..offset + to]
            }
            Some(listed) => {
                let mut reader = ClassReader::new(rows, pattern);
                let (gathered, _) = gathered.split_at_mut(to - from);
                for (class, row) in gathered.iter_mut().zip(&listed.rows[from..to]) {
                    *class = reader.of(*row);
                }
                gathered
            }
        }
    }

    /// The rows of all entries.
    #[must_use]
    pub fn rows(&self) -> impl DoubleEndedIterator<Item = u32> + ExactSizeIterator + '_ {
        (0..self.len()).map(|slot| self.row(slot))
    }

    /// Times and rows of the entries from a slot on.
    pub fn entries<'a>(&'a self, from: usize, rows: &'a Rows) -> impl Iterator<Item = (i64, u32)> + 'a {
        (from..self.len()).map(|slot| (self.ts(slot, rows), self.row(slot)))
    }

    /// How many appended entries may be listed yet.
    #[must_use]
    pub fn room(&self) -> usize {
        if self.is_run() {
            0
        } else {
            PAGE_ENTRIES.saturating_sub(self.len())
        }
    }

    /// Whether a late entry may be listed.
    #[must_use]
    #[inline]
    pub fn takes_late(&self) -> bool {
        !self.is_run() && self.len() < MOST_ENTRIES
    }

    /// Adds an entry to a list that has room.
    ///
    /// # Panics
    /// If it is a run.
    #[inline]
    pub fn push(&mut self, ts: i64, row: u32) {
        let listed = self.listed.as_mut().expect("a list");
        listed.times.push(ts);
        listed.rows.push(row);
        self.last_ts = ts;
        self.length += 1;
    }

    /// Becomes a list of these entries, whatever it was.
    #[allow(clippy::cast_possible_truncation)] // entries of a page
    pub(crate) fn list(&mut self, times: &[i64], rows: &[u32]) {
        self.clear();
        let Some(last_ts) = times.last() else {
            return;
        };
        let listed = self.listed.get_or_insert_default();
        listed.times.extend_from_slice(times);
        listed.rows.extend_from_slice(rows);
        (self.length, self.last_ts) = (rows.len() as u32, *last_ts);
    }

    /// How many rows that follow each other it takes from one on without becoming anything else.
    #[inline]
    pub(crate) fn takes(&self, first: u32, longest_run: usize) -> usize {
        if !self.is_run() {
            return self.room();
        }
        if self.continues_with(first) {
            longest_run.saturating_sub(self.len())
        } else {
            0
        }
    }

    /// Adds rows that follow each other, and that it takes.
    #[inline]
    pub(crate) fn push_run(&mut self, first: u32, times: &[i64]) {
        let Some(last_ts) = times.last() else {
            return;
        };
        let Some(listed) = &mut self.listed else {
            return self.extend_run(first, times.len(), *last_ts);
        };
        for (ts, row) in times.iter().zip(first..) {
            listed.times.push(*ts);
            listed.rows.push(row);
            self.length += 1;
        }
        self.last_ts = *last_ts;
    }

    /// Makes an empty run longer, or one that goes on with this row, by rows up to one of this time.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // a run lies in one chunk
    pub fn extend_run(&mut self, first: u32, count: usize, last_ts: i64) {
        if self.length == 0 {
            self.first = first;
        }
        self.length += count as u32;
        self.last_ts = last_ts;
    }

    /// Begins anew as a run of one row; all entries before it lie in the past, and the lists have to be brought in.
    #[inline]
    pub fn begin_anew(&mut self, row: u32, ts: i64) {
        (self.length, self.first, self.last_ts) = (1, row, ts);
        if self.listed.is_some() {
            self.listed = None;
        }
    }

    /// Whether a run may go on with this row.
    #[must_use]
    #[inline]
    pub fn continues_with(&self, row: u32) -> bool {
        self.is_run() && row == self.first + self.length && parts(row).0 == parts(self.first).0
    }

    /// Lists the entries of a run, which must be few enough.
    pub fn list_run(&mut self, rows: &Rows) {
        if !self.is_run() {
            return;
        }
        let mut listed = Box::<Entries>::default();
        if self.length > 0 {
            let ((chunk, offset), length) = (parts(self.first), self.len());
            let times = &rows.chunk(chunk).times()[offset..offset + length];
            listed.times.extend_from_slice(times);
            listed.rows.extend(self.first..self.first + self.length);
        }
        self.listed = Some(listed);
    }

    /// Puts an entry at a slot of a list; there must be room.
    ///
    /// # Panics
    /// If it is a run.
    pub fn insert(&mut self, slot: usize, ts: i64, row: u32) {
        let listed = self.listed.as_mut().expect("a list");
        listed.times.insert(slot, ts);
        listed.rows.insert(slot, row);
        if slot == self.len() {
            self.last_ts = ts;
        }
        self.length += 1;
    }

    /// Takes the entries from a slot on into a page of their own, which is entered by these lists.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)] // a slot of a page
    pub fn split_off(&mut self, slot: usize, entering: Lanes, rows: &Rows) -> Self {
        let mut upper = Self::new(entering);
        (upper.length, upper.last_ts) = (self.length - slot as u32, self.last_ts);
        self.last_ts = self.ts(slot - 1, rows);
        if let Some(listed) = &mut self.listed {
            let above = Entries {
                times: listed.times.drain(slot..).collect(),
                rows: listed.rows.drain(slot..).collect(),
                links: Vec::new(),
                tracks: listed.tracks.iter_mut().map(|track| track.split_off(slot)).collect(),
            };
            upper.listed = Some(Box::new(above));
        } else {
            upper.first = self.row(slot);
        }
        self.length = slot as u32;
        upper
    }

    /// An empty list in the place of whatever it was.
    pub fn clear(&mut self) {
        self.length = 0;
        let listed = self.listed.get_or_insert_default();
        listed.times.clear();
        listed.rows.clear();
        listed.links.fill(0);
        listed.tracks.clear();
    }

    /// How a lane has passed the entries, as far as that is noted and whatever it was noted under.
    #[inline]
    pub(crate) fn steps(&self, lane: usize) -> &[Passed] {
        let track = self.listed.as_ref().and_then(|listed| listed.tracks.get(lane));
        track.map_or(&[], Track::steps)
    }

    /// Takes the track of a lane out; none is kept of a run.
    #[inline]
    pub(crate) fn take_track(&mut self, lane: usize) -> Track {
        let tracks = self.listed.as_mut().map(|listed| &mut listed.tracks);
        let track = tracks.and_then(|tracks| tracks.get_mut(lane));
        track.map(std::mem::take).unwrap_or_default()
    }

    /// Puts it back.
    #[inline]
    pub(crate) fn put_track(&mut self, lane: usize, track: Track) {
        if let Some(listed) = &mut self.listed {
            if listed.tracks.len() <= lane {
                listed.tracks.resize_with(lane + 1, Track::default);
            }
            listed.tracks[lane] = track;
        }
    }

    /// Forgets how a lane has passed the entries from a slot on.
    pub(crate) fn forget_track(&mut self, lane: usize, slot: usize) {
        let tracks = self.listed.as_mut().map(|listed| &mut listed.tracks);
        if let Some(track) = tracks.and_then(|tracks| tracks.get_mut(lane)) {
            track.truncate(slot);
        }
    }

    /// Whether AFA+O lets computations come to an entry from the one before.
    #[must_use]
    pub fn is_linked(&self, lane: usize, slot: usize) -> bool {
        let links = self.listed.as_ref().and_then(|listed| listed.links.get(lane));
        links.is_some_and(|links| links >> slot & 1 != 0)
    }

    /// Says so, or not.
    ///
    /// # Panics
    /// If it is a run.
    pub fn set_link(&mut self, lane: usize, slot: usize, linked: bool) {
        let links = &mut self.listed.as_mut().expect("a list").links;
        if links.len() <= lane {
            links.resize(lane + 1, 0);
        }
        let bit = 1 << slot;
        links[lane] = links[lane] & !bit | if linked { bit } else { 0 };
    }

    /// Notes in their chunks that its entries are gone.
    pub fn release(&self, rows: &mut Rows) {
        if rows.has_other_seqs() {
            self.rows().for_each(|row| rows.release(row));
        } else {
            self.each_chunk(|chunk, count| rows.release_run(chunk, count));
        }
    }

    /// Visits the chunks of its entries, with how many entries in a row are there.
    #[inline]
    pub fn each_chunk(&self, mut visit: impl FnMut(usize, usize)) {
        let Some(listed) = &self.listed else {
            return visit(parts(self.first).0, self.len());
        };
        let Some(first) = listed.rows.first() else {
            return;
        };
        // Mostly all of them are of one, which is seen sooner than where the next begins.
        if listed.rows.iter().fold(0, |others, row| others | (row ^ first)) >> CHUNK_BITS == 0 {
            return visit(parts(*first).0, self.len());
        }
        for same in listed.rows.chunk_by(|row, next| parts(*row).0 == parts(*next).0) {
            visit(parts(same[0]).0, same.len());
        }
    }
}
