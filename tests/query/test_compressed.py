"""`encoding: compressed`: graphs, what they say after every record, and the way back to single matches."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afa import Engine, RecordError
from afa.differences import in_order
from afa.document import parse_patterns
from afa.pattern import Output, Pattern
from afa.query.compiler import compile_query
from afa.query.tree import EventSet, TimeWindow
from afa.records import Event, GraphChange, MatchChange, Punctuation, match_id
from afa.reference import ReferenceEngine
from arcfleet import expand
from arcfleet.expansion import number_of_matches
from tests.query.test_compiled_queries import with_revisions
from tests.support.queries import QueryMaker, events_of

Told = dict[str, Any]


def followed(net: dict[str, Told], changes: list[Any]) -> None:
    """Takes the changes of one record into what is told; each must say something new."""
    graphs = [change for change in changes if isinstance(change, GraphChange)]
    assert graphs == in_order(graphs)
    for change in graphs:
        told = json.loads(json.dumps(change.as_json()))
        assert number_of_matches(told) == len(expand(told))
        if told["op"] == "insert":
            assert json.dumps(net.get(told["match"])) != json.dumps(told)
            net[told["match"]] = told
        else:
            assert expand(told) == []
            del net[told["match"]]


def expanded(net: dict[str, Told]) -> list[str]:
    return sorted(json.dumps(match) for told in net.values() for match in expand(told))


def compressed(pattern: Pattern) -> Pattern:
    assert pattern.query is not None
    return replace(pattern, query=replace(pattern.query, compressed=True))


@settings(max_examples=150)
@given(
    seed=st.integers(0, 2**32),
    count=st.integers(1, 8),
    output=st.sampled_from(("all", "non_overlapping", "earliest_maximal")),
    with_punctuations=st.booleans(),
)
def test_expanded_is_verbose_after_every_record(seed: int, count: int, output: Output, with_punctuations: bool) -> None:
    pick, query = random.Random(seed), QueryMaker(seed).query()
    has_set = any(isinstance(component, EventSet) for component in query.components)
    if output == "earliest_maximal" and not (has_set and isinstance(query.window, TimeWindow)):
        output = "all"
    pattern = replace(compile_query(query, "q"), output=output)
    plain, graphs = ReferenceEngine([pattern]), ReferenceEngine([compressed(pattern)])
    verbose: dict[str, MatchChange] = {}
    net: dict[str, Told] = {}
    records: list[Event | Punctuation] = []
    for event in with_revisions(pick, events_of(seed, count)):
        records.append(replace(event, seq=pick.choice((None, 0, 2, 1))))
        if with_punctuations and pick.random() < 0.3:
            records.append(Punctuation(event.ts + pick.choice((-4, 0, 3))))
    for record in [*records, Punctuation(10**6)]:
        step, told = plain.feed(record), graphs.feed(record)
        for change in step.changes:
            if isinstance(change, MatchChange) and change.op == "insert":
                verbose[change.id] = change
            elif isinstance(change, MatchChange):
                del verbose[change.id]
        followed(net, told.changes)
        assert expanded(net) == sorted(json.dumps(change.as_json()) for change in verbose.values())
        others = [change for change in step.changes if not isinstance(change, MatchChange)]
        assert [change for change in told.changes if not isinstance(change, GraphChange)] == others


ANY_MATCH = """
pattern: any
query: |
  PATTERN SEQ(A+ a[], B b)
  WHERE skip_till_any_match(a[], b) { }
  WITHIN 100 ms
  RETURN RETURNED
encoding: compressed
"""


def engine_of(document: str, **options: Any) -> Engine:
    return Engine([pattern for pattern, _ in parse_patterns(document)], engine="reference", **options)


def event(name: str, ts: int, kind: str, **data: object) -> Told:
    return {"id": name, "key": "k", "ts": ts, "type": kind, "data": data}


def fed(engine: Engine, *records: Told) -> list[Told]:
    return engine.feed([json.dumps(record).encode() for record in records]).to_records()


def choices(count: int, returned: str) -> Told:
    """The graph of a B after so many A, any of which may be bound."""
    events = [event(f"a{ts:02}", ts, "A", x=ts) for ts in range(count)]
    *_, told = fed(engine_of(ANY_MATCH.replace("RETURNED", returned)), *events, event("b", 90, "B", x=1))
    return told


def test_a_graph_has_a_node_for_an_event_where_matches_are_exponential() -> None:
    graph = choices(12, "b.x")["graph"]
    assert len(graph["nodes"]) == 13
    assert graph["nodes"][3] == [0, 3, [0, 1, 2]]
    assert graph["nodes"][-1] == [1, 12, list(range(12))]
    assert graph["starts"] == [[node, 100 + node] for node in range(12)]
    assert graph["ends"] == [[12, {"b.x": 1}]]


def test_expanding_gives_every_match_its_own_id() -> None:
    found = expand(choices(10, "b.x"))
    assert len({match["match"] for match in found}) == len(found) == 2**10 - 1
    assert found == sorted(found, key=lambda match: (match["start"], match["match"]))
    [alone] = [match for match in found if match["bindings"] == {"a": ["a03"], "b": ["b"]}]
    assert alone["match"] == match_id(["any", "k", 3, "a03", 90, "b", [["a", [[3, "a03"]]], ["b", [[90, "b"]]]]])


def test_there_is_an_end_for_all_that_is_returned() -> None:
    graph = choices(6, "count(a[]) AS n")["graph"]
    assert [returned for _, returned in graph["ends"]] == [{"n": n} for n in range(1, 7)]


def test_a_run_as_long_as_a_window_is_expanded() -> None:
    length = 3000
    nodes = [[0, place, [place - 1] if place else []] for place in range(length)]
    events = [[ts, f"e{ts}"] for ts in range(length)]
    graph = {"variables": ["a"], "events": events, "nodes": nodes, "starts": [[0, None]], "ends": [[length - 1, {}]]}
    [match] = expand({"op": "insert", "match": "", "pattern": "p", "key": "k", "end": length - 1, "graph": graph})
    assert match["bindings"]["a"] == [f"e{ts}" for ts in range(length)]


def test_events_of_one_time_stay_in_their_order() -> None:
    document = ANY_MATCH.replace("SEQ(A+ a[], B b)", "SEQ({A+ a[], B b})").replace("RETURNED", "a.len")
    events = [event("z", 5, "A") | {"seq": 1}, event("y", 5, "B") | {"seq": 2}, event("x", 5, "A") | {"seq": 3}]
    plain, graphs = engine_of(document.replace("compressed", "verbose")), engine_of(document)
    expected = [match for match in fed(plain, *events) if match["op"] == "insert"]
    assert {"a": ["z", "x"], "b": ["y"]} in [match["bindings"] for match in expected]
    net = {told["match"]: told for told in fed(graphs, *events)}
    assert expanded(net) == sorted(json.dumps(match) for match in expected)


def test_a_graph_is_replaced_whole_and_retracted_when_it_is_empty() -> None:
    engine = engine_of(ANY_MATCH.replace("RETURNED", "b.x"))
    fed(engine, event("a1", 1, "A"))
    [first] = fed(engine, event("b", 9, "B", x=1))
    [more] = fed(engine, event("a0", 0, "A"))
    fewer = fed(engine, {"op": "retract", "id": "a1", "key": "k", "ts": 1})
    [none] = fed(engine, {"op": "retract", "id": "a0", "key": "k", "ts": 0})
    identity = match_id(["any", "k", 9, "b"])
    assert {told["match"] for told in (first, more, *fewer, none)} == {identity}
    assert [told["op"] for told in (first, more, *fewer, none)] == ["insert", "insert", "insert", "retract"]
    assert [len(expand(told)) for told in (first, more, *fewer, none)] == [1, 3, 1, 0]
    assert none["graph"] == {"variables": [], "events": [], "nodes": [], "starts": [], "ends": []}


def test_net_per_batch_a_graph_is_told_once_or_not_at_all() -> None:
    engine = engine_of(ANY_MATCH.replace("RETURNED", "b.x"), net="batch")
    [told] = fed(engine, event("a0", 0, "A"), event("b", 9, "B", x=1), event("a1", 1, "A"))
    assert len(expand(told)) == 3
    came, went = event("a2", 2, "A"), {"op": "retract", "id": "a2", "key": "k", "ts": 2}
    assert fed(engine, came, went) == []
    as_float = event("b", 9, "B", x=1.0) | {"rev": 1}
    assert [told["graph"]["ends"] for told in fed(engine, as_float)] == [[[2, {"b.x": 1.0}]]]
    new = event("c", 10, "B", x=1), {"op": "retract", "id": "c", "key": "k", "ts": 10}
    assert fed(engine, *new) == []


def test_graphs_as_arrow_and_as_records_of_a_topic() -> None:
    engine = engine_of(ANY_MATCH.replace("RETURNED", "b.x"))
    changes = engine.feed([json.dumps(one).encode() for one in (event("a0", 0, "A"), event("b", 9, "B", x=1))])
    [told] = changes.to_records()
    [row] = changes.to_arrow(ids=True).to_pylist()
    assert (row["op"], row["key"], row["end"], row["last"], row["start"]) == ("insert", "k", 9, "b", None)
    assert (row["match"], json.loads(row["bindings"])) == (told["match"], told["graph"])
    [(key, value, headers)] = changes.encoded()
    assert (key, json.loads(value)) == (b"k", told)
    assert dict(headers)["match"] == told["match"].encode()


def test_what_else_a_record_says_holds_for_its_matches() -> None:
    told = choices(1, "b.x") | {"degraded": True, "origin": "reconcile"}
    [match] = expand(told)
    assert (match["degraded"], match["origin"], match["op"]) == (True, "reconcile", "insert")


def broken(**parts: object) -> Told:
    told = choices(2, "b.x")
    return told | {"graph": told["graph"] | parts}


BROKEN = {
    "verbose": lambda: {"op": "insert", "match": "", "bindings": {}},
    "no key": lambda: {name: value for name, value in choices(1, "b.x").items() if name != "key"},
    "a cycle": lambda: broken(nodes=[[0, 0, [1]], [0, 1, [0]], [1, 2, [1]]]),
    "a node before itself": lambda: broken(nodes=[[0, 0, [0]], [0, 1, [0]], [1, 2, [1]]]),
    "no such node": lambda: broken(ends=[[3, {}]]),
    "a negative place": lambda: broken(starts=[[-1, None]]),
    "no such variable": lambda: broken(variables=["a"]),
    "no such event": lambda: broken(events=[[0, "a00"]]),
    "a place that is true": lambda: broken(starts=[[True, None]]),
    "a node too short": lambda: broken(nodes=[[0, 0]]),
    "no graph": lambda: choices(1, "b.x") | {"graph": None},
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_graph_is_refused(name: str) -> None:
    with pytest.raises(RecordError, match="not a compressed record"):
        expand(BROKEN[name]())


def any_choice_of(count: int) -> dict[str, Any]:
    """What a query tells that has a match for each choice of so many events, and one more."""
    graph = {
        "variables": ["a", "b"],
        "events": [[number, f"e{number}"] for number in range(count + 1)],
        "nodes": [[number // count, number, list(range(number))] for number in range(count + 1)],
        "starts": [[number, 1000] for number in range(count)],
        "ends": [[count, {}]],
    }
    return {"op": "insert", "match": "m", "pattern": "p", "key": "k", "end": count, "graph": graph}


def test_a_graph_of_more_matches_than_are_wanted_is_refused_with_their_number():
    with pytest.raises(RecordError, match=r"1,073,741,823 matches; `expand` makes 100,000 at most"):
        expand(any_choice_of(30))
    with pytest.raises(RecordError, match=r"about 2\^99 matches"):
        expand(any_choice_of(100))
    assert len(expand(any_choice_of(5), most=31)) == 31
    with pytest.raises(RecordError, match="31 matches; `expand` makes 30"):
        expand(any_choice_of(5), most=30)
