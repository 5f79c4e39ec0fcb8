"""One arc from its body, as it stands in a document or in a change record."""

from __future__ import annotations

from typing import Final

from afa.expression import Expression, ExpressionError, Scope, Type, compile_expression
from afa.pattern import ALWAYS, Arc, Lifetime, Pattern
from afa.reading import Fault, Fields, Path, check_int64, type_name

_LIFETIME_FIX: Final = "write [le, re] with integers or null"


def build_arc(body: object, pattern: Pattern, path: Path, *, lifetime_inside: bool, lifetime: Lifetime = ALWAYS) -> Arc:
    """A checked arc. In a document the lifetime stands in the body, in a change record beside it. Raises Fault."""
    fields = Fields(body, path, "an arc")
    arc_id = fields.name("id")
    epsilon = bool(fields.take("epsilon", bool))
    if lifetime_inside:
        lifetime = read_lifetime(fields.any("valid"), (*path, "valid")) if fields.has("valid") else ALWAYS
    scope = pattern.scope(sees_event=not epsilon)
    arc = Arc(
        id=arc_id,
        source=fields.name("from"),
        target=fields.name("to"),
        fence=_expression(fields.values.get("when", True), (*path, "when"), scope, Type.BOOL),
        transfer=_transfer(fields, scope),
        lifetime=lifetime,
        epsilon=epsilon,
        final=bool(fields.take("final", bool)),
    )
    fields.has("when")
    fields.done()
    return arc


def read_lifetime(value: object, path: Path) -> Lifetime:
    """`[le, re)` from a pair of integers or nulls. Raises Fault."""
    if not isinstance(value, list) or len(value) != 2:
        raise Fault(path, f"a lifetime is a pair, this is {type_name(value)}", _LIFETIME_FIX)
    for index, end in enumerate(value):
        if end is not None and type(end) is not int:
            raise Fault(
                (*path, index), f"the end of a lifetime is an integer or null, not {type_name(end)}", _LIFETIME_FIX
            )
        if end is not None:
            check_int64(end, (*path, index), "the end of a lifetime")
    le, re = value
    return Lifetime(ALWAYS.le if le is None else le, ALWAYS.re if re is None else re)


def _transfer(fields: Fields, scope: Scope) -> tuple[tuple[str, Expression], ...]:
    body = fields.take("set", dict) or {}
    path = (*fields.path, "set")
    transfer = []
    for name, value in sorted(body.items()):
        if name not in scope.registers:
            fix = "declare it under `registers:` with its initial value"
            raise Fault((*path, name), f"the register `{name}` is not declared", fix, at_key=True)
        transfer.append((name, _expression(value, (*path, name), scope, scope.registers[name])))
    return tuple(transfer)


def _expression(value: object, path: Path, scope: Scope, expected: Type) -> Expression:
    """From text, or from a bare YAML value such as `when: true` or `set: {n: 0}`."""
    if isinstance(value, bool | int | float):
        text = str(value).lower()
    elif isinstance(value, str):
        text = value
    else:
        raise Fault(path, f"an expression is a text, this is {type_name(value)}", "write it in quotes")
    return read_expression(text, path, scope, expected)


def read_expression(text: str, path: Path, scope: Scope, expected: Type) -> Expression:
    """A checked expression, its mistakes as Faults at their offset."""
    try:
        return compile_expression(text, scope, expected)
    except ExpressionError as error:
        raise Fault(path, error.what, error.fix, offset=error.offset) from None
