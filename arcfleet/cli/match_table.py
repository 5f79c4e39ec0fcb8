"""Matches and changes as tables for people."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from afa.records import Change, Match, MatchChange

_MATCH_COLUMNS = ("pattern", "key", "start", "end", "until", "state", "registers", "first", "last")
_PIPE_WIDTH = 100_000
_OP_STYLES = {"insert": "green", "retract": "red", "punctuation": "dim"}


def print_matches(changes: Iterable[MatchChange]) -> None:
    table = _table(_MATCH_COLUMNS)
    for change in changes:
        table.add_row(*_cells(change.match))
    _console().print(table)


def print_changes(changes: Iterable[Change]) -> None:
    table = _table(("op", *_MATCH_COLUMNS))
    for change in changes:
        if isinstance(change, MatchChange):
            table.add_row(Text(change.op, _OP_STYLES[change.op]), *_cells(change.match))
        else:
            blanks = [Text()] * (len(_MATCH_COLUMNS) - 4)
            style = _OP_STYLES["punctuation"]
            table.add_row(
                Text("punctuation", style),
                Text(change.pattern, style),
                Text(),
                Text(),
                Text(str(change.ts), style),
                *blanks,
            )
    _console().print(table)


class _DataConsole(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # for the one place that ends quietly; rich would exit 1


def _console() -> Console:
    """Fits a terminal; into a pipe or a file every value goes whole."""
    console = _DataConsole()
    return console if console.is_terminal else _DataConsole(width=_PIPE_WIDTH)


def _table(columns: Iterable[str]) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in ("start", "end", "until") else "left", overflow="fold")
    return table


def _cells(match: Match) -> list[Text]:
    registers = ", ".join(f"{name}={value}" for name, value in match.registers)
    until = "" if match.until is None else str(match.until)
    values = (match.pattern, match.key, match.start, match.end, until, match.state, registers, match.first, match.last)
    return [Text(str(value)) for value in values]
