"""Tree to canonical text: what is read from it again is the same tree, and printing that gives the same text."""

from __future__ import annotations

import re
from typing import Final

from afa.expression import tree as expression
from afa.expression.tree import Literal, Node, Type
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
_SYMBOLS: Final = {"==": "="}
# How tightly an operator binds; an operand that binds less tightly stands in parentheses.
_CHOICE, _OR, _AND, _NOT, _COMPARISON, _SUM, _TERM, _SIGN, _ATOM = range(9)
_OF_ARITHMETIC: Final = {"+": _SUM, "-": _SUM, "*": _TERM, "/": _TERM, "//": _TERM, "%": _TERM}


def print_query(query: Query) -> str:
    """The canonical text, ending with a line end."""
    listed = ", ".join(_name(variable) for variable in query.variables.values())
    lines = [
        f"PATTERN SEQ({', '.join(map(_component, query.components))})",
        f"WHERE {query.strategy.value}({listed}) {_braces(query)}",
    ]
    if isinstance(query.window, TimeWindow):
        lines.append(f"WITHIN {print_duration(query.window.length)}")
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


def _braces(query: Query) -> str:
    conjuncts = [f"[{'.'.join(equivalence.path)}]" for equivalence in query.equivalences]
    conjuncts += [_text(condition.expression, _NOT) for condition in query.conditions]
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
    return _text(node, _CHOICE)


def _text(node: Node, least: int) -> str:
    """The text of an operand that has to bind at least so tightly."""
    text, binds = _bound_text(node)
    return text if binds >= least else f"({text})"


def _bound_text(node: Node) -> tuple[str, int]:
    match node:
        case Literal():
            return _literal(node), _ATOM
        case EventValue() | Aggregate() | Length():
            return _reference(node), _ATOM
        case expression.Negation(operand=operand):
            # Never two signs in a row: `--` begins a comment.
            return f"-{_text(operand, _ATOM if not _is_negative(operand) else _ATOM + 1)}", _SIGN
        case expression.Arithmetic(operator=operator, left=left, right=right):
            binds = _OF_ARITHMETIC[operator]
            return f"{_text(left, binds)} {operator} {_text(right, binds + 1)}", binds
        case expression.Not(operand=expression.UnknownTest(operand=operand)):
            return f"{_text(operand, _SUM)} != null", _COMPARISON
        case expression.Not(operand=expression.Membership(operand=operand, items=items)):
            return f"{_text(operand, _SUM)} NOT IN [{_items(items)}]", _COMPARISON
        case expression.Comparison(operator=operator, left=left, right=right):
            return f"{_text(left, _SUM)} {_SYMBOLS.get(operator, operator)} {_text(right, _SUM)}", _COMPARISON
        case expression.UnknownTest(operand=operand):
            return f"{_text(operand, _SUM)} = null", _COMPARISON
        case expression.Membership(operand=operand, items=items):
            return f"{_text(operand, _SUM)} IN [{_items(items)}]", _COMPARISON
        case expression.Not(operand=operand):
            return f"NOT {_text(operand, _NOT)}", _NOT
        case expression.And(operands=operands):
            return " AND ".join(_text(operand, _NOT) for operand in operands), _AND
        case expression.Or(operands=operands):
            return " OR ".join(_text(operand, _AND) for operand in operands), _OR
        case expression.Choice(condition=condition, then=then, otherwise=otherwise):
            return f"{_text(then, _OR)} if {_text(condition, _OR)} else {_text(otherwise, _CHOICE)}", _CHOICE
        case expression.Call(function=function, arguments=arguments):
            return f"{function}({', '.join(map(print_expression, arguments))})", _ATOM
    raise AssertionError(f"a query holds no {type(node).__name__}")


def _is_negative(node: Node) -> bool:
    return isinstance(node, Literal) and _literal(node).startswith("-")


def _items(items: tuple[Literal, ...]) -> str:
    return ", ".join(map(_literal, items))


def _literal(node: Literal) -> str:
    if node.type is Type.BOOL:
        return "true" if node.value else "false"
    if isinstance(node.value, tuple):
        return f"[{', '.join(map(repr, node.value))}]"
    return repr(node.value)


def _reference(node: EventValue | Aggregate | Length) -> str:
    name = node.variable
    match node:
        case Length():
            return f"{name}.len"
        case EventValue(at=at, path=path):
            index = {At.SINGLE: "", At.LAST: f"[{name}.len]"}.get(at, f"[{at.value}]")
            return ".".join((f"{name}{index}", *path))
        case Aggregate(function=function, over=over, path=path):
            return f"{function}({'.'.join((f'{name}[{over.value}]', *path))})"
