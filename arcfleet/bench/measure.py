"""Timing: CPU seconds, parts that are long enough, the contenders by turns, median and spread."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from afa.pattern import Pattern
from arcfleet.bench.c_loops import CLoops
from arcfleet.bench.matches import DisagreementError, Tally
from arcfleet.bench.settings import Settings
from arcfleet.bench.workloads import Ints

# Runs once over the stream; the CPU seconds of the part that counts, and a number that must never change.
Contender = Callable[[], tuple[float, int]]


class OpenEngine(Protocol):
    """How an engine is made: the native one, or a stand-in of the tests."""

    def __call__(self, patterns: Sequence[Pattern], *, net: str, bindings: bool = True) -> Any: ...


@dataclass(frozen=True)
class Bench:
    """What every workload needs."""

    settings: Settings
    loops: CLoops | None
    open_engine: OpenEngine
    tick: Callable[[str], None] = lambda _: None  # called with what is being done, whenever something is done

    def events(self, most: int | None = None) -> int:
        """The length of a stream."""
        return self.settings.events if most is None else min(most, self.settings.events)


@dataclass(frozen=True)
class Timing:
    """Per run: the CPU seconds of the timed part, and of one pass over the stream within it."""

    part_seconds: list[float]
    pass_seconds: list[float]

    @property
    def seconds(self) -> float:
        return statistics.median(self.part_seconds)

    def nanoseconds(self, events: int) -> float:
        """Of one event, in the median run."""
        return statistics.median(self.pass_seconds) / events * 1e9


def call(function: Callable[[], int]) -> Contender:
    """A contender all of whose time counts."""

    def run() -> tuple[float, int]:
        started = time.process_time()
        told = function()
        return time.process_time() - started, told

    return run


def feeding(make: Callable[[], Any], batches: Sequence[Any], *, ids: bool = False) -> Contender:
    """The whole `feed`, with the changes out as Arrow; making the engine does not count."""

    def run() -> tuple[float, int]:
        engine = make()
        changes = 0
        started = time.process_time()
        for batch in batches:
            changes += engine.feed(batch).to_arrow(ids=ids).num_rows
        return time.process_time() - started, changes

    return run


def net_matches(engine: Any, batches: Sequence[Any], patterns: Sequence[str]) -> Ints:
    """The matches that stand at the end. Raises DisagreementError if a record was bad or late: none of them is."""
    tally = Tally(patterns)
    for batch in batches:
        changes = engine.feed(batch)
        for what, told in (("bad", changes.bad), ("late", changes.late)):
            if told:
                index, reason = told[0]
                raise DisagreementError(f"the engine calls row {index} of a batch {what}: {reason}; no speed is shown")
        tally.add(changes.to_arrow(ids=False))
    return tally.net()


def by_turns(bench: Bench, contenders: Mapping[str, Contender]) -> dict[str, Timing]:
    """Each contender once per run, so that what disturbs the machine disturbs all of them."""
    timings = {name: Timing([], []) for name in contenders}
    for _ in range(bench.settings.runs):
        for name, contender in contenders.items():
            part, passes = _timed_part(name, contender, bench.settings.seconds_least)
            timings[name].part_seconds.append(part)
            timings[name].pass_seconds.append(part / passes)
            bench.tick(name)
    return timings


def _timed_part(name: str, contender: Contender, seconds_least: float) -> tuple[float, int]:
    total, passes = 0.0, 0
    answers = set()
    with _no_collections():
        while total < seconds_least or not passes:
            seconds, answer = contender()
            total += seconds
            passes += 1
            answers.add(answer)
    if len(answers) > 1:
        raise DisagreementError(f"{name} is not the same twice: {sorted(answers)}; no speed is shown")
    return total, passes


@contextmanager
def _no_collections() -> Iterator[None]:
    """Without Python's garbage collector, which would count against whoever makes many objects."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def ratios(above: Timing, below: Timing, factor: float = 1.0) -> tuple[float, float]:
    """Median and spread (largest minus smallest, as a share of the median) of the quotients, run by run."""
    quotients = [factor * a / b for a, b in zip(above.pass_seconds, below.pass_seconds, strict=True)]
    median = statistics.median(quotients)
    return median, (max(quotients) - min(quotients)) / median
