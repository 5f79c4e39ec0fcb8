//! Event predicates: each distinct one is evaluated once per event, for all patterns, column by column where it can be.

use std::collections::HashMap;
use std::ops::Range;

use foldhash::fast::FixedState;

use crate::arcs::forgetting::{Marks, Numbers, put};
use crate::arrow::rows::{ArrowRows, Column};
use crate::predicates::column_logic::test_condition;
use crate::predicates::column_tests::test_column;
use crate::predicates::kernel::{
    FloatTest, WORD_ROWS, compare_floats, compare_ints, compare_ints_as_floats, find_texts,
};
use crate::predicates::truths::TruthTable;
use crate::program::expression::{FieldPath, Node};
use crate::program::value::{Comparison, Value};
use crate::raw::column::{ScannedColumn, as_float};
use crate::raw::rows::ScannedRows;
use crate::raw::scan::{Scalar, Scanner};
use crate::rows::chunk::{Chunk, Payload};
use crate::rows::view::RowView;

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

/// All event predicates of an engine, by number.
#[derive(Debug, Default)]
pub struct Predicates {
    nodes: Vec<Node>,
    numbers: HashMap<Node, u32, FixedState>,
    free: Numbers,
    /// Another one with every new predicate: a number may mean another one than before.
    pub(crate) version: u64,
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
        self.version += 1;
        number
    }

    /// What a predicate says.
    #[must_use]
    pub fn node(&self, number: u32) -> &Node {
        &self.nodes[number as usize]
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

    /// Evaluates each of some predicates for the rows of a chunk that it was not evaluated for yet; there is room for
    /// their truths.
    pub fn evaluate_missing(
        &mut self,
        predicates: &[u32],
        chunk: &Chunk,
        truths: &mut TruthTable,
        fields: &Fields,
        scanners: &[Scanner],
    ) {
        for predicate in predicates {
            if truths.filled(*predicate) < chunk.len() {
                self.evaluate(*predicate, chunk, truths, fields, scanners);
            }
        }
    }

    /// Evaluates predicates that compare a field with numbers, none of them evaluated yet, in one go; there is room for
    /// their truths. False if they have to be evaluated one by one.
    pub fn evaluate_together(
        &mut self,
        path: &FieldPath,
        predicates: &[u32],
        chunk: &Chunk,
        truths: &mut TruthTable,
    ) -> bool {
        let Payload::Arrow(rows) = &chunk.payload else {
            return false;
        };
        let Column::Floats(column, nulls) = rows.column(path) else {
            return false;
        };
        let test = |predicate: &u32| {
            let (_, comparison, constant) = plain_comparison(&self.nodes[*predicate as usize])?;
            Some(FloatTest {
                comparison,
                constant: as_float(constant)?,
                begin: truths.begin(*predicate),
            })
        };
        let Some(tests) = predicates.iter().map(test).collect::<Option<Vec<_>>>() else {
            return false;
        };
        let unknown = compare_floats(column, nulls.as_ref(), &tests, truths.all_bits());
        for predicate in predicates {
            truths.note_filled(*predicate, chunk.len());
        }
        self.evaluations += (chunk.len() * predicates.len()) as u64;
        self.unknown += unknown * predicates.len() as u64;
        true
    }

    /// Evaluates a predicate for the rows of a chunk that it was not evaluated for yet; there is room for its truths.
    fn evaluate(
        &mut self,
        predicate: u32,
        chunk: &Chunk,
        truths: &mut TruthTable,
        fields: &Fields,
        scanners: &[Scanner],
    ) {
        let node = &self.nodes[predicate as usize];
        let (filled, bits) = (truths.filled(predicate), truths.bits(predicate));
        let mut unknown = 0;
        let done = match (&chunk.payload, plain_comparison(node)) {
            (Payload::Arrow(rows), Some((path, comparison, constant))) => {
                compare_column(rows, path, comparison, constant, bits, &mut unknown)
            }
            (Payload::Scanned(rows), Some((path, comparison, constant))) => {
                let column = fields.find(path).and_then(|field| rows.column(field));
                column.is_some_and(|column| {
                    let compared = (path, comparison, constant);
                    compare_scalars(rows, column, compared, filled..chunk.len(), bits, &mut unknown);
                    true
                })
            }
            (Payload::Arrow(rows), None) => {
                let tested = test_column(rows, node, bits).or_else(|| test_condition(rows, node, bits));
                tested.map(|more| unknown = more).is_some()
            }
            _ => false,
        };
        if !done {
            for (offset, place) in chunk.arrived_after(filled) {
                let row = RowView {
                    chunk,
                    offset,
                    fields,
                    scanners,
                };
                set(bits, place, node.evaluate(Some(&row), &[]).as_truth(), &mut unknown);
            }
        }
        self.evaluations += (chunk.len() - filled) as u64;
        self.unknown += unknown;
        truths.note_filled(predicate, chunk.len());
    }
}

/// Notes the truth of a row that was evaluated last.
fn set(bits: &mut [u64], offset: usize, truth: Option<bool>, unknown: &mut u64) {
    match truth {
        Some(true) => bits[offset / WORD_ROWS] |= 1 << (offset % WORD_ROWS),
        Some(false) => {}
        None => *unknown += 1,
    }
}

/// `field comparison constant`, from either side.
pub(crate) fn plain_comparison(node: &Node) -> Option<(&FieldPath, Comparison, &Value)> {
    let Node::Comparison(comparison, left, right) = node else {
        return None;
    };
    match (&**left, &**right) {
        (Node::Field(path), Node::Literal(constant)) => Some((path, *comparison, constant)),
        (Node::Literal(constant), Node::Field(path)) => Some((path, comparison.flipped(), constant)),
        _ => None,
    }
}

/// Compares a field of all rows, if there is a way to by column.
#[allow(clippy::cast_precision_loss)] // int with float compares as float64
pub(crate) fn compare_column(
    rows: &ArrowRows,
    path: &FieldPath,
    comparison: Comparison,
    constant: &Value,
    bits: &mut [u64],
    unknown: &mut u64,
) -> bool {
    match (rows.column(path), constant) {
        (Column::Missing, _) => *unknown += rows.len() as u64,
        (Column::Floats(column, nulls), Value::Float(_) | Value::Int(_)) => {
            let test = as_float(constant).map(|constant| FloatTest {
                comparison,
                constant,
                begin: 0,
            });
            *unknown += compare_floats(column, nulls.as_ref(), test.as_slice(), bits);
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

/// The same over scanned values, for some rows up to the last.
fn compare_scalars(
    rows: &ScannedRows,
    column: &ScannedColumn,
    (path, comparison, constant): (&FieldPath, Comparison, &Value),
    compared: Range<usize>,
    bits: &mut [u64],
    unknown: &mut u64,
) {
    let from = compared.start / WORD_ROWS;
    let known = from * WORD_ROWS..compared.start;
    if let Some(more) = column.compare(path.declared, comparison, constant, known, &mut bits[from..]) {
        *unknown += more;
        return;
    }
    for offset in compared {
        let truth = match (column.get(offset), constant) {
            (Scalar::Text(span), Value::Str(text)) if matches!(path.declared, 0 | 4) => {
                Some(comparison.accepts(rows.text(span).as_bytes().cmp(text.as_bytes())))
            }
            (Scalar::Int(number), _) => comparison.apply(&path.conform(Value::Int(number)), constant),
            (Scalar::Float(number), _) => comparison.apply(&path.conform(Value::Float(number)), constant),
            (Scalar::Bool(truth), _) => comparison.apply(&path.conform(Value::Bool(truth)), constant),
            (Scalar::Missing | Scalar::List(_) | Scalar::Text(_), _) => None,
        };
        set(bits, offset, truth, unknown);
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
