"""A consumer, with the methods of confluent_kafka's that are used."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from support.fake_log.clock import SLICE_S
from support.fake_log.faults import timed_out
from support.fake_log.groups import Metadata
from support.fake_log.log import Place, Record

CREATE_TIME: Final = 1  # the kind of a timestamp
NEVER_JOINED: Final = -1


@dataclass
class _Fetched:
    """A partition that is being read."""

    position: int | None  # none: it has to be looked up first
    told_end: int | None = None  # the end that was told last
    is_paused: bool = False
    high: int = OFFSET_INVALID  # the end as of the last fetch, open transactions included


@dataclass
class _Rebalance:
    """A callback that waits to be called."""

    kind: str  # assign, revoke or lost
    places: set[Place]


class FakeConsumer:
    """Works when it is called; what a real one does in the background happens in `tick`."""

    def __init__(self, broker: Any, settings: Mapping[str, Any], host: Any) -> None:
        self.broker = broker
        self.host = host
        self.session_s = settings.get("session.timeout.ms", 45_000) / 1000
        self.heartbeat_s = settings.get("heartbeat.interval.ms", 3_000) / 1000
        self._max_poll_s = settings.get("max.poll.interval.ms", 300_000) / 1000
        self._committed_only = settings.get("isolation.level", "read_committed") == "read_committed"
        self._tells_ends = bool(settings.get("enable.partition.eof", False))
        self._reset = settings.get("auto.offset.reset", "latest")
        self._group = broker.group(settings["group.id"])
        self._instance = settings.get("group.instance.id")
        self._fetched: dict[Place, _Fetched] = {}
        self._events: deque[Message] = deque()  # errors and ends
        self._waiting: deque[_Rebalance] = deque()
        self._callbacks: dict[str, Callable[[Any, list[Any]], None] | None] = {}
        self._topics: list[str] = []
        self._member = ""
        self._generation = NEVER_JOINED
        self._owned: set[Place] = set()  # by the group
        self._has_answered = False  # whether the callback that runs has assigned or unassigned
        self._polled_at = broker.clock.monotonic()
        self._heartbeat_at = 0.0
        self._was_asleep = False
        self._closed_at: float | None = None

    # The group's side ------------------------------------------------------------------------------------------------

    def silent_since(self) -> float | None:
        """Since when no heartbeats come."""
        return self._closed_at if self._closed_at is not None else self.host.silent_since

    def has_rebalance_waiting(self) -> bool:
        """Whether a callback has to be called before it can join again."""
        return bool(self._waiting)

    def given(self, generation: int, places: set[Place]) -> None:
        """A rebalance has ended: what it owns from here on."""
        self._generation = generation
        gone, new = self._owned - places, places - self._owned
        if gone:
            self._waiting.append(_Rebalance("revoke", gone))
        if new or not gone:
            self._owned |= new
            self._waiting.append(_Rebalance("assign", new))

    def tick(self) -> None:
        """A heartbeat finds out whether it is still a member."""
        now = self.broker.clock.monotonic()
        if not self._member or now < self._heartbeat_at:
            return
        self._heartbeat_at = now + self.heartbeat_s
        if now - self._polled_at > self._max_poll_s:
            self._events.append(Message(error=KafkaError(KafkaError._MAX_POLL_EXCEEDED, "not polled for too long")))
            self._group.remove(self._member)
        if self._member in self._group.members:
            return
        is_replaced = any(member.instance == self._instance for member in self._group.members.values())
        if self._instance is not None and is_replaced:
            fenced = KafkaError(KafkaError._FATAL, "Fatal error: FENCED_INSTANCE_ID: a static consumer was fenced")
            self._events.append(Message(error=fenced))
        self._lose(rejoins=not (self._instance is not None and is_replaced))

    def woken(self) -> None:
        """Its process was stopped: the next heartbeat comes when the clock says so, and the callback may be either."""
        self._was_asleep = True
        self._polled_at = self.broker.clock.monotonic()
        self._heartbeat_at = self._polled_at + self.broker.random.random() * self.heartbeat_s

    def _lose(self, *, rejoins: bool) -> None:
        self._member = ""  # the generation it keeps until it joins again
        kind = "revoke" if self._was_asleep and self.broker.random.random() < 0.5 else "lost"
        self._was_asleep = False
        self._waiting.clear()
        if self._owned:
            self._waiting.append(_Rebalance(kind, set(self._owned)))
        elif rejoins:
            self._join()
        if not rejoins:
            self._topics = []

    def _join(self) -> None:
        if self._topics:
            self._heartbeat_at = self.broker.clock.monotonic() + self.heartbeat_s
            self._generation = NEVER_JOINED
            self._member = self._group.join(self, self._instance, self._topics)

    def _call_back(self) -> None:
        """Calls the callback that waits longest."""
        self._fault("rebalance")
        if not self._waiting:
            return
        rebalance = self._waiting[0]
        if rebalance.kind != "assign":
            rebalance.places &= self._owned  # some may have been given back while it waited
        callback = self._callbacks.get(rebalance.kind) or (
            self._callbacks.get("revoke") if rebalance.kind == "lost" else None
        )
        self._has_answered = False
        if callback is not None:
            callback(self, [TopicPartition(*place) for place in sorted(rebalance.places)])
        if rebalance.kind == "assign":
            if not self._has_answered:
                self.incremental_assign([TopicPartition(*place) for place in sorted(rebalance.places)])
        else:
            self._give_back(rebalance)
        if self._waiting and self._waiting[0] is rebalance:
            self._waiting.popleft()
        if rebalance.kind != "assign" and self._closed_at is None:
            self._rejoin()

    def _give_back(self, rebalance: _Rebalance) -> None:
        if not self._has_answered:
            for place in rebalance.places:
                self._fetched.pop(place, None)
        self._owned -= rebalance.places
        member = self._group.members.get(self._member)
        if member is not None:
            member.owned -= rebalance.places

    def _rejoin(self) -> None:
        if self._member in self._group.members:
            self._group.rebalance()
        elif not self._member:
            self._join()

    # Subscriptions ---------------------------------------------------------------------------------------------------

    def subscribe(self, topics: list[str], on_assign: Any = None, on_revoke: Any = None, on_lost: Any = None) -> None:
        self._topics = list(topics)
        self._callbacks = {"assign": on_assign, "revoke": on_revoke, "lost": on_lost}
        self._polled_at = self.broker.clock.monotonic()
        self._join()

    def unsubscribe(self) -> None:
        """Leaves the group; what it has is revoked by a later poll."""
        self._topics = []
        self._waiting.clear()
        if self._owned:
            self._waiting.append(_Rebalance("revoke", set(self._owned)))
        self._leave()

    def _leave(self) -> None:
        member, self._member = self._member, ""
        self._group.remove(member)

    def close(self) -> None:
        """A dynamic member leaves the group; the place of a static one is kept for a session."""
        if self._closed_at is not None:
            return
        if self._owned:
            self._waiting.clear()
            self._waiting.append(_Rebalance("revoke", set(self._owned)))
            self._topics = []
            self._call_back()
        self._closed_at = self.broker.clock.monotonic()
        if self._instance is None:
            self._leave()
        self._fetched.clear()
        self.broker.forget(self)

    def memberid(self) -> str | None:
        return self._member or None

    def consumer_group_metadata(self) -> Metadata:
        return Metadata(self._group.name, self._generation, self._member, self._instance)

    # Assignments -----------------------------------------------------------------------------------------------------

    def assign(self, partitions: list[Any]) -> None:
        self._has_answered = True
        self._events.clear()
        self._fetched = {}
        self._add(partitions)

    def unassign(self) -> None:
        self._has_answered = True
        self._events.clear()
        self._fetched = {}

    def incremental_assign(self, partitions: list[Any]) -> None:
        for partition in partitions:
            if (partition.topic, partition.partition) in self._fetched:
                raise _refused(KafkaError._CONFLICT, f"{partition.topic}/{partition.partition} is assigned already")
        self._has_answered = True
        self._add(partitions)

    def incremental_unassign(self, partitions: list[Any]) -> None:
        for partition in partitions:
            if (partition.topic, partition.partition) not in self._fetched:
                raise _refused(KafkaError._INVALID_ARG, f"{partition.topic}/{partition.partition} is not assigned")
        self._has_answered = True
        for partition in partitions:
            del self._fetched[partition.topic, partition.partition]
        gone = {(partition.topic, partition.partition) for partition in partitions}
        self._events = deque(event for event in self._events if (event.topic(), event.partition()) not in gone)

    def assignment(self) -> list[TopicPartition]:
        return [TopicPartition(*place) for place in sorted(self._fetched)]

    def pause(self, partitions: list[Any]) -> None:
        for partition in partitions:
            self._fetched[partition.topic, partition.partition].is_paused = True

    def _add(self, partitions: Iterable[Any]) -> None:
        for partition in partitions:
            place, offset = (partition.topic, partition.partition), partition.offset
            log = self.broker.log(place)
            known = {OFFSET_BEGINNING: log.low, OFFSET_END: self._end(place)}
            self._fetched[place] = _Fetched(known.get(offset, offset if offset >= 0 else None))

    # Reading ---------------------------------------------------------------------------------------------------------

    def poll(self, timeout: float = -1.0) -> Any:
        """The next record or event; callbacks are called on the way."""
        found = self._wait(1, timeout)
        return found[0] if found else None

    def consume(self, num_messages: int = 1, timeout: float = -1.0) -> list[Any]:
        """Waits the whole time unless so many have come."""
        return self._wait(num_messages, timeout)

    def _wait(self, most: int, timeout: float) -> list[Message]:
        clock = self.broker.clock
        until = clock.monotonic() + timeout
        found: list[Message] = []
        while True:
            self._polled_at = clock.monotonic()
            self._fault("poll")
            while self._waiting:
                self._call_back()
            found += self._take(most - len(found))
            left = until - clock.monotonic()
            if len(found) >= most or left <= 1e-9:
                return found
            clock.advance(min(left, SLICE_S))

    def _take(self, most: int) -> list[Message]:
        found: list[Message] = []
        places = [place for place, fetched in self._fetched.items() if not fetched.is_paused]
        self.broker.random.shuffle(places)
        for place in places:
            if len(found) + len(self._events) < most:
                found += self._fetch(place, most - len(found) - len(self._events))
        while self._events and len(found) < most:
            found.append(self._events.popleft())
        return found

    def _fetch(self, place: Place, most: int) -> list[Message]:
        """Records of a partition, perhaps not all at once; at its end, once, that it is the end."""
        fetched, log = self._fetched[place], self.broker.logs[place]
        if fetched.position is None and not self._look_up(place, fetched):
            return []
        assert fetched.position is not None
        if not log.low <= fetched.position <= log.end:
            self._reset_offset(place, fetched, f"offset {fetched.position} is out of range")
            return []
        fetched.high = log.end  # also for readers of committed records
        some = self.broker.random.randint(1, most)
        records, fetched.position = log.read(fetched.position, some, committed_only=self._committed_only)
        if not records and self._tells_ends and fetched.told_end != fetched.position:
            fetched.told_end = fetched.position
            end = KafkaError(KafkaError._PARTITION_EOF)
            self._events.append(Message(topic=place[0], partition=place[1], offset=fetched.position, error=end))
        return [_message(place, record) for record in records]

    def _look_up(self, place: Place, fetched: _Fetched) -> bool:
        """Whether a start is known: what was committed, else as `auto.offset.reset` says."""
        if self._committed_only and self.broker.transactions.is_unstable(self._group, place):
            return False
        if place in self._group.offsets:
            fetched.position = self._group.offsets[place][0]
            return True
        self._reset_offset(place, fetched, "no committed offset")
        return fetched.position is not None

    def _reset_offset(self, place: Place, fetched: _Fetched, why: str) -> None:
        if self._reset == "error":
            error = KafkaError(KafkaError._AUTO_OFFSET_RESET, f"{place[0]}/{place[1]}: {why}")
            self._events.append(Message(topic=place[0], partition=place[1], offset=OFFSET_INVALID, error=error))
            fetched.is_paused = True
        else:
            log = self.broker.logs[place]
            fetched.position = log.low if self._reset in ("earliest", "beginning") else self._end(place)

    def _end(self, place: Place) -> int:
        log = self.broker.logs[place]
        return int(log.stable_end if self._committed_only else log.end)

    # Asking the broker -----------------------------------------------------------------------------------------------

    def committed(self, partitions: list[Any], timeout: float = -1.0) -> list[TopicPartition]:
        """Waits for open transactions that hold the offsets, unless uncommitted records are read."""
        self._answered("committed", timeout)
        until = self.broker.clock.monotonic() + timeout
        places = [(partition.topic, partition.partition) for partition in partitions]
        while self._committed_only and any(
            self.broker.transactions.is_unstable(self._group, place) for place in places
        ):
            if self.broker.clock.monotonic() >= until:
                raise _refused(KafkaError._TIMED_OUT, "Failed to fetch committed offsets: timed out")
            self.broker.clock.advance(SLICE_S)
        found = [self._group.offsets.get(place, (OFFSET_INVALID, None)) for place in places]
        return [
            TopicPartition(topic, number, offset, metadata) if metadata else TopicPartition(topic, number, offset)
            for (topic, number), (offset, metadata) in zip(places, found, strict=True)
        ]

    def commit(self, *, offsets: list[Any], asynchronous: bool) -> list[TopicPartition]:
        assert not asynchronous, "nobody does that"
        if not offsets:
            raise _refused(KafkaError._NO_OFFSET, "Commit failed: Local: No offset stored")
        self._answered("commit_offsets", self.session_s)
        code = self._group.refusal(self.consumer_group_metadata(), in_transaction=False)
        if code is not None:
            raise _refused(code, "Commit failed")
        for offset in offsets:
            self._group.offsets[offset.topic, offset.partition] = (offset.offset, offset.metadata or "")
        self._fault("commit_offsets.done")
        return offsets

    def get_watermark_offsets(self, partition: Any, timeout: float = -1.0, cached: bool = False) -> tuple[int, int]:
        place = (partition.topic, partition.partition)
        if cached:
            fetched = self._fetched.get(place)
            return (OFFSET_INVALID, OFFSET_INVALID) if fetched is None else (self.broker.logs[place].low, fetched.high)
        self._answered("watermarks", timeout)
        return self.broker.log(place).low, self._end(place)

    def offsets_for_times(self, partitions: list[Any], timeout: float = -1.0) -> list[TopicPartition]:
        """Of each the first record that is not older than the time in its offset."""
        self._answered("offsets_for_times", timeout)
        found = []
        for partition in partitions:
            first = self.broker.log((partition.topic, partition.partition)).first_at(partition.offset)
            found.append(TopicPartition(partition.topic, partition.partition, OFFSET_END if first is None else first))
        return found

    def _fault(self, point: str) -> None:
        error = self.broker.faults(point, self)
        if error is not None:
            raise KafkaException(error)

    def _answered(self, what: str, timeout: float) -> None:
        """A broker that is too slow does not answer in time."""
        self._fault(what)
        latency_s = self.host.latency_s
        self.broker.clock.advance(latency_s if timeout < 0 else min(latency_s, timeout))
        if 0 <= timeout < latency_s:
            raise KafkaException(timed_out(what))


def _refused(code: int, what: str) -> KafkaException:
    return KafkaException(KafkaError(code, what))


def _message(place: Place, record: Record) -> Message:
    return Message(
        topic=place[0],
        partition=place[1],
        offset=record.offset,
        key=record.key,
        value=record.value,
        headers=record.headers,
        timestamp=(CREATE_TIME, record.timestamp_ms),
    )
