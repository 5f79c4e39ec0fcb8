"""Bad input to `arcfleet`: exit 1 with file, line, column, what and how to fix it, never a traceback."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.automata import arc, arc_change, arc_removal, automaton, event, punctuation
from support.commands import COMMAND, Ran, arcfleet, environment, together, write_tape

GOOD: list[dict[str, Any]] = [event("e1", 1, 1), event("e2", 2, 2)]
DEEP = 3_000

# `¦` marks the column that is named; it is taken out before the line is written.
BAD_LINES = {
    "broken": ("¦broken", "not JSON"),
    "cut off": ('{"key":"k","ts":1¦', "not JSON"),
    "two objects": ('{"key":"k","ts":1} ¦{}', "not JSON"),
    "single quotes": ("{¦'key':'k'}", "not JSON"),
    "a control character": ('{"key":"a¦\x01b","ts":1}', "not JSON"),
    "not an object": ("¦[1, 2]", "must be a mapping"),
    "a number": ("¦5", "must be a mapping"),
    "null": ("¦null", "must be a mapping"),
    "unknown op": ('{"op":¦"upsert","key":"k","ts":1}', "unknown op `upsert`"),
    "op is a number": ('{"op":¦5}', "`op` must be a text"),
    "op is null": ('{"op":¦null,"key":"k","ts":1}', "`op` must be a text"),
    "no key": ('¦{"id":"e","ts":1}', "needs `key`"),
    "key is a number": ('{"id":"e", "key": ¦5, "ts":1}', "`key` must be a text"),
    "key is null": ('{"id":"e", "key": ¦null, "ts":1}', "`key` must be a text"),
    "no ts": ('  ¦{"id":"e","key":"k"}', "needs `ts`"),
    "ts is a text": ('{"key":"k","ts":¦"1"}', "`ts` must be an integer"),
    "ts is a float": ('{"key":"k","ts":¦1.0}', "`ts` must be an integer"),
    "ts is a bool": ('{"key":"k","ts":¦true}', "`ts` must be an integer"),
    "ts above 64 bits": ('{"key":"k","ts":¦9223372036854775808}', "outside 64 bits"),
    "ts below 64 bits": ('{"key":"k","ts":¦-9223372036854775809}', "outside 64 bits"),
    "ts far outside": ('{"key":"é","ts":¦' + "9" * 3_000 + "}", "outside 64 bits"),
    "seq is a text": ('{"key":"k","ts":1,"seq":¦"7"}', "`seq` must be an integer"),
    "seq outside 64 bits": ('{"key":"k","ts":1,"seq":¦9223372036854775808}', "outside 64 bits"),
    "rev is a float": ('{"key":"k","ts":1,"rev":¦1.5}', "`rev` must be an integer"),
    "id is a number": ('{"id":¦5,"key":"k","ts":1}', "`id` must be a text"),
    "type is a list": ('{"key":"k","ts":1,"type":¦["a"]}', "`type` must be a text"),
    "data is a list": ('{"key":"k","ts":1,\t"data":¦[1]}', "`data` must be a mapping"),
    "retraction without id": ('¦{"op":"retract","key":"k","ts":1}', "needs the `id`"),
    "NaN": ('{"key":"k","ts":1,"data":{"x":¦NaN}}', "NaN is not JSON"),
    "Infinity": ('{"key":"NaN","ts":1,"data":{"x":¦-Infinity}}', "-Infinity is not JSON"),
    "half a character": ('¦{"key":"\\ud800","ts":1}', "half of a surrogate pair"),
    "too deep": ('¦{"key":"k","ts":1,"data":{"x":' + '{"x":' * 500 + "1" + "}" * 502, "max_record_depth"),
    "much too deep": ('¦{"key":"k","ts":1,"data":{"x":' + "[" * DEEP + "]" * DEEP + "}}", "max_record_depth"),
    "punctuation without ts": ('¦{"op":"punctuation"}', "needs `ts`"),
    "punctuation outside 64 bits": ('{"op":"punctuation","ts":¦9223372036854775808}', "outside 64 bits"),
    "condition": ('{"op":"punctuation","ts":1,"when":"e.x > ¦zz"}', "the name `zz`"),
    "condition of registers": ('{"op":"punctuation","ts":1,"when":"¦r.n > 1"}', "is not declared"),
    "condition over lines": ('{"op":"punctuation","ts":1,"when":"true\\rand\\r¦1"}', "needs a bool"),
    "arc of no pattern": ('¦{"op":"arc","arc":{"id":"x"}}', "needs `pattern`"),
    "arc of an unknown pattern": ('{"op":"arc","pattern":¦"q","arc":{"id":"x"}}', "is not loaded"),
    "lifetime of an unknown arc": ('{"op":"arc","pattern":"p","arc":{"id":¦"x"},"valid":[1,2]}', "no arc `x`"),
    "retraction of an unknown arc": ('{"op":"arc-retract","pattern":"p","arc":{"id":¦"x"}}', "no arc `x`"),
    "arc without body or lifetime": ('{"op":"arc","pattern":"p","arc":¦{"id":"one"}}', "needs `valid`"),
    "valid is null": ('{"op":"arc","pattern":"p","arc":{"id":"one"},"valid":¦null}', "`valid` must be a list"),
    "valid is no pair": ('{"op":"arc","pattern":"p","arc":{"id":"one"},"valid":¦[1]}', "a pair"),
    "end of a lifetime": ('{"op":"arc","pattern":"p","arc":{"id":"one"},"valid":[1, ¦"x"]}', "integer or null"),
    "fence": (
        '{"op":"arc","pattern":"p","arc":{"id":"x","from":"a","to":"z","when":"e.x == \'\\ud83d\\ude00\' and ¦zz"}}',
        "the name `zz`",
    ),
    "unknown field of an arc": ('{"op":"arc","pattern":"p","arc":{"id":"x","from":"a","to":"z",¦"wen":"1"}}', "`wen`"),
    "final of a plain state": (
        '{"op":"arc","pattern":"p","arc":{"id":"x","from":"a","to":"b","final":¦true}}',
        "final",
    ),
}


@pytest.fixture(scope="module")
def alone(folder: Path, pattern: Path) -> dict[str, tuple[str, Ran]]:
    """Each bad line as the third of a tape of its own: the place that must be named, and what was said."""
    commands, places = [], []
    for number, (marked, _) in enumerate(BAD_LINES.values()):
        tape = write_tape(
            folder / f"{number}.jsonl", [*GOOD, marked.replace("¦", ""), event("e3", 3, 1), event("e4", 4, 2)]
        )
        commands.append(["replay", pattern, "--tape", tape])
        places.append(f"{tape}:3:{marked.index('¦') + 1}")
    return dict(zip(BAD_LINES, zip(places, together(commands), strict=True), strict=True))


@pytest.mark.parametrize("name", BAD_LINES)
def test_a_bad_line_ends_the_run(name: str, alone: dict[str, tuple[str, Ran]]) -> None:
    place, ran = alone[name]
    assert ran.code == 1
    assert [record["events"]["last"] for record in ran.records] == ["e2"], (
        "the lines before it are processed and printed"
    )
    said = ran.err.splitlines()
    assert said[0].startswith(f"{place}: error: ")
    assert BAD_LINES[name][1] in said[0]
    assert [line for line in said if line.startswith("  fix: ")], ran.err


def test_with_skip_bad_the_rest_goes_on(folder: Path, pattern: Path) -> None:
    lines = [marked.replace("¦", "") for marked, _ in BAD_LINES.values()]
    # Padding, so that line 100 is bad: `:100:` must not become a picture.
    tape = write_tape(folder / "all.jsonl", [*lines, *["{}"] * (105 - len(lines)), *GOOD])
    ran = arcfleet("replay", pattern, "--tape", tape, "--skip-bad", "--stats")
    assert ran.code == 0
    assert [record["events"]["last"] for record in ran.records] == ["e2"]
    *skipped, _ = ran.err.splitlines()
    columns = [marked.index("¦") + 1 for marked, _ in BAD_LINES.values()] + [1] * (105 - len(lines))
    for line, (number, column) in zip(skipped, enumerate(columns, 1), strict=True):
        assert line.startswith(f"skipped: {tape}:{number}:{column}: ")
    assert ran.stats["bad"] == 105


def test_bytes_that_are_no_text(folder: Path, pattern: Path) -> None:
    tape = folder / "bytes.jsonl"
    tape.write_bytes(b'{"key":"\xc3\xa9","ts":1}\n{"key":"\xc3\xa9\xff","ts":1}\n')
    (ran,) = together([["replay", pattern, "--tape", tape]])
    assert ran.code == 1
    assert ran.err.startswith(f"{tape}:2:10: error: not UTF-8")


def test_a_bad_line_from_a_pipe(pattern: Path) -> None:
    ran = arcfleet("replay", pattern, "--tape", "-", stdin="\n".join([*map(json.dumps, GOOD), "broken", "second"]))
    assert ran.code == 1
    assert len(ran.records) == 1
    assert ran.err.startswith("<stdin>:3:1: error: not JSON")
    assert "second" not in ran.err


def test_the_mark_stands_below_the_place(folder: Path, pattern: Path) -> None:
    wide = '{"key":"' + "é\U0001f600\t".replace("\t", " ") * 60 + '","ts":"x"}'
    short, long = (
        write_tape(folder / f"mark{n}.jsonl", [line]) for n, line in enumerate(['{"key":"k","ts":"x"}', wide])
    )
    for ran, line in zip(
        together([["replay", pattern, "--tape", tape] for tape in (short, long)]), (None, wide), strict=True
    ):
        shown, mark = ran.err.splitlines()[1:3]
        assert shown[mark.index("^") :].startswith('"x"}'), line


def test_arc_records_that_close_a_cycle(folder: Path) -> None:
    document = folder / "epsilon.json"
    document.write_text(json.dumps(automaton(arc("in", "a", "b"), arc("on", "b", "z", epsilon=True))))
    tape = write_tape(
        folder / "cycle.jsonl", [arc_change(arc("back", "z", "b", epsilon=True)), arc_removal("on"), arc_removal("on")]
    )
    (ran,) = together([["replay", document, "--tape", tape, "--skip-bad"]])
    assert ran.code == 0
    cycle, unknown = ran.err.splitlines()
    assert re.search(r"cycle\.jsonl:1:\d+: it would close a cycle of epsilon arcs", cycle)
    assert re.search(r"cycle\.jsonl:3:\d+: the pattern `p` has no arc `on`", unknown)


DOCUMENTS = {
    "empty": ("¦", "an empty pattern file"),
    "only comments": ("¦# nothing\n", "an empty pattern file"),
    "start": ("pattern: q\nstart: ¦x\nfinal: [b]\narcs: [{id: i, from: a, to: b}]\n", "no arc names the start state"),
    "final": (
        "pattern: q\nstart: a\nfinal: [b, ¦x]\narcs: [{id: i, from: a, to: b}]\n",
        "no arc names the final state",
    ),
    "no final": ("¦pattern: q\nstart: a\narcs: [{id: i, from: a, to: b}]\n", "no final state"),
    "cycle": (
        "pattern: q\nstart: a\nfinal: [b]\narcs: [{id: i, from: a, to: b}, ¦{id: l, from: b, to: b, epsilon: true}]\n",
        "a cycle of epsilon arcs",
    ),
    "unknown field": (
        "pattern: q\nstart: a\nfinal: [b]\n¦witin: 5\narcs: [{id: i, from: a, to: b}]\n",
        "no field `witin`",
    ),
    "not YAML": ("pattern: ¦@\n", "not YAML"),
    "expression": ("pattern: q\nstart: a\nfinal: [b]\narcs:\n- {id: i, from: a, to: b, when: 'e.x > ¦zz'}\n", "`zz`"),
}


def test_bad_documents(folder: Path) -> None:
    commands, places = [], []
    for number, (marked, _) in enumerate(DOCUMENTS.values()):
        file = folder / f"{number}.yaml"
        file.write_text(marked.replace("¦", ""))
        before = marked[: marked.index("¦")]
        places.append(f"{file}:{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}")
        commands += [["replay", file, "--tape", os.devnull], ["explain", file], ["graph", file]]
    ran = together(commands)
    for place, (name, (_, what)), said in zip(
        places, DOCUMENTS.items(), zip(*[iter(ran)] * 3, strict=True), strict=True
    ):
        assert len(set(said)) == 1, "every command says the same"
        assert (said[0].code, said[0].out) == (1, ""), name
        assert said[0].err.startswith(f"{place}: error: "), name
        assert what in said[0].err.splitlines()[0]
        assert "\n  fix: " in said[0].err


def test_files_that_are_not_there(folder: Path, pattern: Path) -> None:
    tape = write_tape(folder / "good.jsonl", GOOD)
    missing = folder / "missing"
    commands = [
        (["replay", missing, "--tape", tape], missing),
        (["replay", folder, "--tape", tape], folder),
        (["replay", pattern, "--tape", missing], missing),
        (["replay", pattern, "--tape", folder], folder),
        (["explain", missing], missing),
        (["graph", missing], missing),
    ]
    for (_, named), ran in zip(commands, together(arguments for arguments, _ in commands), strict=True):
        assert (ran.code, ran.out) == (1, "")
        assert ran.err.startswith(f"{named}:1:1: error: cannot be read: ")
        assert "\n  fix: " in ran.err


def measured(arguments: list[str | Path]) -> tuple[Ran, float]:
    """A run and the most megabytes that it held."""
    with subprocess.Popen(
        [COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    ) as process:
        assert process.stdout
        assert process.stderr
        out, err = process.stdout.read(), process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return Ran(process.returncode, out.decode(), err.decode()), usage.ru_maxrss / 1024


def test_a_line_of_100_megabytes(folder: Path, pattern: Path) -> None:
    tape = folder / "huge.jsonl"
    with tape.open("wb") as opened:
        opened.write(json.dumps(GOOD[0]).encode() + b'\n{"id":"')
        for _ in range(100):
            opened.write(b"x" * 1_000_000)
        opened.write(b'"}\n' + json.dumps(GOOD[1]).encode() + b"\n")
    _, usual_megabytes = measured(["replay", pattern, "--tape", os.devnull])
    for more, code, lasts in (([], 1, []), (["--skip-bad"], 0, ["e2"])):
        ran, megabytes = measured(["replay", pattern, "--tape", tape, *more])
        assert (ran.code, [record["events"]["last"] for record in ran.records]) == (code, lasts)
        assert re.search(
            r"huge\.jsonl:2:4194305: (error: )?a line of more than 4,194,304 bytes \(max_record_bytes\)", ran.err
        )
        assert "fix: " in ran.err
        assert len(ran.err) < 1_000
        assert megabytes < usual_megabytes + 40
    tape.unlink()


def test_a_pattern_file_of_100_megabytes(folder: Path) -> None:
    file = folder / "huge.yaml"
    with file.open("wb") as opened:
        opened.truncate(100_000_000)
    ran, _ = measured(["explain", file])
    assert ran.code == 1
    assert f"{file}:1:1: error: a pattern file of more than 1,048,576 bytes" in ran.err


def test_an_empty_tape_is_fine(pattern: Path, folder: Path) -> None:
    nothing, only_punctuation = together(
        [
            ["replay", pattern, "--tape", write_tape(folder / "empty.jsonl", [])],
            ["replay", pattern, "--tape", write_tape(folder / "mark.jsonl", [punctuation(5)]), "--emit", "changes"],
        ]
    )
    assert (nothing.code, nothing.out, nothing.err) == (0, "", "")
    assert only_punctuation.records == [{"op": "punctuation", "pattern": "p", "ts": 5}]
