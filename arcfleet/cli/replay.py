"""`arcfleet replay`: run patterns over a recorded tape. No broker needed."""

from __future__ import annotations

import json
import re
import sys
import time
from contextlib import ExitStack
from dataclasses import replace as changed
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer
from rich.progress import Progress
from rich.text import Text

from afa import RecordError, load_patterns
from afa.document import read_speculation
from afa.engine import LIMITS, Engine
from afa.pattern import Pattern
from afa.reading import Fault
from afa.records import Change, GraphChange, MatchChange
from afa.tape import MAX_RECORD_BYTES, Tape, TapeLine
from arcfleet.cli.match_table import ChangeTable, print_matches
from arcfleet.cli.output import (
    Format,
    JsonOption,
    OutputOption,
    PatternsArgument,
    progress_bar,
    refuse,
    show_error,
    talk,
    write_json,
)
from arcfleet.cli.tapes import open_tape, tape_name
from arcfleet.net_matches import NetMatches

_BATCH_LINES = 1024


class Emit(StrEnum):
    final = "final"
    changes = "changes"


class EngineName(StrEnum):
    native = "native"
    reference = "reference"


class Hold(StrEnum):
    none = "none"
    output = "output"


class Sequence(StrEnum):
    none = "none"
    gap_free = "gap_free"


def replay(  # noqa: PLR0917 - the flags of the contract
    patterns: PatternsArgument,
    tape: Annotated[str, typer.Option(metavar="FILE|-", help="The tape, JSON lines; - is standard input.")],
    emit: Annotated[Emit, typer.Option(help="The net matches at the end, or every change as it comes.")] = Emit.final,
    engine: Annotated[EngineName, typer.Option(help="Which engine runs.")] = EngineName.native,
    plan: Annotated[str, typer.Option(help="Force an evaluation plan.")] = "auto",
    speculation: Annotated[str | None, typer.Option(help="Cleanse factor for all patterns: inf, 0, 500ms.")] = None,
    hold: Annotated[Hold | None, typer.Option(help="Hold inserts back until they are final.")] = None,
    sequence: Annotated[Sequence | None, typer.Option(help="gap_free: use sequence numbers (AFA+O).")] = None,
    late: Annotated[Path | None, typer.Option(help="Write late records to this file.")] = None,
    limit: Annotated[list[str] | None, typer.Option(metavar="NAME=N", help="Set a limit; may be repeated.")] = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Report bad lines and go on.")] = False,
    stats: Annotated[bool, typer.Option("--stats", help="One JSON object of counters as last line of stderr.")] = False,
    output: OutputOption = Format.json,
    json_output: JsonOption = False,
) -> None:
    """Run patterns over a tape and print matches, retractions and punctuations.

    [bold]Examples[/]

    arcfleet replay q1.yaml --tape day.jsonl

    arcfleet replay q1.yaml --tape day.jsonl --emit changes --stats

    cat day.jsonl | arcfleet replay q1.yaml q2.yaml --tape - -o table
    """
    _refuse_not_yet(plan)
    _check_late_file(late, [Path(tape), *patterns])
    limits = _limits(limit or [])
    max_record_bytes = limits.pop("max_record_bytes")
    loaded = [_overridden(pattern, speculation, hold, sequence) for pattern in load_patterns(*patterns)]
    made = Engine(loaded, engine.value, limits=limits)
    replayer = _Replayer(made, Format.json if json_output else output, emit, skip_bad)
    with ExitStack() as stack:
        opened, size = stack.enter_context(open_tape(tape))
        if late:
            replayer.late_file = stack.enter_context(_open_late_file(late))
        progress = stack.enter_context(progress_bar(f"replaying {tape}", size, data_flows=replayer.data_flows))
        failure = replayer.run(Tape(opened, tape_name(tape), max_record_bytes), progress)
    replayer.finish()
    if failure:
        sys.stdout.flush()
        show_error(failure)
    if stats:
        sys.stdout.flush()
        sys.stderr.write(json.dumps(replayer.stats()) + "\n")
    if failure:
        raise typer.Exit(1)


def _check_late_file(late: Path | None, inputs: list[Path]) -> None:
    """Late records overwrite their file, so it must not be one that is read."""
    if late is None:
        return
    if str(late) == "-":
        raise refuse("--late - : late records go to a file, standard output is for the matches")
    if any(late.exists() and file.exists() and late.samefile(file) for file in inputs):
        raise refuse(f"--late {late} is one of the files that are read; name another one")


def _refuse_not_yet(plan: str) -> None:
    if plan != "auto":
        raise refuse(f"--plan {plan} is not there yet; use --plan auto")


def _limits(settings: list[str]) -> dict[str, int]:
    """The limits by name; that of a record's bytes is the tape's, the others are the engine's."""
    limits = {"max_record_bytes": MAX_RECORD_BYTES}
    for setting in settings:
        name, _, number = setting.partition("=")
        if name not in (*LIMITS, "max_record_bytes") or not re.fullmatch("[1-9][0-9]{0,17}", number):
            raise refuse(f"--limit {setting}: write NAME=N; the limits are {', '.join(LIMITS)}, max_record_bytes")
        limits[name] = int(number)
    return limits


def _overridden(pattern: Pattern, speculation: str | None, hold: Hold | None, sequence: Sequence | None) -> Pattern:
    changes: dict[str, Any] = {}
    if speculation is not None:
        try:
            changes["speculation"] = read_speculation(_plain_number(speculation))
        except Fault as fault:
            raise refuse(f"--speculation {speculation}: {fault.what}") from None
    if hold is not None:
        changes["hold_output"] = hold is Hold.output
    if sequence is not None:
        changes["gap_free"] = sequence is Sequence.gap_free
    return changed(pattern, **changes)


def _plain_number(text: str) -> int | str:
    return int(text) if re.fullmatch("[0-9]{1,18}", text) else text


def _open_late_file(late: Path) -> TextIO:
    try:
        return late.open("w", encoding="utf-8")
    except OSError as error:
        raise OSError(f"--late {late} cannot be written: {error.strerror}") from None


class _Replayer:
    """Feeds a tape to an engine and writes what comes out."""

    def __init__(self, engine: Engine, output: Format, emit: Emit, skip_bad: bool) -> None:
        self.engine = engine
        self.output = output
        self.emit = emit
        self.skip_bad = skip_bad
        self.late_file: TextIO | None = None
        self.net = NetMatches[MatchChange | GraphChange]()
        self.log: list[Change] = []  # only for a table, which is printed at the end
        self.data_flows = emit is Emit.changes and output is Format.json  # while the tape is read
        self.counts = {"matches": 0, "retractions": 0, "bad": 0}
        self.seconds = 0.0

    def run(self, tape: Tape, progress: Progress | None) -> RecordError | None:
        """All lines, or those before the first bad one, which is returned."""
        # Somebody may be watching the other end of a live pipe: its lines are taken one by one.
        most = 1 if tape.file == "<stdin>" else _BATCH_LINES
        lines = iter(tape)
        while batch := list(islice(lines, most)):
            if progress:
                progress.update(progress.task_ids[0], completed=tape.bytes_read)
            if failure := self._feed(batch):
                return failure
        return None

    def _feed(self, batch: list[TapeLine]) -> RecordError | None:
        """Lines together, those that are too long apart: they have no content."""
        begin = 0
        for end in [index for index, line in enumerate(batch) if line.too_long] + [len(batch)]:
            if failure := self._feed_whole(batch[begin:end]) or self._refuse(batch[end : end + 1]):
                return failure
            begin = end + 1
        return None

    def _feed_whole(self, lines: list[TapeLine]) -> RecordError | None:
        started = time.perf_counter()
        told = self.engine.feed_lines(lines, stops_at_bad=not self.skip_bad)
        self.seconds += time.perf_counter() - started
        self._write(told.changes)
        self._write_late(lines, told.late)
        for index, reason in told.bad:
            if failure := self._refuse([lines[index]], reason, told.faults.get(index)):
                return failure
        if told.told and lines and lines[0].file == "<stdin>":
            sys.stdout.flush()
        return None

    def _refuse(self, lines: list[TapeLine], reason: str = "", fault: Fault | None = None) -> RecordError | None:
        """The error of a bad line, unless it is to be skipped."""
        for line in lines:
            self.counts["bad"] += 1
            error = line.error(fault) if fault else line.why_bad(reason)
            if not self.skip_bad:
                return error
            talk().print(Text(f"skipped: {error}"))  # a bare str would have its `:100:` made an emoji
        return None

    def _write_late(self, lines: list[TapeLine], late: list[tuple[int, str]]) -> None:
        for index, reason in late if self.late_file else []:
            entry = json.dumps({"line": lines[index].number, "reason": reason}, ensure_ascii=False)
            record = lines[index].raw.decode().strip()  # as it came: numbers outside our range survive
            assert self.late_file
            self.late_file.write(f'{entry[:-1]}, "record": {record}}}\n')

    def _write(self, changes: list[Change]) -> None:
        for change in changes:
            self._count(change)
            if self.emit is Emit.changes and self.output is Format.json:
                write_json(change.as_json())
            elif self.emit is Emit.changes:
                self.log.append(change)

    def _count(self, change: Change) -> None:
        if not isinstance(change, MatchChange | GraphChange):
            return
        if change.op == "insert":
            self.counts["matches"] += 1
            self.net.insert(change.id, change, replaces=isinstance(change, GraphChange))
        else:
            self.counts["retractions"] += 1
            self.net.retract(change.id)

    def finish(self) -> None:
        """What is printed at the end: the net matches, or the table of changes."""
        if self.emit is Emit.changes:
            if self.output is Format.table:
                ChangeTable().print(change.as_json() for change in self.log)
            return
        assert not self.net.doubled + self.net.orphans, "an engine tells a match once before it takes it back"
        final = (change.as_json() for change in sorted(self.net.standing.values(), key=lambda change: change.order))
        if self.output is Format.table:
            print_matches(final)
        for record in final if self.output is Format.json else ():
            write_json(record)

    def stats(self) -> dict[str, Any]:
        counted = self.engine.stats()
        speed = round(counted["events"] / self.seconds) if self.seconds else 0
        return {"events": 0, **self.counts, **counted, "events_per_second": speed}
