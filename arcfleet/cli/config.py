"""`arcfleet config print`: the settings of a fleet, and where each came from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import typer
from rich.text import Text

from arcfleet.cli.fleet_options import (
    BootstrapOption,
    CommitIntervalOption,
    DeliveryOption,
    EnvelopeOption,
    FleetOption,
    HeadersOption,
    PunctuationIntervalOption,
    SettingsOption,
    SnapshotIntervalOption,
    StartDeadlineOption,
    UnitOption,
    fleet_from,
)
from arcfleet.cli.output import Format, JsonOption, OutputOption, write_json
from arcfleet.cli.tables import print_table, table
from arcfleet.fleet.document import INTERVALS, Fleet
from arcfleet.fleet.kafka_settings import SECRETS

_MASKED = "***"

config = typer.Typer(name="config", help="The settings of a fleet.", no_args_is_help=True, rich_markup_mode="rich")


@config.command("print")
def print_(  # noqa: PLR0917 - the fields of the fleet document
    fleet: FleetOption = None,
    bootstrap: BootstrapOption = None,
    settings: SettingsOption = None,
    delivery: DeliveryOption = None,
    envelope: EnvelopeOption = None,
    headers: HeadersOption = None,
    unit: UnitOption = None,
    commit_interval: CommitIntervalOption = None,
    snapshot_interval: SnapshotIntervalOption = None,
    punctuation_interval: PunctuationIntervalOption = None,
    start_deadline: StartDeadlineOption = None,
    output: OutputOption = Format.json,
    json_output: JsonOption = False,
) -> None:
    """Print every setting of a fleet with its value and where it came from; secrets are masked.

    [bold]Examples[/]

    arcfleet config print --fleet fleet.yaml -o table

    ARCFLEET_UNIT=us arcfleet config print --fleet fleet.yaml -X linger.ms=20
    """
    loaded = fleet_from(
        fleet,
        settings,
        bootstrap=bootstrap,
        delivery=delivery,
        envelope=envelope,
        headers=headers,
        unit=unit,
        commit_interval=commit_interval,
        snapshot_interval=snapshot_interval,
        punctuation_interval=punctuation_interval,
        start_deadline=start_deadline,
    )
    rows = [(name, value, loaded.origins[name]) for name, value in _values(loaded)]
    if output is Format.table and not json_output:
        shown = table(("name", "value", "origin"))
        for name, value, origin in rows:
            shown.add_row(name, Text("" if value is None else str(value)), Text(origin, "dim"))
        print_table(shown)
        return
    for name, value, origin in rows:
        write_json({"name": name, "value": value, "origin": origin})


def _values(fleet: Fleet) -> Iterator[tuple[str, Any]]:
    """In the order of the document, by dotted names."""
    yield "fleet", fleet.name
    yield "bootstrap", fleet.bootstrap or None
    yield from ((f"kafka.{name}", _MASKED if name in SECRETS else value) for name, value in fleet.kafka.items())
    yield from ((name, getattr(fleet, name)) for name in ("delivery", "envelope", "headers", "unit"))
    yield from ((name, _seconds(getattr(fleet, f"{name}_s"))) for name in INTERVALS)
    yield from ((f"limits.{name}", value) for name, value in fleet.limits.items())
    for index, source in enumerate(fleet.sources):
        fields = asdict(source)
        punctuation = fields.pop("punctuation")
        yield from ((f"sources.{index}.{name}", value) for name, value in fields.items())
        yield from ((f"sources.{index}.punctuation.{name}", value) for name, value in punctuation.items())
    yield from ((f"removed.{index}", topic) for index, topic in enumerate(fleet.removed))


def _seconds(length_s: float) -> str:
    return f"{length_s:.9f}".rstrip("0").rstrip(".") + "s"
