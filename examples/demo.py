"""What `make demo` shows: a fleet of two workers on a real local Kafka, a disordered stock tape, and a worker that is
killed. What is counted in the end is read back from Kafka and compared with the reference engine.

`examples/demo.py [--fast]`; without pauses too when the output is not a terminal. The first ticks are `demo.jsonl`, the
pattern is `q1.yaml`; the other ticks are made here, the same ones each time.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from afa import Engine, load_patterns
from afa.pattern import Pattern
from arcfleet.fleet.clients import open_consumer, open_producer, producer_settings
from arcfleet.fleet.looking_on import left_to_do, net_matches
from arcfleet.fleet.tailing import ToldChange, assign, read_change, tail_settings
from arcfleet.local.errors import LocalKafkaError
from arcfleet.local.stack import PARTITIONS, LocalStack
from arcfleet.net_matches import NetMatches

HERE = Path(__file__).parent
WORKERS = 2
PAUSE_PER_TICK_S = 0.5
PAUSE_PER_WORD_S = 0.06
TICK_WIDTH = 5
SEED, SYMBOLS, TICKS = 7, 12, 900
TICKS_PER_S = 90
KILL_AT = TICKS * 2 // 5
SHOWN_CHANGES = 8
DEADLINE_S = 90.0
TICK_WORDS = (
    "Q1: a large drop, then two V-patterns (downticks, then upticks) with as many upticks as downticks. Ticks go into "
    "a Kafka topic one by one; the match is told with the tick that completes it, not when a window closes."
)
LATE_WORDS = (
    "e6 happened between e4 and e5, but arrives after both. With it, the second V was complete at e6 already, and at "
    "e5 there is one uptick too many: the match is retracted, and the corrected one inserted."
)
MARKET_WORDS = (
    f"{TICKS} ticks of {SYMBOLS} symbols; one in four is late, one in thirty is revised afterwards. Somewhere in the "
    "midst of it one worker is killed (SIGKILL): it commits nothing, and says goodbye to nobody."
)


@dataclass
class Stage:
    """The terminal, and what the audience has seen of the matches topic."""

    console: Console
    fast: bool
    changes: deque[ToldChange] = field(default_factory=deque)
    inserted: int = 0
    retracted: int = 0

    def pause(self, seconds: float) -> None:
        if not self.fast:
            time.sleep(seconds)

    def say(self, what: str | Text) -> None:
        self.console.print(Text.assemble("  ", what))

    def title(self, text: str, words: str) -> None:
        self.console.print()
        self.console.rule(Text(text, "bold"), align="left", style="dim")
        self.console.print(Text(words), width=min(self.console.width, 100))
        self.pause(PAUSE_PER_WORD_S * len(words.split()))

    def told(self, change: ToldChange) -> None:
        self.inserted += change.record["op"] == "insert"
        self.retracted += change.record["op"] == "retract"
        self.changes.append(change)

    def numbers(self) -> str:
        standing = self.inserted - self.retracted
        return f"{self.inserted} matches told, {self.retracted} taken back, {standing} stand"


def change_line(told: ToldChange) -> Text:
    """A change as one line."""
    record = told.record
    style = "bold green" if record["op"] == "insert" else "bold red"
    events = record["events"]
    about = f"  {record['key']:<5} {events['first']} to {events['last']}  id {record['match'][:8]}"
    return Text.assemble((f"{record['op']:<7}", style), about)


class Matches:
    """The matches topic, as somebody reads it who only looks at what is committed."""

    def __init__(self, stack: LocalStack) -> None:
        self.consumer = open_consumer(tail_settings(stack.fleet))
        assign(self.consumer, stack.fleet.topic("matches"), PARTITIONS, latest=False)

    def poll(self, wait_s: float) -> Iterator[ToldChange]:
        """The changes that have come."""
        first = self.consumer.poll(wait_s)
        for message in [first, *self.consumer.consume(500, 0)] if first else []:
            if message.error() is None:
                told = read_change(message.value(), message.key(), message.headers() or [])
                if told.record["op"] != "punctuation":
                    yield told


class Source:
    """The topic of events, and all that was published there, in this order."""

    def __init__(self, stack: LocalStack) -> None:
        self.fleet = stack.fleet
        self.topic = self.fleet.sources[0].topic
        self.producer = open_producer(producer_settings(self.fleet) | {"partitioner": "murmur2_random"})
        self.lines: list[bytes] = []

    def publish(self, record: dict[str, Any]) -> None:
        self.lines.append(json.dumps(record).encode())
        self.producer.produce(self.topic, self.lines[-1], record["key"])
        self.producer.poll(0)

    def left(self) -> int:
        """Records that the fleet has not committed yet."""
        self.producer.flush(10)
        return left_to_do(self.fleet)


def market() -> Iterator[dict[str, Any]]:
    """Ticks of many symbols in order of arrival: some late, some revised."""
    drawn = random.Random(SEED)
    arriving = []
    for number in range(TICKS):
        change = drawn.choice((-0.6, -0.6, -0.1, 0.1, 0.1, 0.1))
        record = {"id": f"t{number}", "key": f"S{drawn.randrange(SYMBOLS):02}", "ts": 10_000 + 10 * number}
        record |= {"type": "stock", "data": {"change": change}}
        arriving.append((number + drawn.choice((0, 0, 0, drawn.randrange(1, 80))), record))
        if drawn.random() < 1 / 30:
            revised = record | {"rev": 1, "data": record["data"] | {"change": -change}}
            arriving.append((arriving[-1][0] + drawn.randrange(1, 80), revised))
    return (record for _, record in sorted(arriving, key=lambda pair: pair[0]))


def opening(stage: Stage, source: Source, matches: Matches, pattern: Pattern) -> None:
    """A few ticks one by one, each with what the fleet tells because of it."""
    engine = Engine([pattern])
    ticks = [json.loads(line) for line in (HERE / "demo.jsonl").read_text(encoding="utf-8").splitlines()]
    stage.title("A match, at once", TICK_WORDS)
    for number, tick in enumerate(ticks):
        if number == len(ticks) - 1:
            stage.title("A late tick: the match is taken back, and the right one told", LATE_WORDS)
        change = tick["data"]["change"]
        stage.say(Text.assemble((f"{tick['id']:<4}", "bold"), f"ts {tick['ts']}  {change:+.2f}"))
        source.publish(tick)
        awaited = len(engine.feed([source.lines[-1]]).to_records())
        until_s = time.monotonic() + DEADLINE_S
        while awaited > 0 and time.monotonic() < until_s:
            for told in matches.poll(0.1):
                stage.told(told)
                stage.say(Text.assemble("    ", change_line(told)))
                awaited -= 1
        stage.pause(PAUSE_PER_TICK_S)
    chart(stage, ticks, source)


def chart(stage: Stage, ticks: list[dict[str, Any]], source: Source) -> None:
    """The ticks in the order in which they happened, and the match that stands."""
    ordered = sorted(ticks, key=lambda tick: int(tick["ts"]))
    places = {tick["id"]: place for place, tick in enumerate(ordered)}
    stage.console.print()
    stage.say(Text("".join(f"{tick['id']:^{TICK_WIDTH}}" for tick in ordered), "dim"))
    stage.say(Text.assemble(*(_arrow(tick["data"]["change"]) for tick in ordered)))
    for told in net_matches(source.fleet).standing.values():
        first, last = (places[told.record["events"][end]] for end in ("first", "last"))
        line = "╰" + "─" * ((last - first) * TICK_WIDTH - 1) + "╯"
        stage.say(Text(" " * (first * TICK_WIDTH + TICK_WIDTH // 2) + line, "green"))
    stage.pause(2.0)


def _arrow(change: float) -> tuple[str, str]:
    sign, style = ("⇓", "bold red") if change < -0.25 else ("↓", "red") if change < 0 else ("↑", "green")
    return f"{sign:^{TICK_WIDTH}}", style


def crash(stage: Stage, stack: LocalStack, source: Source, matches: Matches) -> None:
    """Many ticks, and one worker killed on the way."""
    stage.title("Two workers, and one of them is killed", MARKET_WORDS)
    ticks, victim = list(market()), stack.workers[0]
    killed_s = back_s = None
    stage.changes.clear()
    with Live(console=stage.console, auto_refresh=False, transient=True) as live:
        for number, tick in enumerate(ticks):
            source.publish(tick)
            if number == KILL_AT and victim.pid is not None:
                os.kill(victim.pid, signal.SIGKILL)
                killed_s = time.monotonic()
                stage.say(Text(f"{victim.name} is killed after {number} of {len(ticks)} ticks", "bold red"))
            for told in matches.poll(1 / TICKS_PER_S):
                stage.told(told)
            if stage.console.is_terminal and number % 5 == 0:
                live.update(_scene(stage, number, len(ticks)), refresh=True)
            if killed_s and back_s is None and number % 20 == 0 and victim.restarts and victim.is_ready():
                back_s = time.monotonic() - killed_s
        until_s = time.monotonic() + DEADLINE_S
        while (left := source.left()) and time.monotonic() < until_s:
            for told in matches.poll(0.1):
                stage.told(told)
            if stage.console.is_terminal:
                live.update(_scene(stage, len(ticks) - left, len(ticks)), refresh=True)
            if killed_s and back_s is None and victim.restarts and victim.is_ready():
                back_s = time.monotonic() - killed_s
    if back_s is not None:
        stage.say(f"{victim.name} was started again, restored its partitions and was ready after {back_s:.1f} s")


def _scene(stage: Stage, done: int, of: int) -> Group:
    while len(stage.changes) > SHOWN_CHANGES:
        stage.changes.popleft()
    lines = [Text.assemble("  ", change_line(told)) for told in stage.changes]
    bar = Table.grid(padding=(0, 1))
    bar.add_row(" ", ProgressBar(total=of, completed=done, width=40), Text(f"{done} of {of} ticks; {stage.numbers()}"))
    return Group(*lines, Text(), bar)


def count(stage: Stage, source: Source, pattern: Pattern) -> bool:
    """The whole matches topic, read anew, beside what the reference engine says; whether they are the same."""
    stage.title(
        "The count",
        "All of the matches topic, read anew; and the same ticks in the reference engine: one process, no Kafka, "
        "no crash. Matches are compared by their ids.",
    )
    net = net_matches(source.fleet)
    right = NetMatches[dict[str, Any]]()
    for record in Engine([pattern], engine="reference", net="batch").feed(source.lines).to_records():
        if record["op"] == "insert":
            right.insert(record["match"], record)
    lost, extra = right.standing.keys() - net.standing.keys(), net.standing.keys() - right.standing.keys()
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for what, number in (
        ("  ticks", len(source.lines)),
        ("  matches that stand", len(net.standing)),
        ("  by the reference engine", len(right.standing)),
        ("  lost", len(lost)),
        ("  too many", len(extra)),
        ("  told twice", net.doubled),
        ("  taken back without having been told", net.orphans),
    ):
        table.add_row(what, Text(str(number), "bold", justify="right"))
    stage.console.print(table)
    is_right = not (lost or extra or net.doubled or net.orphans) and bool(right.standing)
    verdict = ("Nothing lost, nothing doubled.", "bold green") if is_right else ("That is not right.", "bold red")
    stage.console.print(Text.assemble("\n  ", verdict))
    return is_right


def play(stage: Stage) -> bool:
    (pattern,) = load_patterns(HERE / "q1.yaml")
    with tempfile.TemporaryDirectory(prefix="arcfleet-demo-") as folder:
        shutil.copy(HERE / "q1.yaml", folder)
        stage.say("a Kafka and two workers start ...")
        with LocalStack(workers=WORKERS, patterns=Path(folder), say=lambda what: stage.say(Text(what, "dim"))) as stack:
            stage.say(f"Kafka on {stack.bootstrap}; {', '.join(worker.name for worker in stack.workers)} match Q1")
            source, matches = Source(stack), Matches(stack)
            opening(stage, source, matches, pattern)
            crash(stage, stack, source, matches)
            is_right = count(stage, source, pattern)
            matches.consumer.close()
    return is_right


def main() -> int:
    parser = argparse.ArgumentParser(description="A fleet on a real Kafka, a disordered tape, and a worker killed.")
    parser.add_argument("--fast", action="store_true", help="without pauses (as when stdout is not a terminal)")
    arguments = parser.parse_args()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="replace")
    console = Console(highlight=False)
    try:
        is_right = play(Stage(console, fast=arguments.fast or not console.is_terminal))
    except KeyboardInterrupt:
        return 130
    except LocalKafkaError as error:
        console.print(Text(f"error: {error}"))
        return 3
    console.print("\n  Next: README.md; `arcfleet up` for a fleet of your own; and the examples beside this one.\n")
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
