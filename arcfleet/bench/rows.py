"""One row of the table: what was measured, and whether it is enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from arcfleet.bench.settings import TARGETS, Target

FIRST_ROWS = ("q1", "q3")  # a build that misses their floors proves nothing by being even with itself


@dataclass(frozen=True)
class Row:
    """The result of one workload. `ratio` is None where the yardstick could not be had."""

    name: str
    events: int
    matches: int
    ratio: float | None
    spread: float | None
    seconds: float  # CPU, of the engine's timed part in the median run
    engine_ns: float | None = None  # per event
    yardstick_ns: float | None = None
    python_ns: float | None = None
    note: str = ""
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def target(self) -> Target:
        return TARGETS[self.name]

    @property
    def meets_floor(self) -> bool | None:
        return None if self.ratio is None else self.target.reached(self.ratio, self.target.floor)

    @property
    def meets_aim(self) -> bool | None:
        return None if self.ratio is None else self.target.reached(self.ratio, self.target.aim)

    def as_json(self) -> dict[str, Any]:
        target = self.target
        return {
            "name": self.name,
            "matches": self.matches,
            "ratio": self.ratio,
            "spread": self.spread,
            "floor": target.floor,
            "aim": target.aim,
            "seconds": self.seconds,
            "better": target.better,
            "met": self.meets_floor,
            "yardstick": target.yardstick,
            "events": self.events,
            "engine_ns": self.engine_ns,
            "yardstick_ns": self.yardstick_ns,
            "python_ns": self.python_ns,
            "note": self.note,
            **self.more,
        }


def first_rows_hold(rows: Sequence[Row]) -> bool | None:
    """Whether q1 and q3 meet their floors; None if one of them was not measured."""
    met = [row.meets_floor for name in FIRST_ROWS for row in rows if row.name == name]
    return None if len(met) < len(FIRST_ROWS) or None in met else all(met)
