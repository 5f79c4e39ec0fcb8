//! What a feed says: ids, order, JSON and columns.

use std::sync::Arc;

use afa_engine::changes::arrow::{COLUMNS, Texts, Values};
use afa_engine::changes::table::{ChangeKind, ChangeRow, ChangeTable, Outcome, PatternFace};
use afa_engine::program::value::Value;
use afa_engine::raw::json;
use afa_engine::rows::event::{Data, Id};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_buffer::{BooleanBuffer, NullBuffer, OffsetBuffer};
use arrow_schema::DataType;

fn table(name: &str, registers: &[&str]) -> ChangeTable {
    let registers = registers.iter().map(|name| Arc::from(*name)).collect();
    let face = PatternFace {
        name: name.into(),
        registers,
        is_query: false,
        variables: None,
        is_compressed: false,
    };
    ChangeTable::new(Arc::new([face].into_iter().collect()))
}

fn outcome(state: &str, registers: &[Value]) -> Outcome {
    Outcome {
        pattern: 0,
        state: state.into(),
        registers: registers.into(),
    }
}

/// The last outcome and key of the table, with a time window of 2000.
fn push(table: &mut ChangeTable, kind: ChangeKind, span: (i64, i64), first: &str, last: &str) {
    let (first, last) = (table.push_id(&Id::of(first)), table.push_id(&Id::of(last)));
    let newest = |length: usize| u32::try_from(length - 1).unwrap();
    table.rows.push(ChangeRow {
        kind,
        degraded: false,
        has_until: true,
        pattern: 0,
        key: newest(table.keys.len()),
        outcome: newest(table.outcomes.len()),
        record: 0,
        partition: 0,
        start: span.0,
        end: span.1,
        until: span.0.saturating_add(2000),
        first,
        last,
    });
}

/// The example of the contract.
fn example() -> ChangeTable {
    let mut table = table("q1", &["r1", "r2"]);
    table.keys.push("YHOO".into());
    table.outcomes.push(outcome("q3", &[Value::Int(0), Value::Int(2)]));
    push(&mut table, ChangeKind::Insert, (1000, 1900), "e1", "e9");
    table
}

fn hex(bytes: [u8; 16]) -> String {
    format!("{:032x}", u128::from_be_bytes(bytes))
}

fn items(data: &Data) -> &[Data] {
    if let Data::List(items) = data {
        items
    } else {
        panic!("a list, not {data:?}")
    }
}

fn text(data: &Data) -> &str {
    if let Data::Str(text) = data {
        text
    } else {
        panic!("a text, not {data:?}")
    }
}

fn int(data: &Data) -> i64 {
    if let Data::Int(number) = data {
        *number
    } else {
        panic!("an int, not {data:?}")
    }
}

#[test]
fn match_ids_are_those_of_the_vectors() {
    let vectors = json::read(include_bytes!("../../../../schemas/match-ids.json")).unwrap();
    let mut checked = 0;
    for vector in items(vectors.get("vectors").unwrap()) {
        let list = items(vector.get("list").unwrap());
        let ending = list.get(6).map_or(&[][..], items);
        let (Some(Data::Str(state)), Some(Data::List(registers))) = (ending.first(), ending.get(1)) else {
            continue; // a query's bindings, or no match at all
        };
        let mut table = table(text(&list[0]), &[]);
        table.keys.push(text(&list[1]).into());
        table
            .outcomes
            .push(outcome(state, &registers.iter().map(Data::value).collect::<Vec<_>>()));
        push(
            &mut table,
            ChangeKind::Insert,
            (int(&list[2]), int(&list[4])),
            text(&list[3]),
            text(&list[5]),
        );
        assert_eq!(
            hex(table.match_id(&table.rows[0])),
            text(vector.get("match").unwrap()),
            "{vector:?}"
        );
        checked += 1;
    }
    assert!(checked >= 12, "only {checked}");
}

#[test]
fn ids_are_positions_or_texts() {
    let mut table = example();
    for id in [
        "000000000007",
        "999999999999",
        "1000000000000",
        "7",
        "",
        "é/00001",
        "9999999999999999999",
        "0000000000001",
    ] {
        let slot = table.push_id(&Id::of(id));
        assert_eq!(table.id_text(slot), id);
    }
    let slot = table.push_id(&Id::Number(u64::MAX));
    assert_eq!(table.id_text(slot), u64::MAX.to_string());
}

#[test]
fn positions_and_their_texts_make_the_same_match_id() {
    for number in [0, 7, 999_999_999_999, 1_000_000_000_000, i64::MAX.unsigned_abs()] {
        let mut table = example();
        table.rows[0].first = table.push_id(&Id::Number(number));
        let by_number = table.match_id(&table.rows[0]);
        table.rows[0].first = table.push_text(&format!("{number:012}"));
        assert_eq!(table.match_id(&table.rows[0]), by_number);
    }
}

#[test]
fn json_is_what_replay_prints() {
    let mut table = example();
    let printed = |table: &ChangeTable, row: usize| String::from_utf8(table.json(&table.rows[row])).unwrap();
    let start = r#"{"op":"insert","match":"fb6173c267eaa8ceef7cbe434fb74bc4","pattern":"q1","key":"YHOO","start":1000,"end":1900"#;
    let end = r#""state":"q3","registers":{"r1":0,"r2":2},"events":{"first":"e1","last":"e9"}"#;
    assert_eq!(printed(&table, 0), format!(r#"{start},"until":3000,{end}}}"#));
    table.rows[0].has_until = false;
    table.rows[0].degraded = true;
    assert_eq!(
        printed(&table, 0),
        format!(r#"{start},"until":null,{end},"degraded":true}}"#)
    );
    table.rows.push(ChangeRow::punctuation(0, 3, -5000, 0));
    assert_eq!(printed(&table, 1), r#"{"op":"punctuation","pattern":"q1","ts":-5000}"#);
}

#[test]
fn registers_of_every_type_in_json() {
    let mut table = table("p\"", &["a", "b", "c", "d", "é"]);
    table.keys.push("k\n".into());
    let values = [
        Value::Float(1e16),
        Value::Bool(true),
        Value::Str("\\".into()),
        Value::Unknown,
        Value::Float(5.0),
    ];
    table.outcomes.push(outcome("q", &values));
    push(&mut table, ChangeKind::Retract, (0, 1), "000000000001", "2");
    let printed = String::from_utf8(table.json(&table.rows[0])).unwrap();
    assert!(
        printed.contains(r#""registers":{"a":1e+16,"b":true,"c":"\\","d":null,"é":5.0},"#),
        "{printed}"
    );
    assert!(
        printed.contains(r#""pattern":"p\"","key":"k\n","#) && printed.starts_with(r#"{"op":"retract","#),
        "{printed}"
    );
    assert!(
        printed.ends_with(r#""events":{"first":"000000000001","last":"2"}}"#),
        "{printed}"
    );
}

#[test]
fn a_group_is_sorted_and_what_came_before_stays() {
    let mut table = table("p", &[]);
    table.outcomes.push(outcome("f", &[]));
    table.keys.push("z".into());
    push(&mut table, ChangeKind::Insert, (9, 9), "a", "b");
    let earlier = table.rows[0];
    table.rows.push(ChangeRow::punctuation(0, 1, 5, 0));
    push(&mut table, ChangeKind::Insert, (2, 4), "a", "b");
    push(&mut table, ChangeKind::Insert, (2, 3), "a", "b");
    push(&mut table, ChangeKind::Retract, (7, 8), "a", "b");
    table.keys.push("b".into());
    for first in ["i", "j", "k", "l"] {
        push(&mut table, ChangeKind::Insert, (2, 3), first, "b");
    }
    table.sort_group(1);
    assert_eq!(table.rows[0], earlier);
    let told: Vec<_> = table.rows[1..]
        .iter()
        .map(|row| (row.kind, row.key, row.start, row.end))
        .collect();
    let insert = |key, end| (ChangeKind::Insert, key, 2, end);
    let mut expected = vec![(ChangeKind::Retract, 0, 7, 8)];
    expected.extend([insert(1, 3); 4]);
    expected.extend([insert(0, 3), insert(0, 4), (ChangeKind::Punctuation, 1, 5, 5)]);
    assert_eq!(told, expected);
    let ids: Vec<_> = table.rows[2..6].iter().map(|row| table.match_id(row)).collect();
    assert!(ids.is_sorted(), "equal spans by id");
    table.sort_group(99);
}

fn record_batch(table: &ChangeTable, with_ids: bool) -> RecordBatch {
    let columns = table.to_columns(with_ids).unwrap();
    let texts = |texts: Texts<'_>, nulls| {
        let offsets = OffsetBuffer::new(texts.offsets.to_vec().into());
        StringArray::new(offsets, texts.bytes.to_vec().into(), nulls)
    };
    let named = columns.columns().zip(COLUMNS).map(|(column, (name, _))| {
        let nulls = column
            .validity
            .map(|bits| NullBuffer::from(BooleanBuffer::new(bits.to_vec().into(), 0, columns.rows())));
        assert_eq!(nulls.as_ref().map_or(0, NullBuffer::null_count), column.null_count);
        let array: ArrayRef = match column.values {
            Values::Times(times) => Arc::new(Int64Array::new(times.to_vec().into(), nulls)),
            Values::Texts(all) => Arc::new(texts(all, nulls)),
            Values::Dictionary(indices, all) => {
                let indices = Int32Array::new(indices.to_vec().into(), nulls);
                Arc::new(DictionaryArray::new(indices, Arc::new(texts(all, None))))
            }
        };
        (name, array, true)
    });
    RecordBatch::try_from_iter_with_nullable(named).unwrap()
}

fn texts(batch: &RecordBatch, name: &str) -> Vec<Option<String>> {
    let column = batch.column_by_name(name).unwrap();
    if *column.data_type() == DataType::Utf8 {
        return column
            .as_string::<i32>()
            .iter()
            .map(|text| text.map(Into::into))
            .collect();
    }
    let dictionary = column.as_dictionary::<Int32Type>();
    let values = dictionary.values().as_string::<i32>();
    let keys = dictionary.keys().iter();
    keys.map(|key| key.map(|key| values.value(usize::try_from(key).unwrap()).to_owned()))
        .collect()
}

fn numbers(batch: &RecordBatch, name: &str) -> Vec<Option<i64>> {
    batch
        .column_by_name(name)
        .unwrap()
        .as_primitive::<Int64Type>()
        .iter()
        .collect()
}

#[test]
fn columns_say_the_same_as_rows() {
    let mut table = example();
    table.outcomes.push(outcome("q3", &[Value::Int(0), Value::Int(2)]));
    push(&mut table, ChangeKind::Retract, (1, 2), "000000000001", "000000000002");
    table.rows[1].has_until = false;
    table.rows.push(ChangeRow::punctuation(0, 77, 5000, 1));
    let batch = record_batch(&table, true);
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(
        texts(&batch, "op"),
        [some("insert"), some("retract"), some("punctuation")]
    );
    assert_eq!(texts(&batch, "pattern"), [some("q1"), some("q1"), some("q1")]);
    assert_eq!(texts(&batch, "key"), [some("YHOO"), some("YHOO"), None]);
    assert_eq!(numbers(&batch, "start"), [Some(1000), Some(1), None]);
    assert_eq!(numbers(&batch, "end"), [Some(1900), Some(2), Some(5000)]);
    assert_eq!(numbers(&batch, "until"), [Some(3000), None, None]);
    assert_eq!(texts(&batch, "state"), [some("q3"), some("q3"), None]);
    assert_eq!(texts(&batch, "first"), [some("e1"), some("000000000001"), None]);
    assert_eq!(texts(&batch, "last"), [some("e9"), some("000000000002"), None]);
    assert_eq!(
        texts(&batch, "registers"),
        [some(r#"{"r1":0,"r2":2}"#), some(r#"{"r1":0,"r2":2}"#), None]
    );
    assert_eq!(texts(&batch, "bindings"), [None, None, None]);
    let retracted = hex(table.match_id(&table.rows[1]));
    assert_eq!(
        texts(&batch, "match"),
        [some("fb6173c267eaa8ceef7cbe434fb74bc4"), Some(retracted), None]
    );
    let registers = batch.column_by_name("registers").unwrap().as_dictionary::<Int32Type>();
    assert_eq!(registers.values().len(), 1, "no text twice");
}

#[test]
fn an_empty_table_has_the_same_columns() {
    let (full, empty) = (record_batch(&example(), false), record_batch(&table("q1", &[]), false));
    assert_eq!(empty.num_rows(), 0);
    assert_eq!(empty.schema(), full.schema());
    let names = [
        "op",
        "pattern",
        "key",
        "start",
        "end",
        "until",
        "state",
        "first",
        "last",
        "registers",
        "bindings",
    ];
    assert_eq!(
        full.schema()
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .collect::<Vec<_>>(),
        names
    );
}

#[test]
fn many_rows_of_every_kind() {
    let mut table = example();
    let outcomes = ["q3", "q4", "q3"].map(|state| outcome(state, &[Value::Int(1), Value::Unknown]));
    table.outcomes.extend(outcomes);
    let row = table.rows.pop().unwrap();
    for number in 0..1000_u32 {
        if number % 7 == 3 {
            table
                .rows
                .push(ChangeRow::punctuation(0, number, number.into(), number));
            continue;
        }
        let (first, last) = (
            table.push_id(&Id::Number(u64::from(number) * 997)),
            table.push_id(&Id::Text(format!("é{number}").into())),
        );
        table.rows.push(ChangeRow {
            outcome: number % 4,
            has_until: number % 3 > 0,
            first,
            last,
            start: number.into(),
            ..row
        });
    }
    let batch = record_batch(&table, true);
    for (name, of_row) in [("first", 0), ("last", 1), ("state", 2)] {
        let expected = table.rows.iter().map(|row| {
            (row.kind != ChangeKind::Punctuation).then(|| match of_row {
                0 => table.id_text(row.first).into_owned(),
                1 => table.id_text(row.last).into_owned(),
                _ => table.outcomes[row.outcome as usize].state.to_string(),
            })
        });
        assert_eq!(texts(&batch, name), expected.collect::<Vec<_>>());
    }
    let untils = table.rows.iter().map(|row| row.has_until.then_some(row.until));
    assert_eq!(numbers(&batch, "until"), untils.collect::<Vec<_>>());
    let states = batch.column_by_name("state").unwrap().as_dictionary::<Int32Type>();
    assert_eq!(states.values().len(), 2, "no text twice");
}

/// Not a test: `cargo test --release -p afa-engine --test change_table -- --ignored --nocapture`.
#[test]
#[ignore = "measures"]
#[allow(clippy::cast_precision_loss)]
fn speed() {
    let mut table = example();
    let rows = 4096_u64;
    let mut row = table.rows.pop().unwrap();
    let time = |name: &str, run: &mut dyn FnMut()| {
        let rounds = (0..500).map(|_| {
            let start = std::time::Instant::now();
            run();
            start.elapsed().as_nanos()
        });
        println!(
            "{name}: {:.2} ns per row",
            rounds.min().unwrap_or(0) as f64 / rows as f64
        );
    };
    time("push", &mut || {
        table.rows.clear();
        for number in 0..rows {
            row.first = table.push_id(&Id::Number(number));
            row.last = table.push_id(&Id::Number(number + 9));
            table.rows.push(std::hint::black_box(row));
        }
    });
    time("columns", &mut || {
        std::hint::black_box(table.to_columns(false).unwrap());
    });
    time("columns with ids", &mut || {
        std::hint::black_box(table.to_columns(true).unwrap());
    });
    time("json", &mut || {
        let mut out = Vec::new();
        table.rows.iter().for_each(|row| table.write_json(row, &mut out));
        std::hint::black_box(out);
    });
}
