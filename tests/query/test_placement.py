"""Conditions that have no place, or that no event can meet; and those that look so, but are fine."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.query_texts import refused, where

from afa import PatternError
from afa.evaluate import evaluate
from afa.query import Query, parse_query

SET = "{T a, T+ b[]}, T c"

NO_PLACE = {
    "no variable": ("¦1 < 2", "names no variable", "may be empty"),
    "true": ("a.x = 1 AND ¦true", "names no variable", "delete it"),
    "i of an earlier component": ("c.x > ¦b[i].x", "tested later, at `c`", "`max(b[].x)`"),
    "i-1 of an earlier component": ("¦b[i-1].x < c.x", "`b[i-1]` is the event before", "`max(b[].x)`"),
    "what came before i, later": ("c.x > ¦max(b[..i-1].x)", "`b[..i-1]` is what", "`max(b[].x)`"),
    "i in a negation": ("n.x > ¦b[i].x", "tested later, at the negated `n`", "`max(b[].x)`"),
    "i beside all": ("b[i].x > ¦avg(b[].x)", "no place for both", "`b[..i-1]`"),
    "i beside the last": ("b[i].x > ¦b[b.len].x", "no place for both", "`b[i-1]`"),
    "i beside the length": ("b[i-1].x > ¦b.len", "no place for both", "aggregate"),
    "all beside what came before": ("¦max(b[].x) > min(b[..i-1].x)", "no place for both", ""),
    "a later variable": ("n.x = a.x AND n.y = ¦c.y", "names `c`, which comes later", "variables before it"),
}


@pytest.mark.parametrize("case", NO_PLACE.values(), ids=NO_PLACE)
def test_conditions_without_a_place(case: tuple[str, str, str]) -> None:
    marked, what, fix = case
    error = refused(where(marked))
    assert what in error.what
    assert fix in error.fix


def test_two_negations_in_one_condition() -> None:
    assert "two negated variables" in refused(where("n.x = ¦m.x", "T a, ~T n, ~T m, T b")).what


def test_i_beside_another_of_its_set() -> None:
    assert "of the same set" in refused(where("b[i].x > ¦a.x", SET)).what
    assert "of the same set" in refused(where("b[i].x > ¦d[1].x", "{T+ b[], T+ d[]}, T c")).what


@pytest.mark.parametrize(
    ("conditions", "pattern"),
    [
        ("b[i].x > a.x AND b[i].x > b[1].x AND b[i].x > b[i-1].x AND b[i].x > avg(b[..i-1].x)", "T a, T+ b[]"),
        ("b[i-1].x > 1 AND count(b[..i-1]) < 5 AND b[1].x = a.x", "T a, T+ b[]"),
        ("b[1].x > b[b.len].x AND b.len > 2 AND max(b[].x) > a.x", "T a, T+ b[]"),
        ("c.x > b[1].x AND c.x > b[b.len].x AND c.x > b.len AND c.x > sum(b[].x)", "T+ b[], T c"),
        ("d[i].x > max(b[].x) AND d[i].x > b[b.len].x", "T+ b[], T+ d[]"),
        ("n.x = a.x AND n.x > max(b[].x) AND n.y = 1", "T a, T+ b[], ~T n, T c"),
        ("n.x = a.x AND n.x > max(b[].x)", "~T n, T a, T+ b[]"),  # a leading one may name any
        ("n.x = a.x AND m.x = a.x", "~T n, ~T m, T a"),
        ("n.x = a.x AND m.x = b.x", "T a, T b, ~T n, ~T m"),
        ("b[i].x > b[i-1].x AND a.x > b[1].x AND max(b[].x) > a.x AND b.len > a.x", SET),
        ("b[i].x > z.x", "T z, {T a, T+ b[]}, T c"),
        ("a.len > 1 AND b[i].len > 1", "T a, T+ b[]"),  # `len` of a single event is a field
    ],
)
def test_conditions_with_a_place(conditions: str, pattern: str) -> None:
    assert parse_query(where(conditions, pattern))


RETURNED = {
    "a negated variable": ("¦n.x", "negated", "other variables"),
    "i": ("a.x, ¦b[i].x", "no meaning in RETURN", "`b[1]`"),
    "what came before i": ("¦sum(b[..i-1].x) AS s", "no meaning in RETURN", "aggregate"),
    "unbound": ("¦z.x", "`z` is not bound", ""),
    "an event": ("¦a", "an event, not a value", ""),
    "one name twice": ("a.x, ¦c.x AS 'a.x'", "two values are named `a.x`", "with AS"),
    "a control in a name": (r"a.x AS ¦'a\tb'", "control characters", "delete"),
}


@pytest.mark.parametrize("case", RETURNED.values(), ids=RETURNED)
def test_what_cannot_be_returned(case: tuple[str, str, str]) -> None:
    marked, what, fix = case
    error = refused(where("a.x = 1") + f"\nRETURN {marked}")
    assert what in error.what
    assert fix in error.fix


def test_names_of_returned_values() -> None:
    query = parse_query(
        where("a.x = 1") + "\nRETURN a.x, 1 + 1, avg( b[].x )  -- c\n, 'a  b', b . len AS n, a.y AS 'a b'"
    )
    assert [item.name for item in query.returns] == ["a.x", "1 + 1", "avg( b[].x )", "'a  b'", "n", "a b"]


CONTRADICTIONS = [
    "a.x > 5 AND ¦a.x < 3",
    "a.x >= 5 AND ¦a.x < 5",
    "5 < ¦a.x < 5",
    "a.x = 1 AND ¦a.x = 2",
    "a.x = 'a' AND ¦a.x = 'b'",
    "a.x = 1 AND ¦a.x != 1.0",
    "a.x = true AND ¦a.x = false",
    "a.x >= 5 AND a.x <= 5 AND ¦a.x != 5",
    "a.x = 7 AND ¦a.x > 8",
    "a.x IN [1, 2] AND ¦a.x = 3",
    "a.x IN [1, 2] AND ¦a.x > 2.5",
    "a.x IN ['a'] AND ¦a.x NOT IN ['a', 'b']",
    "¦a.x IN []",
    "a.x = null AND ¦a.x > 5",
    "a.x = null AND ¦a.x != null",
    "a.x = null AND ¦a.x IN [1, 'a']",
    "NOT a.x > 5 AND ¦a.x > 6",
    "a.name > 'b' AND ¦a.name < 'a'",
    "a.x > 5 AND c.x < 3 AND ¦3 >= a.x",
    "a.ts > 10 AND ¦a.ts < 9",
    "n.x > 5 AND ¦n.x < 3",
    "b[i].x > 5 AND ¦b[i].x < 3",
    "b[i].x > 5 AND ¦b[1].x < 3",
    "b[b.len].x > 5 AND ¦b[i].x < 3",
]


@pytest.mark.parametrize("marked", CONTRADICTIONS)
def test_conditions_that_no_event_can_meet(marked: str) -> None:
    error = refused(where(marked))
    assert "contradict each other" in error.what
    assert "OR" in error.fix


@pytest.mark.parametrize(
    "conditions",
    [
        "a.x > 5 AND c.x < 3",
        "a.x > 5 AND a.y < 3",
        "a.x >= 5 AND a.x <= 5",
        "a.x > 5 OR a.x < 3",
        "a.x > 5 AND a.x = 'a'",  # without declarations a field may be used as anything
        "a.x IN [1, 'a'] AND a.x = 'a'",
        "a.x != 1 AND a.x != 2",
        "b[i-1].x > 5 AND b[i].x < 3",  # one event can still be bound
        "b[1].x > 5 AND b[b.len].x < 3",
        "max(b[].x) > 5 AND max(b[].x) < 3 + 3",
        # rounded to a float, the int below the bound is not below it
        "a.x >= 1152921504606846976.0 AND a.x < 1152921504606846976",
    ],
)
def test_conditions_that_some_event_may_meet(conditions: str) -> None:
    assert parse_query(where(conditions))


CONSTANTS = [
    "1",
    "2",
    "2.0",
    "2.5",
    "3",
    "-1",
    "9007199254740993",
    "9007199254740992.0",
    "'a'",
    "'b'",
    "''",
    "true",
    "false",
]
VALUES = [
    1,
    2,
    2.0,
    2.5,
    3,
    -1,
    0,
    2**53,
    2**53 + 1,
    2.0**53,
    2.0**53 + 2,
    1e300,
    "a",
    "b",
    "",
    "ab",
    True,
    False,
    None,
]
SHAPES = [
    "a.x {operator} {one}",
    "{one} {operator} a.x",
    "NOT a.x {operator} {one}",
    "a.x IN [{one}, {two}]",
    "a.x NOT IN [{one}, {two}]",
    "{one} <= a.x < {two}",
    "a.x = null",
    "a.x != null",
]
SIMPLE = st.builds(
    lambda shape, operator, one, two: shape.format(operator=operator, one=one, two=two),
    st.sampled_from(SHAPES),
    st.sampled_from(["=", "!=", "<", "<=", ">", ">="]),
    st.sampled_from(CONSTANTS),
    st.sampled_from(CONSTANTS),
)


@settings(max_examples=300, deadline=None, print_blob=True)
@given(st.lists(SIMPLE, min_size=1, max_size=4))
@example(["a.x > 2", "a.x < 2.5", "a.x != 2.0"])
def test_what_is_refused_is_met_by_no_value(conditions: list[str]) -> None:
    """The check does not look below a double NOT, which changes no truth: so the same conditions can be evaluated."""
    query = answer(" AND ".join(f"NOT (NOT ({condition}))" for condition in conditions))
    refusal = answer(" AND ".join(conditions))
    if isinstance(query, PatternError) or isinstance(refusal, Query):
        return
    for value in VALUES:
        met = [evaluate(found.expression, None, {}, lambda _, value=value: value) for found in query.conditions]
        assert not all(truth is True for truth in met), (value, str(refusal))


def answer(conditions: str) -> Query | PatternError:
    try:
        return parse_query(where(conditions))
    except PatternError as error:
        return error
