"""Queries and streams made at random, small enough that all matches can be enumerated."""

from __future__ import annotations

import random
from dataclasses import dataclass

from afa.expression import tree
from afa.expression.tree import Node, Type
from afa.pattern import CountWindow, TimeWindow, Window
from afa.query.tree import (
    Aggregate,
    At,
    Component,
    Condition,
    Equivalence,
    EventSet,
    EventValue,
    Kleene,
    Length,
    Negated,
    Over,
    Query,
    ReturnItem,
    Single,
    Strategy,
)
from afa.records import Event

TYPES = ("A", "B", None)
FIELDS = ("x", "y")
AGGREGATES = ("count", "sum", "avg", "min", "max", "first", "last")
OPERATORS = ("==", "!=", "<", "<=", ">", ">=")


@dataclass
class QueryMaker:
    """One query from a seed."""

    seed: int

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.names = iter("abcdefghjklmnopqrst")

    def query(self) -> Query:
        pick = self.random
        components: list[Component] = []
        for _ in range(pick.choice((1, 2, 2, 3))):
            components += self._negations()
            components.append(self._positive())
        trailing = self._negations()
        window: Window = pick.choice((TimeWindow(3), TimeWindow(6), TimeWindow(100), CountWindow(3), None))
        leads = isinstance(components[0], Negated)
        if (trailing or leads) and not isinstance(window, TimeWindow):
            window = TimeWindow(5)
        components += trailing
        query = Query(
            components=tuple(components),
            strategy=pick.choice(tuple(Strategy)),
            equivalences=pick.choice(((), (), (Equivalence(("k",)),))),
            window=window,
        )
        positive = [variable for variable in query.variables.values() if not isinstance(variable, Negated)]
        conditions = tuple(filter(None, (self._condition(query) for _ in range(pick.randrange(4)))))
        returns = tuple(ReturnItem(f"r{n}", self._outside(pick.choice(positive))) for n in range(pick.randrange(3)))
        return Query(query.components, query.strategy, query.equivalences, conditions, window, returns)

    def _negations(self) -> list[Component]:
        return [
            Negated(next(self.names), self.random.choice(TYPES)) for _ in range(self.random.choice((0, 0, 0, 0, 1)))
        ]

    def _positive(self) -> Component:
        if self.random.random() < 0.2:
            return EventSet((self._variable(), self._variable()))
        return self._variable()

    def _variable(self) -> Single | Kleene:
        name, kind = next(self.names), self.random.choice(TYPES)
        match self.random.randrange(4):
            case 0:
                return Kleene(name, kind)
            case 1:
                least = self.random.choice((1, 2))
                return Kleene(name, kind, least, least + self.random.choice((0, 1)))
            case _:
                return Single(name, kind)

    def _condition(self, query: Query) -> Condition | None:
        """About one variable, alone or beside an earlier one."""
        pick = self.random
        variables = list(query.variables.values())
        at = pick.randrange(len(variables))
        last = variables[at]
        leads = isinstance(query.components[0], Negated) and query.components[0].variable == last.variable
        before = [
            other
            for other in (variables if leads else variables[:at])
            if not isinstance(other, Negated) and other.variable != last.variable
        ]
        # Of one set, `a[i]` stands beside no other variable.
        together = next(
            (part for part in query.components if isinstance(part, EventSet) and last in part.members), None
        )
        left = self._inside(last)
        right = self._beside(last, left) if pick.random() < 0.6 or not before else self._outside(pick.choice(before))
        named = {
            reference.variable for reference in (left, right) if isinstance(reference, EventValue | Aggregate | Length)
        }
        if together is not None and len(named) > 1 and named <= {member.variable for member in together.members}:
            return None
        test: Node = tree.Comparison(Type.BOOL, pick.choice(OPERATORS), left, right)
        if pick.random() < 0.15:
            test = tree.Not(Type.BOOL, test)
        if pick.random() < 0.15:
            test = tree.Or(Type.BOOL, (test, tree.UnknownTest(Type.BOOL, left)))
        return Condition(test)

    def _inside(self, variable: Single | Kleene | Negated) -> Node:
        """Of the variable at which a condition sits."""
        path = (self.random.choice(FIELDS),)
        if not isinstance(variable, Kleene):
            return EventValue(Type.ANY, variable.variable, At.SINGLE, path)
        if self.random.random() < 0.3:
            return self._outside(variable)
        return EventValue(Type.ANY, variable.variable, self.random.choice((At.FIRST, At.CURRENT, At.CURRENT)), path)

    def _beside(self, variable: Single | Kleene | Negated, left: Node) -> Node:
        """A constant, or what else of the variable may stand beside that."""
        if isinstance(variable, Kleene) and isinstance(left, EventValue) and left.at is At.CURRENT:
            path = (self.random.choice(FIELDS),)
            match self.random.randrange(4):
                case 0:
                    return EventValue(Type.ANY, variable.variable, At.PREVIOUS, path)
                case 1:
                    return EventValue(Type.ANY, variable.variable, At.FIRST, path)
                case 2:
                    return self._aggregate(variable.variable, Over.BEFORE)
        return tree.Literal(Type.INT, self.random.randrange(4))

    def _outside(self, variable: Single | Kleene | Negated) -> Node:
        """Of a variable that has all its events."""
        path = (self.random.choice(FIELDS),)
        if not isinstance(variable, Kleene):
            return EventValue(Type.ANY, variable.variable, At.SINGLE, path)
        match self.random.randrange(4):
            case 0:
                return EventValue(Type.ANY, variable.variable, At.FIRST, path)
            case 1:
                return EventValue(Type.ANY, variable.variable, At.LAST, path)
            case 2:
                return Length(Type.INT, variable.variable)
            case _:
                return self._aggregate(variable.variable, Over.ALL)

    def _aggregate(self, variable: str, over: Over) -> Node:
        function = self.random.choice(AGGREGATES)
        path = () if function == "count" and self.random.random() < 0.5 else (self.random.choice(FIELDS),)
        return Aggregate(Type.ANY, function, variable, over, path, Type.ANY)


def events_of(seed: int, count: int) -> list[Event]:
    """Events of one key in order; some fields are missing, null, or of another type."""
    pick = random.Random(seed)
    events, ts = [], 0
    for number in range(count):
        ts += pick.choice((0, 1, 1, 1, 2, 4))
        values = (0, 1, 1, 2, 2, 3, 1.5, None, "s", True)
        data = {name: pick.choice(values) for name in FIELDS if pick.random() < 0.95}
        data["k"] = pick.choice((1, 1, 1, 1.0, 2, "1", None))
        events.append(Event("key", ts, f"e{number}", type=pick.choice(("A", "A", "B", "C", None)), data=data))
    return sorted(events, key=lambda event: event.order)
