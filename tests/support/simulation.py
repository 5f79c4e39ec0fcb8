"""A fleet of real workers on a fake log, with everything that may go wrong, played from a seed.

The workers are `worker.process.Process`, stepped in turns that the seed chooses; a stopped one stands in the midst of a
call while the others go on. Nothing else runs: no threads, no real time. The same seed plays the same run.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeAlias
from zlib import crc32

import msgpack
from confluent_kafka import KafkaError, KafkaException

from afa.contracts import contract
from afa.source import Source
from arcfleet.fleet.arc_writer import write
from arcfleet.fleet.arcs import ArcRecord, ArcTable, stamp
from arcfleet.fleet.document import Fleet
from support.fake_log.broker import FakeLog, Host
from support.fake_log.clients import FakeClients
from support.fake_log.faults import POINTS, Crashed
from support.fake_log.log import Fate, Record
from worker.cluster import AMPLE_ROOM, Cluster
from worker.errors import ResetError
from worker.process import Options, Process

RESTART_S = 1.0  # a supervisor takes so long
STOPS_S = (2.0, 8.0, 14.0, 30.0)  # of which some are past the session of ten seconds
SETTLE_S = 300.0  # virtual, after the last fault
STEADY_S = 3.0  # after which what came of the last arc change is committed, too
SLOW_S = (0.3, 2.0, 12.0)
POLLS = 10  # for one other call


# A record, perhaps with the number of its source; or bytes that are none.
Sourced: TypeAlias = dict[str, Any] | tuple[dict[str, Any], int] | bytes


def encoded(record: dict[str, Any], source: Source) -> bytes:
    """As the source has its records."""
    packed = msgpack.packb(record) if source.codec == "msgpack" else json.dumps(record).encode()
    assert isinstance(packed, bytes)
    return packed


def trace_of(event_id: str) -> bytes:
    """The trace context that an event comes with."""
    return f"00-{crc32(event_id.encode()):032x}-{len(event_id):016x}-01".encode()


@dataclass(frozen=True)
class Chances:
    """How likely it is, at each point where it may happen, that something does. Polls are so many that each counts for
    little."""

    crash: float = 0.004
    stop: float = 0.002
    error: float = 0.004
    evict: float = 0.002  # at each turn
    slow: float = 0.001  # at each turn

    @classmethod
    def none(cls) -> Chances:
        return cls(0, 0, 0, 0, 0)


@dataclass
class Slot:
    """A worker by its name: the process of now, and when a gone one comes back."""

    name: str
    is_static: bool
    clients: FakeClients | None = None
    process: Process | None = None
    has_started: bool = False
    is_stopped: bool = False
    back_at: float = 0.0


@dataclass
class Simulation:
    """One run."""

    seed: int
    fleet: Fleet
    documents: Sequence[dict[str, Any]]
    partitions: int = 3
    workers: int = 3
    static: bool = True
    accepts_lost_state: bool = False
    traced: bool = False  # whether events come with a trace context
    chances: Chances = field(default_factory=Chances)
    trace: list[str] = field(default_factory=list)
    happened: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.broker = FakeLog(self.seed)
        self.clock = self.broker.clock
        self.slots = [Slot(f"w{number}", self.static) for number in range(self.workers)]
        self._is_calm = False
        self._running: list[Slot] = []
        self._make_topics()
        self._tape = self.broker.producer({}, Host("tape"))
        self.publish_arcs(stamp(self.documents, ArcTable()))

    def _make_topics(self) -> None:
        for source in self.fleet.sources:
            self.broker.create_topic(source.topic, self.partitions)
        for topic in contract("topics")["topics"]:
            count = self.partitions if topic["partitions"] == "same as sources" else topic["partitions"]
            self.broker.create_topic(self.fleet.topic(topic["suffix"]), count)

    # What comes in ---------------------------------------------------------------------------------------------------

    def publish_arcs(self, records: Sequence[ArcRecord]) -> None:
        producer = self.broker.producer({"transactional.id": "arcs"}, Host("arcs"))
        producer.init_transactions(10)
        producer.begin_transaction()
        write(records, self.fleet.name, producer)
        producer.commit_transaction(10)

    def publish(self, record: dict[str, Any] | bytes, source: int = 0) -> None:
        """To the partition of its key; without one to all; nonsense to some partition."""
        if isinstance(record, bytes):
            topic, number = self.fleet.sources[source].topic, crc32(record) % self.partitions
            self._tape.produce(topic, record, key=b"nonsense", partition=number)
            self._tape.flush()
            return
        key = record.get("key")
        numbers = range(self.partitions) if key is None else [crc32(key.encode()) % self.partitions]
        topic, value = self.fleet.sources[source].topic, encoded(record, self.fleet.sources[source])
        is_event = self.traced and key is not None and record.get("op", "insert") == "insert"
        headers = [("traceparent", trace_of(record["id"]))] if is_event else None
        for number in numbers:
            self._tape.produce(topic, value, key=key, partition=number, headers=headers)
        self._tape.flush()

    # Running ---------------------------------------------------------------------------------------------------------

    def run(self, records: Sequence[Sourced], seconds: float, middle: Callable[[], None] | None = None) -> None:
        """Publishes the records over so much time while all may go wrong, then lets the fleet catch up in calm."""
        self.broker.faults = self._fault
        began = self.clock.monotonic()
        for count, record in enumerate(records):
            while self.clock.monotonic() - began < count / len(records) * seconds:
                self._turn()
            if middle is not None and count == len(records) // 2:
                middle()
            self.publish(*record if isinstance(record, tuple) else (record,))
        self._is_calm = True
        for slot in self.slots:
            if slot.clients is not None:
                slot.clients.host.latency_s = 0.0
        until = self.clock.monotonic() + SETTLE_S
        steady_since = self.clock.monotonic()
        while self.clock.monotonic() - steady_since < STEADY_S:
            assert self.clock.monotonic() < until, f"seed {self.seed}: the fleet does not catch up: {self._lags()}"
            self._turn()
            if not self._is_caught_up():
                steady_since = self.clock.monotonic()

    def rest(self, seconds: float) -> None:
        """Time passes in calm, in which nothing comes."""
        until = self.clock.monotonic() + seconds
        while self.clock.monotonic() < until:
            self.clock.advance(1.0)
            for _ in self.slots:
                self._turn()

    def _turn(self) -> None:
        """One worker's step, whoever it is. Nothing that is simulated is a reason for a process to end by itself."""
        if not self._is_calm:
            self._trouble()
        now = self.clock.monotonic()
        able = [
            slot for slot in self.slots if not slot.is_stopped and slot not in self._running and slot.back_at <= now
        ]
        if not able:
            self.clock.advance(0.05)
            return
        slot = self.random.choice(able)
        self._running.append(slot)
        try:
            self._step(slot)
        except Crashed:
            self._gone(slot, "crashed")
        finally:
            self._running.pop()

    def _step(self, slot: Slot) -> None:
        if slot.process is None:
            slot.clients = FakeClients(self.broker, self.fleet, slot.name, slot.name if slot.is_static else None)
            slot.process = Process(
                self.fleet,
                Options(slot.name, slot.is_static, accept_lost_state=self.accepts_lost_state),
                lambda what, **told: self._note(slot, f"{what} {told}"),
                clock=self.clock,
                clients=slot.clients,
                cluster=Cluster(self.partitions, AMPLE_ROOM),
            )
        if slot.has_started:
            slot.process.turn()
            return
        try:
            slot.process.start()
        except (KafkaException, ResetError) as error:
            self._gone(slot, f"not started: {error}")
        else:
            slot.has_started = True
            self._note(slot, "started")

    def _gone(self, slot: Slot, why: str) -> None:
        self._note(slot, why)
        assert slot.clients is not None
        self.broker.crash(slot.clients.host)
        slot.process, slot.has_started = None, False
        slot.back_at = self.clock.monotonic() + RESTART_S * self.random.choice([1, 1, 1, 15])

    def _note(self, slot: Slot, what: str) -> None:
        self.trace.append(f"{self.clock.monotonic():.2f} {slot.name} {what}")

    # What goes wrong -------------------------------------------------------------------------------------------------

    def _trouble(self) -> None:
        chance = self.random.random()
        if chance < self.chances.evict:
            group = self.broker.group(self.fleet.name)
            if group.members:
                self.happened["evicted"] += 1
                group.remove(self.random.choice(sorted(group.members)))
        elif chance < self.chances.evict + self.chances.slow:
            slot = self.random.choice(self.slots)
            if slot.clients is not None:
                self.happened["slow"] += 1
                host = slot.clients.host
                host.latency_s = 0.0 if host.latency_s else self.random.choice(SLOW_S)

    def _fault(self, point: str, client: Any) -> KafkaError | None:
        assert point in POINTS, point
        slot = self._running[-1] if self._running else None
        if self._is_calm or slot is None or slot.clients is None or client.host is not slot.clients.host:
            return None
        chance = self.random.random() * (POLLS if point == "poll" else 1)
        if chance < self.chances.crash:
            self.happened[f"crash at {point}"] += 1
            self._note(slot, f"crash at {point}")
            raise Crashed
        if chance < self.chances.crash + self.chances.stop:
            self.happened[f"stop at {point}"] += 1
            self._stop(slot, point)
        elif chance < self.chances.crash + self.chances.stop + self.chances.error:
            return self._error(slot, point)
        return None

    def _stop(self, slot: Slot, point: str) -> None:
        """The process stands still in the midst of a call, and others go on."""
        until = self.clock.monotonic() + self.random.choice(STOPS_S)
        self._note(slot, f"stopped at {point} until {until:.2f}")
        assert slot.clients is not None
        self.broker.stop(slot.clients.host)
        slot.is_stopped = True
        while self.clock.monotonic() < until:
            self._turn()
        slot.is_stopped = False
        self.broker.go_on(slot.clients.host)
        self._note(slot, "goes on")

    def _error(self, slot: Slot, point: str) -> KafkaError | None:
        codes = ERRORS.get(point, ())
        if not codes:
            return None
        error = self.random.choice(codes)
        self.happened[f"{error.name()} at {point}"] += 1
        self._note(slot, f"{error.name()} at {point}")
        return error

    # What came of it -------------------------------------------------------------------------------------------------

    def committed(self, suffix: str, partition: int) -> list[Record]:
        """What a reader of committed records is given of one of the fleet's topics."""
        return self.committed_of(self.fleet.topic(suffix), partition)

    def committed_of(self, topic: str, partition: int) -> list[Record]:
        log = self.broker.logs[topic, partition]
        return [record for record in log.records if record.fate is Fate.COMMITTED and not record.is_marker]

    def changes(self) -> list[dict[str, Any]]:
        """All changes, each with its partition, in the order of each partition."""
        return [
            json.loads(record.value) | {"partition": number}
            for number in range(self.partitions)
            for record in self.committed("matches", number)
            if record.value is not None
        ]

    def _lags(self) -> dict[tuple[str, int], int]:
        offsets = self.broker.group(self.fleet.name).offsets
        places = [(source.topic, number) for source in self.fleet.sources for number in range(self.partitions)]
        return {place: self.broker.logs[place].end - offsets.get(place, (0, ""))[0] for place in places}

    def _is_caught_up(self) -> bool:
        ready = all(slot.process is not None and slot.has_started for slot in self.slots)
        return ready and not any(self._lags().values()) and not self._waits()

    def _waits(self) -> bool:
        """Whether a transaction with more than its beginning is open."""
        return any(log.open for log in self.broker.logs.values())


def _abortable(code: int) -> KafkaError:
    return KafkaError(code, "simulated", txn_requires_abort=True)


_LOST = KafkaError(KafkaError._TIMED_OUT, "simulated: no answer", retriable=True)
_UNDELIVERED = KafkaError(KafkaError._MSG_TIMED_OUT, "simulated: not delivered")
_COORDINATOR = KafkaError(KafkaError.NOT_COORDINATOR, "simulated", retriable=True)

# By point: what a client may be told there. After `.done` it has been done all the same.
ERRORS = {
    "committed": [KafkaError(KafkaError._TIMED_OUT, "simulated")],
    "commit_offsets": [
        KafkaError(KafkaError.REBALANCE_IN_PROGRESS, "simulated", retriable=True),
        KafkaError(KafkaError.UNKNOWN_MEMBER_ID, "simulated"),
        KafkaError(KafkaError._TIMED_OUT, "simulated: no answer", retriable=True),
    ],
    "commit_offsets.done": [KafkaError(KafkaError._TIMED_OUT, "simulated: no answer", retriable=True)],
    "deliver": [_UNDELIVERED],
    "init_transactions": [_LOST, _COORDINATOR],
    "init_transactions.done": [_LOST],
    "send_offsets": [
        _LOST,
        _COORDINATOR,
        _abortable(KafkaError.ILLEGAL_GENERATION),
        _abortable(KafkaError.UNKNOWN_MEMBER_ID),
    ],
    "send_offsets.done": [_LOST],
    "commit_transaction": [_LOST, _COORDINATOR, _abortable(KafkaError.INVALID_TXN_STATE)],
    "commit_transaction.done": [_LOST],
    "abort_transaction": [_LOST],
    "abort_transaction.done": [_LOST],
}
