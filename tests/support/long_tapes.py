"""Long tapes and the patterns for them, from a seed: pages that split, late records far back, silent keys, live arcs.

Hypothesis draws the seed and the sizes; the rest is plain randomness, because a tape of 150 records that is drawn value
by value takes longer to draw than to match.
"""

from __future__ import annotations

import itertools
import json
from random import Random
from typing import Any, Final

import pyarrow as pa

from support.generated import REGISTERS

PREDICATES = ("e.x > {a}", "e.x < {a}", "e.y == {b}", "e.type == 'buy'", "e.y != {b}", "e.x + e.y > {a}", "true")
FENCES = (
    *PREDICATES,
    *PREDICATES,
    "e.x > r.m",
    "r.n < 3",
    "r.n < {c} and e.y != {b}",
    "e.x == r.m or e.y == {b}",
    "r.f < {a} and e.x > {a}",
    "e.x > {a} and e.x != r.m and e.y in [0, {b}]",
)
TRANSFERS: tuple[dict[str, str], ...] = (
    {},
    {},
    {"n": "r.n + 1"},
    {"n": "(r.n + 1) % 3"},
    {"m": "e.x"},
    {"m": "max(r.m, e.x)", "n": "r.n + 1"},
    {"f": "r.f + e.x / 2"},
    {"m": "r.n", "n": "r.m"},
)
Record = dict[str, Any]


def _predicate(rng: Random, texts: tuple[str, ...] = PREDICATES) -> str:
    return rng.choice(texts).format(a=rng.randint(-5, 6), b=rng.randint(0, 3), c=rng.randint(1, 3))


def _lifetime(rng: Random, span: int) -> list[int | None]:
    le = rng.choice([None, rng.randint(0, span)])
    return [le, rng.choice([None, rng.randint(0, span), rng.randint(0, span) + (le or 0)])]


def linear_document(rng: Random, name: str, span: int) -> Record:
    """A chain of one to eight steps over event predicates, with alternatives; the engine's bit-parallel path."""
    steps = rng.randint(1, 8)
    arcs = []
    for step in range(steps):
        for alternative in range(rng.choice([1, 1, 1, 2, 3])):
            easy = rng.random() < 0.5
            arc = {
                "id": f"s{step}{'abc'[alternative]}",
                "from": f"q{step}",
                "to": f"q{step + 1}",
                "when": "true" if easy and steps > 3 else _predicate(rng),
            }
            if rng.random() < 0.2:
                arc["valid"] = _lifetime(rng, span)
            arcs.append(arc)
    within = rng.choice([1, 3, 8, 20, span])
    return {"pattern": name, "start": "q0", "final": [f"q{steps}"], "arcs": arcs, "within": within}


def register_document(rng: Random, name: str, span: int) -> Record:
    """A path and some more arcs, with registers, epsilon arcs, and windows of every kind."""
    states = [f"q{i}" for i in range(rng.randint(2, 5))]
    arcs = [
        {"id": f"p{i}", "from": states[i], "to": states[i + 1], "when": _predicate(rng, FENCES)}
        for i in range(len(states) - 1)
    ]
    arcs += [
        {
            "id": f"x{i}",
            "from": rng.choice(states),
            "to": rng.choice(states[1:]),
            "when": _predicate(rng, FENCES),
        }
        for i in range(rng.randint(0, 3))
    ]
    for arc in arcs:
        arc["set"] = rng.choice(TRANSFERS)
        if rng.random() < 0.2:
            arc["valid"] = _lifetime(rng, span)
    for i in range(rng.choice([0, 0, 1, 2])):
        here = rng.randint(0, len(states) - 2)
        arcs.append(
            {
                "id": f"eps{i}",
                "from": states[here],
                "to": rng.choice(states[here + 1 :]),
                "epsilon": True,
                "when": rng.choice(["true", "r.n >= 1", "r.m < 3"]),
                "set": rng.choice([{}, {"n": "0"}, {"m": "r.m + 1"}]),
            }
        )
    document: Record = {"pattern": name, "start": "q0", "final": [states[-1]], "registers": REGISTERS, "arcs": arcs}
    within = rng.choice([2, 6, 10, 25, "1 events", "3 events", "7 events", None])
    return document if within is None else document | {"within": within}


def arc_change(rng: Random, document: Record, number: int, span: int) -> Record:
    """A live change of a pattern; some keep a linear pattern linear, some do not."""
    states = list(dict.fromkeys(arc[end] for arc in document["arcs"] for end in ("from", "to")))
    known = [arc["id"] for arc in document["arcs"]] + [f"n{i}" for i in range(number)]
    record: Record = {"op": "arc", "pattern": document["pattern"], "valid": _lifetime(rng, span)}
    what = rng.choice(["alternative", "alternative", "lifetime", "lifetime", "remove", "body", "loop", "skip", "other"])
    if what == "lifetime":
        return record | {"arc": {"id": rng.choice(known)}}
    if what == "remove":
        return {"op": "arc-retract", "pattern": document["pattern"], "arc": {"id": rng.choice(known)}}
    place = rng.randrange(len(states) - 1)
    ends = {"from": states[place], "to": states[place + 1]}
    arc: Record = {
        "id": f"n{number}",
        **ends,
        "when": _predicate(rng, FENCES if "registers" in document else PREDICATES),
    }
    if what == "body":
        arc["id"] = rng.choice(known)
    elif what == "loop":
        arc |= {"from": states[place], "to": states[place]}
    elif what == "skip":
        arc |= {"to": rng.choice(states[place + 1 :])}
    elif what == "other":
        arc |= rng.choice(
            [
                {"epsilon": True, "when": "true"},
                {"to": f"new{number}", "final": True},
                {"to": document["final"][0], "final": True},
                {"from": states[-1], "to": states[0]},
            ]
        )
    return record | {"arc": arc}


class Writer:
    """Writes a tape whose time goes on, with late events, revisions, retractions and punctuations behind."""

    def __init__(self, rng: Random, documents: list[Record], keys: int, length: int) -> None:
        self.rng = rng
        self.documents = documents
        self.keys = [f"k{i}" for i in range(keys)]
        self.per_tick = rng.choice([0.3, 1, 2, 6])
        self.span = max(4, int(length / self.per_tick))
        self.late = rng.choice([0.0, 0.1, 0.4])
        self.odd = rng.choice([0.0, 0.1, 0.3])
        self.marks = rng.choice([0.0, 0.03, 0.1])
        self.changes = rng.choice([0.0, 0.02, 0.08])
        self.lag = rng.choice([0, 2, 8, 20])
        self.with_arc_marks = rng.random() < 0.3
        self.with_conditions = rng.random() < 0.2
        self.sequences = rng.choice(["none", "some", "rising"])
        self.seqs = dict.fromkeys(self.keys, 0)
        self.now = 0.0
        self.events: list[Record] = []
        self.new_arcs = 0

    def record(self) -> Record:
        choice = self.rng.random()
        if choice < self.marks:
            return self._mark()
        if choice < self.marks + self.changes and self.documents:
            self.new_arcs += 1
            return arc_change(self.rng, self.rng.choice(self.documents), self.new_arcs, self.span)
        if self.events and self.rng.random() < self.odd:
            return self._odd()
        return self._event()

    def _mark(self) -> Record:
        operation = self.rng.choice(["punctuation", "arc-punctuation"]) if self.with_arc_marks else "punctuation"
        record: Record = {"op": operation, "ts": int(self.now) - self.rng.randint(0, self.lag)}
        if self.with_conditions and operation == "punctuation" and self.rng.random() < 0.3:
            record |= {"ts": int(self.now) + 3, "when": self.rng.choice(["e.y > 2", "e.x < -3"])}
        return record

    def _event(self) -> Record:
        self.now += self.rng.expovariate(self.per_tick)
        ts = int(self.now)
        if self.rng.random() < self.late:
            ts -= self.rng.randint(0, self.rng.choice([2, 10, self.span]))
        key = self.rng.choice(self.keys)
        event = {"id": f"e{len(self.events):03d}", "key": key, "ts": ts, **self._content(key)}
        if self.sequences == "rising":
            self.seqs[key] += 2 if self.rng.random() < 0.1 else 1
            event["seq"] = self.seqs[key]
        elif self.sequences == "some" and self.rng.random() < 0.3:
            event["seq"] = self.rng.randint(0, 3)
        if self.rng.random() < 0.1:
            del event["id"]
        else:
            self.events.append(event)
        return event

    def _content(self, key: str) -> Record:
        odd: Any = self.rng.choice([None, 1.5, "text", True])
        value = odd if self.rng.random() < 0.05 else self.rng.randint(-6, 9)
        own = key if self.rng.random() < 0.8 else "somebody"
        data = {"x": value, "y": self.rng.randint(0, 3), "k": own}
        return {"type": self.rng.choice(["buy", "sell"]), "data": data}

    def _odd(self) -> Record:
        event = self.rng.choice(self.events[-self.rng.choice([5, 40, 200]) :])
        rev = {"rev": self.rng.randint(0, 3)}
        if self.rng.random() < 0.5:
            names = ("id", "key", "ts", "seq") if self.rng.random() < 0.5 else ("id", "key", "ts")
            return {"op": "retract"} | rev | {name: event[name] for name in names if name in event}
        return event | rev | self._content(event["key"])


def documents(rng: Random, kinds: str, span: int) -> list[Record]:
    """One pattern for each letter: `l` linear, `r` with registers."""
    makers = {"l": linear_document, "r": register_document}
    return [makers[kind](rng, f"p{number}", span) for number, kind in enumerate(kinds)]


def long_tape(rng: Random, patterns: list[Record], keys: int, length: int) -> list[Record]:
    writer = Writer(rng, patterns, keys, length)
    return [writer.record() for _ in range(length)]


def cuts(rng: Random, length: int) -> list[tuple[int, int]]:
    """The places `[begin, end)` of batches that make up a tape of this length."""
    most = rng.choice([3, 20, 70, length + 1])
    places = [0]
    while places[-1] < length:
        places.append(min(length, places[-1] + rng.randint(0, most)))
    return list(itertools.pairwise(places))


def shifted(documents: list[Record], tape: list[Record], by: int) -> tuple[list[Record], list[Record]]:
    """The same at another time, held within 64 bits."""

    def moved(ts: int | None) -> int | None:
        return None if ts is None else max(-(2**63), min(2**63 - 1, ts + by))

    def moved_record(record: Record) -> Record:
        record = record | ({"ts": moved(record["ts"])} if "ts" in record else {})
        return record | ({"valid": [moved(end) for end in record["valid"]]} if "valid" in record else {})

    patterns = [document | {"arcs": [moved_record(arc) for arc in document["arcs"]]} for document in documents]
    return patterns, [moved_record(record) for record in tape]


def plain_values(tape: list[Record]) -> list[Record]:
    """Every field of one type, and none null, as the columns of a record batch have them."""
    plain = []
    for record in tape:
        data = dict(record.get("data", {}))
        if type(data.get("x", 0)) is not int:
            del data["x"]
        plain.append(record | {"data": data} if "data" in record else record)
    return plain


def record_batch(rng: Random, records: list[Record]) -> pa.RecordBatch:
    """Rows for plain records; columns that no record needs are left out or not."""
    columns: dict[str, pa.Array] = {}
    for name, kind in _COLUMNS.items():
        values = [_cell(record, name) for record in records]
        if name in ("key", "ts") or any(value is not None for value in values) or rng.random() < 0.2:
            columns[name] = pa.array(values, kind)
    if rng.random() < 0.5 and all("key" in record for record in records):
        columns["key"] = columns["key"].dictionary_encode()
    elif rng.random() < 0.2:
        columns["key"] = columns["key"].cast(pa.large_string())
    if "op" in columns and rng.random() < 0.5:
        columns["op"] = columns["op"].dictionary_encode()
    if "x" in columns and "y" in columns and rng.random() < 0.2:
        columns["y"] = columns["y"].cast(pa.int32())
    batch = pa.RecordBatch.from_pydict(columns)
    if rng.random() < 0.3:  # a slice of a longer one
        twice = pa.Table.from_batches([batch, batch]).combine_chunks().to_batches()
        batch = twice[0].slice(batch.num_rows) if twice else batch
    return batch


_COLUMNS: Final = {
    "key": pa.string(),
    "ts": pa.int64(),
    "id": pa.string(),
    "seq": pa.int64(),
    "rev": pa.int64(),
    "op": pa.string(),
    "type": pa.string(),
    "arc": pa.string(),
    "when": pa.string(),
    "x": pa.int64(),
    "y": pa.int64(),
    "k": pa.string(),
}


def _cell(record: Record, name: str) -> Any:
    if name == "arc":
        return json.dumps(record) if "arc" in record else None
    return record.get(name, record.get("data", {}).get(name))


def encoded(records: list[Record]) -> list[bytes]:
    return [json.dumps(record).encode() for record in records]
