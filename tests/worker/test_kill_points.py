"""Promises P1, P6 and P13 on the fake log, point by point: a worker is killed wherever a client calls or is called,
each error of a producer comes once, and arcs change at random."""

import json
import random
import sys
from dataclasses import replace
from functools import cache

import pytest
from confluent_kafka import KafkaError
from support.disorder import CLIMB, disordered_events
from support.fake_log.faults import POINTS, Crashed
from support.fleets import audit
from support.order import History, Logged, inversions
from support.simulation import Chances, Simulation

from afa import Engine
from afa.document import build_pattern
from afa.source import Source
from arcfleet.fleet.arcs import StampedArc
from arcfleet.fleet.document import load_fleet
from worker.errors import WorkerError
from worker.reactions import PRODUCING, Reaction

SEED, EVENTS, SECONDS = 7, 120, 12.0
RECORDS = disordered_events(SEED, EVENTS)
# Where a call may come from, by the function that makes it, besides the ordinary step.
PLACES = {"start": "start", "_give_up": "revoke", "_restore": "restore", "finish": "close", "reset": "reset"}


class Eventful(Simulation):
    """A run in which a worker leaves, comes back, and one transaction is aborted: each point is passed at least once.
    `faults` sees every point that a worker passes, with its place."""

    def __init__(self, faults):
        fleet = load_fleet(None, {"bootstrap": "fake:9092", "snapshot_interval": "2s"})
        fleet = replace(fleet, sources=(Source("events", start="1970-01-01T00:00:00Z"),))
        super().__init__(SEED, fleet, [CLIMB], chances=Chances.none())
        self._passed, self._faults, self._published, self._is_aborted = 0, faults, 0, False
        self.run(RECORDS, SECONDS)

    def publish(self, record, source=0):
        super().publish(record, source)
        self._published += 1
        if self._published == EVENTS // 3:
            self._leave(self.slots[0])

    def _leave(self, slot):
        if slot.has_started:
            self._running.append(slot)
            try:
                slot.process.stop("leave")
                slot.process.finish(slot.process.loop)
                self._gone(slot, "left")
            except Crashed:
                self._gone(slot, "crashed as it left")
            finally:
                self._running.pop()

    def _fault(self, point, client):
        slot = self._running[-1] if self._running else None
        if slot is None or slot.clients is None or client.host is not slot.clients.host:
            return None
        self._passed += 1
        error = self._faults(self._passed, point)
        if error is None and point == "send_offsets" and self._published > EVENTS // 2 and not self._is_aborted:
            self._is_aborted = True
            return KafkaError(KafkaError.ILLEGAL_GENERATION, "simulated", txn_requires_abort=True)
        return error


def place():
    """Where the call comes from."""
    frame, found = sys._getframe(1), "step"
    while frame is not None:
        found = PLACES.get(frame.f_code.co_name, found) if found == "step" else found
        frame = frame.f_back
    return found


@cache
def passed():
    """By point and place: when they are passed in a run in which nobody is killed."""
    found = {}
    Eventful(lambda at, point: found.setdefault((point, place()), []).append(at))
    return found


def wanted(records, changes=()):
    engine = Engine([build_pattern(CLIMB)], engine="reference", net="batch")
    arcs = [change.as_change() for change in changes]
    return audit(engine.feed([json.dumps(record).encode() for record in [*arcs, *records]]).to_records()).net


def assert_exact(simulation, records=RECORDS, changes=()):
    told = simulation.changes()
    found = audit(told)
    assert (found.doubles, found.orphans) == ([], [])
    assert found.net.keys() == wanted(records, changes).keys() != set()
    for number in range(simulation.partitions):
        log = [Logged(each.offset, each.key, each.value) for each in simulation.committed_of("events", number)]
        history = History([build_pattern(CLIMB)], ("events", number), log, changes)
        assert not inversions([change for change in told if change["partition"] == number], history)


# P1 ------------------------------------------------------------------------------------------------------------------


def test_every_point_is_passed():
    """But those of `at_least_once`."""
    places = passed()
    assert {point for point, _ in places} == set(POINTS) - {"commit_offsets", "commit_offsets.done"}
    assert {where for _, where in places} == {"step", *PLACES.values()}
    for where in ("step", "revoke", "close"):
        assert {("flush", where), ("send_offsets", where), ("commit_transaction.done", where)} <= places.keys()


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("point", sorted(set(POINTS) - {"commit_offsets", "commit_offsets.done"}))
def test_nothing_is_lost_or_doubled_by_a_kill_at_any_point(point, share):
    for (name, _), times in passed().items():
        if name != point:
            continue
        killed_at = times[int(share * (len(times) - 1))]

        def kill(at, _, killed_at=killed_at):
            if at == killed_at:
                raise Crashed

        simulation = Eventful(kill)
        assert any("crashed" in line for line in simulation.trace)
        assert_exact(simulation)


# P6 ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("point", ["flush", "produce", "send_offsets", "commit_transaction"])
@pytest.mark.parametrize("code", PRODUCING, ids=lambda code: KafkaError(code).name())
def test_every_error_of_a_producer_ends_in_the_one_reset_or_ends_the_process(code, point):
    reaction = PRODUCING[code]
    is_fatal = code == KafkaError._FATAL or (reaction is Reaction.FENCED and code == KafkaError._FENCED)
    error = KafkaError(code, "simulated", fatal=is_fatal, txn_requires_abort=reaction is Reaction.RESET)
    told = []

    def fails(_, passed_point):
        if passed_point == point and not told:
            told.append(point)
            return error
        return None

    if reaction is Reaction.END:
        with pytest.raises(WorkerError, match=error.name()):
            Eventful(fails)
        return
    simulation = Eventful(fails)
    assert len([line for line in simulation.trace if " reset " in line and error.name() in line]) >= 1
    assert_exact(simulation)


# P13 -----------------------------------------------------------------------------------------------------------------


def random_changes(rnd):
    """Arcs of the climb that end, are replaced, and begin anew, at times before and after those of the events."""
    changes, version = [], 100
    for number in range(4):
        old = rnd.choice(CLIMB["arcs"])
        at = rnd.randrange(-100, 10 * EVENTS)
        bound = rnd.randrange(3, 9)
        new = old | {"id": f"{old['id']}-{number}", "when": f"e.x >= {bound}"}
        valid = rnd.choice([(at, None), (at, at + 400), (None, None)])
        changes.append([StampedArc("climb", version, old, (None, at)), StampedArc("climb", version + 1, new, valid)])
        version += 2
    return changes


class Changing(Simulation):
    """Arcs change while records come, each time in one transaction."""

    def __init__(self, seed, changes):
        fleet = load_fleet(None, {"bootstrap": "fake:9092", "snapshot_interval": "2s"})
        super().__init__(seed, fleet, [CLIMB])
        self._due = dict(zip(sorted(self.random.sample(range(EVENTS), len(changes))), changes, strict=True))
        self._count = 0

    def publish(self, record, source=0):
        super().publish(record, source)
        if self._count in self._due:
            self.publish_arcs(self._due[self._count])
        self._count += 1


@pytest.mark.parametrize("seed", range(12))
def test_random_arc_changes_are_taken_up_once_and_a_replay_tells_the_same(seed):
    changes, records = random_changes(random.Random(seed)), disordered_events(seed, EVENTS)
    simulation = Changing(seed, changes)
    simulation.run(records, 30.0)
    assert_exact(simulation, records, [record for change in changes for record in change])
