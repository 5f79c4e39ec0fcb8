"""The tree of a SASE+ query: what its text says, checked, and nothing about how it is evaluated.

    PATTERN SEQ(components) WHERE strategy(variables) { equivalences AND conditions } WITHIN window RETURN items

Printer, compiler and the reference that enumerates matches all start from here. Two queries are equal iff their trees
are: offsets, which only serve messages and explanations, do not count. Expressions are those of arcs
(`afa.expression.tree`, with the same types and the same unknowns); in place of `e.<field>` and `r.<register>` they hold
the references below. `afa.evaluate.evaluate(node, None, {}, bound)` computes one; `bound` gives a reference's value.

**How the conditions are to be read.** The operands of the AND in braces are already split: `Query.conditions` holds no
`And` at its top (nested ANDs are flattened, a chained comparison is the AND of its parts), `Query.equivalences` the
paths of `[attr]`. An `And` below an OR or a NOT is left alone. `And` and `Or` are flat: none is directly in its kind.
A condition holds iff it is true; false and unknown alike refuse the event.

1. A condition sits at its *last variable*: the one whose component stands last. It is tested when an event is to be
   bound to it. Of the variables of one event set, none stands last: it sits at whichever the run binds last.
2. A condition that names a *negated* variable belongs to that negation: it says which events are occurrences. It names
   one negated variable, and positive ones before it only (of a leading negation: any).
3. Of a Kleene variable `a` that is the last variable:
   - `a[i]` alone applies to every event taken, i >= 1;
   - `a[i]` with `a[1]`, `a[i-1]` or `a[..i-1]`, and the latter two without it, applies to i >= 2;
   - `a[1]` without any of the forms with i applies to the first event;
   - `a[]`, `a[a.len]` and `a.len` are tested when the component (or its set) is left, by the event that begins the next
     one, or at the yield if it is last; they never stop a take. They do not stand beside the forms with i.
4. Of a Kleene variable that is *not* the last variable, only `a[1]`, `a[a.len]`, `a[]` and `a.len` can stand; they mean
   the events that it has bound. In a set, `a[i]` and its like stand beside no other variable of that set.
5. `[attr]` is equal in all events of a match and in the occurrences of its negations. It names the partition; an event
   in which it is unknown is in none.

A RETURN item may name positive variables, in the forms of rule 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from afa.expression.check import EVENT_ATTRIBUTES  # the event's own; a data field of such a name is hidden
from afa.expression.tree import Bound, Node, Type, walk
from afa.pattern import CountWindow, TimeWindow, Window

__all__ = [
    "EVENT_ATTRIBUTES",
    "Aggregate",
    "At",
    "Component",
    "Condition",
    "CountWindow",
    "Equivalence",
    "EventSet",
    "EventValue",
    "Kleene",
    "Length",
    "Negated",
    "Over",
    "Query",
    "Reference",
    "ReturnItem",
    "Single",
    "Strategy",
    "TimeWindow",
    "Variable",
    "Window",
    "leading_negations",
    "members",
    "references",
]


class Strategy(Enum):
    """Which events a run may ignore between those that it binds."""

    STRICT_CONTIGUITY = "strict_contiguity"
    PARTITION_CONTIGUITY = "partition_contiguity"
    SKIP_TILL_NEXT_MATCH = "skip_till_next_match"
    SKIP_TILL_ANY_MATCH = "skip_till_any_match"

    @property
    def skips(self) -> bool:
        return self in (Strategy.SKIP_TILL_NEXT_MATCH, Strategy.SKIP_TILL_ANY_MATCH)


@dataclass(frozen=True, slots=True)
class Single:
    """`T v`: one event."""

    variable: str
    event_type: str | None  # None: ANY
    offset: int = field(default=0, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Kleene:
    """`T+ v[]`: one event or more; `T{m,n} v[]`: m to n."""

    variable: str
    event_type: str | None
    least: int = 1
    most: int | None = None  # None: `+`, without an upper bound (then `least` is 1)
    offset: int = field(default=0, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Negated:
    """`~T v`: no event."""

    variable: str
    event_type: str | None
    offset: int = field(default=0, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class EventSet:
    """`{T v, U+ u[]}`: the events of its members in any order."""

    members: tuple[Single | Kleene, ...]
    offset: int = field(default=0, compare=False, repr=False, kw_only=True)


Variable: TypeAlias = Single | Kleene | Negated
Component: TypeAlias = Variable | EventSet


class At(Enum):
    """Which event of its variable a reference means."""

    SINGLE = ""  # `v.x` of a single or negated variable
    FIRST = "1"
    CURRENT = "i"
    PREVIOUS = "i-1"
    LAST = "len"  # `v[v.len].x`


class Over(Enum):
    """Which events of its Kleene variable an aggregate folds, in event order."""

    ALL = ""  # `v[]`
    BEFORE = "..i-1"  # `v[..i-1]`: those taken before the current one


@dataclass(frozen=True, slots=True)
class EventValue(Bound):
    """`v.x`, `v[1].x`, `v[i].x`, `v[i-1].x`, `v[v.len].x`.

    `path` is a path in the event's data, read as `type`; or one of EVENT_ATTRIBUTES, alone.
    """

    variable: str
    at: At
    path: tuple[str, ...]
    offset: int = field(default=0, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Aggregate(Bound):
    """`count sum avg min max first last` of `v[].x` or `v[..i-1].x`.

    An empty `path` stands only in `count(v[])` and `count(v[..i-1])`, the number of events. `element` is the declared
    type of the field (ANY where none is declared), `type` that of the result.
    """

    function: str
    variable: str
    over: Over
    path: tuple[str, ...]
    element: Type
    offset: int = field(default=0, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Length(Bound):
    """`v.len`: the number of events that a Kleene variable has bound, as `count(v[])`."""

    variable: str
    offset: int = field(default=0, compare=False, repr=False, kw_only=True)


Reference: TypeAlias = EventValue | Aggregate | Length


@dataclass(frozen=True, slots=True)
class Equivalence:
    """`[attr]`: equal in all events. `[a, b]` is two of them."""

    path: tuple[str, ...]
    offset: int = field(default=0, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Condition:
    """One operand of the AND in braces."""

    expression: Node
    offset: int = field(default=0, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class ReturnItem:
    """`expression AS name`; without AS its name is its text."""

    name: str
    expression: Node
    offset: int = field(default=0, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Query:
    components: tuple[Component, ...]
    strategy: Strategy
    equivalences: tuple[Equivalence, ...] = ()
    conditions: tuple[Condition, ...] = ()
    window: Window = None  # None under a skip strategy: WITHOUT WINDOW
    returns: tuple[ReturnItem, ...] = ()

    @property
    def variables(self) -> dict[str, Variable]:
        """Every variable in order of declaration, negated ones and the members of sets too."""
        return {variable.variable: variable for variable in _variables(self.components)}

    @property
    def positive(self) -> tuple[Single | Kleene | EventSet, ...]:
        """The components that bind events, in order."""
        return tuple(component for component in self.components if not isinstance(component, Negated))


def _variables(components: tuple[Component, ...]) -> Iterator[Variable]:
    for component in components:
        if isinstance(component, EventSet):
            yield from component.members
        else:
            yield component


def members(component: Component) -> tuple[Single | Kleene, ...]:
    """The variables of a component that binds events: those of a set, or itself."""
    if isinstance(component, EventSet):
        return component.members
    assert not isinstance(component, Negated)
    return (component,)


def leading_negations(components: Iterable[Component]) -> list[Negated]:
    """The negations before the first component that binds events."""
    found = []
    for component in components:
        if not isinstance(component, Negated):
            break
        found.append(component)
    return found


def references(node: Node) -> list[Reference]:
    """The references in an expression, from left to right."""
    return [found for found in walk(node) if isinstance(found, EventValue | Aggregate | Length)]
