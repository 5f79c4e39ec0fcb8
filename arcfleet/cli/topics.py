"""`arcfleet topics`: the fleet's topics are planned, made and checked."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, TypeAlias

import typer
from rich.text import Text

from afa.errors import listed
from arcfleet.cli.fleet_options import BootstrapOption, EnvelopeOption, FleetOption, SettingsOption, fleet_from, reach
from arcfleet.cli.output import EXIT_BAD_INPUT, Format, JsonOption, OutputOption, refuse, talk, write_json
from arcfleet.cli.tables import print_table, table
from arcfleet.fleet.document import Fleet
from arcfleet.fleet.topic_admin import configure_topics, create_topics, read_topics
from arcfleet.fleet.topics import Configure, Create, Plan, Step, plan_topics, topic_names

MAX_PARTITIONS = 10_000

SourcesOption: TypeAlias = Annotated[
    int | None,
    typer.Option("--sources", metavar="N", min=1, max=MAX_PARTITIONS, help="Make missing sources, with N partitions."),
]
YesOption: TypeAlias = Annotated[bool, typer.Option("--yes", help="Change existing topics without a question.")]
DryRunOption: TypeAlias = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done: plan.")]

topics = typer.Typer(name="topics", help="The topics of a fleet.", no_args_is_help=True, rich_markup_mode="rich")


@topics.command()
def plan(  # noqa: PLR0917 - the flags of the contract
    fleet: FleetOption = None,
    bootstrap: BootstrapOption = None,
    settings: SettingsOption = None,
    envelope: EnvelopeOption = None,
    sources: SourcesOption = None,
    output: OutputOption = Format.json,
    json_output: JsonOption = False,
) -> None:
    """Print what `apply` would make and change, and what it would leave alone although it differs (exit 1).

    [bold]Examples[/]

    arcfleet topics plan --fleet fleet.yaml -o table

    arcfleet topics plan --bootstrap 127.0.0.1:9092 --sources 3
    """
    loaded = fleet_from(fleet, settings, bootstrap=bootstrap, envelope=envelope)
    planned = _Cluster(loaded, sources).plan()
    _show(planned, Format.json if json_output else output)
    _end(planned, planned.left_alone)


@topics.command()
def apply(  # noqa: PLR0917 - the flags of the contract
    fleet: FleetOption = None,
    bootstrap: BootstrapOption = None,
    settings: SettingsOption = None,
    envelope: EnvelopeOption = None,
    sources: SourcesOption = None,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    output: OutputOption = Format.json,
    json_output: JsonOption = False,
) -> None:
    """Make the topics that are missing and set what differs on the others; print what was done.

    Partitions are never added or taken away: what differs there is left alone (exit 1).

    [bold]Examples[/]

    arcfleet topics apply --fleet fleet.yaml

    arcfleet topics apply --fleet fleet.yaml --sources 3 --yes
    """
    loaded = fleet_from(fleet, settings, bootstrap=bootstrap, envelope=envelope)
    cluster = _Cluster(loaded, sources)
    planned = cluster.plan()
    if not dry_run:
        _ask(planned, yes)
        cluster.apply(planned)
    _show(planned, Format.json if json_output else output)
    _end(planned, planned.left_alone)


@topics.command()
def check(  # noqa: PLR0917 - as above
    fleet: FleetOption = None,
    bootstrap: BootstrapOption = None,
    settings: SettingsOption = None,
    envelope: EnvelopeOption = None,
    output: OutputOption = Format.json,
    json_output: JsonOption = False,
) -> None:
    """Exit 0 if every topic is as it should be, else 1 with each difference.

    [bold]Examples[/]

    arcfleet topics check --fleet fleet.yaml
    """
    loaded = fleet_from(fleet, settings, bootstrap=bootstrap, envelope=envelope)
    planned = _Cluster(loaded, None).plan()
    _show(planned, Format.json if json_output else output)
    _end(planned, planned.differences)


class _Cluster:
    """The brokers of a fleet, reached."""

    def __init__(self, fleet: Fleet, sources: int | None) -> None:
        self.fleet = fleet
        self.sources = sources
        self.admin = reach(fleet)

    def plan(self) -> Plan:
        return plan_topics(self.fleet, read_topics(self.admin, topic_names(self.fleet)), self.sources)

    def apply(self, planned: Plan) -> None:
        create_topics(self.admin, [one.topic for one in planned.create])
        configure_topics(self.admin, planned.configure)


def _ask(planned: Plan, yes: bool) -> None:
    """Topics that are there are changed only by consent."""
    if yes or not planned.configure:
        return
    console = talk()
    for change in planned.configure:
        console.print(Text(change.what))
    if not sys.stdin.isatty():
        names = listed(dict.fromkeys(change.topic for change in planned.configure))
        raise refuse(f"this changes settings of {names}; add --yes, or look first with --dry-run")
    typer.confirm("Change them?", abort=True, err=True)


def _show(planned: Plan, output: Format) -> None:
    if output is Format.json:
        for one in planned.steps:
            write_json(one.as_json())
        return
    shown = table(("action", "topic", "what"))
    for one in planned.steps:
        topic = one.topic.name if isinstance(one, Create) else one.topic
        shown.add_row(one.as_json()["action"], topic, _brief(one))
    if shown.row_count:
        print_table(shown)


def _brief(one: Step) -> str:
    if isinstance(one, Create):
        return ", ".join([f"partitions={one.topic.partitions}", *map("=".join, one.topic.config.items())])
    return f"{one.setting}: {one.found} -> {one.wanted}" if isinstance(one, Configure) else one.what


def _end(planned: Plan, failures: Sequence[Step]) -> None:
    """Warnings and failures are told on stderr; exit 1 if there are any of the latter."""
    sys.stdout.flush()
    console = talk()
    for warning in planned.warnings:
        console.print(Text.assemble(("warning: ", "bold yellow"), warning.what))
        console.print(Text.assemble(("  fix: ", "bold green"), warning.fix))
    for failure in failures:
        console.print(Text.assemble(("error: ", "bold red"), failure.what))
        console.print(Text.assemble(("  fix: ", "bold green"), failure.fix))
    if failures:
        raise typer.Exit(EXIT_BAD_INPUT)
