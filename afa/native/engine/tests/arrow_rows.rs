//! Record batches of all layouts, read as rows and as columns.

use std::sync::Arc;

use afa_engine::arrow::rows::{ArrowRows, Column, Keys};
use afa_engine::program::expression::FieldPath;
use afa_engine::program::value::Value;
use afa_engine::rows::event::Data;
use arrow_array::builder::{FixedSizeListBuilder, Float64Builder, Int32Builder, LargeListBuilder, ListBuilder};
use arrow_array::types::{Int8Type, Int32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, DictionaryArray, Float32Array, Float64Array, Int16Array, Int64Array,
    LargeStringArray, NullArray, RecordBatch, StringArray, StringViewArray, StructArray, TimestampMillisecondArray,
    UInt64Array,
};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field};

fn column(array: impl Array + 'static) -> ArrayRef {
    Arc::new(array)
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}

/// Rows of one key with the times 0, 1, 2 … and these fields.
fn with_fields(fields: Vec<(&str, ArrayRef)>) -> ArrowRows {
    let length = fields[0].1.len();
    let mut columns = vec![
        ("key", column(StringArray::from(vec!["k"; length]))),
        (
            "ts",
            column(Int64Array::from_iter_values(0..i64::try_from(length).unwrap())),
        ),
    ];
    columns.extend(fields);
    ArrowRows::new(&batch(columns)).unwrap()
}

fn path(steps: &[&str], declared: u8) -> FieldPath {
    FieldPath {
        steps: steps.iter().map(|step| Arc::from(*step)).collect(),
        declared,
    }
}

fn text(text: &str) -> Value {
    Value::Str(text.into())
}

#[test]
fn keys_of_every_layout_read_the_same() {
    let texts = vec![Some("a"), None, Some("b"), Some("b")];
    let values: ArrayRef = column(LargeStringArray::from(vec!["b", "a"]));
    let layouts = vec![
        column(StringArray::from(texts.clone())),
        column(LargeStringArray::from(texts.clone())),
        column(StringViewArray::from(texts.clone())),
        column(texts.iter().copied().collect::<DictionaryArray<Int32Type>>()),
        column(texts.iter().copied().collect::<DictionaryArray<Int8Type>>()),
        column(DictionaryArray::<UInt64Type>::new(
            UInt64Array::from(vec![Some(1), None, Some(0), Some(0)]),
            values,
        )),
    ];
    for layout in layouts {
        let rows = ArrowRows::new(&batch(vec![
            ("key", layout),
            ("ts", column(Int64Array::from(vec![1, 2, 3, 4]))),
        ]))
        .unwrap();
        assert_eq!((0..4).map(|row| rows.key(row)).collect::<Vec<_>>(), texts);
        assert_eq!(
            (0..4).map(|row| rows.same_key_as_previous(row)).collect::<Vec<_>>(),
            [false, false, false, true]
        );
        let tail = rows.slice(2, 9);
        assert_eq!((tail.len(), tail.key(0), tail.times()), (2, Some("b"), &[3, 4][..]));
        assert!(!tail.same_key_as_previous(0) && tail.same_key_as_previous(1));
    }
}

#[test]
fn a_dictionary_gives_its_numbers_and_its_nulls() {
    let values = column(StringArray::from(vec![Some("a"), None]));
    let keys = DictionaryArray::<Int32Type>::new(vec![Some(0), Some(1), None, Some(0)].into(), values);
    let columns = batch(vec![
        ("key", column(keys)),
        ("ts", column(Int64Array::from(vec![1, 2, 3, 4]))),
    ]);
    let (rows, again) = (
        ArrowRows::new(&columns).unwrap(),
        ArrowRows::new(&columns.slice(1, 2)).unwrap(),
    );
    let Keys::Dictionary { values, indices, nulls } = rows.keys() else {
        panic!("a dictionary")
    };
    assert_eq!((values.get(0), values.len(), indices[3]), (Some("a"), 2, 0));
    assert_eq!(nulls.unwrap().null_count(), 2, "a null of the dictionary is no key");
    assert_eq!(
        (0..4).map(|row| rows.key_index(row)).collect::<Vec<_>>(),
        [Some(0), None, None, Some(0)]
    );
    assert!(rows.same_key_dictionary(&again), "the same memory");
}

#[test]
fn own_columns_have_their_meaning_and_are_no_data() {
    let rows = with_fields(vec![
        ("id", column(StringArray::from(vec![Some("e1"), None]))),
        ("seq", column(Int16Array::from(vec![Some(7), None]))),
        ("rev", column(Int64Array::from(vec![None, Some(3)]))),
        ("type", column(StringArray::from(vec![Some("stock"), None]))),
        ("arc", column(StringArray::from(vec![None, Some("{}")]))),
        ("when", column(NullArray::new(2))),
        ("price", column(Float64Array::from(vec![Some(1.5), None]))),
    ]);
    assert_eq!((rows.id(0), rows.id(1), rows.has_ids()), (Some("e1"), None, true));
    assert_eq!((rows.seq(0), rows.seq(1), rows.has_seqs()), (Some(7), None, true));
    assert_eq!((rows.rev(0), rows.rev(1), rows.has_revs()), (0, 3, true));
    assert_eq!(
        (rows.kind(0), rows.arc(1), rows.when(1)),
        (Some("stock"), Some("{}"), None)
    );
    assert_eq!(rows.data(0), Data::Map(vec![("price".into(), Data::Float(1.5))]));
    assert_eq!(rows.data(1), Data::Map(vec![]), "a null is a missing field");
    let bare = with_fields(vec![("id", column(StringArray::from(vec![None::<&str>])))]);
    assert!(!bare.has_ids() && !bare.has_seqs() && !bare.has_revs());
}

#[test]
fn operations_are_found_without_a_look_at_inserts() {
    let mut operations = vec![None; 1000];
    operations[10] = Some("insert");
    operations[700] = Some("punctuation");
    operations[999] = Some("retract");
    let rows = with_fields(vec![("op", column(StringArray::from(operations)))]);
    let special = |rows: &ArrowRows| {
        let found = rows
            .special_rows()
            .map(|special| (special.row, special.operation.to_owned()));
        found.collect::<Vec<_>>()
    };
    assert_eq!(special(&rows), [(700, "punctuation".into()), (999, "retract".into())]);
    assert_eq!(special(&rows.slice(600, 200)), [(100, "punctuation".into())]);
    let none = with_fields(vec![("op", column(StringArray::from(vec![None::<&str>; 3])))]);
    assert_eq!(none.special_rows().count(), 0);
}

#[test]
fn numbers_of_all_widths_are_ints_or_floats() {
    let rows = with_fields(vec![
        ("small", column(Int16Array::from(vec![Some(-3), None]))),
        ("single", column(Float32Array::from(vec![0.5, f32::NAN]))),
        ("large", column(UInt64Array::from(vec![Some(9), Some(u64::MAX)]))),
        ("infinite", column(Float64Array::from(vec![f64::INFINITY, f64::NAN]))),
        ("flag", column(BooleanArray::from(vec![true, false]))),
        ("blob", column(BinaryArray::from(vec![&b"x"[..], b"y"]))),
    ]);
    let field = |name: &str, row| rows.field(&path(&[name], 0), row);
    assert_eq!((field("small", 0), field("small", 1)), (Value::Int(-3), Value::Unknown));
    assert_eq!(
        (field("single", 0), field("single", 1)),
        (Value::Float(0.5), Value::Unknown)
    );
    assert_eq!((field("large", 0), field("large", 1)), (Value::Int(9), Value::Unknown));
    assert_eq!(
        (field("infinite", 0), field("infinite", 1)),
        (Value::Unknown, Value::Unknown)
    );
    assert_eq!(
        (field("flag", 0), field("blob", 0), field("absent", 0)),
        (Value::Bool(true), Value::Unknown, Value::Unknown)
    );
    assert_eq!(
        rows.field(&path(&["small"], 2), 0),
        Value::Float(-3.0),
        "declared as float"
    );
    assert_eq!(rows.field(&path(&["flag"], 1), 0), Value::Unknown, "declared as int");
    assert_eq!(rows.data(1).get("large"), Some(&Data::OutOfRange));
    assert_eq!(rows.data(1).get("small"), None);
    assert_eq!(rows.data(0).get("blob"), Some(&Data::OutOfRange));
}

#[test]
fn columns_come_as_slices_with_the_nulls_of_the_slice() {
    let rows = with_fields(vec![
        ("f", column(Float64Array::from(vec![Some(1.0), None, Some(3.0)]))),
        ("i", column(Int64Array::from(vec![1, 2, 3]))),
        ("s", column(StringArray::from(vec!["a", "b", "c"]))),
    ]);
    let tail = rows.slice(1, 2);
    assert!(
        matches!(tail.column(&path(&["f"], 2)), Column::Floats(numbers, Some(nulls)) if numbers.len() == 2 && nulls.is_null(0))
    );
    assert!(
        matches!(rows.slice(2, 1).column(&path(&["f"], 0)), Column::Floats([number], None) if number.to_bits() == 3.0_f64.to_bits())
    );
    assert!(matches!(tail.column(&path(&["i"], 1)), Column::Ints([2, 3], None)));
    assert!(matches!(
        tail.column(&path(&["i"], 2)),
        Column::IntsAsFloats([2, 3], None)
    ));
    assert!(matches!(tail.column(&path(&["i"], 4)), Column::Missing));
    assert!(matches!(tail.column(&path(&["s"], 4)), Column::Texts(texts, 1) if texts.get(2) == Some("c")));
    assert!(matches!(tail.column(&path(&["none"], 0)), Column::Missing));
}

#[test]
fn structs_nest_and_a_null_struct_has_no_members() {
    let inner = StructArray::new(
        vec![
            Field::new("x", DataType::Float64, true),
            Field::new("name", DataType::Utf8, true),
        ]
        .into(),
        vec![
            column(Float64Array::from(vec![1.0, 2.0])),
            column(StringArray::from(vec!["one", "two"])),
        ],
        Some(NullBuffer::from(vec![true, false])),
    );
    let rows = with_fields(vec![("at", column(inner))]);
    assert_eq!(rows.field(&path(&["at", "x"], 2), 0), Value::Float(1.0));
    assert_eq!(rows.field(&path(&["at", "name"], 4), 0), text("one"));
    assert_eq!(rows.field(&path(&["at", "x"], 2), 1), Value::Unknown);
    assert_eq!(rows.field(&path(&["at", "name"], 0), 1), Value::Unknown);
    assert_eq!(rows.field(&path(&["at", "y"], 0), 0), Value::Unknown);
    assert_eq!(rows.field(&path(&["at"], 0), 0), Value::Unknown);
    let members = vec![("x".into(), Data::Float(1.0)), ("name".into(), Data::Str("one".into()))];
    assert_eq!(rows.data(0), Data::Map(vec![("at".into(), Data::Map(members))]));
    assert_eq!(rows.data(1), Data::Map(vec![]));
}

#[test]
fn lists_of_numbers_are_values() {
    let mut short = ListBuilder::new(Float64Builder::new());
    let mut long = LargeListBuilder::new(Int32Builder::new());
    let mut fixed = FixedSizeListBuilder::new(Float64Builder::new(), 2);
    short.append_value([Some(1.0), Some(2.5)]);
    short.append_value([Some(1.0), None]);
    long.append_value([Some(3)]);
    long.append(false);
    for number in [1.0, 2.0, f64::NAN, 4.0] {
        fixed.values().append_value(number);
    }
    fixed.append(true);
    fixed.append(true);
    let rows = with_fields(vec![
        ("short", column(short.finish())),
        ("long", column(long.finish())),
        ("fixed", column(fixed.finish())),
    ]);
    let list = |name: &str, row| rows.field(&path(&[name], 5), row);
    assert_eq!(
        (list("short", 0), list("short", 1)),
        (Value::List([1.0, 2.5].into()), Value::Unknown)
    );
    assert_eq!(
        (list("long", 0), list("long", 1)),
        (Value::List([3.0].into()), Value::Unknown)
    );
    assert_eq!(
        (list("fixed", 0), list("fixed", 1)),
        (Value::List([1.0, 2.0].into()), Value::Unknown)
    );
    assert_eq!(rows.data(0).get("long"), Some(&Data::List(vec![Data::Int(3)])));
    assert_eq!(
        rows.data(1).get("short"),
        Some(&Data::List(vec![Data::Float(1.0), Data::Null]))
    );
    assert_eq!(
        rows.slice(1, 1).data(0).get("fixed"),
        Some(&Data::List(vec![Data::OutOfRange, Data::Float(4.0)]))
    );
}

#[test]
fn what_is_wrong_with_a_batch_is_said_in_words() {
    let key = || ("key", column(StringArray::from(vec!["k"])));
    let ts = || ("ts", column(Int64Array::from(vec![1])));
    let refused = |columns| ArrowRows::new(&batch(columns)).unwrap_err();
    assert!(refused(vec![key()]).contains("no column `ts`"));
    assert!(refused(vec![ts()]).contains("no column `key`"));
    assert!(refused(vec![key(), ts(), ts()]).contains("two columns are named `ts`"));
    let number = column(Int64Array::from(vec![1]));
    assert_eq!(
        refused(vec![key(), ts(), ("id", number)]),
        "column `id` is Int64, not string; cast it, in pyarrow with `column.cast(\"string\")`"
    );
    let time = column(TimestampMillisecondArray::from(vec![1]));
    let message = refused(vec![key(), ("ts", time)]);
    assert!(
        message.contains("column `ts` is Timestamp(ms), not int64") && message.contains("cast(\"int64\")"),
        "{message}"
    );
    let half = column(Float64Array::from(vec![1.0]));
    assert!(refused(vec![key(), ts(), ("seq", half)]).contains("column `seq` is Float64, not int64"));
}
