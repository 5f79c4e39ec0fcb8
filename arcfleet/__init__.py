"""What users of Arcfleet import and run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from arcfleet.builder import ANY, QueryBuilder, any_order, choose, event, fn, same, seq

__all__ = ["ANY", "QueryBuilder", "any_order", "choose", "event", "fn", "same", "seq"]


def __getattr__(name: str) -> Any:
    """The builder is imported when it is asked for: every command of `arcfleet` imports this package."""
    if name not in __all__:
        raise AttributeError(f"module 'arcfleet' has no attribute {name!r}")
    from arcfleet import builder  # noqa: PLC0415 - the reason above

    return getattr(builder, name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
