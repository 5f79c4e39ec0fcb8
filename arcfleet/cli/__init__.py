"""The `arcfleet` command: one file per subcommand, exit codes in one place."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text
from typer.core import TyperGroup

from afa.errors import AfaError
from arcfleet.cli import output
from arcfleet.cli.bench import bench
from arcfleet.cli.config import config
from arcfleet.cli.events import events
from arcfleet.cli.explain import explain
from arcfleet.cli.graph import graph
from arcfleet.cli.matches import matches
from arcfleet.cli.replay import replay
from arcfleet.cli.schema import schema
from arcfleet.cli.topics import topics
from arcfleet.cli.up import up
from arcfleet.cli.worker import worker


class _Commands(TyperGroup):
    """Ends quietly when nobody reads any more: before click sees it, which would exit 1."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            _drop_stdout()
            raise typer.Exit from None


app = typer.Typer(
    name="arcfleet",
    cls=_Commands,
    help="Pattern matching over event streams: matches at once, retracted when a late event proves them wrong.",
    epilog="First steps: arcfleet replay examples/q1.yaml --tape examples/q1.jsonl",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (replay, explain, graph, schema, bench, worker, up):
    app.command()(command)
for group in (config, topics, events, matches):
    app.add_typer(group)


def _show_version(asked: bool) -> None:
    if asked:
        sys.stdout.write(f"arcfleet {version('arcfleet')}\n")
        raise typer.Exit


@app.callback()
def arcfleet(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Pattern matching over event streams, done right, for people who run Kafka and write Python."""


def _drop_stdout() -> None:
    """What is still buffered goes nowhere, or Python would complain about it on its way out."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main() -> None:
    """Exit 0 ok, 1 bad input, 2 usage, 3 the system failed. A closed pipe ends quietly."""
    sys.stderr = sys.stderr or Path(os.devnull).open("w")  # noqa: SIM115 - for as long as the process lasts
    if sys.stdout is None:  # closed by the shell (`>&-`): there is nowhere to put the data
        output.talk().print(Text.assemble(("error: ", "bold red"), "standard output is closed"))
        sys.exit(output.EXIT_SYSTEM)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        _drop_stdout()
        sys.exit(0)
    except AfaError as error:
        output.show_error(error)
        sys.exit(output.EXIT_BAD_INPUT)
    except OSError as error:
        _drop_stdout()
        output.talk().print(Text.assemble(("error: ", "bold red"), str(error)))
        sys.exit(output.EXIT_SYSTEM)
