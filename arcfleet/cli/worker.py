"""`arcfleet worker`: one process of a fleet."""

from __future__ import annotations

import re
import sys
import traceback
from pathlib import Path
from typing import Annotated, Any

import typer

from afa.document import load_documents
from afa.durations import FleetUnit
from afa.errors import AfaError, PatternError, Place
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
from arcfleet.cli.output import EXIT_SYSTEM, refuse, talk, write_json
from arcfleet.fleet.arc_writer import PATTERNS_WRITER
from arcfleet.fleet.document import Fleet

_INSTANCE = re.compile(r"[A-Za-z0-9._-]{1,200}")
_PATTERN_FILES = (".yaml", ".yml", ".json", ".sase")


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
    settings: SettingsOption = None,
    delivery: DeliveryOption = None,
    envelope: EnvelopeOption = None,
    headers: HeadersOption = None,
    unit: UnitOption = None,
    commit_interval: CommitIntervalOption = None,
    snapshot_interval: SnapshotIntervalOption = None,
    punctuation_interval: PunctuationIntervalOption = None,
    start_deadline: StartDeadlineOption = None,
) -> None:
    """Match patterns on Kafka topics, as one of a fleet of equal workers.

    [bold]Examples[/]

    arcfleet worker --fleet fleet.yaml --instance worker-1

    arcfleet worker --fleet fleet.yaml --patterns patterns/ --port 0
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
    if instance is not None and not _INSTANCE.fullmatch(instance):
        raise refuse(f"--instance {instance}: 1 to 200 letters, digits, dots, underscores and hyphens")
    if instance == PATTERNS_WRITER:
        told = f"`{loaded.name}-{instance}` is the transactional id of workers that publish patterns"
        raise refuse(f"--instance {instance}: {told}, and they would end each other; choose another name")
    documents = _documents(patterns, loaded.unit)
    _run(loaded, instance, documents, door=(host, port), accept_lost_state=accept_lost_state)


def _documents(folder: Path | None, unit: FleetUnit) -> list[dict[str, Any]]:
    """The pattern documents of a folder, in order of file names, checked as a fleet of this unit reads them."""
    if folder is None:
        return []
    place = Place(str(folder), 1, 1)
    try:
        files = sorted(file for file in folder.iterdir() if file.suffix in _PATTERN_FILES)
    except OSError as error:
        raise PatternError(f"cannot be read: {error.strerror}", fix="check --patterns", place=place) from None
    if not files:
        raise PatternError("no pattern files", fix="they end in .yaml, .yml, .json or .sase", place=place)
    return [document for document, _ in load_documents(*files, unit=unit)]


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
    except (AfaError, OSError, typer.Exit):
        raise
    except WorkerError as error:
        talk().print(f"[bold red]error:[/] {error.what}")
        if error.fix:
            talk().print(f"  [bold green]fix:[/] {error.fix}")
        raise typer.Exit(error.exit_code) from None
    except Exception:  # whatever it is, a supervisor has to see that the system failed, and people where
        traceback.print_exc()
        raise typer.Exit(EXIT_SYSTEM) from None
