"""`arcfleet events publish`: a tape onto a topic."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Annotated

import typer
from rich.progress import Progress
from rich.text import Text

from afa.errors import listed
from afa.source import Source
from afa.tape import Tape, TapeLine
from arcfleet.cli.fleet_options import BootstrapOption, FleetOption, SettingsOption, fleet_from, reach
from arcfleet.cli.output import Format, JsonOption, OutputOption, progress_bar, refuse, talk, write_json
from arcfleet.cli.tables import print_table, table
from arcfleet.cli.tapes import open_tape, tape_name
from arcfleet.fleet.clients import open_producer
from arcfleet.fleet.document import Fleet
from arcfleet.fleet.errors import KafkaError
from arcfleet.fleet.publishing import Pace, Publisher, check_source, publication, publisher_settings
from arcfleet.fleet.topic_admin import partitions_and_config

events = typer.Typer(name="events", help="The events that a fleet reads.", no_args_is_help=True)
_BAR_INTERVAL_S = 0.1


@events.callback()
def _events() -> None:
    """The events that a fleet reads."""


@events.command()
def publish(  # noqa: PLR0917 - the flags of the contract
    tape: Annotated[str, typer.Argument(metavar="TAPE|-", help="The tape, JSON lines; - is standard input.")],
    topic: Annotated[str | None, typer.Option(help="Where to; by default the fleet's only source.")] = None,
    rate: Annotated[
        float | None, typer.Option(min=0.001, help="Lines a second, evenly paced; else as fast as can be.")
    ] = None,
    fleet: FleetOption = None,
    bootstrap: BootstrapOption = None,
    settings: SettingsOption = None,
    output: OutputOption = Format.json,
    json_output: JsonOption = False,
) -> None:
    """Publish a tape: events by their keys, punctuations to every partition.

    [bold]Examples[/]

    arcfleet events publish day.jsonl --fleet fleet.yaml

    arcfleet events publish day.jsonl --topic trades --bootstrap 127.0.0.1:9092 --rate 1000

    tail -f day.jsonl | arcfleet events publish - --fleet fleet.yaml
    """
    told = fleet_from(fleet, settings, bootstrap=bootstrap)
    topic = topic or _only_source(told)
    source = next((source for source in told.sources if source.topic == topic), None)
    _say_how_it_is_read(told, topic, source, is_told=fleet is not None)
    _check_file(tape)
    how_to_make = (
        "arcfleet topics apply --sources N makes it, with N partitions" if source else "make it, or correct --topic"
    )
    partitions, config = partitions_and_config(reach(told), topic, how_to_make)
    publisher = Publisher(open_producer(publisher_settings(told, config)), topic, partitions)
    seconds = _publish(publisher, tape, rate)
    if publisher.punctuations and source and not source.punctuation.in_band:
        _say(f"note: the source {topic} expects no punctuations (fix: `punctuation: {{in_band: true}}` in the fleet)")
    counts = {"records": publisher.records, "punctuations": publisher.punctuations, "partitions": partitions}
    _write({"topic": topic, **counts, "seconds": round(seconds, 3)}, Format.json if json_output else output)


def _only_source(fleet: Fleet) -> str:
    if len(fleet.sources) > 1:
        raise refuse(
            f"the fleet has several sources: name one by --topic: {listed(one.topic for one in fleet.sources)}"
        )
    return fleet.sources[0].topic


def _say_how_it_is_read(fleet: Fleet, topic: str, source: Source | None, *, is_told: bool) -> None:
    if source is None:
        if is_told:
            _say(f"note: {topic} is no source of the fleet {fleet.name}")
    elif others := check_source(source):
        _say(f"note: a tape's lines go as they stand, but the source {topic} reads {', '.join(others)}")


def _check_file(tape: str) -> None:
    """A plain file is read to its end before anything is published; a pipe can be read only once."""
    with open_tape(tape) as (opened, size), progress_bar(f"checking {tape}", size, data_flows=False) as progress:
        if size is not None:
            for line in _shown(Tape(opened, tape_name(tape)), progress):
                publication(line)


def _publish(publisher: Publisher, tape: str, rate: float | None) -> float:
    """All of it; how many seconds that took. What is there before a failure is said."""
    began_s = time.monotonic()
    pace = None if rate is None else Pace(rate, time.monotonic)
    try:
        with open_tape(tape) as (opened, size), progress_bar(f"publishing {tape}", size, data_flows=False) as progress:
            publisher.publish(_shown(Tape(opened, tape_name(tape)), progress), pace)
    except BaseException:
        _say(_delivered(publisher))
        raise
    if failure := publisher.failure:
        _say(_delivered(publisher))
        fix = f" (fix: {failure.fix})" if failure.fix else ""
        what = f"{tape_name(tape)}:{failure.line}: not delivered to {publisher.topic}: {failure.reason}{fix}"
        raise KafkaError(what)
    return time.monotonic() - began_s


def _delivered(publisher: Publisher) -> str:
    return f"delivered to {publisher.topic}: {publisher.records:,} records, {publisher.punctuations:,} punctuations"


def _shown(tape: Tape, progress: Progress | None) -> Iterator[TapeLine]:
    """The lines; a bar moves with them."""
    shown_s = 0.0
    for line in tape:
        if progress and time.monotonic() - shown_s > _BAR_INTERVAL_S:
            progress.update(progress.task_ids[0], completed=tape.bytes_read)
            shown_s = time.monotonic()
        yield line


def _write(summary: Mapping[str, str | float], output: Format) -> None:
    if output is Format.json:
        write_json(summary)
        return
    shown = table(summary)
    shown.add_row(*map(str, summary.values()))
    print_table(shown)


def _say(what: str) -> None:
    talk().print(Text(what))
