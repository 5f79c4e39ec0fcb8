"""docs/language.md has an example of every part of the language, and each finds what the second reference finds."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from afa.document import parse_patterns
from afa.pattern import CountWindow, Pattern, TimeWindow
from afa.query import parse_query
from afa.query.compiler import compile_query
from afa.query.enumeration import Enumeration, QueryMatch, earliest_maximal, non_overlapping
from afa.query.references import AGGREGATES
from afa.query.tree import (
    Aggregate,
    At,
    EventSet,
    EventValue,
    Kleene,
    Length,
    Negated,
    Over,
    Query,
    Single,
    Strategy,
    references,
)
from afa.records import Event, Match, MatchChange, Punctuation, Record, match_id, read_record
from afa.reference import ReferenceEngine

PAGE = (Path(__file__).parents[2] / "docs" / "language.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^```\w+ file=(\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
NAMES = [name for name in FILES if not name.endswith(".jsonl")]
TAPE: list[Record] = [read_record(json.loads(line), "") for line in FILES["seven.jsonl"].splitlines()]
Found = set[tuple[tuple[str, tuple[str, ...]], ...]]


def pattern_of(name: str) -> tuple[Pattern, Query]:
    if name.endswith(".sase"):
        query = parse_query(FILES[name])
        return compile_query(query, name.removesuffix(".sase")), query
    [(pattern, _)] = parse_patterns(FILES[name])
    assert pattern.query is not None
    return pattern, parse_query(pattern.query.text)


def bound(match: Match) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((name, tuple(id_ for _, id_ in events)) for name, events in match.bindings or ())


def told(pattern: Pattern) -> Found:
    engine = ReferenceEngine([pattern])
    net: Found = set()
    for record in TAPE:
        net ^= {bound(change.match) for change in engine.feed(record).changes if isinstance(change, MatchChange)}
    return net


def enumerated(pattern: Pattern, query: Query) -> Found:
    events = [record for record in TAPE if isinstance(record, Event)]
    [punctuation] = [record.ts for record in TAPE if isinstance(record, Punctuation)]

    def names(match: QueryMatch) -> tuple[tuple[str, tuple[str, ...]], ...]:
        found = {name: tuple(event.id for event in events) for name, events in match.bindings.items()}
        return tuple((name, found[name]) for name in query.variables if name in found)

    def identity(match: QueryMatch) -> str:
        content = [[name, [[event.ts, event.id] for event in match.bindings[name]]] for name, _ in names(match)]
        first, last = match.run.first, match.run.last
        return match_id([pattern.name, "k", first.ts, first.id, last.ts, last.id, content])

    matches = Enumeration(query, events, punctuation).matches()
    if pattern.output == "non_overlapping":
        matches = non_overlapping(matches, identity)
    elif pattern.output == "earliest_maximal":
        matches = earliest_maximal(matches)
    return {names(match) for match in matches}


@pytest.mark.parametrize("name", NAMES)
def test_an_example_finds_what_the_second_reference_finds(name: str) -> None:
    pattern, query = pattern_of(name)
    assert told(pattern) == enumerated(pattern, query)


def test_every_example_is_run_and_finds_something() -> None:
    run = {file for line in PAGE.splitlines() if line.startswith("$ ") for file in re.findall(r"\w+\.\w+", line)}
    assert run == set(FILES)
    silent = [name for name in NAMES if not told(pattern_of(name)[0])]
    assert silent == ["furthest.yaml"]  # it reports timeouts


def test_every_part_of_the_language_has_an_example() -> None:
    queries = [pattern_of(name)[1] for name in NAMES]
    components = [part for query in queries for part in (*query.components, *query.variables.values())]
    assert {type(part) for part in components} == {Single, Kleene, Negated, EventSet}
    assert {part.most is None for part in components if isinstance(part, Kleene)} == {True, False}
    assert None in {part.event_type for part in components if isinstance(part, Single)}
    assert {query.strategy for query in queries} == set(Strategy)
    assert {type(query.window) for query in queries if query.strategy.skips} == {TimeWindow, CountWindow, type(None)}
    assert any(query.equivalences for query in queries)
    assert any(query.returns for query in queries)
    expressions = [part.expression for query in queries for part in (*query.conditions, *query.returns)]
    named = [reference for expression in expressions for reference in references(expression)]
    assert {reference.at for reference in named if isinstance(reference, EventValue)} == set(At)
    assert {reference.over for reference in named if isinstance(reference, Aggregate)} == set(Over)
    assert {reference.function for reference in named if isinstance(reference, Aggregate)} == set(AGGREGATES)
    assert any(isinstance(reference, Length) for reference in named)
    patterns = [pattern_of(name)[0] for name in NAMES]
    assert {pattern.output for pattern in patterns} == {"all", "non_overlapping", "earliest_maximal"}
    assert {pattern.query.absence for pattern in patterns if pattern.query} == {"window_end", "speculative"}
    assert any(pattern.query.timeouts for pattern in patterns if pattern.query)
