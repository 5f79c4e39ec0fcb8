"""What is no expression: refused when it is published, at once, with the place and a hint; and the limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.expressions import DECLARED, compiled, refusal, value

from afa.expression import ExpressionError, Type
from afa.expression.limits import MAX_EXPRESSION_CHARACTERS, MAX_EXPRESSION_DEPTH, MAX_EXPRESSION_NODES


@pytest.mark.parametrize(
    ("text", "offset", "hint"),
    [
        ("e.prise > 9", 0, "did you mean `e.price`?"),
        ("e.count > 1 and e.prize > 9", 16, "did you mean `e.price`?"),
        ("price > 9", 0, "did you mean `e.price`?"),
        ("n > 9", 0, "did you mean `r.n`?"),
        ("e.at.flor > 1", 0, "did you mean `e.at.floor`?"),
        ("e.at > 1", 0, ""),
        ("e.typ == 'a'", 0, "did you mean `e.type`?"),
        ("flor(e.price) > 1", 0, "did you mean `floor`?"),
        ("e.ts.x > 1", 0, ""),
        ("r.nope.x > 1", 0, ""),
    ],
)
def test_unknown_names_have_a_hint(text: str, offset: int, hint: str) -> None:
    error = refusal(text, Type.BOOL, DECLARED)
    assert error.offset == offset
    assert hint in error.fix


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("e.price + 'a' > 1", 10),
        ("e.name + 1 > 1", 0),
        ("e.name == 1", 10),
        ("e.ok < true", 7),
        ("e.ok and e.price", 9),
        ("not e.count", 4),
        ("-e.name == 1", 1),
        ("-true == 1", 1),
        ("e.path == [1]", 10),
        ("e.price in [1, 'a']", 15),
        ("e.price in (1, 2)", 11),
        ("e.price in [e.count]", 12),
        ("e.price in [null]", 12),
        ("e.price in e.path", 11),
        ("corr(e.path, e.price) > 0", 13),
        ("corr(e.path, [1, 'a']) > 0", 17),
        ("len(e.price) > 0", 4),
        ("lower(e.count) == 'a'", 6),
        ("max(e.name, 1) == 1", 0),
        ("round(e.price, 2) > 1", 0),
        ("min(e.price) > 1", 0),
        ("(1 if e.count else 2) > 1", 6),
        ("(1 if e.ok else 'a') == 1", 16),
        ("e.price", 0),
        ("null", 0),
        ("e.price < null", 10),
        ("e.price is null", 11),
        ("e.price is 1", 11),
        ("null == null", 8),
        ("null + 1 == 2", 0),
        ("e.price == null + 1", 11),
        ("9223372036854775808 > 1", 0),
        ("-9223372036854775809 > 1", 1),
        ("1e400 > 1", 0),
        ("'é' == e.name and zz", 18),  # columns are characters, not bytes
        ("e.price > 1\n  and zz", 18),
        ("e.price > 1\r\n  and zz", 19),
        ("e.price > 1\r  and\rzz", 18),
    ],
)
def test_what_the_checker_refuses(text: str, offset: int) -> None:
    error = refusal(text, Type.BOOL, DECLARED)
    assert error.offset == offset
    assert error.fix


@pytest.mark.parametrize(
    ("text", "offset"),
    [("e.x + 1", 0), ("e.ok and -e.x", 9), ("e.x * 2 == 'a'", 11), ("true != e.x // 2", 8), ("e.x % 2 in ['a']", 12)],
)
def test_what_is_computed_is_a_number_whatever_the_fields_are(text: str, offset: int) -> None:
    error = refusal(text, Type.BOOL)
    assert error.offset == offset
    assert "a number" in error.what
    assert value("e.x + 1 == 2 and e.x * 1.5 > 1 and e.x // 2 in [0, 0.5]", {"x": 1}) is True


@pytest.mark.parametrize(
    ("text", "expected"), [("r.n / 2", Type.INT), ("e.price", Type.INT), ("1.0", Type.INT), ("min(r.n, 0.5)", Type.INT)]
)
def test_a_float_for_an_int_register_says_what_to_write(text: str, expected: Type) -> None:
    assert "write 0.0" in refusal(text, expected, DECLARED).fix


@pytest.mark.parametrize(
    ("text", "expected"),
    [("r.n // 2", Type.FLOAT), ("floor(r.f)", Type.INT), ("e.unknown", Type.INT), ("r.s", Type.STRING)],
)
def test_what_goes_into_a_register(text: str, expected: Type) -> None:
    assert compiled(text, expected)


def test_an_epsilon_arc_sees_only_registers() -> None:
    assert refusal("r.n > 1 and e.x > 1", sees_event=False).offset == 12


def test_without_events_contradictory_uses_are_accepted() -> None:
    assert compiled("e.x > 1 and e.x == 'a' and e.x.y == true", Type.BOOL)


HOSTILE = {
    "import": "__import__('os').system('true')",
    "import alone": "__import__('os')",
    "class": "''.__class__ == 1",
    "class of a number": "(1).__class__ == 1",
    "call of a field": "e.x() == 1",
    "method": "e.name.upper() == 'A'",
    "name mangling": "e.__init__.__globals__['x'] == 1",
    "lambda": "(lambda: 1)() == 1",
    "bare lambda": "lambda: true",
    "f-string": "f'{e.x}' == 'a'",
    "walrus": "(x := 1) == 1",
    "bare walrus": "x := 1",
    "comprehension": "[x for x in [1]] == 1",
    "generator": "x for x in [1]",
    "star": "max(*[1, 2]) == 2",
    "keyword": "max(1, 2, key=len) == 2",
    "tuple": "1, 2",
    "empty tuple": "()",
    "dict": "{'a': 1} == 1",
    "set": "{1} == 1",
    "slice": "e.x[0:1] == 1",
    "index": "e.x[0] == 1",
    "power": "2 ** 9999999 > 1",
    "matrix product": "e.x @ e.y == 1",
    "shift": "1 << 99999999 > 1",
    "bits": "e.x & 1 == 1",
    "invert": "~e.x == 1",
    "bytes": "b'a' == 'a'",
    "complex": "1j == 1",
    "ellipsis": "... == 1",
    "yield": "(yield) == 1",
    "await": "await e.x",
    "statement": "import os",
    "assignment": "e.x = 1",
    "two expressions": "true; true",
    "two lines": "true\ntrue",
    "out of the parentheses": "1) + (2",
    "out and in": "true) and (true",
    "out, compared": "1) == (1",
    "closing": "1)",
    "closing, then comment": "true) # (",
    "opening": "(true",
    "open string": "'abc",
    "open triple string": "'''abc",
    "nothing": "",
    "white space": " \n\t ",
    "only a comment": "# true",
    "NUL": "true\0",
    "NUL in a string": "'a\0b' == 'a'",
    "lone surrogate": "e.x == '\ud800'",
    "escaped surrogate": "e.x == '\\udfff'",
    "huge int": "9" * MAX_EXPRESSION_CHARACTERS,
    "huge hex": "0x" + "f" * 4000 + " > 1",
    "bad escape": "'\\x4' == 'a'",
    "unknown name escape": "'\\N{no such name}' == 'a'",
    "too long": "true or " * 1000 + "true",
    "deep parentheses": "(" * 2000 + "true" + ")" * 2000,
    "deep brackets": "[" * 4000,
    "deep signs": "-" * 4000 + "1",
    "deep not": "not " * 1000 + "true",
    "deep calls": "abs(" * 500 + "1" + ")" * 500 + " > 1",
    "deep fields": "e" + ".x" * 2000 + " > 1",
    "long sum": "+".join(["1"] * 2000),
    "many items": "1 in [" + "1," * 1500 + "]",
    "long chain": "<".join(["1"] * 1500),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_texts_are_refused(text: str) -> None:
    error = refusal(text)
    assert error.what
    assert error.fix
    assert 0 <= error.offset <= len(text)


CHARACTERS = "er.xn()[]'\"\\ \n\r\t#,:=<>!+-*/%01.5andortifels{}@&|~^\0\ud800é\U0001d7d9"


@given(st.text(alphabet=CHARACTERS, max_size=40))
def test_any_text_is_an_expression_or_an_expression_error(text: str) -> None:
    error = None
    try:
        compiled(text)
    except ExpressionError as caught:
        error = caught
    assert error is None or 0 <= error.offset <= len(text)


def test_positions_of_refused_characters_and_syntax() -> None:
    assert refusal("true and \0").offset == 9
    assert refusal("e.x == '\ud800'").offset == 8
    assert refusal("e.x >").offset == 5
    assert refusal("e.x > 1 and\n  e.y > > 2").offset == 20


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("e.x > 1 AND e.y > 1", "`and`"),
        ("NOT e.x", "`not`"),
        ("e.x && e.y", "`and`"),
        ("!e.x", "`not`"),
        ("e.x = 1", "`==`"),
    ],
)
def test_habits_from_other_languages_have_a_hint(text: str, hint: str) -> None:
    assert hint in refusal(text).fix


def test_the_hint_on_case_is_not_given_to_lower_case() -> None:
    assert "lower case" not in refusal("e.x > 1 and not e.y >").fix


@pytest.mark.parametrize(
    "text", ["e.x > 1 # and a comment", "e.x\n  > 1", "\n\ne.x > 1\n", "e.x > 1\r\n", "( e.x >\n1 )"]
)
def test_comments_and_lines_do_not_count(text: str) -> None:
    assert compiled(text) == compiled("e.x>1")
    assert hash(compiled(text)) == hash(compiled("e.x>1"))
    assert value(text, {"x": 2}) is True


def test_equal_texts_of_different_types_are_different_expressions() -> None:
    assert compiled("1") != compiled("1.0")
    assert compiled("1") != compiled("true")
    assert compiled("e.price", fields=DECLARED) != compiled("e.price")


def test_the_limits_are_where_they_say() -> None:
    assert compiled("1" + " " * (MAX_EXPRESSION_CHARACTERS - 1))
    assert "max_expression_characters" in refusal("1" + " " * MAX_EXPRESSION_CHARACTERS).what
    for leaf, levels in (("1 == 1", 2), ("true", 1), ("e.x", 2)):
        fitting = "not " * (MAX_EXPRESSION_DEPTH - levels) + leaf
        assert compiled(fitting, Type.BOOL)
        assert "max_expression_depth" in refusal(f"not {fitting}").what
    assert compiled(f"1 in [{'1,' * (MAX_EXPRESSION_NODES - 3)}]", Type.BOOL)  # the comparison, the 1 and the list
    assert "max_expression_nodes" in refusal(f"1 in [{'1,' * (MAX_EXPRESSION_NODES - 2)}]").what
