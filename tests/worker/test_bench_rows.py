"""The rows of the worker: what is measured is right, and each is measured on a real Kafka, for a moment."""

import json
from collections import Counter
from dataclasses import replace

import pytest

from afa import Engine
from afa.document import build_pattern
from arcfleet.bench import catalogue, kafka, latency_row, restart_row, worker_row
from arcfleet.bench.matches import DisagreementError
from arcfleet.bench.measure import Bench
from arcfleet.bench.settings import TARGETS, Settings
from arcfleet.bench.ticks import HIT, HIT_MARK, OPEN, Ticks

SHORT = replace(
    Settings.quick(),
    worker_events=20_000,
    worker_keys=200,
    worker_many_keys=2_000,
    latency_per_s=2_000,
    latency_s=1.0,
    restart_per_s=1_000,
    restart_s=1.0,
    idle_keys=1_000,
    idle_s=1.0,
)
NAMES = ("worker-10k", "worker-100k", "latency", "restart", "idle-keys")


def bench(settings=SHORT):
    return Bench(settings, None, None)


def test_the_ticks_are_as_they_should_be():
    ticks = Ticks.drawn(50_000, 500, 1)
    records = list(ticks.records(0, 50_000))
    assert 0.009 < sum(HIT_MARK in value for _, value in records) / len(records) < 0.011
    assert {len(value) for _, value in records} <= set(range(90, 110))
    opened = Counter(int(key) for key in ticks.key[ticks.x == OPEN])
    assert set(opened) == set(range(500))


def test_the_matches_of_the_ticks_are_those_of_the_engine():
    ticks = Ticks.drawn(30_000, 300, 1)
    lines = [json.dumps({"key": key.decode()} | json.loads(value)) for key, value in ticks.records(0, 30_000)]
    changes = Engine([build_pattern(ticks.document())]).feed([line.encode() for line in lines]).to_records()
    assert Counter(change["op"] for change in changes) == {"insert": ticks.matches()}
    assert ticks.matches() > 0.008 * 30_000
    assert sum(ticks.x == HIT) > 0


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", NAMES)
def test_every_row_is_measured_on_a_real_kafka(name):
    row = catalogue.WORKLOADS[name](bench())
    assert (row.name, row.target) == (name, TARGETS[name])
    assert row.ratio > 0, row
    assert row.note


def test_without_what_is_needed_a_row_says_so(monkeypatch):
    for module in (worker_row, latency_row, restart_row):
        monkeypatch.setattr(module, "missing", lambda: "no Java")
    for name in ("worker-10k", "latency", "restart"):
        row = catalogue.WORKLOADS[name](bench())
        assert (row.ratio, row.note) == (None, "no Java")
    assert kafka.missing() == ""


def test_no_speed_is_shown_if_the_worker_told_other_matches(monkeypatch):
    monkeypatch.setattr(Ticks, "matches", lambda _: 7)
    with pytest.raises(DisagreementError, match="there are 7 matches; no speed is shown"):
        catalogue.WORKLOADS["worker-10k"](bench(replace(SHORT, worker_events=5_000)))
