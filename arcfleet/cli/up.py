"""`arcfleet up`: a fleet on this machine until Ctrl-C."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from arcfleet.cli.fleet_options import FleetOption
from arcfleet.cli.output import talk, write_json
from arcfleet.local.errors import LocalKafkaError, StackError

if TYPE_CHECKING:
    from arcfleet.local.stack import LocalStack

MAX_WORKERS = 32
_LOOK_S = 0.2


def up(
    workers: Annotated[int, typer.Option("--workers", metavar="N", min=1, max=MAX_WORKERS, help="How many.")] = 1,
    patterns: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Publish the patterns of this folder first.")
    ] = None,
    fleet: FleetOption = None,
    json_output: Annotated[
        bool, typer.Option("--json", help="Once it is ready, print where everything is as one line of JSON.")
    ] = False,
) -> None:
    """Run a fleet on this machine until Ctrl-C: a real Kafka, the topics, and workers that are restarted if they die.

    Without --fleet it is the fleet `local` with the source topic `events`. Sources that are missing get 3 partitions.
    Nothing is kept: what was in Kafka goes with it.

    [bold]Examples[/]

    arcfleet up --patterns patterns/

    arcfleet up --workers 3 --fleet fleet.yaml --json
    """
    from arcfleet.local.stack import LocalStack  # noqa: PLC0415 - needs Kafka's client, an extra

    try:
        with _interrupted():
            if not json_output:
                _say("a Kafka and its workers start ...")
            with LocalStack(workers=workers, fleet=fleet, patterns=patterns, say=_say) as stack:
                _tell(stack, as_json=json_output)
                while True:
                    stack.check()
                    time.sleep(_LOOK_S)
    except KeyboardInterrupt:
        return
    except LocalKafkaError as error:
        _say(Text.assemble(("error: ", "bold red"), str(error)))
        raise typer.Exit(error.status if isinstance(error, StackError) else 3) from None


def _tell(stack: LocalStack, *, as_json: bool) -> None:
    metrics = [f"{worker.url}/metrics" for worker in stack.workers]
    if as_json:
        write_json({"bootstrap": stack.bootstrap, "api": None, "console": None, "metrics": metrics})
        sys.stdout.flush()
        return
    fleet = stack.fleet
    source, at = fleet.sources[0].topic, f"--bootstrap {stack.bootstrap}"
    _say(Text.assemble(("ready", "bold green"), f": the fleet {fleet.name} on a Kafka at {stack.bootstrap}"))
    for worker in stack.workers:
        _say(f"  {worker.name}  {worker.url}/metrics  log {worker.log.path}")
    _say(f"  events in     arcfleet events publish TAPE {at} --topic {source}")
    _say(f"  matches out   arcfleet matches tail {at} --topic {fleet.topic('matches')}")
    _say("Ctrl-C ends it.")


def _say(what: str | Text) -> None:
    talk().print(what if isinstance(what, Text) else Text(what))


@contextmanager
def _interrupted() -> Iterator[None]:
    """Ctrl-C and SIGTERM end it in good order, once; the next one ends this process, and the rest with it."""

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        for number in before:
            signal.signal(number, signal.SIG_DFL)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
