"""`make demo` runs a fleet, shows what it told, and counts what it says it counts."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.commands import environment

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"


@pytest.fixture(scope="module")
def shown():
    done = subprocess.run(
        [sys.executable, "-P", DEMO],
        env=environment(COLUMNS="120"),
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


@pytest.mark.timeout(300)
def test_the_demo_tells_a_match_its_retraction_and_the_corrected_match(shown):
    told = re.findall(r"^ +(insert|retract) +YHOO +(e1 to e\d) +id (\w{8})$", shown, re.MULTILINE)
    assert [change[:2] for change in told] == [("insert", "e1 to e5"), ("retract", "e1 to e5"), ("insert", "e1 to e6")]
    assert told[0][2] == told[1][2] != told[2][2]


def test_the_demo_kills_a_worker_and_counts_what_is_there(shown):
    assert "worker-1 is killed after 360 of" in shown
    assert "worker-1 has ended with status 137; it is started again" in shown
    counted = {what: int(number) for what, number in re.findall(r"^  ([a-z ]+?) {2,}(\d+)$", shown, re.MULTILINE)}
    assert counted["matches that stand"] == counted["by the reference engine"] > 40
    assert [counted[what] for what in ("lost", "too many", "told twice", "taken back without having been told")] == [
        0
    ] * 4
    assert "Nothing lost, nothing doubled." in shown
