"""The one door to the native engine: no other module imports `afa._native`."""

from __future__ import annotations

from afa import _native


def native_version() -> str:
    """The version that the native engine was built as; equal to the wheel's."""
    return _native.version()


def native_profile() -> str:
    """`release`, or `debug` for a build that no benchmark should measure."""
    return _native.build_profile()
