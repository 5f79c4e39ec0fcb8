"""Sources of a fleet: how a topic's records become events. `schemas/fleet.schema.json` says the same as data."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

import msgpack

from afa.durations import FleetUnit
from afa.errors import one_of
from afa.reading import Fault, Fields, Path

PACKED_VERSION: Final = 1  # of the form that `scan/mapping.rs` reads
MAX_TOPIC_CHARACTERS: Final = 249

CODECS: Final = ("json", "msgpack")
UNITS: Final = ("s", "ms", "us", "ns", "iso8601")
TOMBSTONES: Final = ("bad", "retract")
MAX_AHEAD: Final = "1h"  # of a source that does not say, if times of its records move its punctuation
# The parts of a record's head with their default places, and whether the record itself has them.
PARTS: Final = {
    "time": ("ts", True),
    "type": ("type", False),
    "key": ("record", True),
    "id": ("id", True),
    "seq": ("seq", False),
    "rev": ("rev", False),
    "op": ("op", False),
}

_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]+")
_PLACE: Final = re.compile(r"header:.+|[^.:]+([.][^.:]+)*")
_DATA: Final = re.compile(r"[.]|[^.]+([.][^.]+)*")
_DURATION: Final = re.compile(r"[0-9]{1,18}([.][0-9]{1,9})? ?(ns|us|ms|s|m|h|d)")
_TIME: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]+)?)?(Z|[+-][0-9]{2}:[0-9]{2})?)?"
)


@dataclass(frozen=True, slots=True)
class SourcePunctuation:
    """Where a source's punctuations come from; lengths as they were written."""

    slack: str | None = None
    idle: str | None = None
    in_band: bool | None = None
    max_ahead: str | None = None

    @property
    def trusted_ahead(self) -> str | None:
        """How far ahead of the clock times are believed; None: however far."""
        moves_by_times = self.slack is not None or self.idle is not None
        return self.max_ahead or (MAX_AHEAD if moves_by_times else None)


@dataclass(frozen=True, slots=True)
class Source:
    """How a topic's records become events. The defaults are the shape of a tape's record, keyed by the record's key."""

    topic: str
    codec: str = "json"
    start: str = "earliest"
    time: str = "ts"
    type: str = "type"
    key: str = "record"
    id: str = "id"
    seq: str = "seq"
    rev: str = "rev"
    op: str = "op"
    data: str = "data"
    unit: str = "ms"
    tombstone: str = "bad"
    punctuation: SourcePunctuation = field(default_factory=SourcePunctuation)


def read_source(value: object, path: Path = (), *, topic: str | None = None) -> Source:
    """The source that a mapping stands for; without `topic` in it, `topic` if given. Raises Fault."""
    fields = Fields(value, path, "a source")
    source = Source(
        topic=topic
        if topic is not None and not fields.has("topic")
        else check_topic(fields.need("topic", str), (*path, "topic")),
        codec=fields.choice("codec", CODECS, "json"),
        start=_start(fields),
        **{name: _matching(fields, name, _PLACE, default) for name, (default, _) in PARTS.items()},
        data=_matching(fields, "data", _DATA, "data"),
        unit=fields.choice("unit", UNITS, "ms"),
        tombstone=fields.choice("tombstone", TOMBSTONES, "bad"),
        punctuation=_punctuation(fields),
    )
    fields.done()
    if source.tombstone == "retract":
        _check_tombstones(source, path)
    return source


def pack_source(source: Source | None, fleet_unit: FleetUnit = "ms", codec: str = "json") -> bytes:
    """As `afa/native/engine/src/raw/scan/mapping.rs` reads it; without a source, the shape of a tape's record."""
    if source is None:
        source = Source("", codec=codec, key="key", unit=fleet_unit)
    places = [_packed_place(getattr(source, name), of_record) for name, (_, of_record) in PARTS.items()]
    data = [] if source.data == "." else source.data.split(".")
    retracts = source.tombstone == "retract"
    packed = msgpack.packb([PACKED_VERSION, source.codec, *places, data, source.unit, fleet_unit, retracts])
    assert isinstance(packed, bytes)
    return packed


def _packed_place(place: str, of_record: bool) -> list[str] | str | None:
    """A path as a list, a header as its name, the record itself as nothing."""
    if place.startswith("header:"):
        return place.removeprefix("header:")
    return None if of_record and place == "record" else place.split(".")


def check_topic(topic: str, path: Path) -> str:
    """Raises Fault if no topic can have that name."""
    if not _TOPIC.fullmatch(topic) or len(topic) > MAX_TOPIC_CHARACTERS or topic in (".", ".."):
        fix = f"a topic has 1 to {MAX_TOPIC_CHARACTERS} letters, digits, dots, underscores and hyphens"
        raise Fault(path, f"`{topic}` is no name of a topic", fix)
    return topic


def _start(fields: Fields) -> str:
    start: str | None = fields.take("start", str, "write earliest, latest, or a time in quotes")
    if start is None or start in ("earliest", "latest") or _TIME.fullmatch(start):
        return start or "earliest"
    fix = "write earliest, latest, or a time such as 2025-01-31T00:00:00Z"
    raise Fault((*fields.path, "start"), f"`{start}` is no place to start from", fix)


def _matching(fields: Fields, name: str, pattern: re.Pattern[str], default: str) -> str:
    place: str | None = fields.take(name, str)
    if place is None:
        return default
    if not pattern.fullmatch(place):
        others = ' or "." for the value itself' if pattern is _DATA else _other_places(name)
        fix = f"write the names on the way to it with dots between them, such as payload.{name},{others}"
        raise Fault((*fields.path, name), f"`{place}` is no place in a record", fix)
    return place


def _other_places(name: str) -> str:
    return ' "header:NAME", or "record"' if PARTS[name][1] else ' or "header:NAME"'


def _punctuation(fields: Fields) -> SourcePunctuation:
    if not fields.has("punctuation"):
        return SourcePunctuation()
    body = Fields(fields.take("punctuation", dict), (*fields.path, "punctuation"), "a source's `punctuation`")
    punctuation = SourcePunctuation(
        slack=_duration(body, "slack"),
        idle=_duration(body, "idle"),
        in_band=body.take("in_band", bool),
        max_ahead=_duration(body, "max_ahead"),
    )
    body.done()
    return punctuation


def _duration(fields: Fields, name: str) -> str | None:
    fix = "write a number and ns, us, ms, s, m, h or d, such as 500ms"
    text: Any = fields.take(name, str, fix)
    if text is not None and not _DURATION.fullmatch(text):
        raise Fault((*fields.path, name), f"`{text}` is not a duration", fix)
    return None if text is None else str(text)


def _check_tombstones(source: Source, path: Path) -> None:
    """A record without a value has nothing but its headers and what is its own."""
    for name in ("time", "key", "id"):
        place = getattr(source, name)
        if place != "record" and not place.startswith("header:"):
            what = f"`tombstone: retract` needs `{name}` outside the value, which a tombstone does not have"
            raise Fault((*path, name), what, f"write {one_of(('header:NAME', 'record'))}")
