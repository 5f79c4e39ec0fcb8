"""Lark's tree to the checked tree of a query."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from afa.durations import FleetUnit, convert
from afa.errors import did_you_mean, listed, one_of
from afa.expression import Type
from afa.expression.check import EVENT_ATTRIBUTES
from afa.expression.tree import INT_MAX, NUMBERS
from afa.query.components import build_components, check_name, check_types
from afa.query.contradictions import check_contradictions
from afa.query.durations import EVENTS, NAMES, UNITS
from afa.query.faults import QueryFault
from afa.query.grammar import parse_tree
from afa.query.placement import check_placement
from afa.query.references import EventFields, ReferenceChecker
from afa.query.syntax import ReferenceSyntax, offset_of, to_syntax
from afa.query.tree import (
    Condition,
    CountWindow,
    Equivalence,
    Kleene,
    Negated,
    Query,
    ReturnItem,
    Strategy,
    TimeWindow,
    Variable,
    Window,
)

if TYPE_CHECKING:
    from lark import Token
    from lark.tree import Tree

_DECIMAL: Final = re.compile(r"[0-9]{1,30}(?:\.[0-9]{1,30})?")
_STRATEGIES: Final = {strategy.value: strategy for strategy in Strategy}
# Group 1 is kept as it is: a string. All else is white space or a comment.
_SPACE: Final = re.compile(r"""('(?:[^'\\\n]|\\[\s\S])*'|"(?:[^"\\\n]|\\[\s\S])*")|(?:\s|--[^\n]*|/\*[\s\S]*?\*/)+""")


def build_query(text: str, events: EventFields | None = None, unit: FleetUnit = "ms") -> Query:
    """The query that a text says. Raises QueryFault (or its base ExpressionError) with the offset of what is wrong.

    With `events`, the declared fields of each event type, names and types are checked too. `ts` counts `unit`.
    """
    parts: list[Any] = parse_tree(text).children
    sequence, selection, window, returns = parts
    components = build_components(sequence)
    variables = Query(components, Strategy.STRICT_CONTIGUITY).variables
    check_types(variables.values(), events)
    strategy = _strategy(selection, variables)
    checker = ReferenceChecker(variables, events)
    equivalences, conditions = _conditions(selection, checker)
    query = Query(
        components, strategy, equivalences, conditions, _window(window, unit), tuple(_returns(returns, text, checker))
    )
    _check_window(query, selection, window)
    check_placement(query)
    check_contradictions(query)
    return query


def _strategy(selection: Tree[Token], variables: dict[str, Variable]) -> Strategy:
    """The strategy's name, followed by all variables in any order."""
    children: list[Any] = selection.children
    name, *chosen = children[:-1]
    strategy = _STRATEGIES.get(str(name).lower())
    if strategy is None:
        hint = did_you_mean(str(name).lower(), _STRATEGIES, f"write {one_of(_STRATEGIES)}")
        raise QueryFault(offset_of(name), f"`{name}` is not a strategy", hint)
    whole = (f"{known.variable}{'[]' if isinstance(known, Kleene) else ''}" for known in variables.values())
    fix = f"write {strategy.value}({listed(whole)})"
    named: set[str] = set()
    for child in chosen:
        variable, brackets = str(child.children[0]), child.children[1]
        offset = offset_of(child)
        if variable not in variables:
            what = f"the variable `{variable}` is not bound by the pattern"
            raise QueryFault(offset, what, did_you_mean(variable, variables, fix))
        if variable in named:
            raise QueryFault(offset, f"the strategy names `{variable}` twice", fix)
        if brackets is not None and not isinstance(variables[variable], Kleene):
            raise QueryFault(offset, f"`{variable}` binds one event, it has no `[]`", fix)
        named.add(variable)
    if missing := [variable for variable in variables if variable not in named]:
        what = f"the strategy does not name {listed(f'`{variable}`' for variable in missing)}"
        raise QueryFault(offset_of(name), f"{what}: it lists all variables, negated ones too", fix)
    return strategy


def _conditions(
    selection: Tree[Token], checker: ReferenceChecker
) -> tuple[tuple[Equivalence, ...], tuple[Condition, ...]]:
    braces: Any = selection.children[-1]
    equivalences: dict[Equivalence, None] = {}  # in order, each once
    conditions: list[Condition] = []
    for conjunct in (conjunct for whole in braces.children for conjunct in _conjuncts(to_syntax(whole))):
        if isinstance(conjunct, ast.List):
            equivalences.update(dict.fromkeys(_equivalences(conjunct, checker)))
        else:
            conditions.append(Condition(checker.condition(conjunct), offset=conjunct.col_offset))
    return tuple(equivalences), tuple(conditions)


def _conjuncts(node: ast.expr) -> Iterator[ast.expr]:
    """The operands of the AND, a chained comparison as the AND of its parts."""
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        for value in node.values:
            yield from _conjuncts(value)
    elif isinstance(node, ast.Compare) and len(node.ops) > 1:
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            part = ast.Compare(left, [operator], [right])
            part.col_offset = left.col_offset
            yield part
            left = right
    else:
        yield node


def _equivalences(node: ast.List, checker: ReferenceChecker) -> Iterator[Equivalence]:
    if not node.elts:
        raise QueryFault(node.col_offset, "`[ ]` names no attribute", "write `[symbol]`, equal in all events")
    for item in node.elts:
        if not isinstance(item, ReferenceSyntax) or item.index is not None:
            fix = "write `[symbol]`: an attribute that is equal in all events"
            raise QueryFault(item.col_offset, "`[ ]` holds names of attributes", fix)
        path = (item.variable, *item.path)
        if path[0] in EVENT_ATTRIBUTES and len(path) > 1:
            raise QueryFault(item.col_offset, f"`{path[0]}` is the event's own and has no fields", f"write [{path[0]}]")
        if path[0] not in EVENT_ATTRIBUTES:
            _check_equal_types(item, path, checker)
        yield Equivalence(path, offset=item.col_offset)


def _check_equal_types(item: ReferenceSyntax, path: tuple[str, ...], checker: ReferenceChecker) -> None:
    """Every component has the attribute, and no two types of it that never are equal."""
    kinds = {checker.declared(item, variable, path) for variable in checker.variables.values()} - {Type.ANY}
    if Type.LIST in kinds:
        raise QueryFault(item.col_offset, "lists cannot be compared", "name an attribute that is no list")
    if len(kinds) > 1 and not kinds <= NUMBERS:
        what = f"`{'.'.join(path)}` is {one_of(str(kind) for kind in kinds)}, which never are equal"
        raise QueryFault(item.col_offset, what, "name an attribute of one type in all events")


def _window(tree: Tree[Token] | None, unit: FleetUnit) -> Window:
    if tree is None or tree.data == "without_window":
        return None
    children: list[Any] = tree.children
    number, word = children
    offset = offset_of(number)
    fix = "write WITHIN 5 minutes or WITHIN 500 events; units go from ns to days"
    said = None if word is None else str(word).lower()
    if said is None or said not in {*UNITS, *EVENTS}:
        what = "the window has no unit" if said is None else f"`{word}` is not a unit of time"
        raise QueryFault(offset if word is None else offset_of(word), what, did_you_mean(said or "", UNITS, fix))
    if not _DECIMAL.fullmatch(number):
        raise QueryFault(offset, f"the length of a window is a decimal number, not `{number}`", fix)
    of_time = said not in EVENTS
    size = convert(Fraction(str(number)), UNITS[said] if of_time else unit, unit)
    if size is None:
        what = f"`{number} {word}` is not a whole number of {NAMES[unit] if of_time else 'events'}"
        raise QueryFault(offset, what, fix)
    if not 1 <= size <= INT_MAX:
        raise QueryFault(offset, "a window is at least 1, and at most 64 bits", fix)
    return TimeWindow(size, unit) if of_time else CountWindow(size)


def _check_window(query: Query, selection: Tree[Token], window: Tree[Token] | None) -> None:
    if query.strategy.skips and window is None:
        what = f"{query.strategy.value} without a window: every event would be kept for ever"
        raise QueryFault(offset_of(selection), what, "add `WITHIN 1 hour`, or say `WITHOUT WINDOW`")
    if isinstance(query.window, TimeWindow):
        return
    for component, word in ((query.components[0], "leading"), (query.components[-1], "trailing")):
        if isinstance(component, Negated):
            what = f"the {word} negation of `{component.variable}` has no bound in time"
            raise QueryFault(component.offset, what, "add a window of time such as `WITHIN 1 hour`")


def _returns(tree: Tree[Token] | None, text: str, checker: ReferenceChecker) -> Iterator[ReturnItem]:
    """`RETURN item, item`: the delimiters between the items are where their texts begin and end."""
    children: list[Any] = [] if tree is None else tree.children
    names: set[str] = set()
    for at in range(1, len(children), 2):
        expression, _, name = children[at].children
        begin = children[at - 1].end_pos
        end = children[at + 1].start_pos if at + 1 < len(children) else len(text)
        syntax = to_syntax(expression)
        called = _plain_text(text[begin:end]) if name is None else check_name(name, "a name")
        if called in names:
            raise QueryFault(syntax.col_offset, f"two values are named `{called}`", "name one of them with AS")
        names.add(called)
        yield ReturnItem(called, checker.value(syntax), offset=syntax.col_offset)


def _plain_text(written: str) -> str:
    """On one line, without comments: one space stands for all between two words."""
    return _SPACE.sub(lambda found: found[1] or " ", written).strip()
