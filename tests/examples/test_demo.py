"""`make demo` runs, shows what the engine says, and leaves drawings behind."""

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

EXAMPLES = Path(__file__).parents[2] / "examples"
ARCFLEET = Path(sys.executable).parent / "arcfleet"


def run(*command: str | Path, cache: Path) -> str:
    environment = {**os.environ, "ARCFLEET_CACHE": str(cache), "COLUMNS": "120"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, encoding="utf-8", check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_demo_tells_every_change_of_the_engine(tmp_path: Path) -> None:
    shown = run(sys.executable, "-P", EXAMPLES / "demo.py", cache=tmp_path)
    replay = (ARCFLEET, "replay", EXAMPLES / "q1.yaml", "--tape", EXAMPLES / "demo.jsonl", "--emit", "changes")
    changes = [json.loads(line) for line in run(*replay, cache=tmp_path).splitlines()]
    assert [change["op"] for change in changes] == ["insert", "retract", "insert", "insert", "punctuation"]
    told = [line.split() for line in shown.splitlines() if line.split()[:1] in (["insert"], ["retract"])]
    assert [(words[0], words[-1]) for words in told] == [(c["op"], c["match"][:8]) for c in changes if "match" in c]


def test_demo_draws_the_automaton_before_and_after(tmp_path: Path) -> None:
    shown = run(sys.executable, "-P", EXAMPLES / "demo.py", "--fast", cache=tmp_path)
    for name in ("q1", "q1-changed"):
        drawing = tmp_path / "demo" / f"{name}.svg"
        assert str(drawing) in shown
        assert ElementTree.fromstring(drawing.read_text(encoding="utf-8")).tag.endswith("svg")
    assert "[4350, ∞)" in (tmp_path / "demo" / "q1-changed.svg").read_text(encoding="utf-8")
