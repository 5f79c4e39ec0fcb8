"""What state costs, on the fake log: bytes written to the state topic, and how far back a restore begins.

Each key has an event a second, as 100,000 keys have at 100,000 events a second; both shares depend on nothing else.
"""

import json
import random

from support.simulation import Chances, Simulation

from arcfleet.fleet.document import load_fleet
from worker.binding import Binding
from worker.checkpoint import ARC_TABLE_KEY

KEYS, SECONDS, INTERVAL_S = 600, 35, 10
SOURCE = {"topic": "events", "punctuation": {"slack": "500ms"}}
GUESSED = {
    "pattern": "guessed",
    "within": 60_000,
    "start": "idle",
    "final": ["inside"],
    "registers": {"failures": 0},
    "arcs": [
        {"id": "first", "from": "idle", "to": "wait", "when": "not e.ok", "set": {"failures": "1"}},
        {"id": "again", "from": "wait", "to": "wait", "when": "not e.ok", "set": {"failures": "r.failures + 1"}},
        {"id": "hit", "from": "wait", "to": "inside", "when": "e.ok and r.failures >= 2"},
    ],
}


def logins(began_ms):
    rnd = random.Random(5)
    for number in range(KEYS * SECONDS):
        ts = began_ms + number * 1000 // KEYS - rnd.choice([0, 0, 0, 100, 400])
        data = {"ok": rnd.random() < 0.05, "ip": f"10.0.0.{rnd.randrange(256)}"}
        yield {"id": f"e{number:08d}", "key": f"user{rnd.randrange(KEYS):06d}", "ts": ts, "type": "login", "data": data}


def one_worker(folder, partitions):
    document = folder / "fleet.yaml"
    document.write_text(json.dumps({"fleet": "local", "snapshot_interval": f"{INTERVAL_S}s", "sources": [SOURCE]}))
    fleet = load_fleet(document, {"bootstrap": "fake:9092"})
    simulation = Simulation(1, fleet, [GUESSED], partitions=partitions, workers=1, chances=Chances.none())
    simulation.run([], 1.0)
    return simulation


def test_state_is_half_of_the_input_at_most_and_a_restore_replays_two_intervals_at_most(tmp_path):
    simulation = one_worker(tmp_path, partitions=1)
    began_s = simulation.clock.monotonic()
    committed, replays = simulation.broker.group("local").offsets, []
    for number, record in enumerate(logins(int(simulation.clock.wall() * 1000))):
        while simulation.clock.monotonic() - began_s < number / KEYS:
            simulation._turn()
            offset, metadata = committed.get(("events", 0), (0, ""))
            if metadata:
                replays.append(offset - Binding.read(metadata).restore.positions["events"])
        simulation.publish(record)
    read = simulation.committed_of("events", 0)
    written = [record for record in simulation.committed("state", 0) if record.key != ARC_TABLE_KEY]
    keys_seen = {record.key for record in written if record.value}
    assert len(keys_seen) > 0.9 * KEYS, "keys have state"
    assert size(written) <= 0.5 * size(read)
    assert INTERVAL_S * KEYS / 2 < max(replays) <= 2 * INTERVAL_S * KEYS


def size(records):
    return sum(
        len(record.key)
        + len(record.value or b"")
        + sum(len(name) + len(value) for name, value in record.headers or () if value)
        for record in records
    )


def test_a_partition_with_a_backlog_is_not_written_out_before_its_time(tmp_path):
    """Under load partitions come in turns, each for longer than a commit interval."""
    simulation = one_worker(tmp_path, partitions=2)
    for record in logins(int(simulation.clock.wall() * 1000)):
        simulation.publish(record)
    (loop,) = [slot.process.loop for slot in simulation.slots]
    for _ in range(60):
        loop._batch_records = 100
        simulation._turn()
        for partition in loop.partitions.values():
            partition.quiet_commits = 10
        loop.commit()
        for number, partition in loop.partitions.items():
            assert not partition.is_at_end()
            assert all(record.key == ARC_TABLE_KEY for record in simulation.committed("state", number))


def all_at_once(simulation, began_ms):
    for key in range(KEYS):
        event = {"id": f"at-once{key}", "key": f"user{key:06d}", "ts": began_ms, "type": "login", "data": {"ok": False}}
        simulation.publish(event)


def writes(simulation, seconds):
    """How many snapshots each commit wrote, for so long."""
    until, before = simulation.clock.monotonic() + seconds, len(simulation.committed("state", 0))
    while simulation.clock.monotonic() < until:
        simulation._turn()
        now = len(simulation.committed("state", 0))
        yield now - before
        before = now


def test_keys_that_come_due_together_are_not_written_together(tmp_path):
    """All change at one moment, as after a restart, so all come due at one moment, too; some go on."""
    simulation = one_worker(tmp_path, partitions=1)
    began_s, began_ms = simulation.clock.monotonic(), int(simulation.clock.wall() * 1000)
    all_at_once(simulation, began_ms)
    written = []
    for number, record in enumerate(logins(began_ms)):
        if (ahead_s := began_s + number / KEYS - simulation.clock.monotonic()) > 0:
            written += writes(simulation, ahead_s)
        simulation.publish(record)
    assert sum(written) >= 2 * KEYS
    assert max(written) <= KEYS // 10


def test_a_partition_that_falls_silent_is_written_out_within_a_second_or_so(tmp_path):
    simulation = one_worker(tmp_path, partitions=1)
    all_at_once(simulation, int(simulation.clock.wall() * 1000))
    written = list(writes(simulation, 2.0))
    assert sum(written) >= KEYS
    assert max(written) <= KEYS // 2
