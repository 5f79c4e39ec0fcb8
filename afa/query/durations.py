"""The words for units of time in WITHIN, singular and plural."""

from __future__ import annotations

from typing import Final

from afa.durations import NANOSECONDS

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
EVENTS: Final = frozenset({"event", "events"})
_PRINTED: Final = (("d", "day"), ("h", "hour"), ("m", "minute"), ("s", "second"))


def print_duration(milliseconds: int) -> str:
    """In the largest unit that gives a whole number: `12 hours`."""
    for unit, word in _PRINTED:
        count, rest = divmod(milliseconds, NANOSECONDS[unit] // NANOSECONDS["ms"])
        if not rest:
            return f"{count} {word}" + ("s" if count != 1 else "")
    return f"{milliseconds} ms"
