"""The row of latency: from producing an event to reading its match, beside a bare relay under the same load."""

from __future__ import annotations

import json
import signal
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from arcfleet.bench.kafka import Place, kafka, missing, publish
from arcfleet.bench.load import Load
from arcfleet.bench.measure import Bench
from arcfleet.bench.rows import Row
from arcfleet.bench.settings import Settings
from arcfleet.bench.ticks import Ticks
from arcfleet.fleet.looking_on import left_to_do

_WARM_S: Final = 2.0
_STOP_S: Final = 30.0
_OPENED_TWICE: Final = 20  # events of each key before the load: by then each has a live partial match

Latencies = dict[str, list[float]]  # seconds of each match, in order, by contender


@contextmanager
def _process(command: Sequence[str]) -> Iterator[None]:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:  # noqa: S603
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(_STOP_S)


def _contenders(place: Place, ticks: Ticks, run: int) -> Iterator[tuple[str, str, list[str], Callable[[bytes], int]]]:
    python = [sys.executable, "-P", "-m"]
    worker, relay = f"worker-{run}", f"relay-{run}"
    about = ["--fleet", str(place.folder / f"{worker}.yaml"), "--patterns", str(place.patterns(ticks)), "--port", "0"]
    yield worker, "worker", [*python, "arcfleet", "worker", *about], _of_match
    relaying = json.dumps({"fleet": str(place.folder / f"{relay}.yaml")})
    yield relay, "relay", [*python, "arcfleet.bench.relay", relaying], _of_event


def _of_match(value: bytes) -> int:
    return int(json.loads(value)["events"]["last"][1:])


def _of_event(value: bytes) -> int:
    return int(json.loads(value)["id"][1:])


def on_kafka(settings: Settings, ticks: Ticks, tick: Callable[[str], None]) -> Latencies:
    """Worker and relay by turns, each with its own share of the same stream."""
    found: Latencies = {"worker": [], "relay": []}
    with kafka() as place:
        begin = _OPENED_TWICE * settings.worker_keys
        publish(place.fleet("filling"), ticks, 0, begin)
        load = Load(place.fleet("filling"), ticks, settings.latency_per_s, begin)
        for run in range(settings.worker_runs):
            for name, kind, command, position_of in _contenders(place, ticks, run):
                load.fleet = place.fleet(name, delivery="at_least_once")
                with _process(command):
                    while left_to_do(load.fleet):
                        tick("catching up")
                    found[kind] += load.latencies(settings.latency_s, _WARM_S, position_of)
                tick(kind)
    return found


def latency(bench: Bench, measure: Callable[..., Latencies] = on_kafka) -> Row:
    settings = bench.settings
    per_run = int(settings.latency_per_s * (settings.latency_s + _WARM_S))
    events = _OPENED_TWICE * settings.worker_keys + 2 * settings.worker_runs * per_run
    if why := missing():
        return Row("latency", events, 0, None, None, 0.0, note=why)
    found = measure(settings, Ticks.drawn(events, settings.worker_keys, settings.seed), bench.tick)
    more: dict[str, Any] = {}
    for kind, seconds in found.items():
        more |= {f"{kind}_p50_ms": _share(seconds, 0.5) * 1000, f"{kind}_p99_ms": _share(seconds, 0.99) * 1000}
    note = (
        f"p50 and p99 {more['worker_p50_ms']:.1f} and {more['worker_p99_ms']:.1f} ms, the relay "
        f"{more['relay_p50_ms']:.1f} and {more['relay_p99_ms']:.1f} ms; {settings.latency_per_s:,} events/s"
    )
    ratio = more["worker_p99_ms"] / more["relay_p99_ms"]
    return Row(
        "latency", events, len(found["worker"]), ratio, 0.0, statistics.fmean(found["worker"]), note=note, more=more
    )


def _share(ordered_parts: list[float], share: float) -> float:
    """So many of them are not greater."""
    ordered = sorted(ordered_parts)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]
