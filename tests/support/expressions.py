"""Short ways to compile and evaluate expressions."""

from __future__ import annotations

from typing import Any

import pytest

from afa.evaluate import evaluate
from afa.expression import Expression, ExpressionError, Scope, Type, compile_expression
from afa.records import Event

REGISTERS = {"n": Type.INT, "f": Type.FLOAT, "s": Type.STRING, "b": Type.BOOL}
VALUES = {"n": 3, "f": 0.5, "s": "text", "b": True}
DECLARED = {
    ("price",): Type.FLOAT,
    ("count",): Type.INT,
    ("name",): Type.STRING,
    ("ok",): Type.BOOL,
    ("path",): Type.LIST,
    ("at", "floor"): Type.INT,
}


def compiled(text: str, expected: Type | None = None, fields: Any = None) -> Expression:
    return compile_expression(text, Scope(fields, REGISTERS), expected)


def value(text: str, data: dict[str, Any] | None = None, fields: Any = None) -> Any:
    """What the expression is worth for an event with this data; None is unknown."""
    event = Event(key="k", ts=7, id="e1", type="buy", data=data or {})
    return evaluate(compiled(text, fields=fields).root, event, VALUES)


def refusal(text: str, expected: Type | None = None, fields: Any = None, *, sees_event: bool = True) -> ExpressionError:
    with pytest.raises(ExpressionError) as caught:
        compile_expression(text, Scope(fields, REGISTERS, sees_event), expected)
    return caught.value
