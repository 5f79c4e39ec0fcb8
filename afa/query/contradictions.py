"""Conditions on one variable that constants show to be contradictory: no event can ever make all of them true.

Only what is certain is refused. A condition that compares one field with a constant is true only for a known value of
the constant's kind (number, string or bool); the values that all such conditions of a field allow are intersected, and
must not be nothing. Kinds are not mixed: without declarations a field may be used as a number here and a text there.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from afa.expression.tree import Comparison, Literal, Membership, Node, Not, Type, UnknownTest, Value
from afa.query.faults import QueryFault
from afa.query.tree import At, Condition, EventValue, Query

# An int beyond this may be compared after rounding (int with float compares as floats): nothing is certain there.
_EXACT_BELOW: Final = 2**53
_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_COMPLEMENT: Final = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass
class _Allowed:
    """What the conditions so far leave of a field, for one kind of constants."""

    lowest: Any = None
    lowest_excluded: bool = False
    highest: Any = None
    highest_excluded: bool = False
    members: set[Any] | None = None  # of equalities and IN; None: no such condition
    excluded: set[Any] = field(default_factory=set)

    def restrict(self, operator: str, constant: Any) -> None:
        if operator == "==":
            self.restrict_to({constant})
        elif operator == "!=":
            self.excluded.add(constant)
        elif operator in (">", ">="):
            strict = operator == ">"
            if self.lowest is None or (constant, strict) > (self.lowest, self.lowest_excluded):
                self.lowest, self.lowest_excluded = constant, strict
        else:
            strict = operator == "<"
            if self.highest is None or (constant, not strict) < (self.highest, not self.highest_excluded):
                self.highest, self.highest_excluded = constant, strict

    def restrict_to(self, items: set[Any]) -> None:
        self.members = items if self.members is None else self.members & items

    def is_empty(self) -> bool:
        if self.members is not None:
            return not any(self._fits(item) for item in self.members)
        if self.lowest is None or self.highest is None:
            return False
        if self.lowest == self.highest:
            return self.lowest_excluded or self.highest_excluded or self.lowest in self.excluded
        return bool(self.lowest > self.highest)

    def _fits(self, item: Any) -> bool:
        above = self.lowest is None or item > self.lowest or (item == self.lowest and not self.lowest_excluded)
        below = self.highest is None or item < self.highest or (item == self.highest and not self.highest_excluded)
        return above and below and item not in self.excluded


@dataclass
class _Field:
    """The conditions on one field of one event."""

    is_unknown: bool = False
    is_known: bool = False
    by_kind: dict[str, _Allowed] = field(default_factory=dict)

    def allowed(self, kind: str) -> _Allowed:
        self.is_known = True
        return self.by_kind.setdefault(kind, _Allowed())

    def is_contradictory(self) -> bool:
        return (self.is_unknown and self.is_known) or any(allowed.is_empty() for allowed in self.by_kind.values())


Slot: TypeAlias = tuple[str, tuple[str, ...]]  # variable and path
Restriction: TypeAlias = Callable[[_Field], None]


def check_contradictions(query: Query) -> None:
    """Raises QueryFault at the condition that leaves nothing.

    Every event of a Kleene variable has to meet the conditions on `a[i]`, so they count for `a[1]` and `a[a.len]` too;
    those on `a[i-1]` forbid a second event at most, which is no contradiction.
    """
    for places in ((At.SINGLE, At.CURRENT), (At.CURRENT, At.FIRST), (At.CURRENT, At.LAST)):
        fields: dict[Slot, list[tuple[Condition, Restriction]]] = {}
        for condition in query.conditions:
            for slot, restriction in _restrictions(condition.expression, places):
                fields.setdefault(slot, []).append((condition, restriction))
        for slot, restrictions in fields.items():
            if _is_contradictory(restrictions, len(restrictions)):
                raise _fault(_first_contradiction(restrictions), slot)


def _is_contradictory(restrictions: Sequence[tuple[Condition, Restriction]], count: int) -> bool:
    found = _Field()
    for _, restriction in restrictions[:count]:
        restriction(found)
    return found.is_contradictory()


def _first_contradiction(restrictions: Sequence[tuple[Condition, Restriction]]) -> Condition:
    """The condition that leaves nothing. By halves: a contradiction stays one when conditions are added."""
    counts = range(1, len(restrictions) + 1)
    at = bisect_left(counts, True, key=lambda count: _is_contradictory(restrictions, count))
    return restrictions[at][0]


def _fault(condition: Condition, slot: Slot) -> QueryFault:
    variable, path = slot
    what = f"the conditions on `{'.'.join((variable, *path))}` contradict each other: no event can meet them"
    return QueryFault(condition.offset, what, "delete or correct one of them; for alternatives write OR")


def _restrictions(node: Node, places: tuple[At, ...]) -> Iterator[tuple[Slot, Restriction]]:
    """What a condition says about one field and constants; nothing if it says anything else."""
    match node:
        case UnknownTest(operand=EventValue() as read) if read.at in places:
            yield _slot(read), _set_unknown
        case Not(operand=UnknownTest(operand=EventValue() as read)) if read.at in places:
            yield _slot(read), _set_known
        case Membership(operand=EventValue() as read, items=items) if read.at in places:
            yield from _of_list(read, items)
        case Not(operand=Membership(operand=EventValue() as read, items=items)) if read.at in places:
            for item in items:
                yield from _of_constant(read, "!=", item)
        case Comparison(operator=operator, left=EventValue() as read, right=Literal() as item) if read.at in places:
            yield from _of_constant(read, operator, item)
        case Comparison(operator=operator, left=Literal() as item, right=EventValue() as read) if read.at in places:
            yield from _of_constant(read, _MIRRORED[operator], item)
        case Not(operand=Comparison(operator=operator, left=left, right=right)):
            # NOT of a comparison is true only where the comparison is false, hence known.
            yield from _restrictions(Comparison(Type.BOOL, _COMPLEMENT[operator], left, right), places)


def _slot(read: EventValue) -> Slot:
    return read.variable, read.path


def _set_unknown(found: _Field) -> None:
    found.is_unknown = True


def _set_known(found: _Field) -> None:
    found.is_known = True


def _of_constant(read: EventValue, operator: str, item: Literal) -> Iterator[tuple[Slot, Restriction]]:
    kind = _kind(item.value)
    if kind is None:
        yield _slot(read), _set_known
    else:
        yield _slot(read), lambda found: found.allowed(kind).restrict(operator, item.value)


def _of_list(read: EventValue, items: tuple[Literal, ...]) -> Iterator[tuple[Slot, Restriction]]:
    kinds = {_kind(item.value) for item in items}
    kind = kinds.pop() if len(kinds) == 1 else "number" if not items else None
    if kind is None:  # constants of several kinds: which one it will be is not known
        yield _slot(read), _set_known
    else:
        yield _slot(read), lambda found: found.allowed(kind).restrict_to({item.value for item in items})


def _kind(value: Value) -> str | None:
    """The kind of a constant, None if nothing is certain about it."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number" if abs(value) < _EXACT_BELOW else None
    return "string" if isinstance(value, str) else None
