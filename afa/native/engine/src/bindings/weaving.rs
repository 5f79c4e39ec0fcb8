//! The ways of all matches that end with one event, walked back together.
//!
//! On the way back from the end all that matters is which configurations the matches may have come through. So ways
//! that have bound the same until there are one, whatever runs they belong to, and ways that have come to the same
//! configurations go on as one branch: there are as many branches as there are such sets, however many matches.

use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::HashMap;

use foldhash::fast::FixedState;
use smallvec::SmallVec;

use crate::bindings::folding::{Behind, Binding, Nodes, Stage, TooLarge};
use crate::bindings::layers::{Layer, Move, number};
use crate::bindings::tries::{Letter, Trie, Word};
use crate::rows::store::Rows;

/// Start events that count, by their layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    first: u32,
    last: u32,
}

impl Span {
    /// The layers between two, as far as they come before an end. Of all until there it is not said where that is.
    pub(crate) fn new(first: u32, last: u32, end: u32) -> Self {
        Self {
            first,
            last: if last == end { u32::MAX } else { last },
        }
    }
}

/// A configuration on the way back, and the number of the span in which its ways may begin.
pub(crate) type Reached = (u32, u32);
/// Where ways have come to, in order.
type Reach = SmallVec<[Reached; 4]>;

/// Walks back from one end after the other: what ways of several ends have in common is walked once.
pub(crate) struct Weaver<'a> {
    rows: &'a Rows,
    layers: &'a [Layer],
    /// Whether runs may bind events of one time in another order than that in which a match lists them.
    reorders: bool,
    /// There may be no more bindings on the ways of one end.
    most: usize,
    spans: Vec<Span>,
    /// By layer, what ways have come to before it.
    before: Vec<Reaches>,
    /// By layer, how ways go back over it, once they do.
    steps: Vec<OnceCell<Box<[Step]>>>,
    pub(crate) nodes: Nodes,
}

/// How a way goes back over an event.
struct Step {
    /// The configuration behind the event.
    to: u32,
    binds: Option<u16>,
    /// The configuration before it.
    from: u32,
    /// The layer of the newest event that such ways began with.
    newest: u32,
}

/// What a layer leads back to.
#[derive(Default)]
struct Pulled {
    /// By what the event is bound to, in order.
    before: SmallVec<[(Option<u16>, Reached); 4]>,
    /// The variables that a match may begin with here, in order.
    starts: SmallVec<[u16; 2]>,
}

/// What ways have come to before a layer.
#[derive(Clone, Default)]
struct Reaches {
    known: Vec<Reach>,
    /// Their numbers, once there are many.
    numbers: HashMap<Reach, u32, FixedState>,
    /// The nodes that are before, as far as ways have been walked.
    lists: Vec<u32>,
}

impl Reaches {
    /// Fewer are looked at one by one.
    const FEW: usize = 8;

    fn number(&mut self, reach: Reach) -> Behind {
        if reach.is_empty() {
            return Behind::Nothing;
        }
        if self.known.len() == Self::FEW && self.numbers.is_empty() {
            self.numbers = self.known.iter().cloned().zip(0..).collect();
        }
        let known = if self.numbers.is_empty() {
            self.known.iter().position(|known| *known == reach).map(number)
        } else {
            self.numbers.get(&reach).copied()
        };
        Behind::Next(known.unwrap_or_else(|| {
            let new = number(self.known.len());
            if !self.numbers.is_empty() {
                self.numbers.insert(reach.clone(), new);
            }
            self.known.push(reach);
            new
        }))
    }
}

impl<'a> Weaver<'a> {
    pub(crate) fn new(rows: &'a Rows, layers: &'a [Layer], reorders: bool, most: usize) -> Self {
        Self {
            rows,
            layers,
            reorders,
            most,
            spans: Vec::new(),
            before: vec![Reaches::default(); layers.len()],
            steps: layers.iter().map(|_| OnceCell::new()).collect(),
            nodes: Nodes::default(),
        }
    }

    /// The number of a span.
    pub(crate) fn span(&mut self, span: Span) -> u32 {
        let known = self.spans.iter().rposition(|known| *known == span);
        number(known.unwrap_or_else(|| {
            self.spans.push(span);
            self.spans.len() - 1
        }))
    }

    /// Lets go of what was walked, if there is much of it: ends may have little in common.
    pub(crate) fn forget_much(&mut self) {
        if self.nodes.len() > self.most {
            self.before.fill(Reaches::default());
            self.nodes = Nodes::default();
        }
    }

    /// The nodes that matches end with, as lists: of the event of a layer, for each of these sets of final
    /// configurations.
    pub(crate) fn ends(&mut self, end: u32, finals: &[Vec<Reached>]) -> Result<Vec<u32>, TooLarge> {
        let finals: Vec<Reach> = finals.iter().map(|finals| finals.iter().copied().collect()).collect();
        let mut next = std::mem::take(&mut self.before[end as usize]);
        // The event that matches end with is listed last in any case.
        let last_stage = self.over_one(end, &finals, &mut next);
        self.before[end as usize] = next;
        let stages = self.walk(end).inspect_err(|_| self.before.fill(Reaches::default()))?;
        for (above, first, stage) in stages.into_iter().rev() {
            let from = self.before[above as usize].lists.len();
            let count = self.before[above as usize].known.len() - from;
            let lists = self.nodes.fold(stage, &self.before[first as usize].lists);
            self.before[above as usize].lists.extend(&lists[..count]);
        }
        let mut ends = self.nodes.fold(last_stage, &self.before[end as usize].lists);
        ends.truncate(finals.len());
        Ok(ends)
    }

    /// Walks on from before a layer where nobody has walked: stages, each with the layers that it is between.
    fn walk(&mut self, mut above: u32) -> Result<Vec<(u32, u32, Stage)>, TooLarge> {
        let (mut stages, mut bound) = (Vec::new(), 0);
        loop {
            let Reaches { known, lists, .. } = &self.before[above as usize];
            let branches = known[lists.len()..].to_vec();
            if branches.is_empty() {
                return Ok(stages);
            }
            let first = if self.reorders {
                self.first_of_its_time(above - 1)
            } else {
                above - 1
            };
            let mut next = std::mem::take(&mut self.before[first as usize]);
            let stage = if first + 1 == above {
                self.over_one(first, &branches, &mut next)
            } else {
                self.over_several((first, above), &branches, &mut next)?
            };
            self.before[first as usize] = next;
            bound += stage.bindings();
            if bound > self.most {
                return Err(TooLarge);
            }
            stages.push((above, first, stage));
            above = first;
        }
    }

    fn first_of_its_time(&self, last: u32) -> u32 {
        let ts = |layer: u32| self.rows.ts(self.layers[layer as usize].row);
        let mut first = last;
        while first > 0 && ts(first - 1) == ts(last) {
            first -= 1;
        }
        first
    }
    /// Back over one event.
    fn over_one(&self, layer: u32, branches: &[Reach], next: &mut Reaches) -> Stage {
        let mut stage = Stage::default();
        for reach in branches {
            let Pulled { before, starts } = self.pull(layer, reach);
            let mut groups = before.chunk_by(|a, b| a.0 == b.0).peekable();
            let rest = groups.next_if(|group| group[0].0.is_none());
            let rest = rest.map_or(Behind::Nothing, |group| next.number(reach_of(group)));
            stage.branch(rest);
            let mut bind = |variable, behind| {
                stage.bind(Binding {
                    layer,
                    variable,
                    is_start: starts.contains(&variable),
                    behind,
                });
            };
            for (variable, group) in groups.filter_map(|group| Some((group[0].0?, group))) {
                bind(variable, next.number(reach_of(group)));
            }
            let begins_alone = |variable: &&u16| !before.iter().any(|(bound, _)| *bound == Some(**variable));
            starts
                .iter()
                .filter(begins_alone)
                .for_each(|variable| bind(*variable, Behind::Nothing));
        }
        stage
    }

    /// Back over events of one time, which matches list by variable, in whichever order runs have bound them.
    fn over_several(&self, span: (u32, u32), branches: &[Reach], next: &mut Reaches) -> Result<Stage, TooLarge> {
        let mut tries = Vec::with_capacity(branches.len());
        let mut size = 0;
        for reach in branches {
            let trie = self.words(span, reach)?;
            size += trie.len();
            if size > self.most {
                return Err(TooLarge);
            }
            tries.push(trie);
        }
        Ok(Trie::stage(&tries, |reached| {
            let mut reach: Reach = reached.iter().copied().collect();
            reach.sort_unstable();
            reach.dedup();
            next.number(reach)
        }))
    }

    /// What ways bind from before one layer back to another, as they are listed.
    fn words(&self, (first, above): (u32, u32), reach: &Reach) -> Result<Trie, TooLarge> {
        let mut trie = Trie::default();
        let mut todo: Vec<(u32, Reach, Word)> = vec![(above, reach.clone(), Word::new())];
        while let Some((above, reach, word)) = todo.pop() {
            if above == first {
                trie.add(listed(word), &reach);
                continue;
            }
            let layer = above - 1;
            let Pulled { before, starts } = self.pull(layer, &reach);
            for group in before.chunk_by(|a, b| a.0 == b.0) {
                let mut word = word.clone();
                word.extend(group[0].0.map(|variable| Letter::new(layer, variable)));
                todo.push((layer, reach_of(group), word));
            }
            for variable in starts {
                // The first event of a match is listed first.
                let mut word = listed(word.clone());
                word.push(Letter::start(layer, variable));
                trie.add(word, &[]);
            }
            if todo.len() + trie.len() > self.most {
                return Err(TooLarge);
            }
        }
        Ok(trie)
    }

    /// What ways have come through that come to one of these configurations behind an event.
    fn pull(&self, layer: u32, reach: &[Reached]) -> Pulled {
        let steps = self.steps(layer);
        let mut pulled = Pulled::default();
        for (configuration, span) in reach {
            let Span { first, .. } = self.spans[*span as usize];
            let place = steps.partition_point(|step| step.to < *configuration);
            let of_it = steps[place..].iter().take_while(|step| step.to == *configuration);
            let counts = of_it.filter(|step| step.newest >= first);
            pulled
                .before
                .extend(counts.map(|step| (step.binds, (step.from, *span))));
        }
        if pulled.before.len() > 1 {
            pulled.before.sort_unstable();
            pulled.before.dedup();
        }
        for link in self.layers[layer as usize].begins.iter().flat_map(|links| &**links) {
            let counts = |(configuration, span): &Reached| {
                let Span { first, last } = self.spans[*span as usize];
                *configuration == link.to && first <= layer && layer <= last
            };
            if reach.iter().any(counts) {
                pulled.starts.extend(link.binds);
            }
        }
        pulled.starts.sort_unstable();
        pulled.starts.dedup();
        pulled
    }

    /// How ways go back over an event, by where they come from: each way is asked for among all, which may be many.
    fn steps(&self, layer: u32) -> &[Step] {
        self.steps[layer as usize].get_or_init(|| {
            let mut steps = Vec::new();
            for Move { newest, links } in &self.layers[layer as usize].moves {
                steps.extend(links.iter().map(|link| Step {
                    to: link.to,
                    binds: link.binds,
                    from: link.from,
                    newest: *newest,
                }));
            }
            steps.sort_unstable_by_key(|step| (step.to, step.binds, step.from, Reverse(step.newest)));
            steps.dedup_by_key(|step| (step.to, step.binds, step.from));
            steps.into_boxed_slice()
        })
    }
}

fn reach_of(group: &[(Option<u16>, Reached)]) -> Reach {
    group.iter().map(|(_, reached)| *reached).collect()
}

/// Of events of one time those of one variable are together, each as they were bound; read from the last one.
fn listed(mut word: Word) -> Word {
    word.sort_by_key(|letter| std::cmp::Reverse(letter.variable));
    word
}
