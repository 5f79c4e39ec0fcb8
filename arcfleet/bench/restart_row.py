"""The row of a crash: a worker with many live keys is killed under load, started again, and is ready after so long."""

from __future__ import annotations

import os
import signal
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from arcfleet.bench.kafka import Place, missing, publish, throughput_broker
from arcfleet.bench.load import Load
from arcfleet.bench.measure import Bench
from arcfleet.bench.rows import Row
from arcfleet.bench.settings import Settings
from arcfleet.bench.ticks import Ticks
from arcfleet.local.stack import LocalStack

_LIVE_EVENTS: Final = 11  # of each key before the load: by then it has a live partial match
_LOOK_S: Final = 0.05
_READY_S: Final = 60.0


def on_kafka(settings: Settings, ticks: Ticks, tick: Callable[[str], None]) -> list[float]:
    """Seconds from each crash until the worker is ready."""
    taken = []
    with tempfile.TemporaryDirectory(prefix="arcfleet-bench-") as folder:
        place = Place(Path(folder))
        file, patterns = place.document("restarts"), place.patterns(ticks)
        with LocalStack(workers=1, fleet=file, patterns=patterns, broker=throughput_broker()) as stack:
            begin = _LIVE_EVENTS * settings.worker_many_keys
            publish(stack.fleet, ticks, 0, begin)
            load = Load(stack.fleet, ticks, settings.restart_per_s, begin)
            for _ in range(settings.worker_runs):
                for _ in load.run(settings.restart_s):
                    time.sleep(_LOOK_S / 10)
                taken.append(_crash(stack, load))
                tick("crash")
    return taken


def _crash(stack: LocalStack, load: Load) -> float:
    worker = stack.workers[0]
    assert worker.pid is not None
    restarts, looked_s = worker.restarts, 0.0
    os.kill(worker.pid, signal.SIGKILL)
    began_s = time.perf_counter()
    for _ in load.run(_READY_S):
        now_s = time.perf_counter()
        if now_s - looked_s > _LOOK_S:
            looked_s = now_s
            if worker.restarts > restarts and worker.is_ready():
                return now_s - began_s
        time.sleep(_LOOK_S / 10)
    raise OSError(f"the worker was not ready {_READY_S:.0f} s after its crash. {worker.log.explain()}")


def restart(bench: Bench, measure: Callable[..., list[float]] = on_kafka) -> Row:
    settings = bench.settings
    load_s = settings.worker_runs * (settings.restart_s + _READY_S)
    events = _LIVE_EVENTS * settings.worker_many_keys + int(settings.restart_per_s * load_s)
    if why := missing():
        return Row("restart", events, 0, None, None, 0.0, note=why)
    taken = measure(settings, Ticks.drawn(events, settings.worker_many_keys, settings.seed), bench.tick)
    seconds = statistics.median(taken)
    note = f"{', '.join(f'{one:.1f}' for one in taken)} s from SIGKILL, {settings.restart_per_s:,} events/s going on"
    spread = (max(taken) - min(taken)) / seconds
    return Row("restart", events, 0, seconds, spread, seconds, note=note, more={"restarts_s": taken})
