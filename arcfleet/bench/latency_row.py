"""The row of latency: from producing an event to reading its match, beside a bare relay under the same load."""

from __future__ import annotations

import json
import signal
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from arcfleet.bench.kafka import Place, kafka, missing, publish
from arcfleet.bench.load import Load, Position
from arcfleet.bench.measure import Bench
from arcfleet.bench.rows import Row
from arcfleet.bench.settings import Settings
from arcfleet.bench.ticks import Ticks
from arcfleet.fleet.looking_on import left_to_do

_WARM_S: Final = 2.0
_STOP_S: Final = 30.0
_OPENED_TWICE: Final = 20  # events of each key before the load: by then each has a live partial match

Latencies = list[dict[str, list[float]]]  # of each run, by contender: seconds of each match, in order


@contextmanager
def _process(command: Sequence[str]) -> Iterator[None]:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:  # noqa: S603
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(_STOP_S)


@dataclass(frozen=True)
class _Contender:
    """Who is measured: a fleet, and the process that it is of."""

    fleet: str
    kind: str
    command: list[str]
    position_of: Position


def _contenders(place: Place, ticks: Ticks, run: int) -> list[_Contender]:
    """Each is the first by turns."""
    return [_worker(place, ticks, f"worker-{run}"), _relay(place, f"relay-{run}")][:: -1 if run % 2 else 1]


def _worker(place: Place, ticks: Ticks, fleet: str) -> _Contender:
    about = ["--fleet", str(place.folder / f"{fleet}.yaml"), "--patterns", str(place.patterns(ticks)), "--port", "0"]
    return _Contender(fleet, "worker", [sys.executable, "-P", "-m", "arcfleet", "worker", *about], _of_match)


def _relay(place: Place, fleet: str) -> _Contender:
    about = json.dumps({"fleet": str(place.folder / f"{fleet}.yaml")})
    return _Contender(fleet, "relay", [sys.executable, "-P", "-m", "arcfleet.bench.relay", about], _of_event)


def _of_match(value: bytes) -> int:
    return int(json.loads(value)["events"]["last"][1:])


def _of_event(value: bytes) -> int:
    return int(json.loads(value)["id"][1:])


def on_kafka(settings: Settings, ticks: Ticks, tick: Callable[[str], None]) -> Latencies:
    """Worker and relay by turns, each with its own share of the same stream; before that a turn that does not count: a
    broker that has just started compiles itself for half a minute, and takes the processor from whoever is measured."""
    found: Latencies = []
    with kafka() as place:
        begin = _OPENED_TWICE * settings.worker_keys
        publish(place.fleet("filling"), ticks, 0, begin)
        load = Load(place.fleet("filling"), ticks, settings.latency_per_s, begin)

        def turn(contender: _Contender) -> list[float]:
            load.fleet = place.fleet(contender.fleet, delivery="at_least_once")
            with _process(contender.command):
                while left_to_do(load.fleet):
                    tick("catching up")
                latencies = load.latencies(settings.latency_s, _WARM_S, contender.position_of)
            tick(contender.kind)
            return latencies

        turn(_worker(place, ticks, "warming"))
        for run in range(settings.worker_runs):
            found.append({contender.kind: turn(contender) for contender in _contenders(place, ticks, run)})
    return found


def latency(bench: Bench, measure: Callable[..., Latencies] = on_kafka) -> Row:
    settings = bench.settings
    turns = 1 + 2 * settings.worker_runs
    per_turn = int(settings.latency_per_s * (settings.latency_s + _WARM_S))
    events = _OPENED_TWICE * settings.worker_keys + turns * per_turn
    if why := missing():
        return Row("latency", events, 0, None, None, 0.0, note=why)
    found = measure(settings, Ticks.drawn(events, settings.worker_keys, settings.seed), bench.tick)
    quotients = [_share(run["worker"], 0.99) / _share(run["relay"], 0.99) for run in found]
    more: dict[str, Any] = {
        f"{kind}_{name}_ms": statistics.median(_share(run[kind], share) for run in found) * 1000
        for kind in ("worker", "relay")
        for name, share in (("p50", 0.5), ("p99", 0.99))
    }
    note = (
        f"p50 and p99 {more['worker_p50_ms']:.1f} and {more['worker_p99_ms']:.1f} ms, the relay "
        f"{more['relay_p50_ms']:.1f} and {more['relay_p99_ms']:.1f} ms; {settings.latency_per_s:,} events/s"
    )
    ratio = statistics.median(quotients)
    spread = (max(quotients) - min(quotients)) / ratio
    told = [seconds for run in found for seconds in run["worker"]]
    return Row("latency", events, len(told), ratio, spread, statistics.fmean(told), note=note, more=more)


def _share(ordered_parts: list[float], share: float) -> float:
    """So many of them are not greater."""
    ordered = sorted(ordered_parts)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]
