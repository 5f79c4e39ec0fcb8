"""Raw records by a source's mapping, for the reference engine; `raw/scan/` of the native one does the same quickly."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

import msgpack

from afa.durations import FleetUnit
from afa.errors import RecordError
from afa.expression.tree import INT_MAX, INT_MIN
from afa.records import Record, read_record
from afa.source import PARTS, Source
from afa.tape import TapeLine

NANOSECONDS: Final = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_TIME: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ]([01]\d|2[0-3]):([0-5]\d):([0-5]\d|60)(?:\.(\d+))?"
    r"(?:[Zz]|([+-])([01]\d|2[0-3]):([0-5]\d))",
    re.ASCII,
)
_DIGITS: Final = re.compile(r"-?[0-9]+")
_YEARS: Final = 400  # after which the calendar begins again
_DAYS: Final = 146_097  # in so many years
_MISSING: Final = object()


@dataclass(frozen=True)
class RawRecord:
    """A value, and what Kafka keeps beside it."""

    value: bytes | None
    number: int
    key: bytes | None = None
    timestamp: int | None = None
    headers: Sequence[tuple[str, bytes | None]] | None = None
    position: tuple[str, int, int] | None = None

    @property
    def own_id(self) -> str | None:
        """Its position as an id."""
        if self.position is None:
            return None
        topic, partition, offset = self.position
        return f"{topic}/{partition:05d}/{offset:019d}"


def read_raw(record: RawRecord, source: Source, unit: FleetUnit) -> Record:
    """The record that stands there. Raises RecordError, Fault."""
    value = _value(record, source)
    operation = "retract" if record.value is None else _part(record, value, source.op, "op")
    # Whatever stands where those of an event would: a punctuation has none of them.
    parts = () if operation == "punctuation" else PARTS.keys() - {"time", "op"}
    found = {name: _part(record, value, getattr(source, name), name) for name in PARTS if name in parts}
    found["op"] = operation
    found["ts"] = _time(record, value, source, unit)
    found["when"] = _at(value, "when")
    found["data"] = value if source.data == "." else _at(value, source.data)
    present = {name: part for name, part in found.items() if part is not _MISSING}
    return read_record(present, record.own_id or f"{record.number:012d}")


def _value(record: RawRecord, source: Source) -> dict[str, Any]:
    if record.value is None:
        if source.tombstone == "bad":
            raise RecordError("a record without a value")
        return {}
    if source.codec == "json":
        value = TapeLine("<records>", record.number, bytes(record.value)).value()
    else:
        try:
            value = msgpack.unpackb(record.value)
        except (ValueError, msgpack.UnpackException, msgpack.ExtraData) as error:
            raise RecordError(f"not msgpack: {error}") from None
    if not isinstance(value, dict):
        raise RecordError("a record must be a mapping")
    return value


def _part(record: RawRecord, value: dict[str, Any], place: str, name: str) -> Any:
    if place == "record" and name == "key":
        return _MISSING if record.key is None else _text(record.key, "the record's key")
    if place == "record" and name == "id":
        return record.own_id or _MISSING
    if not place.startswith("header:"):
        return _at(value, place)
    text = _header(record, place, name)
    return _integer(text, name) if name in ("seq", "rev") and text is not _MISSING else text


def _at(value: Any, path: str) -> Any:
    for step in path.split("."):
        value = value.get(step, _MISSING) if isinstance(value, dict) else _MISSING
    return value


def _header(record: RawRecord, place: str, name: str) -> Any:
    wanted = place.removeprefix("header:")
    found = [content for header, content in record.headers or () if header == wanted and content is not None]
    return _text(found[-1], name) if found else _MISSING


def _text(content: bytes, name: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise RecordError(f"`{name}` is not UTF-8") from None


def _integer(text: str, name: str) -> int:
    if not _DIGITS.fullmatch(text):
        raise RecordError(f"`{name}` must be an integer")
    return int(text)


def _time(record: RawRecord, value: dict[str, Any], source: Source, unit: FleetUnit) -> Any:
    """Event time in the fleet's unit; what is no number is left to whoever complains."""
    if source.time == "record":
        if record.timestamp is None:
            raise RecordError("a record needs its timestamp")
        return record.timestamp * NANOSECONDS["ms"] // NANOSECONDS[unit]
    header = source.time.startswith("header:")
    written: Any = _header(record, source.time, "ts") if header else _at(value, source.time)
    if written is _MISSING:
        return written
    if source.unit == "iso8601":
        return _nanoseconds(written) // NANOSECONDS[unit]
    if header:
        written = _integer(written, "ts")
    if type(written) is not int or not INT_MIN <= written <= INT_MAX:
        return written
    return written * NANOSECONDS[source.unit] // NANOSECONDS[unit]


def _nanoseconds(text: Any) -> int:
    """Since 1970, of an RFC 3339 time; a leap second is the next minute's first."""
    found = _TIME.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise RecordError("`ts` is no time such as 2025-01-31T08:00:00.5Z")
    year, month, day, hour, minute, second = (int(found[group]) for group in range(1, 7))
    try:
        days = date(year % _YEARS + _YEARS, month, day).toordinal() - date(1970, 1, 1).toordinal()
    except ValueError:
        raise RecordError("`ts` is no time such as 2025-01-31T08:00:00.5Z") from None
    days += (year // _YEARS - 1) * _DAYS
    east = 0 if found[8] is None else (int(found[9]) * 60 + int(found[10])) * (60 if found[8] == "+" else -60)
    fraction = int(f"{found[7] or '0':0<9.9}")
    return ((days * 24 + hour) * 60 + minute) * 60 * 10**9 + (second - east) * 10**9 + fraction
