"""Matches and changes as tables for people."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

from afa.records import Bindings, Change, EmittedPunctuation, GraphChange, Match, MatchChange, Timeout
from arcfleet.cli.tables import print_table, table

_MATCH_COLUMNS = ("pattern", "key", "start", "end", "until", "state", "registers", "first", "last")
_NUMBERS = ("start", "end", "until")
_OP_STYLES = {"insert": "green", "retract": "red", "timeout": "yellow", "punctuation": "dim"}


def print_matches(changes: Iterable[MatchChange | GraphChange]) -> None:
    shown = table(_MATCH_COLUMNS, right=_NUMBERS)
    for change in changes:
        shown.add_row(*_cells(change.match if isinstance(change, MatchChange) else change))
    print_table(shown)


def print_changes(changes: Iterable[Change]) -> None:
    shown = table(("op", *_MATCH_COLUMNS), right=_NUMBERS)
    for change in changes:
        if isinstance(change, MatchChange | GraphChange):
            told = change.match if isinstance(change, MatchChange) else change
            shown.add_row(Text(change.op, _OP_STYLES[change.op]), *_cells(told))
        else:
            shown.add_row(*_other_cells(change))
    print_table(shown)


def _other_cells(change: Timeout | EmittedPunctuation) -> list[Text]:
    """A timeout has no end, and a punctuation nothing but it."""
    if isinstance(change, Timeout):
        start, end, reached = (str(change.start), ""), str(change.until), f"{change.reached}: {_bound(change.bindings)}"
        values = ["timeout", change.pattern, change.key, *start, end, reached]
    else:
        values = ["punctuation", change.pattern, "", "", str(change.ts)]
    style = _OP_STYLES[values[0]]
    return [Text(value, style) for value in [*values, *[""] * (len(_MATCH_COLUMNS) + 1 - len(values))]]


def _bound(bindings: Bindings) -> str:
    return ", ".join(f"{name}={'+'.join(id_ for _, id_ in events)}" for name, events in bindings)


def _cells(match: Match | GraphChange) -> list[Text]:
    if isinstance(match, GraphChange):
        count = match.graph.count
        told = f"{count:,} {'match' if count == 1 else 'matches'}"
        return [Text(str(value)) for value in (match.pattern, match.key, "", match.end, "", told, "", "", match.last)]
    registers = ", ".join(f"{name}={value}" for name, value in match.registers)
    until = "" if match.until is None else str(match.until)
    state = match.state if match.bindings is None else _bound(match.bindings)
    values = (match.pattern, match.key, match.start, match.end, until, state, registers, match.first, match.last)
    return [Text(str(value)) for value in values]
