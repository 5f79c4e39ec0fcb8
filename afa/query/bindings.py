"""What the references of a query mean for the events that a run has bound."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from afa.evaluate import arithmetic, evaluate, extreme, read_field
from afa.expression.tree import Bound, Node, Type, Value
from afa.query.tree import EVENT_ATTRIBUTES, Aggregate, At, EventValue, Length, Over
from afa.records import Event

Bindings = Mapping[str, tuple[Event, ...]]

_EXTREMES: Final = {"min": min, "max": max}


def value_in(expression: Node, bindings: Bindings, index: int = 0) -> Value:
    """The value of an expression over bound events; `index` is the i of `a[i]`, counted from 1."""

    def value_of(reference: Bound) -> Value:
        assert isinstance(reference, EventValue | Aggregate | Length)
        events = bindings.get(reference.variable, ())
        match reference:
            case EventValue():
                event = _event_at(reference.at, events, index)
                return None if event is None else field_of(event, reference.path, reference.type)
            case Aggregate():
                taken = events if reference.over is Over.ALL else events[: max(index - 1, 0)]
                return fold(reference, taken)
            case Length():
                return len(events)

    return evaluate(expression, None, {}, value_of)


def _event_at(at: At, events: tuple[Event, ...], index: int) -> Event | None:
    place = {At.SINGLE: 0, At.FIRST: 0, At.CURRENT: index - 1, At.PREVIOUS: index - 2, At.LAST: len(events) - 1}[at]
    return events[place] if 0 <= place < len(events) else None


def field_of(event: Event, path: tuple[str, ...], declared: Type = Type.ANY) -> Value:
    """A field of an event; its own `ts`, `type` and `id` hide fields of these names."""
    if path[0] in EVENT_ATTRIBUTES and len(path) == 1:
        own: Value = getattr(event, path[0])
        return own
    return read_field(event.data, path, declared)


def fold(aggregate: Aggregate, events: tuple[Event, ...]) -> Value:
    """An aggregate in event order, left to right: null and missing are left out, a clash makes it unknown."""
    if not aggregate.path:
        return len(events)
    # Whatever type is declared, a value of another one is there.
    there = [event for event in events if field_of(event, aggregate.path) is not None]
    if aggregate.function == "count" or not there:
        return len(there) if aggregate.function == "count" else None
    values = [field_of(event, aggregate.path, aggregate.element) for event in there]
    if not all(_can_fold(aggregate.function, value) for value in values):
        return None
    total = values[0]
    for value in values[1:]:
        total = _folded(aggregate.function, total, value)
    return arithmetic("/", total, len(there)) if aggregate.function == "avg" else total


def _can_fold(function: str, value: Value) -> bool:
    if function in ("sum", "avg"):
        return type(value) in (int, float)
    if function in _EXTREMES:
        return type(value) in (int, float, str)
    return value is not None


def _folded(function: str, total: Value, value: Value) -> Value:
    if function in ("sum", "avg"):
        return arithmetic("+", total, value)
    if function in _EXTREMES:
        return extreme(_EXTREMES[function], [total, value])
    return value if function == "last" else total
