"""`arcfleet events publish`: a tape onto a topic."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, BinaryIO

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

events = typer.Typer(
    name="events", help="The events that a fleet reads.", no_args_is_help=True, rich_markup_mode="rich"
)
_BAR_INTERVAL_S = 0.1


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
    with open_tape(tape) as (opened, size):
        input_tape = _TapeToPublish(tape, opened, size)
        input_tape.check()
        publisher = _publisher(
            told, topic, "arcfleet topics apply --sources N makes it" if source else "correct --topic"
        )
        seconds = _publish(publisher, input_tape, rate)
    if publisher.punctuations and source and source.punctuation.in_band is False:
        what = f"note: the source {topic} expects no punctuations: they are bad records"
        _say(f"{what} (fix: delete `in_band: false` in the fleet)")
    counts = {"records": publisher.records, "punctuations": publisher.punctuations, "partitions": publisher.partitions}
    _write({"topic": topic, **counts, "seconds": round(seconds, 3)}, Format.json if json_output else output)


class _TapeToPublish:
    """A plain file is read twice, anything else once."""

    def __init__(self, tape: str, opened: BinaryIO, size: int | None) -> None:
        self.tape = tape
        self.opened = opened
        self.size = size

    def check(self) -> None:
        """Before anything is published, as far as that can be: raises RecordError for a bad line of a file."""
        if self.size is not None:
            with self.lines("checking") as lines:
                for line in lines:
                    publication(line)
            self.opened.seek(0)

    @contextmanager
    def lines(self, doing: str) -> Iterator[Iterator[TapeLine]]:
        """A bar moves with them."""
        tape = Tape(self.opened, tape_name(self.tape))
        with progress_bar(f"{doing} {self.tape}", self.size, data_flows=False) as progress:
            yield _shown(tape, progress) if progress else iter(tape)


def _shown(tape: Tape, progress: Progress) -> Iterator[TapeLine]:
    shown_s = 0.0
    for line in tape:
        if time.monotonic() - shown_s > _BAR_INTERVAL_S:
            progress.update(progress.task_ids[0], completed=tape.bytes_read)
            shown_s = time.monotonic()
        yield line


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


def _publisher(fleet: Fleet, topic: str, how_to_make: str) -> Publisher:
    partitions, config = partitions_and_config(reach(fleet), topic, how_to_make)
    return Publisher(open_producer(publisher_settings(fleet, config)), topic, partitions)


def _publish(publisher: Publisher, tape: _TapeToPublish, rate: float | None) -> float:
    """All of it; how many seconds that took. What is there before a failure is said."""
    began_s = time.monotonic()
    try:
        with tape.lines("publishing") as lines:
            publisher.publish(lines, None if rate is None else Pace(rate, time.monotonic))
    except BaseException:
        _say(_delivered(publisher))
        raise
    if failure := publisher.failure:
        _say(_delivered(publisher))
        fix = f" (fix: {failure.fix})" if failure.fix else ""
        place = f"{tape_name(tape.tape)}:{failure.line}"
        raise KafkaError(f"{place}: not delivered to {publisher.topic}: {failure.reason}{fix}")
    return time.monotonic() - began_s


def _delivered(publisher: Publisher) -> str:
    return f"delivered to {publisher.topic}: {publisher.records:,} records, {publisher.punctuations:,} punctuations"


def _write(summary: Mapping[str, str | float], output: Format) -> None:
    if output is Format.json:
        write_json(summary)
        return
    shown = table(summary)
    shown.add_row(*map(str, summary.values()))
    print_table(shown)


def _say(what: str) -> None:
    talk().print(Text(what))
