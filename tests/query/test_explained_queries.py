"""`arcfleet explain` of a query: text, automaton, registers, and which conjunct sits on which arc."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afa.document import parse_patterns
from afa.expression import Expression
from afa.pattern import Pattern
from afa.query import parse_query, print_query
from afa.query.compiler import compile_query
from arcfleet.cli.explain import describe, in_words
from arcfleet.drawing import draw
from tests.support.queries import QueryMaker

RISE = """PATTERN SEQ(Stock+ a[], ~Halt h, Stock b)
WHERE skip_till_next_match(a[], h, b) {
      [symbol] AND a[1].volume > 1000
      AND a[i].price > avg(a[..i-1].price)
      AND h.reason = 'news' AND count(a[]) > 2
      AND b.volume < 0.8 * a[a.len].volume }
WITHIN 1 hour
RETURN avg(a[].price) AS mean"""


def compiled(text: str) -> Pattern:
    return compile_query(parse_query(text), "q")


def sits(text: str) -> dict[str, list[str]]:
    return {conjunct["text"]: conjunct["arcs"] for conjunct in describe(compiled(text))["conjuncts"]}


def test_a_conjunct_sits_at_its_last_variable() -> None:
    assert sits(RISE) == {
        "[symbol]": [arc.id for arc in compiled(RISE).arcs],
        "a[1].volume > 1000": ["start:begin-a"],
        "a[i].price > avg(a[..i-1].price)": ["a:take-a", "a!:take-a"],
        "h.reason = 'news'": ["a:ignore", "a:block"],
        "count(a[]) > 2": ["a:begin-b"],
        "b.volume < 0.8 * a[a.len].volume": ["a:begin-b"],
    }


def test_in_a_set_it_sits_at_whichever_variable_is_bound_last() -> None:
    text = "PATTERN SEQ({A a, B b}) WHERE skip_till_any_match(a, b) { a.x > 1 AND a.x < b.x } WITHIN 1 s"
    assert sits(text) == {
        "a.x > 1": ["start:begin-a", "b:begin-a"],
        "a.x < b.x": ["a:begin-b", "b:begin-a"],
    }


def test_at_the_end_it_sits_on_the_arc_that_yields() -> None:
    text = "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match(a, b[]) { sum(b[].x) > a.x } WITHIN 1 s"
    assert sits(text) == {"sum(b[].x) > a.x": ["b:match"]}


def test_what_no_arc_tests_says_so() -> None:
    absent = "PATTERN SEQ(~N n, A a, ~M m) WHERE skip_till_any_match(n, a, m) { n.x = a.x AND m.x = 1 } WITHIN 1 s"
    pattern = compiled(absent)
    assert [conjunct.absent for conjunct in pattern.query.conjuncts] == ["before", "after"]  # type: ignore[union-attr]
    assert "(1)  n.x = a.x  no event before it" in in_words(pattern)
    between = compiled("PATTERN SEQ(A a, ~N n, B b) WHERE strict_contiguity(a, n, b) { n.x = 1 }")
    assert "(1)  n.x = 1  no arc: no event can come there" in in_words(between)


def test_words_show_the_text_and_name_conditions_by_number() -> None:
    words = in_words(compiled(RISE))
    assert "  query      PATTERN SEQ(Stock+ a[], ~Halt h, Stock b)\n" in words
    assert "    (3)  a[i].price > avg(a[..i-1].price)  a:take-a, a!:take-a\n" in words
    assert "    a:begin-b         a -> b      (1)(5)(6)  binds b, if " in words


def test_a_window_of_events_of_the_partition_is_named() -> None:
    pattern = compiled("PATTERN SEQ(A a, B b) WHERE skip_till_any_match(a, b) { [k] } WITHIN 3 events")
    assert describe(pattern)["window"] == "the start event and the next 2 events of its partition"
    assert "within 3 events of a partition" in draw([pattern], "dot")


def test_what_must_be_absent_is_read_and_drawn() -> None:
    absent = "PATTERN SEQ(~N n, A a, ~M m) WHERE skip_till_any_match(n, a, m) { n.x = 1 AND m.y = 2 } WITHIN 1 s"
    pattern = compiled(absent)
    assert describe(pattern)["reads"] == ["e.type (string)", "e.x (any)", "e.y (any)"]
    assert "none before: e.type == 'N' and e.x == 1" in draw([pattern], "dot")
    assert "none after: e.type == 'M' and e.y == 2" in draw([pattern], "mermaid").replace("#39;", "'")


def test_conditions_stand_in_columns() -> None:
    text = f"PATTERN SEQ(A a) WHERE strict_contiguity(a) {{ {' AND '.join(f'a.x{at} > 1' for at in range(10, 20))} }}"
    lines = in_words(compiled(text)).splitlines()
    assert "    (9)   a.x18 > 1  start:begin-a" in lines
    assert "    (10)  a.x19 > 1  start:begin-a" in lines


def test_an_arc_of_many_is_not_listed_in_words() -> None:
    members = ", ".join(f"A {name}" for name in "abcde")
    text = f"PATTERN SEQ({{{members}}}) WHERE skip_till_any_match(a, b, c, d, e) {{ a.x > 1 }} WITHIN 1 s"
    pattern = compiled(text)
    assert len(sits(text)["a.x > 1"]) == 16
    assert "and 10 more arcs" in in_words(pattern)
    assert describe(pattern)["arcs"][0]["conjuncts"] == [1]


@settings(max_examples=100)
@given(seed=st.integers(0, 2**32))
def test_a_conjunct_left_out_is_missing_where_it_sat(seed: int) -> None:
    """What else differs are arcs that ignore: they are what others do not take."""
    query = QueryMaker(seed).query()
    pattern = compile_query(query, "q")
    assert pattern.query is not None
    assert pattern.query.text == print_query(query)
    for number in range(len(query.conditions)):
        left = tuple(condition for at, condition in enumerate(query.conditions) if at != number)
        without = {arc.id: arc for arc in compile_query(replace(query, conditions=left), "q").arcs}
        arcs = [arc for arc in pattern.arcs if arc.id in without and (arc.binds or arc.epsilon)]
        conjunct = pattern.query.conjuncts[len(query.equivalences) + number]
        assert {arc.id for arc in arcs if arc.fence != without[arc.id].fence} == {
            arc.id for arc in arcs if arc.id in conjunct.arcs
        }
        ignoring = {arc.id for arc in pattern.arcs if not arc.binds and not arc.epsilon}
        changed = {arc for arc in ignoring & {*without} if fences(pattern)[arc] != without[arc].fence}
        assert ignoring & {*conjunct.arcs} & {*without} <= changed


def fences(pattern: Pattern) -> dict[str, Expression]:
    return {arc.id: arc.fence for arc in pattern.arcs}


EVERY = [RISE, "PATTERN SEQ(A a) WHERE strict_contiguity(a) { }"]


@pytest.mark.parametrize("text", EVERY)
def test_what_is_said_meets_its_schema(validate: Callable[[str, Any], None], text: str) -> None:
    validate("explain", describe(compiled(text)))


def test_an_automaton_has_no_conjuncts(validate: Callable[[str, Any], None]) -> None:
    [(pattern, _)] = parse_patterns(
        "pattern: p\nstart: a\nfinal: [b]\narcs: [{id: x, from: a, to: b, when: e.x > 0}]\n"
    )
    told = describe(pattern)
    validate("explain", told)
    assert "conjuncts" not in told
    assert "conjuncts" not in told["arcs"][0]
