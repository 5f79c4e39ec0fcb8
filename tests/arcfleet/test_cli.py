"""`arcfleet replay` and its like as users run them: what they print, where, and how they end."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from support.automata import EACH, PAIR, arc, arc_change, automaton, event, punctuation, retraction
from support.commands import COMMAND, Ran, arcfleet, environment, together, write_tape

STATS_OF_THE_CONTRACT = {
    "events", "matches", "retractions", "late", "bad", "errors", "degraded_keys", "events_per_second",
    "peak_partial_matches", "condition_evaluations", "plan",
}  # fmt: skip
# A match, the late event that takes it back and gives another, a punctuation, a late record, one more match.
RECORDS: list[dict[str, Any]] = [
    event("e1", 1, 1),
    event("e3", 3, 2),
    event("e2", 2, 2),
    punctuation(3),
    event("e0", 0, 2),
    event("f1", 4, 1, key="A"),
    event("f2", 5, 2, key="A"),
]


@pytest.fixture(scope="module")
def tape(folder: Path) -> Path:
    return write_tape(folder / "tape.jsonl", RECORDS)


def told(ran: Ran) -> list[str]:
    return [
        f"{record['op']} {record['events']['first']}-{record['events']['last']}"
        if "match" in record
        else f"{record['op']} {record['ts']}"
        for record in ran.records
    ]


# --- what replay prints


def test_final_and_changes(pattern: Path, tape: Path) -> None:
    final, changes, explicit = together(
        [["replay", pattern, "--tape", tape, *more] for more in ([], ["--emit", "changes", "--json"], ["-o", "json"])]
    )
    assert (final.code, final.err) == (0, "")
    assert told(final) == ["insert f1-f2", "insert e1-e2"], "by key, start, end, id"
    assert final.records[1] == {
        "op": "insert", "match": final.records[1]["match"], "pattern": "p", "key": "k",
        "start": 1, "end": 2, "until": 11, "state": "z", "registers": {}, "events": {"first": "e1", "last": "e2"},
    }  # fmt: skip
    assert explicit == final
    assert (changes.code, changes.err) == (0, "")
    assert told(changes) == ["insert e1-e3", "retract e1-e3", "insert e1-e2", "punctuation 3", "insert f1-f2"]
    assert changes.records[1] == changes.records[0] | {"op": "retract"}
    assert changes.records[3] == {"op": "punctuation", "pattern": "p", "ts": 3}


def test_stats_are_the_last_line_of_stderr(pattern: Path, folder: Path, validate: Callable[[str, Any], None]) -> None:
    tape = write_tape(folder / "stats.jsonl", [*RECORDS, event("u", 9), "broken", retraction("e2", 2)])
    skipping, failing = together(
        [["replay", pattern, "--tape", tape, "--stats", *more] for more in (["--skip-bad"], ["--emit", "changes"])]
    )
    assert skipping.code == 0
    stats = skipping.stats
    validate("stats", stats)
    assert stats.keys() >= STATS_OF_THE_CONTRACT
    # 3 inserts, 1 retract; e0 and the retraction of e2 are late; `e.x == 1` of u is unknown.
    expected = {
        "events": 8,
        "matches": 3,
        "retractions": 1,
        "late": 2,
        "bad": 1,
        "degraded_keys": 0,
        "plan": "eager",
    }
    assert {name: stats[name] for name in expected} == expected
    assert stats["errors"] > 0
    assert stats["events_per_second"] > 0
    assert stats["condition_evaluations"] > 0
    assert failing.code == 1
    assert (failing.stats["bad"], failing.stats["late"]) == (1, 1), "what came before the bad line"
    assert failing.err.startswith(f"{tape}:9:1: error: not JSON")
    assert len(failing.records) == 5, "the lines before the bad one are processed and printed"


def test_late_records_go_to_their_file(pattern: Path, folder: Path, validate: Callable[[str, Any], None]) -> None:
    odd = '  {"id": "x",  "key":"k","ts":-5,"data":{"huge":1e999,"digits":12345678901234567890123456789}, "é": 1}'
    tape = write_tape(
        folder / "late.jsonl",
        [punctuation(3), event("e0", 0, 2), odd, arc_change({"id": "one"}, None, 2), event("e9", 9)],
    )
    (ran,) = together([["replay", pattern, "--tape", tape, "--late", folder / "late.out"]])
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    text = (folder / "late.out").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    assert [(line.keys(), line["line"]) for line in lines] == [
        ({"line", "reason", "record"}, number) for number in (2, 3, 4)
    ]
    validate("late", lines[0])
    assert lines[0]["record"] == event("e0", 0, 2)
    assert lines[0]["reason"] == "ts 0 is below the punctuation 3"
    assert odd.strip() in text, "a record is written as it came"
    assert "Infinity" not in text


def test_a_table_is_for_people_and_loses_nothing(pattern: Path, folder: Path) -> None:
    names = [
        "a long name of a key, longer than a column",
        "an event identifier that goes on and on and on",
        "[red]:100:",
    ]
    tape = write_tape(
        folder / "wide.jsonl",
        [
            event(names[1], 1_700_000_000_000, 1, key=names[0]),
            event(names[2], 1_700_000_000_001, 2, key=names[0]),
            punctuation(1_700_000_000_005),
        ],
    )
    final, changes = together(
        [["replay", pattern, "--tape", tape, "-o", "table", *more] for more in ([], ["--emit", "changes"])]
    )
    assert (final.code, final.err, changes.code, changes.err) == (0, "", 0, "")
    for shown in (*names, "1700000000000", "1700000000001", "1700000000010", "pattern", "registers"):
        assert shown in final.out
        assert shown in changes.out
    assert re.search(r"punctuation +p +1700000000005", changes.out)


def test_a_tape_from_standard_input_is_answered_line_by_line(pattern: Path) -> None:
    with subprocess.Popen(
        [COMMAND, "replay", pattern, "--tape", "-", "--emit", "changes"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(),
    ) as process:
        assert process.stdin
        assert process.stdout
        for record in RECORDS[:2]:
            process.stdin.write(json.dumps(record).encode() + b"\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["op"] == "insert", "before the tape has ended"
        process.stdin.close()
        assert process.wait(timeout=30) == 0


def test_odd_but_good_tapes(pattern: Path, folder: Path) -> None:
    lines = [json.dumps(record) for record in (event("é\U0001f600", 1, 1), event("e2", 2, 2))]
    tapes = {
        "empty": b"",
        "blank lines": b"\n  \n\r\n",
        "windows": ("\ufeff" + "\r\n\r\n".join(lines)).encode(),
        "tabs and escapes": "\t".join([lines[0].replace(",", ",\t"), "\n", lines[1]]).encode(),
        "unknown fields": ("\n".join(lines)).replace("{", '{"trace": [1, {"x": null}], ', 1).encode(),
    }  # fmt: skip
    for name, content in tapes.items():
        (folder / f"odd {name}.jsonl").write_bytes(content)
    ran = together([["replay", pattern, "--tape", folder / f"odd {name}.jsonl"] for name in tapes])
    assert [(one.code, one.err) for one in ran] == [(0, "")] * len(tapes)
    assert [len(one.records) for one in ran] == [0, 0, 1, 1, 1]
    assert "é\U0001f600" in ran[2].out, "text as it is, whatever the locale"


def test_several_patterns_and_files(folder: Path, tape: Path) -> None:
    (folder / "two.yaml").write_text(
        json.dumps(EACH | {"pattern": "z"}) + "\n---\n" + json.dumps(EACH | {"pattern": "b"})
    )
    (folder / "one.yaml").write_text(json.dumps(PAIR | {"pattern": "m"}))
    (ran,) = together([["replay", folder / "two.yaml", folder / "one.yaml", "--tape", tape, "--emit", "changes"]])
    assert ran.code == 0
    assert [record["pattern"] for record in ran.records if record["op"] == "punctuation"] == ["b", "m", "z"]


# --- settings


def test_settings_override_the_document(folder: Path, tape: Path) -> None:
    document = folder / "set.json"
    document.write_text(json.dumps(PAIR | {"speculation": 0, "hold": "output"}))
    everything = ["insert e1-e3", "retract e1-e3", "insert e1-e2", "punctuation 3", "insert f1-f2"]
    runs = {
        (): ["insert e1-e2", "punctuation 3"],
        ("--speculation", "inf"): ["insert e1-e2", "punctuation 3"],  # held until 3
        ("--hold", "none", "--speculation", "inf"): everything,
        ("--hold", "none", "--speculation", "2ms"): ["insert e1-e2", "punctuation 3"],
        # Released below 3 + 3: the 2 at ts 5 too.
        ("--hold", "none", "--speculation", "3"): ["insert e1-e2", "punctuation 3", "insert f1-f2"],
        # No event has a seq, so nothing is adjacent until the punctuation has passed it.
        ("--hold", "none", "--speculation", "inf", "--sequence", "gap_free"): ["insert e1-e2", "punctuation 3"],
    }  # fmt: skip
    ran = together([["replay", document, "--tape", tape, "--emit", "changes", *more] for more in runs])
    assert {more: told(one) for more, one in zip(runs, ran, strict=True)} == runs


def test_what_is_not_there_yet_is_refused(pattern: Path, tape: Path, folder: Path) -> None:
    usage = {
        ("--plan", "lazy"): "--plan lazy is not there yet",
        ("--limit", "max_keys=0"): "NAME=N",
        ("--limit", "max_record_bytes=0"): "NAME=N",
        ("--limit", "max_record_bytes=" + "9" * 30): "NAME=N",
        ("--limit", "nonsense"): "NAME=N",
        ("--speculation", "soon"): "not a duration",
        ("--speculation=-1",): "not a duration",
        ("--hold", "everything"): "everything",
        ("--emit", "some"): "some",
        ("--nonsense",): "--nonsense",
    }
    ran = together([["replay", pattern, "--tape", tape, *more] for more in usage])
    for (more, what), one in zip(usage.items(), ran, strict=True):
        assert (one.code, one.out) == (2, ""), more
        assert what in " ".join(one.err.replace("│", " ").split()), one.err


def test_limit_on_the_length_of_a_record(pattern: Path, folder: Path) -> None:
    record = json.dumps(event("e1", 1))
    tape = write_tape(folder / "limit.jsonl", [record, record + " "])
    fitting, failing = together(
        [["replay", pattern, "--tape", tape, "--limit", f"max_record_bytes={len(record) + more}"] for more in (1, 0)]
    )
    assert (fitting.code, fitting.err) == (0, "")
    assert failing.code == 1
    assert f"{tape}:2:{len(record) + 1}: error: a line of more than {len(record)} bytes" in failing.err


# --- endings


def test_late_records_never_overwrite_what_is_read(pattern: Path, tape: Path) -> None:
    for late in (pattern, tape, "-"):
        before = (pattern.read_text(), tape.read_text())
        ran = arcfleet("replay", pattern, "--tape", tape, "--late", late)
        assert ran.code == 2
        assert "--late" in ran.err
        assert (pattern.read_text(), tape.read_text()) == before


def test_without_a_standard_input_there_is_a_message(pattern: Path) -> None:
    command = ["sh", "-c", f"'{COMMAND}' replay '{pattern}' --tape - <&-"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "standard input is closed" in done.stderr


def test_without_a_standard_output_there_is_a_message() -> None:
    done = subprocess.run(["sh", "-c", f"'{COMMAND}' --version >&-"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (3, "")
    assert "standard output is closed" in done.stderr


def test_a_closed_pipe_ends_quietly(pattern: Path, folder: Path, tape: Path) -> None:
    document = folder / "each.json"
    document.write_text(json.dumps(EACH))
    long = write_tape(
        folder / "long.jsonl",
        (record for ts in range(0, 20_000, 20) for record in (event(f"e{ts}", ts), punctuation(ts))),
    )
    commands = (
        ["replay", document, "--tape", long, "--emit", "changes"],
        ["replay", pattern, "--tape", tape],
        ["replay", pattern, "--tape", tape, "-o", "table"],
        ["graph", pattern],
        ["--version"],
    )
    started = [
        subprocess.Popen([COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
        for arguments in commands
    ]
    for process, arguments in zip(started, commands, strict=True):
        assert process.stdout
        if "changes" in arguments:
            assert process.stdout.readline(), "as `head -1` does"
        process.stdout.close()
    for process, arguments in zip(started, commands, strict=True):
        assert process.stderr
        with process:
            assert (process.stderr.read(), process.wait(timeout=30)) == (b"", 0), arguments


def test_the_system_failed(pattern: Path, tape: Path, folder: Path) -> None:
    (late,) = together([["replay", pattern, "--tape", tape, "--late", folder / "[/no]such" / "file"]])
    assert (late.code, late.out) == (3, "")
    assert "No such file or directory" in late.err
    assert "[/no]such" in late.err
    if Path("/dev/full").exists():
        with Path("/dev/full").open("wb") as full:
            done = subprocess.run(
                [COMMAND, "replay", pattern, "--tape", tape],
                stdout=full,
                stderr=subprocess.PIPE,
                env=environment(),
                check=False,
            )
        assert done.returncode == 3
        assert b"No space left" in done.stderr
        assert b"Traceback" not in done.stderr


def on_a_terminal(arguments: list[str | Path], stdout: Path | None = None, **env: str) -> str:
    """What the command writes to a terminal, stdout (but where it goes to a file) and stderr together."""
    ours, theirs = pty.openpty()
    with ExitStack() as stack:
        to = stack.enter_context(stdout.open("wb")) if stdout else theirs
        environ = environment(TERM="xterm-256color", **env)
        process = stack.enter_context(
            subprocess.Popen([COMMAND, *arguments], stdin=theirs, stdout=to, stderr=theirs, env=environ)
        )
        os.close(theirs)
        written = b""
        try:
            while part := os.read(ours, 65_536):
                written += part
        except OSError:  # how Linux says that the other end is closed
            pass
        process.wait(timeout=30)
    os.close(ours)
    return written.decode()


def test_no_color(pattern: Path, folder: Path, tape: Path) -> None:
    color = re.compile(r"\x1b\[[0-9;]*(?:3|4|9)[0-7]")
    failing = ["replay", pattern, "--tape", write_tape(folder / "bad.jsonl", ["broken"])]
    table = ["replay", pattern, "--tape", tape, "-o", "table", "--emit", "changes"]
    assert color.search(on_a_terminal(failing))
    assert not color.search(on_a_terminal(failing, NO_COLOR="1") + on_a_terminal(table, NO_COLOR="1"))
    assert not [ran for ran in together([failing, table]) if "\x1b" in ran.out + ran.err], "nor but on a terminal"
    shown = on_a_terminal(["replay", pattern, "--tape", tape])
    told = [json.loads(line) for line in re.findall(r"\{.*\}", shown)]
    assert [record["op"] for record in told] == ["insert", "insert"], "JSON on a terminal too"


def test_a_progress_bar_only_on_a_terminal_and_not_between_the_data(pattern: Path, folder: Path) -> None:
    tape = write_tape(folder / "bar.jsonl", [*RECORDS, *(event(f"n{ts}", ts) for ts in range(100, 600))])
    arguments = ["replay", pattern, "--tape", tape]
    (plain,) = together([arguments])
    assert plain.err == ""
    assert "replaying" in on_a_terminal(arguments, folder / "bar.out")
    assert (folder / "bar.out").read_text() == plain.out
    assert "replaying" in on_a_terminal(arguments), "what is printed at the end is not in its way"
    assert "replaying" not in on_a_terminal([*arguments, "--emit", "changes"])


# --- help and the like


def test_help_shows_examples() -> None:
    commands = ("replay", "explain", "graph", "schema")
    *helped, short, top, nothing = together(
        [*([name, "--help"] for name in commands), ["schema", "-h"], ["--help"], []]
    )
    for name, ran in zip(commands, helped, strict=True):
        assert (ran.code, ran.err) == (0, "")
        assert "Examples" in ran.out
        assert f"arcfleet {name} " in ran.out.partition("Examples")[2]
    assert short == helped[-1]
    assert (top.code, nothing.code) == (0, 2)
    assert all(name in top.out for name in commands)


def test_version_and_completion() -> None:
    ran = arcfleet("--version")
    assert (ran.code, ran.out, ran.err) == (0, f"arcfleet {version('arcfleet')}\n", "")
    for shell in ("bash", "zsh"):
        script = arcfleet(_ARCFLEET_COMPLETE=f"source_{shell}")
        assert script.code == 0
        assert "_ARCFLEET_COMPLETE" in script.out
    offered = arcfleet(_ARCFLEET_COMPLETE="complete_bash", COMP_WORDS="arcfleet re", COMP_CWORD="1")
    assert offered.out.split() == ["replay"]


def test_usage_errors() -> None:
    for ran in together(
        [["nonsense"], ["replay"], ["schema", "nonsense"], ["replay", "x.yaml"], ["graph", "--format", "png", "x"]]
    ):
        assert (ran.code, ran.out) == (2, "")
        assert "Error" in ran.err


def test_explain_checks_and_tells(folder: Path, pattern: Path) -> None:
    bad = folder / "unknown.yaml"
    bad.write_text(f"{json.dumps(automaton(arc('x', 'a', 'z', 'e.x > zz')))}\n")
    words, facts, failed = together([["explain", pattern], ["explain", pattern, "--json"], ["explain", bad]])
    assert (words.code, words.err, facts.code, facts.err) == (0, "", 0, "")
    assert "pattern p" in words.out
    assert facts.records[0]["pattern"] == "p"
    assert (failed.code, failed.out) == (1, "")
    column = bad.read_text().index("zz") + 1
    assert failed.err.startswith(f"{bad}:1:{column}: error: the name `zz` is not known")
    shown, mark = failed.err.splitlines()[1:3]
    assert mark.index("^") == shown.index("zz"), "the mark stands below the place"
