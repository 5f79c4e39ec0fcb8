"""A query from its parts: a draft of the tree, printed as text and read back.

The text is what is checked, so a query that is built and one that is written cannot differ in what is accepted, in what
it means or in how it is told that something is wrong. A draft has no file, so a mistake names the part that it is in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from fractions import Fraction
from typing import Any, Final, Literal, NoReturn, TypeAlias

from afa.document import build_pattern
from afa.durations import FleetUnit, convert
from afa.errors import PatternError, did_you_mean, listed
from afa.expression import ExpressionError
from afa.expression.tree import INT_MAX, And, Node
from afa.pattern import Pattern
from afa.query import Query, build_query, print_expression, print_query
from afa.query import tree as query_tree
from afa.query.durations import EVENTS, UNITS
from afa.query.tree import (
    At,
    Condition,
    CountWindow,
    Equivalence,
    EventSet,
    EventValue,
    Kleene,
    Length,
    Negated,
    ReturnItem,
    Single,
    Strategy,
    TimeWindow,
    Window,
    references,
)
from afa.reading import Fault
from arcfleet.builder.values import Operand, field_path, said, value_of
from arcfleet.builder.variables import Variable

_WINDOW: Final = re.compile(r"\s*([0-9]{1,30}(?:\.[0-9]{1,30})?)\s*([^\W\d_]*)\s*")
_WINDOW_FIX: Final = 'write within("5m"), within("12 hours") or within(events=500)'
_SHOWN: Final = 100  # characters of a part in a message


Unset: TypeAlias = Literal["unset"]  # no window was named, which is not the same as `without_window`


@dataclass(frozen=True, slots=True)
class AnyOrder:
    """An event set, as a component of `seq`."""

    members: tuple[Single | Kleene, ...]


class Same(Operand):
    """`[attr]`, as a condition of `where`."""

    __slots__ = ("paths",)

    def __init__(self, paths: tuple[tuple[str, ...], ...]) -> None:
        self.paths = paths

    def _value(self) -> NoReturn:
        fix = 'give it to where() beside the others: .where(same("symbol"), a["price"] > 10)'
        raise PatternError(f"`{self}` is not part of an expression", fix=fix)

    __invert__ = _value

    def __str__(self) -> str:
        return f"same({', '.join(repr('.'.join(path)) for path in self.paths)})"

    __repr__ = __str__


def same(*paths: str) -> Same:
    """`[attr]`: equal in all events, negated ones too."""
    if not paths:
        raise PatternError("same() names no attribute", fix='write same("symbol")')
    return Same(tuple(field_path(path, "same()") for path in paths))


def any_order(*members: Variable) -> AnyOrder:
    """`{T v, U+ u[]}`: the events of its members in any order."""
    if not members:
        raise PatternError("any_order() has no member", fix="write any_order(a, b.plus())")
    return AnyOrder(tuple(map(_member, members)))


def _member(given: object) -> Single | Kleene:
    if isinstance(given, Variable) and not isinstance(given.component, Negated):
        return given.component
    found = f"the negated `{given}`" if isinstance(given, Variable) else _kind(given)
    fix = "write any_order(a, b.plus()); a negation stands in seq(), beside the set"
    raise PatternError(f"a member of any_order() is {found}", fix=fix)


def seq(*components: Variable | AnyOrder) -> QueryBuilder:
    """The components of a query in their order: `seq(a, b.plus(), ~c, any_order(d, e))`."""
    if not components:
        raise PatternError("seq() has no component", fix='write seq(event("Stock", "a"))')
    found = tuple(_component(number, component) for number, component in enumerate(components, 1))
    return QueryBuilder(Query(found, Strategy.SKIP_TILL_NEXT_MATCH))


def _component(number: int, given: object) -> query_tree.Component:
    if isinstance(given, Variable):
        return given.component
    if isinstance(given, AnyOrder):
        return EventSet(given.members)
    fix = 'write seq(a, b.plus(), ~c) with variables such as a = event("Stock", "a")'
    raise PatternError(f"component {number} of seq() is {_kind(given)}, no variable", fix=fix)


def _kind(given: object) -> str:
    return "a set" if isinstance(given, AnyOrder) else said(given)


def _conditions(given: object) -> list[Condition]:
    """One or, if it is an AND, its operands."""
    if not isinstance(given, Operand):
        # Python has computed it: `True`, or what a comparison of two constants gives.
        fix = 'compare a field: .where(a["price"] > 10)'
        raise PatternError(f"a condition of where() is {said(given)}", fix=fix)
    node = value_of(given).node
    return [Condition(operand) for operand in (node.operands if isinstance(node, And) else (node,))]


@dataclass(frozen=True, slots=True, repr=False)
class QueryBuilder:
    """A query in the making; every method gives a new one. Without another its strategy is skip_till_next_match.

    `tree` is the checked tree, `str()` its canonical text, `pattern(name)` what an engine takes. All three raise
    PatternError if the query is not acceptable as a whole; what is wrong by itself is refused where it is written.
    """

    draft: Query
    window: Window | Unset = "unset"

    def where(self, *conditions: Operand | Same) -> QueryBuilder:
        """Adds conditions, all of which must hold: comparisons, and `same("symbol")`."""
        equivalences, added = list(self.draft.equivalences), list(self.draft.conditions)
        for condition in conditions:
            if isinstance(condition, Same):
                equivalences += map(Equivalence, condition.paths)
            else:
                added += _conditions(condition)
        return self._with(equivalences=tuple(dict.fromkeys(equivalences)), conditions=tuple(added))

    def strict_contiguity(self) -> QueryBuilder:
        """No event of the key is ignored."""
        return self._with(strategy=Strategy.STRICT_CONTIGUITY)

    def partition_contiguity(self) -> QueryBuilder:
        """No event of the partition that `same(...)` names is ignored."""
        return self._with(strategy=Strategy.PARTITION_CONTIGUITY)

    def skip_till_next_match(self) -> QueryBuilder:
        """Events are ignored that cannot be bound. The default."""
        return self._with(strategy=Strategy.SKIP_TILL_NEXT_MATCH)

    def skip_till_any_match(self) -> QueryBuilder:
        """Every event may be ignored."""
        return self._with(strategy=Strategy.SKIP_TILL_ANY_MATCH)

    def within(self, length: str | timedelta | None = None, *, events: int | None = None) -> QueryBuilder:
        """The window: of time (`"5m"`, `"12 hours"`, a timedelta) or of a number of events."""
        if (length is None) == (events is None):
            raise PatternError("within() takes a length of time or a number of events", fix=_WINDOW_FIX)
        window = _window(length) if events is None else _count_window(events)
        return replace(self, window=window)

    def without_window(self) -> QueryBuilder:
        """Says that no window is meant, which a skip strategy asks for."""
        return replace(self, window=None)

    def returning(self, /, *values: Operand, **named: object) -> QueryBuilder:
        """Adds what a match is to tell. A value without a name is named by its text."""
        items = [ReturnItem(print_expression(node), node) for node in (value_of(value).node for value in values)]
        items += [ReturnItem(name, value_of(value).node) for name, value in named.items()]
        return self._with(returns=(*self.draft.returns, *items))

    def _with(self, **changes: Any) -> QueryBuilder:
        return replace(self, draft=replace(self.draft, **changes))

    @property
    def tree(self) -> Query:
        """The checked tree: the same as `afa.query.parse_query` gives for the text."""
        text = self._text()
        try:
            return build_query(text)
        except ExpressionError as fault:
            raise _in_part(text, fault.offset, fault.what, fault.fix) from None

    def pattern(self, name: str, *, unit: FleetUnit = "ms", **options: Any) -> Pattern:
        """The compiled pattern; `ts` counts `unit`. Options are the fields of a pattern document beside `query`:
        `output`, `events`, …"""
        text = str(self)
        if "query" in options:
            raise PatternError("pattern() takes no `query`: the query is this one", fix="leave it out")
        try:
            return build_pattern({**options, "pattern": name, "query": text}, unit)
        except Fault as fault:
            if fault.path[:1] == ("query",):
                raise _in_part(text, fault.offset or 0, fault.what, fault.fix) from None
            option = ".".join(map(str, fault.path))
            raise PatternError(f"in `{option}`: {fault.what}", fix=fault.fix) from None

    def __str__(self) -> str:
        return print_query(self.tree)

    def __repr__(self) -> str:
        """Of whatever is there so far, checked or not."""
        window = None if self.window == "unset" else self.window
        return f"<query {' '.join(print_query(replace(self.draft, window=window)).split())}>"

    def _text(self) -> str:
        """The text that is to be checked."""
        strategy, variables = self.draft.strategy, self.draft.variables
        if self.window == "unset" and strategy.skips:
            what = f"{strategy.value} without a window: every event would be kept for ever"
            raise PatternError(what, fix='add .within("1h"), or say .without_window()')
        for node in _expressions(self.draft):
            _check_length(node, variables)
        return print_query(replace(self.draft, window=None if self.window == "unset" else self.window))


def _expressions(draft: Query) -> Iterator[Node]:
    yield from (condition.expression for condition in draft.conditions)
    yield from (item.expression for item in draft.returns)


def _check_length(node: Node, variables: dict[str, query_tree.Variable]) -> None:
    """`v.len` is the one text with two meanings, a number of events and a field: neither may become the other."""
    for found in references(node):
        is_kleene = isinstance(variables.get(found.variable), Kleene)
        part, name = _short(print_expression(node), 0), found.variable
        if isinstance(found, Length) and name in variables and not is_kleene:
            what = f"in `{part}`: `{name}` binds one event at most, so it has no length"
            raise PatternError(what, fix=f"write {name}.plus() in seq(), or leave out the condition")
        if isinstance(found, EventValue) and found.at is At.SINGLE and found.path == ("len",) and is_kleene:
            what = f'in `{part}`: `{name}` may bind several events, so `{name}["len"]` is not one value'
            raise PatternError(what, fix=f'write `{name}.first["len"]`, or `{name}.length` for their number')


def _window(length: object) -> Window:
    if isinstance(length, timedelta):
        milliseconds, rest = divmod(length, timedelta(milliseconds=1))
        return TimeWindow(_size(milliseconds if not rest else None, f"`{length}`", "milliseconds"))
    found = _WINDOW.fullmatch(length) if isinstance(length, str) else None
    if found is None or not found[2]:
        raise PatternError(f"within() takes a number and its unit, not {said(length)}", fix=_WINDOW_FIX)
    number, unit = Fraction(found[1]), found[2].lower()
    if unit in EVENTS:
        return CountWindow(_size(convert(number, "ms", "ms"), said(length), "events"))
    if unit not in UNITS:
        hint = did_you_mean(unit, UNITS, f"units are {listed(set(UNITS.values()))}")
        raise PatternError(f"in within({said(length)}): `{found[2]}` is not a unit of time", fix=hint)
    return TimeWindow(_size(convert(number, UNITS[unit], "ms"), said(length), "milliseconds"))


def _count_window(events: object) -> Window:
    if type(events) is not int:
        raise PatternError(f"within(events=...) takes a whole number, not {said(events)}", fix=_WINDOW_FIX)
    return CountWindow(_size(events, "events=...", "events"))


def _size(size: int | None, written: str, unit: str) -> int:
    if size is None:
        raise PatternError(f"in within({written}): not a whole number of {unit}", fix=_WINDOW_FIX)
    if not 1 <= size <= INT_MAX:
        raise PatternError(f"in within({written}): a window is at least 1, and at most 64 bits", fix=_WINDOW_FIX)
    return size


def _in_part(text: str, offset: int, what: str, fix: str) -> PatternError:
    """The canonical text has one line for the sequence, one for every condition, one for the window and for RETURN."""
    begin = text.rfind("\n", 0, offset) + 1
    line = text[begin:].partition("\n")[0]
    part = line.strip().removeprefix("AND ")
    return PatternError(f"in `{_short(part, offset - begin - line.index(part))}`: {what}", fix=fix)


def _short(part: str, offset: int) -> str:
    """A part for a message: of a long one, what stands around the place."""
    if len(part) <= _SHOWN:
        return part
    begin = max(0, min(offset - _SHOWN // 2, len(part) - _SHOWN))
    end = begin + _SHOWN
    return f"{'…' if begin else ''}{part[begin:end]}{'…' if end < len(part) else ''}"
