"""What every accepted expression is worth: three-valued logic, arithmetic, comparison, functions, fields."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import pytest
from support.expressions import DECLARED, value

from afa.expression import ExpressionError, Scope, Type, compile_expression
from afa.expression.tree import EventField, walk

UNKNOWN = None
INT_MAX, INT_MIN = 2**63 - 1, -(2**63)


def same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one == other


def test_a_text_means_what_its_scope_says() -> None:
    types = [compile_expression("e.x", Scope({("x",): kind})).root.type for kind in (Type.INT, Type.FLOAT, Type.INT)]
    assert types == [Type.INT, Type.FLOAT, Type.INT]
    registers = [compile_expression("r.n", Scope(registers={"n": kind})).root.type for kind in (Type.BOOL, Type.INT)]
    assert registers == [Type.BOOL, Type.INT]
    for scope, expected in [(Scope({("x",): Type.INT}), Type.BOOL), (Scope(sees_event=False), None), (Scope({}), None)]:
        with pytest.raises(ExpressionError):
            compile_expression("e.x + 1", scope, expected)
    assert compile_expression("e.x + 1", Scope())


# Three-valued logic: `e.t`, `e.f` and `e.u` are true, false and unknown.
LOGIC_DATA = {"t": True, "f": False}
LETTERS = {"t": True, "f": False, "u": UNKNOWN}


@pytest.mark.parametrize(("left", "right"), list(product("tfu", repeat=2)))
def test_and_or_follow_sql(left: str, right: str) -> None:
    pair = {LETTERS[left], LETTERS[right]}
    conjunction = False if False in pair else UNKNOWN if UNKNOWN in pair else True
    disjunction = True if True in pair else UNKNOWN if UNKNOWN in pair else False
    assert value(f"e.{left} and e.{right}", LOGIC_DATA) is conjunction
    assert value(f"e.{left} or e.{right}", LOGIC_DATA) is disjunction


@pytest.mark.parametrize(("letter", "negated"), [("t", False), ("f", True), ("u", UNKNOWN)])
def test_not_follows_sql(letter: str, negated: bool | None) -> None:
    assert value(f"not e.{letter}", LOGIC_DATA) is negated


def test_logic_looks_at_every_operand_whatever_the_order() -> None:
    assert value("e.u and e.f and e.t", LOGIC_DATA) is False
    assert value("1 / e.zero > 1 or e.t", LOGIC_DATA | {"zero": 0}) is True
    assert value("e.word and e.f", LOGIC_DATA | {"word": "no bool"}) is False, "a clash is unknown, and false decides"
    assert value("e.word or e.f", LOGIC_DATA | {"word": 1}) is UNKNOWN


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("9223372036854775807 + 1", UNKNOWN),
        ("-9223372036854775808 - 1", UNKNOWN),
        ("-9223372036854775808", INT_MIN),
        ("- 9223372036854775808", INT_MIN),
        ("-(-9223372036854775808)", UNKNOWN),
        ("-9223372036854775808 // -1", UNKNOWN),
        ("-9223372036854775808 % -1", 0),
        ("-9223372036854775808 / -1", 2.0**63),
        ("4611686018427387904 * 2", UNKNOWN),
        ("4611686018427387904 * 2.0", 2.0**63),
        ("9223372036854775807 * 0", 0),
        ("abs(-9223372036854775808)", UNKNOWN),
        ("abs(-9223372036854775807)", INT_MAX),
        ("7 // 2", 3),
        ("-7 // 2", -4),
        ("7 // -2", -4),
        ("-7 % 3", 2),
        ("7 % -3", -2),
        ("-7.5 // 2", -4.0),
        ("-7.5 % 2", 0.5),
        ("7.5 % -2", -0.5),
        ("7 // 2.0", 3.0),
        ("1e308 // 1e-308", UNKNOWN),
        ("1 / 0", UNKNOWN),
        ("1 // 0", UNKNOWN),
        ("1 % 0", UNKNOWN),
        ("1.0 / 0.0", UNKNOWN),
        ("1.5 // 0", UNKNOWN),
        ("1.5 % 0", UNKNOWN),
        ("0.0 / 0.0", UNKNOWN),
        ("6 / 3", 2.0),
        ("9007199254740993 / 1", 9007199254740992.0),  # int / int converts both first
        ("1e308 * 10", UNKNOWN),
        ("1e308 + 1e308", UNKNOWN),
        ("1e308 + 1e308 - 1e308", UNKNOWN),
        ("-1e308 - 1e308", UNKNOWN),
        ("1 + 2.0", 3.0),
        ("2 * 3 + 1", 7),
        ("+3", 3),
        ("0x10 + 0b1 + 0o7 + 1_000", 1024),
    ],
)
def test_arithmetic(text: str, expected: Any) -> None:
    assert same(value(text), expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # 2**53 + 1 has no float64 of its own: beside a float it is 2**53.
        ("9007199254740993 == 9007199254740992", False),
        ("9007199254740993 == 9007199254740992.0", True),
        ("9007199254740993 > 9007199254740992.0", False),
        ("9007199254740993 != 9007199254740992.0", False),
        ("9223372036854775807 == 9223372036854775808.0", True),
        ("1 == 1.0", True),
        ("0.0 == -0.0", True),
        ("'a' < 'b'", True),
        ("'Z' < 'a'", True),
        ("'\\uffff' < '\\U00010000'", True),  # by code point, not by UTF-16
        ("'' < 'a'", True),
        ("true == True", True),
        ("true != false", True),
        ("1 < 2 < 3", True),
        ("1 < 3 < 2", False),
        ("1 < 2 > 1 != 5", True),
        ("1 < e.missing < 0", UNKNOWN),
        ("2 < 1 < e.missing", False),  # the AND of its parts: one is false
        ("1 == 1 in [1, 2]", True),
        ("e.x == 's'", UNKNOWN),  # e.x is 1 here: a clash
        ("e.x != 's'", UNKNOWN),
        ("e.x == true", UNKNOWN),  # bool is no number
        ("e.flag == 1", UNKNOWN),
        ("e.flag + 1 == 2", UNKNOWN),
        ("e.flag < e.flag", UNKNOWN),
        ("e.flag == e.flag", True),
        ("e.nothing == e.nothing", UNKNOWN),
        ("e.x.deep == 1", UNKNOWN),
        ("e.ts == 7 and e.type == 'buy' and e.id == 'e1'", True),
    ],
)
def test_comparison(text: str, expected: Any) -> None:
    assert value(text, {"x": 1, "flag": True, "nothing": None}) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("e.x in [1, 2]", True),
        ("e.x in [2, 3]", False),
        ("e.x in [1.0]", True),
        ("e.x in ['a', 1]", True),  # one equality is true
        ("e.x in ['a', 2]", UNKNOWN),  # unknown or false
        ("e.x not in ['a', 2]", UNKNOWN),
        ("e.x not in ['a', 1]", False),
        ("e.x not in [2]", True),
        ("e.x in [true]", UNKNOWN),
        ("e.missing in [1]", UNKNOWN),
        ("e.missing in []", False),  # the OR of nothing
        ("e.missing not in []", True),
        ("'b' in ['a', 'b']", True),
        ("e.x in [-1, +1]", True),
    ],
)
def test_membership(text: str, expected: Any) -> None:
    assert value(text, {"x": 1}) is expected


@pytest.mark.parametrize(
    "operand",
    [
        "e.missing",
        "e.nothing",
        "e.a.b.c",
        "e.huge",
        "e.infinite",
        "e.word + 1",
        "1 / 0",
        "9223372036854775807 + 1",
        "1e308 * 10",
        "sqrt(-1)",
        "(e.x == 's')",
        "(not e.missing)",
        "(1 if e.missing else 2)",
        "corr([1], [1])",
        "floor(1e300)",
        "e.mixed",
        "e.object",
    ],
)
def test_null_test_is_true_for_every_kind_of_unknown(operand: str) -> None:
    data = {
        "nothing": None,
        "a": {"b": 1},
        "huge": 2**63,
        "infinite": math.inf,  # what JSON's 1e999 is read as
        "word": "w",
        "x": 1,
        "mixed": [1, "a"],
        "object": {"k": 1},
    }
    assert value(f"{operand} == null", data) is True
    assert value(f"{operand} != null", data) is False
    assert value(f"None == {operand}", data) is True


def test_null_test_of_what_is_known() -> None:
    assert value("e.x == null", {"x": 0}) is False
    assert value("e.x != None", {"x": ""}) is True
    assert value("(e.x == null) == null", {}) is False, "a null test itself is never unknown"
    assert value("e.list == null", {"list": []}) is False


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("round(0.5)", 0),
        ("round(1.5)", 2),
        ("round(2.5)", 2),
        ("round(-2.5)", -2),
        ("round(2.6)", 3),
        ("round(5)", 5),
        ("floor(-1.5)", -2),
        ("ceil(-1.5)", -1),
        ("floor(7)", 7),
        ("floor(9.3e18)", UNKNOWN),
        ("ceil(-9.3e18)", UNKNOWN),
        ("round(1e300)", UNKNOWN),
        ("floor(-9223372036854775808.0)", INT_MIN),
        ("ceil(9223372036854775808.0)", UNKNOWN),
        ("sqrt(4)", 2.0),
        ("sqrt(-0.5)", UNKNOWN),
        ("abs(-2.5)", 2.5),
        ("len('')", 0),
        ("len('e\\u0301\\U0001F600')", 3),  # code points
        ("len([1, 2, 3])", 3),
        ("len([])", 0),
        ("lower('ÀB')", "àb"),
        ("upper('straße')", "STRASSE"),
        ("startswith('abc', 'ab')", True),
        ("endswith('abc', 'ab')", False),
        ("contains('abc', '')", True),
        ("contains('abc', 'd')", False),
        ("min(2, 1.0)", 1.0),
        ("min(1, 2.0)", 1.0),
        ("max(1, 2, 3)", 3),
        ("max('a', 'b')", "b"),
        ("min(1, e.missing)", UNKNOWN),
        ("max(e.word, 1)", UNKNOWN),
        ("1 if true else 2.0", 1.0),
        ("1 if r.b else 2", 1),
        ("1 if e.missing else 2", UNKNOWN),
        ("1 if true else e.missing", 1),
        ("len(e.x)", UNKNOWN),
        ("lower(e.x)", UNKNOWN),
        ("contains(e.word, e.x)", UNKNOWN),
        ("sqrt(e.word)", UNKNOWN),
    ],
)
def test_functions(text: str, expected: Any) -> None:
    assert same(value(text, {"x": 1, "word": "w"}), expected)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ([1, 2, 3], [2, 4, 6], 1.0),
        ([1, 2, 3], [3, 2, 1], -1.0),
        # deviations (-1, 0, 1) and (-1, 1, 0): sum of products 1, over sqrt(2 * 2)
        ([1, 2, 3], [1, 3, 2], 0.5),
        ([1, 1, 1], [1, 2, 3], UNKNOWN),  # no variance
        ([1, 2], [1, 2, 3], UNKNOWN),
        ([1], [1], UNKNOWN),
        ([], [], UNKNOWN),
        ([1, 2], "text", UNKNOWN),
        ([1, None], [1, 2], UNKNOWN),
        ([1, True], [1, 2], UNKNOWN),
        ([1e308, -1e308], [1, 2], UNKNOWN),  # the squares overflow
    ],
)
def test_correlation(left: Any, right: Any, expected: Any) -> None:
    assert value("corr(e.a, e.b)", {"a": left, "b": right}) == expected


@pytest.mark.parametrize(
    ("field", "data", "expected"),
    [
        ("price", 3, 3.0),  # an int is read as float where float is declared
        ("price", "3", UNKNOWN),
        ("count", 3.0, UNKNOWN),  # a JSON number with a point is a float
        ("count", True, UNKNOWN),
        ("count", INT_MAX + 1, UNKNOWN),
        ("path", [1, 2], (1.0, 2.0)),
        ("path", 1, UNKNOWN),
    ],
)
def test_declared_fields_are_read_as_declared(field: str, data: Any, expected: Any) -> None:
    assert same(value(f"e.{field}", {field: data}, DECLARED), expected)


def test_own_attributes_hide_data_fields() -> None:
    assert value("e.ts == 7 and e.type == 'buy'", {"ts": 1, "type": "sell"}) is True


def test_fields_named_like_words_of_python() -> None:
    """`from` and `class` are common in data; inside a text the same letters mean nothing."""
    scope = Scope({("from",): Type.INT, ("in", "class"): Type.STRING})
    root = compile_expression("e.from == 1 and e.in.class != '.from' and not e.from in [2]", scope, Type.BOOL).root
    read = [node.path for node in walk(root) if isinstance(node, EventField)]
    assert read == [("from",), ("in", "class"), ("from",)]
    with pytest.raises(ExpressionError) as caught:
        compile_expression("e.from == 1 and e.form == 2", scope)
    assert (caught.value.offset, caught.value.fix) == (16, "did you mean `e.from`?")
    with pytest.raises(ExpressionError, match="values have no methods"):
        compile_expression("e.class.startswith('x')", Scope())
