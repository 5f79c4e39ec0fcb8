"""Promises P11 and P15, and the audit, on the fake log: damaged state is always found, silence and wild clocks finish
nothing early or never, and a replay of all records gives the state that the fleet has."""

import json
import random

import pytest
from confluent_kafka import TopicPartition
from support.fake_log.broker import Host
from support.fake_log.faults import Crashed
from support.fleets import audit
from support.simulation import Chances, Simulation, Slot

from arcfleet.fleet.arcs import stamp
from arcfleet.fleet.document import load_fleet
from worker.checkpoint import ARC_TABLE_KEY
from worker.errors import WorkerError
from worker.partition import Phase
from worker.restore import STUCK_S

YEAR_2100_MS = 4_102_444_800_000
IDLE_S = 60
PAIR = {
    "pattern": "pair",
    "within": 400,
    "start": "s",
    "final": ["f"],
    "registers": {"n": 0},
    "arcs": [
        {"id": "low", "from": "s", "to": "m", "when": "e.x < 3", "set": {"n": "1"}},
        {"id": "more", "from": "m", "to": "m", "when": "e.x >= 3", "set": {"n": "r.n + 1"}},
        {"id": "high", "from": "m", "to": "f", "when": "e.x > 8"},
    ],
}
ALONE = {
    "pattern": "alone",
    "query": "PATTERN SEQ(a x, ~b y) WHERE skip_till_next_match(x, y) { x.n >= 0 } WITHIN 10 seconds",
}


def event(number, ts, key, **data):
    return {"id": f"e{number}", "key": key, "ts": ts, "type": data.pop("type", "t"), "data": data}


def calm_run(seed, document, records, seconds, *, source=None, folder=None, workers=3, **settings):
    path = None
    if source is not None:
        path = folder / "fleet.yaml"
        path.write_text(json.dumps({"fleet": "local", "sources": [{"topic": "events"} | source]}))
    fleet = load_fleet(path, {"bootstrap": "fake:9092", "snapshot_interval": "2s"} | settings)
    simulation = Simulation(seed, fleet, [document], workers=workers, chances=Chances.none())
    simulation.run(records, seconds)
    return simulation


def walk(seed, count=300, keys=12):
    rnd = random.Random(seed)
    times = [max(0, 10 * number - rnd.choice([0, 0, 0, 300])) for number in range(count)]
    events = [event(n, ts, f"k{rnd.randrange(keys)}", x=rnd.randrange(10)) for n, ts in enumerate(times)]
    for at in range(50, count, 50):
        events.insert(at, {"op": "punctuation", "ts": 10 * at - 600})
    return events


def restart_all(simulation):
    for slot in simulation.slots:
        simulation._gone(slot, "restarted")
        slot.back_at = 0.0


def live_partitions(simulation):
    running = [slot.process.loop for slot in simulation.slots if slot.has_started]
    return [number for loop in running for number, each in loop.partitions.items() if each.phase is Phase.LIVE]


def await_ready(simulation):
    until = simulation.clock.monotonic() + 120
    while sorted(live_partitions(simulation)) != list(range(simulation.partitions)):
        assert simulation.clock.monotonic() < until, "the fleet does not come back"
        simulation._turn()


# P11 -----------------------------------------------------------------------------------------------------------------


def newest_states(simulation):
    """Of each key its newest record in the state topic, if it holds something."""
    newest = {
        (number, record.key): record
        for number in range(simulation.partitions)
        for record in simulation.committed("state", number)
    }
    return [(number, record) for (number, _), record in sorted(newest.items()) if record.value]


def flip_a_byte(rnd, log, record):
    at = rnd.randrange(len(record.value))
    record.value = record.value[:at] + bytes([record.value[at] ^ 1 << rnd.randrange(8)]) + record.value[at + 1 :]


def lose_a_record(rnd, log, record):
    log.records.remove(record)
    # Compaction would have left an older one of the key, or none.
    log.records[:] = [other for other in log.records if other.key != record.key or other.is_marker]


def go_back_to_an_older_one(rnd, log, record):
    others = [other for other in log.records if other.key == record.key and other.value not in (None, record.value)]
    if not others:
        return flip_a_byte(rnd, log, record)
    log.records.remove(record)
    return None


@pytest.mark.parametrize("damage", [flip_a_byte, lose_a_record, go_back_to_an_older_one])
def test_damaged_state_is_always_found(damage):
    simulation = calm_run(3, PAIR, walk(3), 20.0)
    rnd = random.Random(3)
    states = newest_states(simulation)
    assert len(states) > simulation.partitions
    assert {record.key for _, record in states} > {ARC_TABLE_KEY}
    for number, record in states:
        log = simulation.broker.logs[simulation.fleet.topic("state"), number]
        whole, value = list(log.records), record.value
        damage(rnd, log, record)
        restart_all(simulation)
        with pytest.raises(WorkerError, match=f"state/{number}") as raised:
            await_ready(simulation)
        assert "--accept-lost-state" in raised.value.fix
        log.records[:], record.value = whole, value
    restart_all(simulation)
    await_ready(simulation)


def test_committed_snapshots_behind_an_open_transaction_are_waited_for():
    """Who read only to the last stable offset would miss them, and publish what never was."""
    simulation = calm_run(4, PAIR, walk(4), 20.0)
    zombie = simulation.broker.producer(
        {"transactional.id": "zombie", "transaction.timeout.ms": 10_000}, Host("zombie")
    )
    zombie.init_transactions(10)
    zombie.begin_transaction()
    for number in range(simulation.partitions):
        zombie.produce(simulation.fleet.topic("state"), b"", key=b"zombie", partition=number)
    zombie.flush()
    records = [event(1000 + n, 3000 + 10 * n, f"k{n % 12}", x=n % 10) for n in range(60)]
    for record in records:
        simulation.publish(record)
    keep_turning(simulation, 4.0)
    places = [(simulation.fleet.topic("state"), number) for number in range(simulation.partitions)]
    assert all(simulation.broker.logs[place].open for place in places)
    told = len(simulation.changes())
    restart_all(simulation)
    await_ready(simulation)
    assert_states_are_those_of_a_replay(simulation)
    keep_turning(simulation, 5.0)
    assert told == len(simulation.changes())


def test_a_reader_that_needs_a_moment_ends_nobodys_transaction():
    """A client has to find the leader of a partition before it reads the first record there."""
    simulation = calm_run(9, PAIR, walk(9), 10.0, workers=1)
    second, clock, ready_at = Slot("second", is_static=True), simulation.clock, 0.0
    simulation.slots.append(second)
    while not second.has_started:
        simulation._turn()
    reader = second.process.loop.parts.restorer._from.reader
    assign, consume = reader.assign, reader.consume

    def assign_and_wait(places):
        nonlocal ready_at
        ready_at = clock.monotonic() + 2 * STUCK_S
        assign(places)

    def consume_later(most, timeout):
        if clock.monotonic() >= ready_at:
            return consume(most, timeout)
        clock.advance(timeout)
        return []

    reader.assign, reader.consume = assign_and_wait, consume_later
    keep_turning(simulation, 20.0)
    assert second.process.loop.partitions
    assert sorted(live_partitions(simulation)) == list(range(simulation.partitions))
    assert not [line for line in simulation.trace if "fencing" in line or "reset" in line]


def test_what_a_dead_owner_left_open_holds_no_reader_back():
    """Also where its transaction has matches only, and lasts far longer than its session."""
    settings = {"kafka.transaction.timeout.ms": "600000", "commit_interval": "5s"}
    simulation = calm_run(6, PAIR, walk(6), 10.0, workers=1, **settings)
    (dead,) = simulation.slots
    matches = [simulation.broker.logs[simulation.fleet.topic("matches"), number] for number in range(3)]
    for number in range(1000):
        simulation.publish(event(1000 + number, 4000 + number, f"k{number % 12}", x=number // 12 % 2 * 9))
        simulation._turn()
        if any(log.open for log in matches):
            break
    simulation._gone(dead, "gone for good")
    dead.back_at = float("inf")
    simulation.slots.append(Slot("second", is_static=True))
    keep_turning(simulation, 25.0)
    assert sorted(live_partitions(simulation)) == list(range(simulation.partitions))
    assert not simulation._waits()


def test_a_topic_that_is_gone_is_named():
    simulation = calm_run(7, PAIR, walk(7), 5.0, workers=1)
    restart_all(simulation)
    for number in range(simulation.partitions):
        del simulation.broker.logs[simulation.fleet.topic("late"), number]
    with pytest.raises(WorkerError, match=r"resets in a row, the last: asking where local\.late/. ends: "):
        keep_turning(simulation, 200)


def test_a_partition_that_was_lost_amid_its_restore_is_restored_anew():
    """It may come back at once, and have been somebody else's for a while: a process that stood still sees no gap."""
    simulation = calm_run(5, PAIR, walk(5), 10.0, workers=1)
    restart_all(simulation)
    (slot,) = simulation.slots
    until = simulation.clock.monotonic() + 60
    while not slot.has_started or slot.process.loop.parts.restorer._now is None:
        assert simulation.clock.monotonic() < until
        simulation._turn()
    loop = slot.process.loop
    consumer, restorer = loop.parts.consumer, loop.parts.restorer
    begun = restorer._now
    loop._on_lost(consumer, [TopicPartition("events", begun.number)])
    loop._on_assign(consumer, [TopicPartition("events", begun.number)])
    assert restorer._now is not begun
    await_ready(simulation)
    assert_states_are_those_of_a_replay(simulation)


def test_partitions_that_a_worker_was_giving_up_when_it_died_are_taken_up():
    """It is there again at once, by its name, with the rest of what it had: the group sees no reason to change."""
    simulation = calm_run(8, PAIR, walk(8), 10.0, workers=1)
    died = []

    def dies(point, client):
        if point == "rebalance" and not died and client._waiting[0].kind == "revoke":
            died.append(client)
            raise Crashed

    simulation.broker.faults = dies
    simulation.slots.append(Slot("second", is_static=True))
    keep_turning(simulation, 5.0)
    assert died
    assert len(live_partitions(simulation)) < simulation.partitions
    for number in range(30):
        simulation.publish(event(2000 + number, 4000 + number, f"k{number % 12}", x=1))
    keep_turning(simulation, 30.0)
    assert sorted(live_partitions(simulation)) == list(range(simulation.partitions))
    assert not any(simulation._lags().values())
    assert any("joining again" in line for line in simulation.trace)


# The lag -------------------------------------------------------------------------------------------------------------


def test_markers_of_transactions_are_no_lag():
    simulation = calm_run(6, PAIR, walk(6), 10.0)
    source = simulation.fleet.sources[0].topic
    for _ in range(3):
        producer = simulation.broker.producer({"transactional.id": "source"}, Host("source"))
        producer.init_transactions(10)
        producer.begin_transaction()
        for number in range(simulation.partitions):
            producer.produce(source, json.dumps(event(900, 9000, "k", x=1)), key=b"k", partition=number)
        producer.commit_transaction(10)
        keep_turning(simulation, 5.0)
    ends = {number: simulation.broker.logs[source, number].end for number in range(simulation.partitions)}
    newest = {told["partition"]: told for told in map(json.loads, map(value_of, simulation.committed("progress", 0)))}
    assert {number: told["lag"] for number, told in newest.items()} == dict.fromkeys(ends, 0)
    assert all(told["offset"] == ends[number] - 1 for number, told in newest.items()), "a marker is the last"


def value_of(record):
    return record.value


# The audit -----------------------------------------------------------------------------------------------------------


def hashes(engine):
    names = engine.keys()
    return {name: engine.state_hash(name) for name in names}


def assert_states_are_those_of_a_replay(simulation):
    topic = simulation.fleet.sources[0].topic
    states = {}
    for slot in simulation.slots:
        for number, partition in slot.process.loop.partitions.items():
            fresh = slot.process.make_engine(partition.table)
            for record in simulation.committed_of(topic, number):
                fresh.feed([record.value], keys=[record.key], partitions=[(topic, number)], offsets=[record.offset])
            states[number] = hashes(partition.engine)
            assert states[number] == hashes(fresh)
    assert len(states) == simulation.partitions
    assert any(states.values())


@pytest.mark.parametrize("seed", range(3))
def test_a_replay_of_all_records_gives_the_state_that_the_fleet_has(seed):
    records = walk(seed)
    simulation = calm_run(seed, PAIR, [*records, {"op": "punctuation", "ts": 10 * len(records) - 600}], 20.0)
    restart_all(simulation)
    await_ready(simulation)
    assert_states_are_those_of_a_replay(simulation)


# P15 -----------------------------------------------------------------------------------------------------------------


def told(simulation, op):
    return [change for change in simulation.changes() if change["op"] == op]


def now_ms(simulation):
    return int(simulation.clock.wall() * 1000)


def keep_turning(simulation, seconds):
    until = simulation.clock.monotonic() + seconds
    while simulation.clock.monotonic() < until:
        simulation._turn()


@pytest.mark.parametrize(("slack_ms", "more"), [(500, {"slack": "500ms"}), (0, {}), (0, {"in_band": True})])
def test_a_silent_partition_does_not_stall(tmp_path, slack_ms, more):
    source = {"punctuation": {"idle": f"{IDLE_S}s"} | more}
    simulation = calm_run(1, ALONE, [], 1.0, source=source, folder=tmp_path)
    began = now_ms(simulation)
    simulation.publish(event(1, began, "quiet", type="a", n=1))
    keep_turning(simulation, IDLE_S / 2)
    assert not told(simulation, "insert"), "nothing says yet that no `b` comes"
    keep_turning(simulation, IDLE_S)
    assert [match["bindings"] for match in told(simulation, "insert")] == [{"x": ["e1"]}]
    punctuations = [change["ts"] for change in told(simulation, "punctuation")]
    assert punctuations == sorted(punctuations)
    assert now_ms(simulation) - 5_000 < punctuations[-1] <= now_ms(simulation) - slack_ms


@pytest.mark.parametrize(("document", "type_", "reached"), [(PAIR, "a", 2000), (ALONE, "b", 2000), (ALONE, "a", 1500)])
def test_a_punctuation_that_waits_when_its_worker_dies_is_told_by_the_next_one(tmp_path, document, type_, reached):
    """Once, though nothing comes any more that would move it."""
    source = {"punctuation": {"slack": "0s"}}
    told_at = {"punctuation_interval": "30s", "commit_interval": "50ms"}
    simulation = calm_run(1, document, [], 1.0, source=source, folder=tmp_path, workers=1, **told_at)
    for number, ts in enumerate([1000, 1500, 2000]):
        simulation.publish(event(number, ts, "k", type=type_ if ts == 1500 else "c", n=0, x=5))
        keep_turning(simulation, 2)
    assert [change["ts"] for change in told(simulation, "punctuation")] == [1000]
    for _ in range(3):
        restart_all(simulation)
        keep_turning(simulation, 10)
        assert [change["ts"] for change in told(simulation, "punctuation")] == [1000, reached]


def test_only_punctuations_that_wait_are_told_by_the_next_worker(tmp_path):
    """One of two patterns has an open candidate, and nothing new to say."""
    source, beside = {"punctuation": {"slack": "0s"}}, {"punctuation_interval": "30s", "commit_interval": "50ms"}
    simulation = calm_run(1, PAIR, [], 1.0, source=source, folder=tmp_path, workers=1, **beside)
    simulation.publish_arcs(stamp([ALONE], simulation.slots[0].process.loop.parts.arcs.table))
    keep_turning(simulation, 2)
    for number, ts in enumerate([1000, 2000]):
        simulation.publish(event(number, ts, "k", type="a", n=0, x=5))
        keep_turning(simulation, 2)
    for _ in range(2):
        restart_all(simulation)
        keep_turning(simulation, 10)
        seen = [(change["pattern"], change["ts"]) for change in told(simulation, "punctuation")]
        assert seen == [("alone", 1000), ("pair", 1000), ("pair", 2000)]


@pytest.mark.parametrize("more", [{"slack": "500ms"}, {}])
def test_a_clock_in_the_future_finishes_nothing_early(tmp_path, more):
    source = {"punctuation": {"idle": f"{IDLE_S}s"} | more}
    simulation = calm_run(1, ALONE, [], 1.0, source=source, folder=tmp_path)
    began = now_ms(simulation)
    simulation.publish(event(1, began, "k", type="a", n=1))
    simulation.publish(event(2, YEAR_2100_MS, "k", type="a", n=1))
    keep_turning(simulation, 5)
    simulation.publish(event(3, began + 1000, "k", type="b", n=1))
    for number in range(20):
        simulation.publish(event(4 + number, now_ms(simulation), "k", type="c", n=1))
        keep_turning(simulation, 1)
    keep_turning(simulation, 2 * IDLE_S)
    assert audit(simulation.changes()).net == {}, "`b` came in time, and of the year 2100 nothing is over"
    assert not [record for number in range(simulation.partitions) for record in simulation.committed("late", number)]
    assert all(change["ts"] < YEAR_2100_MS for change in told(simulation, "punctuation"))


def test_what_waits_behind_an_open_transaction_is_a_backlog(tmp_path):
    source = {"punctuation": {"slack": "0ms", "idle": "2s"}}
    simulation = calm_run(1, PAIR, [], 1.0, source=source, folder=tmp_path, workers=1)
    began = now_ms(simulation)
    producer = simulation.broker.producer({"transactional.id": "theirs"}, Host("theirs"))
    producer.init_transactions(10)
    for number, x in ((1, 1), (2, 9)):
        producer.begin_transaction()
        told_now = json.dumps(event(number, began + number, "k", x=x))
        producer.produce("events", told_now, key="k", partition=0)
        producer.flush()
        simulation.rest(6)
        producer.commit_transaction(10)
    simulation.rest(6)
    assert [match["events"] for match in told(simulation, "insert")] == [{"first": "e1", "last": "e2"}]
    assert not simulation.committed("late", 0)
    assert max(change["ts"] for change in told(simulation, "punctuation")) > began + 2_000


def test_a_punctuation_in_the_future_is_refused_and_seen(tmp_path):
    source = {"punctuation": {"in_band": True, "max_ahead": "1h"}}
    simulation = calm_run(1, PAIR, [], 1.0, source=source, folder=tmp_path)
    began = now_ms(simulation)
    simulation.publish(event(1, began, "k", x=1))
    simulation.publish({"op": "punctuation", "ts": YEAR_2100_MS})
    simulation.publish({"op": "punctuation", "ts": YEAR_2100_MS, "when": "e.x > 1"})
    keep_turning(simulation, 3)
    restart_all(simulation)
    await_ready(simulation)
    simulation.publish(event(2, began + 300, "k", x=9))
    simulation.publish({"op": "punctuation", "ts": began + 1000})
    keep_turning(simulation, 3)
    assert [match["events"] for match in told(simulation, "insert")] == [{"first": "e1", "last": "e2"}]
    assert {change["ts"] for change in told(simulation, "punctuation")} == {began + 1000}
    letters = [
        letter for number in range(simulation.partitions) for letter in simulation.committed("dead-letter", number)
    ]
    reasons = {dict(letter.headers)["arcfleet.reason"] for letter in letters}
    assert (len(letters), len(reasons)) == (2 * simulation.partitions, 1)
    assert b"further ahead of the clock than `max_ahead`" in reasons.pop()


def test_what_the_clock_has_made_late_stays_late_in_a_replay(tmp_path):
    """The replay has no clock: only the late topic tells that the record came too late."""
    source = {"punctuation": {"slack": "0ms", "idle": "100ms"}}
    settings = {"commit_interval": "1s", "snapshot_interval": "60s"}
    simulation = calm_run(1, PAIR | {"within": 60_000}, [], 1.0, source=source, folder=tmp_path, **settings)
    began = now_ms(simulation)
    simulation.publish(event(1, began, "k", x=5))
    keep_turning(simulation, 1.5)
    assert told(simulation, "punctuation")[-1]["ts"] > began + 1
    simulation.publish(event(2, began + 1, "k", x=1))
    simulation.publish(event(3, now_ms(simulation), "k", x=5))
    keep_turning(simulation, 1.5)
    restart_all(simulation)
    await_ready(simulation)
    for number, x in ((4, 9), (5, 1), (6, 9)):
        simulation.publish(event(number, now_ms(simulation) + number, "k", x=x))
    keep_turning(simulation, 3)
    (late,) = [record for number in range(simulation.partitions) for record in simulation.committed("late", number)]
    assert json.loads(late.value)["id"] == "e2"
    assert [match["events"] for match in audit(simulation.changes()).net.values()] == [{"first": "e5", "last": "e6"}]


def test_the_largest_time_outlives_a_restart_and_a_new_pattern(tmp_path):
    """Of a progress record; and a new pattern leaves the idle clock where it is."""
    source = {"punctuation": {"idle": "2s"}}
    simulation = calm_run(1, PAIR, [], 1.0, source=source, folder=tmp_path, workers=1)
    began = now_ms(simulation)
    simulation.publish(event(1, began, "k", x=5))
    simulation.rest(60)
    restart_all(simulation)
    await_ready(simulation)
    simulation.rest(10)
    number = next(number for number in range(3) if simulation.broker.logs["events", number].end)
    progress = [json.loads(record.value) for record in simulation.committed("progress", 0)]
    mine = [record for record in progress if record["partition"] == number]
    assert [record["largest_ts"] for record in mine[1:]] == [began] * (len(mine) - 1)
    assert mine[-1]["punctuation"] > began + 60_000
    simulation.publish(event(2, now_ms(simulation), "k", x=5))
    simulation.rest(60)
    simulation.publish_arcs(stamp([PAIR | {"pattern": "new"}], simulation.slots[0].process.loop.parts.arcs.table))
    simulation.rest(10)
    assert told(simulation, "punctuation")[-1]["pattern"] in ("new", "pair")
    assert max(change["ts"] for change in told(simulation, "punctuation")) > now_ms(simulation) - 5_000
