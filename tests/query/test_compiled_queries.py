"""Compiled queries against the second reference, which enumerates matches from the tree and knows no automaton."""

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afa.arc_table import ArcTable
from afa.computation import Computation, Counters
from afa.query.compiler import compile_query
from afa.query.enumeration import Enumeration, QueryMatch, earliest_maximal, non_overlapping
from afa.query.tree import Query, TimeWindow
from afa.records import Event, MatchChange, Punctuation, match_id
from afa.reference import ReferenceEngine
from tests.support.queries import QueryMaker, events_of

Found = tuple[object, ...]
SEEDS = st.integers(0, 2**32)


def enumerated(query: Query, events: list[Event], punctuation: float) -> set[Found]:
    found = set()
    for match in Enumeration(query, events, punctuation).matches():
        names = [name for name in query.variables if name in match.bindings]
        bound = tuple((name, tuple((event.ts, event.id) for event in match.bindings[name])) for name in names)
        returned = tuple((name, repr(value)) for name, value in match.returned)
        found.add((match.run.first.id, match.run.last.id, bound, returned))
    return found


def told(change: MatchChange) -> Found:
    match = change.match
    return (match.first, match.last, match.bindings, tuple((name, repr(value)) for name, value in match.registers))


@settings(max_examples=300)
@given(seed=SEEDS, count=st.integers(1, 7), punctuation=st.sampled_from([-math.inf, 3, 6, 1000]))
def test_compiled_is_enumerated(seed: int, count: int, punctuation: float) -> None:
    query, events = QueryMaker(seed).query(), events_of(seed, count)
    records = {(event.ts, event.id): [event] for event in events}
    run = Computation(ArcTable(compile_query(query, "q")), "key", records, punctuation, Counters(), punctuation)
    found = {told(MatchChange("insert", match, match.id)) for match in run.matches()}
    assert found == enumerated(query, events, punctuation)


def with_revisions(pick: random.Random, events: list[Event]) -> list[Event]:
    """The events in another order, some of them revised or taken back."""
    records = []
    for event in events:
        records.append(event)
        if pick.random() < 0.2:
            records.append(Event("key", event.ts, event.id, rev=1, type=event.type, data={"x": pick.randrange(3)}))
        elif pick.random() < 0.2:
            records.append(Event("key", event.ts, event.id, op="retract", rev=pick.randrange(2)))
    pick.shuffle(records)
    return records


def accepted(records: list[Event]) -> list[Event]:
    """The events that a set of records stands for, in order."""
    identities: dict[tuple[int, str], list[Event]] = {}
    for record in records:
        identities.setdefault((record.ts, record.id), []).append(record)
    winners = [max(same, key=lambda record: record.rank) for same in identities.values()]
    return sorted((winner for winner in winners if winner.op == "insert"), key=lambda event: event.order)


@settings(max_examples=60)
@given(seed=SEEDS, count=st.integers(1, 6))
def test_every_record_obeys_the_law(seed: int, count: int) -> None:
    pick = random.Random(seed)
    query = QueryMaker(seed).query()
    records = with_revisions(pick, events_of(seed, count))
    engine = ReferenceEngine([compile_query(query, "q")])
    net: set[Found] = set()
    for number, record in enumerate(records, 1):
        net = followed(net, engine.feed(record).changes)
        assert net == enumerated(query, accepted(records[:number]), -math.inf)
    net = followed(net, engine.feed(Punctuation(10**6)).changes)
    assert net == enumerated(query, accepted(records), 10**6)


def followed(net: set[Found], changes: list[object]) -> set[Found]:
    """What is there after the changes; each must be one."""
    after = set(net)
    for change in changes:
        if isinstance(change, MatchChange):
            assert (told(change) in after) == (change.op == "retract")
            after ^= {told(change)}
    return after


def identity(match: QueryMatch, query: Query) -> str:
    names = [name for name in query.variables if name in match.bindings]
    bound = [[name, [[event.ts, event.id] for event in match.bindings[name]]] for name in names]
    first, last = match.run.first, match.run.last
    return match_id(["q", "key", first.ts, first.id, last.ts, last.id, bound])


@settings(max_examples=150)
@given(seed=SEEDS, count=st.integers(1, 9), behind=st.integers(0, 6))
def test_what_does_not_overlap_is_the_same_after_a_cleanup(seed: int, count: int, behind: int) -> None:
    query, events = QueryMaker(seed).query(), events_of(seed, count)
    window = query.window if isinstance(query.window, TimeWindow) else TimeWindow(4)
    query = replace(query, window=window)
    engine = ReferenceEngine([replace(compile_query(query, "q"), output="non_overlapping")])
    net: set[Found] = set()
    for event in events:
        net = followed(net, engine.feed(event).changes)
        net = followed(net, engine.feed(Punctuation(event.ts - behind)).changes)
    net = followed(net, engine.feed(Punctuation(10**6)).changes)
    found = Enumeration(query, events, 10**6).matches()
    counted = non_overlapping(found, lambda match: identity(match, query))
    assert {first_and_last(one) for one in net} == {(one.run.first.id, one.run.last.id) for one in counted}
    assert len(net) == len(counted)


def first_and_last(found: Found) -> tuple[object, object]:
    return found[0], found[1]


@settings(max_examples=150)
@given(seed=SEEDS, count=st.integers(1, 7))
def test_earliest_and_maximal(seed: int, count: int) -> None:
    query, events = QueryMaker(seed).query(), events_of(seed, count)
    records = {(event.ts, event.id): [event] for event in events}
    pattern = replace(compile_query(query, "q"), output="earliest_maximal")
    run = Computation(ArcTable(pattern), "key", records, math.inf, Counters(), math.inf)
    expected = earliest_maximal(Enumeration(query, events, math.inf).matches())
    assert {match.id for match in run.matches()} == {identity(match, query) for match in expected}


@pytest.mark.parametrize("seed", range(3))
def test_arcs_and_states_are_named_by_variables(seed: int) -> None:
    pattern = compile_query(QueryMaker(seed).query(), "q")
    ids = [arc.id for arc in pattern.arcs]
    assert len(ids) == len(set(ids))
    assert all(arc.id.startswith(f"{arc.source}:") for arc in pattern.arcs)
