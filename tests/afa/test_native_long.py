"""The native engine on long tapes: pages that split and go, linear patterns, batches, record batches, partitions.

Record by record it is held against the reference; every other way to feed it must tell what that told.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.lawful import MOST_CHANGES, LazyReference, assert_lawful, netted
from support.long_tapes import cuts, documents, encoded, long_tape, plain_values, record_batch, shifted
from support.random_cases import number_in_order

from afa import Engine
from afa.changes import Changes
from afa.document import build_pattern
from afa.pattern import CountWindow, Pattern, TimeWindow
from afa.reference_batches import feed_reference

SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {},
    {},
    {"gap_free": True},
    {"gap_free": True, "key_field": ("k",)},
    {"speculation": 0},
    {"speculation": 4, "hold_output": True},
    {"hold_output": True},
    {"key_field": ("k",)},
    {"speculation": 10, "gap_free": True, "hold_output": True},
)


@dataclass
class Case:
    """Patterns and a tape, both made from a seed."""

    seed: int
    kinds: str
    chosen: tuple[int, ...]
    keys: int
    length: int
    by: int = 0

    def __post_init__(self) -> None:
        self.rng = Random(self.seed)
        written = documents(self.rng, self.kinds, self.rng.choice([10, 20]))
        self.documents, tape = shifted(written, long_tape(self.rng, written, self.keys, self.length), self.by)
        self.tape = plain_values(tape)
        self.patterns: list[Pattern] = [
            replace(build_pattern(document), **SETTINGS[choice])
            for document, choice in zip(self.documents, self.chosen, strict=False)
        ]
        if any(pattern.gap_free and pattern.key_field for pattern in self.patterns):
            # An unseen event fills a gap only for those who keep what AFA+O asks for: after a cleanup it is forgotten.
            for number, record in enumerate(self.tape):
                if "key" in record:
                    record.setdefault("id", f"i{number}")
            number_in_order(self.rng, self.tape)
        self.values = encoded(self.tape)


@st.composite
def cases(draw: st.DrawFn, kinds: Sequence[str], *, plain: bool = False, lengths: tuple[int, ...] = (150, 80)) -> Case:
    chosen = st.just(0) if plain else st.integers(0, len(SETTINGS) - 1)
    return Case(
        seed=draw(st.integers(0, 2**32)),
        kinds=draw(st.sampled_from(kinds)),
        chosen=tuple(draw(chosen) for _ in range(4)),
        keys=draw(st.sampled_from([1, 1, 2, 3, 20])),
        length=draw(st.sampled_from(lengths)),
        by=0 if plain else draw(st.sampled_from([0, 0, 0, 2**63 - 50, -(2**63)])),
    )


def assert_same_batches(
    case: Case, told: list[Changes], make: Callable[[int, int], Any], *, net: str, words: bool = True
) -> None:
    """The tape in batches tells what its records told one by one."""
    engine = Engine(case.patterns, net=net)  # type: ignore[arg-type]
    for begin, end in cuts(case.rng, len(told)):
        changes = engine.feed(make(begin, end))
        parts = told[begin:end]
        if net == "batch":
            assert changes.to_records() == netted(parts), f"records {begin} to {end}"
        else:
            expected = [(index, change) for index, part in enumerate(parts) for change in part]
            assert changes.told == expected, f"records {begin} to {end}"
        late = [(index, reason) for index, part in enumerate(parts) for _, reason in part.late]
        assert changes.late == late, f"records {begin} to {end}"
        bad = [(index, reason) for index, part in enumerate(parts) for _, reason in part.bad]
        if words:
            assert changes.bad == bad
        assert [index for index, _ in changes.bad] == [index for index, _ in bad]


def check_raw(case: Case) -> None:
    told = assert_lawful(case.patterns, case.values, every=20)
    for net in ("record", "batch"):
        assert_same_batches(case, told, lambda begin, end: case.values[begin:end], net=net)


@settings(max_examples=60, deadline=None)
@given(cases(["l", "ll", "lll", "llll"], plain=True))
def test_linear_patterns(case: Case) -> None:
    check_raw(case)


@settings(max_examples=60, deadline=None)
@given(cases(["r", "lr", "llr", "rr"], plain=True))
def test_patterns_with_registers_beside_linear_ones(case: Case) -> None:
    check_raw(case)


@settings(max_examples=60, deadline=None)
@given(cases(["r", "l", "lr", "rr"]))
def test_hold_speculation_sequences_and_key_fields(case: Case) -> None:
    check_raw(case)


@settings(max_examples=60, deadline=None)
@given(cases(["l", "lr", "r", "ll"]))
def test_record_batches(case: Case) -> None:
    """As Arrow the tape says the same, whatever the types of its columns; to the reference too."""
    told = assert_lawful(case.patterns, case.values, every=50)

    def batch(begin: int, end: int) -> Any:
        return record_batch(case.rng, case.tape[begin:end])

    for net in ("record", "batch"):
        assert_same_batches(case, told, batch, net=net, words=False)


@settings(max_examples=40, deadline=None)
@given(cases(["l", "r", "lr"], lengths=(30, 12)))
def test_both_engines_on_record_batches_and_net(case: Case) -> None:
    """Against the reference itself: the same batches, net per batch or not, with every change in its place."""
    for net in ("record", "batch"):
        engines = [Engine(case.patterns, name, net) for name in ("native", "reference")]  # type: ignore[arg-type]
        for begin, end in cuts(case.rng, len(case.tape)):
            batch = record_batch(case.rng, case.tape[begin:end])
            native, reference = (engine.feed(batch) for engine in engines)
            assert native.told == reference.told
            assert [index for index, _ in native.late] == [index for index, _ in reference.late]
            assert [index for index, _ in native.bad] == [index for index, _ in reference.bad]


@settings(max_examples=40, deadline=None)
@given(cases(["l", "r", "lr"]), st.integers(1, 40))
def test_keys_that_can_still_matter(case: Case, every: int) -> None:
    """Looked at in between, which cleans up, the engine goes on as if nobody had looked."""
    engine, plain, reference = Engine(case.patterns), Engine(case.patterns), LazyReference(case.patterns)
    windows = [pattern.window for pattern in case.patterns]
    longest = max((window.length if isinstance(window, TimeWindow) else math.inf) for window in windows)
    count = 0
    for index, value in enumerate(case.values):
        changes = engine.feed([value])
        assert changes.told == plain.feed([value]).told
        count += len(changes)
        if count > MOST_CHANGES:
            return
        feed_reference(reference, [value], index, "record")
        if index % every == 0:
            bound = reference.effective_punctuation
            newest = {key: max(ts for ts, _ in records) for key, records in reference.records.items()}
            needed = {key for key, ts in newest.items() if ts >= bound}
            keys = set(engine.keys())
            assert needed <= keys
            assert keys <= {key for key, ts in newest.items() if ts >= bound or ts + longest > bound}


@settings(max_examples=40, deadline=None)
@given(cases(["l", "r", "lr"], lengths=(60,)), cases(["l"], lengths=(40,)), st.integers(1, 30))
def test_partitions_have_their_own_progress(one: Case, other: Case, most: int) -> None:
    """Two partitions in one engine are two engines, as far as events and punctuations go."""
    tapes = [[record for record in case.tape if "arc" not in record.get("op", "")] for case in (one, other)]
    for record in tapes[1]:
        if "key" in record:
            record["key"] += " of the other"
    for number, record in enumerate(tapes[0] + tapes[1]):
        record.setdefault("id", f"i{number}")  # its position would differ
    values, places = [encoded(tape) for tape in tapes], [0, 0]
    native = Engine(one.patterns)
    alone = [Engine(one.patterns), Engine(one.patterns)]
    rng, count = one.rng, 0
    while count < MOST_CHANGES and any(place < len(tape) for place, tape in zip(places, tapes, strict=True)):
        batch, origins, expected = [], [], []
        for _ in range(rng.randint(1, most)):
            choice = rng.randrange(2)
            if places[choice] < len(tapes[choice]):
                value = values[choice][places[choice]]
                places[choice] += 1
                expected += [(len(batch), change.as_json()) for change in alone[choice].feed([value])]
                batch.append(value)
                origins.append(("t", choice))
        told = native.feed(batch, partitions=origins).told
        count += len(told)
        assert [(index, change.as_json()) for index, change in told] == expected


LINE = {"start": "a", "final": ["d"], "within": 8}
STEPS = [{"id": f"s{i}", "from": "abc"[i], "to": "bcd"[i]} for i in range(3)]


def event(ts: int, name: str = "", key: str = "k", **more: Any) -> dict[str, Any]:
    return {"key": key, "ts": ts, "id": name or f"e{ts}", **more}


def check(patterns: list[dict[str, Any]], tape: list[dict[str, Any]], chosen: Sequence[dict[str, Any]] = ()) -> None:
    built = [build_pattern(document | {"pattern": f"p{number}"}) for number, document in enumerate(patterns)]
    built = [replace(pattern, **extra) for pattern, extra in zip(built, [*chosen, *([{}] * 9)], strict=False)]
    told = assert_lawful(built, encoded(tape), every=1)
    changes = Engine(built, net="batch").feed(encoded(tape))
    assert changes.to_records() == netted(told)
    late = [index for index, part in enumerate(told) for _ in part.late]
    assert [index for index, _ in changes.late] == late


def test_a_linear_pattern_without_a_living_arc() -> None:
    check([LINE | {"arcs": [arc | {"valid": [10, None]} for arc in STEPS]}], [event(ts) for ts in (1, 9, 11, 12, 13)])


def test_releasing_events_to_one_pattern_keeps_the_links_of_another() -> None:
    """A punctuation let pattern p1 see events, and pattern p0 told its match a second time."""
    tape = [event(ts, seq=ts) for ts in (1, 32, 33, 34, 35)]
    check(
        [LINE | {"arcs": STEPS}, LINE | {"arcs": STEPS, "within": 3}],
        [*tape, {"op": "punctuation", "ts": 3}, {"op": "punctuation", "ts": 40}],
        [{"gap_free": True}, {"speculation": 2}],
    )


def test_an_arc_change_is_late_by_a_punctuation_of_its_batch() -> None:
    retract = {"op": "arc-retract", "pattern": "p0", "arc": {"id": "s1"}}
    check([LINE | {"arcs": STEPS}], [event(1), {"op": "punctuation", "ts": 23}, retract])


def test_a_revision_in_the_batch_of_its_event() -> None:
    arcs = [{"id": "s", "from": "a", "to": "d", "when": "e.x > 1"}]
    check([LINE | {"arcs": arcs}], [event(3, data={"x": 4}), event(3, data={"x": 0}, rev=2)])


def test_a_batch_out_of_order_that_ends_like_a_run() -> None:
    """Sorted by time the rows of key k were 1, 0, 3, and row 2 of key l was taken for row 0."""
    tape = [event(37), event(36), event(37, "other", key="l"), event(40)]
    check(
        [LINE | {"arcs": STEPS[:1], "final": ["b"]}],
        [*tape, {"op": "arc-retract", "pattern": "p0", "arc": {"id": "s0"}}],
    )


def test_changes_of_several_keys_before_a_punctuation() -> None:
    tape = [event(8, key="l"), event(10, key="k"), {"op": "punctuation", "ts": 9}]
    check([LINE | {"arcs": STEPS[:1], "final": ["b"]}], tape)


def test_the_effective_punctuation_does_not_go_back_within_a_batch() -> None:
    check([LINE | {"arcs": STEPS}], [{"op": "punctuation", "ts": 12}, {"op": "arc-punctuation", "ts": 5}, event(13)])


@pytest.mark.parametrize("late", [91, 92])
def test_a_late_event_right_behind_the_cover(late: int) -> None:
    """A linear pattern's partial match from before the first stored event was gone once enough others were stored."""
    tape = [event(86), {"op": "punctuation", "ts": 90}]
    tape += [event(ts, f"a{place}") for place, ts in enumerate((92, 92, 98, 98, 98, 99))]
    check([LINE | {"arcs": STEPS}], [*tape, event(late, "late")])


@pytest.mark.parametrize("when", ["true", "e.x > 1"])
def test_a_state_between_others_comes_back_as_a_final_one(when: str) -> None:
    """No arc names it any more, so a new one may; the arcs fit a linear pattern still, its final states do not."""
    steps = [{"id": "s0", "from": "a", "to": "b"}, {"id": "s1", "from": "b", "to": "d", "when": "e.x > 1"}]
    gone = [{"op": "arc-retract", "pattern": "p0", "arc": {"id": name}} for name in ("s0", "s1")]
    body = {"id": "new", "from": "a", "to": "b", "when": when, "final": True}
    tape = [event(1, data={"x": 2}), *gone, {"op": "arc", "pattern": "p0", "arc": body}, event(2), event(3)]
    again = {"op": "arc", "pattern": "p0", "arc": steps[1]}
    check([LINE | {"arcs": steps}], [*tape, again, event(4, data={"x": 2}), event(2, "late", data={"x": 3})])


def test_count_windows_have_no_end_in_time() -> None:
    assert isinstance(build_pattern(LINE | {"pattern": "p", "arcs": STEPS, "within": "3 events"}).window, CountWindow)
    check([LINE | {"arcs": STEPS, "within": "3 events"}], [event(ts) for ts in (5, 6, 7, 8, 1, 2)])


def seen(ts: int, seq: int) -> dict[str, Any]:
    return event(ts, seq=seq, data={"k": "k"})


@pytest.mark.parametrize("ts", [3, 9])
def test_an_event_that_a_pattern_does_not_see_fills_a_gap_when_it_comes(ts: int) -> None:
    """The link over the gap was looked at before the event stood among the others."""
    chosen = {"gap_free": True, "key_field": ("k",)}
    tape = [seen(1, 1), seen(5, 3), seen(6, 4), event(ts, "unseen", seq=2), seen(ts, 5) | {"id": "unseen", "rev": 1}]
    check([LINE | {"arcs": STEPS}, LINE | {"arcs": STEPS, "within": "3 events"}], tape, [chosen, chosen])


def test_a_link_to_an_event_that_is_released_with_the_one_before_it() -> None:
    """At the beginning of a page it was taken for the next after the last one released earlier, and told twice."""
    tape = [event(ts) for ts in range(1, 15)] + [event(15, seq=26), event(17, "a"), event(17, "b", seq=27)]
    marks = [{"op": "punctuation", "ts": ts} for ts in (16, 17)]
    pattern = LINE | {"arcs": STEPS[:2], "final": ["c"], "within": "5 events"}
    check([pattern], [*tape, *marks], [{"gap_free": True, "speculation": 1}])
