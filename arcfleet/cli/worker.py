"""`arcfleet worker`: one process of a fleet."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from afa.document import load_documents
from afa.errors import PatternError, Place
from arcfleet.cli.output import refuse, show_error, talk, write_json
from arcfleet.fleet.document import SCALARS, Fleet, load_fleet
from arcfleet.fleet.errors import FleetError

_INSTANCE = re.compile(r"[A-Za-z0-9._-]{1,200}")
_PATTERN_FILES = (".yaml", ".yml", ".json", ".sase")

FleetOption = Annotated[Path | None, typer.Option("--fleet", metavar="FILE", help="The fleet document.")]
BootstrapOption = Annotated[str | None, typer.Option(metavar="HOST:PORT", help="Brokers to begin with.")]
SettingsOption = Annotated[
    list[str] | None, typer.Option("-X", metavar="NAME=VALUE", help="A librdkafka setting; may be repeated.")
]


def fleet_of(file: Path | None, bootstrap: str | None, settings: list[str] | None, **flags: str | None) -> Fleet:
    """The fleet that flags, environment and document say. Raises FleetError."""
    over = {name: value for name, value in {"bootstrap": bootstrap, **flags}.items() if value is not None}
    assert over.keys() <= set(SCALARS)
    for setting in settings or ():
        name, equals, value = setting.partition("=")
        if not name or not equals:
            raise refuse(f"-X {setting}: write NAME=VALUE")
        over[f"kafka.{name}"] = value
    return load_fleet(file, over, os.environ)


def worker(  # noqa: PLR0917 - the flags of the contract
    fleet: FleetOption = None,
    instance: Annotated[
        str | None,
        typer.Option(help="A name that is this process's alone, also after a restart: its place in the group is kept."),
    ] = None,
    patterns: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Publish the patterns of this folder first, if they are new.")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Of the HTTP door; 0: any free one.")] = 9464,
    host: Annotated[str, typer.Option(help="Where the HTTP door listens; 0.0.0.0: everywhere.")] = "127.0.0.1",
    accept_lost_state: Annotated[
        bool, typer.Option("--accept-lost-state", help="Go on where the state topic does not hold what was committed.")
    ] = False,
    bootstrap: BootstrapOption = None,
    delivery: Annotated[str | None, typer.Option(help="exactly_once or at_least_once.")] = None,
    commit_interval: Annotated[str | None, typer.Option(help="Time between commits.")] = None,
    snapshot_interval: Annotated[str | None, typer.Option(help="A key is written at most once in this time.")] = None,
    settings: SettingsOption = None,
) -> None:
    """Match patterns on Kafka topics, as one of a fleet of equal workers.

    [bold]Examples[/]

    arcfleet worker --fleet fleet.yaml --instance worker-1

    arcfleet worker --fleet fleet.yaml --patterns patterns/ --port 0
    """
    flags = {"delivery": delivery, "commit_interval": commit_interval, "snapshot_interval": snapshot_interval}
    loaded = fleet_of(fleet, bootstrap, settings, **flags)
    if instance is not None and not _INSTANCE.fullmatch(instance):
        raise refuse(f"--instance {instance}: 1 to 200 letters, digits, dots, underscores and hyphens")
    documents = _documents(patterns)
    try:
        _run(loaded, instance, documents, door=(host, port), accept_lost_state=accept_lost_state)
    except FleetError as error:
        show_error(error)
        raise typer.Exit(1) from None


def _documents(folder: Path | None) -> list[dict[str, Any]]:
    """The pattern documents of a folder, in order of file names."""
    if folder is None:
        return []
    place = Place(str(folder), 1, 1)
    try:
        files = sorted(file for file in folder.iterdir() if file.suffix in _PATTERN_FILES)
    except OSError as error:
        raise PatternError(f"cannot be read: {error.strerror}", fix="check --patterns", place=place) from None
    if not files:
        raise PatternError("no pattern files", fix="they end in .yaml, .yml, .json or .sase", place=place)
    return [document for document, _ in load_documents(*files)]


def _run(
    fleet: Fleet,
    instance: str | None,
    documents: list[dict[str, Any]],
    *,
    door: tuple[str, int],
    accept_lost_state: bool,
) -> None:
    # The worker is a role of its own, with packages that other commands do without.
    from worker.errors import WorkerError  # noqa: PLC0415
    from worker.logs import sayer  # noqa: PLC0415
    from worker.process import Options, new_instance, run  # noqa: PLC0415

    name = instance or new_instance()
    host, port = door
    options = Options(name, instance is not None, port, host, accept_lost_state)

    def listening(url: str) -> None:
        write_json({"instance": name, "http": url})
        sys.stdout.flush()

    try:
        run(fleet, options, documents, sayer(name), listening)
    except WorkerError as error:
        talk().print(f"[bold red]error:[/] {error.what}")
        if error.fix:
            talk().print(f"  [bold green]fix:[/] {error.fix}")
        raise typer.Exit(error.exit_code) from None
