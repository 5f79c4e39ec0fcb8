"""A folder and a pattern for the tests of the command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.automata import PAIR


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("command")


@pytest.fixture(scope="module")
def pattern(folder: Path) -> Path:
    file = folder / "pair.json"
    file.write_text(json.dumps(PAIR))
    return file
