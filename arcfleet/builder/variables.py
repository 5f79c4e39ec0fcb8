"""Variables of a query: which events a component binds, and what conditions read of them."""

from __future__ import annotations

from typing import Final

from afa.errors import PatternError
from afa.expression.tree import Type
from afa.query.tree import Aggregate, At, EventValue, Kleene, Length, Negated, Over, Single
from arcfleet.builder.values import Operand, Value, field_path, is_name, plain, reading, said

ANY: Final = None  # every type of event


def event(event_type: str | None, name: str) -> Variable:
    """A variable for one event of a type: `event("Stock", "a")`, or `event(ANY, "a")` for every type."""
    if not is_name(name):
        what = f"a variable is named by a word of letters, digits and `_`, not by {said(name)}"
        raise PatternError(what, fix='write event("Stock", "a")')
    return Variable(Single(plain(name), _type_name(event_type)))


def _type_name(given: object) -> str | None:
    if given is None or isinstance(given, str):
        return None if given is None else plain(given)
    fix = 'write event("Stock", "a"), or event(ANY, "a") for every type'
    raise PatternError(f"an event type is a text, this is {said(given)}", fix=fix)


class Variable(Operand):
    """A component of `seq`, and in conditions the events that it binds: `a["price"]`, `b.first["price"]`.

    Whether it binds one event or several is said once, in `seq`: `b.plus()` there, `b.first` in the conditions.
    """

    __slots__ = ("component",)

    def __init__(self, component: Single | Kleene | Negated) -> None:
        self.component = component

    def plus(self) -> Variable:
        """`T+ v[]`: one event or more."""
        return Variable(Kleene(*self._once("plus()")))

    def times(self, least: int, most: int | None = None) -> Variable:
        """`T{m,n} v[]`: so many events; with one number exactly as many."""
        name, kind = self._once("times()")
        most = least if most is None else most
        for bound in (least, most):
            if type(bound) is not int or bound < 1:
                what = (
                    f"`{self}`.times() takes whole numbers from 1, not {bound if type(bound) is int else said(bound)}"
                )
                raise PatternError(what, fix="write times(2, 5); a component cannot be empty")
        if most < least:
            what = f"`{self}`: no count is both {least} or more and {most} or fewer"
            raise PatternError(what, fix=f"write times({most}, {least})")
        return Variable(Kleene(name, kind, least, most))

    def __invert__(self) -> Variable:
        """`~T v`: no such event."""
        return Variable(Negated(*self._once("~")))

    def _once(self, word: str) -> tuple[str, str | None]:
        if not isinstance(self.component, Single):
            kind = "negated" if isinstance(self.component, Negated) else "counted"
            what = f"`{self}` already is {kind}, so it takes no {word}"
            raise PatternError(what, fix="a component is `v`, `v.plus()`, `v.times(m, n)` or `~v`")
        return self.component.variable, self.component.event_type

    def __getitem__(self, path: str) -> Value:
        """`v.x`: a field of the one event; `ts`, `type` and `id` are the event's own."""
        return Picked(self, At.SINGLE)[path]

    @property
    def first(self) -> Picked:
        """`v[1]`: the first of its events."""
        return Picked(self, At.FIRST)

    @property
    def current(self) -> Picked:
        """`v[i]`: the event that is being taken."""
        return Picked(self, At.CURRENT)

    @property
    def previous(self) -> Picked:
        """`v[i-1]`: the one taken before it."""
        return Picked(self, At.PREVIOUS)

    @property
    def last(self) -> Picked:
        """`v[v.len]`: the last of its events."""
        return Picked(self, At.LAST)

    @property
    def all(self) -> Folded:
        """`v[]`: all of its events, for an aggregate."""
        return Folded(self, Over.ALL)

    @property
    def before(self) -> Folded:
        """`v[..i-1]`: those taken before the current one, for an aggregate."""
        return Folded(self, Over.BEFORE)

    @property
    def length(self) -> Value:
        """`v.len`: the number of its events."""
        return Value(Length(Type.INT, str(self)))

    def _value(self) -> Value:
        what = f"`{self}` is an event, not a value"
        raise PatternError(what, fix=f'name a field: `{self}["price"]`, or of several events `{self}.last["price"]`')

    def __str__(self) -> str:
        return self.component.variable

    __repr__ = __str__


class Picked(Operand):
    """One event of a variable."""

    __slots__ = ("_at", "_variable")

    def __init__(self, variable: Variable, at: At) -> None:
        self._variable = variable
        self._at = at

    def __getitem__(self, path: str) -> Value:
        return reading(EventValue(Type.ANY, str(self._variable), self._at, ()), field_path(path, str(self)))

    def _value(self) -> Value:
        raise PatternError(f"`{self}` is an event, not a value", fix=f'name a field: `{self}["price"]`')

    def __str__(self) -> str:
        return f"{self._variable}.{self._at.name.lower()}" if self._at is not At.SINGLE else str(self._variable)

    __repr__ = __str__


class Folded(Operand):
    """Several events of a variable, or a field of them, for an aggregate: `b.all["price"].avg()`."""

    __slots__ = ("_over", "_path", "_variable")

    def __init__(self, variable: Variable, over: Over, path: tuple[str, ...] = ()) -> None:
        self._variable = variable
        self._over = over
        self._path = path

    def __getitem__(self, path: str) -> Folded:
        return Folded(self._variable, self._over, (*self._path, *field_path(path, str(self))))

    def count(self) -> Value:
        """The number of events, or with a field of the values that are there."""
        return self._aggregate("count")

    def sum(self) -> Value:
        return self._aggregate("sum")

    def avg(self) -> Value:
        return self._aggregate("avg")

    def min(self) -> Value:
        return self._aggregate("min")

    def max(self) -> Value:
        return self._aggregate("max")

    def first(self) -> Value:
        return self._aggregate("first")

    def last(self) -> Value:
        return self._aggregate("last")

    def _aggregate(self, function: str) -> Value:
        if not self._path and function != "count":
            raise PatternError(f"`{self}.{function}()` needs a field", fix=f'write `{self}["price"].{function}()`')
        return Value(Aggregate(Type.ANY, function, str(self._variable), self._over, self._path, Type.ANY))

    def _value(self) -> Value:
        field = "" if self._path else '["price"]'
        what = f"`{self}` may be several values, not one"
        raise PatternError(what, fix=f"write an aggregate: `{self}{field}.max()`")

    def __str__(self) -> str:
        path = f'["{".".join(self._path)}"]' if self._path else ""
        return f"{self._variable}.{self._over.name.lower()}{path}"

    __repr__ = __str__
