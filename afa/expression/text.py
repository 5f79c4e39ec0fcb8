"""The text of a checked tree: reading it again gives the same tree."""

from __future__ import annotations

import json
from typing import Final

from afa.expression import tree
from afa.expression.tree import Node, Value

# How tightly an operator binds; a part that binds less stands in parentheses.
_CHOICE, _OR, _AND, _NOT, _COMPARISON, _SUM, _TERM, _SIGN, _ATOM = range(9)
_ARITHMETIC: Final = {"+": _SUM, "-": _SUM, "*": _TERM, "/": _TERM, "//": _TERM, "%": _TERM}


def text_of(node: Node) -> str:
    return _text(node)[1]


def _text(node: Node) -> tuple[int, str]:
    """How tightly the text binds, and the text."""
    match node:
        case tree.Literal(value=value):
            return (_SIGN if isinstance(value, int | float) and value < 0 else _ATOM), _literal(value)
        case tree.EventField(path=path):
            return _ATOM, f"e.{'.'.join(path)}"
        case tree.EventAttribute(name=name):
            return _ATOM, f"e.{name}"
        case tree.RegisterField(name=name):
            return _ATOM, f"r.{name}"
        case tree.Bound():
            raise TypeError("a query's references have a text of their own")
        case tree.Negation(operand=operand):
            return _SIGN, f"-{_within(operand, _ATOM)}"
        case tree.Arithmetic(operator=symbol, left=left, right=right):
            binds = _ARITHMETIC[symbol]
            return binds, f"{_within(left, binds)} {symbol} {_within(right, binds + 1)}"
        case tree.Comparison(operator=symbol, left=left, right=right):
            return _COMPARISON, f"{_within(left, _SUM)} {symbol} {_within(right, _SUM)}"
        case tree.UnknownTest(operand=operand):
            return _COMPARISON, f"{_within(operand, _SUM)} == null"
        case tree.Membership(operand=operand, items=items):
            listed = ", ".join(_literal(item.value) for item in items)
            return _COMPARISON, f"{_within(operand, _SUM)} in [{listed}]"
        case tree.And(operands=operands):
            return _AND, " and ".join(_within(operand, _NOT) for operand in operands)
        case tree.Or(operands=operands):
            return _OR, " or ".join(_within(operand, _AND) for operand in operands)
        case tree.Not(operand=operand):
            return _NOT, f"not {_within(operand, _NOT)}"
        case tree.Choice(condition=condition, then=then, otherwise=otherwise):
            return _CHOICE, f"{_within(then, _OR)} if {_within(condition, _OR)} else {_within(otherwise, _CHOICE)}"
        case tree.Call(function=function, arguments=arguments):
            return _ATOM, f"{function}({', '.join(text_of(argument) for argument in arguments)})"


def _within(node: Node, least: int) -> str:
    binds, text = _text(node)
    return text if binds >= least else f"({text})"


def _literal(value: Value) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(value, ensure_ascii=False)
        case tuple():
            return f"[{', '.join(map(repr, value))}]"
        case _:
            return repr(value)
