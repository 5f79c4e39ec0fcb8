"""The row of silent keys: each has a live partial match, nothing more comes, and so much memory is held."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from arcfleet.bench.kafka import Place, missing, publish, throughput_broker
from arcfleet.bench.measure import Bench
from arcfleet.bench.rows import Row
from arcfleet.bench.settings import Settings
from arcfleet.bench.ticks import OPEN, Ticks
from arcfleet.fleet.looking_on import left_to_do
from arcfleet.local.stack import LocalStack

_LOOK_S = 0.5
_GB = 1e9


def resident_bytes(pid: int) -> int:
    """Of another process; Linux only."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def on_kafka(settings: Settings, ticks: Ticks, tick: Callable[[str], None]) -> tuple[int, int]:
    """Bytes of the worker's process after the silence, and the most that were seen."""
    with tempfile.TemporaryDirectory(prefix="arcfleet-bench-") as folder:
        place = Place(Path(folder))
        file, patterns = place.document("idle"), place.patterns(ticks)
        with LocalStack(workers=1, fleet=file, patterns=patterns, broker=throughput_broker()) as stack:
            pid = stack.workers[0].pid
            assert pid is not None
            publish(stack.fleet, ticks)
            tick("published")
            most, silent_s = 0, time.monotonic()
            while time.monotonic() - silent_s < settings.idle_s:
                most = max(most, resident_bytes(pid))
                if left_to_do(stack.fleet):
                    silent_s = time.monotonic()
                time.sleep(_LOOK_S)
                stack.check()
            return resident_bytes(pid), most


def idle_keys(bench: Bench, measure: Callable[..., tuple[int, int]] = on_kafka) -> Row:
    keys = bench.settings.idle_keys
    if why := missing():
        return Row("idle-keys", keys, 0, None, None, 0.0, note=why)
    began_s = time.process_time()
    ticks = Ticks(keys, np.arange(keys), np.full(keys, OPEN))
    held, most = measure(bench.settings, ticks, bench.tick)
    note = f"{held / _GB:.2f} GB after {bench.settings.idle_s:g} s of silence, {most / _GB:.2f} GB at the most"
    more = {"held_bytes": held, "most_bytes": most, "bytes_per_key": held / keys}
    return Row("idle-keys", keys, 0, held / _GB, 0.0, time.process_time() - began_s, note=note, more=more)
