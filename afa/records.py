"""The run-time record types: what goes in (events, punctuations, arc changes) and what comes out (matches).

`schemas/` says the same as data; a test keeps the two equal.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

import msgpack

from afa.errors import did_you_mean, one_of
from afa.expression.tree import INT_MAX, INT_MIN
from afa.pattern import RegisterValue
from afa.reading import Fault, Fields, check_int64


@dataclass(frozen=True, slots=True)
class Event:
    """An event, its revision, or (`op` retract) its retraction."""

    key: str
    ts: int
    id: str
    op: Literal["insert", "retract"] = "insert"
    seq: int | None = None
    rev: int = 0
    type: str | None = None
    data: Mapping[str, Any] | None = None

    @property
    def order(self) -> tuple[int, int, bytes]:
        """The total order of a key's events."""
        return (self.ts, self.seq or 0, self.id.encode())

    @property
    def rank(self) -> tuple[int, bool, bytes, bool]:
        """Of the records of one identity the one with the greatest rank wins.

        A `seq` of 0 and none at all have the same canonical bytes, but are not the same to AFA+O: the number wins.
        """
        retracts = self.op == "retract"
        return (self.rev, retracts, b"" if retracts else self.canonical_bytes(), self.seq is not None)

    def canonical_bytes(self) -> bytes:
        return _pack([self.type, self.seq or 0, _canonical(self.data or {})])


@dataclass(frozen=True, slots=True)
class Punctuation:
    """No later record with a smaller `ts` (with `when`: none for which the condition holds)."""

    ts: int
    when: str | None = None


@dataclass(frozen=True, slots=True)
class ArcChange:
    """A whole new arc, or (no body) another lifetime for a known one."""

    pattern: str
    arc: Mapping[str, Any]
    valid: list[int | None] | None = None


@dataclass(frozen=True, slots=True)
class ArcRetraction:
    pattern: str
    arc: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ArcPunctuation:
    ts: int


Record: TypeAlias = Event | Punctuation | ArcChange | ArcRetraction | ArcPunctuation
OPERATIONS: Final = ("insert", "retract", "punctuation", "arc", "arc-retract", "arc-punctuation")


def read_record(value: object, default_id: str) -> Record:
    """The record that a JSON object stands for. Raises Fault. Fields nobody knows are left to their owners."""
    fields = Fields(value, (), "a record")
    operation = fields.take("op", str) if fields.has("op") else "insert"
    if operation in ("insert", "retract"):
        return _read_event(fields, "retract" if operation == "retract" else "insert", default_id)
    if operation == "punctuation":
        return Punctuation(_timestamp(fields), fields.take("when", str))
    if operation == "arc-punctuation":
        return ArcPunctuation(_timestamp(fields))
    if operation == "arc":
        return ArcChange(fields.name("pattern"), fields.need("arc", dict), fields.take("valid", list))
    if operation == "arc-retract":
        return ArcRetraction(fields.name("pattern"), fields.need("arc", dict))
    hint = did_you_mean(operation, OPERATIONS, f"write {one_of(OPERATIONS)}")
    raise Fault(("op",), f"unknown op `{operation}`", hint)


def _timestamp(fields: Fields) -> int:
    return check_int64(fields.need("ts", int, "write event time as an integer"), ("ts",), "`ts`")


def _read_event(fields: Fields, operation: Literal["insert", "retract"], default_id: str) -> Event:
    if operation == "retract" and not fields.has("id"):
        raise Fault((), "a retraction needs the `id` of the event it takes back", "add the field `id`")
    numbers = {}
    for name in ("seq", "rev"):
        number = fields.take(name, int)
        numbers[name] = None if number is None else check_int64(number, (name,), f"`{name}`")
    return Event(
        key=fields.need("key", str, "give it a `key`: a text that says which stream the event belongs to"),
        ts=_timestamp(fields),
        id=fields.take("id", str) if fields.has("id") else default_id,
        op=operation,
        seq=numbers["seq"],
        rev=numbers["rev"] or 0,
        type=fields.take("type", str),
        data=fields.take("data", dict) or {},
    )


def _canonical(value: Any) -> Any:
    """Data with sorted keys and numbers as in match ids; a number outside 64 bits or float64 is null."""
    if isinstance(value, dict):
        return {key: _canonical(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_canonical(item) for item in value]
    if isinstance(value, float):
        return value + 0.0 if math.isfinite(value) else None
    if isinstance(value, int) and not INT_MIN <= value <= INT_MAX:
        return None
    return value


def _pack(value: Any) -> bytes:
    packed = msgpack.packb(value)
    assert isinstance(packed, bytes)
    return packed


def match_id(content: list[Any]) -> str:
    """Hex of BLAKE2b-128 in msgpack over `[pattern, key, start.ts, start.id, end.ts, end.id, x]`, or, of a graph,
    `[pattern, key, end.ts, end.id]`."""
    return hashlib.blake2b(_pack(_canonical(content)), digest_size=16).hexdigest()


# Of a query, variables in order of declaration: `ts` and id of the events that each has bound.
Bindings: TypeAlias = tuple[tuple[str, tuple[tuple[int, str], ...]], ...]


@dataclass(frozen=True, slots=True)
class Match:
    """A match; what agrees on all of this is one match. A query's has bindings in the place of its state."""

    pattern: str
    key: str
    start: int
    end: int
    until: int | None
    state: str
    registers: tuple[tuple[str, RegisterValue | None], ...]  # in order of names; of a query: what it returns
    first: str
    last: str
    bindings: Bindings | None = None
    partition: tuple[tuple[str, Any], ...] = field(default=(), compare=False)  # of a query with `[attr]`

    @property
    def id(self) -> str:
        content: Any = [self.state, [value for _, value in self.registers]]
        if self.bindings is not None:
            content = [[name, [[ts, id_] for ts, id_ in events]] for name, events in self.bindings]
        return match_id([self.pattern, self.key, self.start, self.first, self.end, self.last, content])

    @property
    def content(self) -> str:
        """What a revision may change under the same id: what a query returns; 1, 1.0 and true are three values."""
        return repr(self.registers)

    def as_json(self, operation: str, identity: str) -> dict[str, Any]:
        told = self._as_json(operation, identity)
        if self.bindings is not None:
            del told["state"]
            told["bindings"] = {name: [id_ for _, id_ in events] for name, events in self.bindings}
        return told

    def _as_json(self, operation: str, identity: str) -> dict[str, Any]:
        return {
            "op": operation,
            "match": identity,
            "pattern": self.pattern,
            "key": self.key,
            "start": self.start,
            "end": self.end,
            "until": self.until,
            "state": self.state,
            "registers": dict(self.registers),
            "events": {"first": self.first, "last": self.last},
        }


@dataclass(frozen=True, slots=True)
class MatchChange:
    """A match came to be (insert) or was wrong after all (retract)."""

    op: Literal["insert", "retract"]
    match: Match
    id: str
    degraded: bool = False  # a limit has made its key's results incomplete

    @property
    def order(self) -> tuple[str, int, int, str]:
        """In which the changes of one record, and final results, are listed."""
        return (self.match.key, self.match.start, self.match.end, self.id)

    def as_json(self) -> dict[str, Any]:
        return self.match.as_json(self.op, self.id) | ({"degraded": True} if self.degraded else {})


@dataclass(frozen=True, slots=True)
class EmittedPunctuation:
    """Nothing about a match of the pattern with `end < ts` changes any more."""

    pattern: str
    ts: int

    def as_json(self) -> dict[str, Any]:
        return {"op": "punctuation", "pattern": self.pattern, "ts": self.ts}


@dataclass(frozen=True, slots=True)
class Timeout:
    """A start event none of whose runs completed before its window closed, with the run that got furthest."""

    pattern: str
    key: str
    start: int
    until: int
    reached: str
    bindings: Bindings

    @property
    def order(self) -> tuple[str, int, Bindings, str]:
        return (self.key, self.start, self.bindings, self.pattern)

    def as_json(self) -> dict[str, Any]:
        bound = {name: [id_ for _, id_ in events] for name, events in self.bindings}
        head: dict[str, Any] = {"op": "timeout", "pattern": self.pattern, "key": self.key, "start": self.start}
        return head | {"until": self.until, "reached": self.reached, "bindings": bound}


@dataclass(frozen=True, slots=True)
class Graph:
    """Matches that share their end event: every way from one of the ends back to one of the starts is one."""

    variables: tuple[str, ...] = ()  # in order of declaration
    events: tuple[tuple[int, str], ...] = ()  # `ts` and id
    nodes: tuple[tuple[int, int, tuple[int, ...]], ...] = ()  # variable, event, and the nodes before it in any match
    starts: tuple[tuple[int, int | None], ...] = ()  # nodes that a match may begin with, and `until` of those matches
    ends: tuple[tuple[int, tuple[tuple[str, RegisterValue | None], ...]], ...] = ()  # and what their matches return

    @staticmethod
    def of_json(told: Mapping[str, Any]) -> Graph:
        return Graph(
            tuple(told["variables"]),
            tuple((ts, id_) for ts, id_ in told["events"]),
            tuple((variable, event, tuple(before)) for variable, event, before in told["nodes"]),
            tuple((node, until) for node, until in told["starts"]),
            tuple((node, tuple(returned.items())) for node, returned in told["ends"]),
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "variables": list(self.variables),
            "events": [list(event) for event in self.events],
            "nodes": [[variable, event, list(before)] for variable, event, before in self.nodes],
            "starts": [list(start) for start in self.starts],
            "ends": [[node, dict(returned)] for node, returned in self.ends],
        }


@dataclass(frozen=True, slots=True)
class GraphChange:
    """`encoding: compressed`: the matches of a pattern and key that end with one event, in place of those told before.

    A graph without matches takes them all back.
    """

    pattern: str
    key: str
    end: int
    last: str
    graph: Graph
    before: Graph = field(default=Graph(), compare=False)  # what had been told
    degraded: bool = False

    @property
    def op(self) -> Literal["insert", "retract"]:
        return "insert" if self.graph.ends else "retract"

    @property
    def id(self) -> str:
        return match_id([self.pattern, self.key, self.end, self.last])

    @property
    def changes_anything(self) -> bool:
        return repr(self.graph) != repr(self.before)  # 1, 1.0 and true are three values

    @property
    def order(self) -> tuple[str, int, int, str]:
        """Its matches begin anywhere; it stands where one would that begins and ends with its event."""
        return (self.key, self.end, self.end, self.id)

    def as_json(self) -> dict[str, Any]:
        head: dict[str, Any] = {"op": self.op, "match": self.id, "pattern": self.pattern, "key": self.key}
        return head | {"end": self.end, "graph": self.graph.as_json()} | ({"degraded": True} if self.degraded else {})


Change: TypeAlias = MatchChange | GraphChange | Timeout | EmittedPunctuation
