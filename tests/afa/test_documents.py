"""Pattern documents: what is read, and every refusal at its line and column.

In the texts below `¦` marks the place that the error must name; it is taken out before the text is read.
"""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from afa import PatternError, load_patterns
from afa.document import parse_patterns
from afa.durations import FleetUnit
from afa.expression import Type
from afa.pattern import CountWindow, Lifetime, Pattern, TimeWindow
from afa.source_text import MAX_DOCUMENT_BYTES, MAX_DOCUMENT_DEPTH

HEAD = "pattern: q1\nstart: a\nfinal: [b]\n"
ARCS = "arcs:\n  - {id: x, from: a, to: b}\n"


def read(text: str) -> Pattern:
    ((pattern, _),) = parse_patterns(text, "q.yaml")
    return pattern


def refused(marked: str) -> PatternError:
    """The error of the text without its mark, which must be the error's place."""
    text = marked.replace("¦", "")
    before = marked[: marked.index("¦")]
    with pytest.raises(PatternError) as caught:
        parse_patterns(text, "q.yaml")
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    assert str(caught.value.place) == f"q.yaml:{line}:{column}", caught.value
    return caught.value


def arcs(*lines: str) -> str:
    return HEAD + "arcs:\n" + "".join(f"  {line}\n" for line in lines)


# --- where expressions stand


@pytest.mark.parametrize(
    "marked",
    [
        arcs("- {id: x, from: a, to: b, when: e.x > ¦zz}"),
        arcs("- id: x", "  from: a", "  to: b", "  when: e.x > 1 and ¦zz  # why"),
        arcs("- {id: x, from: a, to: b, when: 'e.x == ''it''''s é'' and ¦zz'}"),
        arcs(r'- {id: x, from: a, to: b, when: "e.x == \"\x41\u00e9\U0001F600\t\\t\" and ¦zz"}'),
        arcs(r'- {id: x, from: a, to: b, when: "e.x == \"\ud83d\ude00\" and ¦zz"}'),
        arcs("- id: x", "  from: a", "  to: b", "  when: |", "    e.x > 1", "      and (", "", "    e.y or ¦zz)"),
        arcs("- id: x", "  from: a", "  to: b", "  when: |-  # strip", "", "     e.x > 1 and", "     ¦zz"),
        arcs("- id: x", "  from: a", "  to: b", "  when: |+2", "    e.x >", "      ¦zz", ""),
        arcs("- {id: x, from: a, to: b, when: ¦5}"),
        arcs("- {id: x, from: a, to: b, when: ¦zz}"),
        arcs("- {id: x, from: a, to: b, set: {n: 1, ¦m: 2}}").replace("arcs:", "registers: {n: 0}\narcs:"),
        arcs("- {id: x, from: a, to: b, set: {n: 'r.n + ¦zz'}}").replace("arcs:", "registers: {n: 0}\narcs:"),
        arcs("- {id: x, from: a, to: b, epsilon: true, when: 'r.n > 0 and ¦e.x > 0'}").replace(
            "arcs:", "registers: {n: 0}\narcs:"
        ),
    ],
)
def test_places_inside_expressions(marked: str) -> None:
    refused(marked)
    refused(marked.replace("\n", "\r\n"))


@pytest.mark.parametrize(
    "marked",
    [
        arcs("- id: x", "  from: a", "  to: b", "  when: >", "    e.x > 1", "    and ¦zz"),
        arcs("- id: x", "  from: a", "  to: b", "  when: >-  # fold", "", "    e.x > 1", "      and", "", "    (¦zz)"),
        arcs("- id: x", "  from: a", "  to: b", "  when: e.x > 1", "    and", "", "     ¦zz  # why"),
        arcs("- id: x", "  from: a", "  to: b", '  when: "e.x > 1', '    and ¦zz"'),
        arcs("- id: x", "  from: a", "  to: b", r'  when: "e.x == \"\u00e9\t\ y\" \\'[:-1], r"    and ¦zz", '   == 1"'),
        arcs("- id: x", "  from: a", "  to: b", "  when: 'e.x == ''it''''s'' and", "    ¦zz'"),
    ],
)
def test_places_in_texts_whose_lines_are_joined(marked: str) -> None:
    """A line end and the white space around it are one space in the text: what is none stands in the same order."""
    refused(marked)
    refused(marked.replace("\n", "\r\n"))


def test_places_in_json_with_tabs_and_escapes() -> None:
    refused(
        '{\n\t"pattern":\t"q1",\n\t"start": "a", "final": ["b"],\n'
        '\t"arcs": [\t{"id": "x", "from": "a", "to": "b",\t"when": "e.x == \'\\ud83d\\ude00\\/\' and ¦zz"}]\n}\n'
    )


def test_an_alias_answers_with_its_anchor() -> None:
    for written in ("'e.x > ¦zz'", '"e.x > ¦zz"', "e.x > ¦zz"):
        refused(arcs(f"- {{id: x, from: a, to: b, when: &w {written} }}", "- {id: y, from: a, to: b, when: *w}"))
    refused(arcs("- id: x", "  from: a", "  to: b", "  when: &w |", "    e.x > ¦zz"))


def test_the_hint_comes_from_declared_events() -> None:
    events = "events: {stock: {price: float, at: {floor: int}}}\n"
    error = refused(HEAD + events + "arcs:\n  - {id: x, from: a, to: b, when: 'e.ts > 0 and ¦e.prise > 9'}\n")
    assert error.fix == "did you mean `e.price`?"


# --- every refusal at its place


REFUSALS = {
    "not a mapping": ("¦- a\n", "must be a mapping"),
    "a text": ("¦hello\n", "must be a mapping"),
    "no name": ("¦start: a\n", "needs `pattern`"),
    "name is a number": ("pattern: ¦5\n", "must be a text"),
    "name is null": ("pattern:¦\n", "must be a text"),
    "name is empty": ("pattern: ¦''\n", "1 to 255"),
    "name with a slash": ("pattern: a¦/b\n", "must not contain"),
    "name with @": ("pattern: 'a¦@2'\n", "must not contain"),
    "name with a control": ('pattern: "a¦\\nb"\n', "must not contain"),
    "half a character in a name": ('pattern: "a\\ud83d\\ude00¦\\ud800b"\n', "must not contain"),
    "half a character in a register": (HEAD + 'registers: {s: ¦"\\udfff"}\n' + ARCS, "half of a surrogate pair"),
    "half a character in a fence": (arcs('- {id: x, from: a, to: b, when: "e.x == \'¦\\ud800\'"}'), "surrogate pair"),
    "name with !": ("pattern: ¦'!p'\n", "must not begin"),
    "name too long": ("pattern: ¦" + "x" * 256 + "\n", "1 to 255"),
    "query option": (HEAD + "¦absence: window_end\n" + ARCS, "belongs to queries"),
    "timeouts": (HEAD + "¦timeouts: true\n" + ARCS, "belongs to queries"),
    "encoding": (HEAD + "¦encoding: verbose\n" + ARCS, "belongs to queries"),
    "output earliest_maximal": (HEAD + "output: ¦earliest_maximal\n" + ARCS, "belongs to queries"),
    "output unknown": (HEAD + "output: ¦everything\n" + ARCS, "`output` is"),
    "no start": ("¦pattern: q1\nfinal: [b]\n" + ARCS, "needs `start`"),
    "no arcs": ("¦" + HEAD, "needs `arcs`"),
    "arcs is a mapping": (HEAD + "arcs: ¦{id: x}\n", "must be a list"),
    "no arc at all": ("pattern: q1\nstart: ¦a\nfinal: [b]\narcs: []\n", "no arc names the start"),
    "start that no arc names": ("pattern: q1\nstart: ¦zebra\nfinal: [b]\n" + ARCS, "no arc names the start"),
    "final that no arc names": ("pattern: q1\nstart: a\nfinal: [b, ¦zebra]\n" + ARCS, "no arc names the final"),
    "no final state": ("# why\n\n¦pattern: q1\nstart: a\n" + ARCS, "no final state"),
    "empty final": ("¦pattern: q1\nstart: a\nfinal: []\n" + ARCS, "no final state"),
    "final is a text": ("pattern: q1\nstart: a\nfinal: ¦b\n" + ARCS, "must be a list"),
    "final holds a number": ("pattern: q1\nstart: a\nfinal: [¦1]\n" + ARCS, "must be a text"),
    "unknown field": (HEAD + "¦withn: 5\n" + ARCS, "has no field `withn`"),
    "merge key": (HEAD + "¦<<: {within: 5}\n" + ARCS, "has no field `<<`"),
    "field twice": ("pattern: q1\n¦pattern: q2\n", "stands twice"),
    "field twice below": (arcs("- {id: x, from: a, ¦id: y, to: b}"), "stands twice"),
    "arc without id": (arcs("- ¦{from: a, to: b}"), "an arc needs `id`"),
    "arc without target": (arcs("- ¦{id: x, from: a}"), "an arc needs `to`"),
    "arc is a text": (arcs("- ¦x"), "must be a mapping"),
    "arc id twice": (arcs("- {id: x, from: a, to: b}", "- {id: ¦x, from: b, to: b}"), "stands twice"),
    "arc with unknown field": (arcs("- {id: x, from: a, to: b, ¦wen: true}"), "has no field `wen`"),
    "state is a number": (arcs("- {id: x, from: ¦1, to: b}"), "must be a text"),
    "state is null": (arcs("- {id: x, from: ¦null, to: b}"), "must be a text"),
    "epsilon is a text": (arcs("- {id: x, from: a, to: b, epsilon: ¦yes}"), "true or false"),
    "final is a number": (arcs("- {id: x, from: a, to: b, final: ¦1}"), "true or false"),
    "when is null": (arcs("- {id: x, from: a, to: b, when:¦ }"), "an expression is a text"),
    "when is a list": (arcs("- {id: x, from: a, to: b, when: ¦[true]}"), "an expression is a text"),
    "set is a text": (arcs("- {id: x, from: a, to: b, set: ¦n}"), "must be a mapping"),
    "set without register": (arcs("- {id: x, from: a, to: b, set: {¦n: 1}}"), "is not declared"),
    "epsilon cycle": (
        HEAD + "arcs:\n  - {id: x, from: a, to: b}\n  - ¦{id: y, from: b, to: c, epsilon: true}\n"
        "  - {id: z, from: c, to: b, epsilon: true, valid: [5, 5]}\n",
        "b -> c -> b",
    ),
    "epsilon loop": (arcs("- ¦{id: x, from: a, to: a, epsilon: true}", "- {id: y, from: a, to: b}"), "a -> a"),
    "valid is null": (arcs("- {id: x, from: a, to: b, valid: ¦null}"), "a lifetime is a pair"),
    "valid of one": (arcs("- {id: x, from: a, to: b, valid: ¦[1]}"), "a lifetime is a pair"),
    "valid of three": (arcs("- {id: x, from: a, to: b, valid: ¦[1, 2, 3]}"), "a lifetime is a pair"),
    "valid with a float": (arcs("- {id: x, from: a, to: b, valid: [1, ¦2.0]}"), "integer or null"),
    "valid with a bool": (arcs("- {id: x, from: a, to: b, valid: [¦true, 2]}"), "integer or null"),
    "valid with infinity": (arcs("- {id: x, from: a, to: b, valid: [1, ¦.inf]}"), "integer or null"),
    "valid outside 64 bits": (arcs("- {id: x, from: a, to: b, valid: [¦-9223372036854775809, 1]}"), "64 bits"),
    "within is null": (HEAD + "within:¦\n" + ARCS, "`within` is empty"),
    "within is zero": (HEAD + "within: ¦0\n" + ARCS, "at least 1"),
    "within is negative": (HEAD + "within: ¦-5\n" + ARCS, "at least 1"),
    "within is a float": (HEAD + "within: ¦1.5\n" + ARCS, "whole number"),
    "within is a bool": (HEAD + "within: ¦true\n" + ARCS, "whole number"),
    "within is a list": (HEAD + "within: ¦[5]\n" + ARCS, "whole number"),
    "within without unit": (HEAD + "within: ¦'5'\n" + ARCS, "is not a duration"),
    "within of no known unit": (HEAD + "within: ¦5 weeks\n" + ARCS, "is not a duration"),
    "within of part of a unit": (HEAD + "within: ¦1.5ms\n" + ARCS, "whole number of ms"),
    "within of no events": (HEAD + "within: ¦0 events\n" + ARCS, "at least 1"),
    "within of -1 events": (HEAD + "within: ¦-1 events\n" + ARCS, "is not a duration"),
    "within outside 64 bits": (HEAD + "within: ¦9223372036854775808\n" + ARCS, "64 bits"),
    "within far outside": (HEAD + "within: ¦" + "9" * 400 + "\n" + ARCS, "64 bits"),
    "within absurd": (HEAD + "within: ¦" + "9" * 9000 + "\n" + ARCS, "64 bits"),
    "speculation is negative": (HEAD + "speculation: ¦-1\n" + ARCS, "negative"),
    "speculation in events": (HEAD + "speculation: ¦5 events\n" + ARCS, "is not a duration"),
    "speculation is null": (HEAD + "speculation: ¦null\n" + ARCS, "whole number"),
    "hold unknown": (HEAD + "hold: ¦outputs\n" + ARCS, "`hold` is"),
    "hold is a bool": (HEAD + "hold: ¦true\n" + ARCS, "must be a text"),
    "sequence unknown": (HEAD + "sequence: ¦gapfree\n" + ARCS, "`sequence` is"),
    "sources is a text": (HEAD + "sources: ¦trades\n" + ARCS, "must be a list"),
    "key is a list": (HEAD + "key: ¦[a]\n" + ARCS, "must be a text"),
    "key with an empty step": (HEAD + "key: ¦a..b\n" + ARCS, "1 to 255"),
    "key not declared": (HEAD + "events: {s: {symbol: string}}\nkey: ¦symbl\n" + ARCS, "has the field"),
    "events is a list": (HEAD + "events: ¦[s]\n" + ARCS, "must be a mapping"),
    "events of an empty type": (HEAD + "events: {s:¦ }\n" + ARCS, "must be a mapping"),
    "events of an unknown type": (HEAD + "events: {s: {x: ¦flaot}}\n" + ARCS, "is not a field type"),
    "events of a number": (HEAD + "events: {s: {x: ¦1}}\n" + ARCS, "is not a field type"),
    "registers is a list": (HEAD + "registers: ¦[n]\n" + ARCS, "must be a mapping"),
    "register is null": (HEAD + "registers: {n: ¦null}\n" + ARCS, "a register starts as"),
    "register is a list": (HEAD + "registers: {n: ¦[0]}\n" + ARCS, "a register starts as"),
    "register outside 64 bits": (HEAD + "registers: {n: ¦9223372036854775808}\n" + ARCS, "64 bits"),
    "register is infinity": (HEAD + "registers: {n: ¦.inf}\n" + ARCS, "infinity or NaN"),
    "register is NaN": (HEAD + "registers: {n: ¦.nan}\n" + ARCS, "infinity or NaN"),
    "register beyond float64": (HEAD + "registers: {n: ¦1e999}\n" + ARCS, "infinity or NaN"),
    "register is no identifier": (HEAD + "registers: {¦a-b: 0}\n" + ARCS, "not an identifier"),
    "register is a word of Python": (HEAD + "registers: {¦if: 0}\n" + ARCS, "not an identifier"),
    "tests is a mapping": (HEAD + "tests: ¦{}\n" + ARCS, "must be a list"),
    "test without tape": (HEAD + "tests: [¦{name: t, matches: []}]\n" + ARCS, "needs `tape`"),
    "test with unknown field": (HEAD + "tests: [{name: t, tape: [], matches: [], ¦match: 1}]\n" + ARCS, "no field"),
    "second document": (HEAD + ARCS + "---\n# second\npattern: q2\nstart: ¦5\n", "must be a text"),
    "field name is a list": ("? ¦[a]\n: b\n", "must be a text"),
    "tag on a number": (HEAD + "within: ¦!!int abc\n", "a YAML tag"),
    "tag on a mapping": ("¦!!python/object:os.system {pattern: q1}\n", "a YAML tag"),
    "own tag": ("pattern: ¦!mine q1\n", "a YAML tag"),
    "tab as indentation": ("pattern: q1\n¦\tstart: a\n", "not YAML"),
    "not closed": ("pattern: q1\nfinal: [a\n¦", "not YAML"),
    "colon in an expression": (arcs("- {id: x, from: a, to: b, when: e.x¦: 1}"), "not YAML"),
    "unknown alias": ("pattern: ¦*x\n", "not YAML"),
    "NUL": ("pattern: a¦\0b\n", "does not allow"),
    "empty": ("¦", "an empty pattern file"),
    "white space": ("¦\n  \n", "an empty pattern file"),
    "only comments": ("¦# one\n# two\n", "an empty pattern file"),
    "only separators": ("¦---\n---\n...\n", "an empty pattern file"),
    "only null": ("¦null\n", "an empty pattern file"),
    "too deep": ("pattern: " + "[" * (MAX_DOCUMENT_DEPTH + 1) + "¦" + "[" * 50_000, "max_document_depth"),
    "much too deep, block": ("¦" + "\n".join(" " * i + "a:" for i in range(900)), "nested too deeply"),
}  # fmt: skip


@pytest.mark.parametrize(("marked", "what"), REFUSALS.values(), ids=REFUSALS.keys())
def test_refusals(marked: str, what: str) -> None:
    error = refused(marked)
    assert what in error.what
    assert error.fix, "every refusal says how to fix it"


@pytest.mark.parametrize(
    ("marked", "fix"),
    [
        (HEAD + "¦withn: 5\n" + ARCS, "did you mean `within`?"),
        (HEAD + "¦register: {n: 0}\n" + ARCS, "did you mean `registers`?"),
        (arcs("- {id: x, from: a, to: b, ¦wen: true}"), "did you mean `when`?"),
        (HEAD + "sequence: ¦gapfree\n" + ARCS, "did you mean `gap_free`?"),
        (HEAD + "events: {s: {x: ¦flaot}}\n" + ARCS, "did you mean `float`?"),
        ("pattern: q1\nstart: ¦aa\nfinal: [b]\n" + ARCS, "did you mean `a`?"),
        ("pattern: q1\nstart: ¦zebra\nfinal: [b]\n" + ARCS, "the arcs name: a, b"),
        ("¦start: a\n", "add the field `pattern`"),
    ],
)
def test_hints(marked: str, fix: str) -> None:
    assert refused(marked).fix == fix


@pytest.mark.parametrize(
    "arc",
    [
        "{id: x, from: a, to: b, set: {n: '¦r.n / 2'}}",
        "{id: x, from: a, to: b, set: {n: ¦1.5}}",
        "{id: x, from: a, to: b, set: {n: '¦e.price'}}",
        "{id: x, from: a, to: b, set: {n: '¦max(r.n, 0.5)'}}",
    ],
)
def test_a_float_into_an_int_register_says_write_0_0(arc: str) -> None:
    top = HEAD + "registers: {n: 0}\nevents: {s: {price: float}}\narcs:\n  - "
    assert "write 0.0" in refused(top + arc + "\n").fix


# --- what bombs cost


def test_aliases_cannot_multiply() -> None:
    letters = "abcdefgh"
    bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{name}: &{name} [{', '.join([f'*{below}'] * 10)}]\n" for below, name in pairwise(letters)
    )
    for text in (bomb, "pattern: q1\nstart: &a [*a, *a]\n", "&a {pattern: *a}\n"):
        with pytest.raises(PatternError, match="max_document"):
            parse_patterns(text)


def test_an_alias_within_reason_is_fine() -> None:
    used = "".join(f"  - {{id: x{i}, from: a, to: b, when: *w, set: *s}}\n" for i in range(50))
    text = HEAD + "registers: {n: 0}\narcs:\n  - {id: x, from: a, to: b, when: &w e.x > 1, set: &s {n: r.n + 1}}\n"
    assert len({arc.body() for arc in read(text + used).arcs}) == 1


# --- what is accepted


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("2000", TimeWindow(2000)),
        ("5s", TimeWindow(5_000)),
        ("'5 s'", TimeWindow(5_000)),
        ("1.5s", TimeWindow(1_500)),
        ("12h", TimeWindow(12 * 3_600_000)),
        ("1d", TimeWindow(86_400_000)),
        ("2m", TimeWindow(120_000)),
        ("1000us", TimeWindow(1)),
        ("500 events", CountWindow(500)),
        ("1 event", CountWindow(1)),
        ("9223372036854775807", TimeWindow(2**63 - 1)),
        ("0x10", TimeWindow(16)),
    ],
)
def test_windows(text: str, window: Any) -> None:
    assert read(HEAD + f"within: {text}\n" + ARCS).window == window


@pytest.mark.parametrize(("unit", "per_ms"), [("ms", 1), ("us", 1_000), ("ns", 1_000_000)])
def test_durations_are_told_in_the_unit_of_ts_and_plain_numbers_as_they_are(
    tmp_path: Path, unit: FleetUnit, per_ms: int
) -> None:
    text = "PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) { a.x < b.x } WITHIN 10 seconds"
    documents = {
        "bare.sase": text,
        "query.yaml": f"pattern: query\nspeculation: 2s\nquery: {text}\n",
        "long.yaml": HEAD + "within: 10s\nspeculation: 500ms\n" + ARCS,
        "plain.yaml": HEAD.replace("q1", "plain") + "within: 7\nspeculation: 3\n" + ARCS,
    }
    for name, document in documents.items():
        (tmp_path / name).write_text(document)
    patterns = load_patterns(*(tmp_path / name for name in documents), unit=unit)
    lengths = [10_000 * per_ms] * 3 + [7]
    assert [pattern.window for pattern in patterns] == [TimeWindow(length, unit) for length in lengths]
    assert [pattern.speculation for pattern in patterns] == [math.inf, 2_000 * per_ms, 500 * per_ms, 3]


@pytest.mark.parametrize(
    ("text", "sigma"), [("inf", math.inf), (".inf", math.inf), ("0", 0), ("500ms", 500), ("7", 7), ("'0s'", 0)]
)
def test_speculation(text: str, sigma: float) -> None:
    assert read(HEAD + f"speculation: {text}\n" + ARCS).speculation == sigma


@pytest.mark.parametrize(
    ("text", "lifetime"),
    [
        ("[1000, null]", Lifetime(1000, math.inf)),
        ("[null, 5]", Lifetime(-math.inf, 5)),
        ("[null, ~]", Lifetime()),
        ("[5, 5]", Lifetime(5, 5)),
        ("[9, -9]", Lifetime(9, -9)),
        ("[-9223372036854775808, 9223372036854775807]", Lifetime(-(2**63), 2**63 - 1)),
    ],
)
def test_lifetimes(text: str, lifetime: Lifetime) -> None:
    assert read(arcs(f"- {{id: x, from: a, to: b, valid: {text}}}")).arcs[0].lifetime == lifetime


def test_words_that_yaml_1_1_takes_for_bools_are_names() -> None:
    pattern = read(
        "pattern: on\nstart: no\nfinal: [yes, off]\narcs: [{id: y, from: no, to: yes}, {id: n, from: n, to: off}]"
    )
    assert (pattern.name, pattern.start, pattern.finals) == ("on", "no", {"yes", "off"})


def test_numbers_as_yaml_1_2_reads_them() -> None:
    text = "registers: {a: 010, b: 1e3, c: 0o17, d: 1_000, e: 12:30, f: 2001-01-01, g: -0.0, h: True, i: +5}\n"
    initial = {register.name: register.initial for register in read(HEAD + text + ARCS).registers}
    expected = {
        "a": 10,
        "b": 1000.0,
        "c": 15,
        "d": "1_000",
        "e": "12:30",
        "f": "2001-01-01",
        "g": 0.0,
        "h": True,
        "i": 5,
    }
    assert initial == expected
    assert math.copysign(1, initial["g"]) == 1, "minus zero is zero"


def test_registers_and_events_have_types() -> None:
    pattern = read(
        HEAD + "registers: {z: 0, a: 0.0, m: true, s: ''}\n"
        "events: {one: {x: int, y: string, at: {floor: int}}, two: {x: float, y: bool, l: list}, three: {}}\n" + ARCS
    )
    assert [(register.name, register.type) for register in pattern.registers] == [
        ("a", Type.FLOAT), ("m", Type.BOOL), ("s", Type.STRING), ("z", Type.INT)
    ]  # fmt: skip
    assert pattern.fields == {
        ("x",): Type.FLOAT,  # int here and float there
        ("y",): Type.ANY,
        ("at", "floor"): Type.INT,
        ("l",): Type.LIST,
    }


def test_an_arc_may_make_its_target_final() -> None:
    assert read("pattern: q1\nstart: a\narcs: [{id: x, from: a, to: b, final: true, valid: [1, 1]}]").finals == {"b"}


def test_bare_values_are_expressions() -> None:
    arc = read(
        HEAD
        + "registers: {n: 0, f: 0.0, b: true}\n"
        + "arcs: [{id: x, from: a, to: b, when: true, set: {n: -5, f: 1e3, b: false}}]"
    ).arcs[0]
    assert (arc.fence.text, dict(arc.transfer)["n"].text) == ("true", "-5")


def test_json_is_read_as_yaml() -> None:
    document = {"pattern": "q1", "start": "a", "final": ["b"], "arcs": [{"id": "é\U0001f600/", "from": "a", "to": "b"}]}
    for indent in (None, 2, "\t"):
        assert read(json.dumps(document, indent=indent)).arcs[0].id == "é\U0001f600/"


def test_several_documents_and_files(tmp_path: Path) -> None:
    one, other = tmp_path / "one.yaml", tmp_path / "other.json"
    one.write_text(f"---\n{HEAD}{ARCS}---\n{HEAD.replace('q1', 'q2')}{ARCS}...\n---\n")
    other.write_text(
        json.dumps({"pattern": "q3", "start": "a", "final": ["b"], "arcs": [{"id": "x", "from": "a", "to": "b"}]})
    )
    assert [pattern.name for pattern in load_patterns(one, str(other))] == ["q1", "q2", "q3"]
    one.write_text(f"{HEAD}{ARCS}---\n{HEAD}{ARCS}")
    with pytest.raises(PatternError, match=r"one\.yaml:7:1: the pattern `q1` is there twice"):
        load_patterns(one)
    with pytest.raises(PatternError, match=r"other\.json:1:1: the pattern `q3` is there twice"):
        load_patterns(other, other)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.yaml", b"pattern: q1\nstart: \xff\n", "a.yaml:2:8: not UTF-8"),
        ("a.yaml", "pattern: é".encode("latin-1"), "a.yaml:1:10: not UTF-8"),
        ("a.yaml", b"\xef\xbb\xbfpattern: 5", "a.yaml:1:10: `pattern` must be a text"),
        ("a.yaml", b"\xef\xbb\xbf", "a.yaml:1:1: an empty pattern file"),
        ("a.sase", b"PATTERN SEQ(A \xff)", "a.sase:1:15: not UTF-8"),
        ("a.yaml", b"#" * (MAX_DOCUMENT_BYTES + 1), "a.yaml:1:1: a pattern file of more than"),
        ("a.yaml", None, "a.yaml:1:1: cannot be read: No such file"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(PatternError) as caught:
        load_patterns(tmp_path / name)
    assert message in str(caught.value)
    assert caught.value.fix


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(HEAD + ARCS, encoding="utf-8-sig")
    assert load_patterns(tmp_path / "a.yaml")[0].name == "q1"


@given(st.text(st.sampled_from(list("pattern:arcs{}[],-'\"|>&*!#%@ \n\t\\0.5éax")), max_size=60))
@example("%YAML 9\n---\na")
@example("!!int x")
@example("a: &a\n  <<: *a")
def test_any_text_is_patterns_or_a_pattern_error(text: str) -> None:
    error = None
    try:
        parse_patterns(text)
        parse_patterns(HEAD + text)
    except PatternError as caught:
        error = caught
    assert error is None or error.place is not None
