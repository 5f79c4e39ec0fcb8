"""A producer, with the methods of confluent_kafka's that are used."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from confluent_kafka import KafkaError, KafkaException, Message

from support.fake_log.faults import timed_out
from support.fake_log.log import Place, Record
from support.fake_log.transactions import FencedError

CALL_S = 60.0  # where a caller says nothing


@dataclass
class _Queued:
    """A record on its way."""

    place: Place
    record: Record
    on_delivery: Any


class FakeProducer:
    """Idempotent: each record arrives once and in order; with a transactional id in transactions."""

    def __init__(self, broker: Any, settings: Mapping[str, Any], host: Any) -> None:
        self.broker = broker
        self.host = host
        self.transactional_id = settings.get("transactional.id")
        self._timeout_s = float(settings.get("transaction.timeout.ms", 60_000)) / 1000
        self._most = settings.get("queue.buffering.max.messages", 100_000)
        self._epoch = -1
        self._state = "new"  # ready, in a transaction
        self._abortable: KafkaError | None = None
        self._fatal: KafkaError | None = None
        self._is_untold = False  # a fatal error that a poll or a flush has to raise
        self._is_empty = True  # nothing of the transaction has reached the broker
        self._queue: deque[_Queued] = deque()
        self._reports: deque[tuple[Any, KafkaError | None, Message]] = deque()

    def __len__(self) -> int:
        return len(self._queue) + len(self._reports)

    # Records ---------------------------------------------------------------------------------------------------------

    def produce(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int = -1,
        on_delivery: Any = None,
        timestamp: int = 0,
        headers: Any = None,
    ) -> None:
        self._fault("produce")
        if self._fatal is not None:
            raise KafkaException(KafkaError(KafkaError._FATAL, self._fatal.str()))
        if self.transactional_id is not None and self._state != "in a transaction":
            raise _error(KafkaError._STATE, "there is no transaction")
        if len(self) >= self._most:
            raise BufferError("Local: Queue full")
        key, value = _bytes(key), _bytes(value)
        place = (topic, partition if partition >= 0 else crc32(key or b"") % self.broker.partitions.get(topic, 1))
        self.broker.log(place)
        stamp = timestamp or int(self.broker.clock.wall() * 1000)
        record = Record(0, stamp, key, value, [(name, _bytes(told)) for name, told in headers] if headers else None)
        self._queue.append(_Queued(place, record, on_delivery))

    def poll(self, timeout: float = 0.0) -> int:
        """Calls back for what has been delivered; some more is on the way."""
        self._send(self.broker.random.randint(0, len(self._queue)))
        if timeout > 0 and not self._reports:
            self.broker.clock.advance(timeout)
        return self._report()

    def flush(self, timeout: float = -1.0) -> int:
        """All that is queued is delivered, or has failed; unless the broker is too slow."""
        self._fault("flush")
        latency_s = self.host.latency_s
        self.broker.clock.advance(latency_s if timeout < 0 else min(latency_s, timeout))
        if timeout < 0 or latency_s <= timeout:
            self._send(len(self._queue))
        self._report()
        return len(self)

    def purge(self) -> None:
        """What is queued is given up."""
        while self._queue:
            self._delivered(self._queue.popleft(), KafkaError(KafkaError._PURGE_QUEUE))

    def tick(self) -> None:
        """In the background some of the queue is sent."""
        if self._queue:
            self._send(self.broker.random.randint(1, len(self._queue)))

    def woken(self) -> None:
        """Nothing to do: a producer has no session."""

    def _send(self, count: int) -> None:
        for _ in range(count):
            queued = self._queue.popleft()
            self._delivered(queued, self._deliver(queued))

    def _deliver(self, queued: _Queued) -> KafkaError | None:
        if self._fatal is not None:
            return KafkaError(KafkaError._PURGE_QUEUE)
        error = self.broker.faults("deliver", self)
        if error is not None:
            self._fail(error, aborts=True)
            return error  # type: ignore[no-any-return]
        try:
            if self.transactional_id is None:
                self.broker.logs[queued.place].append(queued.record)
            else:
                self.broker.transactions.append(self.transactional_id, self._epoch, queued.place, queued.record)
                self._is_empty = False
        except FencedError:
            self._fence()
            return KafkaError(KafkaError.INVALID_PRODUCER_EPOCH)
        return None

    def _delivered(self, queued: _Queued, error: KafkaError | None) -> None:
        (topic, partition), record = queued.place, queued.record
        message = Message(
            topic=topic, partition=partition, offset=record.offset, key=record.key, value=record.value, error=error
        )
        self._reports.append((queued.on_delivery, error, message))

    def _report(self) -> int:
        self._raise_fatal()
        count = len(self._reports)
        for _ in range(count):
            on_delivery, error, message = self._reports.popleft()
            if on_delivery is not None:
                on_delivery(error, message)
        return count

    def _raise_fatal(self) -> None:
        """Once, and as the library does: in the midst of reports it becomes another exception, and one is destroyed."""
        if self._fatal is None or not self._is_untold:
            return
        self._is_untold = False
        error = KafkaException(self._fatal)
        while self._reports:
            on_delivery, _, _ = self._reports.popleft()
            if on_delivery is not None:
                raise SystemError("a callback returned a result with an exception set") from error
        raise error

    # Transactions ----------------------------------------------------------------------------------------------------

    def init_transactions(self, timeout: float = CALL_S) -> None:
        self._answered("init_transactions", timeout)
        if self._state != "new":
            raise _error(KafkaError._STATE, "init_transactions() was called before")
        _, self._epoch = self.broker.transactions.init(self.transactional_id, self._timeout_s)
        self._fault("init_transactions.done")
        self._state = "ready"

    def begin_transaction(self) -> None:
        self._fault("begin_transaction")
        self._need("ready")
        self._state, self._is_empty = "in a transaction", True

    def send_offsets_to_transaction(self, positions: list[Any], group_metadata: Any, timeout: float = CALL_S) -> None:
        self._answered("send_offsets", timeout)
        self._need("in a transaction")
        group = self.broker.group(group_metadata.group)
        offsets = {(place.topic, place.partition): (place.offset, place.metadata or "") for place in positions}
        try:
            self.broker.transactions.check(self.transactional_id, self._epoch)
            code = group.refusal(group_metadata, in_transaction=True)
            if code is not None:
                self._raise(KafkaError(code, "Failed to commit offsets to transaction", txn_requires_abort=True))
            self.broker.transactions.add_offsets(self.transactional_id, self._epoch, group, offsets)
        except FencedError:
            self._raise(self._fence())
        self._is_empty = False
        self._fault("send_offsets.done")

    def commit_transaction(self, timeout: float = CALL_S) -> None:
        """Returns before the markers are in the partitions."""
        self._answered("commit_transaction", timeout)
        self._need("in a transaction")
        self._send(len(self._queue))
        self._report()
        self._need("in a transaction")  # a delivery may have failed
        self._end("commit_transaction", commits=True)

    def abort_transaction(self, timeout: float = CALL_S) -> None:
        self._answered("abort_transaction", timeout)
        self._abortable = None
        self._need("in a transaction")
        self.purge()
        self._report()
        self._end("abort_transaction", commits=False)

    def _end(self, what: str, *, commits: bool) -> None:
        try:
            if not self._is_empty:
                self.broker.transactions.end(self.transactional_id, self._epoch, commits=commits)
        except FencedError:
            self._raise(self._fence())
        self._fault(f"{what}.done")
        self._state = "ready"

    # What goes wrong -------------------------------------------------------------------------------------------------

    def _need(self, state: str) -> None:
        if self._fatal is not None:
            raise KafkaException(self._fatal)
        if self._abortable is not None:
            raise KafkaException(self._abortable)
        if self._state != state:
            raise _error(KafkaError._STATE, f"the producer is not {state}, but {self._state}")

    def _fence(self) -> KafkaError:
        if self._fatal is None:
            self._fatal = KafkaError(KafkaError._FENCED, "a newer producer has this transactional id", fatal=True)
            self._is_untold = True
        return self._fatal

    def _fail(self, error: KafkaError, *, aborts: bool = False) -> None:
        """What an error does to a transaction."""
        if error.fatal():
            self._fatal, self._is_untold = error, True
        elif self._state == "in a transaction" and (aborts or error.txn_requires_abort()):
            self._abortable = KafkaError(error.code(), error.str(), txn_requires_abort=True)

    def _raise(self, error: KafkaError) -> None:
        self._fail(error)
        raise KafkaException(error)

    def _fault(self, point: str) -> None:
        error = self.broker.faults(point, self)
        if error is not None:
            self._raise(error)

    def _answered(self, what: str, timeout: float) -> None:
        """A broker that is too slow does not answer in time."""
        self._fault(what)
        latency_s = self.host.latency_s
        self.broker.clock.advance(min(latency_s, timeout))
        if latency_s > timeout:
            raise KafkaException(timed_out(what))


def _error(code: int, what: str) -> KafkaException:
    return KafkaException(KafkaError(code, what))


def _bytes(told: Any) -> bytes | None:
    return told.encode() if isinstance(told, str) else told
