"""The engines behind one door: `Engine` takes records and tells changes. Only this module imports `afa._native`."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import msgpack

from afa import _native
from afa.arc_table import ArcTable, table_of
from afa.arcs import read_expression
from afa.errors import RecordError
from afa.expression import Scope, Type, pack
from afa.pattern import Arc, CountWindow, Pattern, Time, TimeWindow
from afa.reading import Fault
from afa.records import (
    ArcChange,
    ArcRetraction,
    Change,
    EmittedPunctuation,
    Match,
    MatchChange,
    Punctuation,
    Record,
)
from afa.reference import ReferenceEngine, Step
from afa.tape import TapeLine

EngineName = Literal["native", "reference"]


def native_version() -> str:
    """The version that the native engine was built as; equal to the wheel's."""
    return _native.version()


def native_profile() -> str:
    """`release`, or `debug` for a build that no benchmark should measure."""
    return _native.build_profile()


@dataclass
class Changes:
    """What a batch led to: changes in order, and the records that were bad or late, by index, with the reason."""

    changes: list[Change] = field(default_factory=list)
    bad: list[tuple[int, str]] = field(default_factory=list)
    late: list[tuple[int, str]] = field(default_factory=list)

    def to_records(self) -> list[dict[str, Any]]:
        """As `arcfleet replay` prints them."""
        return [change.as_json() for change in self.changes]


class Engine:
    """Patterns and the state of all keys. The result is a function of the sets of events and arcs."""

    def __init__(self, patterns: Iterable[Pattern], engine: EngineName = "native") -> None:
        self._engine = _NativeEngine(patterns) if engine == "native" else ReferenceEngine(patterns)
        self._fed = 0

    def feed(self, values: Sequence[bytes]) -> Changes:
        """Takes records as JSON bytes, each in the shape of a tape's line; one bad record stops nothing."""
        told = Changes()
        for index, value in enumerate(values):
            try:
                step = self.feed_line(TapeLine("<records>", self._fed, value))
            except RecordError as error:
                told.bad.append((index, error.what))
            else:
                told.changes += step.changes
                if step.late:
                    told.late.append((index, step.late))
            self._fed += 1
        return told

    def feed_line(self, line: TapeLine) -> Step:
        """Takes one line of a tape. Raises RecordError, with its place, if it is bad; then nothing has changed."""
        try:
            if isinstance(self._engine, _NativeEngine) and not line.too_long:
                return self._engine.feed_line(line)
            return self._engine.feed(line.read())
        except Fault as fault:
            line.read()  # knows the column, if the line itself is bad
            raise line.error(fault) from None

    def punctuate(self, ts: int, when: str | None = None) -> Changes:
        """As the tape's line; raises RecordError if the condition is not acceptable."""
        return self._feed_one({"op": "punctuation", "ts": ts} | ({} if when is None else {"when": when}))

    def change_arc(self, record: dict[str, Any]) -> Changes:
        """As the tape's line (`op` arc, arc-retract or arc-punctuation); raises RecordError if it is bad."""
        return self._feed_one(record)

    def _feed_one(self, record: dict[str, Any]) -> Changes:
        step = self.feed_line(TapeLine("<record>", self._fed, json.dumps(record).encode()))
        return Changes(step.changes, late=[(0, step.late)] if step.late else [])

    def patterns(self) -> list[Pattern]:
        """The patterns with their arcs as they are now, in order of names."""
        tables = self._engine.tables.values()
        return [
            replace(table.pattern, arcs=tuple(table.arcs.values()), finals=frozenset(table.finals)) for table in tables
        ]

    def keys(self) -> list[str]:
        """The keys that have state, in order."""
        return self._engine.keys()

    def stats(self) -> dict[str, Any]:
        """What has been counted since the engine began, and the plan that ran."""
        if isinstance(self._engine, ReferenceEngine):
            return asdict(self._engine.counters) | {"plan": "reference"}
        return self._engine.counters() | {"plan": "eager"}


class _NativeEngine:
    """The native engine in the shape of the reference: one record, one step."""

    def __init__(self, patterns: Iterable[Pattern]) -> None:
        self.patterns = sorted(patterns, key=lambda pattern: pattern.name)
        self.tables = {pattern.name: ArcTable(pattern) for pattern in self.patterns}
        self.native = _native.NativeEngine([_packed_pattern(pattern) for pattern in self.patterns])
        self.late_arcs = 0

    def feed_line(self, line: TapeLine) -> Step:
        """Takes one record. Raises Fault if it is bad; then nothing has changed."""
        answer = self.native.feed(line.raw, line.number)
        if answer is None:  # an arc or a condition: its text is checked here
            return self.feed(line.read())
        return self._step(answer)

    def feed(self, record: Record) -> Step:
        """Takes one record that names an arc or a condition. Raises Fault if it is bad."""
        if isinstance(record, ArcChange | ArcRetraction):
            return self._feed_arc(record)
        assert isinstance(record, Punctuation), "everything else goes in as bytes"
        condition = read_expression(str(record.when), ("when",), Scope(), Type.BOOL)
        return self._step(self.native.punctuate_when(record.ts, pack(condition), condition.text))

    def _feed_arc(self, record: ArcChange | ArcRetraction) -> Step:
        table = table_of(self.tables, record)
        bound = self.native.arc_bound()
        limit = -math.inf if bound is None else bound
        late = table.change(record, limit) if isinstance(record, ArcChange) else table.retract(record, limit)
        if late:
            self.late_arcs += 1
            return Step(late=late)
        pattern = list(self.tables).index(record.pattern)
        if isinstance(record, ArcRetraction):
            return self._step(self.native.remove_arc(pattern, record.arc["id"]))
        return self._step(self.native.set_arc(pattern, _pack(_arc_fields(table.arcs[record.arc["id"]]))))

    def _step(self, answer: tuple[list[Any], int | None, str | None, str | None]) -> Step:
        changes, punctuation, late, bad = answer
        if bad is not None:
            raise Fault((), bad, "compare it with the record shapes in the replay page")
        told: list[Change] = [self._change(change) for change in changes]
        if punctuation is not None:
            told += [EmittedPunctuation(pattern.name, punctuation) for pattern in self.patterns]
        return Step(told, late)

    def _change(self, told: tuple[Any, ...]) -> MatchChange:
        retracts, id_, pattern, key, (start, end, until), state, values, (first, last) = told
        names = [register.name for register in self.tables[pattern].pattern.registers]
        registers = tuple(zip(names, values, strict=True))
        match = Match(pattern, key, start, end, until, state, registers, first, last)
        return MatchChange("retract" if retracts else "insert", match, id_)

    def keys(self) -> list[str]:
        return self.native.keys()

    def counters(self) -> dict[str, int]:
        counted = self.native.counters()
        return counted | {"late": counted["late"] + self.late_arcs}


def _bound(time: Time) -> int | None:
    return None if isinstance(time, float) else time


def _packed_pattern(pattern: Pattern) -> bytes:
    """As `afa/native/python/src/pattern.rs` reads it."""
    match pattern.window:
        case TimeWindow(length=length):
            window: list[Any] | None = ["time", length]
        case CountWindow(events=events):
            window = ["events", events]
        case None:
            window = None
    return _pack(
        [
            pattern.name,
            window,
            [[register.name, int(register.type), register.initial] for register in pattern.registers],
            pattern.start,
            sorted(pattern.finals),
            pattern.key_field,
            _bound(pattern.speculation),
            pattern.hold_output,
            pattern.gap_free,
            [_arc_fields(arc) for arc in pattern.arcs],
        ]
    )


def _arc_fields(arc: Arc) -> list[Any]:
    transfer = [[name, pack(expression)] for name, expression in arc.transfer]
    ends = (_bound(arc.lifetime.le), _bound(arc.lifetime.re))
    return [arc.id, arc.source, arc.target, pack(arc.fence), transfer, arc.epsilon, arc.final, *ends]


def _pack(value: Any) -> bytes:
    packed = msgpack.packb(value)
    assert isinstance(packed, bytes)
    return packed
