//! Records of one source look alike: between the values stand the same bytes. They are learnt from a record that was
//! parsed in full, and compared eight at a time; only the values are parsed. A record that differs is parsed in full.
//!
//! This accepts nothing else: the bytes between the values are whole tokens, so a record with the same ones and good
//! values in their places is read as the learnt one was.

use super::json::{Failed, Parser};
use super::shape::{Node, Shape, Target, first_word};

/// A record with more values is not learnt.
const MOST_VALUES: usize = 64;
/// The longest pause before learning again is two to this power.
const MOST_MISSES: u32 = 7;

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
}

/// The last record that was learnt.
#[derive(Default)]
pub(super) struct Template {
    steps: Vec<Step>,
    tail: Literal,
    words: Vec<(u64, u64)>,
    /// Mappings that are wanted as such, or for what is in them.
    mappings: Vec<Target>,
    /// Whether the bytes between the values are ASCII.
    ascii: bool,
    ready: bool,
    misses: u32,
    pause: u32,
    pub(super) traced: Vec<Traced>,
    pub(super) entered: Vec<Target>,
}

impl Template {
    pub(super) fn is_ready(&self) -> bool {
        self.ready
    }

    pub(super) fn hit(&mut self) {
        self.misses = 0;
    }

    /// The template did not fit: a single odd record costs little, and a source without a common shape is left alone.
    #[cold]
    pub(super) fn miss(&mut self) {
        self.ready = false;
        self.misses = MOST_MISSES.min(self.misses + 1);
        self.pause = (1 << self.misses) - 2;
    }

    /// Whether the next full parse shall be traced.
    pub(super) fn begin_learning(&mut self) -> bool {
        self.traced.clear();
        self.entered.clear();
        let learns = self.pause == 0;
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
        self.ascii = true;
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
            });
            after = traced.end;
        }
        self.tail = self.literal(&bytes[after..end]);
        std::mem::swap(&mut self.mappings, &mut self.entered);
        self.ready = true;
    }

    fn literal(&mut self, bytes: &[u8]) -> Literal {
        self.ascii &= bytes.is_ascii();
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

impl Parser<'_> {
    /// Reads a record that fits the template; if it says no, what has been captured means nothing.
    pub(super) fn follow(&mut self, template: &Template, shape: &Shape) -> bool {
        let mut at = 0;
        for step in &template.steps {
            if !self.matches(template, step.before, at) {
                return false;
            }
            at += step.before.length;
            let Ok(after) = self.value_in_place(at, step, shape) else {
                return false;
            };
            at = after;
        }
        if at + template.tail.length != self.end() || !self.matches(template, template.tail, at) {
            return false;
        }
        for mapping in &template.mappings {
            self.capture.store_mapping(*mapping);
        }
        if !template.ascii {
            self.union = u64::MAX;
        }
        self.check_characters().is_ok()
    }

    #[inline]
    fn matches(&self, template: &Template, literal: Literal, at: usize) -> bool {
        let (word, mask) = literal.first;
        if self.word(at) & mask != word {
            return false;
        }
        if literal.length <= 8 {
            return true;
        }
        let words = template.words.get(literal.begin..literal.end).unwrap_or_default();
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
