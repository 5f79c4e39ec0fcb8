"""What users of Arcfleet import and run."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from arcfleet.builder import ANY, QueryBuilder, any_order, choose, event, fn, same, seq
    from arcfleet.expansion import expand

__all__ = ["ANY", "QueryBuilder", "any_order", "choose", "event", "expand", "fn", "same", "seq"]


def __getattr__(name: str) -> Any:
    """They are imported when they are asked for: every command of `arcfleet` imports this package."""
    if name not in __all__:
        raise AttributeError(f"module 'arcfleet' has no attribute {name!r}")
    module = import_module("arcfleet.expansion" if name == "expand" else "arcfleet.builder")
    return getattr(module, name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
