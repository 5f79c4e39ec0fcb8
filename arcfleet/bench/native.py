"""The engine that is measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from afa import Engine
from afa.engine import native_profile
from afa.pattern import Pattern


def open_native(patterns: Sequence[Pattern], *, net: str, bindings: bool = True) -> Any:
    """A new native engine."""
    make: Any = Engine
    return make(patterns, engine="native", net=net, bindings=bindings)


def check_build() -> None:
    """Raises OSError if the native module was built for debugging: its speed means nothing."""
    if native_profile() != "release":
        raise OSError(f"the native engine is a {native_profile()} build; install a release build (make setup)")
