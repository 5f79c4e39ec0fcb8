//! What is wanted of a value, as a small tree of names; nodes in preorder, so that a subtree is a range.

use std::sync::Arc;

/// The part of the head that stands at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Operation,
    Key,
    Time,
    Id,
    Seq,
    Rev,
    Kind,
    Data,
    When,
}

/// How many parts there are.
pub(super) const PARTS: u32 = 9;

/// The slot that a value goes to: first come the parts of the head, then one that nobody reads, then the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Target(u32);

impl Target {
    pub(super) const NOTHING: Self = Self(PARTS);

    /// A part of the head.
    #[inline]
    pub(super) const fn part(part: Part) -> Self {
        Self(part as u32)
    }

    /// The field of this number.
    #[inline]
    pub(super) const fn field(field: u32) -> Self {
        Self(Self::NOTHING.0 + 1 + field)
    }

    /// Whether it is a part of the head.
    pub(super) const fn is_part(self) -> bool {
        self.0 < PARTS
    }

    /// The number of its slot.
    #[inline]
    pub(super) const fn slot(self) -> usize {
        self.0 as usize
    }
}

/// What is wanted more than once is read once and copied: from a slot to another.
pub(super) type Copies = Vec<(Target, Target)>;

/// One name on the way to something wanted.
pub(super) struct Node {
    /// The names below it, as a range of `Shape::names`.
    pub(super) begin: u32,
    pub(super) end: u32,
    /// One bit for the length of every name below it (the last bit for all long ones).
    pub(super) lengths: u64,
    /// The first node after this subtree.
    pub(super) subtree_end: u32,
    pub(super) target: Target,
}

impl Node {
    /// Whether something inside it is wanted.
    pub(super) fn has_names(&self) -> bool {
        self.begin < self.end
    }
}

struct Name {
    /// The first eight bytes, zeros after a shorter name.
    word: u64,
    length: u32,
    node: u32,
    text: Arc<str>,
}

/// The tree.
pub(super) struct Shape {
    pub(super) nodes: Vec<Node>,
    names: Vec<Name>,
    pub(super) copies: Copies,
}

/// The name's first eight bytes as they would be loaded from memory.
pub(super) fn first_word(name: &[u8]) -> u64 {
    let mut word = [0; 8];
    let length = name.len().min(8);
    word[..length].copy_from_slice(&name[..length]);
    u64::from_le_bytes(word)
}

fn length_bit(length: usize) -> u64 {
    1 << length.min(63)
}

impl Shape {
    /// Compiles paths from the root.
    pub(super) fn new(wanted: &[(Vec<Arc<str>>, Target)]) -> Self {
        let mut branches = vec![Branch::new()];
        let mut copies = Copies::default();
        for (path, target) in wanted {
            let mut at = 0;
            for step in path {
                at = below(&mut branches, at, step);
            }
            branches[at].want(*target, &mut copies);
        }
        let mut shape = Self {
            nodes: Vec::with_capacity(branches.len()),
            names: Vec::with_capacity(branches.len()),
            copies,
        };
        shape.flatten(&branches);
        shape
    }

    fn flatten(&mut self, branches: &[Branch]) {
        // A branch to visit, with the name that leads to it; or (none) the end of the subtree of a node.
        let mut open = vec![(Some(0), 0)];
        while let Some((branch, from)) = open.pop() {
            let number = index(self.nodes.len());
            let Some(branch) = branch.map(|at: usize| &branches[at]) else {
                self.nodes[from].subtree_end = number;
                continue;
            };
            if let Some(name) = self.names.get_mut(from).filter(|_| number > 0) {
                name.node = number;
            }
            let begin = self.names.len();
            open.push((None, self.nodes.len()));
            for (text, child) in &branch.below {
                open.push((Some(*child), self.names.len()));
                self.names.push(Name {
                    word: first_word(text.as_bytes()),
                    length: index(text.len()),
                    node: 0,
                    text: text.clone(),
                });
            }
            self.nodes.push(Node {
                begin: index(begin),
                end: index(self.names.len()),
                lengths: branch
                    .below
                    .iter()
                    .fold(0, |bits, (text, _)| bits | length_bit(text.len())),
                subtree_end: 0,
                target: branch.target,
            });
        }
    }

    /// The node that a name of at most eight bytes leads to.
    #[inline]
    pub(super) fn short_name(&self, node: &Node, word: u64, length: usize) -> Option<u32> {
        if node.lengths & length_bit(length) == 0 {
            return None;
        }
        let mut names = self.below(node).iter();
        let found = names.find(|name| name.word == word && name.length as usize == length)?;
        Some(found.node)
    }

    /// The node that a name leads to.
    pub(super) fn name(&self, node: &Node, name: &[u8]) -> Option<u32> {
        if name.len() <= 8 {
            return self.short_name(node, first_word(name), name.len());
        }
        if node.lengths & length_bit(name.len()) == 0 {
            return None;
        }
        let found = self.below(node).iter().find(|known| known.text.as_bytes() == name)?;
        Some(found.node)
    }

    #[inline]
    fn below(&self, node: &Node) -> &[Name] {
        self.names
            .get(node.begin as usize..node.end as usize)
            .unwrap_or_default()
    }
}

struct Branch {
    below: Vec<(Arc<str>, usize)>,
    target: Target,
}

impl Branch {
    const fn new() -> Self {
        Self {
            below: Vec::new(),
            target: Target::NOTHING,
        }
    }

    fn want(&mut self, target: Target, copies: &mut Copies) {
        if self.target == Target::NOTHING {
            self.target = target;
        } else {
            copies.push((self.target, target));
        }
    }
}

fn below(branches: &mut Vec<Branch>, at: usize, step: &Arc<str>) -> usize {
    if let Some((_, known)) = branches[at].below.iter().find(|(name, _)| name == step) {
        return *known;
    }
    let new = branches.len();
    branches.push(Branch::new());
    branches[at].below.push((step.clone(), new));
    new
}

#[allow(clippy::cast_possible_truncation)] // a pattern's text is bounded far below
fn index(number: usize) -> u32 {
    number as u32
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Part, Shape, Target};

    fn path(text: &str) -> Vec<Arc<str>> {
        text.split('.').filter(|step| !step.is_empty()).map(Arc::from).collect()
    }

    fn find(shape: &Shape, text: &str) -> Option<Target> {
        let mut node = &shape.nodes[0];
        for step in path(text) {
            node = &shape.nodes[shape.name(node, step.as_bytes())? as usize];
        }
        Some(node.target)
    }

    #[test]
    fn every_path_leads_to_its_target() {
        let shape = Shape::new(&[
            (path("ts"), Target::part(Part::Time)),
            (path("data"), Target::part(Part::Data)),
            (path("data.price"), Target::field(0)),
            (path("data.a_long_name.inner"), Target::field(1)),
            (path("data.a_long_name"), Target::field(2)),
            (path("ts"), Target::field(3)),
            (path("data.price"), Target::field(4)),
        ]);
        assert_eq!(find(&shape, "ts"), Some(Target::part(Part::Time)));
        assert_eq!(find(&shape, "data"), Some(Target::part(Part::Data)));
        assert_eq!(find(&shape, "data.price"), Some(Target::field(0)));
        assert_eq!(find(&shape, "data.a_long_name.inner"), Some(Target::field(1)));
        assert_eq!(find(&shape, "data.a_long_name"), Some(Target::field(2)));
        assert_eq!(find(&shape, "data.a_long_game"), None);
        assert_eq!(find(&shape, "price"), None);
        let copies = [
            (Target::part(Part::Time), Target::field(3)),
            (Target::field(0), Target::field(4)),
        ];
        assert_eq!(shape.copies, copies);
    }

    #[test]
    fn a_subtree_is_a_range_of_nodes() {
        let wanted = ["a.b.c", "a.d", "e.f"];
        let fields = (0..).map(Target::field);
        let shape = Shape::new(&wanted.map(path).into_iter().zip(fields).collect::<Vec<_>>());
        assert_eq!(shape.nodes[0].subtree_end, 7);
        for name in ["a", "e"] {
            let node = shape.name(&shape.nodes[0], name.as_bytes()).expect("wanted") as usize;
            let inside = shape.nodes[node..shape.nodes[node].subtree_end as usize].iter();
            let targets: Vec<_> = inside.filter(|node| node.target != Target::NOTHING).collect();
            assert_eq!(targets.len(), if name == "a" { 2 } else { 1 });
        }
    }
}
