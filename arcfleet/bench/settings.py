"""How large and how long a benchmark is, and what it must reach. Knows no package that only the benchmark needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Better = Literal["higher", "lower", "flat"]

BATCH_ROWS: Final = 4096
PUNCTUATION_EVERY: Final = 1000  # events
PUNCTUATION_BEHIND: Final = 1000  # of the newest ts
LATE_BY_MOST: Final = 1000  # positions; not more than the punctuations stay behind, so that nothing late is lost


@dataclass(frozen=True)
class Settings:
    """Sizes of the streams, and how they are measured."""

    events: int = 1_000_000
    runs: int = 5
    seconds_least: float = 0.2  # CPU seconds of one timed part; the stream is repeated until it took as long
    seed: int = 1
    python_events: int = 100_000  # the Python loops are slow, and their time per event is the same
    small_events: int = 100_000  # where an event leads to many matches or records
    keys: int = 10_000
    patterns: int = 1_000
    memory_events: int = 10_000_000
    memory_keys: int = 100_000
    worker_events: int = 20_000_000  # twice `snapshot_interval` at least, so that snapshots are part of it
    worker_keys: int = 10_000
    worker_many_keys: int = 100_000
    worker_runs: int = 3
    latency_per_s: int = 50_000
    latency_s: float = 15.0  # nearly half of it beyond `snapshot_interval`, so that snapshots are part of it
    restart_per_s: int = 50_000
    restart_s: float = 15.0  # of load before the crash
    idle_keys: int = 1_000_000
    idle_s: float = 60.0

    @classmethod
    def quick(cls, seed: int = 1) -> Settings:
        """A look at everything in a short time: numbers to see that it works, not to quote."""
        return cls(
            events=100_000,
            runs=3,
            seconds_least=0.05,
            seed=seed,
            python_events=20_000,
            small_events=20_000,
            memory_events=500_000,
            memory_keys=5_000,
            worker_events=200_000,
            worker_keys=2_000,
            worker_many_keys=20_000,
            worker_runs=1,
            latency_per_s=5_000,
            latency_s=4.0,
            restart_per_s=5_000,
            restart_s=3.0,
            idle_keys=20_000,
            idle_s=3.0,
        )


@dataclass(frozen=True)
class Target:
    """What a row means and what it has to reach."""

    title: str
    yardstick: str  # what the engine is compared with
    floor: float | None = None
    aim: float | None = None
    better: Better = "higher"
    of_itself: bool = False  # counts only in a build whose rows q1 and q3 meet their floors

    def reached(self, ratio: float, bound: float | None) -> bool | None:
        """Whether the ratio is on the right side of the bound; None if there is none."""
        if bound is None:
            return None
        if self.better == "flat":
            return 2 - bound <= ratio <= bound
        return ratio >= bound if self.better == "higher" else ratio <= bound


C_LOOP: Final = "C loop"
ITSELF_IN_ORDER: Final = "itself, in order"
CONSUME_LOOP: Final = "bare consume loop"

TARGETS: Final = {
    "q1": Target("Q1 k=2, W=2000, in order", C_LOOP, 0.20, 0.40),
    "q3": Target("Q3 UDUDDUUD, W=500, in order", C_LOOP, 0.25, 1.0),
    "q1-late5": Target("Q1, 5 % late, net per record", "C loop, in order", 0.10, 0.20),
    "q1-late30": Target("Q1, 30 % late, net per record", "C loop, in order", 0.035, 0.06),
    "q1-late5-batch": Target("Q1, 5 % late, net per batch", "C loop, in order", 0.15, 0.30),
    "q1-late30-batch": Target("Q1, 30 % late, net per batch", "C loop, in order", 0.08, 0.16),
    "q2-seq-late30": Target("Q2 with AFA+O, 30 % late, net per batch", ITSELF_IN_ORDER, 0.3, 0.7, of_itself=True),
    "q1-keys": Target("Q1 over 10,000 interleaved keys", "keyed C loop", 0.25, 0.50),
    "arcs-1000": Target("Q3, an arc change every 1,000 events", "itself, none", 0.90, 0.99, of_itself=True),
    "arcs-10": Target("Q3, an arc change every 10 events", "itself, none", 0.05, 0.40, of_itself=True),
    "arcs-restart": Target("Q3, an arc change, by a restart's cost", "a restart", 10, 30, of_itself=True),
    "selfloop-late": Target("a self-loop that ignores, 5 % late", ITSELF_IN_ORDER, 0.05, 0.4, of_itself=True),
    "patterns-1000": Target(
        "1,000 words: cost per event by one word's", "itself, one", 100, 30, better="lower", of_itself=True
    ),
    "equal-1000": Target(
        "1,000 users asked for: cost per event by one's", "itself, one", better="lower", of_itself=True
    ),
    "q1-json": Target("Q1 from JSON bytes, decode and match", "msgspec, decode only", 3, 6),
    "ids": Target("Q1 with match ids", "itself, without", of_itself=True),
    "sase-pairs": Target("SASE+ query, W=500, start and end", C_LOOP, 0.25, 0.5),
    "sase-growth": Target(
        "SASE+ query, cost per event of W=2000 by that of W=500", "itself, W=500", 4, better="lower", of_itself=True
    ),
    "sase-bindings": Target("SASE+ query, W=500, with what it binds", "C loop with bindings", 0.10, 0.30),
    "memory": Target("resident memory at the end by half-way", "itself, half-way", 1.05, better="flat"),
    "worker-10k": Target("a worker, exactly once, 10,000 keys", CONSUME_LOOP, 0.5, 0.7),
    "worker-100k": Target("a worker, exactly once, 100,000 keys", CONSUME_LOOP, 0.4, 0.6),
    "latency": Target("event to match, at least once, p99", "bare relay", 2.0, 1.2, better="lower"),
    "restart": Target("seconds until ready, 100,000 live keys, under load", "none", 10.0, 3.0, better="lower"),
    "idle-keys": Target("GB of a million silent keys", "none", 2.0, 0.5, better="lower"),
}
