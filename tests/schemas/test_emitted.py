"""What `arcfleet replay` emits, all of it, meets the schemas."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

PATTERN = """
pattern: v
within: 100
start: a
final: [c]
registers: {n: 0, sum: 0.0, seen: false, name: ""}
arcs:
  - {id: down, from: a, to: b, when: "e.change < 0", set: {n: "r.n + 1", sum: "e.change", seen: true, name: "e.id"}}
  - {id: up, from: b, to: c, when: "e.change > 0"}
"""
TAPE = """
{"id":"e1","key":"k","ts":10,"data":{"change":-1}}
{"id":"e3","key":"k","ts":30,"data":{"change":1}}
{"id":"e2","key":"k","ts":20,"data":{"change":1}}
{"op":"punctuation","ts":25}
{"id":"e0","key":"k","ts":5,"data":{"change":1}}
{"op":"arc","pattern":"v","arc":{"id":"up"},"valid":[null,15]}
"""
COMPRESSED = """
pattern: v
query: |
  PATTERN SEQ(ANY a, ANY+ b[])
  WHERE skip_till_any_match(a, b[]) { a.change < 0 }
  WITHIN 100 ms
  RETURN sum(b[].change), b[1].nothing
encoding: compressed
"""


@pytest.fixture(scope="module", params=["within: 100", "within: 9 events"])
def run(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("replay")
    (folder / "v.yaml").write_text(PATTERN.replace("within: 100", request.param), encoding="utf-8")
    (folder / "v.jsonl").write_text(TAPE.lstrip(), encoding="utf-8")
    command = [sys.executable, "-m", "arcfleet", "replay", "v.yaml", "--tape", "v.jsonl", "--engine", "reference"]
    command += ["--emit", "changes", "--late", "late.jsonl", "--stats"]
    done = subprocess.run(command, check=False, cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done, (folder / "late.jsonl").read_text(encoding="utf-8")


def test_changes(validate, run):
    changes = [json.loads(line) for line in run[0].stdout.splitlines()]
    assert [change["op"] for change in changes] == ["insert", "retract", "insert", "punctuation"]
    for change in changes:
        validate("match-punctuation" if change["op"] == "punctuation" else "match", change)


def test_late_records(validate, run):
    late = [json.loads(line) for line in run[1].splitlines()]
    assert [record["line"] for record in late] == [5, 6]
    for record in late:
        validate("late", record)


def test_statistics(validate, run):
    validate("stats", json.loads(run[0].stderr.splitlines()[-1]))


def test_compressed_changes(validate, tmp_path):
    (tmp_path / "q.yaml").write_text(COMPRESSED, encoding="utf-8")
    (tmp_path / "q.jsonl").write_text(TAPE.lstrip(), encoding="utf-8")
    command = [sys.executable, "-m", "arcfleet", "replay", "q.yaml", "--tape", "q.jsonl", "--engine", "reference"]
    for emit, expected in ("changes", ["insert"] * 3 + ["punctuation"]), ("final", ["insert"] * 2):
        done = subprocess.run(
            [*command, "--emit", emit, "--skip-bad"],
            check=False,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
        )
        changes = [json.loads(line) for line in done.stdout.splitlines()]
        assert [change["op"] for change in changes] == expected, done.stderr
        for change in changes:
            validate("match-punctuation" if change["op"] == "punctuation" else "match-graph", change)
