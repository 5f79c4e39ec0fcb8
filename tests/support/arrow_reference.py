"""A stand-in for the native engine: the reference, fed with Arrow batches or JSON lines, net per record."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from afa.pattern import Pattern
from afa.records import Change, MatchChange
from afa.reference import ReferenceEngine
from afa.tape import TapeLine

_OF_THE_RECORD = {"key", "ts", "id", "seq", "rev", "op", "type", "arc"}


class ArrowChanges:
    def __init__(self, changes: list[Change], late: list[tuple[int, str]], bindings: bool) -> None:
        self.bindings = bindings
        self.changes = [change for change in changes if isinstance(change, MatchChange)]
        self.late = late
        self.bad: list[tuple[int, str]] = []

    def to_arrow(self, ids: bool = False) -> pa.RecordBatch:
        columns = {
            "op": pa.array([change.op for change in self.changes], pa.string()),
            "pattern": pa.array([change.match.pattern for change in self.changes], pa.string()),
            "start": pa.array([change.match.start for change in self.changes], pa.int64()),
            "end": pa.array([change.match.end for change in self.changes], pa.int64()),
        }
        if self.bindings and any(change.match.bindings is not None for change in self.changes):
            columns["bindings"] = pa.array([json.dumps(change.as_json()["bindings"]) for change in self.changes])
        if ids:
            columns["match"] = pa.array([change.id for change in self.changes], pa.string())
        return pa.RecordBatch.from_pydict(columns)


class ArrowReference:
    def __init__(self, patterns: Sequence[Pattern], *, net: str, bindings: bool = True) -> None:
        assert net in {"record", "batch"}
        self.bindings = bindings
        self.engine = ReferenceEngine(patterns)
        self.fed = 0

    def feed(self, batch: pa.RecordBatch | list[bytes]) -> ArrowChanges:
        lines = batch if isinstance(batch, list) else [json.dumps(record_of(row)).encode() for row in batch.to_pylist()]
        changes: list[Change] = []
        late = []
        for index, line in enumerate(lines):
            step = self.engine.feed(TapeLine("<batch>", self.fed, line).read())
            self.fed += 1
            changes += step.changes
            if step.late:
                late.append((index, step.late))
        return ArrowChanges(changes, late, self.bindings)

    def change_arc(self, record: dict[str, Any]) -> ArrowChanges:
        return self.feed([json.dumps(record).encode()])


def record_of(row: dict[str, Any]) -> dict[str, Any]:
    """A row as a tape's record."""
    if row.get("arc") is not None:
        record: dict[str, Any] = json.loads(row["arc"])
        return record
    record = {name: value for name, value in row.items() if name in _OF_THE_RECORD and value is not None}
    data = {name: value for name, value in row.items() if name not in _OF_THE_RECORD and value is not None}
    return record | ({"data": data} if data else {})
