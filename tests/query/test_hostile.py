"""Queries from strangers: whatever the text, the answer is a query or a PatternError, and it comes soon.

How soon is counted, not timed: the calls of functions that an answer takes grow with the text, not faster. Measured
once, in CPU time on two busy cores: 0.4 ms for the refusal of a small query, at most 40 ms for any text within the
limits, 1 to 8 ms for one beyond them; the first query of a process takes 0.17 s more, in which the grammar is read.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.query_texts import refused, where

from afa import PatternError
from afa.expression.limits import MAX_EXPRESSION_DEPTH, MAX_EXPRESSION_NODES
from afa.query import grammar, parse_query, print_query
from afa.query.faults import QueryFault
from afa.query.limits import (
    MAX_CONDITION_TOKENS,
    MAX_QUERY_BYTES,
    MAX_QUERY_COMPONENTS,
    MAX_QUERY_TOKENS,
    check_limits,
)


def sequence(count: int, *, marked: bool = False) -> str:
    names = [f"a{number}" for number in range(count)]
    components = [f" T {name}" for name in names]
    if marked:
        components[MAX_QUERY_COMPONENTS] = "¦" + components[MAX_QUERY_COMPONENTS]
    return f"PATTERN SEQ({','.join(components)}) WHERE skip_till_any_match({','.join(names)}) {{ [k] }} WITHIN 1 day"


def test_the_limits_are_reached() -> None:
    assert len(parse_query(sequence(MAX_QUERY_COMPONENTS)).components) == MAX_QUERY_COMPONENTS
    assert parse_query(where("a.x = 1") + " " * (MAX_QUERY_BYTES - len(where("a.x = 1"))))


@pytest.fixture
def no_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever parses fails."""
    monkeypatch.setattr(grammar, "_parser", lambda: pytest.fail("the text was parsed"))


@pytest.mark.usefixtures("no_parser")
def test_what_is_refused_before_it_is_parsed() -> None:
    assert "max_query_components" in refused(sequence(MAX_QUERY_COMPONENTS + 1, marked=True)).what
    assert "max_query_bytes" in refused("¦" + where("a.x = 1") + " " * MAX_QUERY_BYTES).what
    assert "max_query_bytes" in refused("¦" + "é" * (MAX_QUERY_BYTES // 2 + 1)).what
    assert "max_query_tokens" in refused("+" * MAX_QUERY_TOKENS + "¦++").what
    begin = where("").partition("{")[0] + "{"
    assert "max_condition_tokens" in refused(begin + "(" * (MAX_CONDITION_TOKENS - 1) + "¦((").what
    assert "an empty query" in refused("¦ \n\t").what


@pytest.mark.parametrize("part", ["(", "/*", "'\\", "--", "/**/", "'\\'", " ", "a,", '"\\"', "*/", "{", "PATTERN SEQ("])
@pytest.mark.parametrize("before", ["", "PATTERN SEQ(", "PATTERN", "'", "/*", "--\n"])
def test_measuring_is_linear(before: str, part: str) -> None:
    """The regular expressions read no part of the text twice; quadratic ones would take minutes for these."""
    text = before + part * ((MAX_QUERY_BYTES - len(before)) // len(part))
    with suppress(QueryFault):
        check_limits(text)


DEEP: dict[str, Callable[[int], str]] = {
    "parentheses": lambda count: where("(" * count + "a.x = 1" + ")" * count),
    "open parentheses": lambda count: where("(" * count),
    "NOT": lambda count: where("NOT " * count + "a.x = 1"),
    "signs": lambda count: where("- " * count + "a.x = 1"),
    "choices": lambda count: where("a.x if a.y else " * count + "a.z = 1"),
    "sum": lambda count: where("a.x" + " + 1" * count + " > 2"),
    "calls": lambda count: where("abs(" * count + "a.x" + ")" * count + " > 1"),
    "lists": lambda count: where("a.x IN " + "[" * count + "]" * count),
    "alternating": lambda count: where("(a.x = 1 OR (a.x = 2 AND " * (count // 6) + "a.x = 3" + "))" * (count // 6)),
    "fields": lambda count: where("a" + ".x" * count + " = 1"),
    "sets": lambda count: f"PATTERN SEQ({'{' * count}T a{'}' * count}) WHERE skip_till_any_match(a) {{ }} WITHIN 1 s",
}


@pytest.mark.parametrize("count", [MAX_EXPRESSION_DEPTH * 2, 700, MAX_CONDITION_TOKENS // 2 - 60])
@pytest.mark.parametrize("kind", DEEP)
def test_nesting_ends_in_an_answer(kind: str, count: int) -> None:
    with suppress(PatternError):
        query = parse_query(DEEP[kind](count))
        assert kind in ("parentheses", "fields", "alternating")  # a parenthesis alone is no level
        assert query.conditions


@pytest.mark.parametrize("kind", ["NOT", "signs", "sum", "calls", "choices"])
def test_deep_nesting_is_named(kind: str) -> None:
    with pytest.raises(PatternError, match="max_expression_depth"):
        parse_query(DEEP[kind](MAX_EXPRESSION_DEPTH + 5))


def test_many_parts_are_named() -> None:
    items = ", ".join(["1"] * MAX_EXPRESSION_NODES)
    assert "max_expression_nodes" in refused(where(f"¦a.x IN [{items}]")).what


GROWING: dict[str, Callable[[int], str]] = {
    "components": lambda size: sequence(size // 5),
    "conditions": lambda size: where(" AND ".join(["a.x > 1"] * (size // 6))),
    "fields": lambda size: where(" AND ".join(f"a.x{number} > c.x" for number in range(size // 8))),
    "exclusions": lambda size: where(
        f"a.x IN [{', '.join(map(str, range(size // 8)))}] AND "
        + " AND ".join(f"a.x != {number} AND a.x < {size + number}" for number in range(size // 20))
    ),
    "contradiction": lambda size: where(" AND ".join([*["a.x > 1"] * (size // 6), "a.x < 1"])),
    "references": lambda size: where(" OR ".join(["b[i].x > b[i-1].x"] * (min(size, 3_000) // 14))),
    "returns": lambda size: where("a.x = 1") + " RETURN " + ", ".join(f"a.x{number}" for number in range(size // 4)),
    "negations": lambda size: sequence(size // 10).replace("[k]", " AND ".join(["a0.x = 1"] * (size // 20))),
    "misspelt": lambda size: sequence(size // 5).replace("[k]", "a.x = 1"),
    "syntax error": lambda size: where(" AND ".join(["a.x > 1"] * (size // 6)) + " AND"),
}


def calls_of(text: str) -> int:
    """How many functions, Python's own too, are called to read the text or to refuse it."""
    count = 0

    def profile(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        with suppress(PatternError):
            parse_query(text)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("kind", GROWING)
def test_the_cost_is_linear_in_the_text(kind: str) -> None:
    parse_query(where("a.x = 1"))  # the grammar is there
    small, large = (calls_of(GROWING[kind](size)) for size in (700, 2_800))
    assert large < 5 * small
    assert large < 150 * 2_800


WORDS = """PATTERN SEQ ( ) WHERE skip_till_any_match { } WITHIN 1 hour WITHOUT WINDOW RETURN AS ANY T + ~ a [ ] , . ..
    i - and or not in if else = <> < count avg max null true 'x' 0.5 /* -- ; $ len"""


@settings(deadline=None, print_blob=True)
@given(st.text(max_size=80) | st.binary(max_size=80).map(lambda data: data.decode("latin-1")))
def test_any_text_is_a_query_or_a_pattern_error(text: str) -> None:
    for query in (text, where(text), where("a.x = 1") + text, f"PATTERN SEQ({text}) WHERE strict_contiguity(a) {{ }}"):
        assert_answered(query)


@settings(max_examples=200, deadline=None, print_blob=True)
@given(st.lists(st.sampled_from(WORDS.split()), max_size=25).map(" ".join))
def test_any_tokens_are_a_query_or_a_pattern_error(text: str) -> None:
    for query in (
        text,
        where(text),
        where("a.x = 1") + text,
        f"PATTERN SEQ(T a, {text}) WHERE strict_contiguity(a) {{ }}",
    ):
        assert_answered(query)


BASE = """PATTERN SEQ(~N n, {C c, P{2,3} p[]}, 'x y'+ q[], ANY b) WHERE skip_till_any_match(n, c, p, q[], b) {
    [PID] AND p[i].V > p[i-1].V AND q[i].x > avg(q[..i-1].x) AND NOT (b.x IN [1, 'a'] OR b.y = null) AND n.x = c.x
    AND (1 if b.q else 2) < -b.z } WITHIN 15 days RETURN q.len, max(p[].V) AS m, b.x -- end"""
PIECES = st.sampled_from([*WORDS.split(), "b.x", "p[i].V", "T+ z[]", "*/", "\n", "'", "é", "1e5", ""])


@settings(max_examples=300, deadline=None, print_blob=True)
@given(st.lists(st.tuples(st.integers(0, len(BASE)), st.integers(0, 8), PIECES), min_size=1, max_size=3))
def test_a_query_with_pieces_changed_is_refused_or_printed(changes: list[tuple[int, int, str]]) -> None:
    text = BASE
    for at, length, piece in changes:
        text = text[:at] + piece + text[at + length :]
    assert_answered(text)


def assert_answered(text: str) -> None:
    """A query that is its own canonical text's, or an error whose place is in the text."""
    error = None
    try:
        query = parse_query(text)
        assert parse_query(print_query(query)) == query
    except PatternError as caught:
        error = caught
    if error is not None:
        lines = text.split("\n")
        assert error.what
        assert error.fix
        assert error.place is not None
        assert 1 <= error.place.column <= len(lines[error.place.line - 1]) + 1
