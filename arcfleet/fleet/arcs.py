"""The arcs topic: what its records say, the table of arcs that they add up to, and the one way to write them.

A pattern's head (the document without its arcs) comes before its arcs; arcs are whole and stamped with a version, and
of each the greatest version counts. Workers read all of it before their first event; `worker --patterns` and the
coordinator write it, both through `stamp`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from afa.document import build_pattern
from afa.durations import FleetUnit
from afa.errors import AfaError, PatternError, RecordError
from afa.pattern import Pattern
from afa.reading import Fault, Fields, check_int64

PUNCTUATION_KEY: Final = b"!punctuation"
MAX_ARC_RECORD_BYTES: Final = 1_048_576
SHOWN_CHARACTERS: Final = 80  # of each of two values that differ
_ABSENT: Final = object()

Lifetime: TypeAlias = tuple[int | None, int | None]
Written: TypeAlias = tuple[bytes, bytes]  # key and value of a record


@dataclass(frozen=True)
class Head:
    """A generation of a pattern, without its arcs."""

    pattern: str
    version: int
    document: Mapping[str, Any]

    def written(self) -> Written:
        value = {"op": "pattern", "pattern": self.pattern, "version": self.version, "document": self.document}
        return self.pattern.encode(), _json(value)


@dataclass(frozen=True)
class StampedArc:
    """A whole arc."""

    pattern: str
    version: int
    body: Mapping[str, Any]
    valid: Lifetime

    def written(self) -> Written:
        return f"{self.pattern}/{self.body['id']}".encode(), _json(self.as_change() | {"version": self.version})

    def as_change(self) -> dict[str, Any]:
        """As a tape's line, which is what an engine takes."""
        return {"op": "arc", "pattern": self.pattern, "arc": self.body, "valid": list(self.valid)}


@dataclass(frozen=True)
class ArcPromise:
    """An arc punctuation."""

    ts: int

    def written(self) -> Written:
        return PUNCTUATION_KEY, _json(self.as_change())

    def as_change(self) -> dict[str, Any]:
        """As a tape's line."""
        return {"op": "arc-punctuation", "ts": self.ts}


ArcRecord: TypeAlias = Head | StampedArc | ArcPromise


@dataclass(frozen=True)
class Removal:
    """A tombstone whose key is the name of a pattern: it takes one away that the fleet cannot run."""

    pattern: str


def read_arc_record(value: bytes | None, key: bytes | None = None) -> ArcRecord | Removal:
    """What a record of the topic says; unknown fields are ignored. Raises RecordError."""
    if value is None:
        return _removal(key)
    if len(value) > MAX_ARC_RECORD_BYTES:
        what = f"more than {MAX_ARC_RECORD_BYTES:,} bytes (max_arc_record_bytes) on the arcs topic"
        raise RecordError(what, fix="end an arc by its lifetime; only the coordinator writes here")
    try:
        return _read(json.loads(value))
    except (ValueError, RecursionError):
        raise RecordError("an arc record that is not JSON", fix="only the coordinator writes here") from None
    except Fault as fault:
        raise RecordError(fault.what, fix=fault.fix) from None


def _removal(key: bytes | None) -> Removal:
    name = (key or b"").decode(errors="replace")
    if not name or "/" in name or name.startswith("!"):
        raise RecordError("a tombstone of no pattern on the arcs topic", fix="end an arc by its lifetime")
    return Removal(name)


def _read(value: Any) -> ArcRecord:
    fields = Fields(value, (), "an arc record")
    fields.need("op", str)
    op = fields.choice("op", ("pattern", "arc", "arc-punctuation"), "")
    if op == "arc-punctuation":
        return ArcPromise(check_int64(fields.need("ts", int), ("ts",), "`ts`"))
    pattern, version = fields.need("pattern", str), fields.need("version", int)
    if op == "pattern":
        return Head(pattern, version, fields.need("document", dict))
    body, valid = fields.need("arc", dict), fields.need("valid", list)
    if not isinstance(body.get("id"), str) or len(valid) != 2:
        raise Fault(("arc",), "an arc needs an `id`, and `valid` both of its ends")
    return StampedArc(pattern, version, body, (valid[0], valid[1]))


@dataclass
class ArcTable:
    """What the records of the topic up to an offset add up to."""

    heads: dict[str, Head] = field(default_factory=dict)
    arcs: dict[tuple[str, str], StampedArc] = field(default_factory=dict)
    promise: ArcPromise | None = None
    offset: int = 0  # the next record to read
    version: int = 0  # the greatest one that was seen
    removed: set[str] = field(default_factory=set)  # patterns that a tombstone takes away, if they cannot run

    def apply(self, record: ArcRecord | Removal) -> bool:
        """Takes a record in; whether it says something new. Raises RecordError if an arc comes before its head."""
        if not self.says_new(record):
            return False
        if isinstance(record, ArcPromise):
            self.promise = record
        elif isinstance(record, Removal):
            self.removed.add(record.pattern)
        else:
            self.version = max(self.version, record.version)
            if isinstance(record, Head):
                self._begin(record)
            else:
                self.arcs[record.pattern, record.body["id"]] = record
        return True

    def says_new(self, record: ArcRecord | Removal) -> bool:
        """Whether the table does not know of it. Raises RecordError if an arc comes before its head."""
        if isinstance(record, ArcPromise):
            return self.promise is None or record.ts > self.promise.ts
        head = self.heads.get(record.pattern)
        if isinstance(record, Removal):
            return head is not None and record.pattern not in self.removed
        if isinstance(record, Head):
            return head is None or head.version < record.version
        if head is None:
            raise RecordError(f"an arc of the pattern `{record.pattern}`, whose head did not come before it")
        arc = self.arcs.get((record.pattern, record.body["id"]))
        return record.version > (head if arc is None else arc).version

    def _begin(self, head: Head) -> None:
        """All arcs of a generation come behind its head: older ones are of a former one."""
        self.heads[head.pattern] = head
        self.removed.discard(head.pattern)
        for arc in self.arcs_of(head.pattern):
            if arc.version < head.version:
                del self.arcs[arc.pattern, arc.body["id"]]

    def copy(self) -> ArcTable:
        """One that can go on by itself."""
        return self.without(())

    def without(self, patterns: Collection[str]) -> ArcTable:
        """That of all other patterns."""
        heads = {name: head for name, head in self.heads.items() if name not in patterns}
        arcs = {key: arc for key, arc in self.arcs.items() if key[0] in heads}
        return ArcTable(heads, arcs, self.promise, self.offset, self.version, self.removed - set(patterns))

    def joined(self, other: ArcTable, patterns: Collection[str]) -> ArcTable:
        """This one, and some patterns of another one."""
        more = other.without(other.heads.keys() - set(patterns))
        version = max(self.version, other.version)
        heads, arcs, removed = self.heads | more.heads, self.arcs | more.arcs, self.removed | more.removed
        return ArcTable(heads, arcs, self.promise, self.offset, version, removed)

    def arcs_of(self, pattern: str) -> list[StampedArc]:
        return [arc for (name, _), arc in self.arcs.items() if name == pattern]

    def records_of(self, pattern: str) -> list[ArcRecord]:
        """Records that make one pattern: its head comes before its arcs."""
        return [self.heads[pattern], *self.arcs_of(pattern)]

    def document(self, pattern: str) -> dict[str, Any]:
        """The whole pattern document of a generation."""
        document = dict(self.heads[pattern].document)
        if "query" not in document:
            document["arcs"] = [arc_in_document(arc) for arc in self.arcs_of(pattern)]
        return document

    def patterns(self, unit: FleetUnit) -> list[Pattern]:
        """All generations, compiled for a fleet whose `ts` counts `unit`. Raises PatternError."""
        return [_compile(name, self.document(name), unit) for name in sorted(self.heads)]

    def records(self) -> Iterator[ArcRecord]:
        """Records that make this table from nothing."""
        for name in self.heads:
            yield from self.records_of(name)
        if self.promise is not None:
            yield self.promise

    def packed(self) -> bytes:
        """The table as bytes, for the state topic."""
        written = [json.loads(record.written()[1]) for record in self.records()]
        return _json({"version": 1, "offset": self.offset, "records": written})

    @classmethod
    def unpacked(cls, data: bytes) -> ArcTable:
        """Raises RecordError if these are not the bytes of a table that this version knows."""
        try:
            value = json.loads(data)
            if value["version"] != 1:
                raise RecordError(f"an arc table of version {value['version']}", fix="run the release that wrote it")
            table = cls(offset=value["offset"])
            for record in value["records"]:
                table.apply(_read(record))
        except (ValueError, KeyError, TypeError, Fault):
            raise RecordError("a damaged arc table in the state topic") from None
        return table


def admit(
    base: ArcTable, other: ArcTable, patterns: Sequence[str], check: Callable[[ArcTable], object]
) -> tuple[ArcTable, dict[str, AfaError]]:
    """The table with as many of these patterns more as pass the check, and why the others do not.

    The check looks at a table as a whole, which takes a while: so halves are looked at, not one after the other.
    """
    whole = base.joined(other, patterns)
    try:
        check(whole)
    except AfaError as error:
        if len(patterns) < 2:
            return base, dict.fromkeys(patterns, error)
    else:
        return whole, {}
    middle = len(patterns) // 2
    base, refused = admit(base, other, patterns[:middle], check)
    base, more = admit(base, other, patterns[middle:], check)
    return base, refused | more


def arc_in_document(arc: StampedArc) -> dict[str, Any]:
    """The arc as a pattern document has it, its lifetime inside."""
    return dict(arc.body) | ({} if arc.valid == (None, None) else {"valid": list(arc.valid)})


def _compile(name: str, document: dict[str, Any], unit: FleetUnit) -> Pattern:
    try:
        return replace(build_pattern(document, unit), name=name)
    except Fault as fault:
        raise PatternError(f"the pattern `{name}` of the arcs topic: {fault.what}", fix=fault.fix) from None


def split_document(document: Mapping[str, Any]) -> tuple[dict[str, Any], list[tuple[dict[str, Any], Lifetime]]]:
    """A document without its arcs, and the arcs with their lifetimes beside them."""
    arcs = []
    for arc in document.get("arcs", ()):
        body = {name: value for name, value in arc.items() if name != "valid"}
        le, re = arc.get("valid") or (None, None)
        arcs.append((body, (le, re)))
    # Tests are run by `arcfleet test`, never by a worker.
    head = {name: value for name, value in document.items() if name not in ("arcs", "tests")}
    return head, arcs


def stamp(documents: Iterable[Mapping[str, Any]], table: ArcTable) -> list[ArcRecord]:
    """The records that bring these patterns in, with lifetimes as written; none for one that is there already.

    Raises PatternError if a pattern is there with another content, naming the difference.
    """
    records: list[ArcRecord] = []
    version = table.version
    for document in documents:
        name = document["pattern"]
        head, arcs = split_document(document)
        if name in table.heads:
            if difference := difference_to(table, name, head, arcs):
                raise PatternError(
                    f"the pattern `{name}` runs already, and differs: {difference}",
                    fix="publish it under another name; a tombstone on the arcs topic removes the one that runs",
                )
            continue
        version += 1
        records.append(Head(name, version, head))
        for body, valid in arcs:
            version += 1
            records.append(StampedArc(name, version, body, valid))
    return records


def difference_to(
    table: ArcTable, name: str, head: Mapping[str, Any], arcs: list[tuple[dict[str, Any], Lifetime]]
) -> str | None:
    """Where a pattern differs from the one that runs, in words; none if nowhere. As JSON has it: 0 is not 0.0."""
    running = _plain(table.heads[name].document)
    if found := _first_difference(running, _plain(head), ()):
        return f"`{'.'.join(found.path)}` is {found.words()}"
    there = {arc.body["id"]: _plain(arc_in_document(arc)) for arc in table.arcs_of(name)}
    here = {body["id"]: _plain(arc_in_document(StampedArc(name, 0, body, valid))) for body, valid in arcs}
    found = _first_difference(there, here, ())
    if found is None:
        return None
    arc, *place = found.path
    where = f"the arc `{arc}`, its `{'.'.join(place)}`," if place else f"the arc `{arc}`"
    return f"{where} is {found.words()}"


@dataclass(frozen=True)
class _Difference:
    path: tuple[str, ...]
    there: Any
    here: Any

    def words(self) -> str:
        both = (self.there, self.here)
        texts = ["absent" if value is _ABSENT else json.dumps(value, ensure_ascii=False) for value in both]
        pairs = enumerate(zip(*texts, strict=False))
        at = next((place for place, (one, other) in pairs if one != other), min(map(len, texts)))
        there, here = (_excerpt(text, at) for text in texts)
        return f"{there} there, {here} here"


def _plain(value: object) -> Any:
    """As it is after it was written and read."""
    return json.loads(json.dumps(value))


def _first_difference(there: Any, here: Any, path: tuple[str, ...]) -> _Difference | None:
    """The innermost mapping's field in which the two differ."""
    if not (isinstance(there, dict) and isinstance(here, dict)):
        return None if _same(there, here) else _Difference(path, there, here)
    for name in sorted({*there, *here}):
        found = _first_difference(there.get(name, _ABSENT), here.get(name, _ABSENT), (*path, name))
        if found is not None:
            return found
    return None


def _same(there: Any, here: Any) -> bool:
    """As JSON has it, which knows 0, 0.0 and false apart."""
    if there is _ABSENT or here is _ABSENT:
        return there is here
    return json.dumps(there, sort_keys=True) == json.dumps(here, sort_keys=True)


def _excerpt(text: str, at: int) -> str:
    """The text around a place, if it is too long to be shown whole."""
    if len(text) <= SHOWN_CHARACTERS:
        return text
    begin = max(0, min(at - SHOWN_CHARACTERS // 2, len(text) - SHOWN_CHARACTERS))
    end = begin + SHOWN_CHARACTERS
    return ("..." if begin else "") + text[begin:end] + ("..." if end < len(text) else "")


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
