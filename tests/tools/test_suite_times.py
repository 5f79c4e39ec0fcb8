"""The report at the end of a CI run: tests counted to their suites, shares kept."""

from pathlib import Path

import pytest

import suite_times
from suite_times import BUILD, ENGINE, FLEET, PIPELINE, REST, main, read_run, suite_of


def junit(folder: Path, cases: list[tuple[str, str, float, str]], total_s: float | None = None) -> None:
    """Writes the report of a run with (classname, name, seconds, child element) cases."""
    spent_s = sum(case[2] for case in cases) if total_s is None else total_s
    body = "".join(f'<testcase classname="{c}" name="{n}" time="{s}">{child}</testcase>' for c, n, s, child in cases)
    (folder / "pytest.xml").write_text(f'<testsuites><testsuite time="{spent_s}">{body}</testsuite></testsuites>')


@pytest.mark.parametrize(
    ("classname", "suite"),
    [
        ("tests.afa.test_expression", ENGINE),
        ("tests.afa.deep.test_expression.TestClass", ENGINE),
        ("tests.worker.test_loop", FLEET),
        ("tests.coordinator.test_app", FLEET),
        ("tests.pipeline.test_backfill", PIPELINE),
        ("tests.local.test_broker", FLEET),
        ("tests.test_tidy", REST),
        ("tests.test_afa.TestClass", REST),
        ("", REST),
    ],
)
def test_suite_by_folder(classname: str, suite: str) -> None:
    assert suite_of(classname) == suite


def test_steps_and_collection_are_counted(tmp_path: Path) -> None:
    junit(tmp_path, [("tests.afa.test_a", "one", 2.0, ""), ("tests.test_tidy", "two", 1.0, "")], total_s=10.0)
    for step, seconds in {"setup": 100, "native": 7, "lint": 20}.items():
        (tmp_path / f"{step}.seconds").write_text(f"{seconds}\n")
    run = read_run(tmp_path)
    assert {suite: run.seconds(suite) for suite in suite_times.SHARES_S} == {
        BUILD: 100.0,
        ENGINE: 9.0,
        FLEET: 0.0,
        PIPELINE: 0.0,
        REST: 28.0,
    }


def test_within_the_shares(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = [("good", ""), ("broken", "<failure/>"), ("torn", "<error/>"), ("left", "<skipped/>")]
    junit(tmp_path, [("tests.afa.test_a", name, 1.0, child) for name, child in cases])
    assert main(tmp_path) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "1 passed, 2 failed, 1 skipped"
    assert not any("share" in line for line in lines[1:])


def test_past_its_share_names_the_slowest_ten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    junit(tmp_path, [("tests.worker.test_a", f"case{number:02d}", 30.0 + number, "") for number in range(12)])
    assert main(tmp_path) == 0
    lines = capsys.readouterr().out.splitlines()
    named = [line.rsplit("::", 1)[1] for line in lines if "::" in line]
    assert named == [f"case{number:02d}" for number in range(11, 1, -1)]
    assert any(line.startswith(FLEET) and line.endswith("longer than its share") for line in lines)


def test_twice_its_share_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    junit(tmp_path, [("tests.pipeline.test_a", "long", 360.0, "")])
    assert main(tmp_path) == 1
    assert "FAILED: twice its share" in capsys.readouterr().out


def test_no_report_is_no_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(tmp_path) == 1
    assert "pytest.xml" in capsys.readouterr().err
