"""Streams as the engine takes them: Arrow batches, or JSON lines, with punctuations and arc changes in their place."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from arcfleet.bench.settings import BATCH_ROWS, PUNCTUATION_BEHIND, PUNCTUATION_EVERY
from arcfleet.bench.workloads import Codes, Ints, Stream

LINE_BYTES = 68
ONE_KEY = "YHOO"


@dataclass(frozen=True)
class Control:
    """A row that is no event: it comes when so many events have arrived."""

    after: int
    op: str
    ts: int | None = None
    arc: str | None = None  # the JSON text of a tape's line


def punctuations(stream: Stream) -> list[Control]:
    """One every 1,000 events, 1,000 behind the newest ts."""
    arriving = stream.ts[stream.order] if len(stream.order) else stream.ts
    newest = np.maximum.accumulate(arriving)
    positions = range(PUNCTUATION_EVERY, len(stream) + 1, PUNCTUATION_EVERY)
    return [Control(after, "punctuation", int(newest[after - 1]) - PUNCTUATION_BEHIND) for after in positions]


def record_batches(stream: Stream, arc_changes: Sequence[Control] = ()) -> list[pa.RecordBatch]:
    """Every batch stands alone: its keys are a dictionary of its own."""
    controls = sorted([*punctuations(stream), *arc_changes], key=lambda control: control.after)
    afters = np.array([control.after for control in controls], dtype=np.int64)
    events = np.arange(len(stream), dtype=np.int64)
    source = np.full(len(stream) + len(controls), -1, dtype=np.int64)  # per row: the event's position, or -1
    source[_event_rows(events, afters)] = stream.order if len(stream.order) else events
    of_controls = iter(controls)
    batches = []
    for start in range(0, len(source), BATCH_ROWS):
        rows = source[start : start + BATCH_ROWS]
        told = {int(row): next(of_controls) for row in np.flatnonzero(rows < 0)}
        batches.append(_record_batch(stream, rows, told, with_arcs=bool(arc_changes)))
    return batches


def numbers_fed(stream: Stream) -> Ints:
    """Of each event in order of arrival: how many records have been fed before, which makes its id."""
    afters = np.array([control.after for control in punctuations(stream)], dtype=np.int64)
    return _event_rows(np.arange(len(stream), dtype=np.int64), afters)


def _event_rows(events: Ints, afters: Ints) -> Ints:
    rows: Ints = events + np.searchsorted(afters, events, side="right")
    return rows


def _record_batch(stream: Stream, rows: Ints, controls: dict[int, Control], *, with_arcs: bool) -> pa.RecordBatch:
    no_event = rows < 0
    position = np.where(no_event, 0, rows)
    ts = stream.ts[position]
    ts_missing = np.zeros(len(rows), dtype=bool)
    for row, control in controls.items():
        ts[row], ts_missing[row] = control.ts or 0, control.ts is None
    columns: dict[str, pa.Array] = {
        "key": _keys(None if stream.key is None else stream.key[position], no_event),
        "ts": pa.array(ts, mask=ts_missing),
        "op": _texts(len(rows), {row: control.op for row, control in controls.items()}),
    }
    if stream.event_type is not None:
        columns["type"] = _texts(len(rows), dict.fromkeys(np.flatnonzero(~no_event), stream.event_type))
    if with_arcs:
        columns["arc"] = _texts(len(rows), {row: control.arc for row, control in controls.items()})
    if stream.sequence:
        columns["seq"] = pa.array(position + 1, mask=no_event)
    columns |= {name: pa.array(column[position], mask=no_event) for name, column in stream.columns.items()}
    return pa.RecordBatch.from_pydict(columns)


def _keys(codes: Codes | None, missing: Any) -> pa.Array:
    if codes is None:
        only = np.zeros(len(missing), dtype=np.int32)
        return pa.DictionaryArray.from_arrays(pa.array(only, mask=missing), [ONE_KEY])
    used, indices = np.unique(codes, return_inverse=True)
    names = [f"k{code:06d}" for code in used]
    return pa.DictionaryArray.from_arrays(pa.array(indices.astype(np.int32), mask=missing), names)


def _texts(count: int, texts: dict[int, str | None]) -> pa.Array:
    return pa.array([texts.get(row) for row in range(count)], pa.string())


def json_lines(stream: Stream) -> list[list[bytes]]:
    """Batches of lines in the shape of a tape's, events of exactly 68 bytes: key, ts, and two fields of data."""
    lines: list[bytes] = []
    controls = iter(punctuations(stream))
    for number, line in enumerate(_event_lines(stream), 1):
        assert len(line) == LINE_BYTES, line
        lines.append(line)
        if number % PUNCTUATION_EVERY == 0:
            lines.append(json.dumps({"op": "punctuation", "ts": next(controls).ts}, separators=(",", ":")).encode())
    return [lines[start : start + BATCH_ROWS] for start in range(0, len(lines), BATCH_ROWS)]


def _event_lines(stream: Stream) -> Iterator[bytes]:
    rows: Iterable[tuple[int, float, float]] = zip(
        stream.ts.tolist(), stream.change.tolist(), stream.price.tolist(), strict=True
    )
    for ts, change, price in rows:
        # A third decimal is as long as the minus sign.
        move = f"{change:.2f}" if change < 0 else f"{change:.3f}"
        yield f'{{"key":"{ONE_KEY}","ts":{ts},"data":{{"change":{move},"price":{price:.2f}}}}}'.encode()
