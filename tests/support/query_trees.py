"""Random trees of valid queries, for hypothesis: what the printer is given, and the parser must give back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from afa.expression import tree
from afa.expression.check import EVENT_ATTRIBUTES
from afa.expression.functions import FUNCTIONS
from afa.expression.tree import INT_MAX, INT_MIN, Literal, Node, Type
from afa.query.contradictions import check_contradictions
from afa.query.faults import QueryFault
from afa.query.printer import print_expression
from afa.query.tree import (
    Aggregate,
    At,
    Component,
    Condition,
    CountWindow,
    Equivalence,
    EventSet,
    EventValue,
    Kleene,
    Length,
    Negated,
    Over,
    Query,
    Reference,
    ReturnItem,
    Single,
    Strategy,
    TimeWindow,
    Variable,
    Window,
)

Draw = Callable[[st.SearchStrategy[Any]], Any]

# Names that look like words of the language, or like parts of an index.
NAMES = ["a", "b", "c", "i", "len", "SEQ", "within", "As", "min", "count", "é1", "_x", "e"]
TYPES = ["Stock", "In", "any", "ANY", "web click", "it's", '"', "\\n", "é", "1", "-- x", None]
PATHS = [("x",), ("price",), ("from",), ("in", "Not"), ("len",), ("null",), ("é",), ("ts",), ("type",), ("id",)]
SIMPLE = [path for path in PATHS if path[0] not in EVENT_ATTRIBUTES]
ATTRIBUTES = [path for path in PATHS if path != ("null",)]  # in `[null]` it is the literal
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
NAMED = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)
COMPARED = ("==", "!=", "<", "<=", ">", ">=")


def read(variable: Variable, at: At, path: tuple[str, ...]) -> EventValue:
    kind = EVENT_ATTRIBUTES.get(path[0], Type.ANY)
    return EventValue(kind, variable.variable, at, path)


def fold(function: str, variable: Variable, over: Over, path: tuple[str, ...]) -> Aggregate:
    element = Type.ANY if not path else EVENT_ATTRIBUTES.get(path[0], Type.ANY)
    kind = {"count": Type.INT, "avg": Type.FLOAT}.get(function, element)
    return Aggregate(kind, function, variable.variable, over, path, element)


def readings(variable: Variable, *, current: bool, whole: bool) -> list[Reference]:
    """What a condition may read of a variable, in the forms with i, in those of the whole, or both."""
    if not isinstance(variable, Kleene):
        return [read(variable, At.SINGLE, path) for path in PATHS]
    found: list[Reference] = [read(variable, At.FIRST, path) for path in PATHS]
    if current:
        found += [read(variable, at, path) for at in (At.CURRENT, At.PREVIOUS) for path in PATHS]
        found += [fold(name, variable, Over.BEFORE, path) for name in ("avg", "max", "last") for path in SIMPLE]
        found.append(fold("count", variable, Over.BEFORE, ()))
    if whole:
        found += [read(variable, At.LAST, path) for path in PATHS]
        found += [fold(name, variable, Over.ALL, path) for name in ("sum", "min", "first", "count") for path in SIMPLE]
        found += [fold("count", variable, Over.ALL, ()), Length(Type.INT, variable.variable)]
    return found


class Expressions:
    """Expressions over given references; every method draws one of its type."""

    def __init__(self, draw: Draw, references: list[Reference]) -> None:
        self.draw = draw
        self.references = references

    def reference(self, *kinds: Type) -> Node:
        fitting = [found for found in self.references if found.type in (Type.ANY, *kinds)]
        return self.draw(st.sampled_from(fitting))

    def number(self, depth: int) -> Node:
        form = self.draw(st.integers(0, 7 if depth else 2))
        if form == 0:
            return self.literal_number()
        if form <= 2:
            return self.reference(Type.INT, Type.FLOAT)
        if form == 3:
            operand = self.number(depth - 1)
            positive = isinstance(operand, Literal) and not repr(operand.value).startswith("-")
            return operand if positive else tree.Negation(operand.type, operand)
        if form <= 5:
            operator = self.draw(st.sampled_from(["+", "-", "*", "/", "//", "%"]))
            left, right = self.number(depth - 1), self.number(depth - 1)
            return tree.Arithmetic(_number(operator, left.type, right.type), operator, left, right)
        if form == 6:
            return self.choice(depth, self.number)
        name = self.draw(st.sampled_from(["abs", "sqrt", "floor", "round", "min", "max"]))
        arguments = tuple(self.number(depth - 1) for _ in range(3 if name in ("min", "max") else 1))
        return tree.Call(FUNCTIONS[name].result({found.type for found in arguments}), name, arguments)

    def literal_number(self) -> Literal:
        value = self.draw(st.integers(INT_MIN, INT_MAX) | st.integers(-9, 9) | st.floats(allow_nan=False, width=32))
        assume(abs(value) != float("inf"))
        return Literal(Type.INT if isinstance(value, int) else Type.FLOAT, value)

    def text(self, depth: int) -> Node:
        form = self.draw(st.integers(0, 3 if depth else 2))
        if form == 0:
            return Literal(Type.STRING, self.draw(TEXTS))
        if form <= 2:
            return self.reference(Type.STRING)
        return tree.Call(Type.STRING, self.draw(st.sampled_from(["lower", "upper"])), (self.text(depth - 1),))

    def choice(self, depth: int, branch: Callable[[int], Node]) -> Node:
        then, otherwise = branch(depth - 1), branch(depth - 1)
        kinds = {then.type, otherwise.type}
        kind = then.type if len(kinds) == 1 else Type.FLOAT if Type.FLOAT in kinds else Type.ANY
        return tree.Choice(kind, self.condition(depth - 1), then, otherwise)

    def condition(self, depth: int) -> Node:
        form = self.draw(st.integers(0, 8 if depth else 4))
        if form <= 1:
            return self.comparison(depth)
        if form == 2:
            return tree.UnknownTest(Type.BOOL, self.number(max(depth - 1, 0)))
        if form == 3:
            items = tuple(self.draw(st.lists(st.builds(self.literal), max_size=3)))
            return tree.Membership(Type.BOOL, self.reference(), items)
        if form == 4:
            return self.reference(Type.BOOL)
        if form == 5:
            return tree.Not(Type.BOOL, self.condition(depth - 1))
        if form == 6:
            name = self.draw(st.sampled_from(["startswith", "contains"]))
            return tree.Call(Type.BOOL, name, (self.text(depth - 1), self.text(depth - 1)))
        if form == 7:
            return self.choice(depth, self.truth)
        kind = self.draw(st.sampled_from([tree.And, tree.Or]))
        operands = [self.condition(depth - 1) for _ in range(2)]
        assume(not any(isinstance(operand, kind) for operand in operands))
        return kind(Type.BOOL, tuple(operands))

    def truth(self, depth: int) -> Node:
        """A bool that is known to be one, so that both branches of a choice agree."""
        return self.comparison(depth) if depth else Literal(Type.BOOL, self.draw(st.booleans()))

    def literal(self) -> Literal:
        value = self.draw(st.integers(-9, 9) | TEXTS | st.booleans())
        kinds = {bool: Type.BOOL, int: Type.INT, str: Type.STRING}
        return Literal(kinds[type(value)], value)

    def comparison(self, depth: int) -> Node:
        below = max(depth - 1, 0)
        side = self.draw(st.sampled_from([self.number, self.text]))
        return tree.Comparison(Type.BOOL, self.draw(st.sampled_from(COMPARED)), side(below), side(below))


def _number(operator: str, *kinds: Type) -> Type:
    if operator == "/" or Type.FLOAT in kinds:
        return Type.FLOAT
    return Type.ANY if Type.ANY in kinds else Type.INT


@st.composite
def queries(draw: Draw) -> Query:
    """Any query that the checks accept."""
    components = draw(_components())
    strategy = draw(st.sampled_from(Strategy))
    negation_at_an_end = isinstance(components[0], Negated) or isinstance(components[-1], Negated)
    conditions = tuple(Condition(draw(_condition(components))) for _ in range(draw(st.integers(0, 3))))
    assume(not any(isinstance(condition.expression, tree.And) for condition in conditions))
    query = Query(
        components,
        strategy,
        tuple(Equivalence(path) for path in draw(st.lists(st.sampled_from(ATTRIBUTES), max_size=2, unique=True))),
        conditions,
        draw(_windows(time_only=negation_at_an_end)),
        draw(_returns(components)),
    )
    try:
        check_contradictions(query)
    except QueryFault:
        assume(False)
    return query


@st.composite
def _components(draw: Draw) -> tuple[Component, ...]:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=5, unique=True))
    components: list[Component] = []
    while names:
        kind = draw(st.sampled_from(["single", "kleene", "negated", "set"]))
        if kind == "set":
            members = [names.pop() for _ in range(draw(st.integers(1, len(names))))]
            components.append(EventSet(tuple(draw(_positive(name)) for name in members)))
        elif kind == "negated":
            components.append(Negated(names.pop(), draw(st.sampled_from(TYPES))))
        else:
            components.append(draw(_positive(names.pop(), kleene=kind == "kleene")))
    assume(not all(isinstance(component, Negated) for component in components))
    return tuple(components)


@st.composite
def _positive(draw: Draw, name: str, kleene: bool | None = None) -> Single | Kleene:
    event_type = draw(st.sampled_from(TYPES))
    if not (draw(st.booleans()) if kleene is None else kleene):
        return Single(name, event_type)
    if draw(st.booleans()):
        return Kleene(name, event_type)
    least = draw(st.integers(1, 5))
    return Kleene(name, event_type, least, least + draw(st.integers(0, 5)))


def _members(component: Component) -> tuple[Variable, ...]:
    return component.members if isinstance(component, EventSet) else (component,)


@st.composite
def _condition(draw: Draw, components: tuple[Component, ...]) -> Node:
    """One that sits at a component drawn first; in a set, at one of its variables or at all of them."""
    last = draw(st.integers(0, len(components) - 1))
    before = [found for component in components[:last] for found in _members(component)]
    known = [found for found in before if not isinstance(found, Negated)]
    references = [found for variable in known for found in readings(variable, current=False, whole=True)]
    here = list(_members(components[last]))
    current = draw(st.booleans())
    if current and len(here) > 1:
        here = [draw(st.sampled_from(here))]
    own = [found for variable in here for found in readings(variable, current=current, whole=not current)]
    drawn = Expressions(draw, own + references).condition(draw(st.integers(0, 3)))
    # What sits here names a variable of here.
    variables = {variable.variable for variable in here}
    assume(any(getattr(found, "variable", None) in variables for found in tree.walk(drawn)))
    return drawn


@st.composite
def _returns(draw: Draw, components: tuple[Component, ...]) -> tuple[ReturnItem, ...]:
    bound = [found for component in components for found in _members(component) if not isinstance(found, Negated)]
    references = [found for variable in bound for found in readings(variable, current=False, whole=True)]
    drawn = Expressions(draw, references)
    items = {}
    for _ in range(draw(st.integers(0, 3))):
        expression = draw(st.sampled_from([drawn.number, drawn.text, drawn.condition]))(draw(st.integers(0, 2)))
        name = draw(st.sampled_from(NAMES) | NAMED | st.just(print_expression(expression)))
        items[name] = ReturnItem(name, expression)
    return tuple(items.values())


def _windows(*, time_only: bool) -> st.SearchStrategy[Window]:
    lengths = st.integers(1, 10**6) | st.integers(1, 60).map(lambda minutes: minutes * 60_000)
    time = st.builds(TimeWindow, lengths | st.just(INT_MAX))
    return time if time_only else time | st.builds(CountWindow, st.integers(1, 10**6)) | st.none()
