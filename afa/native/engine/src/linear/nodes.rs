//! Steps of words, by number: which follow which, and where they end. A number is greater than those of the steps before.

/// The empty word, with which every other begins.
pub(crate) const ROOT: u32 = 0;

/// A column that more steps have is not looked at from all of them.
const POPULAR: usize = 4;

/// Which nodes are to be looked at when a column has a bit or another node ends: all with a column that few have, and of
/// the others those that follow a node.
#[derive(Debug, Default)]
pub(crate) struct Followers {
    by_column: Lists,
    by_node: Lists,
}

/// Lists of nodes, one after the other.
#[derive(Debug, Default)]
struct Lists {
    begins: Vec<u32>,
    nodes: Vec<u32>,
}

impl Lists {
    /// From pairs of a list's number and a node.
    #[allow(clippy::cast_possible_truncation)] // limited by max_program_arcs
    fn new(count: usize, pairs: impl Iterator<Item = (u32, u32)>) -> Self {
        let mut pairs: Vec<(u32, u32)> = pairs.collect();
        pairs.sort_unstable();
        let begin = |list: usize| pairs.partition_point(|(other, _)| (*other as usize) < list) as u32;
        Self {
            begins: (0..=count).map(begin).collect(),
            nodes: pairs.iter().map(|(_, node)| *node).collect(),
        }
    }

    #[inline]
    fn of(&self, list: u32) -> &[u32] {
        let (begin, end) = (self.begins[list as usize], self.begins[list as usize + 1]);
        &self.nodes[begin as usize..end as usize]
    }
}

impl Followers {
    /// Of nodes given by the node before them and their column, the root first.
    pub(crate) fn new(nodes: impl Iterator<Item = (u32, u32)>, columns: usize) -> Self {
        let nodes: Vec<(u32, u32)> = nodes.collect();
        let mut uses = vec![0; columns];
        for (_, column) in &nodes[1..] {
            uses[*column as usize] += 1;
        }
        let is_popular = |column: u32| uses[column as usize] > POPULAR;
        let steps = || (0..).zip(&nodes).skip(1);
        let rare = steps().filter(|(_, (_, column))| !is_popular(*column));
        let popular = steps().filter(|(_, (_, column))| is_popular(*column));
        Self {
            by_column: Lists::new(columns, rare.map(|(node, (_, column))| (*column, node))),
            by_node: Lists::new(nodes.len(), popular.map(|(node, (before, _))| (*before, node))),
        }
    }

    /// Those with a column, if few have it.
    #[inline]
    pub(crate) fn of_column(&self, column: u32) -> &[u32] {
        self.by_column.of(column)
    }

    /// Those behind a node whose column many have.
    #[inline]
    pub(crate) fn of_node(&self, node: u32) -> &[u32] {
        self.by_node.of(node)
    }
}

/// By node: which of 64 events end its steps. All of them end the empty word.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    pub(crate) bits: Vec<u64>,
    /// Nodes that may have bits; `None`: all.
    noted: Option<Vec<u32>>,
}

impl Ends {
    /// For so many nodes.
    pub(crate) fn resize(&mut self, nodes: usize) {
        self.bits.resize(nodes, 0);
        self.noted = None;
    }

    /// Nothing but the empty word ends.
    pub(crate) fn clear(&mut self) {
        if let Some(nodes) = &mut self.noted {
            nodes.drain(..).for_each(|node| self.bits[node as usize] = 0);
        } else {
            self.bits.fill(0);
            self.noted = Some(Vec::new());
        }
        self.bits[ROOT as usize] = !0;
    }

    /// Any node may be given bits.
    pub(crate) fn note_all(&mut self) {
        self.noted = None;
    }

    /// Gives a node bits.
    #[inline]
    pub(crate) fn put(&mut self, node: u32, bits: u64) {
        self.bits[node as usize] = bits;
        if let Some(noted) = &mut self.noted {
            noted.push(node);
        }
    }

    /// The nodes that may have bits.
    #[allow(clippy::cast_possible_truncation)] // limited by max_program_arcs
    pub(crate) fn nodes(&self) -> impl Iterator<Item = u32> {
        let all = if self.noted.is_none() {
            1..self.bits.len() as u32
        } else {
            0..0
        };
        self.noted.iter().flatten().copied().chain(all)
    }
}

/// Nodes that wait, taken in order.
#[derive(Debug, Default)]
pub(crate) struct NodeSet {
    words: Vec<u64>,
}

impl NodeSet {
    /// Room for so many nodes; there are none.
    pub(crate) fn resize(&mut self, nodes: usize) {
        self.words.clear();
        self.words.resize(nodes.div_ceil(64), 0);
    }

    /// Adds nodes.
    #[inline]
    pub(crate) fn add(&mut self, nodes: &[u32]) {
        for node in nodes {
            self.words[*node as usize / 64] |= 1 << (node % 64);
        }
    }

    /// Takes the first node; none is added before the last one that was taken, in whose word `from` is.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // limited by max_program_arcs
    pub(crate) fn take_from(&mut self, from: &mut usize) -> Option<u32> {
        while let Some(word) = self.words.get_mut(*from) {
            if *word != 0 {
                let node = *from * 64 + word.trailing_zeros() as usize;
                *word &= *word - 1;
                return Some(node as u32);
            }
            *from += 1;
        }
        None
    }
}
