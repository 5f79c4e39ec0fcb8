"""The workloads by name, in the order of the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from arcfleet.bench import (
    arc_rows,
    idle_row,
    json_row,
    latency_row,
    loop_rows,
    many_patterns,
    memory_row,
    restart_row,
    sase_rows,
    self_rows,
    worker_row,
)
from arcfleet.bench.measure import Bench
from arcfleet.bench.rows import Row

WORKLOADS: Final[dict[str, Callable[[Bench], Row]]] = {
    "q1": loop_rows.q1,
    "q3": loop_rows.q3,
    "q1-late5": loop_rows.q1_late5,
    "q1-late30": loop_rows.q1_late30,
    "q1-late5-batch": loop_rows.q1_late5_batch,
    "q1-late30-batch": loop_rows.q1_late30_batch,
    "q2-seq-late30": self_rows.q2_seq_late30,
    "q1-keys": loop_rows.q1_keys,
    "arcs-1000": arc_rows.arcs_1000,
    "arcs-10": arc_rows.arcs_10,
    "arcs-restart": arc_rows.arcs_restart,
    "selfloop-late": self_rows.selfloop_late,
    "patterns-1000": many_patterns.patterns_1000,
    "equal-1000": many_patterns.equal_1000,
    "q1-json": json_row.q1_json,
    "ids": self_rows.ids,
    "sase-pairs": sase_rows.sase_pairs,
    "sase-growth": sase_rows.sase_growth,
    "sase-bindings": sase_rows.sase_bindings,
    "memory": memory_row.memory,
    "worker-10k": worker_row.worker_10k,
    "worker-100k": worker_row.worker_100k,
    "latency": latency_row.latency,
    "restart": restart_row.restart,
    "idle-keys": idle_row.idle_keys,
}


def run(bench: Bench, names: Sequence[str]) -> Iterator[Row]:
    """The rows of these workloads, each as soon as it is measured. Raises DisagreementError if matches differ."""
    for name in names:
        bench.tick(name)
        yield WORKLOADS[name](bench)
