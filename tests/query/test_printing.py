"""Tree to text and back: parse, print and parse again is the identity, and printing changes nothing twice."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis.strategies import sampled_from
from support.query_trees import queries

from afa import PatternError
from afa.durations import FLEET_UNITS, FleetUnit
from afa.query import Query, parse_query, print_query
from afa.query.tree import TimeWindow


@settings(max_examples=300, deadline=None, print_blob=True)
@given(queries(), sampled_from(FLEET_UNITS))
def test_what_is_printed_is_read_as_the_same_tree(query: Query, unit: FleetUnit) -> None:
    if isinstance(query.window, TimeWindow):
        query = replace(query, window=TimeWindow(query.window.length, unit))
    text = print_query(query)
    again = parse_query(text, unit=unit)
    assert again == query
    assert print_query(again) == text


@pytest.mark.parametrize(
    ("unit", "written", "length", "printed"),
    [
        ("us", "10 seconds", 10_000_000, "10 seconds"),
        ("us", "1.5 milliseconds", 1_500, "1500 us"),
        ("us", "2000 us", 2_000, "2 ms"),
        ("ns", "1 day", 86_400 * 10**9, "1 day"),
        ("ns", "1 nanosecond", 1, "1 ns"),
        ("ms", "90 minutes", 5_400_000, "90 minutes"),
    ],
)
def test_windows_are_told_in_the_unit_of_ts(unit: FleetUnit, written: str, length: int, printed: str) -> None:
    query = parse_query(f"PATTERN SEQ(T a) WHERE strict_contiguity(a) {{}} WITHIN {written}", unit=unit)
    assert query.window == TimeWindow(length, unit)
    text = print_query(query)
    assert text.splitlines()[-1] == f"WITHIN {printed}"
    assert parse_query(text, unit=unit) == query


def test_a_window_of_part_of_a_unit_is_refused() -> None:
    with pytest.raises(PatternError, match="`1 ns` is not a whole number of microseconds"):
        parse_query("PATTERN SEQ(T a) WHERE strict_contiguity(a) {} WITHIN 1 ns", unit="us")


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("a.x==1", "a.x = 1"),
        ("a.x<>1", "a.x != 1"),
        ("NOT (a.x = null)", "a.x != null"),
        ("not a.x in [1,'b',-2.0]", "a.x NOT IN [1, 'b', -2.0]"),
        ("a.x - (a.y - 1) - 2 > 0", "a.x - (a.y - 1) - 2 > 0"),
        ("(a.x * 2) + 1 > +a.y", "a.x * 2 + 1 > a.y"),
        ("-(-1) < - -a.x", "-(-1) < -(-a.x)"),
        ("(a.x > 1) = TRUE", "(a.x > 1) = true"),
        ("a.x = 1 or (a.y = 2 and a.z = 3) or a.q = None", "a.x = 1 OR a.y = 2 AND a.z = 3 OR a.q = null"),
        ("(1 IF a.ok ELSE 2 if a.no else 3) = a.x", "(1 if a.ok else 2 if a.no else 3) = a.x"),
        ("a.x = 0x1F or a.x > 1_000.5e-1", "a.x = 31 OR a.x > 100.05"),
        (r"a.x = 'it\'s' or a.x = ''", """a.x = "it's" OR a.x = ''"""),
        ("Corr(a.x, [1, 2]) > 0.5 or MAX(a.x, a.y) > 1", "corr(a.x, [1.0, 2.0]) > 0.5 OR max(a.x, a.y) > 1"),
    ],
)
def test_how_conditions_are_printed(written: str, printed: str) -> None:
    query = parse_query(f"PATTERN SEQ(T a) WHERE strict_contiguity(a) {{ {written} }}")
    lines = print_query(query).splitlines()
    assert lines[2].strip() == (f"({printed})" if " OR " in printed else printed) or lines[2].strip() == printed


def test_a_whole_query() -> None:
    text = """pattern seq(~'web click' n, Any a, {T{2,3} t[], U u}) -- a comment
      where SKIP_TILL_ANY_MATCH(u, t, a, n) { /* all of
      it */ 1 <= t[i].x < 5 and [user.id, site] AND (u.y = 'a' AND count(t[]) > 2) }
      within 90 minutes return t.len, u . y as "last one", max ( t[].x ), a.x AS x"""
    assert (
        print_query(parse_query(text))
        == """\
PATTERN SEQ(~'web click' n, ANY a, {T{2,3} t[], U u})
WHERE skip_till_any_match(n, a, t[], u) {
    [user.id]
    AND [site]
    AND 1 <= t[i].x
    AND t[i].x < 5
    AND u.y = 'a'
    AND count(t[]) > 2
}
WITHIN 90 minutes
RETURN t.len, u.y AS 'last one', max(t[].x) AS 'max ( t[].x )', a.x AS x
"""
    )


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("1 hour", "1 hour"),
        ("60 MIN", "1 hour"),
        ("24h", "1 day"),
        ("1.5 hours", "90 minutes"),
        ("500ms", "500 ms"),
        ("2000 milliseconds", "2 seconds"),
        ("3000000 us", "3 seconds"),
        ("15 Days", "15 days"),
        ("1 EVENT", "1 event"),
        ("500 events", "500 events"),
    ],
)
def test_windows(written: str, printed: str) -> None:
    query = parse_query(f"PATTERN SEQ(T a) WHERE skip_till_any_match(a) {{ }} WITHIN {written}")
    assert print_query(query).splitlines()[2] == f"WITHIN {printed}"
