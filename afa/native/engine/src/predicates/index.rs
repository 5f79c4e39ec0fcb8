//! Predicates that compare one field with constants, evaluated together: a row is looked up once, whatever their number.
//!
//! Those that ask for equality are found by a hash table of their constants: a row costs a look-up and what is true of
//! it. Bounds are sorted: a row costs the search for its rank among them, and 64 rows then a word per bound. Unknown is
//! the same for all predicates of a group, because their constants are of one kind.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use crate::predicates::bounds::Bounds;
use crate::predicates::constants::Constants;
use crate::predicates::field_values::{Kind, Known, Source, Values};
use crate::predicates::predicate::{Fields, Predicates, plain_comparison};
use crate::predicates::truths::TruthTable;
use crate::program::expression::{FieldPath, Node};
use crate::program::value::{Comparison, Value};
use crate::raw::scan::Scanner;
use crate::rows::chunk::Chunk;

/// With fewer predicates on numbers of a field it is faster to compare its column with each constant.
const MANY_NUMBERS: usize = 24;
/// With fewer on texts or truths.
const MANY_OTHERS: usize = 3;

/// What the predicates of a group have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct GroupKey {
    path: FieldPath,
    kind: Kind,
    is_range: bool,
}

#[derive(Debug)]
enum Table {
    Equality(Constants),
    Range(Bounds),
}

#[derive(Debug)]
struct Group {
    path: FieldPath,
    kind: Kind,
    members: Vec<u32>,
    table: Table,
}

/// Predicates that are evaluated for the same rows.
#[derive(Debug, Default)]
pub struct PredicateIndex {
    predicates: Vec<u32>,
    /// Those that are evaluated one by one.
    alone: Vec<u32>,
    /// Few that compare one field with numbers, by field.
    few: Vec<(FieldPath, Vec<u32>)>,
    groups: Vec<Group>,
}

impl PredicateIndex {
    /// An index of these predicates.
    #[must_use]
    pub fn new(predicates: Vec<u32>, known: &Predicates) -> Self {
        let mut keys: Vec<GroupKey> = Vec::new();
        let mut groups: Vec<Vec<u32>> = Vec::new();
        let mut numbers: HashMap<GroupKey, usize, FixedState> = HashMap::default();
        let mut alone = Vec::new();
        for predicate in &predicates {
            let Some(key) = group_key(known.node(*predicate)) else {
                alone.push(*predicate);
                continue;
            };
            let group = *numbers.entry(key).or_insert_with_key(|key| {
                keys.push(key.clone());
                groups.push(Vec::new());
                groups.len() - 1
            });
            groups[group].push(*predicate);
        }
        let (mut few, mut made) = (Vec::new(), Vec::new());
        for (key, members) in keys.into_iter().zip(groups) {
            match key.kind {
                Kind::Number if members.len() < MANY_NUMBERS => few.push((key.path, members)),
                Kind::Number => made.push(Group::new(key, members, known)),
                _ if members.len() < MANY_OTHERS => alone.extend(members),
                _ => made.push(Group::new(key, members, known)),
            }
        }
        Self {
            predicates,
            alone,
            few,
            groups: made,
        }
    }

    /// All its predicates.
    #[must_use]
    pub fn predicates(&self) -> &[u32] {
        &self.predicates
    }

    /// Whether all were evaluated for so many rows.
    #[must_use]
    pub fn is_ready(&self, truths: &TruthTable, rows: usize) -> bool {
        self.predicates
            .iter()
            .all(|predicate| truths.filled(*predicate) >= rows)
    }

    /// Evaluates them for the rows of a chunk that they were not evaluated for yet; there is room for their truths.
    pub fn evaluate(
        &self,
        chunk: &Chunk,
        truths: &mut TruthTable,
        known: &mut Predicates,
        fields: &Fields,
        scanners: &[Scanner],
    ) {
        for (path, members) in &self.few {
            let missing = members.iter().filter(|member| truths.filled(**member) == 0);
            let missing: Vec<u32> = missing.copied().collect();
            if missing.is_empty() || !known.evaluate_together(path, &missing, chunk, truths) {
                known.evaluate_missing(members, chunk, truths, fields, scanners);
            }
        }
        known.evaluate_missing(&self.alone, chunk, truths, fields, scanners);
        let source = Source {
            chunk,
            fields,
            scanners,
        };
        let (mut evaluations, mut unknown) = (0, 0);
        for group in &self.groups {
            let filled = truths.filled(group.members[0]);
            let differ = group.members.iter().any(|member| truths.filled(*member) != filled);
            if differ || chunk.is_reordered() && Values::new(source, &group.path).is_by_row() {
                // Some came later than others, or their rows do not lie as they are numbered.
                known.evaluate_missing(&group.members, chunk, truths, fields, scanners);
            } else if filled < chunk.len() {
                let rows = chunk.len() - filled;
                evaluations += (rows * group.members.len()) as u64;
                unknown += group.evaluate(source, filled, truths) * group.members.len() as u64;
            }
        }
        known.evaluations += evaluations;
        known.unknown += unknown;
    }
}

impl Group {
    fn new(key: GroupKey, members: Vec<u32>, known: &Predicates) -> Self {
        let nodes: Vec<&Node> = members.iter().map(|member| known.node(*member)).collect();
        let table = if key.is_range {
            Table::Range(Bounds::new(nodes.iter().filter_map(|node| bound(node))))
        } else {
            Table::Equality(Constants::new(nodes.iter().map(|node| sought(node))))
        };
        Self {
            path: key.path,
            kind: key.kind,
            members,
            table,
        }
    }

    /// Evaluates all members for the rows from one on. The answer is how many rows are unknown to each.
    fn evaluate(&self, source: Source<'_>, from: usize, truths: &mut TruthTable) -> u64 {
        let begins: Vec<usize> = self.members.iter().map(|member| truths.begin(*member)).collect();
        let values = Values::new(source, &self.path);
        let mut known = Known::new(from, source.chunk.len());
        match &self.table {
            Table::Equality(constants) => {
                constants.evaluate(&values, self.kind, &begins, truths.all_bits(), &mut known);
            }
            Table::Range(bounds) => bounds.evaluate(&values, &begins, truths.all_bits(), &mut known),
        }
        for member in &self.members {
            truths.note_filled(*member, source.chunk.len());
        }
        known.unknown()
    }
}

/// The group of a predicate, if it compares a field with constants of one kind.
fn group_key(node: &Node) -> Option<GroupKey> {
    if let Some((path, comparison, constant)) = plain_comparison(node) {
        let kind = Kind::of(constant)?;
        let is_range = !matches!(comparison, Comparison::Equal | Comparison::NotEqual);
        return (kind == Kind::Number || !is_range).then(|| GroupKey {
            path: path.clone(),
            kind,
            is_range,
        });
    }
    let Node::Membership(operand, items) = node else {
        return None;
    };
    let Node::Field(path) = &**operand else {
        return None;
    };
    let kind = Kind::of(items.first()?)?;
    // With others among them, or with none, it would be unknown for other values than the rest of the group.
    let is_alike = items.iter().all(|item| Kind::of(item) == Some(kind));
    is_alike.then(|| GroupKey {
        path: path.clone(),
        kind,
        is_range: false,
    })
}

/// The constants that a predicate about equality looks for, and whether it is true of all other values instead.
fn sought(node: &Node) -> (&[Value], bool) {
    match node {
        Node::Membership(_, items) => (items, false),
        _ => plain_comparison(node).map_or((&[], false), |(_, comparison, constant)| {
            (std::slice::from_ref(constant), comparison == Comparison::NotEqual)
        }),
    }
}

fn bound(node: &Node) -> Option<(Comparison, &Value)> {
    plain_comparison(node).map(|(_, comparison, constant)| (comparison, constant))
}
