"""Values of a query: what Python's operators make of fields, aggregates and constants.

Nothing is computed and little is checked here. Nodes have no types yet: the reader of the query's text gives them.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from numbers import Integral
from typing import TYPE_CHECKING, Any, Final, NoReturn

from afa.errors import PatternError, did_you_mean, listed
from afa.expression import tree
from afa.expression.functions import FUNCTIONS
from afa.expression.limits import MAX_EXPRESSION_DEPTH
from afa.expression.tree import INT_MAX, INT_MIN, Literal, Node, Type
from afa.query.limits import MAX_CONDITION_TOKENS
from afa.query.printer import print_expression
from afa.query.tree import EventValue

_NAME: Final = re.compile(r"[^\W\d]\w*")
# The reader has the exact limits. These keep what it would refuse anyway from being printed: `x = x + x`, forty times,
# is an expression that nobody could print. Every part is at least a word of the text, and at most two parts a level.
_MOST_PARTS: Final = MAX_CONDITION_TOKENS
_MOST_LEVELS: Final = 2 * MAX_EXPRESSION_DEPTH


class Operand(ABC):
    """What Python's operators take. All give values, `==` too, so none of these has a truth or a hash."""

    __slots__ = ()

    @abstractmethod
    def _value(self) -> Value:
        """Itself, if it is a value. Raises PatternError, with what to write instead."""

    def __bool__(self) -> NoReturn:
        fix = "write & | ~ in place of and, or, not, and (x > 1) & (x < 5) in place of 1 < x < 5"
        raise PatternError(f"`{self}` is true or false only when events are there", fix=fix)

    def __eq__(self, other: object) -> Value:  # type: ignore[override]
        return _comparison("==", self, other)

    def __ne__(self, other: object) -> Value:  # type: ignore[override]
        return _comparison("!=", self, other)

    __hash__ = None  # type: ignore[assignment]

    def __lt__(self, other: object) -> Value:
        return _comparison("<", self, other)

    def __le__(self, other: object) -> Value:
        return _comparison("<=", self, other)

    def __gt__(self, other: object) -> Value:
        return _comparison(">", self, other)

    def __ge__(self, other: object) -> Value:
        return _comparison(">=", self, other)

    def __add__(self, other: object) -> Value:
        return _arithmetic("+", self, other)

    def __radd__(self, other: object) -> Value:
        return _arithmetic("+", other, self)

    def __sub__(self, other: object) -> Value:
        return _arithmetic("-", self, other)

    def __rsub__(self, other: object) -> Value:
        return _arithmetic("-", other, self)

    def __mul__(self, other: object) -> Value:
        return _arithmetic("*", self, other)

    def __rmul__(self, other: object) -> Value:
        return _arithmetic("*", other, self)

    def __truediv__(self, other: object) -> Value:
        return _arithmetic("/", self, other)

    def __rtruediv__(self, other: object) -> Value:
        return _arithmetic("/", other, self)

    def __floordiv__(self, other: object) -> Value:
        return _arithmetic("//", self, other)

    def __rfloordiv__(self, other: object) -> Value:
        return _arithmetic("//", other, self)

    def __mod__(self, other: object) -> Value:
        return _arithmetic("%", self, other)

    def __rmod__(self, other: object) -> Value:
        return _arithmetic("%", other, self)

    def __neg__(self) -> Value:
        operand = self._value()
        return _combined(tree.Negation(Type.ANY, operand.node), operand)

    def __pos__(self) -> Value:
        return self._value()

    def __abs__(self) -> Value:
        return fn.abs(self)

    def __round__(self) -> Value:
        return fn.round(self)

    def __floor__(self) -> Value:
        return fn.floor(self)

    def __ceil__(self) -> Value:
        return fn.ceil(self)

    def __pow__(self, other: object) -> NoReturn:
        raise PatternError(f"`{self}` has no power: there is no `**`", fix="use + - * / // %, or fn.sqrt(x)")

    def __xor__(self, other: object) -> NoReturn:
        raise PatternError(f"`{self}` is joined by `^`, which there is not", fix="write `!=` between two bools")

    __rpow__, __rxor__ = __pow__, __xor__

    def __len__(self) -> NoReturn:  # Python wants a number
        raise PatternError(f"the length of `{self}` is known only when events are there", fix="write fn.len(x)")

    def __iter__(self) -> NoReturn:  # without it Python would try the brackets, with 0, 1, 2
        raise PatternError(f"`{self}` has no items", fix="write fn.contains(text, part), or x.is_in([1, 2])")

    def __and__(self, other: object) -> Value:
        return _joined("&", tree.And, self, other)

    def __rand__(self, other: object) -> Value:
        return _joined("&", tree.And, other, self)

    def __or__(self, other: object) -> Value:
        return _joined("|", tree.Or, self, other)

    def __ror__(self, other: object) -> Value:
        return _joined("|", tree.Or, other, self)

    def is_in(self, items: Iterable[object]) -> Value:
        """`x IN [...]`: equal to one of these constants."""
        operand = self._value()
        if isinstance(items, str | Operand) or not isinstance(items, Iterable):
            fix = "give it a list; for a part of a text write fn.contains(text, part)"
            raise PatternError(f"`{operand}`.is_in() takes constants, this is {said(items)}", fix=fix)
        constants = [constant(item) for item in items]
        node = tree.Membership(Type.BOOL, operand.node, tuple(found.node for found in constants))  # type: ignore[misc]
        return _combined(node, operand, *constants)

    def is_unknown(self) -> Value:
        """`x = null`: missing, null or without a result."""
        operand = self._value()
        return _combined(tree.UnknownTest(Type.BOOL, operand.node), operand)

    def is_known(self) -> Value:
        """`x != null`."""
        return inverted(self.is_unknown())

    if not TYPE_CHECKING:  # for a type checker an attribute that is not there is just that

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_"):  # what Python itself and its tools ask every object for
                raise AttributeError(name)
            known = [word for word in dir(type(self)) if not word.startswith("_")]
            hint = did_you_mean(name, known, f'a field is written in brackets: `{self}["{name}"]`')
            raise PatternError(f"`{self}` has no `.{name}`", fix=hint)


class Value(Operand):
    """An expression. `str(value)` is its text."""

    __slots__ = ("levels", "node", "parts")

    def __init__(self, node: Node, levels: int = 1, parts: int = 1) -> None:
        self.node = node
        self.levels = levels
        self.parts = parts

    def _value(self) -> Value:
        return self

    def __invert__(self) -> Value:
        return inverted(self)

    def __getitem__(self, path: str) -> Value:
        """A field below this one: `a["user"]["name"]`, the same as `a["user.name"]`."""
        if not isinstance(self.node, EventValue):
            raise PatternError(f"`{self}` has no fields", fix="fields are those of events: `a['user.name']`")
        return reading(self.node, (*self.node.path, *field_path(path, str(self))))

    def __str__(self) -> str:
        return print_expression(self.node)

    __repr__ = __str__


def reading(of: EventValue, path: tuple[str, ...]) -> Value:
    """The value of a field."""
    return Value(EventValue(Type.ANY, of.variable, of.at, path))


def field_path(path: object, owner: str) -> tuple[str, ...]:
    """The names of a path such as `user.name`. Raises PatternError."""
    names = tuple(plain(path).split(".")) if isinstance(path, str) else ()
    if not names or not all(map(_NAME.fullmatch, names)):
        what = f"a field of `{owner}` is named by words with points between them, not by {said(path)}"
        raise PatternError(what, fix='write `["price"]` or `["user.name"]`')
    return names


def is_name(text: object) -> bool:
    return isinstance(text, str) and _NAME.fullmatch(text) is not None


def plain(text: str) -> str:
    """Of a text that is a member of an enumeration, or another kind of `str`: the text itself."""
    return str.__str__(text)


def value_of(given: object) -> Value:
    """A value, or a constant as one. Raises PatternError."""
    return given._value() if isinstance(given, Operand) else constant(given)


def constant(given: object) -> Value:
    """Raises PatternError for what is no constant of the language."""
    if isinstance(given, bool):
        return Value(Literal(Type.BOOL, given))
    if isinstance(given, Integral):  # those of numpy too
        if not INT_MIN <= int(given) <= INT_MAX:
            raise PatternError("an integer outside 64 bits", fix="write it as a float")
        return Value(Literal(Type.INT, int(given)))
    if isinstance(given, float):
        if not math.isfinite(given):
            raise PatternError(f"`{float(given)}` is not a number of the query language", fix="write a finite one")
        return Value(Literal(Type.FLOAT, float(given)))
    if isinstance(given, str):
        return Value(Literal(Type.STRING, plain(given)))
    if isinstance(given, list | tuple):
        return _list(given)
    if given is None:
        raise PatternError("None can only be compared by == and !=", fix="write x.is_unknown() or x.is_known()")
    if isinstance(given, Operand):
        raise PatternError(f"`{given}` stands in a list, which holds constants only", fix="write | between comparisons")
    what = f"{said(given)} is not a value of the query language"
    raise PatternError(what, fix="write a number, a text, True, False or a list of numbers")


def _list(given: list[Any] | tuple[Any, ...]) -> Value:
    items = [constant(item) for item in given]
    if not all(isinstance(item.node, Literal) and item.node.type in tree.NUMBERS for item in items):
        raise PatternError("a list that is a value holds numbers", fix="for other lists write x.is_in([...])")
    return _combined(Literal(Type.LIST, tuple(float(item) for item in given)), *items)


def said(given: object) -> str:
    """An object in a message, in a few words."""
    if isinstance(given, Operand):
        return f"`{given}`"
    if isinstance(given, str):
        return repr(given) if len(given) <= 40 else f"{given[:39]!r}…"
    return "None" if given is None else f"a Python {type(given).__name__}"


def _combined(node: Node, *operands: Value) -> Value:
    levels = 1 + max((operand.levels for operand in operands), default=0)
    parts = 1 + sum(operand.parts for operand in operands)
    return _bounded(node, levels, parts)


def _bounded(node: Node, levels: int, parts: int) -> Value:
    if levels > _MOST_LEVELS or parts > _MOST_PARTS:
        limit = "max_expression_depth" if levels > _MOST_LEVELS else "max_condition_tokens"
        fix = "divide it into several conditions"
        raise PatternError(f"an expression of {parts:,} parts on {levels} levels passes {limit}", fix=fix)
    return Value(node, levels, parts)


def _comparison(operator: str, left: Operand, right: object) -> Value:
    """Python itself turns `5 < x` round, so the left side always is one of ours."""
    if right is None and operator in ("==", "!="):
        return left.is_unknown() if operator == "==" else left.is_known()
    sides = value_of(left), value_of(right)
    return _combined(tree.Comparison(Type.BOOL, operator, sides[0].node, sides[1].node), *sides)


def _arithmetic(operator: str, left: object, right: object) -> Value:
    sides = value_of(left), value_of(right)
    return _combined(tree.Arithmetic(Type.ANY, operator, sides[0].node, sides[1].node), *sides)


def _joined(operator: str, kind: type[tree.And | tree.Or], left: object, right: object) -> Value:
    """`x & y & z` is one AND of three, as in the text."""
    operands: list[Node] = []
    levels = parts = 1
    for side in map(value_of, (left, right)):
        node = side.node
        if isinstance(node, tree.Arithmetic | tree.Negation) or (
            isinstance(node, Literal) and node.type is not Type.BOOL
        ):
            # `x > 1 & y < 2` is `x > (1 & y) < 2` for Python.
            fix = "put every comparison in parentheses: (x > 1) & (y < 2)"
            raise PatternError(f"`{operator}` joins conditions, and `{side}` is none", fix=fix)
        same = isinstance(node, kind)
        operands += node.operands if isinstance(node, tree.And | tree.Or) and same else [node]
        levels = max(levels, side.levels + (not same))
        parts += side.parts
    return _bounded(kind(Type.BOOL, tuple(operands)), levels, parts)


def inverted(operand: Value) -> Value:
    return _combined(tree.Not(Type.BOOL, operand.node), operand)


def choose(condition: object, then: object, otherwise: object) -> Value:
    """`then if condition else otherwise`."""
    parts = value_of(condition), value_of(then), value_of(otherwise)
    return _combined(tree.Choice(Type.ANY, *(part.node for part in parts)), *parts)


class Functions:
    """The functions of the expression language by name: `fn.lower(a["side"])`, `fn.max(a["x"], b["x"])`."""

    def __getattr__(self, name: str) -> Callable[..., Value]:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in FUNCTIONS:
            hint = did_you_mean(name, FUNCTIONS, f"there are: {', '.join(sorted(FUNCTIONS))}")
            raise PatternError(f"`{name}` is not a function of the query language", fix=hint)

        def call(*arguments: object) -> Value:
            values = [value_of(argument) for argument in arguments]
            signature = FUNCTIONS[name]
            if not signature.least <= len(values) <= signature.most:
                what = f"{name}({listed(map(str, values))}) has {len(values)} arguments"
                raise PatternError(what, fix=f"give it {signature.count_text}")
            return _combined(tree.Call(Type.ANY, name, tuple(value.node for value in values)), *values)

        return call

    def __dir__(self) -> list[str]:
        return sorted(FUNCTIONS)


fn: Final = Functions()
