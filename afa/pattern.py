"""What a pattern is once its document has been read and checked: an augmented finite automaton and its settings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from afa.durations import FleetUnit
from afa.expression import Expression, Scope, Type, Value

# A point or a length in event time: an int, or minus or plus infinity.
Time: TypeAlias = int | float
RegisterValue: TypeAlias = int | float | bool | str
Absence: TypeAlias = Literal["window_end", "speculative"]
Output: TypeAlias = Literal["all", "non_overlapping", "earliest_maximal"]


@dataclass(frozen=True, slots=True)
class Lifetime:
    """`[le, re)` in event time. `re <= le` is never."""

    le: Time = -math.inf
    re: Time = math.inf

    def __contains__(self, ts: Time) -> bool:
        return self.le <= ts < self.re

    @property
    def is_empty(self) -> bool:
        return self.re <= self.le

    def as_pair(self) -> tuple[int | None, int | None]:
        """As documents write it: None is unbounded."""
        return tuple(None if isinstance(end, float) else end for end in (self.le, self.re))  # type: ignore[return-value]


ALWAYS: Final = Lifetime()


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """An event may be consumed iff its `ts < start.ts + length`. The unit of `ts` is for printing."""

    length: int
    unit: FleetUnit = "ms"


@dataclass(frozen=True, slots=True)
class CountWindow:
    """The start event and the next `events - 1` live events of its key."""

    events: int


Window: TypeAlias = TimeWindow | CountWindow | None


@dataclass(frozen=True, slots=True)
class Register:
    name: str
    type: Type
    initial: Value  # None: unknown, only where the type is any


@dataclass(frozen=True, slots=True)
class Arc:
    """A transition. Two arcs are equal iff nothing about them could ever differ in a result."""

    id: str
    source: str
    target: str
    fence: Expression
    transfer: tuple[tuple[str, Expression], ...] = ()  # in order of register names
    lifetime: Lifetime = ALWAYS
    epsilon: bool = False
    final: bool = False  # its target is a final state
    binds: str | None = None  # of a query: the variable that its event is bound to

    def body(self) -> tuple[object, ...]:
        """All but id and lifetime."""
        return (self.source, self.target, self.fence, self.transfer, self.epsilon, self.binds, self.final)


@dataclass(frozen=True, slots=True)
class Conjunct:
    """A condition of a query, and where it is tested: on arcs, or of events that must be absent."""

    text: str
    arcs: tuple[str, ...]  # ids
    absent: Literal["before", "after"] | None = None  # the match


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """What an automaton that was made from a query has beside its arcs. Expressions read its registers."""

    variables: tuple[str, ...]  # those that bind events, in order of declaration
    partition: tuple[str, ...] = ()  # registers that hold the values of `[attr]`
    returns: tuple[tuple[str, Expression], ...] = ()
    leading: tuple[Expression, ...] = ()  # which events must not come before a match
    trailing: tuple[Expression, ...] = ()  # which must not come after it
    absence: Absence = "window_end"
    timeouts: bool = False
    compressed: bool = False  # its matches are told as graphs
    components: tuple[tuple[str, ...], ...] = ()  # the variables of each component
    counted: int | None = None  # its window is of so many events of the partition: arcs keep to it, not `window`
    text: str = ""  # canonical
    conjuncts: tuple[Conjunct, ...] = ()  # for people; the arcs say it all


@dataclass(frozen=True, slots=True)
class Pattern:
    """An automaton with its settings. Immutable: live arc changes are kept by the engines."""

    name: str
    start: str
    finals: frozenset[str]
    registers: tuple[Register, ...]  # in order of names
    arcs: tuple[Arc, ...]
    window: Window = None
    key_field: tuple[str, ...] | None = None
    fields: Mapping[tuple[str, ...], Type] | None = None  # of `events:`; None: not declared
    event_types: tuple[str, ...] = ()
    speculation: Time = math.inf  # cleanse factor sigma
    hold_output: bool = False
    gap_free: bool = False  # AFA+O
    output: Output = "all"
    sources: tuple[str, ...] | None = None
    query: CompiledQuery | None = None  # None: a document with arcs

    @property
    def states(self) -> tuple[str, ...]:
        """Every state, start first, then as the arcs name them."""
        named = [self.start, *(state for arc in self.arcs for state in (arc.source, arc.target)), *sorted(self.finals)]
        return tuple(dict.fromkeys(named))

    def scope(self, *, sees_event: bool = True) -> Scope:
        """What the expressions of this pattern's arcs may name."""
        return Scope(self.fields, {register.name: register.type for register in self.registers}, sees_event)


def epsilon_cycle(arcs: Iterable[Arc]) -> list[str]:
    """The states of a cycle of epsilon arcs, lifetimes regardless; empty if there is none."""
    following: dict[str, list[str]] = {}
    for arc in arcs:
        if arc.epsilon:
            following.setdefault(arc.source, []).append(arc.target)
    done: set[str] = set()
    for root in following:
        path: list[str] = []
        branches = [iter([root])]  # an explicit stack: patterns come from strangers
        while branches:
            state = next(branches[-1], None)
            if state is None:
                branches.pop()
                if path:
                    done.add(path.pop())
            elif state in path:
                return path[path.index(state) :]
            elif state not in done:
                path.append(state)
                branches.append(iter(following.get(state, ())))
    return []
