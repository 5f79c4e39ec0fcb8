"""What a batch led to: changes in order, and the records that were bad or late."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final

from afa.reading import Fault
from afa.records import Change, EmittedPunctuation, Graph, GraphChange, Match, MatchChange, Timeout

Told = tuple[int, Change]  # the index of the record that led to it, and the change
Encoded = tuple[bytes | None, bytes, list[tuple[str, bytes]]]  # key, value, headers: ready to produce

_NOT_ASKED: Final = "the engine has `bindings=False`: there are no match ids and no bindings; take to_arrow(ids=False)"
_TEXT_COLUMNS: Final = ("op", "pattern", "key", "state", "first", "last", "registers", "bindings", "match")


class Changes:
    """Changes in order; `bad` and `late` list records by their index in the batch, with the reason."""

    faults: Mapping[int, Fault] = MappingProxyType({})  # of bad records: where in the record, for those that know

    def __init__(self, told: list[Told], bad: list[tuple[int, str]], late: list[tuple[int, str]]) -> None:
        self.told = told  # each change with the index of the record that led to it, which net per batch does not say
        self.bad = bad
        self.late = late

    @property
    def changes(self) -> list[Change]:
        """In order."""
        return [change for _, change in self.told]

    def __iter__(self) -> Iterator[Change]:
        return iter(self.changes)

    def __len__(self) -> int:
        return len(self.told)

    def to_records(self) -> list[dict[str, Any]]:
        """As `arcfleet replay` prints them."""
        return [change.as_json() for change in self.changes]

    def encoded(self) -> list[Encoded]:
        """As they go to the matches topic."""
        return [encode(change) for change in self.changes]

    @property
    def partitions(self) -> list[int]:
        """For each change in order, as in `encoded()`: the partition of its key, or that a punctuation is about; 0 for
        records that came without one."""
        return [0] * len(self)

    def to_arrow(self, ids: bool = False) -> Any:
        """A pyarrow.RecordBatch: op, pattern, key, start, end, until, state, first, last, registers and bindings (JSON
        text); `match` with ids. A punctuation has only `op`, `pattern` and, as `end`, its time. Of a compressed query
        `bindings` is the graph."""
        pyarrow = import_pyarrow()
        columns: dict[str, list[Any]] = {
            name: [] for name in ("op", "pattern", "key", "start", "end", "until", "state", "first", "last")
        }
        columns |= {"registers": [], "bindings": []} | ({"match": []} if ids else {})
        for change in self.changes:
            row = _row(change)
            for name, column in columns.items():
                column.append(row.get(name))
        arrays = [
            pyarrow.array(column, pyarrow.string() if name in _TEXT_COLUMNS else pyarrow.int64())
            for name, column in columns.items()
        ]
        return pyarrow.RecordBatch.from_arrays(arrays, list(columns))


class NativeChanges(Changes):
    """The same, read from the native engine only as far as asked for."""

    def __init__(self, native: Any, registers: dict[str, list[str]]) -> None:
        self._native = native
        self._registers = registers

    @cached_property
    def told(self) -> list[Told]:  # type: ignore[override]  # can be set, but mypy does not know
        return [_told(row, self._registers) for row in self._native.rows()]

    @cached_property
    def bad(self) -> list[tuple[int, str]]:  # type: ignore[override]  # can be set, but mypy does not know
        return self._native.bad()  # type: ignore[no-any-return]

    @cached_property
    def late(self) -> list[tuple[int, str]]:  # type: ignore[override]  # can be set, but mypy does not know
        return self._native.late()  # type: ignore[no-any-return]

    def __len__(self) -> int:
        return len(self._native)

    def encoded(self) -> list[Encoded]:
        told = []
        for op, _, pattern, key, _, match, value in self._native.encoded():
            told.append((None if key is None else key.encode(), value, _headers(op, pattern, match)))
        return told

    @property
    def partitions(self) -> list[int]:
        return self._native.partitions()  # type: ignore[no-any-return]

    def to_arrow(self, ids: bool = False) -> Any:
        try:
            return self._native.arrow(ids)
        except ImportError:
            import_pyarrow()
            raise


class ChangesWithoutBindings(NativeChanges):
    """Of an engine that was not asked what the matches of queries bind: their ids, which say it, are not known."""

    @cached_property
    def told(self) -> list[Told]:  # type: ignore[override]  # as in the class above
        raise ValueError(_NOT_ASKED)

    def encoded(self) -> list[Encoded]:
        raise ValueError(_NOT_ASKED)

    def to_arrow(self, ids: bool = False) -> Any:
        if ids:
            raise ValueError(_NOT_ASKED)
        return super().to_arrow()


def import_pyarrow() -> Any:
    try:
        import pyarrow  # noqa: PLC0415 - heavy, and only for those who ask
    except ImportError:
        raise ImportError("this needs pyarrow: pip install 'arcfleet[arrow]'") from None
    return pyarrow


def _told(row: tuple[Any, ...], registers: dict[str, list[str]]) -> Told:
    if row[0] == "punctuation":
        _, record, pattern, ts, _ = row
        return record, EmittedPunctuation(pattern, ts)
    if row[0] == "graph":
        _, record, pattern, key, (end, last), degraded, text = row
        graph = Graph.of_json(json.loads(text))
        return record, GraphChange(pattern, key, end, last, graph, degraded=degraded)
    if row[0] == "timeout":
        _, record, pattern, key, (start, until), reached, bound = row
        begun = tuple((name, tuple(events)) for name, events in bound if events)
        return record, Timeout(pattern, key, start, until, reached, begun)
    op, record, pattern, key, (start, end, until), state, values, (first, last), degraded, identity, bound = row
    named = tuple(zip(registers[pattern], values, strict=True))
    bindings = None if bound is None else tuple((name, tuple(events)) for name, events in bound)
    match = Match(pattern, key, start, end, until, state, named, first, last, bindings)
    return record, MatchChange(op, match, identity, degraded)


def _row(change: Change) -> dict[str, Any]:
    row: dict[str, Any] = change.as_json()
    if isinstance(change, EmittedPunctuation):
        return {"op": "punctuation", "pattern": change.pattern, "end": change.ts}
    if isinstance(change, GraphChange):
        return row | {"last": change.last, "bindings": _json(row["graph"])}
    texts = {name: _json(row[name]) for name in ("registers", "bindings") if name in row}
    events: dict[str, Any] = row.get("events", {})
    return row | events | texts


def encode(change: Change) -> Encoded:
    """One change as it goes to the matches topic."""
    value = _json(change.as_json()).encode()
    if isinstance(change, MatchChange):
        return change.match.key.encode(), value, _headers(change.op, change.match.pattern, change.id)
    if isinstance(change, GraphChange):
        return change.key.encode(), value, _headers(change.op, change.pattern, change.id)
    if isinstance(change, Timeout):
        return change.key.encode(), value, _headers("timeout", change.pattern, None)
    return None, value, _headers("punctuation", change.pattern, None)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _headers(op: str, pattern: str, match: str | None) -> list[tuple[str, bytes]]:
    headers = [("op", op.encode()), ("pattern", pattern.encode()), ("content-type", b"application/json")]
    return headers + ([] if match is None else [("match", match.encode())])
