"""`arcfleet bench`: the native engine beside loops written by hand."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from afa.errors import did_you_mean
from arcfleet.bench.settings import TARGETS, Settings
from arcfleet.cli.output import EXIT_SYSTEM, Format, JsonOption, OutputOption, refuse, talk, write_json

if TYPE_CHECKING:
    from arcfleet.bench.rows import Row

_PACKAGES: Final = ("numpy", "pyarrow", "msgspec", "matplotlib")
_CHARTS: Final = (".svg", ".png", ".pdf")


def bench(  # noqa: PLR0917 - the flags
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help=f"Of {', '.join(TARGETS)}. Default: all.")
    ] = None,
    output: OutputOption = Format.table,
    json_output: JsonOption = False,
    quick: Annotated[bool, typer.Option("--quick", help="Short streams, few runs: to see that it works.")] = False,
    runs: Annotated[int | None, typer.Option(min=1, help="Measurements per workload.")] = None,
    events: Annotated[int | None, typer.Option(min=10_000, max=9_000_000, help="Length of the streams.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the streams.")] = 1,
    plot: Annotated[Path | None, typer.Option(help="Write a chart to this file (.svg, .png or .pdf).")] = None,
) -> None:
    """Measure the native engine on the AFA paper's workloads, beside loops written by hand.

    Matches are compared before any speed is shown. Needs a C compiler, and [bold]pip install 'arcfleet\\[bench]'[/].

    [bold]Examples[/]

    arcfleet bench

    arcfleet bench q1 q3 --json

    arcfleet bench --quick --plot ratios.svg
    """
    _check_names(names or [])
    if plot is not None and plot.suffix not in _CHARTS:
        raise refuse(f"--plot {plot}: the name of a chart ends in .svg, .png or .pdf")
    _check_packages()
    settings = Settings.quick(seed) if quick else Settings(seed=seed)
    settings = replace(settings, runs=runs or settings.runs, events=events or settings.events)
    rows = _run(names or list(TARGETS), settings, as_json=json_output or output is Format.json)
    if plot is not None:
        from arcfleet.bench.report import draw  # noqa: PLC0415 - needs packages of the extra

        draw(rows, plot)
        talk().print(f"chart: {plot}")


def _check_names(names: list[str]) -> None:
    for name in names:
        if name not in TARGETS:
            raise refuse(f"no workload is called {name}; " + did_you_mean(name, TARGETS, "see arcfleet bench --help"))


def _check_packages() -> None:
    missing = [package for package in _PACKAGES if importlib.util.find_spec(package) is None]
    if missing:
        talk().print(Text.assemble(("error: ", "bold red"), f"the benchmark needs {', '.join(missing)}"))
        talk().print(Text.assemble(("  fix: ", "bold green"), "pip install 'arcfleet[bench]'"))
        raise typer.Exit(EXIT_SYSTEM)


def _run(names: list[str], settings: Settings, *, as_json: bool) -> list[Row]:
    """The modules that need the extra are loaded here, once it is known to be there."""
    from arcfleet.bench import c_loops, catalogue, report  # noqa: PLC0415
    from arcfleet.bench.measure import Bench  # noqa: PLC0415
    from arcfleet.bench.native import check_build, open_native  # noqa: PLC0415

    check_build()
    rows = []
    with _bar(len(names)) as tick:
        for row in catalogue.run(Bench(settings, c_loops.compiled(), open_native, tick), names):
            rows.append(row)
            if as_json:
                write_json(row.as_json())
                sys.stdout.flush()
    if not as_json:
        report.show(rows, settings, Console(highlight=False))
    return rows


@contextmanager
def _bar(total: int) -> Iterator[Callable[[str], None]]:
    """A bar over the workloads on a terminal; what is given to it besides their names is shown as what goes on."""
    console = talk()
    if not console.is_terminal:
        yield lambda _: None
        return
    columns = (TextColumn("{task.fields[name]}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("[dim]{task.fields[now]}"), console=console, transient=True) as progress:
        task = progress.add_task("bench", total=total, name="bench", now="", completed=-1)

        def tick(what: str) -> None:
            if what in TARGETS:
                progress.update(task, advance=1, name=what, now="streams")
            else:
                progress.update(task, now=what)

        yield tick
