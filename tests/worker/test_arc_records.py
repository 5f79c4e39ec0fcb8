"""What the arcs topic says: reading, the table, and what is written for a folder of patterns."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afa import PatternError, RecordError
from arcfleet.fleet.arcs import (
    MAX_ARC_RECORD_BYTES,
    PUNCTUATION_KEY,
    ArcPromise,
    ArcTable,
    Head,
    StampedArc,
    read_arc_record,
    stamp,
)

Q1 = {
    "pattern": "q1",
    "start": "s",
    "final": ["f"],
    "arcs": [
        {"id": "a", "from": "s", "to": "m", "when": "e.x < 0"},
        {"id": "b", "from": "m", "to": "f", "when": "e.x > 0", "valid": [1000, None]},
    ],
}
SHOP = {"pattern": "shop", "query": "PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) { } WITHIN 5 ms"}


def table_of(*documents):
    table = ArcTable()
    for record in stamp(documents, table):
        key, value = record.written()
        assert read_arc_record(value) == record
        assert key
        table.apply(record)
    return table


def test_a_head_comes_before_its_arcs_and_lifetimes_are_as_written():
    records = stamp([Q1], ArcTable())
    assert [type(record) for record in records] == [Head, StampedArc, StampedArc]
    assert [record.written()[0] for record in records] == [b"q1", b"q1/a", b"q1/b"]
    assert "arcs" not in records[0].document
    assert [arc.valid for arc in records[1:]] == [(None, None), (1000, None)]
    assert [record.version for record in records] == [1, 2, 3]


def test_a_query_is_its_text_alone():
    (head,) = stamp([SHOP], ArcTable())
    assert head.document == SHOP
    assert [pattern.name for pattern in table_of(SHOP).patterns("ms")] == ["shop"]


def test_tests_inside_a_document_are_not_published():
    (head, *_) = stamp([Q1 | {"tests": [{"name": "t", "tape": [], "matches": []}]}], ArcTable())
    assert "tests" not in head.document


def test_the_table_compiles_to_the_patterns_that_were_published():
    (pattern,) = table_of(Q1).patterns("ms")
    assert [arc.id for arc in pattern.arcs] == ["a", "b"]
    assert pattern.arcs[1].lifetime.as_pair()[0] == 1000


def test_what_is_there_with_the_same_content_changes_nothing():
    assert stamp([Q1, SHOP], table_of(Q1, SHOP)) == []


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        (Q1 | {"final": ["m"]}, "`final`"),
        (Q1 | {"within": 5}, "`within` is absent there, 5 here"),
        (Q1 | {"arcs": Q1["arcs"][:1]}, "the arc `b`"),
        (
            Q1 | {"arcs": Q1["arcs"][:1]},
            'is {"id": "b", "from": "m", "to": "f", "when": "e.x > 0", "valid": [1000, null]} there',
        ),
        (Q1 | {"arcs": [Q1["arcs"][0], Q1["arcs"][1] | {"valid": [2000, None]}]}, "the arc `b`"),
        (
            Q1 | {"arcs": [Q1["arcs"][0], Q1["arcs"][1] | {"valid": [2000, None]}]},
            "the arc `b`, its `valid`, is [1000, null] there, [2000, null] here",
        ),
        (
            Q1 | {"arcs": [Q1["arcs"][0] | {"when": "absent"}, Q1["arcs"][1]]},
            'its `when`, is "e.x < 0" there, "absent" here',
        ),
    ],
)
def test_what_is_there_with_another_content_is_refused_and_the_difference_named(changed, named):
    with pytest.raises(PatternError, match="differs") as caught:
        stamp([changed], table_of(Q1))
    assert named in caught.value.what


@pytest.mark.parametrize("here", [0.0, False, -0.0, "0"])
def test_values_of_another_type_are_another_content(here):
    numbered = Q1 | {"registers": {"n": 0}}
    with pytest.raises(PatternError, match=rf"`registers\.n` is 0 there, {json.dumps(here)} here"):
        stamp([numbered | {"registers": {"n": here}}], table_of(numbered))


def test_the_order_of_fields_and_what_json_makes_of_a_name_are_no_difference():
    typed = Q1 | {"events": {"5": {"x": "int", "y": "int"}}}
    again = dict(reversed((Q1 | {"events": {5: {"y": "int", "x": "int"}}}).items()))
    assert stamp([again], table_of(typed)) == []


@pytest.mark.parametrize("place", [0, 100, 199])
def test_long_values_are_shown_where_they_differ(place):
    conditions = [f"e.x{number} > {number}" for number in range(200)]
    other = [*conditions[:place], "e.here == 5", *conditions[place + 1 :]]
    there, here = ({**Q1["arcs"][0], "when": " or ".join(parts)} for parts in (conditions, other))
    with pytest.raises(PatternError) as caught:
        stamp([Q1 | {"arcs": [here, Q1["arcs"][1]]}], table_of(Q1 | {"arcs": [there, Q1["arcs"][1]]}))
    _, shown = caught.value.what.split("differs: ")
    assert f"e.x{place} > {place}" in shown.split(" there, ")[0]
    assert "e.here == 5" in shown.split(" there, ")[1]
    assert len(shown) < 250


@given(st.permutations([1, 2, 3, 4]))
def test_of_each_arc_the_greatest_version_counts_whatever_the_order(versions):
    table = table_of(Q1)
    for version in versions:
        table.apply(StampedArc("q1", 10 + version, {"id": "a", "from": "s", "to": "m"}, (version, None)))
    assert table.arcs["q1", "a"].valid == (4, None)


def test_arc_punctuations_only_rise():
    table = ArcTable()
    assert table.apply(ArcPromise(5))
    assert not table.apply(ArcPromise(4))
    assert table.promise == ArcPromise(5)
    assert table.promise.written() == (PUNCTUATION_KEY, b'{"op":"arc-punctuation","ts":5}')


def test_a_table_survives_the_state_topic():
    table = table_of(Q1, SHOP)
    table.apply(ArcPromise(7))
    table.offset = 42
    assert ArcTable.unpacked(table.packed()) == table


@pytest.mark.parametrize("data", [b"", b"{}", b'{"version":2,"offset":0,"records":[]}', b'{"version":1}', b"\xff"])
def test_a_damaged_or_newer_table_is_refused_by_name(data):
    with pytest.raises(RecordError):
        ArcTable.unpacked(data)


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (None, "tombstone"),
        (b"x", "not JSON"),
        (b"[]", "must be a mapping"),
        (b"{}", "needs `op`"),
        (b'{"op":"retract"}', "is arc, arc-punctuation or pattern"),
        (b'{"op":"arc-punctuation","ts":"5"}', "`ts` must be an integer"),
        (b'{"op":"arc-punctuation","ts":9223372036854775808}', "outside 64 bits"),
        (b'{"op":"pattern","pattern":"q","version":1}', "needs `document`"),
        (b'{"op":"arc","pattern":"q","version":1,"arc":{},"valid":[1,2]}', "needs an `id`"),
        (b'{"op":"arc","pattern":"q","version":1,"arc":{"id":"a"},"valid":[1]}', "both of its ends"),
        (b" " * (MAX_ARC_RECORD_BYTES + 1), "max_arc_record_bytes"),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_a_bad_record_says_what_is_wrong(value, what):
    with pytest.raises(RecordError, match=what):
        read_arc_record(value)


@given(st.binary(max_size=200) | st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))
def test_strangers_bytes_are_read_or_refused(value):
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    with suppress(RecordError):
        read_arc_record(data)


def test_an_arc_before_its_head_is_refused():
    with pytest.raises(RecordError, match="head did not come before"):
        ArcTable().apply(StampedArc("q1", 1, {"id": "a"}, (None, None)))
