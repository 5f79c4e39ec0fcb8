"""Sums up a CI run: each suite's time against its share on two cores, and the count of tests.

`suite_times.py FOLDER` reads what a run left there: `pytest.xml` (JUnit) and `<step>.seconds` of the steps around it.
A suite that took longer than its share is reported with its slowest tests; exit 1 if one took twice as long.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

BUILD, ENGINE, FLEET, PIPELINE, REST = (
    "build and install",
    "engine and language",
    "worker and coordinator",
    "pipeline",
    "the rest",
)
SHARES_S = {BUILD: 8 * 60, ENGINE: 4 * 60, FLEET: 6 * 60, PIPELINE: 3 * 60, REST: 4 * 60}
# What needs a broker shares the time of the processes that will.
FOLDERS = {
    "afa": ENGINE,
    "query": ENGINE,
    "local": FLEET,
    "fleet": FLEET,
    "worker": FLEET,
    "coordinator": FLEET,
    "pipeline": PIPELINE,
}
STEPS = {"setup": BUILD, "native": ENGINE, "lint": REST}
FAILS_AT = 2.0
SLOWEST = 10


@dataclass(frozen=True)
class Timed:
    """A test, or a whole step of the run."""

    name: str
    suite: str
    seconds: float


@dataclass
class Run:
    """What a run left behind."""

    timed: list[Timed] = field(default_factory=list)
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def seconds(self, suite: str) -> float:
        return sum(one.seconds for one in self.timed if one.suite == suite)

    def slowest(self, suite: str) -> list[Timed]:
        return sorted((one for one in self.timed if one.suite == suite), key=lambda one: -one.seconds)[:SLOWEST]


def suite_of(classname: str) -> str:
    """The suite of a test by its folder: `tests.afa.test_x` is tests/afa."""
    folders = classname.split(".")[1:-1]
    return FOLDERS.get(folders[0], REST) if folders else REST


def read_run(folder: Path) -> Run:
    """Raises FileNotFoundError when pytest left no report: it was never reached."""
    run = Run()
    for step, suite in STEPS.items():
        file = folder / f"{step}.seconds"
        if file.exists():
            run.timed.append(Timed(f"({step})", suite, float(file.read_text())))
    for element in ElementTree.parse(folder / "pytest.xml").getroot().iter("testsuite"):
        _read_suite(element, run)
    return run


def _read_suite(suite: ElementTree.Element, run: Run) -> None:
    in_tests = 0.0
    for case in suite.iter("testcase"):
        classname, seconds = case.get("classname", ""), float(case.get("time", "0"))
        in_tests += seconds
        run.timed.append(Timed(f"{classname}::{case.get('name')}", suite_of(classname), seconds))
        outcomes = {child.tag for child in case}
        if outcomes & {"failure", "error"}:
            run.failed += 1
        elif "skipped" in outcomes:
            run.skipped += 1
        else:
            run.passed += 1
    run.timed.append(Timed("(collection)", REST, max(0.0, float(suite.get("time", "0")) - in_tests)))


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def verdict(seconds: float, share_s: float) -> str:
    if seconds >= FAILS_AT * share_s:
        return "  FAILED: twice its share"
    return "  longer than its share" if seconds > share_s else ""


def report(run: Run) -> Iterable[str]:
    yield f"{'suite':<24}{'time':>8}{'share':>8}"
    for suite, share_s in SHARES_S.items():
        seconds = run.seconds(suite)
        yield f"{suite:<24}{clock(seconds):>8}{clock(share_s):>8}{verdict(seconds, share_s)}"
        if seconds > share_s:
            yield from (f"    {one.seconds:8.1f} s  {one.name}" for one in run.slowest(suite))
    yield f"{run.passed} passed, {run.failed} failed, {run.skipped} skipped"


def main(folder: Path) -> int:
    try:
        run = read_run(folder)
    except FileNotFoundError as error:
        print(f"no times: {error}", file=sys.stderr)
        return 1
    for line in report(run):
        print(line)
    return int(any(run.seconds(suite) >= FAILS_AT * share_s for suite, share_s in SHARES_S.items()))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
