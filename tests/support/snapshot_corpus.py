"""The snapshots kept in `tests/afa/snapshots`: what older builds wrote, and what must follow from it ever after.

`python tests/support/snapshot_corpus.py` writes the cases below that the folder of the current version does not have; a
file that is there is never written again.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from afa import Engine
from afa.document import build_pattern

FOLDER = Path(__file__).parents[1] / "afa" / "snapshots"
VERSION = "v1"

PUNCTUATION = {"op": "punctuation", "ts": 10}


def event(ts: int, event_id: str, x: Any, **more: Any) -> dict[str, Any]:
    return {"key": "k", "ts": ts, "id": event_id, "data": {"x": x}} | more


def retraction(ts: int, event_id: str, **more: Any) -> dict[str, Any]:
    return {"op": "retract", "key": "k", "ts": ts, "id": event_id} | more


def span(name: str, **more: Any) -> dict[str, Any]:
    """A 1, anything any number of times, a 2."""
    arcs = [
        {"id": "one", "from": "a", "to": "b", "when": "e.x == 1"},
        {"id": "any", "from": "b", "to": "b"},
        {"id": "two", "from": "b", "to": "z", "when": "e.x == 2"},
    ]
    return {"pattern": name, "start": "a", "final": ["z"], "within": 20, "arcs": arcs} | more


REGISTERS: dict[str, Any] = span("registers", registers={"n": 0, "mean": 0.0, "last": "", "odd": False})
REGISTERS["arcs"][1] |= {
    "set": {"n": "r.n + 1", "mean": "r.mean + e.x / 4", "last": "e.id", "odd": "not r.odd"},
}
ROW = {
    "pattern": "row",
    "start": "a",
    "final": ["d"],
    "within": 20,
    "arcs": [
        {"id": f"{source}{target}", "from": source, "to": target, "when": when}
        for source, target, when in (("a", "b", "e.x == 1"), ("b", "c", "e.x > 2"), ("c", "d", "e.x == 2"))
    ],
}
NESTED = {"x": None, "list": [1, 2.5, "t", [True]], "in": {"z": -1, "a": ""}}
BEFORE = [event(8, "s", 1), event(9, "t", 7), PUNCTUATION, event(12, "v", 4), event(11, "u", 3)]
LATER = [event(10, "w", 5), event(13, "x", 2), retraction(12, "v"), event(12, "v", 6, rev=1)]

# name: patterns, the tape before the snapshot of the key `k`, the records after it
CASES: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]] = {
    "span": ([span("p")], BEFORE, LATER),
    "registers": ([REGISTERS], BEFORE, LATER),
    "row": ([ROW], [event(8, "s", 1), event(9, "t", 7), PUNCTUATION, event(12, "v", 4)], [event(11, "y", 2)]),
    "events": ([span("p", within="6 events")], BEFORE, LATER),
    "gaps": (
        [span("p", sequence="gap_free")],
        [event(8, "s", 1, seq=1), retraction(9, "t", seq=2), PUNCTUATION, event(12, "v", 4, seq=4)],
        [event(11, "u", 3, seq=3), event(13, "x", 2, seq=5), {"op": "punctuation", "ts": 20}],
    ),
    "held": (
        [span("p", hold="output")],
        [event(8, "s", 1), PUNCTUATION, event(12, "v", 2), event(14, "w", 2)],
        [retraction(12, "v"), {"op": "punctuation", "ts": 20}],
    ),
    "data": (
        [span("p")],
        [
            PUNCTUATION,
            event(10, "s", 1, type="buy", seq=-3, rev=2),
            {"key": "k", "ts": 11, "id": "é", "data": NESTED},
            retraction(12, "gone", rev=3, seq=9),
        ],
        [event(12, "gone", 2, rev=3), event(12, "gone", 2, rev=4)],
    ),
}


def engine_of(patterns: list[dict[str, Any]]) -> Engine:
    return Engine([build_pattern(pattern) for pattern in patterns])


def follow(engine: Engine, records: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """What is told after each record."""
    return [engine.feed([json.dumps(record).encode()]).to_records() for record in records]


def write(folder: Path) -> list[str]:
    """Writes the cases that are not there yet; the answer are their names."""
    folder.mkdir(parents=True, exist_ok=True)
    new = [name for name in CASES if not (folder / f"{name}.afas").exists()]
    for name in new:
        patterns, before, later = CASES[name]
        engine = engine_of(patterns)
        follow(engine, before)
        (folder / f"{name}.afas").write_bytes(engine.snapshot("k"))
        expected = {"hash": engine.state_hash("k"), "patterns": patterns, "later": later}
        expected |= {"changes": follow(engine, later)}
        (folder / f"{name}.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return new


if __name__ == "__main__":
    sys.stdout.write("".join(f"{VERSION}/{name}\n" for name in write(FOLDER / VERSION)))
