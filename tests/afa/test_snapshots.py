"""Snapshots: a restored key goes on as if nothing had been; equal states have equal hashes; damage is refused."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.automata import SPAN, arc, arc_change, automaton, event, punctuation, retraction, unbounded
from support.generated import arc_records, documents, event_records, merged, punctuated
from support.snapshot_corpus import FOLDER, VERSION, engine_of, follow, write

from afa import Engine, SnapshotError
from afa.document import build_pattern
from afa.pattern import Pattern

settings = st.fixed_dictionaries(
    {
        "speculation": st.sampled_from([0, 2, math.inf, math.inf]),
        "hold_output": st.booleans(),
        "gap_free": st.booleans(),
        "output": st.sampled_from(["all", "all", "non_overlapping"]),
    }
)

# They keep events from before the punctuation, which other patterns have behind them.
KEEPING = [
    build_pattern({"pattern": "q", "query": f"PATTERN {query} WITHIN {span} ms"})
    for query in (
        "SEQ(buy b, ~sell n) WHERE skip_till_next_match(b, n) { }",
        "SEQ(~sell n, buy b) WHERE skip_till_next_match(n, b) { }",
        "SEQ(buy b, ANY c) WHERE strict_contiguity(b, c) { b.x < c.x }",
    )
    for span in (4, 40)
]


def feed(engine: Engine, *records: dict[str, Any]) -> list[list[dict[str, Any]]]:
    return [engine.feed([json.dumps(record).encode()]).to_records() for record in records]


def hashes(engine: Engine) -> dict[str, str]:
    keys = engine.keys()
    return {key: engine.state_hash(key) for key in keys}


def snapshots(engine: Engine) -> dict[str, bytes]:
    keys = engine.keys()
    return {key: engine.snapshot(key) for key in keys}


def restored(patterns: list[Pattern], engine: Engine, before: list[dict[str, Any]]) -> Engine:
    """A new engine with the arcs and punctuations of the tape so far, and the keys of another one."""
    other = Engine(patterns)
    feed(other, *(record for record in before if record.get("op", "insert") not in ("insert", "retract")))
    for key, snapshot in snapshots(engine).items():
        other.restore(key, snapshot)
    return other


@st.composite
def linear_documents(draw: st.DrawFn) -> dict[str, Any]:
    """Patterns without registers in a row of states: the engine keeps no lists for them."""
    states = [f"q{i}" for i in range(draw(st.integers(2, 5)))]
    arcs = [
        arc(f"p{i}", states[i], states[i + 1], draw(st.sampled_from(["e.x > 0", "e.y > 0", "e.y == 1", "true"])))
        for i in range(len(states) - 1)
    ]
    return {
        "pattern": "p",
        "start": "q0",
        "final": [states[-1]],
        "within": draw(st.sampled_from([6, 30])),
        "arcs": arcs,
    }


def number_in_order(records: list[dict[str, Any]]) -> None:
    """What AFA+O asks for: per key a `seq` that rises with time, gaps where an event never comes."""
    identities = {(record["key"], record["ts"], record["id"]) for record in records}
    places = {identity: place for place, identity in enumerate(sorted(identities))}
    for record in records:
        record["seq"] = places[record["key"], record["ts"], record["id"]]


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Pattern], list[dict[str, Any]]]:
    one = draw(st.one_of(documents(), linear_documents()))
    chosen = {} if "registers" not in one else draw(settings)
    patterns = [replace(build_pattern(one), **chosen)]
    kept = draw(st.sampled_from([None, *KEEPING]))
    if kept is not None:
        patterns.append(kept)
    elif draw(st.booleans()):
        other = draw(documents()) | {"pattern": "q"} | draw(st.sampled_from([{}, {"key": "k"}]))
        patterns.append(replace(build_pattern(other), **draw(settings)))
    records = draw(event_records(most=24))
    for record in records:
        if "data" in record:
            record["data"] |= {"k": draw(st.sampled_from(["A", "A", "B"]))}
    if any(pattern.gap_free for pattern in patterns):
        number_in_order(records)
    changes = draw(arc_records(one)) if "registers" in one else []
    return patterns, draw(punctuated(draw(merged(records, changes)), arcs=True))


@given(cases(), st.data())
def test_a_restored_engine_goes_on_like_the_first(
    case: tuple[list[Pattern], list[dict[str, Any]]], data: st.DataObject
) -> None:
    patterns, tape = case
    place = data.draw(st.integers(0, len(tape)))
    first = Engine(patterns)
    feed(first, *tape[:place])
    second = restored(patterns, first, tape[:place])
    assert hashes(second) == hashes(first)
    assert snapshots(second) == snapshots(first)
    for record in tape[place:]:
        assert feed(second, record) == feed(first, record), f"after {record}"
    assert hashes(second) == hashes(first)


@given(cases(), st.data())
def test_the_hash_does_not_know_the_order_of_arrival(
    case: tuple[list[Pattern], list[dict[str, Any]]], data: st.DataObject
) -> None:
    patterns, tape = case
    marks = [record for record in tape if record.get("op") == "punctuation"]
    events = [record for record in tape if record.get("op", "insert") in ("insert", "retract")]
    other_order = data.draw(st.permutations(events))
    one, other = Engine(patterns), Engine(patterns, net="batch")
    feed(one, *events)
    cut = data.draw(st.integers(0, len(events)))
    for part in (other_order[:cut], other_order[cut:]):
        other.feed([json.dumps(record).encode() for record in part])
    assert hashes(one) == hashes(other)
    for mark in marks:
        feed(one, mark)
        feed(other, mark)
        assert hashes(one) == hashes(other)


SPANNING = build_pattern(SPAN)
SUMMING = build_pattern(
    automaton(
        arc("one", "a", "b", "e.x == 1", set={"n": "r.n + 1"}),
        arc("any", "b", "b", set={"n": "r.n + 1"}),
        arc("two", "b", "z", "e.x == 2"),
        name="sum",
        registers={"n": 0},
    )
)


def spanning(patterns: list[Pattern] | None = None) -> Engine:
    """A key with a partial match from before the punctuation, one after it, a revision and two retractions."""
    engine = Engine(patterns or [SPANNING, SUMMING])
    feed(engine, event("s", 1, 1), punctuation(3), event("t", 4, 1), event("u", 6, 5, rev=2, seq=3))
    feed(engine, retraction("gone", 7, seq=4), event("v", 8, 7), retraction("v", 8))
    return engine


def test_what_was_begun_before_the_punctuation_is_found_after_restoring() -> None:
    engine = Engine([SPANNING, SUMMING])
    engine.restore("k", spanning().snapshot("k"))
    assert engine.keys() == ["k"]
    (told,) = feed(engine, event("w", 9, 2))
    found = sorted((change["events"]["first"], change["pattern"]) for change in told)
    assert found == [("s", "p"), ("s", "sum"), ("t", "p"), ("t", "sum")]
    assert engine.feed([json.dumps(event("x", 2, 2)).encode()]).late


def test_restoring_replaces_what_is_there() -> None:
    engine = Engine([SPANNING, SUMMING])
    snapshot = spanning().snapshot("k")
    feed(engine, event("other", 5, 1), event("v", 8, 7))
    engine.restore("k", snapshot)
    assert engine.snapshot("k") == snapshot
    engine.restore("k", snapshot)
    assert engine.snapshot("k") == snapshot


def test_patterns_that_only_one_side_has() -> None:
    snapshot = spanning().snapshot("k")
    fewer = Engine([SPANNING])
    fewer.restore("k", snapshot)
    assert [change["pattern"] for change in feed(fewer, event("w", 9, 2))[0]] == ["p", "p"]
    more = Engine([SPANNING, SUMMING, replace(SUMMING, name="new")])
    more.restore("k", snapshot)
    (told,) = feed(more, event("w", 9, 2))
    assert [change["events"]["first"] for change in told if change["pattern"] == "new"] == ["t"]


def test_partitions_and_their_punctuations_come_back() -> None:
    first = Engine([SPANNING])
    for number, key in ((3, "k"), (4, "l")):
        record = json.dumps(event("s", 5, 1) | {"key": key}).encode()
        first.feed([record], partitions=[("trades", number)])
    first.punctuate(4, partition=("trades", 3))
    second = Engine([SPANNING])
    for key, snapshot in snapshots(first).items():
        second.restore(key, snapshot)
    assert hashes(second) == hashes(first)
    late = json.dumps(event("w", 3, 2)).encode()
    for engine in (first, second):
        assert engine.feed([late], partitions=[("trades", 3)]).late
        assert not engine.feed([late.replace(b'"k"', b'"l"')], partitions=[("trades", 4)]).late


def test_arrow_rows_survive() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    engine = Engine([SPANNING])
    columns = {"key": ["k"] * 3, "ts": [1, 2, 3], "id": ["s", "t", "u"], "x": [1.0, None, 5.5], "name": ["a", "b", "é"]}
    engine.feed(pyarrow.RecordBatch.from_pydict(columns))
    other = Engine([SPANNING])
    other.restore("k", engine.snapshot("k"))
    assert hashes(other) == hashes(engine)
    assert feed(other, event("w", 4, 2)) == feed(engine, event("w", 4, 2)) != [[]]


def test_a_partial_match_outlives_the_arcs_that_made_it() -> None:
    """Without a window in time it is in the snapshot, though it is forgotten which arcs were alive when it began."""
    arcs = (arc("one", "a", "b", valid=[None, 7]), arc("two", "b", "z", valid=[7, None]))
    patterns = [build_pattern(automaton(*arcs) | {"within": "12 events"})]
    first = Engine(patterns)
    tape = [event("s", 1, 1), event("t", 8, 1), punctuation(8)]
    feed(first, *tape)
    second = restored(patterns, first, tape)
    assert [len(told) for told in feed(second, event("u", 9, 1), retraction("t", 8))] == [0, 2]


@pytest.mark.parametrize("more", [{}, {"within": "7 events"}, {"within": 100}, {"output": "non_overlapping"}])
@pytest.mark.parametrize("beside", [None, *KEEPING])
def test_a_partial_match_outlives_its_arc_beside_what_keeps_its_event(
    more: dict[str, Any], beside: Pattern | None
) -> None:
    """As a worker begins again: the arcs, the punctuation, then the keys."""
    document = unbounded(automaton(arc("one", "a", "b", "e.x == 1"), arc("two", "b", "z", "e.x == 2")))
    patterns = [build_pattern(document | more)] + ([beside] if beside else [])
    place = ("t", 0)

    def begun() -> Engine:
        engine = Engine(patterns, net="batch")
        feed(engine, arc_change({"id": "one"}, None, 12))
        engine.feed([], stamp=1)
        return engine

    def fed(engine: Engine, offset: int, record: dict[str, Any]) -> list[dict[str, Any]]:
        line = json.dumps(record | {"type": "buy"}).encode()
        told = engine.feed([line], stamp=offset + 1, partitions=[place], offsets=[offset]).to_records()
        return [change for change in told if change["pattern"] == "p"]

    first, second = begun(), begun()
    fed(first, 0, event("s", 9, 1))
    first.punctuate(18, partition=place)
    second.punctuate(18, partition=place)
    second.restore_keys(0, [(key, snapshot, [("t", 1)]) for key, snapshot in first.take_dirty(0, 2, 10)])
    assert hashes(second) == hashes(first)
    assert fed(second, 1, event("t", 20, 2)) == fed(first, 1, event("t", 20, 2)) != []


def test_a_partial_match_at_the_end_of_time() -> None:
    """Only windows in time end there."""
    engine = Engine([build_pattern(SPAN | {"within": "12 events"})])
    feed(engine, event("s", 5, 1), punctuation(2**63 - 1))
    other = restored([build_pattern(SPAN | {"within": "12 events"})], engine, [punctuation(2**63 - 1)])
    assert feed(other, event("t", 2**63 - 1, 2)) == feed(engine, event("t", 2**63 - 1, 2)) != [[]]


def test_every_damage_is_refused_and_changes_nothing() -> None:
    snapshot = spanning().snapshot("k")
    engine = spanning()
    for length in range(len(snapshot)):
        with pytest.raises(SnapshotError):
            engine.restore("k", snapshot[:length])
    for place in range(len(snapshot)):
        for bit in range(8):
            damaged = bytearray(snapshot)
            damaged[place] ^= 1 << bit
            with pytest.raises(SnapshotError):
                engine.restore("k", bytes(damaged))
    assert engine.snapshot("k") == snapshot


@pytest.mark.parametrize(
    ("pattern", "what"),
    [
        ({"registers": {"n": 0.0}}, "the pattern `sum` has other registers"),
        ({"registers": {"m": 0}, "arcs": [arc("one", "a", "b"), arc("two", "b", "z")]}, "has other registers"),
        ({"arcs": [arc("one", "a", "c"), arc("two", "c", "z")]}, "the pattern `sum` has no state `b`"),
        ({"within": "5 events"}, "the pattern `sum` has another kind of window"),
    ],
)
def test_what_does_not_fit_is_named(pattern: dict[str, Any], what: str) -> None:
    document = automaton(
        arc("one", "a", "b", "e.x == 1"), arc("two", "b", "z", "e.x == 2"), name="sum", registers={"n": 0}
    )
    engine = Engine([build_pattern(document | pattern)])
    feed(engine, event("mine", 5, 1))
    before = engine.snapshot("k")
    with pytest.raises(SnapshotError, match=what):
        engine.restore("k", spanning().snapshot("k"))
    assert engine.snapshot("k") == before


def test_keys_are_not_mixed_up() -> None:
    engine = spanning()
    with pytest.raises(SnapshotError, match='a snapshot of the key "k"'):
        engine.restore("l", engine.snapshot("k"))
    with pytest.raises(SnapshotError, match="nothing is known of the key 'l'"):
        engine.snapshot("l")
    with pytest.raises(SnapshotError, match="nothing is known"):
        engine.state_hash("l")
    with pytest.raises(SnapshotError, match="reference engine"):
        Engine([SPANNING], "reference").snapshot("k")
    full = Engine([SPANNING], limits={"max_keys": 1})
    feed(full, event("s", 1, 1) | {"key": "other"})
    with pytest.raises(SnapshotError, match="more than 1 keys"):
        full.restore("k", engine.snapshot("k"))


@pytest.mark.parametrize("path", sorted(FOLDER.glob("v*/*.afas")), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_snapshots_of_every_version_are_read(path: Path) -> None:
    expected = json.loads(path.with_suffix(".json").read_text("utf-8"))
    engine = engine_of(expected["patterns"])
    engine.restore("k", path.read_bytes())
    assert engine.state_hash("k") == expected["hash"]
    if path.parent.name == VERSION:
        assert engine.snapshot("k") == path.read_bytes(), "another form needs another version"
    assert follow(engine, expected["later"]) == expected["changes"]
    assert path.stat().st_size < 4096


def test_the_corpus_is_complete(tmp_path: Path) -> None:
    """What this build writes is what is kept."""
    for name in write(tmp_path):
        kept = FOLDER / VERSION / f"{name}.afas"
        assert (tmp_path / kept.name).read_bytes() == kept.read_bytes(), name


def test_a_newer_version_is_named() -> None:
    snapshot = bytearray(spanning().snapshot("k"))
    snapshot[4:6] = (9).to_bytes(2, "little")
    with pytest.raises(SnapshotError, match="format version 9; this build reads up to 1"):
        Engine([SPANNING]).restore("k", bytes(snapshot))
