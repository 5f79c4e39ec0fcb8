"""Tables for people: data too, so they go to stdout."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from rich.console import Console
from rich.table import Table

_PIPE_WIDTH = 100_000


class _DataConsole(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # for the one place that ends quietly; rich would exit 1


def table(columns: Iterable[str], *, right: Collection[str] = ()) -> Table:
    """A plain table; the columns of `right` hold numbers."""
    made = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        made.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return made


def data_console() -> Console:
    """Fits a terminal; into a pipe or a file every value goes whole."""
    console = _DataConsole()
    return console if console.is_terminal else _DataConsole(width=_PIPE_WIDTH)


def print_table(made: Table) -> None:
    data_console().print(made)
