"""The process around the loop, without a Kafka."""

import gc
from contextlib import nullcontext

from arcfleet.fleet.document import load_fleet
from worker import process
from worker.cluster import UNKNOWN


def test_a_worker_that_has_started_looks_for_cycles_rarely(monkeypatch):
    """Each look at all that a start leaves behind takes tens of milliseconds, and there was one every few batches."""
    seen = []
    monkeypatch.setattr(process, "health_door", lambda _: nullcontext("http://nowhere"))
    monkeypatch.setattr(process, "check_cluster", lambda *_, **__: UNKNOWN)
    monkeypatch.setattr(process.Process, "start", lambda _: None)
    monkeypatch.setattr(process.Process, "run", lambda _: seen.append((gc.get_threshold()[0], gc.get_freeze_count())))
    before = gc.get_threshold()
    try:
        fleet = load_fleet(None, {"bootstrap": "nowhere:9092"})
        process.run(fleet, process.Options("w1", True), [], lambda *_, **__: None, lambda _: None)
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
    ((allocations, frozen),) = seen
    assert allocations == process.GC_ALLOCATIONS
    assert frozen > 10_000
