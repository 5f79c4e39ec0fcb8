"""Sections 1 and 2 of the semantics by hand: order, identity, windows; automata, epsilon arcs, matches, values."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from support.automata import (
    EACH,
    PAIR,
    SPAN,
    arc,
    automaton,
    event,
    matches,
    registers,
    result,
    retraction,
    said,
    unbounded,
)
from support.runs import Run

INT_MAX, INT_MIN = 2**63 - 1, -(2**63)


# --- order


@pytest.mark.parametrize(
    ("one", "two", "expected"),
    [
        ({"ts": 1}, {"ts": 2}, True),
        ({"ts": 2}, {"ts": 1}, False),
        ({"seq": 1}, {"seq": 2}, True),  # at one ts by seq
        ({"seq": 2}, {"seq": 1}, False),
        ({"seq": 2, "ts": 1}, {"seq": 1, "ts": 2}, True),  # ts comes before seq
        ({}, {"seq": 1}, True),  # no seq is 0
        ({"seq": -1}, {}, True),
        ({"seq": 1}, {}, False),
        ({"id": "a"}, {"id": "b"}, True),  # then by id
        ({"id": "b"}, {"id": "a"}, False),
        ({"id": "B"}, {"id": "a"}, True),
        ({"id": "10"}, {"id": "9"}, True),  # as bytes, not as numbers
        ({"id": "z"}, {"id": "é"}, True),  # 7a before c3 a9
        ({"id": "\uffff"}, {"id": "\U00010000"}, True),  # ef before f0, though UTF-16 has it the other way
        ({"id": "a", "seq": 2}, {"id": "b", "seq": 1}, False),  # seq comes before id
    ],
)
def test_events_are_ordered_by_ts_seq_and_id(one: dict[str, Any], two: dict[str, Any], expected: bool) -> None:
    """The pair matches iff the 1 is before the 2, whichever arrives first."""
    first, second = event("e1", 5, 1) | one, event("e2", 5, 2) | two
    assert bool(result(PAIR, first, second)) is expected
    assert bool(result(PAIR, second, first)) is expected


def test_keys_are_apart() -> None:
    assert result(PAIR, event("e1", 1, 1), event("e2", 2, 2, key="other")) == []
    # Nor does another key's event stand between.
    assert result(PAIR, event("e1", 1, 1), event("e2", 2, 0, key="other"), event("e3", 3, 2)) == ["e1-e3"]


def test_events_without_id_are_named_by_their_line() -> None:
    records = [{"key": "k", "ts": 5, "data": {"x": x}} for x in (1, 2)]
    assert result(PAIR, *records) == ["000000000001-000000000002"]


# --- identity


def test_a_retraction_takes_the_match_back() -> None:
    run = Run(PAIR)
    assert said(run.feed(event("e1", 1, 1))) == []
    assert said(run.feed(event("e2", 2, 2))) == ["+e1-e2"]
    assert said(run.feed(retraction("e1", 1))) == ["-e1-e2"]
    assert said(run.feed(event("e1", 1, 1))) == [], "at equal rev a retraction beats an insert"
    assert said(run.feed(event("e1", 1, 1, rev=1))) == ["+e1-e2"], "a re-insert needs a greater rev"


def test_a_late_event_between_takes_the_match_back() -> None:
    run = Run(PAIR).feed_all([event("e1", 1, 1), event("e3", 3, 2)])
    assert said(run.feed(event("e2", 2, 2))) == ["-e1-e3", "+e1-e2"]


def test_a_retraction_may_come_before_its_event() -> None:
    assert result(EACH, retraction("e1", 1), event("e1", 1)) == []
    assert result(EACH, retraction("e1", 1), event("e1", 1, rev=1)) == ["e1-e1"]


def test_a_retraction_with_a_lower_rev_does_nothing_and_is_counted() -> None:
    run = Run(EACH).feed_all([event("e1", 1, rev=2)])
    assert said(run.feed(retraction("e1", 1, rev=1))) == []
    assert matches(run) == ["e1-e1"]
    assert run.engine.counters.idle_retractions == 1


def test_the_greatest_rev_wins_in_any_order() -> None:
    revisions = [event("e1", 1, 1), event("e1", 1, 0, rev=1), event("e1", 1, 1, rev=2), retraction("e1", 1, rev=1)]
    for order in permutations(revisions):
        assert result(PAIR, *order, event("e2", 2, 2)) == ["e1-e2"]


@pytest.mark.parametrize(
    ("greater", "smaller"),
    [
        ({"data": {"x": 2}}, {"data": {"x": 1}}),  # msgpack 02 and 01
        ({"data": {"x": 1.0}}, {"data": {"x": 1}}),  # cb and 01
        ({"data": {"x": -1}}, {"data": {"x": 127}}),  # ff and 7f
        ({"data": {"x": "b"}}, {"data": {"x": "a"}}),
        ({"data": {"y": 1}}, {"data": {"x": 9}}),  # the key comes first
        ({"data": {"x": 1, "y": 1}}, {"data": {"x": 9}}),  # two fields (82) and one (81)
        ({"data": {}, "type": "b"}, {"data": {"x": 9}, "type": "a"}),  # the type comes first
        ({"data": {}, "seq": 2}, {"data": {"x": 9}, "seq": 1}),  # then seq
        ({"data": {"x": None}}, {"data": {"x": 127}}),  # c0 and 7f
        ({"data": {"x": 2**70}}, {"data": {"x": 127}}),  # outside 64 bits: unknown, as null
    ],
)
def test_of_two_inserts_at_one_rev_the_greater_canonical_bytes_win(
    greater: dict[str, Any], smaller: dict[str, Any]
) -> None:
    for order in ((greater, smaller), (smaller, greater)):
        run = Run(EACH).feed_all([event("e1", 1) | content for content in order])
        ((winner,),) = [[max(same, key=lambda record: record.rank)] for same in run.engine.records["k"].values()]
        assert {name: getattr(winner, name) for name in greater} == greater
        assert run.engine.counters.conflicts == 1


def test_equal_content_is_no_conflict() -> None:
    one = event("e1", 1, data={"x": 0.0, "y": {"b": 1, "a": [1]}})
    other = event("e1", 1, data={"y": {"a": [1], "b": 1}, "x": -0.0})
    assert Run(EACH).feed_all([one, other, one]).engine.counters.conflicts == 0


def test_another_ts_is_another_event() -> None:
    assert result(EACH, event("e1", 1), event("e1", 2)) == ["e1-e1", "e1-e1"]
    assert result(EACH, event("e1", 1), event("e1", 2), retraction("e1", 2)) == ["e1-e1"]


# --- windows


def test_a_window_in_time_ends_before_its_end() -> None:
    assert result(PAIR, event("e1", 0, 1), event("e2", 9, 2)) == ["e1-e2"]
    assert result(PAIR, event("e1", 0, 1), event("e2", 10, 2)) == []
    (match,) = Run(EACH).feed_all([event("e1", 5)]).net.values()
    assert (match.start, match.end, match.until) == (5, 5, 15)


def test_a_window_of_one_takes_one_instant() -> None:
    narrow = PAIR | {"within": 1}
    assert result(narrow, event("e1", 0, 1), event("e2", 0, 2)) == ["e1-e2"]
    assert result(narrow, event("e1", 0, 1), event("e2", 1, 2)) == []


def test_a_window_saturates_at_the_ends_of_64_bits() -> None:
    # [MAX - 1, MAX): the event at MAX itself is outside, even of its own window [MAX, MAX).
    run = Run(EACH).feed_all([event("e1", INT_MAX - 1), event("e2", INT_MAX)])
    assert [(match.first, match.until) for match in run.net.values()] == [("e1", INT_MAX)]
    assert result(PAIR, event("e1", INT_MAX - 1, 1), event("e2", INT_MAX, 2)) == []
    # MIN + MAX = -1.
    widest = PAIR | {"within": INT_MAX}
    assert result(widest, event("e1", INT_MIN, 1), event("e2", -2, 2)) == ["e1-e2"]
    assert result(widest, event("e1", INT_MIN, 1), event("e2", -1, 2)) == []


def test_without_a_window_there_is_no_bound() -> None:
    run = Run(unbounded(PAIR)).feed_all([event("e1", INT_MIN, 1), event("e2", INT_MAX, 2)])
    assert [match.until for match in run.net.values()] == [None]


def test_a_window_in_events_counts_every_live_event() -> None:
    three = SPAN | {"within": "3 events"}
    run = Run(three).feed_all([event("e1", 1, 1), event("e3", 1_000, 2)])
    assert [match.until for match in run.net.values()] == [None]
    assert said(run.feed(event("e2", 2))) == [], "e1, e2, e3 are three"
    assert said(run.feed(event("e4", 3))) == ["-e1-e3"], "now e3 is the fourth"
    assert said(run.feed(retraction("e2", 2))) == ["+e1-e3"], "a retracted event is not live"
    assert result(three, event("e1", 1, 1), event("o", 2, key="other"), event("e2", 2), event("e3", 3, 2)) == ["e1-e3"]
    assert result(EACH | {"within": "1 event"}, event("e1", 1), event("e2", 2)) == ["e1-e1", "e2-e2"]


# --- automata


def test_a_computation_starts_at_every_event_and_goes_on_after_a_match() -> None:
    run_of_ones = automaton(arc("first", "a", "z", "e.x == 1"), arc("more", "z", "z", "e.x == 1"))
    found = result(run_of_ones, *(event(f"e{ts}", ts, 1) for ts in (1, 2, 3)), event("e4", 4, 0), event("e5", 5, 1))
    # Every contiguous run of ones; e4 breaks them.
    assert found == ["e1-e1", "e1-e2", "e1-e3", "e2-e2", "e2-e3", "e3-e3", "e5-e5"]


def test_consumption_is_contiguous() -> None:
    assert result(PAIR, event("e1", 1, 1), event("e2", 2, 0), event("e3", 3, 2)) == []
    assert result(SPAN, event("e1", 1, 1), event("e2", 2, 0), event("e3", 3, 2)) == ["e1-e3"]


def test_a_final_start_state_matches_only_after_an_event() -> None:
    looped = automaton(arc("loop", "a", "a", "e.x == 1"), final=["a"])
    assert result(looped, event("e1", 1, 1), event("e2", 2, 0)) == ["e1-e1"]


def test_every_final_state_of_the_closure_is_a_match() -> None:
    document = automaton(
        arc("in", "a", "y"), arc("on", "y", "z", epsilon=True), arc("out", "z", "end", epsilon=True), final=["y", "z"]
    )
    run = Run(document).feed_all([event("e1", 1)])
    assert sorted(match.state for match in run.net.values()) == ["y", "z"], "the state before an epsilon arc stays"


# --- epsilon arcs


def test_epsilon_arcs_from_the_start_are_taken_before_the_first_event() -> None:
    document = automaton(
        arc("skip", "a", "b", epsilon=True, set={"n": "5"}), arc("go", "b", "z"), arc("own", "a", "z", "e.x == 1"),
        registers={"n": 0},
    )  # fmt: skip
    # Over `skip` every event matches with n = 5; the start state stays a possibility: `own` matches with n = 0.
    run = Run(document).feed_all([event("e1", 1, 0), event("e2", 2, 1)])
    assert matches(run) == ["e1-e1", "e2-e2", "e2-e2"]
    assert registers(run) == [{"n": 0}, {"n": 5}, {"n": 5}]


def test_epsilon_arcs_alone_do_not_match() -> None:
    document = automaton(arc("skip", "a", "z", epsilon=True), arc("go", "a", "b"))
    assert result(document, event("e1", 1)) == [], "the closure before the first event is not after an event"


def test_epsilon_arcs_chain_and_see_the_register_after_the_event() -> None:
    document = automaton(
        arc("count", "a", "a", set={"n": "r.n + 1"}),
        arc("two", "a", "b", "r.n == 2", epsilon=True, set={"n": "r.n * 10"}),
        arc("done", "b", "z", "r.n == 20", epsilon=True),
        registers={"n": 0},
    )
    run = Run(document).feed_all([event(f"e{ts}", ts) for ts in (1, 2, 3)])
    assert matches(run) == ["e1-e2", "e2-e3"]
    assert registers(run) == [{"n": 20}, {"n": 20}]


def test_an_epsilon_arc_is_valid_by_the_ts_of_the_event_before_it() -> None:
    document = automaton(arc("in", "a", "b"), arc("on", "b", "z", epsilon=True, valid=[5, 7]))
    assert result(document, *(event(f"e{ts}", ts) for ts in (4, 5, 6, 7))) == ["e5-e5", "e6-e6"]
    # From the start state it is the ts of the first event, which is not consumed yet.
    early = automaton(arc("skip", "a", "b", epsilon=True, valid=[5, 7]), arc("in", "b", "z"))
    assert result(early, *(event(f"e{ts}", ts) for ts in (4, 5, 6, 7))) == ["e5-e5", "e6-e6"]


def test_an_epsilon_arc_whose_fence_is_unknown_is_not_taken() -> None:
    document = automaton(
        arc("in", "a", "b"), arc("on", "b", "z", "1 // r.n == 1", epsilon=True), registers={"n": 0}
    )  # fmt: skip
    run = Run(document).feed_all([event("e1", 1)])
    assert matches(run) == []
    assert run.engine.counters.errors > 0


# --- matches are a set


def test_what_agrees_is_one_match_until_no_computation_yields_it() -> None:
    document = automaton(
        arc("low", "a", "b", "e.x < 5"), arc("high", "a", "c", "e.x > 1"), arc("on", "b", "z"), arc("up", "c", "z")
    )
    run = Run(document)
    run.feed(event("e1", 1, 3))  # both ways
    assert said(run.feed(event("e2", 2, 9))) == ["+e1-e2"], "two computations, one match"
    assert said(run.feed(event("e1", 1, 0, rev=1))) == [], "only the low way is left"
    assert said(run.feed(event("e1", 1, 7, rev=2))) == [], "only the high way"
    assert said(run.feed(event("e1", 1, None, rev=3))) == ["-e1-e2"], "none"


def test_other_registers_or_states_make_other_matches() -> None:
    document = automaton(
        arc("one", "a", "z", set={"n": "1"}), arc("two", "a", "z", set={"n": "2"}), arc("three", "a", "y"),
        final=["y", "z"], registers={"n": 0},
    )  # fmt: skip
    run = Run(document).feed_all([event("e1", 1)])
    assert {(match.state, *match.registers) for match in run.net.values()} == {
        ("z", ("n", 1)),
        ("z", ("n", 2)),
        ("y", ("n", 0)),
    }


def test_a_revision_that_changes_nothing_says_nothing() -> None:
    run = Run(PAIR).feed_all([event("e1", 1, 1), event("e2", 2, 2)])
    assert said(run.feed(event("e2", 2, 2, rev=1, type="other"))) == []


def test_a_changed_register_is_a_retract_and_an_insert() -> None:
    document = automaton(arc("in", "a", "z", set={"m": "e.x"}), registers={"m": 0})
    run = Run(document).feed_all([event("e1", 1, 4)])
    assert said(run.feed(event("e1", 1, 5, rev=1))) == ["-e1-e1", "+e1-e1"]


# --- values


def test_transfers_read_the_register_as_it_was() -> None:
    swap = automaton(arc("swap", "a", "z", set={"u": "r.v", "v": "r.u"}), registers={"u": 1, "v": 2})
    assert registers(Run(swap).feed_all([event("e1", 1)])) == [{"u": 2, "v": 1}]


@pytest.mark.parametrize("x", [None, "1", True, 2**63, [1], {"y": 1}])
def test_an_unknown_fence_does_not_hold_and_is_counted(x: Any) -> None:
    document = automaton(arc("in", "a", "z", "e.x >= 0 or e.x < 0"))
    run = Run(document).feed_all([event("e1", 1, x)])
    assert matches(run) == []
    assert run.engine.counters.errors > 0


@pytest.mark.parametrize(
    ("initial", "transfer", "x", "stored"),
    [
        (0, "e.x", 7, 7),
        (0, "e.x", 7.0, None),  # a float into an int register is a clash, whole or not
        (0, "e.x", True, None),
        (0, "e.x", None, None),
        (0, "r.m + e.x", INT_MAX, INT_MAX),
        (1, "r.m + e.x", INT_MAX, None),  # overflow
        (0, "1 // e.x", 0, None),
        (0, "floor(e.x)", 7.9, 7),
        (0.0, "e.x", 7, 7.0),  # an int goes into a float register, as a float
        (0.0, "e.x", 2**53 + 1, 2.0**53),
        (0.0, "e.x * 1e308", 100.0, None),  # infinite
        (0.0, "-e.x", 0.0, 0.0),  # minus zero is zero
        ("", "e.x", "é", "é"),
        ("", "e.x", 1, None),
        (False, "e.x", True, True),
        (False, "e.x", 1, None),
    ],
)
def test_what_a_register_takes(initial: Any, transfer: str, x: Any, stored: Any) -> None:
    document = automaton(arc("in", "a", "z", set={"m": transfer}), registers={"m": initial})
    run = Run(document).feed_all([event("e1", 1, x)])
    taken = [dict(match.registers)["m"] for match in run.net.values()]
    assert [repr(value) for value in taken] == ([] if stored is None else [repr(stored)])
    assert (run.engine.counters.errors > 0) is (stored is None), "an arc whose transfer fails is counted"


def test_a_failed_transfer_leaves_other_arcs_alone() -> None:
    document = automaton(
        arc("bad", "a", "z", set={"m": "e.x"}), arc("good", "a", "z", set={"m": "1"}), registers={"m": 0}
    )
    assert registers(Run(document).feed_all([event("e1", 1, 0.5)])) == [{"m": 1}]


def test_own_fields_hide_those_of_the_data() -> None:
    document = automaton(arc("in", "a", "z", "e.ts == 5 and e.id == 'e1' and e.type == 'buy'"))
    data = {"ts": 0, "id": "no", "type": "sell"}
    assert result(document, event("e1", 5, type="buy", data=data)) == ["e1-e1"]
    assert result(automaton(arc("in", "a", "z", "e.type == null")), event("e1", 5, data=data)) == ["e1-e1"]


def test_the_id_of_a_match_is_that_of_the_contract() -> None:
    """The first vector of the contract: q1, YHOO, e1 at 1000, e9 at 1900, state q3, registers (0, 2)."""
    document = {
        "pattern": "q1", "start": "q0", "final": ["q3"], "within": 2000, "registers": {"r2": 0, "r1": 5},
        "arcs": [arc("in", "q0", "q1"), arc("out", "q1", "q3", set={"r2": "2", "r1": "0"})],
    }  # fmt: skip
    run = Run(document).feed_all([event("e1", 1000, key="YHOO"), event("e9", 1900, key="YHOO")])
    assert list(run.net) == ["fb6173c267eaa8ceef7cbe434fb74bc4"]
