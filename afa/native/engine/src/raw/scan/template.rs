//! Records of one source look alike: between the values stand the same bytes. They are learnt from a record that was
//! parsed in full, and compared eight at a time; only the values are parsed. A record that differs is parsed in full.
//!
//! This accepts nothing else: the bytes between the values are whole tokens, so a record with the same ones and good
//! values in their places is read as the learnt one was.

use super::capture::Capture;
use super::frame::{Candidate, Frame, Placed};
use super::json::{Failed, Parser};
use super::records::Padded;
use super::shape::{Node, Part, Shape, Target, first_word};

/// A record with more values is not learnt.
const MOST_VALUES: usize = 64;
/// So many records in a row may differ before the template is given up.
const KEPT_MISSES: u32 = 3;
/// The longest pause before learning again is two to the power of those above.
const MOST_MISSES: u32 = KEPT_MISSES + 7;
/// The most frames at once.
const MOST_FRAMES: usize = 4;
/// Frames have to pay. What a record that fits one saves, and what making one costs, in units of what it costs to find
/// that a record does not fit one.
const FRAME_WORTH: u32 = 2;
const FRAME_COST: u32 = 16;
const MOST_CREDIT: u32 = 16 * FRAME_COST;
/// If nothing is left, so many records are read without, and then frames have another chance.
const FRAME_PAUSE: u32 = 512;
const NEW_CREDIT: u32 = 3 * FRAME_COST;

/// A value as it was met in a full parse.
#[derive(Clone, Copy)]
pub(super) struct Traced {
    pub(super) begin: usize,
    pub(super) end: usize,
    /// None: nobody wants it.
    pub(super) node: Option<u32>,
    pub(super) depth: usize,
}

/// Bytes between values: the first eight with a mask, and the rest as a range of `Template::words`.
#[derive(Clone, Copy, Default)]
struct Literal {
    first: (u64, u64),
    begin: usize,
    end: usize,
    length: usize,
}

/// What comes before a value, and the value.
struct Step {
    before: Literal,
    target: Target,
    node: Option<u32>,
    depth: usize,
    /// Where it stood in the last record that fitted.
    begin: usize,
    end: usize,
}

/// The last record that was learnt.
#[derive(Default)]
pub(super) struct Template {
    steps: Vec<Step>,
    tail: Literal,
    words: Vec<(u64, u64)>,
    /// Mappings that are wanted as such, or for what is in them.
    mappings: Vec<Target>,
    /// Whether none of these is where a part of the head should be.
    has_plain_mappings: bool,
    /// The union of all bytes between the values.
    union: u64,
    ready: bool,
    /// Whether the last record was not read with the template, and something else has been captured.
    is_stale: bool,
    /// Widths that records had.
    frames: Vec<Frame>,
    next_frame: usize,
    /// The one that the last record fitted.
    last_frame: usize,
    /// What may be spent on frames.
    credit: u32,
    /// How many records were read without.
    unframed: u32,
    misses: u32,
    pause: u32,
    pub(super) traced: Vec<Traced>,
    pub(super) entered: Vec<Target>,
}

impl Template {
    pub(super) fn is_ready(&self) -> bool {
        self.ready
    }

    /// Records that have the key of this one, which was read by a frame, may be read by `read_alike`.
    #[inline]
    pub(super) fn learn_key(&mut self, record: &[u8]) {
        if let Some(frame) = self.frames.get_mut(self.last_frame) {
            frame.learn_key(record);
        }
    }

    /// The template did not fit: a few odd records cost little, and a source without a common shape is left alone.
    #[cold]
    fn miss(&mut self) {
        self.misses = MOST_MISSES.min(self.misses + 1);
        if self.misses > KEPT_MISSES {
            self.ready = false;
            self.pause = (1 << (self.misses - KEPT_MISSES)) - 2;
        }
    }

    /// A record fits a frame, but none before it.
    #[inline]
    fn earn(&mut self, frame: usize) {
        let tries = u32::try_from(frame).unwrap_or(u32::MAX);
        self.credit = MOST_CREDIT.min(self.credit + FRAME_WORTH).saturating_sub(tries);
    }

    /// A record fits the template, but no frame: perhaps another one is made.
    #[inline]
    fn without_frame(&mut self, record: &[u8]) {
        if self.credit >= FRAME_COST {
            self.credit -= FRAME_COST;
            self.make_frame(record);
        } else if self.credit > 0 {
            self.credit -= 1;
        } else {
            self.unframed += 1;
            if self.unframed == FRAME_PAUSE {
                (self.unframed, self.credit) = (0, NEW_CREDIT);
            }
        }
    }

    #[cold]
    fn make_frame(&mut self, record: &[u8]) {
        let placed = self.steps.iter().map(|step| Placed {
            begin: step.begin,
            end: step.end,
            target: step.target,
        });
        let Some(frame) = Frame::of(record, placed) else {
            return;
        };
        if self.frames.len() < MOST_FRAMES {
            self.frames.push(frame);
        } else {
            self.frames[self.next_frame] = frame;
            self.next_frame = (self.next_frame + 1) % MOST_FRAMES;
        }
    }

    /// Whether the next full parse shall be traced.
    pub(super) fn begin_learning(&mut self) -> bool {
        self.traced.clear();
        self.entered.clear();
        self.is_stale = true;
        let learns = !self.ready && self.pause == 0;
        self.pause = self.pause.saturating_sub(1);
        learns
    }

    /// Learns from a good record of `end` bytes that has been traced.
    pub(super) fn learn(&mut self, bytes: &[u8], end: usize, shape: &Shape) {
        if self.traced.len() > MOST_VALUES {
            self.misses = MOST_MISSES;
            self.miss();
            return;
        }
        self.steps.clear();
        self.words.clear();
        self.union = 0;
        let mut after = 0;
        for index in 0..self.traced.len() {
            let traced = self.traced[index];
            let before = self.literal(&bytes[after..traced.begin]);
            self.steps.push(Step {
                before,
                target: traced
                    .node
                    .map_or(Target::NOTHING, |node| shape.nodes[node as usize].target),
                node: traced.node,
                depth: traced.depth,
                begin: traced.begin,
                end: traced.end,
            });
            after = traced.end;
        }
        self.tail = self.literal(&bytes[after..end]);
        std::mem::swap(&mut self.mappings, &mut self.entered);
        let is_plain = |target: &Target| !target.is_part() || *target == Target::part(Part::Data);
        self.has_plain_mappings = self.mappings.iter().all(is_plain);
        (self.ready, self.is_stale) = (true, false);
        self.frames.clear();
        (self.next_frame, self.credit) = (0, MOST_CREDIT);
        self.make_frame(&bytes[..end]);
    }

    fn literal(&mut self, bytes: &[u8]) -> Literal {
        self.union = bytes
            .chunks(8)
            .fold(self.union, |union, bytes| union | first_word(bytes));
        let begin = self.words.len();
        let (first, rest) = bytes.split_at(bytes.len().min(8));
        self.words.extend(rest.chunks(8).map(masked));
        Literal {
            first: masked(first),
            begin,
            end: self.words.len(),
            length: bytes.len(),
        }
    }
}

/// Up to eight bytes as they would be loaded from memory, and a mask for them.
fn masked(bytes: &[u8]) -> (u64, u64) {
    let mut mask = [0; 8];
    mask[..bytes.len()].fill(0xff);
    (first_word(bytes), u64::from_le_bytes(mask))
}

/// How a record was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// By a frame in which nothing of a head stands but the key as a text and the time.
    Plain,
    /// In any other way.
    Full,
}

impl Template {
    /// Reads a record that fits the template; if it does not, what has been captured means nothing.
    #[inline]
    pub(super) fn read(&mut self, record: Padded<'_>, shape: &Shape, capture: &mut Capture) -> Option<Read> {
        if self.is_stale {
            capture.clear();
            self.is_stale = false;
        }
        if let Some(frame) = self.fitting(record, shape, capture) {
            self.store_mappings(capture);
            self.misses = 0;
            self.earn(frame);
            self.last_frame = frame;
            let is_plain = self.frames[frame].is_plain() && self.has_plain_mappings;
            return Some(if is_plain { Read::Plain } else { Read::Full });
        }
        if Parser::new(record, shape, capture).follow(self, shape) {
            self.store_mappings(capture);
            self.misses = 0;
            self.without_frame(record.record());
            return Some(Read::Full);
        }
        self.miss();
        None
    }

    /// The frame that a record fits.
    #[inline]
    fn fitting(&self, record: Padded<'_>, shape: &Shape, capture: &mut Capture) -> Option<usize> {
        if self.credit == 0 {
            return None;
        }
        let union = self.union;
        let fits = |frame: &Frame| Candidate::new(record, shape, capture, union).fits(frame);
        self.frames.iter().position(fits)
    }

    /// Reads a record that fits the frame of the last one and has the key that the frame knows.
    #[inline]
    pub(super) fn read_alike(&self, record: Padded<'_>, shape: &Shape, capture: &mut Capture) -> bool {
        let frame = self.frames.get(self.last_frame);
        frame.is_some_and(|frame| Candidate::new(record, shape, capture, self.union).fits_with_key(frame))
    }

    #[inline]
    fn store_mappings(&self, capture: &mut Capture) {
        for mapping in &self.mappings {
            capture.store_mapping(*mapping);
        }
    }
}

impl Parser<'_> {
    /// Value by value, each of any width.
    fn follow(&mut self, template: &mut Template, shape: &Shape) -> bool {
        self.union = template.union;
        let (mut at, words) = (0, &template.words);
        for step in &mut template.steps {
            if !self.matches(words, step.before, at) {
                return false;
            }
            at += step.before.length;
            step.begin = at;
            let Ok(after) = self.value_in_place(at, step, shape) else {
                return false;
            };
            step.end = after;
            at = after;
        }
        if at + template.tail.length != self.end() || !self.matches(words, template.tail, at) {
            return false;
        }
        self.check_characters().is_ok()
    }

    #[inline]
    fn matches(&self, words: &[(u64, u64)], literal: Literal, at: usize) -> bool {
        let (word, mask) = literal.first;
        if self.word(at) & mask != word {
            return false;
        }
        if literal.length <= 8 {
            return true;
        }
        let words = words.get(literal.begin..literal.end).unwrap_or_default();
        let mut at = at + 8;
        for (word, mask) in words {
            if self.word(at) & mask != *word {
                return false;
            }
            at += 8;
        }
        true
    }

    /// The value of a step: mostly a number or a text.
    #[inline]
    fn value_in_place(&mut self, at: usize, step: &Step, shape: &Shape) -> Result<usize, Failed> {
        match self.byte(at) {
            b'-' | b'0'..=b'9' => self.number(at, step.target),
            b'"' if step.target != Target::NOTHING => self.text(at, step.target),
            _ => match step.node {
                None => self.skip(at, step.depth),
                Some(node) => self.value_without_names(at, &shape.nodes[node as usize], step.depth),
            },
        }
    }

    /// A wanted value as the template knows it: no mapping in which something is wanted.
    fn value_without_names(&mut self, at: usize, node: &Node, depth: usize) -> Result<usize, Failed> {
        if node.has_names() && self.byte(at) == b'{' {
            return Err(Failed);
        }
        self.value(at, node, depth)
    }
}
