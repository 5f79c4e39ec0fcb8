"""Lengths of event time as people write them: a number in the unit of `ts`, or `500ms`, `5s`, `12h`."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

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
    length = Fraction(found[1]) * NANOSECONDS[found[2]] / NANOSECONDS[unit]
    if length.denominator != 1:
        raise ValueError(f"`{text}` is not a whole number of {unit}")
    return int(length)
