"""Automata, events and results in one line each, for cases that are computed by hand."""

from __future__ import annotations

from typing import Any

from afa.records import MatchChange
from afa.reference import Step
from support.runs import Run


def arc(arc_id: str, source: str, target: str, when: str = "true", **more: Any) -> dict[str, Any]:
    return {"id": arc_id, "from": source, "to": target, "when": when} | more


def automaton(*arcs: dict[str, Any], name: str = "p", **more: Any) -> dict[str, Any]:
    """From state `a` to state `z`, in a window of 10."""
    return {"pattern": name, "start": "a", "final": ["z"], "within": 10, "arcs": list(arcs)} | more


def unbounded(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != "within"}


# A 1 and right after it a 2.
PAIR = automaton(arc("one", "a", "b", "e.x == 1"), arc("two", "b", "z", "e.x == 2"))
# A 1, anything any number of times, a 2.
SPAN = automaton(arc("one", "a", "b", "e.x == 1"), arc("any", "b", "b"), arc("two", "b", "z", "e.x == 2"))
# Every single event.
EACH = automaton(arc("each", "a", "z"))


def event(event_id: str, ts: int, x: Any = None, **more: Any) -> dict[str, Any]:
    return {"id": event_id, "key": "k", "ts": ts, "data": {"x": x}} | more


def retraction(event_id: str, ts: int, **more: Any) -> dict[str, Any]:
    return {"op": "retract", "id": event_id, "key": "k", "ts": ts} | more


def punctuation(ts: int, **more: Any) -> dict[str, Any]:
    return {"op": "punctuation", "ts": ts} | more


def arc_punctuation(ts: int) -> dict[str, Any]:
    return {"op": "arc-punctuation", "ts": ts}


def arc_change(body: dict[str, Any], *valid: int | None, pattern: str = "p") -> dict[str, Any]:
    return {"op": "arc", "pattern": pattern, "arc": body} | ({"valid": list(valid)} if valid else {})


def arc_removal(arc_id: str, pattern: str = "p") -> dict[str, Any]:
    return {"op": "arc-retract", "pattern": pattern, "arc": {"id": arc_id}}


def said(step: Step) -> list[str]:
    """`+first-last` and `-first-last` for matches, `pattern<ts` for punctuations, in the order they came."""
    return [
        f"{'+' if change.op == 'insert' else '-'}{change.match.first}-{change.match.last}"
        if isinstance(change, MatchChange)
        else f"{change.pattern}<{change.ts}"
        for change in step.changes
    ]


def matches(run: Run) -> list[str]:
    """The net matches as `first-last`; one that is there twice differs in state or register."""
    return sorted(f"{match.first}-{match.last}" for match in run.net.values())


def result(document: dict[str, Any], *records: dict[str, Any], **settings: Any) -> list[str]:
    return matches(Run(document, **settings).feed_all(list(records)))


def registers(run: Run) -> list[dict[str, Any]]:
    return sorted((dict(match.registers) for match in run.net.values()), key=repr)
