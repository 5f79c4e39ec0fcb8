"""What a worker says has a level that its readers may rely on."""

import ast
import json
import logging
from pathlib import Path

import worker
from worker.logs import LEVELS, sayer


def said():
    """What is said anywhere in the worker."""
    for file in Path(worker.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            name = node.func if isinstance(node, ast.Call) else None
            if getattr(name, "attr", getattr(name, "id", None)) == "say":
                yield node.args[0].value


def test_each_thing_that_is_said_has_a_level():
    assert set(said()) == LEVELS.keys()


def test_what_somebody_has_to_see_to_is_an_error(capsys):
    say = sayer("w1")
    for event in LEVELS:
        say(event, why="it is so")
    told = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(line["event"], line["level"]) for line in told] == [
        (event, logging.getLevelName(level).lower()) for event, level in LEVELS.items()
    ]
    assert {line["event"] for line in told if line["level"] == "error"} == {
        "bad arc record",
        "hung",
        "state given up",
        "stopped consuming",
    }
