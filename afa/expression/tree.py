"""The checked tree of an expression: what the type checker yields and every evaluator starts from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, TypeAlias


class Type(IntEnum):
    """Static types. The numbers are part of the compact form: they never change their meaning."""

    ANY = 0  # known only when the event is there
    INT = 1
    FLOAT = 2
    BOOL = 3
    STRING = 4
    LIST = 5  # of float

    def __str__(self) -> str:
        return {Type.ANY: "any", Type.LIST: "list of float"}.get(self, self.name.lower())


# A run-time value; None is *unknown*, lists are tuples of float.
Value: TypeAlias = int | float | bool | str | tuple[float, ...] | None

NUMBERS = frozenset({Type.INT, Type.FLOAT})
INT_MIN, INT_MAX = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class Literal:
    type: Type
    value: Value


@dataclass(frozen=True, slots=True)
class EventField:
    """`e.a.b`: a path into the event's data, read as `type` (an int is read as float where float is declared)."""

    type: Type
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EventAttribute:
    """`e.ts`, `e.type`, `e.id`: the event's own, which hide data fields of those names."""

    type: Type
    name: str


@dataclass(frozen=True, slots=True)
class RegisterField:
    type: Type
    name: str


@dataclass(frozen=True, slots=True)
class Bound:
    """What a query reads from the events of a run: the base of the references in `afa.query.tree`.

    Arcs hold none: compiling a query puts event fields and registers in their place.
    """

    type: Type


@dataclass(frozen=True, slots=True)
class Negation:
    """Unary minus."""

    type: Type
    operand: Node


@dataclass(frozen=True, slots=True)
class Arithmetic:
    type: Type
    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Comparison:
    type: Type
    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class UnknownTest:
    """`x == null`; `x != null` is its `Not`."""

    type: Type
    operand: Node


@dataclass(frozen=True, slots=True)
class Membership:
    """`x in [literals]`: the three-valued OR of the equalities."""

    type: Type
    operand: Node
    items: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class And:
    type: Type
    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Or:
    type: Type
    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Not:
    type: Type
    operand: Node


@dataclass(frozen=True, slots=True)
class Choice:
    """`then if condition else otherwise`."""

    type: Type
    condition: Node
    then: Node
    otherwise: Node


@dataclass(frozen=True, slots=True)
class Call:
    type: Type
    function: str
    arguments: tuple[Node, ...]


Node: TypeAlias = (
    Literal
    | EventField
    | EventAttribute
    | RegisterField
    | Bound
    | Negation
    | Arithmetic
    | Comparison
    | UnknownTest
    | Membership
    | And
    | Or
    | Not
    | Choice
    | Call
)


@dataclass(frozen=True, slots=True)
class Expression:
    """Checked text. Two expressions are the same iff their trees are: spacing and comments do not count."""

    text: str
    root: Node

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expression) and self.root == other.root

    def __hash__(self) -> int:
        return hash(self.root)


def children(node: Node) -> tuple[Node, ...]:
    """The operands of a node, in order."""
    match node:
        case Literal() | EventField() | EventAttribute() | RegisterField() | Bound():
            return ()
        case Negation(operand=operand) | Not(operand=operand) | UnknownTest(operand=operand):
            return (operand,)
        case Membership(operand=operand, items=items):
            return (operand, *items)
        case Arithmetic(left=left, right=right) | Comparison(left=left, right=right):
            return (left, right)
        case And(operands=operands) | Or(operands=operands):
            return operands
        case Choice(condition=condition, then=then, otherwise=otherwise):
            return (condition, then, otherwise)
        case Call(arguments=arguments):
            return arguments


def walk(node: Node) -> list[Node]:
    """The node and everything below it, parents first."""
    found = [node]
    for below in children(node):
        found += walk(below)
    return found


def replaced(node: Node, replacement: Callable[[Node], Node | None]) -> Node:
    """The tree with other nodes where `replacement` has some."""
    other = replacement(node)
    if other is not None:
        return other

    def part(value: Any) -> Any:
        if isinstance(value, tuple) and value and hasattr(value[0], "type"):
            return tuple(replaced(item, replacement) for item in value)
        return replaced(value, replacement) if hasattr(value, "type") else value

    changed: Node = replace(node, **{name: part(getattr(node, name)) for name in node.__dataclass_fields__})
    return changed
