"""Record batches in and changes out, in every shape that producers give them."""

from __future__ import annotations

import datetime
import gc
import json
import subprocess
import sys
from decimal import Decimal
from typing import Any

import pytest

from afa import Engine, RecordError
from afa.document import build_pattern

pa = pytest.importorskip("pyarrow")

RISES = build_pattern(
    {
        "pattern": "rises",
        "within": 10,
        "registers": {"top": 0.0, "name": "é"},
        "start": "a",
        "final": ["c"],
        "arcs": [
            {"id": "up", "from": "a", "to": "b", "when": "e.x > 1.0", "set": {"top": "e.x"}},
            {"id": "again", "from": "b", "to": "c", "when": "e.x > r.top"},
        ],
    }
)
EVENTS = [("k1", 1, 2.0), ("k2", 1, 3.0), ("k1", 2, 2.5), ("k2", 2, 1.0), ("k1", 3, 7.0), ("k2", 4, 9.0)]


def columns(events: list[tuple[str, int, float]] = EVENTS) -> dict[str, Any]:
    keys, times, numbers = zip(*events, strict=True)
    return {"key": pa.array(keys), "ts": pa.array(times, pa.int64()), "x": pa.array(numbers, pa.float64())}


def batch_of(**changed: Any) -> Any:
    return pa.RecordBatch.from_pydict(columns() | changed)


def fed(batch: Any) -> list[dict[str, Any]]:
    changes = Engine([RISES]).feed(batch)
    assert (changes.bad, changes.late) == ([], [])
    return changes.to_records()


@pytest.fixture(scope="module")
def expected() -> list[dict[str, Any]]:
    lines = [json.dumps({"key": key, "ts": ts, "data": {"x": x}}).encode() for key, ts, x in EVENTS]
    told = Engine([RISES]).feed(lines).to_records()
    assert len(told) == 2
    return told


class Plain:
    """A producer that is not pyarrow."""

    def __init__(self, batch: Any) -> None:
        self.batch = batch

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        return self.batch.__arrow_c_array__(requested_schema)


def test_keys_of_every_type(expected: list[dict[str, Any]]) -> None:
    keys = columns()["key"]
    widths = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
    shapes = [keys, keys.cast(pa.large_string()), keys.cast(pa.string_view())]
    shapes += [keys.dictionary_encode().cast(pa.dictionary(width, pa.string())) for width in widths]
    shapes += [keys.dictionary_encode().cast(pa.dictionary(pa.int32(), pa.large_string()))]
    for shape in shapes:
        for batch in (batch_of(key=shape), Plain(batch_of(key=shape))):
            assert fed(batch) == expected, shape.type


def test_fields_of_dictionaries() -> None:
    """Of numbers and bools, as of texts; a null of the dictionary is one of the row."""
    found = {}
    for values in (
        pa.array([1.5, 2.5, None]),
        pa.array([1.5, 2.5, None], pa.float32()),
        pa.array([1, 2, None], pa.int16()),
        pa.array([1, 2, None], pa.uint64()),
        pa.array([True, False, None]),
        pa.array(["a", "b", None]),
    ):
        indices = pa.array([0, 1, 2, None, 1, 1, 0], pa.int8())
        column = pa.DictionaryArray.from_arrays(indices, values)
        plain = pa.array(column.to_pylist(), values.type)
        keys = {"key": ["k"] * 7, "ts": pa.array(range(7), pa.int64())}
        hashes = []
        for field in (plain, column):
            engine = Engine([RISES])
            engine.feed(pa.RecordBatch.from_pydict(keys | {"x": field}).slice(1))
            hashes.append(engine.state_hash("k"))
        assert hashes[0] == hashes[1], values.type
        found[values.type] = hashes[0]
    assert len(set(found.values())) == 4, "16 and 64 bits are the same numbers, and so are floats"
    empty = pa.DictionaryArray.from_arrays(pa.array([None], pa.int8()), pa.array([], pa.int64()))
    assert Engine([RISES]).feed(pa.RecordBatch.from_pydict({"key": ["k"], "ts": [1], "x": empty})).bad == []


def test_slices(expected: list[dict[str, Any]]) -> None:
    padded = columns([("k3", 9, 9.0)] * 3 + EVENTS + [("k3", 9, 9.0)] * 2)
    padded["key"] = padded["key"].dictionary_encode()
    padded["op"] = pa.array(["arc"] * 3 + [None] * len(EVENTS) + ["arc"] * 2)
    batch = pa.RecordBatch.from_pydict(padded).slice(3, len(EVENTS))
    assert fed(batch) == fed(Plain(batch)) == expected
    engine = Engine([RISES])
    parts = (engine.feed(batch.slice(place, 1)).to_records() for place in range(len(EVENTS)))
    assert [record for part in parts for record in part] == expected


def test_nulls_in_keys_and_operations(expected: list[dict[str, Any]]) -> None:
    events = [EVENTS[0], ("k1", -5, 0.0), *EVENTS[1:]]
    keys = pa.DictionaryArray.from_arrays(pa.array([0, None, 1, 0, 1, 0, 1], pa.int32()), ["k1", "k2"])
    operations = pa.array([None, "punctuation", "insert", None, None, None, None])
    batch = pa.RecordBatch.from_pydict(columns(events) | {"key": keys, "op": operations})
    told = [record for record in fed(batch) if record["op"] != "punctuation"]
    spans = [(record["key"], record["start"], record["end"]) for record in told]
    assert spans == [(record["key"], record["start"], record["end"]) for record in expected]


def test_an_index_beyond_the_dictionary_hidden_by_a_null() -> None:
    indices = pa.Array.from_buffers(pa.int32(), 2, [pa.py_buffer(b"\x01"), pa.array([0, 99], pa.int32()).buffers()[1]])
    keys = pa.DictionaryArray.from_arrays(indices, ["k1"], safe=False)
    batch = pa.RecordBatch.from_pydict({"key": keys, "ts": pa.array([1, 2]), "op": pa.array([None, "punctuation"])})
    for shape in (batch, Plain(batch)):
        changes = Engine([RISES]).feed(shape)
        assert changes.bad == []


def broken_batches() -> dict[str, Any]:
    beyond = pa.DictionaryArray.from_arrays(pa.array([0, 7], pa.int32()), ["k1"], safe=False)
    negative = pa.DictionaryArray.from_arrays(pa.array([0, -1], pa.int32()), ["k1"], safe=False)
    offsets = pa.array([0, 9, 2], pa.int32()).buffers()[1]
    descending = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"abcdefghi")])
    offsets = pa.array([0, 1, 2], pa.int32()).buffers()[1]
    no_text = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"\xff\xfe")])
    columns_of_keys = {"beyond": beyond, "negative": negative, "descending": descending, "no text": no_text}
    batches = {
        name: pa.RecordBatch.from_arrays([keys, pa.array([1, 2])], ["key", "ts"])
        for name, keys in columns_of_keys.items()
    }
    return batches | {
        "no key": pa.RecordBatch.from_pydict({"ts": pa.array([1])}),
        "two keys": pa.RecordBatch.from_arrays([pa.array(["k"]), pa.array(["k"]), pa.array([1])], ["key", "key", "ts"]),
        "time": pa.RecordBatch.from_pydict({"key": ["k"], "ts": pa.array([1.5])}),
    }


@pytest.mark.parametrize("name", broken_batches())
def test_broken_batches(name: str, expected: list[dict[str, Any]]) -> None:
    engine = Engine([RISES])
    for batch in (broken_batches()[name], Plain(broken_batches()[name])):
        with pytest.raises(RecordError):
            engine.feed(batch)
    assert engine.feed(batch_of()).to_records() == expected, "nothing of them has been counted"


@pytest.mark.parametrize("name", ["key", "ts", "id", "seq", "rev", "op", "type", "arc", "when"])
@pytest.mark.parametrize(
    "column",
    [
        pa.array([b"punctuation"] * 6),
        pa.array([b"k"] * 6, pa.binary_view()),
        pa.array([b"k"] * 6).dictionary_encode(),
        pa.array([[("k", 1)]] * 6, pa.map_(pa.string(), pa.int64())),
        pa.RunEndEncodedArray.from_arrays(pa.array([6], pa.int32()), pa.array(["punctuation"])),
    ],
    ids=lambda column: str(column.type),
)
def test_a_column_with_a_meaning_is_never_left_out(name: str, column: Any) -> None:
    """Of a data field that nothing is read of every value is unknown; an `op` that nobody reads would be an insert."""
    wanted = "int64" if name in ("ts", "seq", "rev") else "string"
    with pytest.raises(RecordError, match=f"column `{name}` is .*, not {wanted}; cast it"):
        Engine([RISES]).feed(batch_of(**{name: column}))


@pytest.mark.parametrize("kind", [pa.null(), pa.dictionary(pa.int8(), pa.null())], ids=str)
def test_columns_of_nulls_are_as_if_they_were_not_there(kind: Any, expected: list[dict[str, Any]]) -> None:
    nulls = {name: pa.nulls(6, kind) for name in ("id", "op", "type", "arc", "when")}
    nulls |= {name: pa.nulls(6) for name in ("seq", "rev")}
    assert fed(batch_of(**nulls)) == expected


def test_capsules_that_were_taken_already() -> None:
    pair = batch_of().__arrow_c_array__()

    class Twice:
        def __arrow_c_array__(self, requested_schema: object = None) -> Any:
            return pair

    engine = Engine([RISES])
    engine.feed(Twice())
    with pytest.raises(RecordError, match="taken already"):
        engine.feed(Twice())


@pytest.mark.parametrize("answer", [None, (1, 2), (None, None)])
def test_no_capsules(answer: Any) -> None:
    class Liar:
        num_rows = 1

        def __arrow_c_array__(self, requested_schema: object = None) -> Any:
            return answer

    with pytest.raises(RecordError):
        Engine([RISES]).feed(Liar())


def test_schemas_by_turns(expected: list[dict[str, Any]]) -> None:
    """What is known of the schema before must not be taken for the next one's."""
    engine = Engine([RISES])
    narrow = batch_of(x=columns()["x"].cast(pa.float32()), y=pa.array(["text"] * len(EVENTS)))
    other = pa.RecordBatch.from_pydict(dict(reversed(columns().items())))
    for batch in (batch_of(), narrow, other, batch_of(), other):
        told = engine.feed(batch)
        assert told.bad == []
    assert fed(narrow) == fed(other) == expected


def test_metadata_is_no_other_schema(expected: list[dict[str, Any]]) -> None:
    engine = Engine([RISES])
    assert engine.feed(batch_of().replace_schema_metadata({"a": "b"})).to_records() == expected


@pytest.mark.parametrize("ids", [False, True])
def test_columns_say_what_records_say(ids: bool) -> None:
    engine = Engine([RISES])
    changes = engine.feed(batch_of())
    for told in (changes, engine.punctuate(3), engine.feed(batch_of().slice(0, 0))):
        batch = told.to_arrow(ids=ids)
        batch.validate(full=True)
        assert batch.schema.names[-1] == ("match" if ids else "bindings")
        rows = batch.to_pylist()
        assert len(rows) == len(told)
        for row, record in zip(rows, told.to_records(), strict=True):
            assert row["op"] == record["op"]
            assert row["pattern"] == record["pattern"]
            if record["op"] == "punctuation":
                assert row["end"] == record["ts"]
                assert [name for name, value in row.items() if value is not None] == ["op", "pattern", "end"]
                continue
            for name in ("key", "start", "end", "until", "state"):
                assert row[name] == record[name]
            assert {"first": row["first"], "last": row["last"]} == record["events"]
            assert json.loads(row["registers"]) == record["registers"]
            assert not ids or row["match"] == record["match"]


def test_the_reference_has_the_same_columns() -> None:
    batches = [Engine([RISES], engine).feed(batch_of()).to_arrow(ids=True) for engine in ("native", "reference")]  # type: ignore[arg-type]
    assert batches[0].to_pylist() == batches[1].to_pylist()
    assert batches[0].schema.names == batches[1].schema.names


DAY = datetime.date(2025, 1, 31)
UNREAD = {
    "dates": pa.array([DAY, None]),
    "times": pa.array([1, None], pa.timestamp("ms")),
    "lengths of time": pa.array([1, None], pa.duration("ms")),
    "decimals": pa.array([Decimal("1.0"), None]),
    "bytes": pa.array([b"s", None]),
    "maps": pa.array([[("y", 1)], None], pa.map_(pa.string(), pa.int64())),
    "list views": pa.array([[1.0, 2.0], None], pa.list_view(pa.float64())),
    "run-end encoding": pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int32()), pa.array([1])),
    "dates in a struct": pa.array([{"y": DAY}, None]),
    "dates in a list": pa.array([[DAY], None]),
}
CONDITIONS = ["e.x == null", "e.x > 0", "len(e.x) == 2", "len(e.x) == 1", "e.x.y == null", "e.x == 's'"]


@pytest.mark.parametrize("name", UNREAD)
def test_what_is_unknown_to_one_engine_is_so_to_the_other(name: str) -> None:
    batch = pa.RecordBatch.from_pydict({"key": ["k"] * 2, "ts": pa.array([1, 2], pa.int64()), "x": UNREAD[name]})
    for condition in CONDITIONS:
        pattern = build_pattern(
            {
                "pattern": "p",
                "start": "a",
                "final": ["b"],
                "arcs": [{"id": "x", "from": "a", "to": "b", "when": condition}],
            }
        )
        told = [Engine([pattern], engine).feed(batch) for engine in ("native", "reference")]  # type: ignore[arg-type]
        assert told[0].to_records() == told[1].to_records(), condition
        assert told[0].bad == told[1].bad == []


@pytest.mark.parametrize("net", ["record", "batch"])
def test_rows_that_contradict_themselves(net: Any) -> None:
    """What a row is, its `op` alone says; the JSON in `arc` is of an arc change, and of nothing else."""
    arc = json.dumps({"op": "arc", "pattern": "rises", "arc": {"id": "up"}, "valid": [None, 9]})
    rows: list[tuple[str | None, str | None]] = [
        (None, arc),
        ("punctuation", arc),
        ("arc", json.dumps({"op": "punctuation", "ts": 5})),
        ("arc", json.dumps({"key": "k", "ts": 5})),
        ("arc", "null"),
        ("arc", "{"),
        ("arc", None),
        ("arc-retract", arc),
        ("nothing", None),
    ]
    operations, arcs = zip(*rows, strict=True)
    batch = pa.RecordBatch.from_pydict(
        {
            "op": pa.array(operations, pa.string()),
            "arc": pa.array(arcs, pa.string()),
            "key": ["k"] * len(rows),
            "ts": pa.array([4] * len(rows), pa.int64()),
        }
    )
    told = [Engine([RISES], engine, net=net).feed(batch) for engine in ("native", "reference")]  # type: ignore[arg-type]
    assert [index for index, _ in told[0].bad] == [2, 3, 4, 5, 6, 8]
    assert [index for index, _ in told[1].bad] == [2, 3, 4, 5, 6, 8]
    assert told[0].to_records() == told[1].to_records() == [{"op": "punctuation", "pattern": "rises", "ts": 4}]


def test_a_column_outlives_its_batch() -> None:
    for name in ("key", "first", "start", "bindings"):
        batch = Engine([RISES]).feed(batch_of()).to_arrow()
        before, column = batch.column(name).to_pylist(), batch.column(name)
        del batch
        gc.collect()
        assert column.to_pylist() == before


def test_batches_share_memory_but_nothing_else() -> None:
    """Few changes are a slice of a larger batch; what comes later must not show in what was told before."""
    engine = Engine([RISES])
    told = []
    for turn in range(300):
        keys = [f"k{turn // 100}", f"k{turn % 3}"]
        events = [(key, 100 * turn + step, 2.0 + step) for step in range(2 + turn % 5) for key in dict.fromkeys(keys)]
        batch = pa.RecordBatch.from_pydict(columns(events))
        changes = engine.feed(batch) if turn % 7 else engine.punctuate(100 * turn - 50)
        told.append((changes.to_arrow(), changes.to_records(), changes.to_arrow(ids=True)))
    assert sum(batch.num_rows for batch, _, _ in told) > 1000
    for batch, records, with_ids in told:
        batch.validate(full=True)
        assert [row["op"] for row in batch.to_pylist()] == [record["op"] for record in records]
        assert batch.to_pylist() == with_ids.drop_columns(["match"]).to_pylist()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        assert pa.ipc.open_stream(sink.getvalue()).read_all().to_pylist() == batch.to_pylist()
        assert batch["until"].null_count == sum(row["until"] is None for row in batch.to_pylist())


def test_sparse_and_hostile_texts(expected: list[dict[str, Any]]) -> None:
    """Of a column in which nearly all rows are null only the others are looked at: these have to be right."""
    count = 64
    events = EVENTS + [("k3", 9, 0.0)] * (count - len(EVENTS))
    validity = pa.py_buffer((1 << (count - 1)).to_bytes(count // 8, "little"))
    for offsets, text, is_right in (
        ([0] * count + [11], b"punctuation", True),
        ([0] * (count - 2) + [999, 0, 11], b"punctuation", True),  # hidden by a null
        ([0] * (count - 1) + [12, 11], b"punctuation", False),
        ([0] * (count - 1) + [-1, 11], b"punctuation", False),
        ([0] * count + [11], b"punctuatio\xff", False),
    ):
        buffers = [validity, pa.array(offsets, pa.int32()).buffers()[1], pa.py_buffer(text)]
        operations = pa.Array.from_buffers(pa.string(), count, buffers)
        batch = pa.RecordBatch.from_pydict(columns(events) | {"op": operations})
        for shape in (batch, Plain(batch), batch.slice(1)):
            if is_right:
                told = Engine([RISES]).feed(shape)
                assert (told.bad, told.to_records()[-1]["op"]) == ([], "punctuation")
                continue
            with pytest.raises(RecordError):
                Engine([RISES]).feed(shape)


def test_memory_is_given_back() -> None:
    before = pa.total_allocated_bytes()
    for shape in (batch_of(), Plain(batch_of())) * 50:
        Engine([RISES]).feed(shape).to_arrow()
    del shape
    gc.collect()
    assert pa.total_allocated_bytes() == before


def test_without_pyarrow() -> None:
    program = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from afa import Engine\n"
        "try:\n    Engine([]).feed([]).to_arrow()\n"
        "except ImportError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert "pip install" in done.stdout
