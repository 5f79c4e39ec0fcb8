"""`arcfleet matches tail`: what a fleet tells, as it tells it."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from enum import StrEnum
from itertools import islice
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group
from rich.live import Live
from rich.text import Text

from afa.errors import RecordError
from arcfleet.cli.fleet_options import BootstrapOption, FleetOption, SettingsOption, fleet_from, reach
from arcfleet.cli.match_table import ChangeTable, matches_table, print_matches
from arcfleet.cli.output import EXIT_BAD_INPUT, Format, JsonOption, OutputOption, talk
from arcfleet.fleet.clients import open_consumer
from arcfleet.fleet.tailing import Ends, Tail, ToldChange, assign, follow, read_change, tail_settings
from arcfleet.fleet.topic_admin import partitions_and_config, read_ends
from arcfleet.net_matches import NetMatches

if TYPE_CHECKING:
    from confluent_kafka import Message

matches = typer.Typer(name="matches", help="What a fleet has found.", no_args_is_help=True, rich_markup_mode="rich")
_SHOWN_REFUSALS = 10
_LIVE_INTERVAL_S = 0.25
_LIVE_FRAME_LINES = 4  # of the live table, around its rows


class Whence(StrEnum):
    earliest = "earliest"
    latest = "latest"


@matches.command()
def tail(  # noqa: PLR0917 - the flags of the contract
    pattern: Annotated[str | None, typer.Option(help="Of this pattern only.")] = None,
    net: Annotated[bool, typer.Option("--net", help="The net matches at the end; a live table on a terminal.")] = False,
    whence: Annotated[Whence, typer.Option("--from", help="Where to begin.")] = Whence.earliest,
    count: Annotated[int | None, typer.Option(min=1, help="Stop after so many changes.")] = None,
    until_end: Annotated[bool, typer.Option("--until-end", help="Stop where the topic ended at the start.")] = False,
    topic: Annotated[str | None, typer.Option(help="The topic; by default the fleet's.")] = None,
    fleet: FleetOption = None,
    bootstrap: BootstrapOption = None,
    settings: SettingsOption = None,
    output: OutputOption = Format.json,
    json_output: JsonOption = False,
) -> None:
    """Print what a fleet tells, as it is committed: inserts, retractions, punctuations. Ctrl-C ends it.

    [bold]Examples[/]

    arcfleet matches tail --fleet fleet.yaml

    arcfleet matches tail --fleet fleet.yaml --pattern q1 --net -o table

    arcfleet matches tail --bootstrap 127.0.0.1:9092 --topic demo.matches --until-end
    """
    told = fleet_from(fleet, settings, bootstrap=bootstrap)
    topic = topic or told.topic("matches")
    admin = reach(told)
    partitions, _ = partitions_and_config(admin, topic, "make the fleet's topics: arcfleet topics apply")
    ends = Ends(read_ends(admin, topic, partitions)) if until_end else None
    following = Tail(ends, told.start_deadline_s, time.monotonic)
    asked = _Asked(pattern, count)
    printer = (_Net if net else _Lines)(Format.json if json_output else output)
    with closing(open_consumer(tail_settings(told) | {"error_cb": following.heard})) as consumer, _stop() as stop:
        assign(consumer, topic, partitions, latest=whence is Whence.latest)
        try:
            for batch in following.batches(consumer, lambda: stop.asked or asked.answered):
                printer.take(asked.read(batch))
        finally:
            printer.finish()
    if asked.refused:
        talk().print(Text(f"error: {asked.refused:,} records of {topic} are none that a worker writes"))
        raise typer.Exit(EXIT_BAD_INPUT)


class _Asked:
    """What is asked for, of all that comes."""

    def __init__(self, pattern: str | None, count: int | None) -> None:
        self.pattern = pattern
        self.left = count
        self.refused = 0

    @property
    def answered(self) -> bool:
        return self.left == 0

    def read(self, batch: list[Message]) -> list[ToldChange]:
        changes = [told for message in batch if (told := self._read(message)) and self._is_of_pattern(told)]
        if self.left is not None:
            changes = changes[: self.left]
            self.left -= len(changes)
        return changes

    def _is_of_pattern(self, told: ToldChange) -> bool:
        return self.pattern is None or told.record["pattern"] == self.pattern

    def _read(self, message: Message) -> ToldChange | None:
        try:
            return read_change(message.value(), message.key(), message.headers() or [])
        except RecordError as error:
            self.refused += 1
            if self.refused <= _SHOWN_REFUSALS:
                talk().print(Text(f"skipped: {message.topic()}/{message.partition()}/{message.offset()}: {error}"))
            return None


class _Lines:
    """Every change as it comes."""

    def __init__(self, output: Format) -> None:
        self.table = ChangeTable() if output is Format.table else None

    def take(self, batch: list[ToldChange]) -> None:
        if not batch:
            return
        if self.table:
            self.table.print(told.record for told in batch)
        else:
            sys.stdout.writelines(f"{told.text}\n" for told in batch)
        sys.stdout.flush()  # somebody may be waiting for it at the other end of a pipe

    def finish(self) -> None:
        """All is printed."""


class _Net:
    """The net matches at the end; on a terminal, the latest of them all the time."""

    def __init__(self, output: Format) -> None:
        self.output = output
        self.net = NetMatches[ToldChange]()
        self.console = talk()
        self.live = Live(console=self.console, transient=True, auto_refresh=False)
        self.shown_s = 0.0

    def take(self, batch: list[ToldChange]) -> None:
        for told in batch:
            follow(self.net, told)
        if self.console.is_terminal and time.monotonic() - self.shown_s > _LIVE_INTERVAL_S:
            self.live.start()
            self.live.update(self._latest(), refresh=True)
            self.shown_s = time.monotonic()

    def _latest(self) -> Group:
        standing = self.net.standing
        latest = islice(reversed(standing.values()), max(self.console.height - _LIVE_FRAME_LINES, 1))
        head = Text(f"{len(standing):,} net matches, the latest first; Ctrl-C ends")
        return Group(head, matches_table(told.record for told in latest))

    def finish(self) -> None:
        self.live.stop()
        final = sorted(self.net.standing.values(), key=lambda told: told.order)
        if self.output is Format.table:
            print_matches(told.record for told in final)
        else:
            sys.stdout.writelines(f"{told.text}\n" for told in final)
        sys.stdout.flush()
        for number, what in (
            (self.net.doubled, "inserts of a match that stood already"),
            (self.net.orphans, "retractions of a match that did not stand; it may be from before where reading began"),
        ):
            if number:
                self.console.print(f"note: {number:,} {what}")


class _Stop:
    asked = False


@contextmanager
def _stop() -> Iterator[_Stop]:
    """Ctrl-C and SIGTERM ask to stop, once; the next one ends the process as it ends any."""
    stop = _Stop()

    def ask(_signal: int, _frame: FrameType | None) -> None:
        stop.asked = True
        for number in before:
            signal.signal(number, signal.SIG_DFL)

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
