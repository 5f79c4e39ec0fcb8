"""The native engine against the reference: the same changes after every record, not only at the end."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.generated import arc_records, documents, event_records, merged, punctuated

from afa import Engine, RecordError
from afa.document import build_pattern
from afa.pattern import Pattern

settings = st.fixed_dictionaries(
    {
        "speculation": st.sampled_from([0, 2, math.inf, math.inf]),
        "hold_output": st.booleans(),
        "gap_free": st.booleans(),
    }
)


def assert_same(patterns: list[Pattern], tape: list[dict[str, Any]]) -> None:
    engines = [Engine(patterns, "native"), Engine(patterns, "reference")]
    for record in tape:
        native, reference = (engine.feed([json.dumps(record).encode()]) for engine in engines)
        assert native.to_records() == reference.to_records(), f"after {record}"
        assert [index for index, _ in native.bad] == [index for index, _ in reference.bad], f"after {record}"
        assert native.late == reference.late, f"after {record}"


@given(st.data(), documents(), documents(), settings, settings, st.booleans())
def test_any_pattern_any_tape(
    data: st.DataObject,
    one: dict[str, Any],
    other: dict[str, Any],
    first: dict[str, Any],
    second: dict[str, Any],
    both: bool,
) -> None:
    patterns = [replace(build_pattern(one), **first)]
    if both:
        patterns.append(replace(build_pattern(other | {"pattern": "q"}), **second))
    records = data.draw(event_records())
    tape = data.draw(punctuated(data.draw(merged(records, data.draw(arc_records(one)))), arcs=True))
    if data.draw(st.booleans()):
        tape.insert(len(tape) // 2, {"op": "punctuation", "ts": 12, "when": "e.y > 1"})
    assert_same(patterns, tape)


@given(st.data(), documents(), settings)
def test_a_pattern_that_does_not_see_everything(
    data: st.DataObject, document: dict[str, Any], chosen: dict[str, Any]
) -> None:
    patterns = [replace(build_pattern(document | {"key": "k"}), **chosen)]
    patterns.append(replace(build_pattern(document | {"pattern": "all"}), **chosen))
    tape = data.draw(event_records(most=20))
    for record in tape:
        if "data" in record:
            record["data"] |= {"k": data.draw(st.sampled_from(["A", "A", "B"]))}
    assert_same(patterns, data.draw(punctuated(tape)))


ANY_EVENT = build_pattern(
    {"pattern": "p", "start": "a", "final": ["b"], "arcs": [{"id": "x", "from": "a", "to": "b", "when": "e.x > 1"}]}
)


@pytest.mark.parametrize(
    "value",
    [
        b'{"key":"k","ts":1,"data":{"x":2}}',
        b'{"key":"k","ts":1,"data":{"x":1e999}}',
        b'{"key":"k","ts":1,"data":{"x":99999999999999999999}}',
        b'{"key":"k","ts":1,"data":{"x":2,"x":1}}',
        b'{"key":"\\ud83d\\ude00","ts":1,"data":{"x":2}}',
        b'{"key":"\\ud83d","ts":1,"data":{"x":2}}',
        b'{"key":"k","ts":1,"data":{"x":NaN}}',
        b'{"key":"k","ts":1.0,"data":{"x":2}}',
        b'{"key":"k","ts":99999999999999999999,"data":{}}',
        b'{"key":5,"ts":1}',
        b'{"key":"k"}',
        b'{"ts":1}',
        b'{"op":"retract","key":"k","ts":1}',
        b'{"op":"fly"}',
        b'{"key":"k","ts":1,"type":3}',
        b'{"key":"k","ts":1,"seq":true}',
        b'{"key":"k","ts":1,"data":[]}',
        b'{"key":"k","ts":01}',
        b'{"key":"k","ts":1} x',
        b'{"key":"k","ts":1,}',
        b'{"key":"\x01","ts":1}',
        b'{"key":"k\xff","ts":1}',
        b"[]",
        b"",
        b"[" * 200 + b"]" * 200,
        b'{"key":"k","ts":1,"data":{"x":-0}}',
        b'{"key":"k","ts":-9223372036854775808,"data":{"x":5}}',
        b'{"op":"arc","pattern":"nobody","arc":{"id":"x"},"valid":[1,2]}',
        b'{"op":"punctuation","ts":5,"when":"e.x >"}',
        b'{"op":"arc","pattern":"p","arc":{"id":"x"},"valid":[' + b"9" * 5000 + b",null]}",
        *(b'{"key":"k","ts":1,"data":{"x":' + b"[" * n + b"1" + b"]" * n + b"}}" for n in (97, 98, 99, 120)),
    ],
)
def test_both_decode_alike(value: bytes) -> None:
    native, reference = (
        Engine([ANY_EVENT], name).feed([value, b'{"key":"k","ts":7,"data":{"x":3}}'])
        for name in ("native", "reference")
    )
    assert native.to_records() == reference.to_records()
    assert native.bad == reference.bad
    assert native.late == reference.late


def test_state_goes_with_the_punctuation() -> None:
    """A key whose windows have closed is forgotten, though it stays silent."""
    engine = Engine([replace(ANY_EVENT, window=build_pattern({**DOCUMENT, "within": 10}).window)])
    engine.feed([b'{"key":"k","ts":1,"data":{"x":3}}', b'{"key":"l","ts":100,"data":{"x":3}}'])
    assert engine.keys() == ["k", "l"]
    engine.punctuate(50)
    assert engine.keys() == ["l"]


DOCUMENT = {"pattern": "p", "start": "a", "final": ["b"], "arcs": [{"id": "x", "from": "a", "to": "b"}]}


def test_bad_changes_are_errors_with_a_reason() -> None:
    engine = Engine([ANY_EVENT])
    with pytest.raises(RecordError, match="has no arc `y`"):
        engine.change_arc({"op": "arc-retract", "pattern": "p", "arc": {"id": "y"}})
    with pytest.raises(RecordError, match="not an expression"):
        engine.punctuate(5, "e.x >")
    assert engine.change_arc({"op": "arc", "pattern": "p", "arc": {"id": "x"}, "valid": [None, 5]}).changes == []
    assert engine.patterns()[0].arcs[0].lifetime.as_pair() == (None, 5)


ENDS = (-(2**63), -(2**63) + 1, -1, 0, 5, 2**63 - 2, 2**63 - 1)


QUERIES_AT_THE_ENDS = [
    build_pattern({"pattern": "q", "query": f"PATTERN {query} WITHIN {span} ms"} | more)
    for span in (3, 2**63 - 1)
    for query, more in (
        ("SEQ(ANY a) WHERE partition_contiguity(a) { }", {}),
        ("SEQ(ANY a) WHERE skip_till_next_match(a) { }", {"timeouts": True}),
        ("SEQ(ANY a) WHERE skip_till_next_match(a) { }", {"output": "non_overlapping"}),
        ("SEQ(buy a, sell b) WHERE skip_till_next_match(a, b) { }", {"timeouts": True}),
        ("SEQ(ANY a, ~sell b) WHERE skip_till_next_match(a, b) { }", {}),
        ("SEQ(ANY a, ~sell b) WHERE skip_till_next_match(a, b) { }", {"absence": "speculative"}),
        ("SEQ(~sell b, ANY a) WHERE skip_till_next_match(b, a) { }", {}),
    )
]


@given(
    st.data(),
    documents(windows=(1, 10, 2**63 - 1, None)),
    st.fixed_dictionaries(
        {
            "speculation": st.sampled_from([0, 2**62, math.inf]),
            "gap_free": st.booleans(),
            "hold_output": st.booleans(),
            "output": st.sampled_from(["all", "all", "non_overlapping"]),
            "key_field": st.sampled_from([None, None, ("k",)]),
        }
    ),
    st.sampled_from([None, *QUERIES_AT_THE_ENDS]),
)
def test_the_ends_of_time(
    data: st.DataObject, document: dict[str, Any], chosen: dict[str, Any], query: Pattern | None
) -> None:
    """Timestamps, sequence numbers and punctuations at the ends of the 64-bit range."""
    tape = data.draw(event_records())
    for record in tape:
        record["ts"] = data.draw(st.sampled_from(ENDS))
        record["seq"] = data.draw(st.sampled_from(ENDS))
        if "data" in record:
            record["data"] |= {"k": data.draw(st.sampled_from(["A", "A", "B"]))}
    for record in data.draw(punctuated(tape, arcs=True)):
        if "punctuation" in record.get("op", ""):
            record["ts"] = data.draw(st.sampled_from(ENDS))
            tape.insert(data.draw(st.integers(0, len(tape))), record)
    pattern = replace(build_pattern(document), **chosen)
    assert_same([pattern] if query is None else [pattern, query], tape)
