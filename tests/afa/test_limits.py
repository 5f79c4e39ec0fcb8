"""Limits: at one of them the engine refuses new runs, marks the key, counts, and goes on."""

from __future__ import annotations

import json
import resource
from typing import Any

import pytest
from support.automata import EACH, SPAN, arc, automaton, event, punctuation, unbounded

from afa import Engine, PatternError, RecordError
from afa.document import build_pattern

# Every subset of the events after a 1 has a sum of its own: twice as many partial matches with every event.
EXPLOSIVE = build_pattern(
    automaton(
        arc("one", "a", "b", "e.x >= 1", set={"n": "e.x"}),
        arc("skip", "b", "b"),
        arc("add", "b", "b", set={"n": "r.n * 3 + e.x"}),
        arc("end", "b", "z", "e.x == 0"),
        registers={"n": 0},
        within=100_000,
    )
)


def feed(engine: Engine, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return engine.feed([json.dumps(record).encode() for record in records]).to_records()


def resident_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@pytest.mark.parametrize("net", ["record", "batch"])
@pytest.mark.parametrize("late", [False, True])
def test_a_pattern_that_explodes(net: Any, late: bool) -> None:
    engine = Engine([EXPLOSIVE], net=net, limits={"max_partial_matches_per_key": 500})
    before = resident_mb()
    times = list(range(2, 600, 2)) + (list(range(3, 100, 2)) if late else [])
    for ts in times:
        feed(engine, [event(f"e{ts}", ts, ts % 7 + 1)])
    stats = engine.stats()
    assert stats["degraded_keys"] == 1
    assert stats["refused_partial_matches"] > 0
    assert stats["peak_partial_matches"] <= 500
    (*found,) = feed(engine, [event("end", 1000, 0)])
    assert 0 < len(found) <= 500
    assert all(change["degraded"] for change in found)
    assert resident_mb() - before < 400
    quiet = feed(engine, [event("s", 5, 1) | {"key": "quiet"}, event("t", 6, 0) | {"key": "quiet"}])
    assert [change.get("degraded", False) for change in quiet] == [False]


# A 3 leads from one partial match to two.
FORK = build_pattern(
    automaton(
        arc("one", "a", "b", "e.x == 1"),
        arc("two", "b", "c", "e.x == 2"),
        arc("three", "c", "d", "e.x == 3"),
        arc("too", "c", "e", "e.x == 3"),
        arc("end", "d", "z", "e.x == 4"),
        arc("also", "e", "z", "e.x == 5"),
        within=100,
    )
)


@pytest.mark.parametrize("net", ["record", "batch"])
@pytest.mark.parametrize("last", [1, 2, 3])
def test_one_start_event_alone_has_more_than_the_limit(net: Any, last: int) -> None:
    """Whichever of its events comes last, and a revision too."""
    engine = Engine([FORK], net=net, limits={"max_partial_matches_per_key": 1})
    feed(engine, [event(f"e{ts}", ts, ts) for ts in (1, 2, 3) if ts != last] + [event("after", 9, 0)])
    assert engine.stats()["degraded_keys"] == 0
    feed(engine, [event(f"e{last}", last, last)])
    assert engine.stats()["degraded_keys"] == 1
    revised = Engine([FORK], net=net, limits={"max_partial_matches_per_key": 1})
    feed(revised, [event(f"e{ts}", ts, 0 if ts == last else ts) for ts in (1, 2, 3)] + [event("after", 9, 0)])
    assert revised.stats()["degraded_keys"] == 0
    feed(revised, [event(f"e{last}", last, last) | {"rev": 1}])
    assert revised.stats()["degraded_keys"] == 1


def test_an_explosion_in_one_long_batch() -> None:
    """No punctuation, one feed: what is left behind goes all the same."""
    before = resident_mb()
    engine = Engine([EXPLOSIVE], limits={"max_partial_matches_per_key": 2_000, "max_bytes_per_key": 1_000_000})
    feed(engine, [event(f"e{ts}", ts, ts % 7 + 1) for ts in range(1, 700)])
    assert engine.stats()["degraded_keys"] == 1
    assert resident_mb() - before < 400


def test_below_the_limit_nothing_is_degraded() -> None:
    engine = Engine([build_pattern(SPAN)], limits={"max_partial_matches_per_key": 6})
    feed(engine, [event(f"e{ts}", ts, 1) for ts in range(3)])
    assert engine.stats()["degraded_keys"] == 0
    assert len(feed(engine, [event("end", 4, 2)])) == 3
    feed(engine, [event(f"f{ts}", 5, 1) for ts in range(3)])
    assert engine.stats()["degraded_keys"] == 0
    feed(engine, [event("one too many", 6, 1)])
    assert engine.stats()["degraded_keys"] == 1
    assert engine.stats()["refused_partial_matches"] == 1


def test_the_limit_is_that_of_all_patterns_together() -> None:
    patterns = [build_pattern(SPAN | {"pattern": name}) for name in ("p", "q")]
    engine = Engine(patterns, limits={"max_partial_matches_per_key": 5})
    feed(engine, [event(f"e{ts}", ts, 1) for ts in range(4)])
    found = feed(engine, [event("end", 5, 2)])
    assert len(found) <= 6
    assert {change["pattern"] for change in found} == {"p", "q"}
    assert engine.stats()["degraded_keys"] == 1


def test_ten_thousand_keys_where_a_hundred_are_allowed() -> None:
    engine = Engine([build_pattern(EACH)], limits={"max_keys": 100})
    records = [event(f"e{i}", i, 1) | {"key": f"k{i}"} for i in range(10_000)]
    told = engine.feed([json.dumps(record).encode() for record in records])
    assert len(told) == 100
    assert [index for index, _ in told.bad] == list(range(100, 10_000))
    assert {reason for _, reason in told.bad} == {"more than 100 keys (max_keys)"}
    assert engine.stats()["refused_keys"] == 9_900
    assert len(engine.keys()) == 100
    # Room again once the keys that are there have gone.
    engine.punctuate(20_000)
    assert len(feed(engine, [event("new", 20_001, 1) | {"key": "new"}])) == 1


def test_the_oldest_events_go() -> None:
    document = unbounded(SPAN)
    engine = Engine([build_pattern(document)], limits={"max_events_per_key": 100})
    feed(engine, [event("s", 0, 1), *(event(f"e{ts}", ts, 0) for ts in range(1, 2_000))])
    stats = engine.stats()
    assert stats["degraded_keys"] == 1
    assert stats["dropped_events"] >= 1_800
    (change,) = feed(engine, [event("end", 3_000, 2)])
    assert change["events"] == {"first": "s", "last": "end"}
    assert change["degraded"] is True


# Without a register and in a time window: nothing but the events is kept, in long runs.
CHAIN = build_pattern(automaton(arc("one", "a", "b", "e.x == 1"), arc("two", "b", "z", "e.x == 2"), within=10**9))


def most_stored(engine: Engine, *, size: int, count: int, text: str = "") -> tuple[int, int]:
    """Events and bytes at the most, of one key whose events come in order, this many at a time."""
    events = state_bytes = 0
    for begin in range(0, count, size):
        batch = range(begin, begin + size)
        engine.feed([b'{"key":"k","ts":%d,"data":{"x":%d,"t":"%s"}}' % (ts, ts % 3, text.encode()) for ts in batch])
        gauges = engine.gauges()
        events, state_bytes = max(events, gauges["events"]), max(state_bytes, gauges["state_bytes"])
    return events, state_bytes


@pytest.mark.parametrize("net", ["record", "batch"])
@pytest.mark.parametrize("pattern", [CHAIN, build_pattern(SPAN | {"within": 10**9})], ids=["linear", "lists"])
@pytest.mark.parametrize(("size", "count"), [(1, 3_000), (1_000, 60_000)])
def test_no_more_events_than_the_limit_and_a_batch(net: Any, pattern: Any, size: int, count: int) -> None:
    engine = Engine([pattern], net=net, limits={"max_events_per_key": 1_000, "max_partial_matches_per_key": 2_000})
    events, _ = most_stored(engine, size=size, count=count)
    assert 900 < events <= 1_100 + size
    assert engine.stats()["degraded_keys"] == 1
    assert engine.stats()["dropped_events"] >= count - events


@pytest.mark.parametrize("net", ["record", "batch"])
def test_what_goes_at_a_limit_is_given_back_without_a_punctuation(net: Any) -> None:
    engine = Engine([CHAIN], net=net, limits={"max_bytes_per_key": 2_000_000})
    _, state_bytes = most_stored(engine, size=2_000, count=200_000, text="t" * 200)
    # Beside the limit and a batch what is left of events without their data, before it is looked for.
    assert state_bytes < 12_000_000
    assert engine.stats()["dropped_for_bytes"] > 150_000


@pytest.mark.parametrize("keys", [1, 300])
def test_gauges_count_every_partial_match(keys: int) -> None:
    """As the limit does: each sum is one, though all begin with a few events."""
    engine = Engine([EXPLOSIVE])
    for ts in range(6):
        feed(engine, [event(f"e{ts}", ts, 10**ts) | {"key": f"k{number}"} for number in range(keys)])
        assert engine.gauges()["partial_matches"] == {"p": keys * (2 ** (ts + 1) - 1)}


def test_the_peak_is_that_of_lists_also_where_they_come_to_be_while_events_are_there() -> None:
    """A pattern without lists gets them with an arc that makes it another kind."""
    engine = Engine([CHAIN])
    feed(engine, [event(f"e{ts}", ts, 1) for ts in range(5)])
    engine.change_arc({"op": "arc", "pattern": "p", "arc": arc("loop", "b", "b", "e.x == 7"), "valid": [0, None]})
    feed(engine, [event("none", 9, 0), event("one", 10, 1)])
    assert engine.stats()["peak_partial_matches"] <= 5


def test_bytes_are_counted() -> None:
    document = unbounded(SPAN)
    engine = Engine([build_pattern(document)], limits={"max_bytes_per_key": 100_000})
    text = "t" * 1_000
    for ts in range(2_000):
        record = event(f"e{ts}", ts, 0)
        record["data"]["text"] = text
        feed(engine, [record])
    stats = engine.stats()
    assert stats["degraded_keys"] == 1
    assert stats["dropped_for_bytes"] >= 1_500


def test_a_degraded_key_stays_so_in_its_snapshot() -> None:
    engine = Engine([build_pattern(SPAN)], limits={"max_partial_matches_per_key": 1})
    feed(engine, [event("s", 1, 1), event("t", 2, 1)])
    other = Engine([build_pattern(SPAN)])
    other.restore("k", engine.snapshot("k"))
    assert [change["degraded"] for change in feed(other, [event("u", 3, 2)])] == [True, True]
    assert other.stats()["degraded_keys"] == 1


def test_arcs() -> None:
    with pytest.raises(PatternError, match="max_program_arcs"):
        Engine([build_pattern(SPAN)], limits={"max_program_arcs": 2})
    engine = Engine([build_pattern(SPAN)], limits={"max_program_arcs": 3})
    with pytest.raises(RecordError, match=r"too many arcs \(max_program_arcs\)"):
        engine.change_arc({"op": "arc", "pattern": "p", "arc": arc("new", "a", "z")})
    assert engine.stats()["refused_arcs"] == 1
    # A lifetime is no new arc, and one that has ended for good makes room.
    engine.change_arc({"op": "arc", "pattern": "p", "arc": {"id": "two"}, "valid": [None, 5]})
    feed(engine, [punctuation(6)])
    engine.change_arc({"op": "arc", "pattern": "p", "arc": arc("new", "a", "z"), "valid": [10, None]})


def test_a_failure_of_the_native_engine_is_an_error_ever_after() -> None:
    """No pattern has this number; the facade never asks for it."""
    engine = Engine([build_pattern(SPAN)])
    native = engine._engine.native  # type: ignore[union-attr]
    with pytest.raises(RuntimeError, match=r"the native engine failed, .* index out of bounds") as first:
        native.arcs(7)
    with pytest.raises(RuntimeError) as second:
        feed(engine, [event("s", 1, 1)])
    assert str(second.value) == str(first.value)
    with pytest.raises(RuntimeError, match="can not be trusted"):
        engine.snapshot("k")
    assert feed(Engine([build_pattern(EACH)]), [event("s", 1, 1)])
