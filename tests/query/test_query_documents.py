"""Queries in documents and in files of their own: every mistake at its place in the file, every option checked.

In the texts below `¦` marks the place that the error must name; it is taken out before the text is read.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from afa import PatternError, load_patterns
from afa.document import parse_patterns
from afa.pattern import TimeWindow

QUERY = "PATTERN SEQ(A a, {B b, C+ c[]}) WHERE skip_till_any_match(a, b, c[]) { [k] } WITHIN 1 hour"
PLAIN = "PATTERN SEQ(A a) WHERE skip_till_any_match(a) { [k] } WITHOUT WINDOW"


def refused(marked: str) -> PatternError:
    text, before = marked.replace("¦", ""), marked[: marked.index("¦")]
    with pytest.raises(PatternError) as caught:
        parse_patterns(text, "q.yaml")
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    assert str(caught.value.place) == f"q.yaml:{line}:{column}", caught.value
    assert caught.value.fix
    return caught.value


def document(*options: str, query: str = QUERY) -> str:
    return "\n".join(["pattern: q", f"query: {query}", *options, ""])


def test_a_good_query_is_an_automaton_with_its_options() -> None:
    options = "output: earliest_maximal\ntimeouts: true\nabsence: speculative\nhold: output\nspeculation: 5s\n"
    options += "encoding: compressed\n"
    [(pattern, place)] = parse_patterns(f"pattern: q\nquery: |\n  {QUERY}\n{options}", "q.yaml")
    assert str(place) == "q.yaml:1:1"
    assert (pattern.name, pattern.window) == ("q", TimeWindow(3_600_000))
    assert (pattern.output, pattern.hold_output, pattern.speculation) == ("earliest_maximal", True, 5000)
    assert pattern.query is not None
    assert (pattern.query.timeouts, pattern.query.absence, pattern.query.compressed) == (True, "speculative", True)
    assert pattern.query.variables == ("a", "b", "c")


HEAD = "pattern: q\nquery: "
ONE = "WHERE strict_contiguity(a) {"
PLACES = {
    "block": f"{HEAD}|\n  PATTERN SEQ(A a)\n  {ONE}\n    a.x = 1\n    AND ¦z.x = 1 }}\n",
    "block with comments": f"{HEAD}|-\n    -- é\n\n    PATTERN SEQ(A a) /* x\n      y */ WHERE ¦nope(a) {{ }}\n",
    "block that ends early": f"{HEAD}|\n  PATTERN SEQ(A a)¦\n\n",
    "plain": f"{HEAD}PATTERN SEQ(A a) ¦HERE\n",
    "plain lines": f"{HEAD}PATTERN SEQ(A a)\n    {ONE} a.x = 1\n  AND ¦z.x = 1 }}\n",
    "folded": f"{HEAD}>\n  PATTERN SEQ(A a)\n  {ONE} a.x = 1\n  AND ¦z.x = 1 }}\n",
    "folded that ends early": f"{HEAD}>\n  PATTERN\n  SEQ(A a)¦\n",
    "folded, and nothing more": f"{HEAD}¦>",
    "single quotes": f"{HEAD}'PATTERN SEQ(''A b'' a) {ONE} a.x = ''é'' and ¦b.x = 1 }}'\n",
    "double quotes": f'{HEAD}"PATTERN SEQ(A\\ta)\\n{ONE} \\"\\u00e9\\" = a.x and ¦b.x = 1 }}"\n',
    "the limit": f"{HEAD}¦PATTERN{' ' * 66_000}x\n",
    "empty": f"{HEAD}'¦'\n",
}


@pytest.mark.parametrize("name", PLACES)
def test_places_in_a_document(name: str) -> None:
    refused(PLACES[name])
    if name.startswith(("block", "folded", "plain")):
        refused(PLACES[name].replace("\n", "\r\n"))


def test_places_in_json() -> None:
    text = json.dumps(
        {"pattern": "q", "query": "PATTERN SEQ(A a)\nWHERE strict_contiguity(a) { a.x = '\U0001f600' AND @ }"}
    )
    refused(text.replace("@", "¦@"))


OPTIONS = {
    "within": (document("¦within: 5s"), "belongs to automata", "WITHIN"),
    "key": (document("¦key: k"), "belongs to automata", "delete it"),
    "start": (document("¦start: a"), "belongs to automata", "delete it"),
    "final": (document("¦final: [a]"), "belongs to automata", "delete it"),
    "registers": (document("¦registers: {}"), "belongs to automata", "delete it"),
    "arcs": (document("¦arcs: []"), "belongs to automata", "delete it"),
    "unknown": (document("¦windw: 5"), "has no field `windw`", ""),
    "no text": (document(query="¦5"), "must be a text", ""),
    "absence": (document("absence: ¦maybe"), "`absence` is", "speculative"),
    "encoding": (document("encoding: ¦compresed"), "`encoding` is", "compressed"),
    "timeouts": (document("timeouts: ¦'yes'"), "`timeouts` must be true or false", ""),
    "timeouts without time": (
        document("¦timeouts: true", query=PLAIN),
        "`timeouts: true` needs a window of",
        "WITHIN 1 hour",
    ),
    "output": (document("output: ¦some"), "`output` is", ""),
    "earliest_maximal without a set": (document("output: ¦earliest_maximal", query=PLAIN), "with a set", "`all`"),
    "earliest_maximal without time": (
        document("¦output: earliest_maximal", query=QUERY.replace("1 hour", "5 events")),
        "needs a window of time",
        "WITHIN 1 hour",
    ),
    "speculation": (document("speculation: ¦-1"), "not be negative", ""),
    "hold": (document("hold: ¦all"), "`hold` is", ""),
    "sequence": (document("sequence: ¦all"), "`sequence` is", ""),
    "sources": (document("sources: ¦[]"), "names no topic", ""),
    "tests": (document("tests: [¦{name: a}]"), "needs `tape`", ""),
    "events": (document("events: {A: {k: ¦number}}"), "not a field type", ""),
    "an undeclared type": (
        document("events: {A: {k: int}, B: {k: int}}", query=QUERY.replace("C+", "¦C+")),
        "`C` is not declared",
        "`events:`",
    ),
    "a field of another type": (
        document("events: {A: {k: int}, B: {}, C: {k: int}}", query=QUERY.replace("[k]", "[¦k]")),
        "`B` has no field `k`",
        "",
    ),
}


@pytest.mark.parametrize("case", OPTIONS.values(), ids=OPTIONS)
def test_options(case: tuple[str, str, str]) -> None:
    marked, what, fix = case
    error = refused(marked)
    assert what in error.what
    assert fix in error.fix


def test_types_come_from_declared_events() -> None:
    events = "events: {Stock: {price: float, at: {floor: int}}}"
    query = "PATTERN SEQ(Stock a) WHERE strict_contiguity(a) { a.at.floor = 1 AND "
    assert refused(document(events, query=f"{query}¦a.prise > 1 }}")).fix == "did you mean `price`?"
    assert "never compares" in refused(document(events, query=f"{query}a.price > ¦'1' }}")).what


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("shop.sase", QUERY.replace("[k]", "\n  [k] AND 1 = 1"), "shop.sase:2:11: the condition names no variable"),
        ("shop.sase", "", "shop.sase:1:1: an empty query"),
        ("a@b.sase", QUERY, "a@b.sase:1:1: named after its file: `pattern` must not contain '@'"),
        ("!a.sase", QUERY, "!a.sase:1:1: named after its file: a pattern's name must not begin with `!`"),
    ],
)
def test_mistakes_in_files_of_query_text(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(PatternError) as caught:
        load_patterns(tmp_path / name)
    assert message in str(caught.value)
    assert caught.value.fix


@pytest.mark.parametrize("content", [QUERY, "\ufeff" + QUERY])
def test_a_file_of_query_text_names_its_pattern(tmp_path: Path, content: str) -> None:
    (tmp_path / "shop.sase").write_text(content, encoding="utf-8")
    [pattern] = load_patterns(tmp_path / "shop.sase")
    assert pattern.name == "shop"
