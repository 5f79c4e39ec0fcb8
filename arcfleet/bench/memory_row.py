"""The row about memory: keys come and go, and what the process holds stays the same.

It runs in a process of its own (`python -m arcfleet.bench.memory_row`), so that nothing else is in its memory.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from afa.pattern import Pattern, TimeWindow
from arcfleet.bench.batches import record_batches
from arcfleet.bench.loop_rows import pattern_of, python_keyed
from arcfleet.bench.matches import DisagreementError
from arcfleet.bench.measure import Bench, OpenEngine
from arcfleet.bench.rows import Row
from arcfleet.bench.settings import Settings
from arcfleet.bench.workloads import Stream, passing_keys

CHUNK: Final = 100_000  # events that are made at a time
_KEY_LIFE: Final = 10  # the window is this part of a key's life


@dataclass(frozen=True)
class Held:
    """Resident bytes half-way and at the end, and what was found on the way."""

    half_way_bytes: int
    end_bytes: int
    matches: int
    seconds: float


def resident_bytes() -> int:
    """Of this process; Linux only."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _pattern(settings: Settings) -> Pattern:
    life = settings.memory_events // 10
    return replace(pattern_of("q1"), window=TimeWindow(max(1, life // _KEY_LIFE)))


def _chunks(settings: Settings) -> Iterator[Stream]:
    for start in range(0, settings.memory_events, CHUNK):
        yield passing_keys(start, min(start + CHUNK, settings.memory_events), settings)


def hold(open_engine: OpenEngine, settings: Settings, resident: Callable[[], int] = resident_bytes) -> Held:
    """Feeds the whole stream, made bit by bit, and looks at the memory twice."""
    engine = open_engine([_pattern(settings)], net="record")
    fed, matches, seconds, half_way = 0, 0, 0.0, 0
    for chunk in _chunks(settings):
        batches = record_batches(chunk)
        started = time.process_time()
        for batch in batches:
            op = engine.feed(batch).to_arrow(ids=False)["op"].cast(pa.string())
            matches += pc.sum(pc.equal(op, "insert")).as_py() or 0
        seconds += time.process_time() - started
        fed += len(chunk)
        del batches
        if not half_way and fed >= settings.memory_events // 2:
            half_way = resident()
    return Held(half_way, resident(), matches, seconds)


def expected_matches(bench: Bench) -> int:
    """As the keyed loop counts them."""
    chunks = list(_chunks(bench.settings))
    keys = [chunk.key for chunk in chunks if chunk.key is not None]
    stream = Stream(
        np.concatenate([chunk.ts for chunk in chunks]),
        {"change": np.concatenate([chunk.change for chunk in chunks])},
        np.concatenate(keys),
    )
    window = _pattern(bench.settings).window
    assert isinstance(window, TimeWindow)
    if bench.loops is None:
        return len(python_keyed(stream, window.length))
    return bench.loops.q1_keyed(stream, window.length, bench.settings.memory_keys)()


def _in_a_process(settings: Settings) -> Held:
    command = [sys.executable, "-P", "-m", "arcfleet.bench.memory_row", json.dumps(asdict(settings))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - this very module
    if done.returncode:
        raise OSError(f"the process that measures memory failed: {done.stderr.strip()[-2000:]}")
    return Held(**json.loads(done.stdout))


def memory(bench: Bench, measured: Callable[[Settings], Held] = _in_a_process) -> Row:
    bench.tick("memory")
    held, expected = measured(bench.settings), expected_matches(bench)
    bench.tick("matches compared")
    if held.matches != expected:
        raise DisagreementError(
            f"memory: the engine has {held.matches:,} matches, the yardstick {expected:,}; no ratio is shown"
        )
    events = bench.settings.memory_events
    ratio = held.end_bytes / held.half_way_bytes
    more: dict[str, Any] = {"half_way_bytes": held.half_way_bytes, "end_bytes": held.end_bytes}
    note = f"{held.half_way_bytes / 2**20:.0f} MB half-way, {held.end_bytes / 2**20:.0f} MB at the end"
    row = Row("memory", events, held.matches, ratio, 0.0, held.seconds, held.seconds / events * 1e9)
    return replace(row, note=note, more=more)


def _main() -> None:
    from arcfleet.bench.native import open_native  # noqa: PLC0415 - the parent has it already

    held = hold(open_native, Settings(**json.loads(sys.argv[1])))
    sys.stdout.write(json.dumps(asdict(held)))


if __name__ == "__main__":
    _main()
