"""Every example prints what was worked out by hand, in whatever order its events arrive."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from afa import load_patterns
from afa.records import ArcChange, Event, Match, MatchChange, Record
from afa.reference import ReferenceEngine
from afa.tape import Tape

EXAMPLES = Path(__file__).parents[2] / "examples"
ARCFLEET = Path(sys.executable).parent / "arcfleet"
FILES = {path.stem: path for path in sorted([*EXAMPLES.glob("*.yaml"), *EXAMPLES.glob("*.sase")])}
NAMES = list(FILES)
OF_THE_PAPERS = {
    *("q1", "q2", "q3", "head-and-shoulders", "network-monitoring", "stream-cleaning", "uncertain", "change-k"),
    *("shoplifting", "contamination", "stock-trend"),  # SASE+
    *("rising-prices", "correlated"),  # lazy evaluation
    "chemotherapy",  # match windows
}
QUERIES = {name for name, path in FILES.items() if any(pattern.query for pattern in load_patterns(path))}

Validate = Callable[[str, Any], None]


def records_of(name: str) -> list[Record]:
    with (EXAMPLES / f"{name}.jsonl").open("rb") as opened:
        return [line.read() for line in Tape(opened, f"{name}.jsonl")]


def run(name: str, records: list[Record]) -> tuple[dict[str, Match], list[Record]]:
    """The net matches, and the records that were not late."""
    engine = ReferenceEngine(load_patterns(FILES[name]))
    net: dict[str, Match] = {}
    accepted = []
    for record in records:
        step = engine.feed(record)
        accepted += [] if step.late else [record]
        for change in step.changes:
            if isinstance(change, MatchChange) and change.op == "insert":
                net[change.id] = change.match
            elif isinstance(change, MatchChange):
                del net[change.id]
    return net, accepted


def test_the_examples_of_the_papers_are_there() -> None:
    assert set(NAMES) >= OF_THE_PAPERS


@pytest.mark.parametrize("name", NAMES)
def test_replay_prints_what_was_worked_out(name: str) -> None:
    command = [str(ARCFLEET), "replay", FILES[name].name, "--tape", f"{name}.jsonl", "--emit", "changes"]
    command += ["--engine", "reference"] if name in QUERIES else []
    done = subprocess.run(command, cwd=EXAMPLES, capture_output=True, text=True, encoding="utf-8", check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (EXAMPLES / f"{name}.expected.jsonl").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_in_order_the_matches_are_the_same(name: str) -> None:
    disordered, accepted = run(name, records_of(name))
    arcs = [record for record in accepted if isinstance(record, ArcChange)]
    events = [record for record in accepted if isinstance(record, Event)]
    in_order = sorted(events, key=lambda event: (event.ts, event.rev))
    assert in_order != events, "the tape of an example is partly disordered"
    assert run(name, [*arcs, *in_order])[0] == disordered


@pytest.mark.parametrize("name", NAMES)
def test_the_files_meet_the_schemas(name: str, validate: Validate) -> None:
    text = FILES[name].read_text(encoding="utf-8")
    for document in yaml.safe_load_all(text) if FILES[name].suffix == ".yaml" else ():
        validate("pattern", document)
        assert "events" in document, "fields and types of an example are checked"
    for line in (EXAMPLES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        kinds = {"punctuation": "punctuation", "arc": "arc", "arc-retract": "arc", "arc-punctuation": "arc"}
        validate(kinds.get(record.get("op"), "event"), record)
    for line in (EXAMPLES / f"{name}.expected.jsonl").read_text(encoding="utf-8").splitlines():
        change = json.loads(line)
        validate("match-punctuation" if change["op"] == "punctuation" else "match", change)


@pytest.mark.parametrize("name", sorted(QUERIES))
def test_backwards_the_matches_are_the_same(name: str) -> None:
    records = [record for record in records_of(name) if isinstance(record, Event)]
    assert run(name, records[::-1])[0] == run(name, records)[0]
