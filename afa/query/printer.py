"""Tree to canonical text: what is read from it again is the same tree, and printing that gives the same text."""

from __future__ import annotations

import re
from typing import Final

from afa.expression.text import Dialect
from afa.expression.tree import Node
from afa.query.durations import print_duration
from afa.query.tree import (
    Aggregate,
    At,
    Component,
    CountWindow,
    EventSet,
    EventValue,
    Kleene,
    Length,
    Negated,
    Query,
    ReturnItem,
    TimeWindow,
    Variable,
)

_IDENTIFIER: Final = re.compile(r"[^\W\d]\w*")


def print_query(query: Query) -> str:
    """The canonical text, ending with a line end."""
    listed = ", ".join(_name(variable) for variable in query.variables.values())
    lines = [
        f"PATTERN SEQ({', '.join(map(_component, query.components))})",
        f"WHERE {query.strategy.value}({listed}) {_braces(query)}",
    ]
    if isinstance(query.window, TimeWindow):
        lines.append(f"WITHIN {print_duration(query.window.length, query.window.unit)}")
    elif isinstance(query.window, CountWindow):
        lines.append(f"WITHIN {query.window.events} event{'s' if query.window.events != 1 else ''}")
    elif query.strategy.skips:
        lines.append("WITHOUT WINDOW")
    if query.returns:
        lines.append(f"RETURN {', '.join(map(_return, query.returns))}")
    return "\n".join(lines) + "\n"


def _component(component: Component) -> str:
    if isinstance(component, EventSet):
        return f"{{{', '.join(map(_component, component.members))}}}"
    kind = "ANY" if component.event_type is None else _type_name(component.event_type)
    if isinstance(component, Kleene):
        kind += "+" if component.most is None else f"{{{component.least},{component.most}}}"
    elif isinstance(component, Negated):
        kind = f"~{kind}"
    return f"{kind} {_name(component)}"


def _type_name(name: str) -> str:
    return name if _IDENTIFIER.fullmatch(name) and name.lower() != "any" else repr(name)


def _name(variable: Variable) -> str:
    return f"{variable.variable}[]" if isinstance(variable, Kleene) else variable.variable


def print_conjuncts(query: Query) -> list[str]:
    """The operands of the AND in braces: equivalences, then conditions, each on one line."""
    conjuncts = [f"[{'.'.join(equivalence.path)}]" for equivalence in query.equivalences]
    return conjuncts + [_QUERIES.conjunct(condition.expression) for condition in query.conditions]


def _braces(query: Query) -> str:
    conjuncts = print_conjuncts(query)
    if not conjuncts:
        return "{ }"
    return "{\n    " + "\n    AND ".join(conjuncts) + "\n}"


def _return(item: ReturnItem) -> str:
    text = print_expression(item.expression)
    if item.name == text:
        return text
    return f"{text} AS {item.name if _IDENTIFIER.fullmatch(item.name) else repr(item.name)}"


def print_expression(node: Node) -> str:
    """The canonical text of an expression, on one line."""
    return _QUERIES.text(node)


def _reference(node: Node) -> str:
    assert isinstance(node, EventValue | Aggregate | Length), f"a query holds no {type(node).__name__}"
    name = node.variable
    match node:
        case Length():
            return f"{name}.len"
        case EventValue(at=at, path=path):
            index = {At.SINGLE: "", At.LAST: f"[{name}.len]"}.get(at, f"[{at.value}]")
            return ".".join((f"{name}{index}", *path))
        case Aggregate(function=function, over=over, path=path):
            return f"{function}({'.'.join((f'{name}[{over.value}]', *path))})"


_QUERIES: Final = Dialect(_reference, equal="=", and_="AND", or_="OR", not_="NOT", in_="IN")
