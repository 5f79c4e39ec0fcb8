"""Trace contexts: the header `traceparent` of an event is copied to the matches that it is the last event of.

The engine keeps no headers, so they are kept here, by key and event id, and go into the header `traces` of the key's
snapshot: a match that is told after a restore has its trace, too. Records without the header cost a look, no more.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgpack

from afa.source import Source
from worker.records import Header, Message, headers_of

TRACEPARENT: Final = "traceparent"
TRACES_PER_KEY_MAX: Final = 100  # of the events that came last
TRACE_BYTES_MAX: Final = 256  # a trace context has 55; what is longer is none

Read: TypeAlias = Callable[[Message, Any], Any]


class Traces:
    """Those of one partition."""

    def __init__(self, sources: Iterable[Source]) -> None:
        self._readers = {source.topic: _Reader(source) for source in sources}
        self._by_key: dict[str, dict[str, bytes]] = {}
        self._grown: set[str] = set()  # keys with more than they may have, until what the batch told is published

    def note(self, messages: Sequence[Message]) -> None:
        """Takes those of a batch, whose records the engine has taken as events: whoever is late or bad has no state
        here."""
        for key in self._grown:
            of_key = self._by_key.get(key, {})
            for event_id in list(of_key)[: max(0, len(of_key) - TRACES_PER_KEY_MAX)]:
                del of_key[event_id]
        self._grown.clear()
        for message, headers in [(message, told) for message in messages if (told := headers_of(message))]:
            trace = next((value for name, value in headers if name == TRACEPARENT and value), None)
            if trace is None or len(trace) > TRACE_BYTES_MAX:
                continue
            found = self._readers[message.topic()].key_and_id(message)
            if found is not None:
                self._put(*found, trace)

    def _put(self, key: str, event_id: str, trace: bytes) -> None:
        of_key = self._by_key.setdefault(key, {})
        of_key.pop(event_id, None)
        of_key[event_id] = trace
        if len(of_key) > TRACES_PER_KEY_MAX:
            self._grown.add(key)

    def of(self, value: bytes) -> bytes | None:
        """The trace of a match, as it is told."""
        if not self._by_key:
            return None
        told = json.loads(value)
        return self._by_key.get(told.get("key"), {}).get(_last_event(told) or "")

    def packed(self, key: str) -> bytes | None:
        """What goes with the snapshot of a key."""
        of_key = list(self._by_key.get(key, {}).items())[-TRACES_PER_KEY_MAX:]
        return msgpack.packb(of_key) if of_key else None

    def restore(self, key: str, packed: bytes | None) -> None:
        """What came with it."""
        for event_id, trace in msgpack.unpackb(packed) if packed else ():
            self._put(key, event_id, trace)

    def forget(self, key: str) -> None:
        """A key is back at the start."""
        self._by_key.pop(key, None)


def _last_event(told: Mapping[str, Any]) -> str | None:
    """Its id. A graph of matches that is taken back is empty, and does not say."""
    if not told.get("graph", {}).get("ends"):
        last: str | None = told.get("events", {}).get("last")
        return last
    graph = told["graph"]
    end, _ = graph["ends"][0]  # all of them are of one event
    _, event, _ = graph["nodes"][end]
    _, event_id = graph["events"][event]
    return str(event_id)


class _Reader:
    """Finds key and id in the records of a source, as the engine does."""

    def __init__(self, source: Source) -> None:
        self._unpack = msgpack.unpackb if source.codec == "msgpack" else json.loads
        self._key = _place(source.key, lambda message: (message.key() or b"").decode())
        self._id = _place(source.id, _position)
        self._op = _place(source.op, _position)

    def key_and_id(self, message: Message) -> tuple[str, str] | None:
        """None of what is no event."""
        try:
            value = self._unpack(message.value() or b"")
            key, event_id, op = (read(message, value) for read in (self._key, self._id, self._op))
        except (ValueError, TypeError, AttributeError, RecursionError, msgpack.UnpackException):
            return None
        event_id = _position(message) if event_id is None else event_id
        is_event = isinstance(key, str) and isinstance(event_id, str) and op in (None, "insert")
        return (key, event_id) if is_event else None


def _place(place: str, of_record: Callable[[Message], str]) -> Read:
    if place == "record":
        return lambda message, _: of_record(message)
    if place.startswith("header:"):
        name = place.removeprefix("header:")
        return lambda message, _: _header(headers_of(message), name)
    steps = place.split(".")
    return lambda _, value: _inside(value, steps)


def _header(headers: Sequence[Header], name: str) -> str | None:
    """The last of this name that has a value."""
    return next((value.decode() for known, value in reversed(headers) if known == name and value is not None), None)


def _inside(value: Any, steps: Sequence[str]) -> Any:
    for step in steps:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def _position(message: Message) -> str:
    return f"{message.topic()}/{message.partition():05}/{message.offset():019}"
