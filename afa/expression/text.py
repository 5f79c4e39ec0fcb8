"""The text of a checked tree: what is read from it again is the same tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from afa.expression import tree
from afa.expression.tree import Literal, Node, Type

# How tightly an operator binds; an operand that binds less tightly stands in parentheses.
_CHOICE, _OR, _AND, _NOT, _COMPARISON, _SUM, _TERM, _SIGN, _ATOM = range(9)
_OF_ARITHMETIC: Final = {"+": _SUM, "-": _SUM, "*": _TERM, "/": _TERM, "//": _TERM, "%": _TERM}


def _arc_leaf(node: Node) -> str:
    match node:
        case tree.EventField(path=path):
            return ".".join(("e", *path))
        case tree.EventAttribute(name=name):
            return f"e.{name}"
        case tree.RegisterField(name=name):
            return f"r.{name}"
    raise AssertionError(f"an arc holds no {type(node).__name__}")


@dataclass(frozen=True)
class Dialect:
    """The words of a language, and how it writes what an expression reads."""

    leaf: Callable[[Node], str] = _arc_leaf
    equal: str = "=="
    and_: str = "and"
    or_: str = "or"
    not_: str = "not"
    in_: str = "in"

    def text(self, node: Node) -> str:
        """On one line."""
        return self.operand(node, _CHOICE)

    def conjunct(self, node: Node) -> str:
        """As an operand of AND."""
        return self.operand(node, _NOT)

    def operand(self, node: Node, least: int) -> str:
        """The text of an operand that has to bind at least so tightly."""
        text, binds = self._bound_text(node)
        return text if binds >= least else f"({text})"

    def _bound_text(self, node: Node) -> tuple[str, int]:
        match node:
            case Literal():
                return _literal(node), _ATOM
            case tree.Negation(operand=operand):
                # Never two signs in a row: `--` begins a comment in queries.
                return f"-{self.operand(operand, _ATOM if not _is_negative(operand) else _ATOM + 1)}", _SIGN
            case tree.Arithmetic(operator=operator, left=left, right=right):
                binds = _OF_ARITHMETIC[operator]
                return f"{self.operand(left, binds)} {operator} {self.operand(right, binds + 1)}", binds
            case tree.Comparison() | tree.UnknownTest() | tree.Membership():
                return self._comparison(node), _COMPARISON
            case tree.Not(operand=tree.UnknownTest(operand=operand)):
                return f"{self.operand(operand, _SUM)} != null", _COMPARISON
            case tree.Not(operand=tree.Membership(operand=operand, items=items)):
                return f"{self.operand(operand, _SUM)} {self.not_} {self.in_} [{_items(items)}]", _COMPARISON
            case tree.Not(operand=operand):
                return f"{self.not_} {self.operand(operand, _NOT)}", _NOT
            case tree.And(operands=operands):
                return f" {self.and_} ".join(self.operand(operand, _NOT) for operand in operands), _AND
            case tree.Or(operands=operands):
                return f" {self.or_} ".join(self.operand(operand, _AND) for operand in operands), _OR
            case tree.Choice(condition=condition, then=then, otherwise=otherwise):
                chosen = f"{self.operand(then, _OR)} if {self.operand(condition, _OR)}"
                return f"{chosen} else {self.operand(otherwise, _CHOICE)}", _CHOICE
            case tree.Call(function=function, arguments=arguments):
                return f"{function}({', '.join(map(self.text, arguments))})", _ATOM
        return self.leaf(node), _ATOM

    def _comparison(self, node: tree.Comparison | tree.UnknownTest | tree.Membership) -> str:
        match node:
            case tree.Comparison(operator=operator, left=left, right=right):
                symbol = self.equal if operator == "==" else operator
                return f"{self.operand(left, _SUM)} {symbol} {self.operand(right, _SUM)}"
            case tree.UnknownTest(operand=operand):
                return f"{self.operand(operand, _SUM)} {self.equal} null"
            case tree.Membership(operand=operand, items=items):
                return f"{self.operand(operand, _SUM)} {self.in_} [{_items(items)}]"


ARCS: Final = Dialect()


def _is_negative(node: Node) -> bool:
    return isinstance(node, Literal) and _literal(node).startswith("-")


def _items(items: tuple[Literal, ...]) -> str:
    return ", ".join(map(_literal, items))


def _literal(node: Literal) -> str:
    if node.value is None:
        return "null"
    if node.type is Type.BOOL:
        return "true" if node.value else "false"
    if isinstance(node.value, tuple):
        return f"[{', '.join(map(repr, node.value))}]"
    return repr(node.value)
