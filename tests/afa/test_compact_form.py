"""The compact form of checked trees: `pack` and `unpack` lose nothing, and garbage is a ValueError."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgpack
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.expressions import DECLARED, REGISTERS, VALUES, compiled

from afa.evaluate import evaluate
from afa.expression import ExpressionError, Type, pack, unpack
from afa.expression.compact import FORMAT_VERSION, KINDS
from afa.expression.tree import walk
from afa.records import Event

EVERY_KIND = (
    "not (-e.count < 1 + r.n and e.price in [1, 2.5] or e.at.floor == null)"
    " and (e.ts if r.b else 2) > len(lower(e.name)) and corr(e.path, [1, 2]) > 0 and r.s != 'é\\0'"
)


def test_every_kind_of_node_comes_back() -> None:
    expression = compiled(EVERY_KIND, Type.BOOL, DECLARED)
    assert {type(node) for node in walk(expression.root)} == set(KINDS)
    assert unpack(pack(expression)) == expression.root


def test_the_numbers_of_kinds_and_types_never_change() -> None:
    assert msgpack.unpackb(pack(compiled("r.n + 1"))) == [1, [5, 1, "+", [3, 1, "n"], [0, 1, 1]]]
    assert msgpack.unpackb(pack(compiled("e.a.b == null"))) == [1, [7, 3, [1, 0, ["a", "b"]]]]
    assert msgpack.unpackb(pack(compiled("e.ts in [1, 2.0]"))) == [1, [8, 3, [2, 1, "ts"], [[0, 1, 1], [0, 2, 2.0]]]]
    assert msgpack.unpackb(pack(compiled("max('a', r.s)"))) == [1, [13, 4, "max", [[0, 4, "a"], [3, 4, "s"]]]]
    assert [kind.__name__ for kind in KINDS] == [
        "Literal", "EventField", "EventAttribute", "RegisterField", "Negation", "Arithmetic", "Comparison",
        "UnknownTest", "Membership", "And", "Or", "Not", "Choice", "Call",
    ]  # fmt: skip
    assert [(kind.name, int(kind)) for kind in Type] == [
        ("ANY", 0), ("INT", 1), ("FLOAT", 2), ("BOOL", 3), ("STRING", 4), ("LIST", 5),
    ]  # fmt: skip


numbers = st.one_of(
    st.sampled_from(["e.price", "e.count", "r.n", "r.f", "e.ts", "e.at.floor", "-9223372036854775808"]),
    st.integers(0, 2**63 - 1).map(str),
    st.floats(0, allow_infinity=False, allow_nan=False).map(repr),
)
texts = st.one_of(
    st.sampled_from(["e.name", "r.s", "e.type"]), st.text(st.characters(exclude_categories=["Cs"])).map(repr)
)
lists = st.one_of(st.just("e.path"), st.lists(st.integers(-9, 9)).map(repr))


def arithmetic(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(["+", "-", "*", "/", "//", "%"]), inner),
        st.builds("(-{})".format, inner),
        st.builds("{}({})".format, st.sampled_from(["abs", "sqrt", "floor", "ceil", "round"]), inner),
        st.builds("{}({}, {})".format, st.sampled_from(["min", "max"]), inner, inner),
        st.builds("len({})".format, st.one_of(texts, lists)),
        st.builds("corr({}, {})".format, lists, lists),
    )


terms = st.recursive(numbers, arithmetic, max_leaves=6)


def conditions(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(["and", "or", "==", "!="]), inner),
        st.builds("(not {})".format, inner),
        st.builds("({} if {} else {})".format, inner, inner, inner),
        st.builds("({} == null)".format, inner),
    )


comparisons = st.one_of(
    st.builds("({} {} {})".format, terms, st.sampled_from(["<", "<=", "==", "!=", ">", ">="]), terms),
    st.builds("({} < {} <= {})".format, terms, terms, terms),
    st.builds("({} == {})".format, texts, texts),
    st.builds("({} in {})".format, terms, st.lists(st.integers(-9, 9) | st.floats(-9, 9)).map(repr)),
    st.builds("{}({}, {})".format, st.sampled_from(["startswith", "endswith", "contains"]), texts, texts),
    st.sampled_from(["e.ok", "r.b", "true", "False"]),
)
expressions = st.recursive(comparisons, conditions, max_leaves=6)
data = st.fixed_dictionaries(
    {},
    optional={
        "price": st.floats() | st.integers(),
        "count": st.integers() | st.none(),
        "name": st.text() | st.booleans(),
        "ok": st.booleans() | st.none(),
        "path": st.lists(st.floats() | st.integers(-9, 9), max_size=4),
        "at": st.fixed_dictionaries({"floor": st.integers()}) | st.none(),
    },
)


@given(expressions, data)
def test_generated_trees_come_back_and_mean_the_same(text: str, fields: dict[str, Any]) -> None:
    try:
        expression = compiled(text, Type.BOOL, DECLARED)
    except ExpressionError as error:  # too large: all else would be a fault of these generators or of the checker
        assume("max_expression" not in error.what)
        raise
    back = unpack(pack(expression))
    assert back == expression.root
    assert [node.type for node in walk(back)] == [node.type for node in walk(expression.root)]
    event = Event(key="k", ts=1, id="e", data=fields)
    result = evaluate(expression.root, event, VALUES)
    assert result is None or isinstance(result, bool)
    assert evaluate(back, event, VALUES) is result


@given(terms, data)
def test_the_static_type_is_kept_at_run_time(text: str, fields: dict[str, Any]) -> None:
    """With declared fields nothing is `any`: every result is unknown or of the type that the checker said."""
    expression = compiled(text, None, DECLARED)
    result = evaluate(expression.root, Event(key="k", ts=1, id="e", data=fields), VALUES)
    assert result is None or REGISTERS[{int: "n", float: "f"}[type(result)]] is expression.root.type


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"\xc1",
        b"\x05",
        b"[]",
        msgpack.packb([]),
        msgpack.packb({}),
        msgpack.packb([FORMAT_VERSION]),
        msgpack.packb([FORMAT_VERSION + 1, [0, 1, 1]]),
        msgpack.packb([FORMAT_VERSION, 7]),
        msgpack.packb([FORMAT_VERSION, []]),
        msgpack.packb([FORMAT_VERSION, [0, 1]]),
        msgpack.packb([FORMAT_VERSION, [0, 1, 1, 1]]),
        msgpack.packb([FORMAT_VERSION, [99, 1, 1]]),
        msgpack.packb([FORMAT_VERSION, [-1, 1, "abs", []]]),
        msgpack.packb([FORMAT_VERSION, [0, 99, 1]]),
        msgpack.packb([FORMAT_VERSION, ["0", 1, 1]]),
        msgpack.packb([FORMAT_VERSION, [9, 3, 5]]),
        pack(compiled("1 + 1"))[:-1],
        pack(compiled("1 + 1")) + b"\0",
    ],
)
def test_garbage_is_a_value_error(damaged: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - msgpack has many of them
        unpack(damaged)


@given(st.binary(max_size=30) | st.binary(max_size=20).map(lambda tail: b"\x92\x01" + tail))
def test_any_bytes_are_a_tree_or_a_value_error(damaged: bytes) -> None:
    with suppress(ValueError):
        unpack(damaged)
