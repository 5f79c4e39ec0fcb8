"""Threads: one engine may be fed by several, and others go on while it works."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from support.automata import PAIR, SPAN, arc

from afa import Engine
from afa.document import build_pattern


@pytest.fixture
def switch_interval() -> Iterator[Callable[[float], None]]:
    """How long a thread may keep the interpreter's lock while another waits for it."""
    before = sys.getswitchinterval()
    yield sys.setswitchinterval
    sys.setswitchinterval(before)


def records(key: str, begin: int, count: int) -> list[bytes]:
    """A match with every second one."""
    rows = ({"key": key, "ts": ts, "data": {"x": ts % 2 + 1}} for ts in range(begin, begin + count))
    return [json.dumps(row).encode() for row in rows]


def test_two_threads_may_feed_at_once(switch_interval: Callable[[float], None]) -> None:
    """Each batch has an arc whose text is new: it comes back midway."""
    engine, turns = Engine([build_pattern(PAIR)]), 40
    found: dict[str, int] = {}

    def run(name: str) -> None:
        for turn in range(turns):
            batch = records(name, 100 * turn, 100)
            change = {"op": "arc", "pattern": "p", "arc": arc(f"{name}{turn}", "a", "b", f"e.x == '{name}{turn}'")}
            batch.insert(50, json.dumps(change).encode())
            told = engine.feed(batch)
            assert (told.bad, told.late) == ([], [])
            assert {change["key"] for change in told.to_records()} == {name}
            found[name] = found.get(name, 0) + len(told)
            assert engine.state_hash(name)

    switch_interval(1e-6)
    threads = [threading.Thread(target=run, args=(name,)) for name in "xyz"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == dict.fromkeys("xyz", turns * 50)
    assert engine.stats()["events"] == 3 * turns * 100


def test_other_threads_run_meanwhile(switch_interval: Callable[[float], None]) -> None:
    """They could not if the engine kept the interpreter's lock: nobody takes it away for a minute."""
    engine, batch = Engine([build_pattern(SPAN)]), records("k", 0, 100_000)
    ticks, has_ended = [], threading.Event()

    def tick() -> None:
        while not has_ended.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.0005)

    thread = threading.Thread(target=tick)
    thread.start()
    switch_interval(60)
    begin = time.monotonic()
    engine.feed(batch)
    end = time.monotonic()
    has_ended.set()
    switch_interval(0.005)
    thread.join()
    assert [at for at in ticks if begin < at < end]
