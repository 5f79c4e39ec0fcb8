"""How every command speaks: data on stdout, talk on stderr, errors with place, source line and fix."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

from afa.errors import AfaError, Place

EXIT_BAD_INPUT, EXIT_USAGE, EXIT_SYSTEM = 1, 2, 3
_SHOWN_CHARACTERS = 160  # of a source line in an error message
_LINE_BYTES = 100_000  # a longer line is not shown


class Format(StrEnum):
    json = "json"
    table = "table"


OutputOption = Annotated[Format, typer.Option("--output", "-o", help="json for scripts, table for people.")]
PatternsArgument = Annotated[
    list[Path],
    # Whether a file can be read is found out by reading it: then the message has our form.
    typer.Argument(metavar="PATTERN...", readable=False, help="Pattern files (YAML, JSON or .sase)."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="The same as -o json.")]


def talk() -> Console:
    """The console for everything that is not data."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def write_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n")


def show_error(error: AfaError) -> None:
    """`file:line:column: what`, the line itself with a mark, and the fix."""
    console = talk()
    where = f"{error.place}: " if error.place else ""
    console.print(Text.assemble((where, "bold"), ("error: ", "bold red"), error.what))
    if error.place and (line := _source_line(error.place)) is not None:
        before = max(error.place.column - 1 - _SHOWN_CHARACTERS // 2, 0)
        number = str(error.place.line)
        console.print(Text(f"  {number} | {line[before : before + _SHOWN_CHARACTERS]}"))
        console.print(
            Text.assemble(" " * (len(number) + 3) + "| ", " " * (error.place.column - 1 - before), ("^", "red"))
        )
    if error.fix:
        console.print(Text.assemble(("  fix: ", "bold green"), error.fix))


def _source_line(place: Place) -> str | None:
    """The line as it stands; None if it is very long, or cannot be read a second time (a pipe)."""
    path = Path(place.file)
    try:
        if not path.is_file():
            return None
        with path.open("rb") as opened:
            number = 1
            while number < place.line and (part := opened.readline(_LINE_BYTES)):
                number += part.endswith(b"\n")
            raw = opened.readline(_LINE_BYTES)
    except OSError:
        return None
    if not raw or len(raw) == _LINE_BYTES:
        return None
    line = raw.decode(errors="replace").removeprefix("\ufeff")
    return "".join(character if character.isprintable() else " " for character in line.rstrip("\r\n"))


def refuse(message: str) -> typer.BadParameter:
    """A usage error (exit 2)."""
    return typer.BadParameter(message)


@contextmanager
def progress_bar(what: str, total: int | None, *, data_flows: bool) -> Iterator[Progress | None]:
    """A bar with the time left, on a terminal only and never between the lines of data on that terminal."""
    console = talk()
    if total is None or not console.is_terminal or (data_flows and sys.stdout.isatty()):
        yield None
        return
    columns = (TextColumn(what), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        progress.add_task(what, total=total)
        yield progress
