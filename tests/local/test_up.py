"""`arcfleet up`: ready, used, a worker killed, stopped or killed itself; and nothing of it is left."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
import yaml
from support.commands import COMMAND, arcfleet, environment
from support.fleets import until

from arcfleet.local.ports import is_free

EXAMPLES = Path(__file__).parents[2] / "examples"
READY_S = 90.0


class Up:
    """A running stack, and what it said."""

    def __init__(self, folder, *options):
        self.said = folder / "up.err"
        with self.said.open("wb") as opened:
            self.process = subprocess.Popen(
                [COMMAND, "up", "--json", *options], stdout=subprocess.PIPE, stderr=opened, env=environment(), text=True
            )
        line = self.process.stdout.readline()
        assert line, self.said.read_text()
        self.told = json.loads(line)
        self.ports = [int(url.split(":")[-1].split("/")[0]) for url in (self.told["bootstrap"], *self.told["metrics"])]

    def processes(self):
        """The workers and their guards: they name the broker on their command lines."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdecimal() else []
            except OSError:
                continue
            if self.told["bootstrap"].encode() in words:
                found.append((int(entry.name), words))
        return found

    def worker(self, name):
        """The process id of a worker itself, if it runs: its guard is there before it."""
        mine = (pid for pid, words in self.processes() if name.encode() in words and b"-I" not in words)
        return next(mine, None)

    def is_gone(self):
        return not self.processes() and all(is_free(port) for port in self.ports)

    def end(self, sign):
        self.process.send_signal(sign)
        status = self.process.wait(60)
        self.process.stdout.close()
        return status


@pytest.fixture
def patterns(tmp_path):
    folder = tmp_path / "patterns"
    folder.mkdir()
    (folder / "q1.yaml").write_bytes((EXAMPLES / "q1.yaml").read_bytes())
    return folder


@pytest.mark.timeout(300)
def test_a_stack_works_outlasts_a_killed_worker_and_leaves_nothing(tmp_path, patterns):
    up = Up(tmp_path, "--workers", "2", "--patterns", patterns)
    try:
        assert list(up.told) == ["bootstrap", "api", "console", "metrics"]
        assert (up.told["api"], up.told["console"], len(up.told["metrics"])) == (None, None, 2)
        at = ("--bootstrap", up.told["bootstrap"])
        assert arcfleet("events", "publish", EXAMPLES / "q1.jsonl", *at).records[0]["partitions"] == 3
        tail = ("matches", "tail", *at, "--net", "--until-end")
        until(lambda: len(arcfleet(*tail).records) == 2, "the matches are not there", READY_S)
        killed = up.worker("worker-1")
        os.kill(killed, signal.SIGKILL)
        until(lambda: "worker-1 has ended with status 137; it is started again" in up.said.read_text(), "not noticed")
        until(lambda: up.worker("worker-1") not in (None, killed), "not started again")
    finally:
        status = up.end(signal.SIGINT)
    assert status == 0
    assert up.is_gone()


@pytest.mark.timeout(300)
def test_a_killed_stack_leaves_nothing(tmp_path):
    up = Up(tmp_path)
    folders = {Path(f"/proc/{pid}/cwd").resolve() for pid, _ in up.processes()}
    assert up.end(signal.SIGKILL) == -signal.SIGKILL
    until(up.is_gone, "something still runs", 20)
    until(lambda: not any(folder.exists() for folder in folders), f"left behind: {folders}", 20)


@pytest.mark.timeout(300)
def test_a_pattern_that_is_refused_ends_it(tmp_path, patterns):
    (patterns / "other.yaml").write_text("pattern: other\nwithin: 5\nstart: a\nfinal: [nowhere]\narcs: []\n")
    began_s = time.monotonic()
    refused = arcfleet("up", "--patterns", patterns)
    assert refused.code == 1
    assert "worker-1 ended with status 1" in refused.err
    assert "no arc names the start state `a`" in refused.err
    assert time.monotonic() - began_s < 60


def test_a_mistake_in_the_fleet_document_is_told_before_anything_starts(tmp_path):
    file = tmp_path / "fleet.yaml"
    file.write_text(yaml.safe_dump({"fleet": "x", "comit_interval": "1s", "sources": [{"topic": "events"}]}))
    refused = arcfleet("up", "--fleet", file)
    assert refused.code == 1
    assert "did you mean `commit_interval`" in refused.err
