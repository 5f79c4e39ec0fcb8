"""The reference engine's evaluator: walks the checked tree, one value at a time. None is *unknown*.

Slow and plain on purpose; the native engine evaluates the compact form and shares only the type checker with this.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

from afa.expression import tree
from afa.expression.tree import INT_MAX, INT_MIN, Node, Type, Value
from afa.records import Event

_COMPARE: Final = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ARITHMETIC: Final = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
}


def holds(node: Node, event: Event | None, registers: Mapping[str, Value]) -> bool | None:
    """Whether a condition is true; None where it is unknown."""
    value = evaluate(node, event, registers)
    return value if isinstance(value, bool) else None


def evaluate(
    node: Node,
    event: Event | None,
    registers: Mapping[str, Value],
    bound: Callable[[tree.Bound], Value] | None = None,
) -> Value:
    """The value of an expression; `bound` gives those of a query's references, which arcs do not hold."""

    def value_of(below: Node) -> Value:
        return evaluate(below, event, registers, bound)

    match node:
        case tree.Literal(value=value):
            return value
        case tree.EventField(type=declared, path=path):
            return read_field(event.data if event else None, path, declared)
        case tree.EventAttribute(name=name):
            own: Value = getattr(event, name)
            return own
        case tree.RegisterField(name=name):
            return registers[name]
        case tree.Bound():
            assert bound is not None, "an arc reads no bound events"
            return bound(node)
        case tree.Negation(operand=operand):
            return _negative(value_of(operand))
        case tree.Arithmetic(operator=symbol, left=left, right=right):
            return arithmetic(symbol, value_of(left), value_of(right))
        case tree.Comparison(operator=symbol, left=left, right=right):
            return _compare(symbol, value_of(left), value_of(right))
        case tree.UnknownTest(operand=operand):
            return value_of(operand) is None
        case tree.Membership(operand=operand, items=items):
            tested = value_of(operand)
            return _any([_compare("==", tested, item.value) for item in items])
        case tree.And(operands=operands):
            return _negated(_any([_negated(value_of(below)) for below in operands]))
        case tree.Or(operands=operands):
            return _any([value_of(below) for below in operands])
        case tree.Not(operand=operand):
            return _negated(value_of(operand))
        case tree.Choice(type=kind, condition=condition, then=then, otherwise=otherwise):
            chosen = value_of(condition)
            if not isinstance(chosen, bool):
                return None
            return _as_float(value_of(then if chosen else otherwise), kind)
        case tree.Call(function=function, arguments=arguments):
            values = [value_of(argument) for argument in arguments]
            return None if None in values else _call(function, values)


def read_field(data: Any, path: tuple[str, ...], declared: Type = Type.ANY) -> Value:
    """A field of an event's data as a value: unknown if missing, null, out of range or not of the declared type."""
    for step in path:
        if not isinstance(data, dict):
            return None
        data = data.get(step)
    value = _as_float(_as_value(data), declared)
    return value if declared in (Type.ANY, type_of(value)) else None


def type_of(value: Value) -> Type | None:
    kinds = {bool: Type.BOOL, int: Type.INT, float: Type.FLOAT, str: Type.STRING, tuple: Type.LIST}
    return kinds.get(type(value))


def _as_value(data: Any) -> Value:
    if isinstance(data, list):
        items = [_as_value(item) for item in data]
        if any(type(item) not in (int, float) for item in items):
            return None
        return tuple(float(item) for item in items)  # type: ignore[arg-type]
    if isinstance(data, bool | str):
        return data
    return _number(data)


def _number(value: Any) -> Value:
    """A result as a value: unknown if it is no number, overflows 64 bits or is not finite."""
    if type(value) is int:
        return value if INT_MIN <= value <= INT_MAX else None
    return value if type(value) is float and math.isfinite(value) else None


def _as_float(value: Value, wanted: Type) -> Value:
    return float(value) if wanted is Type.FLOAT and _is_int(value) else value  # type: ignore[arg-type]


def _is_int(value: Value) -> bool:
    return type(value) is int


def _numbers(left: Value, right: Value) -> tuple[Any, Any] | None:
    """Two numbers ready to be computed with: both ints, or both floats; None for anything else."""
    kinds = {type(left), type(right)}
    if not kinds <= {int, float}:
        return None
    return (left, right) if len(kinds) == 1 else (float(left), float(right))  # type: ignore[arg-type]


def arithmetic(symbol: str, left: Value, right: Value) -> Value:
    """Two numbers computed with; unknown if they are none, or the result is not."""
    pair = _numbers(left, right)
    if pair is None:
        return None
    if symbol == "/":
        pair = (float(pair[0]), float(pair[1]))
    try:
        return _number(_ARITHMETIC[symbol](*pair))
    except (ZeroDivisionError, OverflowError):
        return None


def _negative(value: Value) -> Value:
    return _number(-value) if type(value) in (int, float) else None  # type: ignore[operator]


def _compare(symbol: str, left: Value, right: Value) -> bool | None:
    pair: tuple[Any, Any] | None = _numbers(left, right)
    if pair is None:
        comparable = type(left) is type(right) and (
            isinstance(left, str) or (isinstance(left, bool) and symbol in ("==", "!="))
        )
        pair = (left, right) if comparable else None
    return None if pair is None else bool(_COMPARE[symbol](*pair))


def _negated(value: Value) -> bool | None:
    return not value if isinstance(value, bool) else None


def _any(values: list[Value] | list[bool | None]) -> bool | None:
    """SQL's OR: true if one is true, else unknown if one is unknown (or no bool), else false."""
    if any(value is True for value in values):
        return True
    return False if all(value is False for value in values) else None


def _call(function: str, values: list[Value]) -> Value:
    first = values[0]
    if function in ("min", "max"):
        return extreme(min if function == "min" else max, values)
    if function in ("startswith", "endswith", "contains"):
        return _text_test(function, values)
    if function in ("lower", "upper"):
        return getattr(first, function)() if isinstance(first, str) else None
    if function == "len":
        return len(first) if isinstance(first, str | tuple) else None
    if function == "corr":
        return _correlation(*values)
    if type(first) not in (int, float):
        return None
    if function == "sqrt":
        return _number(math.sqrt(first)) if first >= 0 else None  # type: ignore[arg-type,operator]
    return _number({"abs": abs, "floor": math.floor, "ceil": math.ceil, "round": round}[function](first))  # type: ignore[operator]


def extreme(pick: Any, values: list[Value]) -> Value:
    """The least or greatest of numbers or texts; a float if one of the numbers is."""
    kinds = {type(value) for value in values}
    if kinds == {int, float}:
        values = [float(value) for value in values]  # type: ignore[arg-type]
    elif kinds not in ({int}, {float}, {str}):
        return None
    picked: Value = pick(values)
    return picked


def _text_test(function: str, values: list[Value]) -> bool | None:
    whole, part = values
    if not isinstance(whole, str) or not isinstance(part, str):
        return None
    return part in whole if function == "contains" else bool(getattr(whole, function)(part))


def _correlation(left: Value, right: Value) -> Value:
    """Pearson's, in two passes, sums from left to right: every engine adds in this order."""
    if not isinstance(left, tuple) or not isinstance(right, tuple) or len(left) != len(right) or len(left) < 2:
        return None
    count = float(len(left))
    left_mean, right_mean = _sum(left) / count, _sum(right) / count
    left_parts = tuple(value - left_mean for value in left)
    right_parts = tuple(value - right_mean for value in right)
    shared = _sum(tuple(a * b for a, b in zip(left_parts, right_parts, strict=True)))
    spread = _sum(tuple(a * a for a in left_parts)) * _sum(tuple(b * b for b in right_parts))
    return _number(shared / math.sqrt(spread)) if spread > 0 and math.isfinite(spread) else None


def _sum(values: tuple[float, ...]) -> float:
    total = 0.0
    for value in values:
        total += value
    return total
