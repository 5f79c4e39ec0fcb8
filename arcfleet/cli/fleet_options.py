"""The flags by which commands are told of a fleet: a document, and what goes before it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from arcfleet.cli.output import refuse
from arcfleet.fleet.document import Fleet, load_fleet
from arcfleet.fleet.errors import OptionError
from arcfleet.fleet.topic_admin import connect

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

REACH_DEADLINE_S = 10.0  # a shorter `start_deadline` counts

FleetOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--fleet", metavar="FILE", readable=False, help="The fleet document; without one: the local fleet."),
]
BootstrapOption: TypeAlias = Annotated[
    str | None, typer.Option("--bootstrap", metavar="HOST:PORT,...", help="Brokers to begin with.")
]
SettingsOption: TypeAlias = Annotated[
    list[str] | None, typer.Option("-X", metavar="NAME=VALUE", help="A setting of Kafka's client; may be repeated.")
]
DeliveryOption: TypeAlias = Annotated[
    str | None, typer.Option("--delivery", metavar="exactly_once|at_least_once", help="How matches are delivered.")
]
EnvelopeOption: TypeAlias = Annotated[
    str | None, typer.Option("--envelope", metavar="changes|upsert", help="How the matches topic is written.")
]
HeadersOption: TypeAlias = Annotated[
    str | None, typer.Option("--headers", metavar="plain|cloudevents", help="What the headers of matches are.")
]
UnitOption: TypeAlias = Annotated[str | None, typer.Option("--unit", metavar="ms|us|ns", help="The unit of every ts.")]
CommitIntervalOption: TypeAlias = Annotated[
    str | None, typer.Option("--commit-interval", metavar="DURATION", help="Time between commits.")
]
SnapshotIntervalOption: TypeAlias = Annotated[
    str | None, typer.Option("--snapshot-interval", metavar="DURATION", help="Least time between a key's snapshots.")
]
PunctuationIntervalOption: TypeAlias = Annotated[
    str | None, typer.Option("--punctuation-interval", metavar="DURATION", help="Least time between punctuations.")
]
StartDeadlineOption: TypeAlias = Annotated[
    str | None, typer.Option("--start-deadline", metavar="DURATION", help="How long to wait for the brokers.")
]


def fleet_from(file: Path | None, settings: list[str] | None, **scalars: str | None) -> Fleet:
    """The fleet of `--fleet`, `-X` and the flags of its fields (None: not given), over the environment.

    Raises FleetError for the document, a usage error for a flag.
    """
    overrides = {name: value for name, value in scalars.items() if value is not None}
    for setting in settings or ():
        name, equals, value = setting.partition("=")
        if not equals:
            raise refuse(f"-X {setting}: write NAME=VALUE, such as -X linger.ms=5")
        overrides[f"kafka.{name}"] = value
    try:
        return load_fleet(file, overrides, os.environ)
    except OptionError as error:
        raise refuse(f"{error.what}" + (f"; {error.fix}" if error.fix else "")) from None


def reach(fleet: Fleet) -> AdminClient:
    """As `connect`, for somebody who waits at a terminal."""
    return connect(fleet, min(fleet.start_deadline_s, REACH_DEADLINE_S))
