"""Cases from a seed for the native engine against the reference: patterns of all kinds at once, tapes of every temper.

A case is a function of its seed alone, so the seed that a failure prints is the whole report.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Final

from afa.computation import Computation, Counters
from afa.document import build_pattern
from afa.expression.tree import INT_MAX
from afa.pattern import CountWindow, Pattern, TimeWindow
from afa.records import Event, Match
from afa.reference import ReferenceEngine
from support.generated import REGISTERS
from support.long_tapes import Record, Writer, linear_document, plain_values, register_document, shifted

SETTINGS: Final[tuple[Record, ...]] = (
    {"speculation": 0},
    {"speculation": 4, "hold_output": True},
    {"hold_output": True},
    {"gap_free": True},
    {"gap_free": True, "key_field": ("k",)},
    {"key_field": ("k",)},
    {"key_field": ("k",), "output": "non_overlapping"},
    {"output": "non_overlapping"},
    {"speculation": 10, "gap_free": True, "hold_output": True},
)


def looping_document(rng: Random, name: str, span: int) -> Record:
    """Partial matches that live through most events of a long window: lists of a few words and of dozens."""
    del span
    keep = rng.choice(["true", "e.y != 3", "e.x > -5", "e.y != 0", "e.x + e.y > -3"])
    arcs: list[Record] = [
        {"id": "first", "from": "q0", "to": "q1", "when": rng.choice(["true", "e.x > 3", "e.y == 1", "e.x < 6"])},
        {"id": "keep", "from": "q1", "to": "q1", "when": keep},
        {"id": "last", "from": "q1", "to": "q2", "when": rng.choice(["e.x == 9", "e.x == -6 and e.y > 1"])},
    ]
    document: Record = {"pattern": name, "start": "q0", "final": ["q2"], "arcs": arcs}
    if rng.random() < 0.4:
        document["registers"] = REGISTERS
        arcs[1]["set"] = rng.choice([{"n": "(r.n + 1) % 3"}, {"m": "max(r.m, e.x)"}, {"n": "r.n + 1"}, {"m": "e.y"}])
        arcs[1]["when"] += rng.choice([" and r.n < 6", " and e.x >= r.m - 9", ""])
    if rng.random() < 0.3:
        arcs.append({"id": "more", "from": "q2", "to": rng.choice(["q1", "q2"]), "when": "e.y == 2"})
    if rng.random() < 0.3:
        arcs.append({"id": "out", "from": "q1", "to": "q3", "when": "e.y == 3"})
    return document | {"within": rng.choice([4, 9, 15, 30, "5 events", "14 events", "20 events"])}


MAKERS: Final = {"l": linear_document, "r": register_document, "o": looping_document}


@dataclass
class RandomCase:
    """Patterns and a tape. `calm` has no odd settings, no ends of time and no arc changes."""

    seed: int
    calm: bool = False
    length: int = 0
    documents: list[Record] = field(default_factory=list)
    patterns: list[Pattern] = field(default_factory=list)
    tape: list[Record] = field(default_factory=list)

    def __post_init__(self) -> None:
        rng = self.rng = Random(self.seed)
        kinds = rng.choice(["l", "r", "o", "lo", "oo", "lr", "lro", "llo", "lllr", "loro"])
        self.length = self.length or rng.choice([30, 60, 120, 120, 200])
        span = rng.choice([10, 20])
        written = [MAKERS[kind](rng, f"p{number}", span) for number, kind in enumerate(kinds)]
        writer = Writer(rng, written, rng.choice([1, 1, 1, 2, 3, 12]), self.length)
        if self.calm:
            writer.changes, writer.with_arc_marks = 0.0, False
        tape = [writer.record() for _ in range(self.length)]
        by = 0 if self.calm else rng.choice([0, 0, 0, 0, 2**63 - 50, -(2**63)])
        self.documents, tape = shifted(written, tape, by)
        self.tape = plain_values(tape)
        for number, record in enumerate(self.tape):
            if "key" in record:
                record.setdefault("id", f"i{number}")
        odd = 0.0 if self.calm else rng.choice([0.0, 0.3, 0.8])
        self.patterns = [
            replace(build_pattern(document), **(rng.choice(SETTINGS) if rng.random() < odd else {}))
            for document in self.documents
        ]
        if any(pattern.gap_free for pattern in self.patterns):
            number_in_order(rng, self.tape)


def number_in_order(rng: Random, tape: list[Record]) -> None:
    """What AFA+O asks for: per key a `seq` that rises with time; gaps where an event never comes."""
    records = [record for record in tape if "key" in record]
    seqs, last = {}, 0
    for identity in sorted({(record["key"], record["ts"], record["id"]) for record in records}):
        last += 1 if rng.random() < 0.9 else rng.randint(2, 3)
        seqs[identity] = last
    for record in records:
        seq = seqs[record["key"], record["ts"], record["id"]]
        if record.get("op") != "retract" or rng.random() < 0.5:
            record["seq"] = seq


class RememberingReference(ReferenceEngine):
    """The reference, which computes a start event anew only if something within its window has changed."""

    def __init__(self, patterns: Iterable[Pattern]) -> None:
        super().__init__(patterns)
        self.known: dict[str, dict[tuple[int, ...], tuple[list[Event], list[Match]]]] = {
            name: {} for name in self.tables
        }

    def _feed_arc(self, record: Any) -> Any:
        if record.pattern in self.known:
            self.known[record.pattern].clear()
        return super()._feed_arc(record)

    def _computation(self, name: str, key: str, counters: Counters | None = None) -> Computation:
        return _RememberingComputation(**vars(super()._computation(name, key, counters)), known=self.known[name])


@dataclass
class _RememberingComputation(Computation):
    known: dict[tuple[int, ...], tuple[list[Event], list[Match]]] = field(default_factory=dict)

    def _matches_from(self, start: int) -> Iterator[Match]:
        if self.pattern.gap_free:  # depends on the punctuation and on what is hidden, too
            yield from super()._matches_from(start)
            return
        reach = list(self._reached(self.events[start:]))
        place = tuple(map(id, reach))
        if reach and place not in self.known:
            self.known[place] = (reach, list(super()._matches_from(start)))
        yield from self.known[place][1] if reach else ()

    def _reached(self, events: list[Event]) -> Iterator[Event]:
        window = self.pattern.window
        if isinstance(window, CountWindow):
            yield from events[: window.events]
        elif isinstance(window, TimeWindow):
            end = min(events[0].ts + window.length, INT_MAX)
            for event in events:
                if event.ts >= end:
                    return
                yield event
        else:
            yield from events
