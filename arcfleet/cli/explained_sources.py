"""What `arcfleet explain --fleet FILE` says of the sources that a pattern sees: where the parts of events are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from afa.durations import FleetUnit
from afa.pattern import Pattern
from afa.source import Source
from arcfleet.fleet.document import Fleet

_RECORD: Final = {"time": "the record's timestamp", "key": "the record's key", "id": "the record's position"}
_ELSE: Final = {
    "time": "without one it is bad",
    "type": "without one it has no type",
    "key": "without one it is bad",
    "id": "else the record's position",
    "seq": "else none",
    "rev": "else 0",
    "op": "else insert",
}
_SHOWN: Final = ("start", "time", "unit", *list(_ELSE)[1:], "data", "tombstone")
_STARTS: Final = {"earliest": "with the earliest record", "latest": "behind the latest record"}
_TOMBSTONES: Final = {"bad": "bad", "retract": "takes back the event of its key, time and id"}


def seen_sources(pattern: Pattern, fleet: Fleet) -> list[dict[str, Any]]:
    """Each source that the pattern sees, as `explain --json` has it."""
    return [
        _source(source, fleet.unit)
        for source in fleet.sources
        if pattern.sources is None or source.topic in pattern.sources
    ]


def source_lines(sources: Sequence[dict[str, Any]]) -> list[str]:
    """The same for people."""
    lines = ["  sources"] if sources else []
    for source in sources:
        lines.append(f"    {source['topic']} ({source['codec']})")
        told = [(part, source[part]) for part in _SHOWN] + [("punctuation", words) for words in source["punctuation"]]
        lines += [f"      {part:<11}  {words}" for part, words in told]
    return lines


def source_notes(sources: Sequence[dict[str, Any]]) -> list[str]:
    """What may not be meant."""
    return [
        f"the source {source['topic']}: where the topic has message.timestamp.type=LogAppendTime, a record's timestamp"
        " is when it arrived, not when the event happened; `arcfleet topics check` and workers look, and warn"
        for source in sources
        if source["time"] == _RECORD["time"]
    ]


def _source(source: Source, unit: FleetUnit) -> dict[str, Any]:
    places = {part: _place(part, getattr(source, part)) for part in _ELSE}
    return {
        "topic": source.topic,
        "codec": source.codec,
        "start": _STARTS.get(source.start, f"at {source.start}"),
        **places,
        "unit": _unit(source, unit),
        "data": "the value itself" if source.data == "." else f"{source.data} of the value, else no fields",
        "tombstone": _TOMBSTONES[source.tombstone],
        "punctuation": _punctuation(source),
    }


def _place(part: str, place: str) -> str:
    if place == "record" and part in _RECORD:
        return _RECORD[part] + (f", {_ELSE[part]}" if part == "key" else "")
    header = place.removeprefix("header:")
    where = f"{place} of the value" if header == place else f"the header {header}"
    return f"{where}, {_ELSE[part]}"


def _unit(source: Source, unit: FleetUnit) -> str:
    written = "ms" if source.time == "record" else source.unit
    return written if written == unit else f"{written}, as {unit} of the fleet"


def _punctuation(source: Source) -> list[str]:
    told = source.punctuation
    words = []
    if told.in_band is not False:
        words.append("among the records")
    if told.slack is not None:
        words.append(f"{told.slack} behind the largest time")
    if told.idle is not None:
        words.append(f"by the clock, after {told.idle} without a record")
    if not words:
        return ["none: nothing is ever final"]
    if ahead := told.trusted_ahead:
        words.append(f"not by a time that is more than {ahead} ahead of the clock")
    return words
