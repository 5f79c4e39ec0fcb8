"""Generated automata and tapes: registers, ties, disorder, revisions, live arcs, unknown values, epsilon arcs."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

FENCES = (
    "e.x < {a}",
    "e.x > {a}",
    "e.y == {b}",
    "e.x + e.y > {a}",
    "e.x < {a} or e.y == {b}",
    "not (e.x > {a})",
    "e.x > r.m",
    "r.n < {c} and e.y != {b}",
    "e.type == 'buy'",
    "e.y in [1, {b}]",
    "e.x == null or e.x / e.y > 1",
    "abs(e.x) < {a} and e.ts > 3",
    "true",
)
TRANSFERS: tuple[dict[str, str], ...] = (
    {},
    {},
    {"n": "r.n + 1"},
    {"m": "e.x"},
    {"m": "max(r.m, e.x)", "n": "r.n + 1"},
    {"n": "r.n - e.y"},
    {"f": "r.f + e.x / 2"},
    {"m": "min(r.m, e.x) if r.n > 0 else e.x"},
)
REGISTERS = {"n": 0, "m": 0, "f": 0.0}
KEYS = ("A", "B")
MAX_TS = 24

_small = st.integers(-5, 8)
_lifetime = st.one_of(
    st.just([None, None]),
    st.tuples(st.one_of(st.none(), st.integers(0, MAX_TS)), st.one_of(st.none(), st.integers(0, MAX_TS + 4))).map(list),
)


@st.composite
def fences(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from(FENCES))
    return text.format(a=draw(_small), b=draw(st.integers(0, 3)), c=draw(st.integers(1, 3)))


@st.composite
def arc_bodies(draw: st.DrawFn, states: list[str], arc_id: str) -> dict[str, Any]:
    body: dict[str, Any] = {
        "id": arc_id,
        "from": draw(st.sampled_from(states)),
        "to": draw(st.sampled_from(states[1:])),
        "when": draw(fences()),
    }
    transfer = draw(st.sampled_from(TRANSFERS))
    return body | ({"set": transfer} if transfer else {})


@st.composite
def documents(draw: st.DrawFn, *, windows: tuple[Any, ...] = (6, 10, "3 events", None)) -> dict[str, Any]:
    """A pattern with a path from start to end, then anything."""
    states = [f"q{i}" for i in range(draw(st.integers(2, 4)))]
    arcs = []
    for i, (source, target) in enumerate(pairwise(states)):
        arcs.append(draw(arc_bodies(states, f"p{i}")) | {"from": source, "to": target})
    arcs += [draw(arc_bodies(states, f"x{j}")) for j in range(draw(st.integers(0, 3)))]
    for arc in arcs:
        if draw(st.integers(0, 3)) == 0:
            arc["valid"] = draw(_lifetime)
    if draw(st.integers(0, 3)) == 0:  # forward only: no cycle
        i = draw(st.integers(0, len(states) - 2))
        j = draw(st.integers(i + 1, len(states) - 1))
        arcs.append(
            {"id": "eps", "from": states[i], "to": states[j], "epsilon": True, "when": "r.n >= 1", "set": {"n": "0"}}
        )
    document = {"pattern": "p", "start": "q0", "final": [states[-1]], "registers": REGISTERS, "arcs": arcs}
    within = draw(st.sampled_from(windows))
    return document | ({} if within is None else {"within": within})


_values = st.one_of(st.integers(-6, 9), st.integers(-6, 9), st.sampled_from([None, 1.5, "text", True, 2**70]))


@st.composite
def events(draw: st.DrawFn, event_id: str) -> dict[str, Any]:
    return {
        "id": event_id,
        "key": draw(st.sampled_from(KEYS)),
        "ts": draw(st.integers(0, MAX_TS)),
        "type": draw(st.sampled_from(["buy", "sell", "noise"])),
        "data": {"x": draw(_values), "y": draw(st.integers(0, 3))},
    } | draw(st.sampled_from([{}, {}, {"seq": 0}, {"seq": 1}, {"seq": 2}]))


@st.composite
def event_records(draw: st.DrawFn, *, most: int = 14) -> list[dict[str, Any]]:
    """Inserts, revisions and retractions, any of them in any place."""
    inserts = [draw(events(f"e{i:02d}")) for i in range(draw(st.integers(1, most)))]
    records = list(inserts)
    for _ in range(draw(st.integers(0, 4))):
        event = draw(st.sampled_from(inserts))
        rev = draw(st.integers(0, 2))
        if draw(st.booleans()):
            records.append({"op": "retract", "rev": rev} | {name: event[name] for name in ("id", "key", "ts")})
        else:
            seq = draw(st.sampled_from([{}, {"seq": 0}, {"seq": 1}]))
            plain = {name: value for name, value in event.items() if name != "seq"}
            records.append(plain | seq | {"rev": rev, "data": {"x": draw(_values), "y": draw(st.integers(0, 3))}})
    return draw(st.permutations(records))


@st.composite
def arc_records(draw: st.DrawFn, document: dict[str, Any], *, most: int = 3) -> list[dict[str, Any]]:
    """Live changes in their own order: new arcs, other lifetimes, other bodies, removals."""
    known = [arc["id"] for arc in document["arcs"] if not arc.get("epsilon")]
    states = sorted({arc[end] for arc in document["arcs"] for end in ("from", "to")})
    records: list[dict[str, Any]] = []
    for i in range(draw(st.integers(0, most))):
        what = draw(st.sampled_from(["new", "lifetime", "body", "remove"] if known else ["new"]))
        record: dict[str, Any] = {"op": "arc", "pattern": "p", "valid": draw(_lifetime)}
        if what == "new":
            record["arc"] = draw(arc_bodies(states, f"d{i}"))
            known.append(f"d{i}")
        elif what == "lifetime":
            record["arc"] = {"id": draw(st.sampled_from(known))}
        elif what == "body":
            record["arc"] = draw(arc_bodies(states, draw(st.sampled_from(known))))
        else:
            record = {
                "op": "arc-retract",
                "pattern": "p",
                "arc": {"id": known.pop(draw(st.integers(0, len(known) - 1)))},
            }
        records.append(record)
    return records


@st.composite
def merged(draw: st.DrawFn, one: list[Any], other: list[Any]) -> list[Any]:
    """Both lists in one, each in its own order."""
    places = sorted(draw(st.integers(0, len(one))) for _ in other)
    result = list(one)
    for shift, (place, item) in enumerate(zip(places, other, strict=True)):
        result.insert(place + shift, item)
    return result


@st.composite
def punctuated(draw: st.DrawFn, records: list[dict[str, Any]], *, arcs: bool = False) -> list[dict[str, Any]]:
    """Punctuations anywhere, so that some records are late."""
    operations = ["punctuation", "arc-punctuation"] if arcs else ["punctuation"]
    marks = [
        {"op": draw(st.sampled_from(operations)), "ts": draw(st.integers(0, MAX_TS + 12))}
        for _ in range(draw(st.integers(0, 4)))
    ]
    return draw(merged(records, marks))
