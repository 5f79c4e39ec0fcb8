"""Events of the rows of the worker: keys uniform, each with a live partial match nearly always, one in a hundred events
ends one; JSON of some hundred bytes. And what is found in them, counted by a loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

OPEN, HIT = 0, 99
HIT_MARK: Final = b'"x":99,'
_OPEN_EVERY: Final = 10  # events of a key
_HIT_SHARE: Final = 0.01
_PER_MS: Final = 100  # events: 100,000 a second of event time
PATTERN: Final = "ticks"


@dataclass(frozen=True)
class Ticks:
    """A stream; `key` and `x` by position."""

    keys: int
    key: NDArray[np.int64]
    x: NDArray[np.int64]

    @classmethod
    def drawn(cls, count: int, keys: int, seed: int) -> Ticks:
        """Each key opens a partial match with its first event, its eleventh, and so on."""
        generator = np.random.default_rng([seed, 9])
        key = generator.integers(0, keys, count)
        order = np.argsort(key, kind="stable")
        starts = np.searchsorted(key[order], np.arange(keys))
        nth = np.empty(count, np.int64)
        nth[order] = np.arange(count) - starts[key[order]]
        drawn = generator.random(count)
        x = np.where(drawn < _HIT_SHARE * _OPEN_EVERY / (_OPEN_EVERY - 1), HIT, 1 + (drawn * 97).astype(np.int64))
        return cls(keys, key, np.where(nth % _OPEN_EVERY == 0, OPEN, x))

    @property
    def window_ms(self) -> int:
        return max(1, self.keys * _OPEN_EVERY // _PER_MS)

    def document(self) -> dict[str, Any]:
        """The pattern: an opening event, and one that ends it within the window."""
        return {
            "pattern": PATTERN,
            "within": self.window_ms,
            "start": "s",
            "final": ["f"],
            "registers": {},
            "arcs": [
                {"id": "open", "from": "s", "to": "m", "when": f"e.x == {OPEN}"},
                {"id": "wait", "from": "m", "to": "m", "when": "true"},
                {"id": "hit", "from": "m", "to": "f", "when": f"e.x == {HIT}"},
            ],
        }

    def records(self, begin: int, end: int) -> Iterator[tuple[bytes, bytes]]:
        """Keys and values of the events at some positions."""
        for number in range(begin, end):
            yield b"k%07d" % self.key[number], _value(number, self.x[number])

    def matches(self) -> int:
        """How many there are: a hit ends every opening of its key that is younger than the window."""
        opened: dict[int, list[int]] = {}
        found = 0
        relevant = np.flatnonzero((self.x == OPEN) | (self.x == HIT))
        for number in relevant.tolist():
            ts, key = number // _PER_MS, int(self.key[number])
            live = opened.setdefault(key, [])
            if self.x[number] == OPEN:
                live.append(ts)
            else:
                live[:] = [start for start in live if start + self.window_ms > ts]
                found += len(live)
        return found


def _value(number: int, x: int) -> bytes:
    return b'{"id":"e%09d","ts":%d,"type":"tick","data":{"x":%d,"price":%d.25,"venue":"XNAS","size":100}}' % (
        number,
        number // _PER_MS,
        x,
        10 + number % 90,
    )
