"""Set-up's first step: all that is missing is named at once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import prerequisites

SCRIPT = Path(prerequisites.__file__)


def run(path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, SCRIPT], env={"PATH": str(path), **environment}, capture_output=True, text=True, check=False
    )


def put(folder: Path, **prints: str) -> Path:
    """A folder of tools that print the given text."""
    for name, text in prints.items():
        tool = folder / name
        tool.write_text(f"#!/bin/sh\necho '{text}'\n")
        tool.chmod(0o755)
    return folder


COMPLETE = {
    "cargo": "cargo 1.95.0 (f2d3ce0bd 2026-03-21)",
    "rustc": "rustc 1.95.0 (59807616e 2026-04-14)",
    "java": 'openjdk version "17.0.15" 2025-04-15',
    "mvn": "Apache Maven 3.8.7",
    "cc": "cc (Debian 12.2.0-14) 12.2.0",
}


def test_a_complete_machine_is_quiet(tmp_path: Path) -> None:
    outcome = run(put(tmp_path, **COMPLETE))
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, "", "")


def test_everything_missing_is_named_at_once(tmp_path: Path) -> None:
    outcome = run(tmp_path)
    assert outcome.returncode == 1
    lines = outcome.stderr.splitlines()[1:]
    assert [line.split()[1] for line in lines] == ["Rust", "Java", "Maven", "A"]
    assert all("Debian: apt install" in line and "macOS:" in line for line in lines)


@pytest.mark.parametrize(
    ("tool", "prints", "message"),
    [
        ("java", 'java version "1.8.0_402"', "Java is 1.8.0, but 17 or later is needed"),
        ("java", 'openjdk version "11.0.2" 2019-01-15', "Java is 11.0.2, but 17 or later is needed"),
        ("java", "Unable to locate a Java Runtime.", "Java 17 or later is missing"),
        ("rustc", "rustc 1.63.0", "Rust (cargo and rustc) is 1.63.0, but"),
        ("cargo", "error: no default toolchain", "Rust (cargo and rustc) 1."),
        ("cc", "note: no developer tools were found", "A C compiler (cc) is missing"),
    ],
)
def test_old_and_empty_tools(tmp_path: Path, tool: str, prints: str, message: str) -> None:
    outcome = run(put(tmp_path, **{**COMPLETE, tool: prints}))
    assert outcome.returncode == 1
    (line,) = outcome.stderr.splitlines()[1:]
    assert message in line


def test_java_home_goes_before_the_path(tmp_path: Path) -> None:
    home = tmp_path / "jdk"
    (home / "bin").mkdir(parents=True)
    put(home / "bin", java='openjdk version "11.0.2"')
    assert "Java is 11.0.2" in run(put(tmp_path, **COMPLETE), JAVA_HOME=str(home)).stderr


def test_an_old_python_gets_a_message(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", f"{put(tmp_path, **COMPLETE)}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(sys, "version_info", (3, 9, 18, "final", 0))
    (line,) = prerequisites.problems()
    assert line.startswith("Python is 3.9.18, but 3.11 or later is needed")
