"""Whatever a punctuation lets the engine forget, its net output is what the accepted records alone say."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Literal

from hypothesis import given, settings
from hypothesis import strategies as st

from afa.query.compiler import compile_query
from afa.query.enumeration import Enumeration, Run, earliest_maximal, non_overlapping
from afa.query.tree import Query, TimeWindow
from afa.records import EmittedPunctuation, Event, MatchChange, Punctuation, Timeout
from afa.reference import ReferenceEngine
from tests.query.test_compiled_queries import accepted, identity, with_revisions
from tests.support.queries import QueryMaker, events_of

Absence = Literal["window_end", "speculative"]
Output = Literal["all", "non_overlapping", "earliest_maximal"]
Reported = tuple[int, str, tuple[tuple[str, tuple[str, ...]], ...]]


def expected(query: Query, events: list[Event], punctuation: float, absence: Absence, output: Output) -> set[str]:
    found = Enumeration(query, events, punctuation, absence).matches()
    if output == "non_overlapping":
        found = non_overlapping(found, lambda match: identity(match, query))
    elif output == "earliest_maximal":
        found = earliest_maximal(found)
    return {f"{identity(match, query)} {match.returned!r}" for match in found}


def expected_timeouts(query: Query, events: list[Event], before: float, punctuation: float) -> list[Reported]:
    assert isinstance(query.window, TimeWindow)
    enumeration = Enumeration(query, events, punctuation)
    partitions = dict.fromkeys(map(enumeration.partition_of, events))
    by_start: dict[tuple[int, int, bytes], list[Run]] = {}
    for run in (run for partition in partitions if partition is not None for run in enumeration.runs(partition)):
        by_start.setdefault(run.first.order, []).append(run)
    names = list(query.variables)

    def reach(run: Run) -> tuple[int, int, list[str], list[int]]:
        ids, places = [event.id for _, event in run.bound], [names.index(name) for name, _ in run.bound]
        return (-run.at, -len(run.bound), ids, places)

    reported = []
    for (ts, _, _), runs in by_start.items():
        closes = ts + query.window.length
        if before < closes <= punctuation and not any(enumeration.completes(run) for run in runs):
            best = min(runs, key=reach)
            bound = tuple(
                (name, tuple(event.id for event in best.bindings[name])) for name in names if name in best.bindings
            )
            reported.append((ts, best.bound[-1][0], bound))
    return sorted(reported)


def steps_of(pick: random.Random, events: list[Event]) -> list[Event | Punctuation]:
    steps: list[Event | Punctuation] = []
    for record in with_revisions(pick, events):
        steps.append(record)
        if pick.random() < 0.5:
            steps.append(Punctuation(record.ts + pick.choice((-4, -2, 0, 1, 3))))
    return [*steps, Punctuation(10**6)]


@settings(max_examples=200)
@given(
    seed=st.integers(0, 2**32),
    count=st.integers(1, 7),
    absence=st.sampled_from(("window_end", "speculative")),
    output=st.sampled_from(("all", "non_overlapping", "earliest_maximal")),
)
def test_the_net_output_is_that_of_the_records(seed: int, count: int, absence: Absence, output: Output) -> None:
    pick, query = random.Random(seed), QueryMaker(seed).query()
    if not isinstance(query.window, TimeWindow):
        query = replace(query, window=TimeWindow(4))
    pattern = compile_query(query, "q")
    assert pattern.query is not None
    options = replace(pattern.query, absence=absence, timeouts=True)
    engine = ReferenceEngine([replace(pattern, output=output, query=options)])
    net: set[str] = set()
    kept: list[Event] = []
    punctuation = emitted = -math.inf
    for record in steps_of(pick, events_of(seed, count)):
        step, before = engine.feed(record), punctuation
        if isinstance(record, Punctuation):
            punctuation = max(punctuation, record.ts)
        elif step.late is None:
            kept.append(record)
        changes = [change for change in step.changes if isinstance(change, MatchChange)]
        assert all(change.match.end >= emitted for change in changes)
        for change in changes:
            told = f"{change.id} {change.match.registers!r}"
            assert (told in net) == (change.op == "retract")
            net ^= {told}
        assert net == expected(query, accepted(kept), punctuation, absence, output)
        timeouts = [reported(change) for change in step.changes if isinstance(change, Timeout)]
        assert sorted(timeouts) == expected_timeouts(query, accepted(kept), before, punctuation)
        emitted = max([emitted, *(change.ts for change in step.changes if isinstance(change, EmittedPunctuation))])


def reported(timeout: Timeout) -> Reported:
    return (timeout.start, timeout.reached, tuple((n, tuple(id_ for _, id_ in found)) for n, found in timeout.bindings))
