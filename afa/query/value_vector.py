"""The value vector of a run (SASE+ section 4.2): what later events need to know of bound ones, as registers.

Registers are found while conditions are translated: whatever a condition reads of an event that is not the one at hand
must have been kept. Afterwards `transfer` says how each event that is bound changes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from afa.expression import tree
from afa.expression.tree import Literal, Node, RegisterField, Type
from afa.query.tree import EVENT_ATTRIBUTES, Aggregate, At, EventValue, Length, Over, Reference

NOTHING: Final = Literal(Type.ANY, None)
ZERO: Final = Literal(Type.INT, 0)
ONE: Final = Literal(Type.INT, 1)

_ATTRIBUTE_TYPES: Final = {"ts": Type.INT, "type": Type.STRING, "id": Type.STRING}
_FOLDED_BY: Final = {"sum": "sum", "avg": "sum", "min": "min", "max": "max", "first": "first", "last": "last"}


@dataclass(frozen=True, slots=True)
class Kept:
    """What one register keeps of a variable."""

    variable: str
    what: str  # only (of a single variable), first, last, len, count, or the function of a fold
    path: tuple[str, ...] = ()
    declared: Type = Type.ANY
    folds: bool = False

    @property
    def name(self) -> str:
        """As the query would say it."""
        field = ".".join(self.path)
        if self.folds:
            return f"{self.what}({self.variable}.{field})"
        if self.what == "len":
            return f"{self.variable}.len"
        index = {"only": "", "first": "[1]"}.get(self.what, "[len]")
        return f"{self.variable}{index}.{field}"

    @property
    def register(self) -> RegisterField:
        return RegisterField(Type.INT if self.what in ("len", "count") else Type.ANY, self.name)


def field(path: tuple[str, ...], declared: Type = Type.ANY) -> Node:
    """A field of the event at hand."""
    if len(path) == 1 and path[0] in EVENT_ATTRIBUTES:
        return tree.EventAttribute(_ATTRIBUTE_TYPES[path[0]], path[0])
    return tree.EventField(declared, path)


class ValueVector:
    """The registers that the conditions of a query ask for."""

    def __init__(self) -> None:
        self.kept: set[Kept] = set()

    def read(self, reference: Reference, current: str | None, is_first: bool) -> Node:
        """A reference as an arc that binds an event to `current` sees it, the first of its events or a later one."""
        match reference:
            case Length():
                return self._keep(Kept(reference.variable, "len"))
            case Aggregate():
                return self._read_fold(reference, current, is_first)
            case EventValue():
                is_here = reference.at in (At.SINGLE, At.CURRENT) or (reference.at is At.FIRST and is_first)
                if reference.variable == current and is_here:
                    return field(reference.path, reference.type)
                what = {At.SINGLE: "only", At.FIRST: "first"}.get(reference.at, "last")
                return self._keep(Kept(reference.variable, what, reference.path, reference.type))

    def _read_fold(self, fold: Aggregate, current: str | None, is_first: bool) -> Node:
        if not fold.path:
            return self._keep(Kept(fold.variable, "len"))
        assert not (is_first and fold.over is Over.BEFORE and fold.variable == current)
        count = self._keep(Kept(fold.variable, "count", fold.path, fold.element, folds=True))
        if fold.function == "count":
            return count
        total = self._keep(Kept(fold.variable, _FOLDED_BY[fold.function], fold.path, fold.element, folds=True))
        return tree.Arithmetic(Type.FLOAT, "/", total, count) if fold.function == "avg" else total

    def length(self, variable: str) -> RegisterField:
        """How many events a variable has bound."""
        return self._keep(Kept(variable, "len"))

    def _keep(self, kept: Kept) -> RegisterField:
        self.kept.add(kept)
        return kept.register

    def transfer(self, variable: str, *, is_first: bool) -> dict[str, Node]:
        """What binding an event to a variable does to the registers, by name."""
        own = [kept for kept in self.kept if kept.variable == variable]
        after = {kept.name: _after(kept, is_first) for kept in own}
        return {name: node for name, node in after.items() if node is not None}


def _after(kept: Kept, is_first: bool) -> Node | None:
    if kept.what == "len":
        return ONE if is_first else tree.Arithmetic(Type.INT, "+", kept.register, ONE)
    if kept.folds:
        return _folded_first(kept) if is_first else _folded_later(kept)
    if kept.what == "first" and not is_first:
        return None
    return field(kept.path, kept.declared)


def _is_missing(kept: Kept) -> Node:
    """Null or missing, whatever type is declared: one of the wrong type is there."""
    return tree.UnknownTest(Type.BOOL, field(kept.path))


def _folded_first(kept: Kept) -> Node:
    if kept.what == "count":
        return tree.Choice(Type.INT, _is_missing(kept), ZERO, ONE)
    return _first_value(kept)


def _first_value(kept: Kept) -> Node:
    """The value itself, or unknown if the fold cannot take it."""
    here = field(kept.path, kept.declared)
    if kept.what == "sum":
        return tree.Arithmetic(Type.ANY, "+", here, ZERO)
    if kept.what in ("min", "max"):
        return tree.Call(Type.ANY, kept.what, (here, here))
    return here


def _folded_later(kept: Kept) -> Node:
    """Null and missing leave it as it is; what has become unknown stays so."""
    if kept.what == "count":
        more = tree.Arithmetic(Type.INT, "+", kept.register, ONE)
        return tree.Choice(Type.INT, _is_missing(kept), kept.register, more)
    count = Kept(kept.variable, "count", kept.path, kept.declared, folds=True).register
    begins = tree.Comparison(Type.BOOL, "==", count, ZERO)
    then = tree.Choice(Type.ANY, begins, _first_value(kept), _next_value(kept))
    return tree.Choice(Type.ANY, _is_missing(kept), kept.register, then)


def _next_value(kept: Kept) -> Node:
    before, here = kept.register, field(kept.path, kept.declared)
    match kept.what:
        case "sum":
            return tree.Arithmetic(Type.ANY, "+", before, here)
        case "min" | "max":
            return tree.Call(Type.ANY, kept.what, (before, here))
        case "first":
            return before
        case _:
            return tree.Choice(Type.ANY, tree.UnknownTest(Type.BOOL, before), NOTHING, here)
