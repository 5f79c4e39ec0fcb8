//! Event predicates: each distinct one is evaluated once per event, for all patterns, column by column where it can be.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use crate::arrow_rows::{ArrowRows, Column};
use crate::chunk::{Chunk, Payload, RowView};
use crate::expression::{FieldPath, Node};
use crate::forgetting::{Marks, Numbers, put};
use crate::kernel::{WORD_ROWS, compare_floats, compare_ints, compare_ints_as_floats, find_texts};
use crate::scan::{Scalar, Scanner};
use crate::scanned::ScannedRows;
use crate::scanned_column::ScannedColumn;
use crate::value::{Comparison, Value};

/// The fields of raw records that patterns use, by number.
#[derive(Debug, Default)]
pub struct Fields {
    /// Their paths; what type is declared does not matter here.
    pub paths: Vec<FieldPath>,
}

impl Fields {
    /// The number of a field.
    #[must_use]
    pub fn find(&self, path: &FieldPath) -> Option<usize> {
        self.paths.iter().position(|known| known.steps == path.steps)
    }

    /// Adds a field; true if it is new.
    pub fn add(&mut self, path: &FieldPath) -> bool {
        let is_new = self.find(path).is_none();
        if is_new {
            self.paths.push(path.clone());
        }
        is_new
    }
}

/// The truths of one predicate, a bit per row, as far as they were computed.
#[derive(Clone, Debug, Default)]
pub struct Truths {
    bits: Vec<u64>,
    filled: usize,
}

impl Truths {
    /// How many rows were evaluated.
    #[must_use]
    pub fn filled(&self) -> usize {
        self.filled
    }

    /// Whether the predicate is true of a row.
    #[must_use]
    #[inline]
    pub fn get(&self, offset: usize) -> bool {
        self.bits[offset / 64] >> (offset % 64) & 1 != 0
    }

    /// All bits, 64 rows per word.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.bits
    }

    /// 64 bits from a row on; what lies beyond the end is 0.
    #[must_use]
    #[inline]
    pub fn word(&self, offset: usize) -> u64 {
        let (index, shift) = (offset / 64, offset % 64);
        let low = self.bits.get(index).copied().unwrap_or(0) >> shift;
        if shift == 0 {
            return low;
        }
        low | self.bits.get(index + 1).copied().unwrap_or(0) << (64 - shift)
    }

    fn set(&mut self, offset: usize, truth: Option<bool>, unknown: &mut u64) {
        match truth {
            Some(true) => self.bits[offset / 64] |= 1 << (offset % 64),
            Some(false) => {}
            None => *unknown += 1,
        }
    }
}

/// All event predicates of an engine, by number.
#[derive(Debug, Default)]
pub struct Predicates {
    nodes: Vec<Node>,
    numbers: HashMap<Node, u32, FixedState>,
    free: Numbers,
    /// Evaluations so far.
    pub evaluations: u64,
    /// How many of them were unknown.
    pub unknown: u64,
}

impl Predicates {
    /// The number of a predicate, new or known.
    pub fn number(&mut self, node: Node) -> u32 {
        if let Some(number) = self.numbers.get(&node) {
            return *number;
        }
        let number = self.free.take(self.nodes.len());
        put(&mut self.nodes, number, node.clone());
        self.numbers.insert(node, number);
        number
    }

    /// How many are known.
    #[must_use]
    pub fn in_use(&self) -> usize {
        self.free.in_use(self.nodes.len())
    }

    /// Forgets those that are not marked, and answers with their numbers.
    pub fn forget_unmarked(&mut self, marks: &Marks) -> Vec<u32> {
        let freed = self.free.free_unmarked(self.nodes.len(), marks);
        for number in &freed {
            let gone = std::mem::replace(&mut self.nodes[*number as usize], Node::Literal(Value::Unknown));
            self.numbers.remove(&gone);
        }
        freed
    }

    /// Evaluates a predicate for the rows of a chunk that it was not evaluated for yet.
    pub fn evaluate(
        &mut self,
        predicate: u32,
        chunk: &Chunk,
        truths: &mut Truths,
        fields: &Fields,
        scanners: &[Scanner],
    ) {
        let node = &self.nodes[predicate as usize];
        truths.bits.resize(chunk.len().div_ceil(64), 0);
        let mut unknown = 0;
        let done = match (&chunk.payload, plain_comparison(node)) {
            (Payload::Arrow(rows), Some((path, comparison, constant))) => {
                compare_column(rows, path, comparison, constant, truths, &mut unknown)
            }
            (Payload::Scanned(rows), Some((path, comparison, constant))) => {
                let column = fields.find(path).and_then(|field| rows.column(field));
                column.is_some_and(|column| {
                    compare_scalars(
                        rows,
                        column,
                        path,
                        comparison,
                        constant,
                        truths,
                        chunk.len(),
                        &mut unknown,
                    );
                    true
                })
            }
            _ => false,
        };
        if !done {
            for offset in truths.filled..chunk.len() {
                let row = RowView {
                    chunk,
                    offset,
                    fields,
                    scanners,
                };
                truths.set(offset, node.evaluate(Some(&row), &[]).as_truth(), &mut unknown);
            }
        }
        self.evaluations += (chunk.len() - truths.filled) as u64;
        self.unknown += unknown;
        truths.filled = chunk.len();
    }
}

/// `field comparison constant`, from either side.
fn plain_comparison(node: &Node) -> Option<(&FieldPath, Comparison, &Value)> {
    let Node::Comparison(comparison, left, right) = node else {
        return None;
    };
    match (&**left, &**right) {
        (Node::Field(path), Node::Literal(constant)) => Some((path, *comparison, constant)),
        (Node::Literal(constant), Node::Field(path)) => Some((path, comparison.flipped(), constant)),
        _ => None,
    }
}

#[allow(clippy::cast_precision_loss)] // int with float compares as float64
fn compare_column(
    rows: &ArrowRows,
    path: &FieldPath,
    comparison: Comparison,
    constant: &Value,
    truths: &mut Truths,
    unknown: &mut u64,
) -> bool {
    let bits = &mut truths.bits;
    match (rows.column(path), constant) {
        (Column::Missing, _) => *unknown += rows.len() as u64,
        (Column::Floats(column, nulls), Value::Float(number)) => {
            compare_floats(column, nulls.as_ref(), comparison, *number, bits, unknown);
        }
        (Column::Floats(column, nulls), Value::Int(number)) => {
            compare_floats(column, nulls.as_ref(), comparison, *number as f64, bits, unknown);
        }
        (Column::Ints(column, nulls), Value::Int(number)) => {
            compare_ints(column, nulls.as_ref(), comparison, *number, bits, unknown);
        }
        (Column::Ints(column, nulls) | Column::IntsAsFloats(column, nulls), Value::Float(number)) => {
            compare_ints_as_floats(column, nulls.as_ref(), comparison, *number, bits, unknown);
        }
        (Column::IntsAsFloats(column, nulls), Value::Int(number)) => {
            compare_ints_as_floats(column, nulls.as_ref(), comparison, *number as f64, bits, unknown);
        }
        (Column::Texts(texts, offset), Value::Str(text)) if comparison == Comparison::Equal => {
            find_texts(texts, offset, &[text], false, rows.len(), bits, unknown);
        }
        (Column::Texts(texts, offset), Value::Str(text)) if comparison == Comparison::NotEqual => {
            find_texts(texts, offset, &[text], true, rows.len(), bits, unknown);
        }
        _ => return false,
    }
    true
}

/// The same over scanned values, from the first that is not evaluated yet.
#[allow(clippy::too_many_arguments)] // what is compared with what, and where it goes
fn compare_scalars(
    rows: &ScannedRows,
    column: &ScannedColumn,
    path: &FieldPath,
    comparison: Comparison,
    constant: &Value,
    truths: &mut Truths,
    end: usize,
    unknown: &mut u64,
) {
    let from = truths.filled / WORD_ROWS;
    let bits = &mut truths.bits[from..];
    let compared = column.compare(
        path.declared,
        comparison,
        constant,
        from * WORD_ROWS..truths.filled,
        bits,
    );
    if let Some(more) = compared {
        *unknown += more;
        return;
    }
    for offset in truths.filled..end {
        let truth = match (column.get(offset), constant) {
            (Scalar::Text(span), Value::Str(text)) if matches!(path.declared, 0 | 4) => {
                Some(comparison.accepts(rows.text(span).as_bytes().cmp(text.as_bytes())))
            }
            (Scalar::Int(number), _) => comparison.apply(&path.conform(Value::Int(number)), constant),
            (Scalar::Float(number), _) => comparison.apply(&path.conform(Value::Float(number)), constant),
            (Scalar::Bool(truth), _) => comparison.apply(&path.conform(Value::Bool(truth)), constant),
            (Scalar::Missing | Scalar::List(_) | Scalar::Text(_), _) => None,
        };
        truths.set(offset, truth, unknown);
    }
}

/// Columns of triggers for linear patterns: each is an OR of ANDs of predicates, shared by all patterns that use it.
#[derive(Debug, Default)]
pub struct Columns {
    forms: Vec<Vec<Vec<u32>>>,
    numbers: HashMap<Vec<Vec<u32>>, u32, FixedState>,
    free: Numbers,
}

impl Columns {
    /// The number of a column. An empty form never triggers, an empty conjunction always does.
    pub fn number(&mut self, mut form: Vec<Vec<u32>>) -> u32 {
        for conjunction in &mut form {
            conjunction.sort_unstable();
        }
        form.sort_unstable();
        form.dedup();
        if let Some(number) = self.numbers.get(&form) {
            return *number;
        }
        let number = self.free.take(self.forms.len());
        put(&mut self.forms, number, form.clone());
        self.numbers.insert(form, number);
        number
    }

    /// How many are known.
    #[must_use]
    pub fn in_use(&self) -> usize {
        self.free.in_use(self.forms.len())
    }

    /// Forgets those that are not marked.
    pub fn forget_unmarked(&mut self, marks: &Marks) {
        for number in self.free.free_unmarked(self.forms.len(), marks) {
            let gone = std::mem::take(&mut self.forms[number as usize]);
            self.numbers.remove(&gone);
        }
    }

    /// The OR of ANDs of a column.
    #[must_use]
    pub fn form(&self, number: u32) -> &[Vec<u32>] {
        &self.forms[number as usize]
    }
}
