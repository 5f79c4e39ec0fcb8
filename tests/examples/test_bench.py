"""`make bench` compares matches before it shows any speed."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_run", Path(__file__).parents[2] / "bench" / "run.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "bench_run", module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "EVENTS", 100)
    monkeypatch.setattr(module, "LOOP_SECONDS_LEAST", 0.001)
    return module


def test_rows_as_json(bench: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["run.py", "--json", "--runs", "1"])
    bench.main()
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["name"] for row in rows] == ["q1", "q1-late5"]
    assert rows[0]["matches"] == rows[1]["matches"] > 0


def test_no_speed_is_shown_if_the_matches_differ(bench: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["run.py", "--runs", "1"])
    monkeypatch.setattr(bench, "LARGE_DROP", -100.0)
    with pytest.raises(SystemExit, match="no speed is shown"):
        bench.main()
