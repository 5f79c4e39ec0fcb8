"""The words for units of time in WITHIN, singular and plural."""

from __future__ import annotations

from typing import Final

from afa.durations import NANOSECONDS, FleetUnit

_WORDS: Final = {
    "ns": ("nanosecond", "nanoseconds"),
    "us": ("microsecond", "microseconds"),
    "ms": ("msec", "msecs", "millisecond", "milliseconds"),
    "s": ("sec", "secs", "second", "seconds"),
    "m": ("min", "mins", "minute", "minutes"),
    "h": ("hr", "hrs", "hour", "hours"),
    "d": ("day", "days"),
}
UNITS: Final = {word: unit for unit, words in _WORDS.items() for word in (unit, *words)}
NAMES: Final = {unit: words[-1] for unit, words in _WORDS.items()}
EVENTS: Final = frozenset({"event", "events"})
_PRINTED: Final = (("d", "day"), ("h", "hour"), ("m", "minute"), ("s", "second"))
_PRINTED_SHORT: Final = ("ms", "us", "ns")


def print_duration(length: int, unit: FleetUnit) -> str:
    """In the largest unit that gives a whole number: `12 hours`."""
    nanoseconds = length * NANOSECONDS[unit]
    for larger, word in _PRINTED:
        count, rest = divmod(nanoseconds, NANOSECONDS[larger])
        if not rest:
            return f"{count} {word}" + ("s" if count != 1 else "")
    short = next(short for short in _PRINTED_SHORT if not nanoseconds % NANOSECONDS[short])
    return f"{nanoseconds // NANOSECONDS[short]} {short}"
