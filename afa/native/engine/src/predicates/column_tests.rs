//! Predicates over whole columns that are more than a comparison of a field with a constant.

use crate::arrow::rows::{ArrowRows, Column};
use crate::predicates::kernel::{divide_ints, find_known, find_texts};
use crate::program::expression::{Attribute, FieldPath, Node};
use crate::program::value::{Arithmetic, Comparison, Value};

/// Tests a column, if there is a way to: all bits of the rows are written. The answer is how many rows are unknown.
pub(crate) fn test_column(rows: &ArrowRows, node: &Node, bits: &mut [u64]) -> Option<u64> {
    let Node::Comparison(comparison, left, right) = node else {
        return None;
    };
    match (&**left, &**right) {
        (Node::Field(one), Node::Field(other)) if one == other => is_there(rows, one, *comparison, bits),
        (Node::Attribute(Attribute::Kind), Node::Literal(Value::Str(kind))) => find_kind(rows, kind, *comparison, bits),
        (Node::Arithmetic(Arithmetic::Mod, field, divisor), Node::Literal(Value::Int(rest))) => {
            let (Node::Field(path), Node::Literal(Value::Int(divisor))) = (&**field, &**divisor) else {
                return None;
            };
            divide(rows, path, (*divisor, *rest), *comparison, bits)
        }
        _ => None,
    }
}

/// `field == field`: whether there is a value.
fn is_there(rows: &ArrowRows, path: &FieldPath, comparison: Comparison, bits: &mut [u64]) -> Option<u64> {
    let mut unknown = 0;
    match (rows.column(path), comparison) {
        (Column::Missing, _) => unknown = rows.len() as u64,
        (Column::Ints(column, nulls), Comparison::Equal) => {
            unknown = find_known(column.len(), nulls.as_ref(), bits);
        }
        (Column::Texts(texts, offset), Comparison::Equal) => {
            find_texts(texts, offset, &[], true, rows.len(), bits, &mut unknown);
        }
        _ => return None,
    }
    Some(unknown)
}

/// `type == constant`.
fn find_kind(rows: &ArrowRows, kind: &str, comparison: Comparison, bits: &mut [u64]) -> Option<u64> {
    let is_negated = match comparison {
        Comparison::Equal => false,
        Comparison::NotEqual => true,
        _ => return None,
    };
    let Some((kinds, offset)) = rows.kinds() else {
        return Some(rows.len() as u64);
    };
    let mut unknown = 0;
    find_texts(kinds, offset, &[kind], is_negated, rows.len(), bits, &mut unknown);
    Some(unknown)
}

/// `field % divisor == rest`, for ints.
fn divide(
    rows: &ArrowRows,
    path: &FieldPath,
    (divisor, rest): (i64, i64),
    comparison: Comparison,
    bits: &mut [u64],
) -> Option<u64> {
    let is_negated = match comparison {
        Comparison::Equal => false,
        Comparison::NotEqual => true,
        _ => return None,
    };
    match rows.column(path) {
        Column::Missing => Some(rows.len() as u64),
        Column::Ints(column, nulls) if (0..divisor).contains(&rest) => Some(divide_ints(
            column,
            nulls.as_ref(),
            (divisor.unsigned_abs(), rest.unsigned_abs()),
            is_negated,
            bits,
        )),
        _ => None,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};

    use super::test_column;
    use crate::arrow::rows::ArrowRows;
    use crate::program::expression::{Attribute, FieldPath, Node};
    use crate::program::value::{Arithmetic, Comparison, Value};

    const NUMBERS: [Option<i64>; 9] = [
        Some(0),
        Some(500),
        None,
        Some(-500),
        Some(499),
        Some(i64::MIN),
        Some(i64::MAX),
        Some(-1),
        Some(1250),
    ];

    fn rows(count: usize) -> ArrowRows {
        let numbers = NUMBERS.iter().copied().cycle().take(count);
        let kinds = (0..count).map(|row| {
            let kind = if row % 190 == 180 { "Other" } else { "Stock" };
            (row % 150 != 140).then_some(kind)
        });
        let columns: [(&str, ArrayRef); 4] = [
            ("key", Arc::new(StringArray::from(vec!["k"; count]))),
            ("ts", Arc::new(Int64Array::from_iter_values((0..).take(count)))),
            ("type", Arc::new(kinds.collect::<StringArray>())),
            ("x", Arc::new(numbers.collect::<Int64Array>())),
        ];
        ArrowRows::new(&RecordBatch::try_from_iter(columns).expect("columns")).expect("a batch")
    }

    pub(crate) fn field(name: &str) -> Node {
        let path = FieldPath {
            steps: Arc::new([name.into()]),
            declared: 0,
        };
        Node::Field(path)
    }

    pub(crate) fn literal(value: Value) -> Node {
        Node::Literal(value)
    }

    pub(crate) fn comparison(comparison: Comparison, left: Node, right: Node) -> Node {
        Node::Comparison(comparison, Box::new(left), Box::new(right))
    }

    /// The row-by-row way and the way by column say the same.
    fn check(node: &Node, truth: impl Fn(usize) -> Option<bool>) {
        for count in [1_usize, 64, 400] {
            let mut bits = vec![u64::MAX; count.div_ceil(64)];
            let unknown = test_column(&rows(count), node, &mut bits).expect("a way by column");
            let found = (0..count).map(|row| bits[row / 64] >> (row % 64) & 1 != 0);
            assert!(found.eq((0..count).map(|row| truth(row) == Some(true))), "{node:?}");
            assert_eq!(unknown, (0..count).filter(|row| truth(*row).is_none()).count() as u64);
        }
    }

    #[test]
    fn remainders_are_those_of_python() {
        for (divisor, rest) in [
            (500, 0),
            (500, 499),
            (1, 0),
            (7, 3),
            (1 << 40, 0),
            (i64::MAX, 0),
            (64, 63),
        ] {
            for kind in [Comparison::Equal, Comparison::NotEqual] {
                let modulo = Node::Arithmetic(
                    Arithmetic::Mod,
                    Box::new(field("x")),
                    Box::new(literal(Value::Int(divisor))),
                );
                let node = comparison(kind, modulo, literal(Value::Int(rest)));
                check(&node, |row| {
                    let is_equal = NUMBERS[row % NUMBERS.len()]?.rem_euclid(divisor) == rest;
                    Some(is_equal == (kind == Comparison::Equal))
                });
            }
        }
    }

    #[test]
    fn a_value_equals_itself_if_there_is_one() {
        let node = comparison(Comparison::Equal, field("x"), field("x"));
        check(&node, |row| NUMBERS[row % NUMBERS.len()].map(|_| true));
        let nothing = comparison(Comparison::Equal, field("y"), field("y"));
        let mut bits = [0];
        assert_eq!(test_column(&rows(9), &nothing, &mut bits), Some(9));
        assert_eq!(bits, [0]);
    }

    #[test]
    fn types_are_compared_many_at_a_time() {
        for (how, kind) in [
            (Comparison::Equal, "Stock"),
            (Comparison::NotEqual, "Stock"),
            (Comparison::Equal, "x"),
        ] {
            let own = Node::Attribute(Attribute::Kind);
            let node = comparison(how, own, literal(Value::Str(kind.into())));
            check(&node, |row| {
                let own = if row % 190 == 180 { "Other" } else { "Stock" };
                let is_equal = own == kind;
                (row % 150 != 140).then_some(is_equal == (how == Comparison::Equal))
            });
        }
    }
}
