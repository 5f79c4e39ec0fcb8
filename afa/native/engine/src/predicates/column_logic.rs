//! Conditions over whole columns that are made of tests with `and`, `or`, `not` and choices, as those under which a query
//! ignores an event: which rows they are true of, and which they are known of, as bits.

use crate::arrow::rows::ArrowRows;
use crate::predicates::column_tests::test_column;
use crate::predicates::kernel::{WORD_ROWS, rows_mask, words};
use crate::predicates::predicate::{compare_column, plain_comparison};
use crate::program::expression::Node;
use crate::program::value::{Comparison, Value};

/// Fewer rows are looked at one by one.
const LEAST_ROWS: usize = 16;

/// What is known of a condition in each row.
struct Truth {
    holds: Vec<u64>,
    fails: Vec<u64>,
}

/// Tests a condition, if there is a way to: all bits of the rows are written. The answer is how many rows are unknown.
pub(crate) fn test_condition(rows: &ArrowRows, node: &Node, bits: &mut [u64]) -> Option<u64> {
    if rows.len() < LEAST_ROWS {
        return None;
    }
    let truth = Truth::of(rows, node)?;
    let mut unknown = 0;
    for (word, bits) in bits[..words(rows.len())].iter_mut().enumerate() {
        *bits = truth.holds[word];
        let known = truth.holds[word] | truth.fails[word];
        let mask = rows_mask(rows.len() - word * WORD_ROWS);
        unknown += u64::from((mask & !known).count_ones());
    }
    Some(unknown)
}

impl Truth {
    fn of(rows: &ArrowRows, node: &Node) -> Option<Self> {
        match node {
            Node::Literal(Value::Bool(truth)) => Some(Self::constant(rows.len(), Some(*truth))),
            Node::Literal(Value::Unknown) => Some(Self::constant(rows.len(), None)),
            Node::Comparison(comparison, left, right) => Self::of_test(rows, *comparison, (left, right)),
            Node::UnknownTest(operand) => Self::of(rows, operand).map(|truth| truth.unknown(rows.len())),
            Node::Membership(operand, items) => {
                let is_item = |item: &Value| {
                    let item = Box::new(Node::Literal(item.clone()));
                    Self::of_test(rows, Comparison::Equal, (operand, &item))
                };
                Self::any(rows.len(), items.iter().map(is_item))
            }
            Node::Or(all) => Self::any(rows.len(), all.iter().map(|node| Self::of(rows, node))),
            Node::And(all) => {
                let fail = |node| Self::of(rows, node).map(Self::negated);
                Self::any(rows.len(), all.iter().map(fail)).map(Self::negated)
            }
            Node::Not(operand) => Self::of(rows, operand).map(Self::negated),
            Node::Choice(false, condition, then, otherwise) => {
                let condition = Self::of(rows, condition)?;
                Some(condition.choose(&Self::of(rows, then)?, &Self::of(rows, otherwise)?))
            }
            _ => None,
        }
    }

    fn constant(rows: usize, truth: Option<bool>) -> Self {
        let all = |wanted: bool| {
            let word = |word: usize| rows_mask(rows - word * WORD_ROWS);
            let bits = (0..words(rows)).map(|number| if truth == Some(wanted) { word(number) } else { 0 });
            bits.collect()
        };
        Self {
            holds: all(true),
            fails: all(false),
        }
    }

    /// A comparison and its opposite: where neither is true it is unknown.
    fn of_test(rows: &ArrowRows, comparison: Comparison, (left, right): (&Node, &Node)) -> Option<Self> {
        let holds = true_bits(rows, comparison, left, right)?;
        let fails = if left == right {
            // A value that is there equals itself.
            vec![0; holds.len()]
        } else {
            true_bits(rows, comparison.opposite(), left, right)?
        };
        Some(Self { holds, fails })
    }

    fn negated(self) -> Self {
        Self {
            holds: self.fails,
            fails: self.holds,
        }
    }

    fn any(rows: usize, all: impl Iterator<Item = Option<Self>>) -> Option<Self> {
        let mut any = Self::constant(rows, Some(false));
        for one in all {
            let one = one?;
            for word in 0..any.holds.len() {
                any.holds[word] |= one.holds[word];
                any.fails[word] &= one.fails[word];
            }
        }
        Some(any)
    }

    /// The rows that it is not known of.
    fn unknown(mut self, rows: usize) -> Self {
        for word in 0..self.holds.len() {
            let known = self.holds[word] | self.fails[word];
            self.holds[word] = rows_mask(rows - word * WORD_ROWS) & !known;
            self.fails[word] = known;
        }
        self
    }

    /// The one where this holds, the other where it fails.
    fn choose(&self, then: &Self, otherwise: &Self) -> Self {
        let pick = |then: &[u64], otherwise: &[u64]| {
            let word = |word: usize| self.holds[word] & then[word] | self.fails[word] & otherwise[word];
            (0..then.len()).map(word).collect()
        };
        Self {
            holds: pick(&then.holds, &otherwise.holds),
            fails: pick(&then.fails, &otherwise.fails),
        }
    }
}

/// The rows of which a comparison is true, if they can be found by column.
fn true_bits(rows: &ArrowRows, comparison: Comparison, left: &Node, right: &Node) -> Option<Vec<u64>> {
    let mut bits = vec![0; words(rows.len())];
    let node = Node::Comparison(comparison, Box::new(left.clone()), Box::new(right.clone()));
    let is_done = match plain_comparison(&node) {
        Some((path, comparison, constant)) => compare_column(rows, path, comparison, constant, &mut bits, &mut 0),
        None => test_column(rows, &node, &mut bits).is_some(),
    };
    is_done.then_some(bits)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};

    use super::test_condition;
    use crate::arrow::rows::ArrowRows;
    use crate::predicates::column_tests::tests::{comparison, field, literal};
    use crate::predicates::predicate::Fields;
    use crate::program::expression::{Attribute, Node};
    use crate::program::value::{Arithmetic, Comparison, Value};
    use crate::rows::chunk::Chunk;
    use crate::rows::view::RowView;

    fn rows(count: usize) -> ArrowRows {
        let ints = (0..count).map(|row| (row % 7 != 3).then_some(i64::try_from(row).unwrap_or(0) % 5 - 2));
        let floats = (0..count).map(|row| match row % 6 {
            0 => None,
            1 => Some(f64::NAN),
            other => Some(if other > 3 { 1.5 } else { -1.0 }),
        });
        let kinds = (0..count).map(|row| (row % 11 != 5).then_some(if row % 90 > 70 { "Other" } else { "Stock" }));
        let columns: [(&str, ArrayRef); 5] = [
            ("key", Arc::new(StringArray::from(vec!["k"; count]))),
            ("ts", Arc::new(Int64Array::from_iter_values((0..).take(count)))),
            ("type", Arc::new(kinds.collect::<StringArray>())),
            ("x", Arc::new(ints.collect::<Int64Array>())),
            ("y", Arc::new(floats.collect::<Float64Array>())),
        ];
        ArrowRows::new(&RecordBatch::try_from_iter(columns).expect("columns")).expect("a batch")
    }

    /// Numbers that look random.
    struct Dice(u64);

    impl Dice {
        fn roll(&mut self, sides: u64) -> u64 {
            self.0 = self
                .0
                .wrapping_mul(0x5851_f42d_4c95_7f2d)
                .wrapping_add(0x1405_7b7e_f767_814f);
            (self.0 >> 33) % sides
        }

        fn pick(&mut self, sides: u64) -> usize {
            usize::try_from(self.roll(sides)).unwrap_or(0)
        }

        fn operator(&mut self) -> Comparison {
            use Comparison::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
            [Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual][self.pick(6)]
        }

        fn test(&mut self) -> Node {
            let is_equal = self.roll(2) == 0;
            let equality = if is_equal {
                Comparison::Equal
            } else {
                Comparison::NotEqual
            };
            let number = literal(Value::Int(i64::try_from(self.roll(5)).unwrap_or(0) - 2));
            match self.roll(7) {
                0 => comparison(self.operator(), field("x"), number),
                1 => comparison(self.operator(), field("y"), literal(Value::Float(1.5))),
                2 => {
                    let kind = Node::Attribute(Attribute::Kind);
                    comparison(equality, kind, literal(Value::Str("Stock".into())))
                }
                3 => {
                    let three = Box::new(literal(Value::Int(3)));
                    let rest = Node::Arithmetic(Arithmetic::Mod, Box::new(field("x")), three);
                    comparison(equality, rest, literal(Value::Int(1)))
                }
                4 => comparison(Comparison::Equal, field("x"), field("x")),
                5 => Node::Membership(Box::new(field("x")), vec![Value::Int(1), Value::Int(-2)]),
                _ => comparison(self.operator(), number, field("absent")),
            }
        }

        fn node(&mut self, depth: u64) -> Node {
            if depth == 0 {
                return self.test();
            }
            let all = |dice: &mut Self| (0..=dice.roll(3)).map(|_| dice.node(depth - 1)).collect();
            match self.roll(7) {
                0 => Node::And(all(self)),
                1 => Node::Or(all(self)),
                2 => Node::Not(Box::new(self.node(depth - 1))),
                3 => Node::UnknownTest(Box::new(self.node(depth - 1))),
                4 => Node::Choice(
                    false,
                    Box::new(self.node(depth - 1)),
                    Box::new(self.node(depth - 1)),
                    Box::new(self.node(depth - 1)),
                ),
                5 => literal([Value::Bool(true), Value::Bool(false), Value::Unknown][self.pick(3)].clone()),
                _ => self.test(),
            }
        }
    }

    #[test]
    fn rows_one_by_one_say_the_same() {
        let mut dice = Dice(1);
        let fields = Fields::default();
        for round in 0..400 {
            let (node, count) = (
                dice.node(round % 4),
                [16, 64, 200][usize::try_from(round % 3).unwrap_or(0)],
            );
            let rows = rows(count);
            let chunk = Chunk::arrow(rows.clone(), 0);
            let truth = |offset| {
                let row = RowView {
                    chunk: &chunk,
                    offset,
                    fields: &fields,
                    scanners: &[],
                };
                node.evaluate(Some(&row), &[]).as_truth()
            };
            let mut bits = vec![u64::MAX; count.div_ceil(64)];
            let unknown = test_condition(&rows, &node, &mut bits).expect("a way by column");
            for row in 0..count {
                let found = bits[row / 64] >> (row % 64) & 1 != 0;
                assert_eq!(found, truth(row) == Some(true), "row {row} of {node:?}");
            }
            let expected = (0..count).filter(|row| truth(*row).is_none()).count();
            assert_eq!(unknown, expected as u64, "{node:?}");
        }
    }
}
