"""The rows for people: a table with bars, and a chart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from arcfleet.bench.rows import Row, first_rows_hold
from arcfleet.bench.settings import Settings

_BAR_CELLS: Final = 10
_BLOCKS: Final = " ▏▎▍▌▋▊▉█"
_TEXTS: Final = ("what", "against", "met", "to the aim")
_MET, _MISSED, _FLOOR, _AIM = "#2a7f4f", "#b3392f", "#222222", "#e0a100"
_MIDDLE, _WIDE = 110, 170  # columns of a terminal


def progress(row: Row) -> float | None:
    """How far the row is, 1 at its floor (the aim may be far beyond); None if it has no floor or no ratio."""
    floor = row.target.floor
    if row.ratio is None or floor is None or row.target.better == "flat":
        return None
    return row.ratio / floor if row.target.better == "higher" else floor / row.ratio


def table_of(rows: Sequence[Row], settings: Settings, width: int) -> Table:
    """A narrow terminal gets the numbers; a wider one also bars, and what each row is and is measured by."""
    title = f"median of {settings.runs} runs, CPU time per event, seed {settings.seed}"
    table = Table(
        title=title, title_justify="left", header_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False
    )
    table.add_column("workload", no_wrap=True)
    hold = first_rows_hold(rows)
    cells = [_cells(row, width, counts=not row.target.of_itself or hold is not False) for row in rows]
    for heading in list(cells[0])[1:] if cells else []:
        table.add_column(heading, justify="left" if heading in _TEXTS else "right", no_wrap=True)
    for shown in cells:
        table.add_row(*shown.values())
    return table


def _cells(row: Row, width: int, *, counts: bool) -> dict[str, str | Text]:
    """By heading."""
    target = row.target
    cells: dict[str, str | Text] = {"workload": Text(row.name, "bold")}
    if width >= _WIDE:
        cells |= {"what": target.title, "against": target.yardstick}
    cells |= {
        "matches": f"{row.matches:,}",
        "ns": _number(row.engine_ns),
        "its ns": _number(row.yardstick_ns),
    }
    if width >= _MIDDLE:
        cells["Python ns"] = _number(row.python_ns)
    cells |= {"ratio": _ratio(row), "floor": _bound(row, target.floor), "aim": _bound(row, target.aim)}
    cells["met"] = _verdict(row, counts=counts)
    if width >= _MIDDLE:
        cells["to the aim"] = _bar(row)
    return cells


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def _ratio(row: Row) -> Text:
    if row.ratio is None or row.spread is None:
        return Text("none", "dim")
    return Text(f"{row.ratio:.3g} ±{row.spread / 2:.0%}", "bold")


def _bound(row: Row, bound: float | None) -> str:
    if bound is None:
        return ""
    sign = {"higher": "≥", "lower": "≤", "flat": "±"}[row.target.better]
    return f"{sign} {bound - 1:.0%}" if row.target.better == "flat" else f"{sign} {bound:g}"


def _verdict(row: Row, *, counts: bool) -> Text:
    if row.meets_floor is None:
        return Text("")
    if not row.meets_floor:
        return Text("no", "bold red")
    if not counts:
        return Text("does not count", "yellow")  # q1 or q3 misses its floor
    return Text("aim", "bold green") if row.meets_aim else Text("floor", "green")


def _bar(row: Row) -> Text:
    """Full at the aim."""
    aim = row.target.aim
    if row.ratio is None or aim is None:
        return Text("")
    share = row.ratio / aim if row.target.better == "higher" else aim / row.ratio
    eighths = round(min(share, 1.0) * _BAR_CELLS * 8)
    full, part = divmod(eighths, 8)
    drawn = "█" * full + (_BLOCKS[part] if part else "")
    return Text(f"{drawn:<{_BAR_CELLS}}", "green" if row.meets_floor else "red")


def show(rows: Sequence[Row], settings: Settings, console: Console) -> None:
    """The table, the notes of its rows, and how to read it."""
    console.print(table_of(rows, settings, console.width))
    for row in rows:
        if row.note:
            console.print(Text.assemble((f"{row.name}: ", "bold"), row.note))
    if first_rows_hold(rows) is False and any(row.target.of_itself for row in rows):
        console.print("Rows relative to the engine itself do not count: q1 or q3 misses its floor.")
    console.print("ratio: the engine's speed by the yardstick's. The matches were compared before anything was timed.")


def draw(rows: Sequence[Row], file: Path) -> None:
    """A chart of every row with a floor, as SVG, PNG or PDF by the file's name. Raises OSError."""
    import matplotlib as mpl  # noqa: PLC0415 - slow to load, and only a chart needs it

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    shown = [(row, reached) for row in rows if (reached := progress(row)) is not None]
    figure, axes = plt.subplots(figsize=(9, 1.4 + 0.36 * max(1, len(shown))), layout="constrained")
    colours = [_MET if row.meets_floor else _MISSED for row, _ in shown]
    axes.barh(range(len(shown)), [reached for _, reached in shown], color=colours, height=0.6, label="measured")
    axes.axvline(1, color=_FLOOR, linewidth=1.2, label="floor")
    aims = [(at, position) for position, (row, _) in enumerate(shown) if (at := aim_by_floor(row)) is not None]
    style: dict[str, Any] = {"marker": "|", "markersize": 14, "markeredgewidth": 2, "linestyle": "none", "color": _AIM}
    axes.plot([at for at, _ in aims], [position for _, position in aims], label="aim", **style)
    axes.set_yticks(range(len(shown)), [f"{row.name}   {row.ratio:.3g}" for row, _ in shown])
    axes.invert_yaxis()
    axes.set_xlabel("ratio by its floor: further right is better")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower right", frameon=False)
    figure.savefig(file)
    plt.close(figure)


def aim_by_floor(row: Row) -> float | None:
    """Where the aim lies if the floor is at 1."""
    floor, aim = row.target.floor, row.target.aim
    if not floor or not aim:
        return None
    return aim / floor if row.target.better == "higher" else floor / aim
