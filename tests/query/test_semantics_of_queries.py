"""Small cases derived by hand from the page on what a match is, each named by its sentence; run in every way.

An event is written as its type and `ts`, which is its id too, followed by its data: `A1 {"x": 2}`. `-3` is of a type
that no query here names. A match is written as its bindings: `a=A1 b=B2,B3`.
"""

from __future__ import annotations

import json
import math
import re

import pytest

from afa import Engine
from afa.document import parse_patterns
from afa.engine import EngineName
from afa.query import parse_query
from afa.query.enumeration import Enumeration
from afa.records import Event

ANY, NEXT, PARTITION, STRICT = (
    "skip_till_any_match",
    "skip_till_next_match",
    "partition_contiguity",
    "strict_contiguity",
)


def query(sequence: str, strategy: str, conditions: str = "", window: str = "WITHIN 100 ms") -> str:
    """The strategy's list is made from the sequence: variables are in small letters."""
    names = re.findall(r"\b[a-z]+(?:\[\])?", sequence)
    return f"PATTERN SEQ({sequence}) WHERE {strategy}({', '.join(names)}) {{ {conditions} }} {window}"


def events_of(texts: list[str]) -> list[Event]:
    events = []
    for text in texts:
        name, _, data = text.partition(" ")
        events.append(Event("k", int(name[1:]), name, type=name[0], data=json.loads(data or "{}")))
    return events


def keyed(*values: object) -> list[str]:
    """An A, then Bs, one at each instant, whose `k` is as given; "no" stands for none."""
    names = [f"{'A' if at == 0 else 'B'}{at + 1}" for at in range(len(values))]
    return [
        name if value == "no" else f"{name} {json.dumps({'k': value})}"
        for name, value in zip(names, values, strict=True)
    ]


def valued(names: str, *values: object) -> list[str]:
    """Events with an `x`."""
    return [f"{name} {json.dumps({'x': value})}" for name, value in zip(names.split(), values, strict=True)]


PAIR = "A a, B b"
PARTS = keyed(1, "1", True, 1.0)
LEADING = query("~N n, A a, B b", NEXT, window="WITHIN 10 ms")
TRAILING = query("A a, ~N n", NEXT, window="WITHIN 10 ms")
CASES: dict[str, tuple[str, list[str], list[str]]] = {
    # components
    "one event": (query(PAIR, NEXT), ["A1", "B2"], ["a=A1 b=B2"]),
    "one or more": (query("A+ a[], B b", NEXT), ["A1", "A2", "B3"], ["a=A1,A2 b=B3", "a=A2 b=B3"]),
    "m to n": (
        query("A{2,3} a[]", STRICT),
        ["A1", "A2", "A3", "A4"],
        ["a=A1,A2", "a=A1,A2,A3", "a=A2,A3", "a=A2,A3,A4", "a=A3,A4"],
    ),
    "a set in any order": (query("{A a, B b}, C c", NEXT), ["B1", "A2", "C3"], ["a=A2 b=B1 c=C3"]),
    "ANY is every type": (query("ANY a, ANY b", STRICT), ["A1", "-2"], ["a=A1 b=-2"]),
    # [attr]
    "1 and 1.0 are one, '1' and true others": (query(PAIR, ANY, "[k]"), PARTS, ["a=A1 b=B4"]),
    "others are not in the partition": (query(PAIR, PARTITION, "[k]"), PARTS, ["a=A1 b=B4"]),
    "the next one of the partition": (query(PAIR, NEXT, "[k]"), PARTS, ["a=A1 b=B4"]),
    "strict contiguity is within the key": (query(PAIR, STRICT, "[k]"), PARTS, []),
    "text and bool are partitions too": (query(PAIR, ANY, "[k]"), keyed(True, "true", 1, True), ["a=A1 b=B4"]),
    "null is in no partition": (query(PAIR, PARTITION, "[k]"), keyed(1, None, 1), ["a=A1 b=B3"]),
    "missing is in no partition": (query(PAIR, NEXT, "[k]"), keyed(1, "no", 1), ["a=A1 b=B3"]),
    "two nulls are not one": (query(PAIR, ANY, "[k]"), keyed(None, None), []),
    "only strict contiguity sees it": (query(PAIR, STRICT, "[k]"), keyed(1, "no", 1), []),
    "lists are in no partition": (query(PAIR, ANY, "[k]"), keyed([1], [1]), []),
    "two attributes": (
        query(PAIR, ANY, "[k, x]"),
        ['A1 {"k": 1, "x": 1}', 'B2 {"k": 1, "x": 2}', 'B3 {"k": 1, "x": 1.0}'],
        ["a=A1 b=B3"],
    ),
    "without attributes partition contiguity is strict": (query(PAIR, PARTITION), ["A1", "-2", "B3"], []),
    "a negated event of another partition is no occurrence": (
        query("A a, ~N n, B b", NEXT, "[k]"),
        ['A1 {"k": 1}', 'N2 {"k": 2}', "N3", 'B4 {"k": 1}'],
        ["a=A1 b=B4"],
    ),
    # taken, begun, ignored
    "strict ignores never": (query(PAIR, STRICT), ["A1", "-2", "B3"], []),
    "any ignores always": (query(PAIR, ANY), ["A1", "B2", "B3"], ["a=A1 b=B2", "a=A1 b=B3"]),
    "next ignores what does not begin the next one": (query(PAIR, NEXT), ["A1", "-2", "B3", "B4"], ["a=A1 b=B3"]),
    "at a Kleene component next ignores what is not taken": (
        query("A+ a[], B b", NEXT),
        ["A1", "B2", "A3", "B4"],
        ["a=A1 b=B2", "a=A1,A3 b=B4", "a=A3 b=B4"],
    ),
    "what is taken and begins is followed on both ways": (
        query("A+ a[], ANY b", NEXT),
        ["A1", "A2", "-3"],
        ["a=A1 b=A2", "a=A1,A2 b=-3", "a=A2 b=-3"],
    ),
    "any takes and ignores": (
        query("A+ a[], B b", ANY),
        ["A1", "A2", "A3", "B4"],
        ["a=A1 b=B4", "a=A1,A2 b=B4", "a=A1,A3 b=B4", "a=A1,A2,A3 b=B4", "a=A2 b=B4", "a=A2,A3 b=B4", "a=A3 b=B4"],
    ),
    "{m,n} at n ignores what does not begin the next one": (
        query("A{1,2} a[], B b", NEXT),
        ["A1", "A2", "A3", "B4", "B5"],
        ["a=A1,A2 b=B4", "a=A2,A3 b=B4", "a=A3 b=B4", "a=A3 b=B5"],
    ),
    "{m,n} below m does not begin the next one": (
        query("A{2,2} a[], B b", NEXT),
        ["A1", "B2", "A3", "B4"],
        ["a=A1,A3 b=B4"],
    ),
    "Kleene after Kleene": (
        query("A+ a[], ANY+ b[]", STRICT),
        ["A1", "A2", "B3"],
        ["a=A1 b=A2", "a=A1 b=A2,B3", "a=A1,A2 b=B3", "a=A2 b=B3"],
    ),
    "a set with every variable full ignores what does not begin the next one": (
        query("{A a, B b}, C c", NEXT),
        ["A1", "B2", "A3", "C4", "C5"],
        ["a=A1 b=B2 c=C4", "a=A3 b=B2 c=C4"],
    ),
    "in a set what an open variable binds is not ignored": (
        query("{A a, B b}, C c", NEXT),
        ["A1", "C2", "B3", "B4", "C5"],
        ["a=A1 b=B3 c=C5"],
    ),
    "an open Kleene variable keeps a set open": (
        query("{A a, B+ b[]}, C c", NEXT),
        ["A1", "B2", "C3", "B4", "C5"],
        ["a=A1 b=B2 c=C3", "a=A1 b=B2,B4 c=C5"],
    ),
    # yields
    "a last Kleene component yields at every event taken": (
        query("A a, B+ b[]", NEXT),
        ["A1", "B2", "-3", "B4"],
        ["a=A1 b=B2", "a=A1 b=B2,B4"],
    ),
    "once count >= m": (
        query("A a, B{2,3} b[]", NEXT),
        ["A1", "B2", "B3", "B4", "B5"],
        ["a=A1 b=B2,B3", "a=A1 b=B2,B3,B4"],
    ),
    "a last set yields at every event bound once it is complete": (
        query("{A a, B+ b[]}", NEXT),
        ["B1", "B2", "A3", "-4", "B5"],
        ["a=A3 b=B1,B2", "a=A3 b=B1,B2,B5", "a=A3 b=B2", "a=A3 b=B2,B5", "a=A3 b=B5"],
    ),
    # conditions
    "a chained comparison is the AND of its parts": (
        query(PAIR, NEXT, "1 < a.x < b.x"),
        valued("A1 A2 B3 B4", 1, 2, 2, 3),
        ["a=A2 b=B4"],
    ),
    "in a set it sits at the variable bound last": (
        query("{A a, B b}", NEXT, "a.x < b.x"),
        valued("B1 A2 A3", 5, 7, 4),
        ["a=A3 b=B1"],
    ),
    "a[i] alone applies for every i": (
        query("A+ a[]", STRICT, "a[i].x > 1"),
        valued("A1 A2 A3", 2, 3, 1),
        ["a=A1", "a=A1,A2", "a=A2"],
    ),
    "a[1] is the first": (query("A+ a[]", STRICT, "a[1].x = 1"), valued("A1 A2", 1, 2), ["a=A1", "a=A1,A2"]),
    "with a[1] for i >= 2": (
        query("A+ a[]", NEXT, "a[i].x > a[1].x"),
        valued("A1 A2 A3", 2, 1, 3),
        ["a=A1", "a=A1,A3", "a=A2", "a=A2,A3", "a=A3"],
    ),
    "with a[i-1] for i >= 2": (
        query("A+ a[]", STRICT, "a[i].x > a[i-1].x"),
        valued("A1 A2 A3", 1, 2, 2),
        ["a=A1", "a=A1,A2", "a=A2", "a=A3"],
    ),
    "with a[..i-1] for i >= 2": (
        query("A+ a[]", STRICT, "a[i].x > sum(a[..i-1].x)"),
        valued("A1 A2 A3", 1, 2, 3),
        ["a=A1", "a=A1,A2", "a=A2", "a=A2,A3", "a=A3"],
    ),
    "conditions over a[] never stop a take": (
        query("A+ a[], B b", NEXT, "sum(a[].x) > 3"),
        valued("A1 A2 B3 A4 B5", 1, 2, 0, 3, 0),
        ["a=A1,A2,A4 b=B5", "a=A2,A4 b=B5"],
    ),
    "a[a.len] is tested at the yield if it is last": (
        query("A+ a[]", STRICT, "a[a.len].x > 1"),
        valued("A1 A2 A3", 1, 2, 1),
        ["a=A1,A2", "a=A2"],
    ),
    "a.len is tested when the component is left": (
        query("A+ a[], B b", NEXT, "a.len = 2"),
        ["A1", "B2", "A3", "B4"],
        ["a=A1,A3 b=B4"],
    ),
    "when its set is left": (
        query("{A+ a[], B b}, C c", NEXT, "b.x = max(a[].x)"),
        valued("A1 B2 C3 A4 C5", 1, 2, 0, 2, 0),
        ["a=A1,A4 b=B2 c=C5", "a=A4 b=B2 c=C5"],
    ),
    "of an earlier component a[] is what it has bound": (
        query("A+ a[], B b", NEXT, "b.x > avg(a[].x)"),
        valued("A1 A2 B3", 1, 4, 3),
        ["a=A1,A2 b=B3"],
    ),
    # values
    "an unknown condition does not hold": (
        query(PAIR, NEXT, "b.x != 1"),
        ["A1", "B2", 'B3 {"x": "s"}', 'B4 {"x": 2}'],
        ["a=A1 b=B4"],
    ),
    "a[i] that is unknown is not taken but ignored": (
        query("A+ a[]", NEXT, "a[i].x > 0"),
        ['A1 {"x": 1}', "A2", 'A3 {"x": 1}'],
        ["a=A1", "a=A1,A3", "a=A3"],
    ),
    "aggregates skip null and missing": (
        query("A{3,3} a[]", STRICT, "avg(a[].x) = 2 AND count(a[].x) = 2 AND count(a[]) = 3"),
        ['A1 {"x": 1}', "A2", 'A3 {"x": 3}'],
        ["a=A1,A2,A3"],
    ),
    "over nothing they are unknown, count 0": (
        query("A+ a[]", STRICT, "sum(a[].x) == null AND count(a[].x) = 0"),
        ["A1", 'A2 {"x": 1}'],
        ["a=A1"],
    ),
    "a value of the wrong type makes them unknown from there on": (
        query("A+ a[]", STRICT, "sum(a[].x) > 0"),
        valued("A1 A2 A3", 1, True, 5),
        ["a=A1", "a=A3"],
    ),
    "as does overflow, and that stops no take": (
        query("A+ a[]", STRICT, "sum(a[].x) == null"),
        valued("A1 A2 A3", 2**63 - 1, 1, -5),
        ["a=A1,A2", "a=A1,A2,A3"],
    ),
    # negation
    "an occurrence between kills the run": (query("A a, ~N n, B b", ANY), ["A1", "N2", "A3", "B4"], ["a=A3 b=B4"]),
    "several negations in one gap": (
        query("A a, ~N n, ~M m, B b", NEXT),
        ["A1", "M2", "B3", "A4", "N5", "B6", "A7", "B8"],
        ["a=A7 b=B8"],
    ),
    "it names positive variables before it": (
        query("A a, ~N n, B b", NEXT, "n.x > a.x"),
        valued("A1 A2 N3 B4", 1, 2, 2, 0),
        ["a=A2 b=B4"],
    ),
    "a condition that is unknown makes no occurrence": (
        query("A a, ~N n, B b", NEXT, "n.x > 1"),
        ["A1", "N2", "B3"],
        ["a=A1 b=B3"],
    ),
    "after a Kleene component it only forbids leaving until another event is taken": (
        query("A+ a[], ~N n, B b", NEXT),
        ["A1", "N2", "B3", "A4", "B5"],
        ["a=A1,A4 b=B5", "a=A4 b=B5"],
    ),
    "after {m,n} at n it kills the run": (
        query("A{1,1} a[], ~N n, B b", NEXT),
        ["A1", "N2", "A3", "B4"],
        ["a=A3 b=B4"],
    ),
    "after a set too": (
        query("{A+ a[], B b}, ~N n, C c", NEXT),
        ["A1", "N2", "B3", "N4", "C5", "A6", "C7"],
        ["a=A1,A6 b=B3 c=C7", "a=A6 b=B3 c=C7"],
    ),
    "the event that begins the next component is not between, one that was ignored is": (
        query("A a, ~B n, B b", ANY),
        ["A1", "B2", "B3"],
        ["a=A1 b=B2"],
    ),
    "at a Kleene component the event that begins the next one may be ignored, and then it is": (
        query("A+ a[], ~B n, B b", NEXT),
        ["A1", "B2", "B3"],
        ["a=A1 b=B2"],
    ),
    "leading: ts + w > end.ts": (LEADING, ["N1", "A5", "B10"], []),
    "leading: not ts + w = end.ts": (LEADING, ["N1", "A5", "B11"], ["a=A5 b=B11"]),
    "leading: before the start event": (LEADING, ["A5", "N6", "B10"], ["a=A5 b=B10"]),
    "leading: it names any variable": (
        query("~N n, A a, B b", NEXT, "n.x = b.x", "WITHIN 10 ms"),
        valued("N1 A2 A3 B4", 1, 0, 0, 2),
        ["a=A2 b=B4", "a=A3 b=B4"],
    ),
    "trailing: none with ts < start.ts + w": (TRAILING, ["A1", "N10"], []),
    "trailing: one at start.ts + w is none": (TRAILING, ["A1", "N11"], ["a=A1"]),
    "trailing after Kleene: of each match after its own last event": (
        query("A+ a[], ~N n", NEXT, window="WITHIN 10 ms"),
        ["A1", "N2", "A3"],
        ["a=A1,A3", "a=A3"],
    ),
    "trailing under strict contiguity": (
        query("A a, ~N n", STRICT, window="WITHIN 10 ms"),
        ["A1", "-2", "N3", "A9"],
        ["a=A9"],
    ),
    # windows
    "ts < start.ts + w": (query(PAIR, ANY, window="WITHIN 5 ms"), ["A1", "B5", "B6"], ["a=A1 b=B5"]),
    "N events: the start event and the next N - 1, relevant or not": (
        query(PAIR, ANY, window="WITHIN 3 events"),
        ["A1", "-2", "B3", "B4"],
        ["a=A1 b=B3"],
    ),
    "N events of the partition": (
        query(PAIR, ANY, "[k]", "WITHIN 2 events"),
        keyed(1, 2, "no", 1, 1),
        ["a=A1 b=B4"],
    ),
    # names that the automaton has too
    "a variable called start": (
        "PATTERN SEQ(A start, B b) WHERE skip_till_next_match(start, b) { } WITHIN 9 ms",
        ["A1", "B2", "B3"],
        ["start=A1 b=B2"],
    ),
    "a variable called match": (
        "PATTERN SEQ(A match, B+ b[]) WHERE skip_till_next_match(match, b[]) { b.len > 1 } WITHIN 9 ms",
        ["A1", "B2", "B3"],
        ["match=A1 b=B2,B3"],
    ),
}


def native(text: str, events: list[Event]) -> list[str]:
    return compiled(text, events, "native")


def compiled(text: str, events: list[Event], name: EngineName = "reference") -> list[str]:
    document = json.dumps({"pattern": "q", "query": text})
    engine = Engine([pattern for pattern, _ in parse_patterns(document)], engine=name)
    lines = [
        {"key": event.key, "ts": event.ts, "id": event.id, "type": event.type, "data": event.data} for event in events
    ]
    told = engine.feed([json.dumps(line).encode() for line in [*lines, {"op": "punctuation", "ts": 1000}]])
    net: list[str] = []
    for change in told.to_records():
        if change["op"] in ("insert", "retract"):
            bound = " ".join(f"{name}={','.join(ids)}" for name, ids in change["bindings"].items())
            net = [*net, bound] if change["op"] == "insert" else [one for one in net if one != bound]
    return net


def enumerated(text: str, events: list[Event]) -> list[str]:
    tree = parse_query(text)
    found = []
    for match in Enumeration(tree, events, math.inf).matches():
        bound = {
            name: [event.id for event in match.bindings[name]] for name in tree.variables if name in match.bindings
        }
        found.append(" ".join(f"{name}={','.join(ids)}" for name, ids in bound.items()))
    return found


@pytest.mark.parametrize("find", [native, compiled, enumerated])
@pytest.mark.parametrize("sentence", CASES)
def test_a_sentence_of_the_page(sentence: str, find: object) -> None:
    text, events, expected = CASES[sentence]
    assert callable(find)
    assert sorted(find(text, events_of(events))) == sorted(expected)
