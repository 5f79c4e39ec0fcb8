"""The rows of a worker's speed: a real Kafka, exactly once, beside whoever only consumes."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

from arcfleet.bench.kafka import kafka, measured, missing, publish
from arcfleet.bench.matches import DisagreementError
from arcfleet.bench.measure import Bench
from arcfleet.bench.rows import Row
from arcfleet.bench.settings import Settings
from arcfleet.bench.ticks import Ticks
from arcfleet.fleet.looking_on import net_matches
from arcfleet.fleet.tailing import ToldChange
from arcfleet.net_matches import NetMatches

Runs = list[tuple[dict[str, float], dict[str, float]]]  # of each: the worker's figures, the bare loop's


def on_kafka(settings: Settings, ticks: Ticks, tick: Callable[[str], None]) -> Runs:
    """By turns, each worker in a fleet of its own. Raises DisagreementError if it told other matches than there are."""
    runs: Runs = []
    events, expected = len(ticks.key), ticks.matches()
    with kafka() as place:
        publish(place.fleet("filling"), ticks)
        patterns = place.patterns(ticks)
        for run in range(settings.worker_runs):
            fleet = place.fleet(f"worker-{run}")
            about: dict[str, Any] = {"fleet": str(place.folder / f"{fleet.name}.yaml"), "events": events}
            bare = measured("arcfleet.bench.bare_loop", about)
            tick("bare loop")
            runs.append((measured("arcfleet.bench.worker_run", about | {"patterns": str(patterns)}), bare))
            tick("worker")
            _check(net_matches(fleet), expected)
    return runs


def _check(told: NetMatches[ToldChange], expected: int) -> None:
    found = len(told.standing)
    if (found, told.doubled, told.orphans) != (expected, 0, 0):
        what = f"{found:,} matches, {told.doubled:,} told twice, {told.orphans:,} taken back that had not been told"
        raise DisagreementError(f"the worker: {what}; there are {expected:,} matches; no speed is shown")


def _row(name: str, keys: Callable[[Settings], int], bench: Bench, measure: Callable[..., Runs] = on_kafka) -> Row:
    settings = bench.settings
    events = settings.worker_events
    if why := missing():
        return Row(name, events, 0, None, None, 0.0, note=why)
    ticks = Ticks.drawn(events, keys(settings), settings.seed)
    runs = measure(settings, ticks, bench.tick)
    quotients = [bare["seconds"] / worker["seconds"] for worker, bare in runs]
    ratio = statistics.median(quotients)
    worker, bare = (
        {name: statistics.median(run[side][name] for run in runs) for name in runs[0][side]} for side in (0, 1)
    )
    metrics = worker["observing"] / worker["cpu"]
    more = {
        "metrics_share": metrics,
        "cpu_ns": worker["cpu"] / events * 1e9,
        "yardstick_cpu_ns": bare["cpu"] / events * 1e9,
    }
    note = (
        f"{events / worker['seconds']:,.0f} records/s, the bare loop {events / bare['seconds']:,.0f}; "
        f"CPU {more['cpu_ns']:,.0f} and {more['yardstick_cpu_ns']:,.0f} ns a record; "
        f"metrics {metrics:.1%} of the worker's CPU time (at most 2 %)"
    )
    spread = (max(quotients) - min(quotients)) / ratio
    nanoseconds = (worker["seconds"] / events * 1e9, bare["seconds"] / events * 1e9)
    return Row(name, events, ticks.matches(), ratio, spread, worker["cpu"], *nanoseconds, note=note, more=more)


worker_10k = partial(_row, "worker-10k", lambda settings: settings.worker_keys)
worker_100k = partial(_row, "worker-100k", lambda settings: settings.worker_many_keys)
