"""Matches and changes, as the matches topic and `replay` have them, as tables for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from arcfleet.cli.tables import data_console, print_table, table
from arcfleet.expansion import last_event, number_of_matches

_MATCH_COLUMNS = ("pattern", "key", "start", "end", "until", "state", "registers", "first", "last")
_NUMBERS = ("start", "end", "until")
_OP_STYLES = {"insert": "green", "retract": "red", "timeout": "yellow", "punctuation": "dim"}


def print_matches(records: Iterable[Mapping[str, Any]]) -> None:
    print_table(matches_table(records))


def matches_table(records: Iterable[Mapping[str, Any]]) -> Table:
    made = table(_MATCH_COLUMNS, right=_NUMBERS)
    for record in records:
        made.add_row(*map(Text, _cells(record)))
    return made


class ChangeTable:
    """A table that goes on: each part has columns as wide as those before, as far as the terminal has room."""

    def __init__(self) -> None:
        self.columns = ("op", *_MATCH_COLUMNS)
        self.widths = [len(column) for column in self.columns]
        self.begun = False

    def print(self, records: Iterable[Mapping[str, Any]]) -> None:
        rows = [self._row(record) for record in records]
        for row in rows:
            self.widths = [max(width, cell.cell_len) for width, cell in zip(self.widths, row, strict=True)]
        made = table(self.columns, right=_NUMBERS)
        made.show_header = not self.begun
        if sum(self.widths) + len(self.widths) <= data_console().width:
            for column, width in zip(made.columns, self.widths, strict=True):
                column.min_width = width
        for row in rows:
            made.add_row(*row)
        print_table(made)
        self.begun = True

    def _row(self, record: Mapping[str, Any]) -> Sequence[Text]:
        op = str(record["op"])
        style = _OP_STYLES.get(op, "")
        if op in ("insert", "retract"):
            return [Text(op, style), *map(Text, _cells(record))]
        return [Text(value, style) for value in (op, *_other_cells(record))]


def _other_cells(record: Mapping[str, Any]) -> list[str]:
    """A timeout has no end, and a punctuation nothing but it."""
    reached = f"{record['reached']}: {_bound(record)}" if "reached" in record else ""
    end = record.get("ts", "")
    values = (record["pattern"], record.get("key", ""), record.get("start", ""), end, record.get("until", ""), reached)
    return [str(value) for value in (*values, "", "", "")]


def _bound(record: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={'+'.join(ids)}" for name, ids in record["bindings"].items())


def _cells(record: Mapping[str, Any]) -> list[str]:
    """A tombstone says no more than which match is gone, so any field may be missing."""
    last = record.get("events", {}).get("last", "")
    state = _bound(record) if "bindings" in record else record.get("state", "")
    if "graph" in record:
        count = number_of_matches(record)
        state, last = f"{count:,} {'match' if count == 1 else 'matches'}", last_event(record)
    registers = ", ".join(f"{name}={value}" for name, value in record.get("registers", {}).items())
    told = [record.get(name) for name in ("pattern", "key", "start", "end", "until")]
    values = (*told, state, registers, record.get("events", {}).get("first", ""), last)
    return ["" if value is None else str(value) for value in values]
