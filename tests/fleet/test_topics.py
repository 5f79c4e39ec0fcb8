"""`arcfleet topics` on a real Kafka."""

from __future__ import annotations

import json
import os
import pty
import subprocess

import pytest
from support.commands import COMMAND, arcfleet, environment, together

from arcfleet.fleet.document import load_fleet
from arcfleet.fleet.errors import FleetError
from arcfleet.fleet.topic_admin import check_topics, connect
from arcfleet.local.admin import create_topic

DEADLINE_S = 30.0


@pytest.fixture
def document(kafka, tmp_path):
    """A fleet of its own, with two sources that are not there yet; the flags that name it."""
    name = kafka.unique("fleet")
    file = tmp_path / "fleet.yaml"
    text = f"fleet: {name}\nsources: [{{topic: {name}-a, time: record}}, {{topic: {name}-b}}]\n"
    file.write_text(text, encoding="utf-8")
    return name, ("--fleet", file, "--bootstrap", kafka.bootstrap)


def actions(ran):
    return [(record["action"], record["topic"]) for record in ran.records]


def test_from_nothing_to_all_topics(document):
    name, flags = document
    planned, dry, made, again, checked = together(
        ["topics", *command, *flags]
        for command in (
            ["plan", "--sources", "3"],
            ["apply", "--sources", "3", "--dry-run"],
            ["apply", "--sources", "3"],
            ["apply"],
            ["check"],
        )
    )
    assert [planned.code, dry.code, made.code, again.code, checked.code] == [0] * 5
    assert planned.out == dry.out == made.out
    assert len(made.records) == 10
    assert ("create", f"{name}.arcs.log") in actions(made)
    assert again.out == checked.out == checked.err == ""


def test_a_check_names_each_difference_and_changes_wait_for_consent(kafka, document):
    name, flags = document
    create_topic(kafka.bootstrap, f"{name}-a", 2, {"message.timestamp.type": "LogAppendTime"})
    create_topic(kafka.bootstrap, f"{name}.late", 1, {"cleanup.policy": "compact", "segment.ms": "60000"})
    checked, asked, applied, left = together(
        ["topics", *command, *flags]
        for command in (
            ["check"],
            ["apply", "--sources", "2"],
            ["apply", "--sources", "2", "--yes"],
            ["check", "-o", "table"],
        )
    )
    assert [checked.code, asked.code, applied.code, left.code] == [1, 2, 1, 1]
    for difference in (
        f"the source topic {name}-b is missing",
        f"the topic {name}.state is missing",
        f"the topic {name}.late has 1 partition, and should have 2",
        f"the topic {name}.late has cleanup.policy=compact, and should have delete",
    ):
        assert difference in checked.err
    assert f"warning: the source topic {name}-a has message.timestamp.type=LogAppendTime" in checked.err
    assert "add --yes" in asked.err
    assert asked.out == ""
    assert ("create", f"{name}-b") in actions(applied)
    assert f"the topic {name}.late has 1 partition" in applied.err
    assert [line.split()[:2] for line in left.out.splitlines()[1:]] == [
        ["warn", f"{name}-a"],
        ["none", f"{name}.late"],
    ]


@pytest.mark.parametrize(("answer", "code", "policy"), [("n", 1, "delete"), ("y", 0, "compact")])
def test_on_a_terminal_consent_is_asked_for(document, answer, code, policy):
    name, flags = document
    (made,) = together([["topics", "apply", *flags, "--sources", "1"]])
    assert made.code == 0
    terminal, stdin = pty.openpty()
    os.write(terminal, f"{answer}\n".encode())
    command = [COMMAND, "topics", "apply", *flags, "--envelope", "upsert"]
    ran = subprocess.run(
        command, stdin=stdin, capture_output=True, text=True, timeout=60, env=environment(), check=False
    )
    os.close(stdin)
    os.close(terminal)
    assert ran.returncode == code
    assert f"the topic {name}.matches has cleanup.policy=delete, and should have compact\nChange them? " in ran.stderr
    (checked,) = together([["topics", "check", *flags, "--envelope", "upsert"]])
    assert [record["found"] for record in checked.records] == [policy] * code


def test_a_worker_is_told_what_it_cannot_run_with(kafka, document):
    name, (_, file, *_) = document
    fleet = load_fleet(file, {"bootstrap": kafka.bootstrap})
    admin = connect(fleet, DEADLINE_S)
    with pytest.raises(FleetError, match=rf"{name}-a is missing; .*{name}\.arcs is missing ") as caught:
        check_topics(admin, fleet)
    assert "arcfleet topics apply" in caught.value.fix
    (made,) = together([["topics", "apply", *document[1], "--sources", "2"]])
    assert made.code == 0
    assert check_topics(admin, fleet).partitions == 2


def test_a_broker_out_of_reach_is_a_failure_of_the_system(tmp_path):
    file = tmp_path / "fleet.yaml"
    file.write_text("fleet: f\nbootstrap: 127.0.0.1:1\nstart_deadline: 1s\nsources: [{topic: t}]\n", encoding="utf-8")
    (ran,) = together([["topics", "check", "--fleet", file]])
    assert ran.code == 3
    assert "no broker answered at 127.0.0.1:1 within 1 s: " in ran.err
    assert "Connection refused" in ran.err


def test_a_fleet_without_a_broker_is_bad_input():
    (ran,) = together([["topics", "check"]])
    assert ran.code == 1
    assert "names no broker" in ran.err


@pytest.mark.parametrize("flags", [["-X", "linger.ms"], ["-X", "group.id=x"], ["--envelope", "x"], ["--sources", "0"]])
def test_a_flag_that_cannot_be_is_a_usage_error(flags):
    (ran,) = together([["topics", "plan", "--bootstrap", "127.0.0.1:1", *flags]])
    assert ran.code == 2


def test_settings_are_printed_with_their_origins_and_without_secrets(tmp_path):
    file = tmp_path / "fleet.yaml"
    file.write_text("fleet: f\nunit: us\nkafka: {sasl.password: sesame}\nsources: [{topic: t}]\n", encoding="utf-8")
    ran = arcfleet("config", "print", "--fleet", file, "--start-deadline", "2m", ARCFLEET_DELIVERY="at_least_once")
    assert ran.code == 0
    told = {record["name"]: (record["value"], record["origin"]) for record in map(json.loads, ran.out.splitlines())}
    assert told["fleet"] == ("f", f"{file}:1:8")
    assert told["bootstrap"] == (None, "default")
    assert told["kafka.sasl.password"] == ("***", f"{file}:3:24")
    assert told["delivery"] == ("at_least_once", "ARCFLEET_DELIVERY")
    assert told["start_deadline"] == ("120s", "--start-deadline")
    assert told["commit_interval"] == ("0.1s", "default")
    assert told["limits.max_keys"] == (10_000_000, "default")
    assert told["sources.0.topic"] == ("t", f"{file}:4:19")
    (shown,) = together([["config", "print", "--fleet", file, "-o", "table"]])
    assert "sesame" not in ran.out + shown.out
    assert len(shown.out.splitlines()) == len(told) + 1
