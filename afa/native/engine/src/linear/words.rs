//! What linear patterns look for, as one tree: what several of them begin with is looked at once for all.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use crate::linear::nodes::{Ends, Followers, NodeSet, ROOT};
use crate::lists::configuration::Configuration;
use crate::program::compiled::Program;
use crate::program::pattern::Window;

/// No word ends at this node.
const NO_WORD: u32 = u32::MAX;

/// A step behind others.
#[derive(Clone, Copy, Debug)]
struct Node {
    /// The steps before it; they stand before it in the tree.
    before: u32,
    /// Its column, as a place in [`Words::columns`].
    column: u32,
}

/// A pattern that looks for a word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seeker {
    pub(crate) pattern: usize,
    /// The length of its window.
    pub(crate) window: i64,
    pub(crate) configuration: u32,
}

/// A word that patterns look for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word {
    pub(crate) steps: usize,
    /// The node of its last step.
    last: u32,
    /// Its patterns, as places in [`Words::seekers`].
    begin: u32,
    end: u32,
}

/// The words that end within 64 events, by number, event by event.
#[derive(Debug)]
pub(crate) struct Hits {
    words: Vec<u32>,
    /// By event: where its words begin.
    begins: [u32; 65],
}

impl Default for Hits {
    fn default() -> Self {
        Self {
            words: Vec::new(),
            begins: [0; 65],
        }
    }
}

impl Hits {
    /// Those of an event.
    pub(crate) fn at(&self, event: usize) -> &[u32] {
        &self.words[self.begins[event] as usize..self.begins[event + 1] as usize]
    }

    /// Sorts words with their ends by event.
    fn sort(&mut self, found: &[(u32, u64)]) {
        self.begins = [0; 65];
        for (_, ends) in found {
            each_bit(*ends, |event| self.begins[event + 1] += 1);
        }
        for event in 0..64 {
            self.begins[event + 1] += self.begins[event];
        }
        let mut next = self.begins;
        self.words.resize(self.begins[64] as usize, 0);
        for (word, ends) in found {
            each_bit(*ends, |event| {
                self.words[next[event] as usize] = *word;
                next[event] += 1;
            });
        }
    }
}

#[inline]
pub(crate) fn each_bit(mut bits: u64, mut act: impl FnMut(usize)) {
    while bits != 0 {
        act(bits.trailing_zeros() as usize);
        bits &= bits - 1;
    }
}

/// The tree, as long as the same arcs are alive.
#[derive(Debug, Default)]
pub(crate) struct Words {
    /// The distinct columns.
    pub(crate) columns: Vec<u32>,
    /// By word, then by pattern.
    seekers: Vec<Seeker>,
    list: Vec<Word>,
    /// Patterns with arcs that come or go between the events.
    pub(crate) changing: Vec<usize>,
    nodes: Vec<Node>,
    /// What it was made for: the version of all arcs, and how many patterns.
    made_for: Option<(u64, usize)>,
    /// In this stretch of time.
    from: i64,
    until: i64,
    followers: Followers,
    /// What ends among 64 events, and among the 64 before them.
    now: Ends,
    before: Ends,
    /// Nodes to be looked at.
    candidates: NodeSet,
    /// By node: the word that ends there, or `NO_WORD`.
    word_of: Vec<u32>,
    /// Words that end among 64 events, and where.
    found: Vec<(u32, u64)>,
}

impl Words {
    /// Arcs have changed, or numbers of configurations mean something else now.
    pub(crate) fn forget(&mut self) {
        self.made_for = None;
    }

    /// Sees to it that the tree is that of these patterns for events from one time to another.
    pub(crate) fn ready(&mut self, programs: &mut [Program], linear: &[usize], version: u64, first: i64, last: i64) {
        let is_known = self.made_for == Some((version, linear.len())) && self.changing.is_empty();
        if is_known && self.from <= first && last <= self.until {
            return;
        }
        self.made_for = Some((version, linear.len()));
        self.grow(programs, linear, first, last);
        let nodes = self.nodes.iter().map(|node| (node.before, node.column));
        self.followers = Followers::new(nodes, self.columns.len());
        self.now.resize(self.nodes.len());
        self.before.resize(self.nodes.len());
        self.candidates.resize(self.nodes.len());
        self.word_of.clear();
        self.word_of.resize(self.nodes.len(), NO_WORD);
        for (place, word) in self.list.iter().enumerate() {
            self.word_of[word.last as usize] = index(place);
        }
        self.found.resize(self.list.len(), (0, 0));
    }

    fn grow(&mut self, programs: &mut [Program], linear: &[usize], first: i64, last: i64) {
        (self.from, self.until) = (first, i64::MAX);
        self.columns.clear();
        self.changing.clear();
        self.nodes.clear();
        self.nodes.push(Node {
            before: ROOT,
            column: 0,
        });
        let mut known = HashMap::default();
        let mut ends: Vec<(u32, usize, Seeker)> = Vec::with_capacity(linear.len());
        for pattern in linear {
            let program = &mut programs[*pattern];
            let until = program.alive_until(first);
            if until < last {
                self.changing.push(*pattern);
                continue;
            }
            self.until = self.until.min(until);
            let alive = program.alive(program.alive_at(first));
            if let Window::Time(window) = program.window
                && !alive.bodies.is_empty()
            {
                let (node, steps) = (self.last_node(&alive.columns, &mut known), alive.columns.len());
                let seeker = Seeker {
                    pattern: *pattern,
                    window,
                    configuration: program.last_configuration(),
                };
                ends.push((node, steps, seeker));
            }
        }
        ends.sort_by_key(|(node, ..)| *node);
        self.group(&ends);
    }

    /// The node after these steps, made if there is none.
    fn last_node(&mut self, columns: &[u32], known: &mut HashMap<(u32, u32), u32, FixedState>) -> u32 {
        columns.iter().fold(ROOT, |before, column| {
            *known.entry((before, *column)).or_insert_with(|| {
                let column = place_of(&mut self.columns, *column);
                self.nodes.push(Node { before, column });
                index(self.nodes.len() - 1)
            })
        })
    }

    /// Patterns by word, from their last nodes, steps and themselves.
    fn group(&mut self, ends: &[(u32, usize, Seeker)]) {
        self.seekers.clear();
        self.seekers.extend(ends.iter().map(|(.., seeker)| *seeker));
        self.list.clear();
        for same in ends.chunk_by(|a, b| a.0 == b.0) {
            let begin = self.list.last().map_or(0, |word| word.end);
            self.list.push(Word {
                steps: same[0].1,
                last: same[0].0,
                begin,
                end: begin + index(same.len()),
            });
        }
    }

    /// A word, and the patterns that look for it in order.
    pub(crate) fn word(&self, number: u32) -> (Word, &[Seeker]) {
        let word = self.list[number as usize];
        (word, &self.seekers[word.begin as usize..word.end as usize])
    }

    /// What comes next has nothing before it.
    pub(crate) fn begin(&mut self) {
        self.before.clear();
        self.now.clear();
    }

    /// Takes the next 64 events, which take the steps of columns as `triggers` says, and puts into `hits` what ends at
    /// those of the mask; false if nothing does.
    pub(crate) fn take(&mut self, triggers: &[u64], mask: u64, hits: &mut Hits) -> bool {
        std::mem::swap(&mut self.now, &mut self.before);
        self.now.note_all();
        let (ends, ends_before) = (&mut self.now.bits, &self.before.bits);
        for (place, node) in self.nodes.iter().enumerate().skip(1) {
            let before = node.before as usize;
            let shifted = ends[before] << 1 | ends_before[before] >> 63;
            ends[place] = shifted & triggers[node.column as usize];
        }
        let mut count = 0;
        for (place, word) in self.list.iter().enumerate() {
            let ends = ends[word.last as usize] & mask;
            // Always written, because it cannot be foreseen which words end here.
            self.found[count] = (index(place), ends);
            count += usize::from(ends != 0);
        }
        if count > 0 {
            hits.sort(&self.found[..count]);
        }
        count > 0
    }

    /// The same if few columns are active. Looks only at nodes with such a column and, where many have the same one, with
    /// steps before them that end.
    pub(crate) fn take_few(&mut self, triggers: &[u64], active: &[u32], mask: u64, hits: &mut Hits) -> bool {
        std::mem::swap(&mut self.now, &mut self.before);
        self.now.clear();
        for column in active {
            self.candidates.add(self.followers.of_column(*column));
        }
        self.candidates.add(self.followers.of_node(ROOT));
        for node in self.before.nodes() {
            if self.before.bits[node as usize] >> 63 != 0 {
                self.candidates.add(self.followers.of_node(node));
            }
        }
        let mut count = 0;
        let mut from = 0;
        // What is added comes after what it follows.
        while let Some(node) = self.candidates.take_from(&mut from) {
            let Node { before, column } = self.nodes[node as usize];
            let shifted = self.now.bits[before as usize] << 1 | self.before.bits[before as usize] >> 63;
            let ends = shifted & triggers[column as usize];
            if ends == 0 {
                continue;
            }
            self.now.put(node, ends);
            self.candidates.add(self.followers.of_node(node));
            let word = self.word_of[node as usize];
            if word != NO_WORD && ends & mask != 0 {
                self.found[count] = (word, ends & mask);
                count += 1;
            }
        }
        if count > 0 {
            hits.sort(&self.found[..count]);
        }
        count > 0
    }
}

/// Where a column stands among others, at their end if it is new.
fn place_of(columns: &mut Vec<u32>, column: u32) -> u32 {
    let known = columns.iter().position(|known| *known == column);
    index(known.unwrap_or_else(|| {
        columns.push(column);
        columns.len() - 1
    }))
}

impl Program {
    /// The only final configuration of a linear pattern.
    pub(crate) fn last_configuration(&mut self) -> u32 {
        if let Some(known) = self.last_configuration {
            return known;
        }
        let state = *self.chain.last().expect("a linear pattern");
        let number = self.sets.configuration_number(Configuration {
            state,
            registers: std::sync::Arc::new([]),
        });
        self.last_configuration = Some(number);
        number
    }
}

#[allow(clippy::cast_possible_truncation)] // limited by max_program_arcs
fn index(place: usize) -> u32 {
    place as u32
}
