"""Whether every condition has a place: an event at which all that it names is known, without looking back at others.

The rules are those in the docstring of `afa.query.tree`. A condition that breaks one could never be tested by registers
alone; it is refused with what to write instead.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import takewhile

from afa.query.faults import QueryFault
from afa.query.tree import (
    Aggregate,
    At,
    Component,
    Condition,
    EventSet,
    EventValue,
    Length,
    Negated,
    Over,
    Query,
    Reference,
    ReturnItem,
    references,
)


def check_placement(query: Query) -> None:
    """Raises QueryFault for the first condition or RETURN item that has no place."""
    negated = {name for name, variable in query.variables.items() if isinstance(variable, Negated)}
    stands_at = _indices(query.components)
    leading = sum(1 for _ in takewhile(lambda component: isinstance(component, Negated), query.components))
    for condition in query.conditions:
        _check_condition(condition, negated, stands_at, leading)
    for item in query.returns:
        _check_return(item, negated)


def _indices(components: tuple[Component, ...]) -> dict[str, int]:
    """The component at which each variable stands; those of one set stand together."""
    indices: dict[str, int] = {}
    for index, component in enumerate(components):
        for member in component.members if isinstance(component, EventSet) else (component,):
            indices[member.variable] = index
    return indices


def names_current(reference: Reference) -> bool:
    """Whether it is one of the forms with i, which mean something only while its component takes events."""
    match reference:
        case EventValue(at=at):
            return at in (At.CURRENT, At.PREVIOUS)
        case Aggregate(over=over):
            return over is Over.BEFORE
        case Length():
            return False


def names_whole(reference: Reference) -> bool:
    """Whether it means all events of its Kleene variable, and so is known only when the component is left."""
    match reference:
        case EventValue(at=at):
            return at is At.LAST
        case Aggregate(over=over):
            return over is Over.ALL
        case Length():
            return True


def _check_condition(
    condition: Condition, all_negated: Collection[str], stands_at: Mapping[str, int], leading: int
) -> None:
    named = references(condition.expression)
    if not named:
        fix = "delete it (the braces may be empty), or name a variable in it"
        raise QueryFault(condition.offset, "the condition names no variable, so it has no place", fix)
    negated = list(dict.fromkeys(found.variable for found in named if found.variable in all_negated))
    if len(negated) > 1:
        at = next(found for found in named if found.variable == negated[1])
        what = f"a condition on two negated variables, `{negated[0]}` and `{negated[1]}`, has no place"
        raise QueryFault(at.offset, what, "each is about one event that does not come: write one condition for each")
    if negated:
        _check_negation(negated[0], named, stands_at, leading)
        return
    last = max(named, key=lambda found: stands_at[found.variable])
    for found in {found.variable: found for found in reversed(named) if names_current(found)}.values():
        if stands_at[found.variable] != stands_at[last.variable]:
            raise _earlier(found, f"`{last.variable}`")
        _check_beside(found, named, stands_at)


def _check_negation(negated: str, named: list[Reference], stands_at: Mapping[str, int], leading: int) -> None:
    """`leading` is the number of components before the first that binds events: those negations may name any."""
    for found in named:
        if names_current(found):
            raise _earlier(found, f"the negated `{negated}`")
        if stands_at[found.variable] > stands_at[negated] >= leading:
            what = f"the negated `{negated}` names `{found.variable}`, which comes later"
            fix = "compare it with variables before it; what comes later is not known when its event comes"
            raise QueryFault(found.offset, what, fix)


def _earlier(found: Reference, tested_at: str) -> QueryFault:
    name = found.variable
    if isinstance(found, Aggregate):
        meant = f"`{name}[..i-1]` is what `{name}` has taken before"
    elif isinstance(found, EventValue) and found.at is At.PREVIOUS:
        meant = f"`{name}[i-1]` is the event before the one that `{name}` is taking"
    else:
        meant = f"`{name}[i]` is the event that `{name}` is taking"
    what = f"{meant}, but the condition is tested later, at {tested_at}"
    field = ".".join(found.path) if not isinstance(found, Length) and found.path else "<field>"
    fix = f"use an aggregate such as `max({name}[].{field})`, or `{name}[{name}.len].{field}`"
    return QueryFault(found.offset, what, fix)


def _check_beside(current: Reference, named: list[Reference], stands_at: Mapping[str, int]) -> None:
    name = current.variable
    for other in named:
        if other.variable == name and names_whole(other):
            what = f"`{name}[i]` is known at every event, all of `{name}[]` only at the end: there is no place for both"
            fix = f"compare with `{name}[i-1]` or an aggregate over `{name}[..i-1]`, or with aggregates on both sides"
            raise QueryFault(other.offset, what, fix)
        if other.variable != name and stands_at[other.variable] == stands_at[name]:
            what = f"`{name}[i]` beside `{other.variable}` of the same set has no place: either may come first"
            fix = f"use an aggregate such as `max({name}[].<field>)`, or `[attribute]` for equality"
            raise QueryFault(other.offset, what, fix)


def _check_return(item: ReturnItem, negated: Collection[str]) -> None:
    for found in references(item.expression):
        if found.variable in negated:
            what = f"`{found.variable}` is negated: a match has no event for it"
            raise QueryFault(found.offset, what, "return fields of other variables")
        if names_current(found):
            what = f"`{found.variable}[i]` has no meaning in RETURN, where all events are there"
            name = found.variable
            raise QueryFault(found.offset, what, f"write `{name}[1]`, `{name}[{name}.len]` or an aggregate")
