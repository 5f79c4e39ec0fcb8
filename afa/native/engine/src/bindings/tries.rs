//! Words of bindings, read from the last one, that share what they begin with.

use smallvec::SmallVec;

use crate::bindings::folding::{Behind, Binding, Stage};
use crate::bindings::weaving::Reached;

/// An event that is bound to a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Letter {
    pub(crate) layer: u32,
    pub(crate) variable: u16,
    /// Whether the match begins with it.
    is_start: bool,
}

/// What a way binds, the last event first.
pub(crate) type Word = SmallVec<[Letter; 4]>;

/// Words, and what is reached behind each.
#[derive(Debug)]
pub(crate) struct Trie(Vec<Twig>);

#[derive(Debug, Default)]
struct Twig {
    reached: Vec<Reached>,
    /// A letter, and the twig behind it.
    next: Vec<(Letter, usize)>,
}

impl Letter {
    pub(crate) fn new(layer: u32, variable: u16) -> Self {
        Self {
            layer,
            variable,
            is_start: false,
        }
    }

    pub(crate) fn start(layer: u32, variable: u16) -> Self {
        Self {
            is_start: true,
            ..Self::new(layer, variable)
        }
    }
}

impl Default for Trie {
    fn default() -> Self {
        Self(vec![Twig::default()])
    }
}

impl Trie {
    /// How much there is.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn add(&mut self, word: Word, reached: &[Reached]) {
        let mut at = 0;
        for letter in word {
            let is_it = |known: &Letter| (known.layer, known.variable) == (letter.layer, letter.variable);
            let known = self.0[at].next.iter_mut().find(|(known, _)| is_it(known));
            at = if let Some((known, twig)) = known {
                known.is_start |= letter.is_start;
                *twig
            } else {
                let new = self.0.len();
                self.0[at].next.push((letter, new));
                self.0.push(Twig::default());
                new
            };
        }
        self.0[at].reached.extend(reached);
    }

    /// A stage whose first branches are those of the tries. `behind` says where it goes on behind a word.
    pub(crate) fn stage(tries: &[Self], mut behind: impl FnMut(&[Reached]) -> Behind) -> Stage {
        let mut stage = Stage::default();
        // The first twigs of all, then the others: each has a greater number than the one that it hangs on.
        let mut offset = tries.len();
        let mut offsets = Vec::with_capacity(tries.len());
        for Self(twigs) in tries {
            offsets.push(offset - 1);
            offset += twigs.len() - 1;
        }
        let mut add = |twig: &Twig, offset: usize| {
            stage.branch(behind(&twig.reached));
            for (letter, next) in &twig.next {
                stage.bind(Binding {
                    layer: letter.layer,
                    variable: letter.variable,
                    is_start: letter.is_start,
                    behind: Behind::Here(u32::try_from(offset + next).unwrap_or(u32::MAX)),
                });
            }
        };
        for (Self(twigs), offset) in tries.iter().zip(&offsets) {
            add(&twigs[0], *offset);
        }
        for (Self(twigs), offset) in tries.iter().zip(&offsets) {
            twigs[1..].iter().for_each(|twig| add(twig, *offset));
        }
        stage
    }
}
