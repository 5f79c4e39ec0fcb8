"""The type checker of a query's expressions: that of arcs, with references to bound events as its leaves."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Final, TypeAlias

from afa.errors import did_you_mean, listed, one_of
from afa.expression import Type
from afa.expression.check import EVENT_ATTRIBUTES, Checker, Scope, a_kind, an, fits
from afa.expression.functions import FUNCTIONS
from afa.expression.parse import check_size
from afa.expression.tree import NUMBERS, And, Literal, Node, Or
from afa.query.faults import QueryFault
from afa.query.syntax import ReferenceSyntax
from afa.query.tree import Aggregate, At, EventValue, Kleene, Length, Negated, Over, Variable

# The fields of each declared event type; None: nothing is declared, so every field is allowed.
EventFields: TypeAlias = Mapping[str, Mapping[tuple[str, ...], Type]]

_SIMPLE: Final = frozenset({Type.INT, Type.FLOAT, Type.STRING})
_EVERYTHING: Final = frozenset(Type)
AGGREGATES: Final = {
    "count": _EVERYTHING,
    "sum": NUMBERS,
    "avg": NUMBERS,
    "min": _SIMPLE,
    "max": _SIMPLE,
    "first": _EVERYTHING,
    "last": _EVERYTHING,
}
_AT: Final = {"1": At.FIRST, "i": At.CURRENT, "i-1": At.PREVIOUS}
_OVER: Final = {"": Over.ALL, "..i-1": Over.BEFORE}


class ReferenceChecker(Checker):
    """Expressions of one query, whose variables are known."""

    def __init__(self, variables: Mapping[str, Variable], events: EventFields | None) -> None:
        super().__init__("", Scope())
        self.variables = variables
        self.events = events

    def condition(self, node: ast.expr) -> Node:
        checked = self.value(node)
        if not fits(checked, Type.BOOL):
            what, fix = f"a condition is a bool, this is {a_kind(checked)}", "write a comparison"
            raise self.error(node, what, fix)
        return checked

    def value(self, node: ast.expr) -> Node:
        check_size(node, node.col_offset, "divide it into several conditions")
        return self.check(node)

    def error(self, node: ast.expr, what: str, fix: str = "") -> QueryFault:
        return QueryFault(node.col_offset, what, fix)

    def check(self, node: ast.expr) -> Node:
        if isinstance(node, ReferenceSyntax):
            return self.reference(node)
        return _flat(super().check(node))

    def reference(self, node: ReferenceSyntax) -> Node:
        variable = self.variable(node)
        if not isinstance(variable, Kleene):
            return self.value_of_single(node, variable)
        if node.index is None and node.path == ("len",):
            return Length(Type.INT, node.variable, offset=node.col_offset)
        if node.index is None or node.index in _OVER:
            raise self.many_values(node)
        at = At.LAST if node.index == f"{node.variable}.len" else _AT.get(node.index)
        if at is None:
            raise self.wrong_index(node)
        return EventValue(self.type_of(node, variable), node.variable, at, node.path, offset=node.col_offset)

    def variable(self, node: ReferenceSyntax) -> Variable:
        if node.variable in self.variables:
            return self.variables[node.variable]
        of_type = [name for name, known in self.variables.items() if known.event_type == node.variable]
        if of_type:
            hint = f"`{node.variable}` is an event type, its variable is `{of_type[0]}`"
        elif node.variable == "i" and not node.path:
            hint = "there is no `i` alone; `count(b[..i-1])` is the number of events of `b` before it"
        elif not node.path and node.index is None:
            hint = did_you_mean(node.variable, self.variables, f"a text is written in quotes: '{node.variable}'")
        else:
            hint = did_you_mean(node.variable, self.variables, f"the pattern binds {listed(self.variables)}")
        raise self.error(node, f"the variable `{node.variable}` is not bound by the pattern", hint)

    def value_of_single(self, node: ReferenceSyntax, variable: Variable) -> EventValue:
        name = node.variable
        if node.index is not None:
            kind = "negated" if isinstance(variable, Negated) else "a single event"
            field = ".".join((name, *node.path)) if node.path else f"{name}.<field>"
            raise self.error(node, f"`{name}` is {kind}, it has no index", f"write `{field}`")
        return EventValue(self.type_of(node, variable), name, At.SINGLE, node.path, offset=node.col_offset)

    def many_values(self, node: ReferenceSyntax) -> QueryFault:
        name, field = node.variable, ".".join(node.path) or "<field>"
        what = f"`{name}` may bind several events, so `{node}` is not one value"
        if not node.path or node.path == ("length",):
            return self.error(node, what, f"the number of its events is `{name}.len`; else name a field of one of them")
        if node.index is None:
            fix = f"write `{name}[i].{field}`, `{name}[1].{field}`, `{name}[{name}.len].{field}` or an aggregate"
            return self.error(node, what, f"{fix} such as `max({name}[].{field})`")
        return self.error(node, what, f"write an aggregate such as `max({name}[{node.index}].{field})`")

    def wrong_index(self, node: ReferenceSyntax) -> QueryFault:
        name = node.variable
        forms = f"{name}[1], {name}[i], {name}[i-1], {name}[{name}.len]; in aggregates {name}[] and {name}[..i-1]"
        return self.error(node, f"there is no index `{node.index}`", f"the forms are {forms}")

    def type_of(self, node: ReferenceSyntax, variable: Variable) -> Type:
        """The type of a field of the variable's events."""
        path, name = node.path, str(node)
        if not path:
            raise self.error(node, f"`{name}` is an event, not a value", f"name a field: `{name}.<field>`")
        if path[0] in EVENT_ATTRIBUTES:
            if len(path) > 1:
                own = name.removesuffix("." + ".".join(path[1:]))
                raise self.error(node, f"`{own}` is the event's own and has no fields", f"write `{own}`")
            return EVENT_ATTRIBUTES[path[0]]
        return self.declared(node, variable, path)

    def declared(self, node: ast.expr, variable: Variable, path: tuple[str, ...]) -> Type:
        """The declared type of a data field, ANY without declarations. Of a variable of ANY type: what all agree on."""
        if self.events is None:
            return Type.ANY
        name = variable.event_type
        of_type = list(self.events.values()) if name is None else [self.events.get(name, {})]
        kinds = {fields[path] for fields in of_type if path in fields}
        if not kinds:
            known = {".".join(known) for fields in of_type for known in fields} | set(EVENT_ATTRIBUTES)
            field = ".".join(path)
            owner = "no event type has the field" if name is None else f"`{name}` has no field"
            hint = did_you_mean(field, known, "declare the field under `events:`")
            raise self.error(node, f"{owner} `{field}`", hint)
        if len(kinds) == 1:
            return kinds.pop()
        return Type.FLOAT if kinds == NUMBERS else Type.ANY

    def call(self, node: ast.Call) -> Node:
        assert isinstance(node.func, ast.Name)
        name = node.func.id
        if name in AGGREGATES and (name not in FUNCTIONS or len(node.args) == 1):
            return self.aggregate(node, name)
        if name not in FUNCTIONS:
            known = {*FUNCTIONS, *AGGREGATES}
            hint = did_you_mean(name, known, f"there are: {', '.join(sorted(known))}")
            raise self.error(node, f"`{name}` is not a function of the query language", hint)
        return super().call(node)

    def aggregate(self, node: ast.Call, name: str) -> Node:
        if len(node.args) != 1 or not isinstance(node.args[0], ReferenceSyntax):
            what = f"the aggregate {name} takes the events of one Kleene variable"
            raise self.error(node, what, f"write `{name}(a[].<field>)` or `{name}(a[..i-1].<field>)`")
        argument = node.args[0]
        variable = self.variable(argument)
        field = ".".join(argument.path)
        if not isinstance(variable, Kleene):
            what = f"the aggregate {name} folds the events of a Kleene variable, `{argument.variable}` is none"
            raise self.error(node, what, f"write `{argument.variable}.{field or '<field>'}` itself")
        if argument.index is None or argument.index not in _OVER:
            what = f"`{argument}` is not what an aggregate folds"
            path = argument.path or (() if name == "count" else ("<field>",))
            known = ".".join((f"{argument.variable}[]", *path))
            raise self.error(argument, what, f"write `{name}({known})`, or `[..i-1]` for the events before")
        if not argument.path and name != "count":
            raise self.error(argument, f"{name} needs a field", f"write `{name}({argument}.<field>)`")
        element = self.type_of(argument, variable) if argument.path else Type.ANY
        if element is not Type.ANY and element not in AGGREGATES[name]:
            takes = one_of(str(kind) for kind in AGGREGATES[name])
            raise self.error(argument, f"{name} does not take {an(element)}", f"it takes {takes}")
        kind = {"count": Type.INT, "avg": Type.FLOAT}.get(name, element)
        over = _OVER[argument.index]
        return Aggregate(kind, name, argument.variable, over, argument.path, element, offset=node.col_offset)

    def literal(self, node: ast.expr) -> Literal:
        if isinstance(node, ReferenceSyntax):
            fix = f"a text is written in quotes: '{node}'" if not node.path else "write numbers or texts in it"
            raise self.error(node, "a list holds literals only", fix)
        return super().literal(node)

    def float_list(self, node: ast.List) -> Literal:
        if any(isinstance(item, ReferenceSyntax) for item in node.elts):
            what = "`[attribute]` is not part of an expression"
            raise self.error(node, what, "put it beside the other conditions, joined by AND")
        return super().float_list(node)


def _flat(node: Node) -> Node:
    """A chained comparison is an AND: one that is directly in another is dissolved in it."""
    if not isinstance(node, And | Or):
        return node
    operands: list[Node] = []
    for operand in node.operands:
        operands += operand.operands if isinstance(operand, And | Or) and type(operand) is type(node) else [operand]
    return type(node)(node.type, tuple(operands))
