"""Section 4 of the semantics by hand: punctuations, late records, cleanse, hold, AFA+O; and the order of changes."""

from __future__ import annotations

import math
from typing import Any

import pytest
from support.automata import (
    EACH,
    PAIR,
    SPAN,
    arc,
    arc_change,
    arc_punctuation,
    automaton,
    event,
    matches,
    punctuation,
    result,
    retraction,
    said,
    unbounded,
)
from support.runs import Run

from afa.records import EmittedPunctuation


def spoken(run: Run, *records: dict[str, Any]) -> list[list[str]]:
    return [said(run.feed(record)) for record in records]


# --- punctuations


def test_the_emitted_punctuation_rises_with_te() -> None:
    run = Run(EACH)
    assert spoken(run, punctuation(5), punctuation(5), punctuation(3), punctuation(6)) == [["p<5"], [], [], ["p<6"]]


def test_tp_is_the_lesser_of_te_and_ta_and_never_goes_back() -> None:
    run = Run(EACH)
    assert spoken(run, punctuation(5)) == [["p<5"]], "te alone, while there is no ta"
    assert spoken(run, arc_punctuation(3)) == [[]], "min(5, 3) = 3 would be back"
    assert spoken(run, punctuation(9)) == [[]], "min(9, 3)"
    assert spoken(run, arc_punctuation(7)) == [["p<7"]], "min(9, 7)"
    assert spoken(run, arc_punctuation(20)) == [["p<9"]], "min(9, 20)"
    assert spoken(run, arc_punctuation(15)) == [[]], "nor does ta go back"
    assert spoken(run, punctuation(18)) == [["p<18"]]


def test_ta_alone_moves_nothing() -> None:
    assert spoken(Run(EACH), arc_punctuation(5), punctuation(2), punctuation(8)) == [[], ["p<2"], ["p<5"]]


def test_a_record_below_te_is_late_and_leaves_the_state_untouched() -> None:
    run = Run(PAIR).feed_all([event("e1", 5, 1), event("e2", 7, 2), punctuation(6)])
    for record in (event("x", 5, 0), event("e1", 5, 0, rev=1), retraction("e1", 5), event("y", -9, 0, key="new")):
        step = run.feed(record)
        assert step.late == f"ts {record['ts']} is below the punctuation 6"
        assert step.changes == []
    assert matches(run) == ["e1-e2"]
    assert list(run.engine.records) == ["k"]
    assert run.engine.counters.late == 4
    assert said(run.feed(event("x", 6, 0))) == ["-e1-e2"], "at the punctuation is not below it"


def test_lateness_goes_by_te_even_when_ta_holds_tp_back() -> None:
    run = Run(EACH).feed_all([arc_punctuation(2), punctuation(6)])  # tp = 2
    assert run.feed(event("e1", 5)).late
    assert said(run.feed(event("e2", 6))) == ["+e2-e2"]


def test_a_predicated_punctuation() -> None:
    run = Run(EACH)
    assert said(run.feed(punctuation(10, when="e.x <= 3"))) == [], "it moves no punctuation of its own"
    assert run.feed(event("e1", 9, 3)).late == "ts 9 is below the punctuation 10 when e.x <= 3"
    assert said(run.feed(event("e2", 9, 4))) == ["+e2-e2"], "the condition is false"
    assert said(run.feed(event("e3", 9, None))) == ["+e3-e3"], "or unknown"
    assert said(run.feed(event("e4", 10, 3))) == ["+e4-e4"], "not below"
    assert run.feed(event("e2", 9, 4, rev=1)).late, "every record with a rev"
    assert run.feed(retraction("e2", 9)).late, "and every retraction"
    assert said(run.feed(retraction("e4", 10))) == ["-e4-e4"]


def test_predicated_punctuations_add_up() -> None:
    run = Run(EACH).feed_all(
        [punctuation(10, when="e.x == 1"), punctuation(20, when="e.x == 2"), punctuation(5, when="e.x==1")]
    )
    assert [bool(run.feed(event(f"a{x}", 9, x)).late) for x in (1, 2, 3)] == [True, True, False]
    assert [bool(run.feed(event(f"b{x}", 15, x)).late) for x in (1, 2, 3)] == [False, True, False]


def test_after_the_windows_have_closed_nothing_is_kept() -> None:
    """Events live [ts, ts + 10): at tp = 15 the one at 5 is gone, the one at 6 is not."""
    run = Run(EACH).feed_all([event("e1", 5), event("e2", 6), event("e3", 5, key="silent"), punctuation(15)])
    assert {key: list(kept) for key, kept in run.engine.records.items()} == {"k": [(6, "e2")]}
    run.feed(punctuation(100))
    assert not run.engine.records
    assert not run.engine.matches
    assert matches(run) == ["e1-e1", "e2-e2", "e3-e3"], "forgotten is not retracted"
    assert said(run.feed(arc_change({"id": "each"}, None, 100))) == []


# --- cleanse


def test_cleanse_with_sigma_0_releases_only_below_the_punctuation() -> None:
    run = Run(PAIR, speculation=0)
    assert spoken(run, event("e1", 1, 1), event("e3", 3, 2)) == [[], []]
    assert said(run.feed(punctuation(3))) == ["p<3"], "e3 is not below 3"
    assert said(run.feed(punctuation(4))) == ["+e1-e3", "p<4"]


def test_cleanse_with_sigma_0_is_never_wrong() -> None:
    run = Run(PAIR, speculation=0).feed_all([event("e1", 1, 1), event("e3", 3, 2), event("e2", 2, 0), punctuation(9)])
    assert [change for change in run.log if not isinstance(change, EmittedPunctuation)] == []


def test_cleanse_with_sigma_5_speculates_for_5() -> None:
    run = Run(EACH, speculation=5)
    assert spoken(run, event("e4", 4), event("e6", 6), event("e7", 7)) == [[], [], []], "no punctuation yet"
    assert said(run.feed(punctuation(0))) == ["+e4-e4", "p<0"], "ts < 0 + 5"
    assert said(run.feed(punctuation(2))) == ["+e6-e6", "p<2"], "ts < 2 + 5"
    assert said(run.feed(event("e5", 5))) == ["+e5-e5"], "at once"
    assert said(run.feed(event("e7", 7, rev=1))) == []


def test_cleanse_with_sigma_inf_holds_nothing_back() -> None:
    assert spoken(Run(EACH, speculation=math.inf), event("e1", 2**62)) == [["+e1-e1"]]


def test_a_retraction_of_what_was_not_released_says_nothing() -> None:
    run = Run(EACH, speculation=0).feed_all([event("e1", 1)])
    assert spoken(run, retraction("e1", 1), punctuation(5)) == [[], ["p<5"]]


# --- hold


def test_held_inserts_wait_for_their_end() -> None:
    run = Run(PAIR, hold_output=True)
    assert spoken(run, event("e1", 1, 1), event("e2", 2, 2), punctuation(2)) == [[], [], ["p<2"]], "2 is not below 2"
    assert said(run.feed(punctuation(3))) == ["+e1-e2", "p<3"]


def test_hold_says_nothing_of_what_turned_out_wrong() -> None:
    run = Run(PAIR, hold_output=True)
    records = [event("e1", 1, 1), event("e3", 3, 2), event("e2", 2, 2), punctuation(9)]
    assert spoken(run, *records) == [[], [], [], ["+e1-e2", "p<9"]]


# --- AFA+O


def numbered(event_id: str, ts: int, x: int, seq: int | None) -> dict[str, Any]:
    return event(event_id, ts, x) | ({} if seq is None else {"seq": seq})


def test_gap_free_waits_only_at_a_gap() -> None:
    run = Run(SPAN, gap_free=True)
    assert said(run.feed(numbered("e1", 1, 1, 1))) == []
    assert said(run.feed(numbered("e3", 3, 2, 3))) == [], "2 is missing"
    assert said(run.feed(numbered("e2", 2, 0, 2))) == ["+e1-e3"], "the gap is closed: no punctuation needed"
    assert said(run.feed(numbered("e5", 5, 2, 5))) == [], "4 is missing"
    assert said(run.feed(punctuation(5))) == ["p<5"], "not past the event after the gap"
    assert said(run.feed(punctuation(6))) == ["+e1-e5", "p<6"], "the gap stays: now it may be crossed"


def test_a_computation_may_start_after_a_gap() -> None:
    assert result(PAIR, numbered("e7", 1, 1, 7), numbered("e8", 2, 2, 8), gap_free=True) == ["e7-e8"]


def test_a_retracted_seq_counts_as_present() -> None:
    run = Run(SPAN, gap_free=True)
    run.feed_all([numbered("e1", 1, 1, 1), numbered("e2", 2, 0, 2), numbered("e3", 3, 2, 3)])
    assert matches(run) == ["e1-e3"]
    assert said(run.feed(retraction("e2", 2))) == [], "e1 and e3 are still neighbours"
    # The retraction alone may carry it, before or without its event.
    assert result(
        PAIR, numbered("e1", 1, 1, 1), retraction("e2", 2, seq=2), numbered("e3", 3, 2, 3), gap_free=True
    ) == ["e1-e3"]
    assert result(PAIR, numbered("e1", 1, 1, 1), retraction("e2", 2), numbered("e3", 3, 2, 3), gap_free=True) == []


def test_an_event_without_seq_is_adjacent_to_nothing_until_tp_has_passed_it() -> None:
    for one, two in ((1, None), (None, 2), (None, None)):
        run = Run(PAIR, gap_free=True).feed_all([numbered("e1", 1, 1, one), numbered("e2", 2, 2, two)])
        assert matches(run) == []
        assert said(run.feed(punctuation(3))) == ["+e1-e2", "p<3"]


def test_a_seq_that_does_not_rise_is_adjacent_to_nothing() -> None:
    run = Run(PAIR, gap_free=True).feed_all([numbered("e1", 1, 1, 5), numbered("e2", 2, 2, 5)])
    assert matches(run) == []
    assert said(run.feed(punctuation(3))) == ["+e1-e2", "p<3"]


def test_an_event_that_the_pattern_does_not_see_is_no_gap() -> None:
    """`seq` counts per key, the key field hides events from one pattern: the number is there."""
    document = PAIR | {"key": "symbol"}
    records = [
        event("e1", 1, data={"x": 1, "symbol": "k"}, seq=1),
        event("e2", 2, data={"x": 0, "symbol": "other"}, seq=2),
        event("e3", 3, data={"x": 2, "symbol": "k"}, seq=3),
    ]
    assert result(document, *records, gap_free=True) == ["e1-e3"]


# --- all settings agree below an emitted punctuation


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"speculation": 0},
        {"speculation": 2},
        {"hold_output": True},
        {"gap_free": True},
        {"speculation": 0, "hold_output": True, "gap_free": True},
    ],
)
def test_every_setting_ends_the_same(settings: dict[str, Any]) -> None:
    records = [
        numbered("e3", 3, 2, 3),
        numbered("e1", 1, 1, 1),
        numbered("e4", 4, 1, 4),
        numbered("e6", 6, 2, 6),
        punctuation(9),
    ]
    # 1 and 3 are neighbours once 2 is known to be missing for good, and so are 4 and 6.
    assert result(PAIR, *records, **settings) == ["e1-e3", "e4-e6"]


# --- key field


def test_a_pattern_sees_only_events_whose_field_is_their_key() -> None:
    document = unbounded(EACH) | {"key": "at.symbol", "within": "1 event"}
    run = Run(document, EACH | {"pattern": "other"})
    values = ["k", "K", None, "", 5, {"x": 1}, ["k"]]
    for number, value in enumerate(values):
        run.feed(event(f"e{number}", number, data={"at": {"symbol": value}}))
    run.feed(event("e7", 7, data={}))
    seen = [match.first for match in run.net.values() if match.pattern == "p"]
    assert seen == ["e0"]
    assert run.engine.counters.unseen == 7
    run.feed(event("five", 9, key="5", data={"at": {"symbol": 5}}))
    assert "five-five" in matches(run), "an integer is its digits"


def test_unseen_events_neither_stand_between_nor_count_in_a_window() -> None:
    document = PAIR | {"key": "symbol", "within": "2 events"}
    records = [
        event("e1", 1, data={"x": 1, "symbol": "k"}),
        event("e2", 2, 0),
        event("e3", 3, data={"x": 2, "symbol": "k"}),
    ]
    assert result(document, *records) == ["e1-e3"]


# --- several patterns, and the order of what is said


def test_changes_are_ordered_by_key_start_end_and_id() -> None:
    """One arc record that takes from many keys and gives to many: retracts first, then inserts."""
    document = automaton(arc("low", "a", "z", "e.x == 1"), arc("more", "z", "z", "e.x == 1"))
    records = [
        event("e1", 2, 1),
        event("e2", 3, 1),
        event("e0", 1, 2, key="é"),
        event("e9", 9, 1, key="B"),
        event("e5", 5, 2),
    ]
    run = Run(document).feed_all(records)
    assert matches(run) == ["e1-e1", "e1-e2", "e2-e2", "e9-e9"]
    step = run.feed(arc_change(arc("low", "a", "z", "e.x == 2")))
    # Keys by code point: B, k, é. Of k: (2, 2), (2, 3), (3, 3).
    assert said(step) == ["-e9-e9", "-e1-e1", "-e1-e2", "-e2-e2", "+e5-e5", "+e0-e0"]


def test_equal_spans_are_ordered_by_id() -> None:
    document = automaton(*(arc(f"n{n}", "a", "z", set={"n": str(n)}) for n in range(5)), registers={"n": 0})
    ids = [
        change.id for change in Run(document).feed(event("e1", 1)).changes if not isinstance(change, EmittedPunctuation)
    ]
    assert len(ids) == 5
    assert ids == sorted(ids)


def test_patterns_are_independent_and_punctuate_in_order_of_their_names() -> None:
    run = Run(EACH | {"pattern": "b"}, PAIR | {"pattern": "a"}, EACH | {"pattern": "B", "speculation": 0})
    assert said(run.feed(event("e1", 1, 1))) == ["+e1-e1"], "b at once; B waits"
    assert said(run.feed(event("e2", 2, 2))) == ["+e1-e2", "+e2-e2"]
    # A changed arc of one pattern is none of the others' business.
    assert said(run.feed(arc_change({"id": "each"}, None, 0, pattern="b"))) == ["-e1-e1", "-e2-e2"]
    assert said(run.feed(punctuation(5))) == ["+e1-e1", "+e2-e2", "B<5", "a<5", "b<5"]


def test_match_changes_come_before_the_punctuation() -> None:
    run = Run(SPAN, speculation=0).feed_all([event("e1", 1, 1), event("e2", 2, 2), event("e3", 3, 2)])
    assert said(run.feed(punctuation(9))) == ["+e1-e2", "+e1-e3", "p<9"]


def test_no_pattern_at_all_is_fine() -> None:
    run = Run()
    assert spoken(run, event("e1", 1), punctuation(5), event("e2", 9), punctuation(50)) == [[], [], [], []]
