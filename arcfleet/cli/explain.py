"""`arcfleet explain`: a pattern in words. Alone it checks a document."""

from __future__ import annotations

import math
import sys
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer

from afa import load_patterns
from afa.expression.tree import EventAttribute, EventField, walk
from afa.pattern import Arc, CompiledQuery, CountWindow, Pattern, TimeWindow
from arcfleet.cli.explained_sources import seen_sources, source_lines, source_notes
from arcfleet.cli.fleet_options import fleet_from
from arcfleet.cli.output import Format, JsonOption, OutputOption, PatternsArgument, write_json
from arcfleet.fleet.document import Fleet
from arcfleet.fleet.fitness import check_fitness

FleetOption: TypeAlias = Annotated[
    Path | None, typer.Option("--fleet", metavar="FILE", readable=False, help="The fleet document that they run with.")
]

_MOST_ARCS: Final = 6  # that are listed for a condition; a set may have hundreds
_FEWER: Final = {"non_overlapping": "not overlapping", "earliest_maximal": "earliest and maximal"}


def explain(
    patterns: PatternsArgument,
    fleet: FleetOption = None,
    output: OutputOption = Format.table,
    json_output: JsonOption = False,
) -> None:
    """Check patterns and say in words what they do; with a fleet also where it takes their events from.

    [bold]Examples[/]

    arcfleet explain q1.yaml

    arcfleet explain rules/*.yaml --fleet fleet.yaml --json
    """
    told = None if fleet is None else fleet_from(fleet, None)
    loaded = load_patterns(*patterns, unit="ms" if told is None else told.unit)
    if told is not None:
        check_fitness(loaded, told)
    for position, pattern in enumerate(loaded):
        if json_output or output is Format.json:
            write_json(describe(pattern, told))
        else:
            sys.stdout.write(("\n" if position else "") + in_words(pattern, told))


def describe(pattern: Pattern, fleet: Fleet | None = None) -> dict[str, Any]:
    """The facts that `explain` tells, as data."""
    sources = [] if fleet is None else seen_sources(pattern, fleet)
    told = {
        "pattern": pattern.name,
        "form": "automaton" if pattern.query is None else "query",
        "window": _window(pattern),
        "key": _key(pattern),
        "start": pattern.start,
        "final": sorted(pattern.finals),
        "states": list(pattern.states),
        "registers": {
            register.name: {"type": str(register.type), "initial": register.initial} for register in pattern.registers
        },
        "arcs": _arcs(pattern),
        "reads": _reads(pattern),
        "output": _settings(pattern),
        "plan": "eager",
        "notes": _notes(pattern) + source_notes(sources),
    }
    return told | _of_query(pattern.query) | ({} if fleet is None else {"fleet": fleet.name, "sources": sources})


def _of_query(query: CompiledQuery | None) -> dict[str, Any]:
    if query is None:
        return {}
    return {
        "query": query.text,
        "conjuncts": [
            {"text": conjunct.text, "arcs": list(conjunct.arcs)}
            | ({} if conjunct.absent is None else {"absent": conjunct.absent})
            for conjunct in query.conjuncts
        ],
        "binds": list(query.variables),
        "returns": {name: item.text for name, item in query.returns},
        "absent before": [occurrence.text for occurrence in query.leading],
        "absent after": [occurrence.text for occurrence in query.trailing],
    }


def in_words(pattern: Pattern, fleet: Fleet | None = None) -> str:
    told = describe(pattern, fleet)
    form = "an automaton" if pattern.query is None else "a query, as an automaton"
    lines = [f"pattern {pattern.name}: {form} of {len(pattern.states)} states and {len(pattern.arcs)} arcs"]
    lines += [f"  query      {line}" for line in told.get("query", "").splitlines()[:1]]
    lines += [f"             {line}" for line in told.get("query", "").splitlines()[1:]]
    lines += [f"  window     {told['window']}", f"  key        {told['key']}"]
    lines += [f"  starts in  {pattern.start}, at every event of the key"]
    lines += [f"  matches in {', '.join(told['final'])}"]
    registers = [
        f"{name} ({facts['type']}, from {_value(facts['initial'])})" for name, facts in told["registers"].items()
    ]
    lines += [f"  registers  {', '.join(registers) or 'none'}"]
    lines += [f"  reads      {', '.join(told['reads']) or 'nothing of the event'}"]
    lines += _query_words(told)
    lines += [f"  output     {told['output']}", f"  plan       {told['plan']}", *_conjunct_words(told)]
    lines += ["  arcs", *_arc_lines(told["arcs"]), *source_lines(told.get("sources", ()))]
    lines += [f"  note: {note}" for note in told["notes"]]
    return "\n".join(lines) + "\n"


def _arc_lines(arcs: list[dict[str, Any]]) -> list[str]:
    """Id, from where to where, the numbers of the conditions that it tests, and what it does, in columns."""
    columns = [[arc["id"] for arc in arcs], [f"{arc['from']} -> {arc['to']}" for arc in arcs]]
    numbers = ["".join(f"({number})" for number in arc.get("conjuncts", ())) for arc in arcs]
    if any(numbers):
        columns.append(numbers)
    widths = [max(map(len, column)) for column in columns]
    cells = [[f"{cell:<{width}}" for cell in column] for column, width in zip(columns, widths, strict=True)]
    return ["    " + "  ".join(row) for row in zip(*cells, map(_arc_words, arcs), strict=True)]


def _value(initial: Any) -> str:
    return "unknown" if initial is None else repr(initial)


def _query_words(told: dict[str, Any]) -> list[str]:
    if told["form"] != "query":
        return []
    lines = [f"  binds      {', '.join(told['binds'])}"]
    lines += [f"  returns    {name} = {text}" for name, text in told["returns"].items()]
    lines += [f"  no event   before it, within the window, with {text}" for text in told["absent before"]]
    lines += [f"  no event   after it, within the window, with {text}" for text in told["absent after"]]
    return lines


def _conjunct_words(told: dict[str, Any]) -> list[str]:
    """Where each condition of a query sits; the arcs name them by their numbers."""
    conjuncts = told.get("conjuncts", [])
    if not conjuncts:
        return []
    width, numbers = max(len(conjunct["text"]) for conjunct in conjuncts), len(f"({len(conjuncts)})")
    lines = ["  conditions"]
    for number, conjunct in enumerate(conjuncts, 1):
        places = [f"no event {conjunct['absent']} it"] if "absent" in conjunct else conjunct["arcs"][:_MOST_ARCS]
        if len(conjunct["arcs"]) > _MOST_ARCS:
            places.append(f"and {len(conjunct['arcs']) - _MOST_ARCS} more arcs")
        where = ", ".join(places) or "no arc: no event can come there"
        lines.append(f"    {f'({number})':<{numbers}}  {conjunct['text']:<{width}}  {where}")
    return lines


def _window(pattern: Pattern) -> str:
    match pattern.window:
        case TimeWindow(length=length):
            return f"an event is consumed only if its ts < start + {length}"
        case CountWindow(events=events):
            return f"the start event and the next {events - 1} events of the key"
    if pattern.query is not None and pattern.query.counted is not None:
        return f"the start event and the next {pattern.query.counted - 1} events of its partition"
    return "none: a computation may run for ever"


def _key(pattern: Pattern) -> str:
    if pattern.key_field is None:
        return "the event's own key"
    return f"the event's own key; events whose field {'.'.join(pattern.key_field)} differs from it are not seen"


def _arcs(pattern: Pattern) -> list[dict[str, Any]]:
    """Arcs of a query name the conjuncts that they test by number, from 1 on."""
    if pattern.query is None:
        return [_arc(arc) for arc in pattern.arcs]
    tests: dict[str, list[int]] = {arc.id: [] for arc in pattern.arcs}
    for number, conjunct in enumerate(pattern.query.conjuncts, 1):
        for arc_id in conjunct.arcs:
            tests[arc_id].append(number)
    return [_arc(arc) | {"conjuncts": tests[arc.id]} for arc in pattern.arcs]


def _arc(arc: Arc) -> dict[str, Any]:
    return {
        "id": arc.id,
        "from": arc.source,
        "to": arc.target,
        "when": arc.fence.text,
        "set": {name: transfer.text for name, transfer in arc.transfer},
        "valid": list(arc.lifetime.as_pair()),
        "epsilon": arc.epsilon,
    } | ({} if arc.binds is None else {"binds": arc.binds})


def _arc_words(arc: dict[str, Any]) -> str:
    words = [f"binds {arc['binds']},"] if "binds" in arc else []
    words += ["consumes nothing, if" if arc["epsilon"] else "if", arc["when"]]
    if arc["set"]:
        words.append("then " + ", ".join(f"{name} := {text}" for name, text in arc["set"].items()))
    le, re = arc["valid"]
    if arc["valid"] != [None, None]:
        words.append(f"for ts in [{'-inf' if le is None else le}, {'inf' if re is None else re})")
    return " ".join(words)


def _reads(pattern: Pattern) -> list[str]:
    roots = [root for arc in pattern.arcs for root in (arc.fence.root, *(x.root for _, x in arc.transfer))]
    if pattern.query is not None:
        roots += [occurrence.root for occurrence in (*pattern.query.leading, *pattern.query.trailing)]
    nodes = [node for root in roots for node in walk(root)]
    fields = {f"e.{'.'.join(node.path)} ({node.type})" for node in nodes if isinstance(node, EventField)}
    own = {f"e.{node.name} ({node.type})" for node in nodes if isinstance(node, EventAttribute)}
    return sorted(fields | own)


def _settings(pattern: Pattern) -> str:
    query = pattern.query
    if query is not None and query.trailing and query.absence == "window_end":
        words = ["a match when its window has closed"]
    elif pattern.speculation == math.inf:
        words = ["a match at once, retracted if a late or revised event proves it wrong"]
    else:
        words = [f"only events below the punctuation + {pattern.speculation} are matched"]
    if pattern.gap_free:
        words.append("no step over a gap in seq before the punctuation has passed it (AFA+O)")
    if pattern.hold_output:
        words.append("inserts are held until they are final")
    if pattern.output != "all":
        words.append(f"of these the {_FEWER[pattern.output]} ones only")
    if query is not None and query.compressed:
        words.append("all that share an end event as one graph")
    if query is not None and query.timeouts:
        words.append("start events whose window closes without a match are reported")
    return "; ".join(words)


def _notes(pattern: Pattern) -> list[str]:
    steps = [(arc.source, arc.target) for arc in pattern.arcs if not arc.lifetime.is_empty]
    reached = _reachable({pattern.start}, steps)
    useful = _reachable(pattern.finals, [(target, source) for source, target in steps])
    notes = []
    for state in pattern.states:
        if state not in reached:
            notes.append(f"the state {state} cannot be reached from {pattern.start}")
        elif state not in useful:
            notes.append(f"from the state {state} no final state can be reached")
    notes += [f"the arc {arc.id} is never valid" for arc in pattern.arcs if arc.lifetime.is_empty]
    if pattern.fields is None:
        notes.append("no `events:` are declared, so field names and types are not checked")
    return notes


def _reachable(starts: AbstractSet[str], steps: list[tuple[str, str]]) -> set[str]:
    following: dict[str, list[str]] = {}
    for source, target in steps:
        following.setdefault(source, []).append(target)
    reached, todo = set(starts), list(starts)
    while todo:
        for state in following.get(todo.pop(), ()):
            if state not in reached:
                reached.add(state)
                todo.append(state)
    return reached
