"""A worker that runs until it has committed so many events, timed from the inside
(`python -m arcfleet.bench.worker_run`)."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from afa.document import load_documents
from arcfleet.fleet.arc_writer import publish_patterns
from arcfleet.fleet.document import load_fleet

_OBSERVED = ("batch", "changes", "committed", "look", "progress")


class Stopwatch:
    """CPU seconds of this thread within some functions, nested ones counted once."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth = 0

    def timing(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **named: Any) -> Any:
            began_s, self._depth = time.thread_time(), self._depth + 1
            try:
                return function(*arguments, **named)
            finally:
                self._depth -= 1
                if not self._depth:
                    self.seconds += time.thread_time() - began_s

        return timed


def run(fleet_file: Path, patterns: Path, events: int) -> dict[str, float]:
    # The worker is a role of its own, with packages that other commands do without.
    from worker.process import Options, Process, collect_rarely  # noqa: PLC0415

    process = Process(load_fleet(fleet_file), Options("bench", True), lambda *_, **__: None)
    loaded = load_documents(*patterns.iterdir(), unit=process.fleet.unit)
    documents = [document for document, _ in loaded]
    publish_patterns(documents, process.fleet.name, process.clients, process.make_engine)
    loop = process.start()
    collect_rarely()
    observing = Stopwatch()
    for name in _OBSERVED:
        setattr(loop.parts.observer, name, observing.timing(getattr(loop.parts.observer, name)))
    began_s = cpu_s = 0.0
    done = 0
    while done < events:
        process.turn()
        done = sum(sum(partition.mark.positions.values()) for partition in loop.partitions.values())
        if done and not began_s:
            began_s, cpu_s = time.perf_counter(), time.process_time()
    loop.commit()
    told = {
        "seconds": time.perf_counter() - began_s,
        "cpu": time.process_time() - cpu_s,
        "observing": observing.seconds,
    }
    process.stop("stop")
    process.run()
    return told


def main() -> None:
    about = json.loads(sys.argv[1])
    sys.stdout.write(json.dumps(run(Path(about["fleet"]), Path(about["patterns"]), about["events"])))


if __name__ == "__main__":
    main()
