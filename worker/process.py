"""The process around the loop: start, signals, resets, the end. `run` is the body of `arcfleet worker`."""

from __future__ import annotations

import contextlib
import gc
import signal
import socket
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import KafkaException, TopicPartition

from afa import Engine
from afa.durations import parse_duration
from afa.source import Source
from arcfleet.fleet.arc_writer import publish_patterns, refusal
from arcfleet.fleet.arcs import ArcTable
from arcfleet.fleet.document import Fleet, start_time
from arcfleet.fleet.fitness import check_fitness
from worker.arc_feed import ArcFeed
from worker.binding import check_room
from worker.checkpoint import Checkpoint, CommitSettings
from worker.clients import KafkaClients
from worker.clock import Clock, SystemClock
from worker.cloud_events import CloudEvents
from worker.cluster import UNKNOWN, Cluster, check_cluster, check_committed, naming_rights
from worker.ends import Ends
from worker.errors import ResetError, WorkerError
from worker.health import Answer, HealthServer
from worker.loop import Loop, Parts
from worker.metrics import Metrics
from worker.observing import Observer
from worker.orphans import Orphans
from worker.publishing import Publisher
from worker.punctuality import Idle, IdleRule
from worker.reactions import Reaction, reaction_of_producer
from worker.records import Needed
from worker.restore import Restorer, Sources
from worker.sides import Sides, TooManyBadError
from worker.watchdog import Watchdog

UNITS_PER_S: Final = {"ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
RESETS_IN_A_ROW_MAX: Final = 30
INIT_S: Final = 15.0
FENCED_LOOK_S: Final = 3.0  # more than one heartbeat: by then the consumer knows whether somebody took over

# Every batch is thousands of objects that come and go, none of them in a cycle: to look for cycles whenever some
# hundred are new took a tenth of a worker's time.
GC_ALLOCATIONS: Final = 100_000

Say = Callable[..., None]


def collect_rarely() -> None:
    """Sets Python's garbage collector for a process that is a worker and nothing else, once it has started: what is
    there then stays."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_ALLOCATIONS, *gc.get_threshold()[1:])


@dataclass(frozen=True)
class Options:
    """What the command line says beside the fleet document."""

    instance: str
    is_static: bool
    port: int = 9464
    host: str = "127.0.0.1"
    accept_lost_state: bool = False


class Process:
    """One worker, from its start to its end."""

    def __init__(
        self,
        fleet: Fleet,
        options: Options,
        say: Say,
        *,
        clock: Clock | None = None,
        clients: Any = None,
        cluster: Cluster = UNKNOWN,
    ) -> None:
        self.fleet = fleet
        self.cluster = cluster
        self.options = options
        self.say = say
        self.clock = clock or SystemClock()
        self.clients = clients or KafkaClients(fleet, options.instance if options.is_static else None)
        self.exactly_once = fleet.delivery == "exactly_once"
        self.transactional_id = f"{fleet.name}-{options.instance}"
        self.metrics = Metrics()
        self.watchdog = Watchdog(self.clock.monotonic, lambda what: say("hung", why=what))
        self.stopping = ""
        self.loop: Loop | None = None
        self._resets = 0  # in a row

    def stop(self, why: str) -> None:
        """The loop ends after its step: `SIGTERM` keeps the place in the group, `SIGUSR1` gives it up."""
        self.stopping = self.stopping or why

    def start(self) -> Loop:
        """Everything up to the first step. Raises WorkerError, ResetError, KafkaException."""
        fleet, clock = self.fleet, self.clock
        consumer = self.clients.group_consumer()
        producer = self._producer()
        publisher = self._publisher(producer)
        ends = Ends(consumer)
        observer = Observer(self.metrics, clock, self.options.instance, ends, UNITS_PER_S[fleet.unit])
        checkpoint = self._checkpoint(consumer, publisher, observer)
        query = self.clients.query()
        accepts = self.options.accept_lost_state
        check_committed(query, fleet, self.cluster.partitions, accepts_lost_state=accepts)
        arcs = self._arc_feed()
        arcs.read_to_end(query, fleet.start_deadline_s, clock.monotonic)
        for name, error in arcs.refused.items():  # before anything is consumed
            raise refusal(name, error, fleet.topic("arcs"))
        topics = [source.topic for source in fleet.sources]
        parts = Parts(
            consumer=consumer,
            publisher=publisher,
            checkpoint=checkpoint,
            restorer=self._restorer(consumer, query),
            arcs=arcs,
            sides=Sides(lambda: self._parts.publisher),
            observer=observer,
            ends=ends,
            idle=Idle(self._idle_rules(), ends.lag),
            clock=clock,
            topics=topics,
            needed=Needed.by(fleet.sources),
            make_engine=self.make_engine,
            wall_units=lambda: int(clock.wall() * UNITS_PER_S[fleet.unit]),
            orphans=Orphans(self.clients.group_view(), clock, self.cluster.partitions),
            me=consumer.memberid,
            say=self.say,
            renew=self._renew,
        )
        self._parts = parts
        self.loop = Loop(parts)
        checkpoint.begin()
        self.loop.subscribe()
        return self.loop

    def alive(self) -> Answer:
        """Making progress, or nothing to do; a start ends by itself, or by its deadline."""
        return (True, {"alive": True, "starting": True}) if self.loop is None else self._parts.observer.alive()

    def is_ready(self) -> Answer:
        """Assigned and restored."""
        return (False, {"ready": False}) if self.loop is None else self._parts.observer.is_ready()

    def run(self) -> None:
        """Steps until it is told to stop. Raises WorkerError."""
        while not self.stopping:
            self.turn()
        assert self.loop is not None
        self.finish(self.loop)

    def turn(self) -> None:
        """One step, and what its failure asks for. Raises WorkerError."""
        loop = self.loop
        assert loop is not None
        try:
            if self._parts.observer.stopped:
                self._stay(loop)
                return
            loop.step()
            self._resets = 0
        except ResetError as error:
            self._begin_again(loop, error)
        except KafkaException as error:  # an answer that the consumer did not get
            self._begin_again(loop, ResetError(f"{error.args[0].name()}: {error.args[0].str()}"))
        except TooManyBadError as error:
            self.say("stopped consuming", why=str(error))
            self._parts.observer.stopped = str(error)
            self._parts.observer.ready = False
            with contextlib.suppress(ResetError):
                loop.commit(waits=True)

    def _begin_again(self, loop: Loop, error: ResetError) -> None:
        self._resets += 1
        self.say("reset", why=error.why, in_a_row=self._resets)
        if self._resets > RESETS_IN_A_ROW_MAX:
            raise WorkerError(f"{self._resets} resets in a row, the last: {error.why}")
        self._reset(loop, error)

    def _stay(self, loop: Loop) -> None:
        """Consuming has stopped; the process stays, so that somebody can look, and sees the backlog grow."""
        self._parts.consumer.pause(self._parts.consumer.assignment())
        self._parts.consumer.poll(0.5)
        self._parts.ends.ask(loop.partitions.values())
        loop.look()

    def _reset(self, loop: Loop, error: ResetError) -> None:
        if error.fenced:
            self._look_whether_replaced()
        try:
            loop.reset(error)
        except KafkaException as failed:
            if reaction_of_producer(failed.args[0]) is Reaction.END:
                raise WorkerError(f"a new producer: {failed.args[0].str()}") from None
            self.clock.sleep(1.0)
            try:
                self._renew(True)
            except KafkaException as again:
                raise WorkerError(f"no new producer: {again.args[0].str()}", fix="restart it") from None

    def _look_whether_replaced(self) -> None:
        """A zombie that made itself a new producer would fence its healthy replacement: the consumer knows first."""
        until = self.clock.monotonic() + FENCED_LOOK_S
        while self.clock.monotonic() < until:
            message = self._parts.consumer.poll(0.2)
            error = None if message is None else message.error()
            if error is not None and (error.fatal() or error.name() in ("_FATAL", "FENCED_INSTANCE_ID")):
                raise WorkerError(f"another process runs as {self.options.instance}: {error.str()}")

    def finish(self, loop: Loop) -> None:
        """A last commit, then the clients close."""
        consumer = self._parts.consumer
        with contextlib.suppress(ResetError, TooManyBadError):
            loop.close()
        if self.stopping == "leave" and self.options.is_static:
            consumer.unsubscribe()
            until = self.clock.monotonic() + 5.0
            while consumer.assignment() and self.clock.monotonic() < until:
                consumer.poll(0.1)
        consumer.close()

    # Parts -----------------------------------------------------------------------------------------------------------

    def make_engine(self, table: ArcTable, unread: Collection[str] = ()) -> Engine:
        """An engine for one partition, with the arcs of a table; it waits for unread sources, too. Raises AfaError if
        the fleet cannot run a pattern."""
        patterns = table.patterns(self.fleet.unit)
        check_fitness(patterns, self.fleet)
        engine = Engine(
            patterns,
            net="batch",
            sources=[*self.fleet.sources, *map(Source, unread)],
            unit=self.fleet.unit,
            limits=self.fleet.limits,
        )
        if table.promise is not None:
            engine.change_arc(table.promise.as_change())
        return engine

    def _arc_feed(self) -> ArcFeed:
        return ArcFeed(
            self.clients.reader(),
            self.fleet.topic("arcs"),
            self.make_engine,
            lambda what: self.say("bad arc record", why=what),
            lambda count: self.metrics.set("arcfleet_refused_patterns", count),
        )

    def _producer(self) -> Any:
        producer = self.clients.producer(self.transactional_id if self.exactly_once else None)
        if self.exactly_once:
            with self.watchdog.watching("init_transactions"):
                producer.init_transactions(INIT_S)
        return producer

    def _publisher(self, producer: Any) -> Publisher:
        return Publisher(
            producer,
            self.fleet.name,
            self.clock,
            punctuation_interval_s=self.fleet.punctuation_interval_s,
            upsert=self.fleet.envelope == "upsert",
            room=self.cluster.room,
            cloud_events=CloudEvents(self.fleet.name) if self.fleet.headers == "cloudevents" else None,
        )

    def _checkpoint(self, consumer: Any, publisher: Publisher, observer: Observer) -> Checkpoint:
        fleet = self.fleet
        settings = CommitSettings(
            self.transactional_id,
            self.exactly_once,
            fleet.commit_interval_s,
            fleet.snapshot_interval_s,
            self.cluster.partitions,
        )
        return Checkpoint(settings, consumer, publisher, self.clock, self.watchdog, observer=observer)

    def _renew(self, new_producer: bool) -> None:
        producer = self._parts.publisher.producer
        if self.exactly_once and not new_producer:
            try:
                with self.watchdog.watching("abort_transaction"):
                    producer.abort_transaction(INIT_S)
            except KafkaException:
                new_producer = True
        if new_producer:
            with contextlib.suppress(KafkaException):
                producer.purge()
            producer = self._producer()
        parts = self._parts
        parts.publisher = self._publisher(producer)
        parts.checkpoint = self._checkpoint(parts.consumer, parts.publisher, parts.observer)
        parts.checkpoint.begin()

    def _restorer(self, consumer: Any, query: Any) -> Restorer:
        sources = Sources(
            consumer=consumer,
            reader=self.clients.restore_reader(),
            query=query,
            sources=self.fleet.sources,
            removed=self.fleet.removed,
            partitions=self.cluster.partitions,
            prefix=self.fleet.name,
            owner=self.transactional_id,
            make_engine=self.make_engine,
            clock=self.clock,
            fence=self._fence,
            start_of=lambda topic, number, since: self._start_of(query, topic, number, since),
            say=self.say,
            count_lost=lambda: self.metrics.add("arcfleet_lost_partitions_total", 1),
        )
        return Restorer(sources, verify=self.exactly_once, accept_lost_state=self.options.accept_lost_state)

    def _fence(self, owner: str) -> None:
        """Ends the open transaction of an owner that is gone."""
        if not self.exactly_once or owner == self.transactional_id:
            return
        self.say("fencing", owner=owner)
        with contextlib.suppress(KafkaException):
            self.clients.producer(owner).init_transactions(INIT_S)

    def _start_of(self, query: Any, topic: str, number: int, since: int | None) -> int:
        """Where a new fleet starts in a partition, which the first commit records; or goes on in one that it read
        before, as far as its records are still there."""
        source = next(source for source in self.fleet.sources if source.topic == topic)
        place = TopicPartition(topic, number)
        low, high = query.get_watermark_offsets(place, timeout=INIT_S)
        if since is not None:
            return max(int(low), since)
        if source.start == "earliest":
            return int(low)
        moment = start_time(source)
        if moment is None:
            return int(high)
        place.offset = int(moment.timestamp() * 1000)
        found = query.offsets_for_times([place], INIT_S)[0].offset
        return int(high if found < 0 else found)

    def _idle_rules(self) -> dict[str, IdleRule]:
        rules = {}
        for source in self.fleet.sources:
            told = source.punctuation
            if told.idle is not None:
                idle_s = parse_duration(told.idle, "ns") / 1e9
                slack = parse_duration(told.slack or "0s", self.fleet.unit)
                rules[source.topic] = IdleRule(idle_s, slack, UNITS_PER_S[self.fleet.unit])
        return rules


@contextlib.contextmanager
def obeying_signals(process: Process) -> Iterator[None]:
    """SIGTERM and SIGINT end it; SIGUSR1 ends it and gives its partitions up at once."""
    orders = {signal.SIGTERM: "stop", signal.SIGINT: "stop", signal.SIGUSR1: "leave"}
    before = {number: signal.signal(number, lambda *_, why=why: process.stop(why)) for number, why in orders.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def new_instance() -> str:
    """A name for a process that was given none: it joins as a new member each time."""
    return f"{socket.gethostname()}-{uuid.uuid4().hex[:12]}"


def run(
    fleet: Fleet,
    options: Options,
    documents: Sequence[dict[str, Any]],
    say: Say,
    listening: Callable[[str], None],
) -> None:
    """Publishes the patterns that are new, and runs a worker until it is told to stop. Raises WorkerError, AfaError."""
    process = Process(fleet, options, say)
    check_room([*(source.topic for source in fleet.sources), *fleet.removed], process.transactional_id)
    with health_door(process) as url:
        process.cluster = check_cluster(fleet, say, publishes=bool(documents))
        if documents:
            with naming_rights(fleet):
                published = publish_patterns(documents, fleet.name, process.clients, process.make_engine)
            say("patterns", published=published)
        process.watchdog.start()
        try:
            with obeying_signals(process):
                _start_within_deadline(process, say)
                collect_rarely()
                listening(url)
                process.run()
        finally:
            process.watchdog.stop()


@contextlib.contextmanager
def health_door(process: Process) -> Iterator[str]:
    """Its address. It is opened before anything else: who cannot listen must not join a group, or publish. Raises
    WorkerError."""
    options = process.options
    try:
        health = HealthServer(options.host, options.port, process.metrics.registry, process.alive, process.is_ready)
    except OSError as error:
        fix = "end what listens there, or give another --port (0: any free one)"
        raise WorkerError(f"cannot listen on {options.host}:{options.port}: {error.strerror}", fix=fix) from None
    try:
        yield health.url
    finally:
        health.close()


def _start_within_deadline(process: Process, say: Say) -> None:
    until = process.clock.monotonic() + process.fleet.start_deadline_s
    while True:
        try:
            with naming_rights(process.fleet):
                process.start()
        except (KafkaException, ResetError) as error:
            what = error.why if isinstance(error, ResetError) else error.args[0].str()
            if process.clock.monotonic() > until:
                bootstrap, deadline_s = process.fleet.bootstrap, process.fleet.start_deadline_s
                raise WorkerError(
                    f"no start within {deadline_s:g} s (start_deadline): {what}",
                    fix=f"is {bootstrap} a broker that answers?",
                ) from None
            say("starting again", why=what)
            process.clock.sleep(1.0)
        else:
            return


__all__ = ["Options", "Process", "run"]
