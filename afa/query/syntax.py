"""Lark's tree of an expression to Python's syntax tree, which the type checker of arcs reads.

Only the references are not Python: they become nodes of their own. A node's `col_offset` is its offset in the query.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from afa.expression.limits import MAX_EXPRESSION_DEPTH
from afa.query.faults import QueryFault

if TYPE_CHECKING:
    from lark import Token
    from lark.tree import Tree

    Part: TypeAlias = Tree[Token] | Token

_COMPARISONS: Final[dict[str, type[ast.cmpop]]] = {
    "=": ast.Eq,
    "==": ast.Eq,
    "!=": ast.NotEq,
    "<>": ast.NotEq,
    "<": ast.Lt,
    "<=": ast.LtE,
    ">": ast.Gt,
    ">=": ast.GtE,
}
_ARITHMETIC: Final[dict[str, type[ast.operator]]] = {
    "+": ast.Add,
    "-": ast.Sub,
    "*": ast.Mult,
    "/": ast.Div,
    "//": ast.FloorDiv,
    "%": ast.Mod,
}
# Most literals are plain, and Python's own reader is slow for so little.
_PLAIN_STRING: Final = re.compile(r"'[^'\\]*'|\"[^\"\\]*\"")
_PLAIN_INTEGER: Final = re.compile(r"0|[1-9][0-9]*")
_CONSTANTS: Final = {"TRUE": True, "FALSE": False, "NULL": None}


class ReferenceSyntax(ast.expr):
    """`variable[index].path`, not yet checked. `index` is None without brackets, else what stands in them."""

    _fields = ()

    def __init__(self, variable: str, index: str | None, path: tuple[str, ...], offset: int) -> None:
        super().__init__()
        self.variable = variable
        self.index = index
        self.path = path
        self.col_offset = offset

    def __str__(self) -> str:
        index = "" if self.index is None else f"[{self.index}]"
        return ".".join((f"{self.variable}{index}", *self.path))


def offset_of(part: Part) -> int:
    """Where the part begins: its first token (without a parenthesis around it)."""
    while not isinstance(part, str):
        below: list[Any] = part.children
        part = next(child for child in below if child is not None)
    return part.start_pos or 0


def to_syntax(part: Part, depth: int = 0) -> ast.expr:
    """Raises QueryFault before it recurses too deeply. AND directly in AND, and OR in OR, become one."""
    if depth > MAX_EXPRESSION_DEPTH:
        what = f"the expression is nested deeper than {MAX_EXPRESSION_DEPTH} (max_expression_depth)"
        raise QueryFault(offset_of(part), what, "divide it into several conditions")
    if isinstance(part, str):
        return _constant(part)
    children: list[Any] = part.children
    match part.data:
        case "choice":
            then, test, otherwise = _all(children, depth)
            return _placed(ast.IfExp(test, then, otherwise), then.col_offset)
        case "disjunction":
            return _flat(ast.Or(), _all(children, depth))
        case "conjunction":
            return _flat(ast.And(), _all(children, depth))
        case "inversion":
            operand = to_syntax(children[1], depth + 1)
            return _placed(ast.UnaryOp(ast.Not(), operand), offset_of(part))
        case "comparison":
            return _comparison(children, depth)
        case "sum" | "term":
            return _arithmetic(children, depth)
        case "sign":
            sign = ast.USub() if children[0] == "-" else ast.UAdd()
            return _placed(ast.UnaryOp(sign, to_syntax(children[1], depth + 1)), offset_of(part))
        case "list":
            return _placed(ast.List(_all(children[1:], depth), ast.Load()), offset_of(part))
        case "call":
            function = _placed(ast.Name(str(children[0]).lower(), ast.Load()), offset_of(part))
            return _placed(ast.Call(function, _all(children[1:], depth), []), offset_of(part))
    assert part.data == "reference", part.data
    variable, index, *path = children
    written = None if index is None else "".join(index.children)
    return ReferenceSyntax(str(variable), written, tuple(map(str, path)), offset_of(part))


def _placed(node: ast.expr, offset: int) -> ast.expr:
    node.col_offset = offset
    return node


def _all(parts: Sequence[Part], depth: int) -> list[ast.expr]:
    return [to_syntax(part, depth + 1) for part in parts]


def _flat(operator: ast.boolop, operands: list[ast.expr]) -> ast.expr:
    values: list[ast.expr] = []
    for operand in operands:
        same = isinstance(operand, ast.BoolOp) and type(operand.op) is type(operator)
        values += operand.values if same and isinstance(operand, ast.BoolOp) else [operand]
    return _placed(ast.BoolOp(operator, values), values[0].col_offset)


def _comparison(children: list[Any], depth: int) -> ast.expr:
    """Operands with `=`, `IN` or `NOT IN` between them."""
    left, *rest = children
    operators: list[ast.cmpop] = []
    operands: list[ast.expr] = []
    negated = False
    while rest:
        token = rest.pop(0)
        if token.type == "NOT":
            negated = True
            continue
        kind = _COMPARISONS.get(token) or (ast.NotIn if negated else ast.In)
        operators.append(kind())
        operands.append(to_syntax(rest.pop(0), depth + 1))
        negated = False
    first = to_syntax(left, depth + 1)
    return _placed(ast.Compare(first, operators, operands), first.col_offset)


def _arithmetic(children: list[Any], depth: int) -> ast.expr:
    whole = to_syntax(children[0], depth + 1)
    for operator, operand in zip(children[1::2], children[2::2], strict=True):
        right = to_syntax(operand, depth + 1)
        whole = _placed(ast.BinOp(whole, _ARITHMETIC[operator](), right), whole.col_offset)
    return whole


def _constant(token: Token) -> ast.expr:
    value = _CONSTANTS[token.type] if token.type in _CONSTANTS else literal_value(token)
    return _placed(ast.Constant(value), offset_of(token))


def literal_value(token: Token) -> str | int | float:
    """The value of a NUMBER or STRING, written as in Python. Raises QueryFault."""
    if _PLAIN_STRING.fullmatch(token):
        return str(token[1:-1])
    try:
        if _PLAIN_INTEGER.fullmatch(token):
            return int(token)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's advice on style (`\d`) is not for our users
            value = ast.literal_eval(str(token))
    except (SyntaxError, ValueError, MemoryError):
        what = f"not a {'number' if token.type == 'NUMBER' else 'string'} as Python writes it"
        raise QueryFault(offset_of(token), what, "write 12, 0.5 or 'text', with Python's escapes") from None
    assert isinstance(value, str | int | float)
    return value
