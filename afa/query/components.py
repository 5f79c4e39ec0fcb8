"""Lark's tree of SEQ(...) to components."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from afa.errors import did_you_mean
from afa.expression.tree import INT_MAX
from afa.query.faults import QueryFault
from afa.query.limits import MAX_SET_MEMBERS
from afa.query.syntax import literal_value, offset_of
from afa.query.tree import Component, EventSet, Kleene, Negated, Single, Variable
from afa.reading import MAX_NAME_CHARACTERS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lark import Token
    from lark.tree import Tree

# They would be read as something else at the beginning of an expression, or confuse every reader.
RESERVED: Final = frozenset({"and", "or", "not", "in", "if", "else", "true", "false", "null", "none"})


def build_components(sequence: Tree[Token]) -> tuple[Component, ...]:
    """Raises QueryFault. Variables are unique, and at least one component binds events."""
    components = tuple(_component(child) for child in sequence.children)
    seen: set[str] = set()
    for component in components:
        for variable in component.members if isinstance(component, EventSet) else (component,):
            if variable.variable in seen:
                what = f"the variable `{variable.variable}` is there twice"
                raise QueryFault(variable.offset, what, "give each component a variable of its own")
            seen.add(variable.variable)
    if all(isinstance(component, Negated) for component in components):
        raise QueryFault(components[0].offset, "no component binds an event", "add one that is not negated")
    return components


def check_types(variables: Iterable[Variable], declared: Iterable[str] | None) -> None:
    """With `events:`, every type that a component names has to be there."""
    known = None if declared is None else set(declared)
    for variable in variables:
        name = variable.event_type
        if known is not None and name is not None and name not in known:
            hint = did_you_mean(name, known, "declare it under `events:`, or write ANY for every type")
            raise QueryFault(variable.offset, f"the event type `{name}` is not declared", hint)


def _component(tree: Any) -> Component:
    if tree.data != "event_set":
        return _variable(tree)
    members = tuple(_member(child) for child in tree.children)
    if len(members) > MAX_SET_MEMBERS:
        what = f"a set of more than {MAX_SET_MEMBERS} members (max_set_members)"
        raise QueryFault(members[MAX_SET_MEMBERS].offset, what, "divide it into several sets or queries")
    return EventSet(members, offset=offset_of(tree))


def _member(tree: Any) -> Single | Kleene:
    if tree.data == "event_set":
        raise QueryFault(offset_of(tree), "a set in a set", "write all its members in one set")
    member = _variable(tree)
    if isinstance(member, Negated):
        fix = "put the negation before or after the set"
        raise QueryFault(offset_of(tree), "a set has no negated members", fix)
    return member


def _variable(tree: Tree[Token]) -> Variable:
    parts: list[Any] = tree.children
    negation, event_type, quantifier, name, brackets = parts
    offset = offset_of(tree)
    kind = _event_type(event_type.children[0])
    variable = check_variable_name(name)
    if negation is not None:
        if quantifier is not None or brackets is not None:
            what = "a negated component is about one event: it has no `+`, no count and no `[]`"
            raise QueryFault(offset_of(quantifier) if quantifier is not None else offset_of(name), what, "write `~T v`")
        return Negated(variable, kind, offset=offset)
    if quantifier is None:
        if brackets is not None:
            fix = f"write `T+ {variable}[]` for several events, `T {variable}` for one"
            raise QueryFault(offset_of(name), f"`{variable}[]` binds several events, its type has no `+`", fix)
        return Single(variable, kind, offset=offset)
    least, most = _bounds(quantifier)
    if brackets is None:
        what = f"a component with `+` or a count binds several events: `{variable}` needs `[]`"
        raise QueryFault(offset_of(name), what, f"write `{variable}[]`")
    return Kleene(variable, kind, least, most, offset=offset)


def _event_type(token: Token) -> str | None:
    if token.type == "ANY":
        return None
    return check_name(token, "an event type")


def check_name(token: Token, what: str) -> str:
    """A NAME, or a STRING that names something. Raises QueryFault."""
    name = str(literal_value(token)) if token.type == "STRING" else str(token)
    if not 1 <= len(name) <= MAX_NAME_CHARACTERS:
        length = f"{what} has 1 to {MAX_NAME_CHARACTERS} characters, this has {len(name)}"
        raise QueryFault(offset_of(token), length, "choose a shorter name" if name else "give it a name")
    if any(ord(character) < 32 or ord(character) == 127 or "\ud800" <= character <= "\udfff" for character in name):
        raise QueryFault(offset_of(token), f"{what} has no control characters", "delete them")
    return name


def check_variable_name(token: Token) -> str:
    name = check_name(token, "a variable")
    if name.lower() in RESERVED:
        raise QueryFault(offset_of(token), f"`{name}` is a word of the language", "choose another name")
    return name


def _bounds(quantifier: Tree[Token]) -> tuple[int, int | None]:
    """Of `+` and `{m,n}`; whatever else people write is refused with what is meant."""
    children: list[Any] = quantifier.children
    first, *rest = children
    offset = offset_of(first)
    if first == "+":
        return 1, None
    if first in ("*", "?"):
        what = f"a component cannot be empty, so there is no `{first}`"
        raise QueryFault(offset, what, "write `+`, or a second query without the component")
    numbers = [literal_value(token) for token in rest[1:] if token is not None]
    least = literal_value(first)
    if rest[0] is None or not numbers:
        raise QueryFault(offset, "a count has two bounds", f"write {{{first},{first}}}, or `+` for no upper bound")
    most = numbers[0]
    if not (isinstance(least, int) and isinstance(most, int)) or most > INT_MAX:
        raise QueryFault(offset, "the bounds of a count are whole numbers of 64 bits", "write {2,5}")
    if least < 1:
        fix = f"write {{1,{max(most, 1)}}}, or a second query without the component"
        raise QueryFault(offset, "a component cannot be empty: its count begins at 1", fix)
    if most < least:
        raise QueryFault(offset, f"no count is both {least} or more and {most} or fewer", f"write {{{most},{least}}}")
    return least, most
