//! From many ways to the smallest graph: equal rests of ways become one node.
//!
//! Ways are read from their end back to their start. Where they have come to is a *branch*: bindings that may come
//! next, each with the branch behind it. Branches are folded from the starts on: two bindings are one node if they bind
//! one event to one variable and the same nodes are before them.

use std::collections::HashMap;

use foldhash::fast::FixedState;

/// What is behind a binding on the way back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behind {
    Nothing,
    /// A branch of the same stage, which has a greater number.
    Here(u32),
    /// A branch of the next stage.
    Next(u32),
}

/// There is more than a limit allows.
#[derive(Debug)]
pub(crate) struct TooLarge;

/// An event that is bound to a variable on the way back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Binding {
    pub(crate) layer: u32,
    pub(crate) variable: u16,
    /// Whether a match may begin with it.
    pub(crate) is_start: bool,
    pub(crate) behind: Behind,
}

/// Where ways have come to.
#[derive(Clone, Copy, Debug)]
struct Branch {
    /// The branch of the next stage that has the other bindings that may come, all of earlier events.
    rest: Behind,
    /// Where the bindings of this stage begin among all.
    bindings: u32,
}

/// Branches that bind events of some layers.
#[derive(Debug, Default)]
pub(crate) struct Stage {
    branches: Vec<Branch>,
    bindings: Vec<Binding>,
}

/// A node of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Node {
    pub(crate) layer: u32,
    pub(crate) variable: u16,
    /// Whether a match may begin with it.
    pub(crate) is_start: bool,
    /// The nodes before it, as a list.
    pub(crate) before: u32,
}

/// Nodes of graphs, each once, and lists of nodes that stand before others.
#[derive(Debug, Default)]
pub(crate) struct Nodes {
    list: Vec<Node>,
    numbers: HashMap<Node, u32, FixedState>,
    /// Each list that is not empty is one before and a node.
    lists: Vec<(u32, u32)>,
    longer: HashMap<(u32, u32), u32, FixedState>,
}

/// The list of no nodes; the others are counted from 1 on.
pub(crate) const EMPTY: u32 = 0;

impl Stage {
    /// Adds a branch; its bindings follow, before the next branch is added.
    pub(crate) fn branch(&mut self, rest: Behind) {
        self.branches.push(Branch {
            rest,
            bindings: number(self.bindings.len()),
        });
    }

    pub(crate) fn bind(&mut self, binding: Binding) {
        self.bindings.push(binding);
    }

    pub(crate) fn bindings(&self) -> usize {
        self.bindings.len()
    }
}

impl Nodes {
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn node(&self, number: u32) -> &Node {
        &self.list[number as usize]
    }

    /// The nodes of a list, the last ones first.
    pub(crate) fn of_list(&self, list: u32) -> impl Iterator<Item = u32> {
        let known = |list: u32| Some(list).filter(|list| *list != EMPTY);
        let before = move |list: &u32| known(self.lists[*list as usize - 1].0);
        std::iter::successors(known(list), before).map(|list| self.lists[list as usize - 1].1)
    }

    /// Folds a stage: the answer is by branch the list of nodes that it begins with. The same of the next one is given.
    pub(crate) fn fold(&mut self, mut stage: Stage, next: &[u32]) -> Vec<u32> {
        let mut lists = vec![EMPTY; stage.branches.len()];
        let mut end = stage.bindings.len();
        for place in (0..stage.branches.len()).rev() {
            let Branch { rest, bindings } = stage.branches[place];
            let found = |behind: Behind| match behind {
                Behind::Nothing => EMPTY,
                Behind::Here(branch) => lists[branch as usize],
                Behind::Next(branch) => next[branch as usize],
            };
            let until = std::mem::replace(&mut end, bindings as usize);
            let bindings = &mut stage.bindings[end..until];
            // So lists of the same nodes are the same.
            bindings.sort_unstable_by_key(|binding| (binding.layer, binding.variable));
            let mut list = found(rest);
            for binding in bindings {
                let before = found(binding.behind);
                // A way that leads to no start is none.
                if before != EMPTY || binding.is_start {
                    let node = self.number(Node {
                        layer: binding.layer,
                        variable: binding.variable,
                        is_start: binding.is_start,
                        before,
                    });
                    list = self.longer(list, node);
                }
            }
            lists[place] = list;
        }
        lists
    }

    fn number(&mut self, node: Node) -> u32 {
        let new = number(self.list.len());
        let known = *self.numbers.entry(node).or_insert(new);
        if known == new {
            self.list.push(node);
        }
        known
    }

    fn longer(&mut self, list: u32, node: u32) -> u32 {
        let new = number(self.lists.len() + 1);
        let known = *self.longer.entry((list, node)).or_insert(new);
        if known == new {
            self.lists.push((list, node));
        }
        known
    }
}

#[allow(clippy::cast_possible_truncation)] // limited
fn number(place: usize) -> u32 {
    place as u32
}
