"""Tapes as bytes: where lines end, what is too long, and that any bytes are records or a RecordError with its place."""

from __future__ import annotations

import json
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afa import RecordError
from afa.records import Event
from afa.tape import MAX_RECORD_DEPTH, Tape

LIMIT = 20


def lines(content: bytes, limit: int = LIMIT) -> list[tuple[int, bytes, bool]]:
    return [(line.number, line.raw, bool(line.too_long)) for line in Tape(BytesIO(content), "t", limit)]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", []),
        (b"a", [(1, b"a", False)]),
        (b"a\n\n \nb\r\n", [(1, b"a", False), (4, b"b", False)]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb", [(1, b"a", False), (2, b"\xef\xbb\xbfb", False)]),
        (b"x" * LIMIT + b"\nb", [(1, b"x" * LIMIT, False), (2, b"b", False)]),
        (b"x" * LIMIT + b"\r\nb", [(1, b"x" * LIMIT, False), (2, b"b", False)]),
        (b"x" * LIMIT, [(1, b"x" * LIMIT, False)]),
    ],
)
def test_lines(content: bytes, expected: list[tuple[int, bytes, bool]]) -> None:
    assert lines(content) == expected


@pytest.mark.parametrize("more", [1, 2, 3, 5 * LIMIT])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_line_that_is_too_long_is_one_line(more: int, end: bytes) -> None:
    for filling in (b"x", b"\r"):
        found = lines(filling * (LIMIT + more) + b"y" + end + b"next")
        assert [(number, too_long) for number, _, too_long in found][-2:] == [(1, True), (2, False)][-len(found) :]
        assert found[-1] == (2, b"next", False), "whatever it was made of"


def read(content: bytes) -> Event:
    (line,) = Tape(BytesIO(content), "t")
    record = line.read()
    assert isinstance(record, Event)
    return record


def test_numbers_that_do_not_fit_are_no_reason_to_refuse_a_record() -> None:
    digits = "9" * 10_000
    event = read(b'{"key":"k","ts":1,"data":{"x":1e999,"y":%s,"z":-%s,"a":[%s]}}' % ((digits.encode(),) * 3))
    assert event.data is not None
    assert set(event.data) == {"x", "y", "z", "a"}


def test_depth_is_bounded_exactly() -> None:
    def nested(levels: int) -> bytes:
        data = "[" * (levels - 2) + "]" * (levels - 2)  # two objects are around it
        return f'{{"key":"k","ts":1,"data":{{"x":{data}}}}}'.encode()

    assert read(nested(MAX_RECORD_DEPTH)).canonical_bytes()
    with pytest.raises(RecordError, match="max_record_depth"):
        read(nested(MAX_RECORD_DEPTH + 1))
    # Many lists beside each other are not deep.
    assert read(b'{"key":"k","ts":1,"data":{"x":[%s]}}' % b",".join([b"[]"] * 5 * MAX_RECORD_DEPTH))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
names = st.sampled_from(["op", "key", "ts", "seq", "rev", "id", "type", "data", "when", "arc", "valid", "pattern", "x"])
operations = st.sampled_from(["insert", "retract", "punctuation", "arc", "arc-retract", "arc-punctuation", "zz"])
objects = st.dictionaries(names, json_values | operations, max_size=6)


@given(
    st.one_of(st.binary(max_size=60), objects.map(lambda value: json.dumps(value).encode()), st.text().map(str.encode))
)
def test_any_bytes_are_records_or_a_record_error(content: bytes) -> None:
    for line in Tape(BytesIO(content), "t"):
        error = None
        try:
            record = line.read()
            if isinstance(record, Event):
                assert record.rank
                assert record.order
        except RecordError as caught:
            error = caught
        assert error is None or (error.place is not None and error.place.line == line.number and error.fix)
