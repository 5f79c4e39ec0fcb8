"""What docs/local-kafka.md shows is run."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from arcfleet.local import pytest_plugin

PAGE = (Path(__file__).parents[2] / "docs" / "local-kafka.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("program", PROGRAMS)
def test_each_program_runs(program, tmp_path):
    answer = subprocess.run(
        [sys.executable, "-P", "-W", "error", "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "LocalBroker" not in program or re.match(r"127\.0\.0\.1:\d+", answer.stdout)


def test_the_page_shows_programs_and_names_every_fixture():
    assert len(PROGRAMS) == 3
    assert {name for name in ("kafka", "kafka_broker") if hasattr(pytest_plugin, name)} <= set(
        re.findall(r"`(\w+)`", PAGE)
    )
