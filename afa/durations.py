"""Lengths of event time as people write them: a number in the unit of `ts`, or `500ms`, `5s`, `12h`."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final, Literal, TypeAlias

# What `ts` may count.
FleetUnit: TypeAlias = Literal["ms", "us", "ns"]
FLEET_UNITS: Final[tuple[FleetUnit, ...]] = ("ms", "us", "ns")

NANOSECONDS: Final = {
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3_600 * 10**9,
    "d": 86_400 * 10**9,
}
_DURATION: Final = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?) ?(ns|us|ms|s|m|h|d)")


def parse_duration(text: str, unit: str = "ms") -> int:
    """The length in `unit`. Raises ValueError with a message for people."""
    found = _DURATION.fullmatch(text)
    if not found:
        raise ValueError(f"`{text}` is not a duration: write a number and ns, us, ms, s, m, h or d, such as `5s`")
    length = convert(Fraction(found[1]), found[2], unit)
    if length is None:
        raise ValueError(f"`{text}` is not a whole number of {unit}")
    return length


def convert(number: Fraction, unit: str, wanted: str) -> int | None:
    """The length in another unit; None if it is no whole number there."""
    length = number * NANOSECONDS[unit] / NANOSECONDS[wanted]
    return int(length) if length.denominator == 1 else None
