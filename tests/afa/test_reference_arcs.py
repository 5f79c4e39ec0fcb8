"""Section 3 of the semantics by hand: arcs that come, change and go over stored events, and those that are late."""

from __future__ import annotations

import math
from typing import Any

import pytest
from support.automata import (
    EACH,
    PAIR,
    arc,
    arc_change,
    arc_punctuation,
    arc_removal,
    automaton,
    event,
    matches,
    punctuation,
    result,
    said,
)
from support.runs import Run

from afa.document import build_pattern
from afa.reading import Fault

EVENTS = [event("e1", 1, 1), event("e2", 2, 2), event("e3", 3, 3)]


def stored(document: dict[str, Any] = PAIR) -> Run:
    return Run(document).feed_all(EVENTS)


def bad(run: Run, record: dict[str, Any]) -> Fault:
    """The record is refused and leaves no trace."""
    before = {name: dict(table.arcs) for name, table in run.engine.tables.items()}
    with pytest.raises(Fault) as caught:
        run.feed(record)
    assert {name: dict(table.arcs) for name, table in run.engine.tables.items()} == before
    return caught.value


# --- what changes mean


def test_a_new_arc_reaches_back() -> None:
    run = stored()
    assert matches(run) == ["e1-e2"]
    assert said(run.feed(arc_change(arc("three", "a", "z", "e.x == 3")))) == ["+e3-e3"]
    assert said(run.feed(arc_change(arc("new", "b", "z", "e.x == 2")))) == [], "the same match by another way"


def test_a_new_arc_may_bring_new_states() -> None:
    run = stored()
    assert said(run.feed(arc_change(arc("in", "a", "new", "e.x == 2")))) == []
    assert said(run.feed(arc_change(arc("out", "new", "z", "e.x == 3")))) == ["+e2-e3"]


@pytest.mark.parametrize(
    ("valid", "expected"),
    [
        ((None, None), ["e1-e1", "e2-e2", "e3-e3"]),
        ((2, None), ["e2-e2", "e3-e3"]),
        ((None, 2), ["e1-e1"]),
        ((2, 3), ["e2-e2"]),
        ((2, 2), []),  # re <= le is never
        ((3, 1), []),
    ],
)
def test_a_lifetime_is_from_le_to_before_re(valid: tuple[int | None, int | None], expected: list[str]) -> None:
    assert result(EACH, *EVENTS, arc_change({"id": "each"}, *valid)) == expected
    assert result(EACH, arc_change({"id": "each"}, *valid), *EVENTS) == expected, "before or after the events"
    assert result(automaton(arc("each", "a", "z", valid=list(valid))), *EVENTS) == expected


def test_another_lifetime_replaces_the_old_one() -> None:
    run = stored(EACH)
    assert said(run.feed(arc_change({"id": "each"}, 2, None))) == ["-e1-e1"]
    assert said(run.feed(arc_change({"id": "each"}, None, 3))) == ["-e3-e3", "+e1-e1"]


def test_a_body_replaces_the_arc_and_its_past() -> None:
    run = stored(EACH)
    assert said(run.feed(arc_change(arc("each", "a", "z", "e.x > 2"), None, None))) == ["-e1-e1", "-e2-e2"]
    # No lifetime given: always, whatever it was before.
    run.feed(arc_change({"id": "each"}, 9, 9))
    assert said(run.feed(arc_change(arc("each", "a", "z", "e.x > 1")))) == ["+e2-e2", "+e3-e3"]


def test_a_removed_arc_takes_its_past_along() -> None:
    run = stored(EACH)
    assert said(run.feed(arc_removal("each"))) == ["-e1-e1", "-e2-e2", "-e3-e3"]
    assert "no arc `each`" in bad(run, arc_removal("each")).what, "then its id is unknown"
    assert "no arc `each`" in bad(run, arc_change({"id": "each"}, 1, 2)).what
    assert said(run.feed(arc_change(arc("each", "a", "z", "e.x == 1")))) == ["+e1-e1"], "until a body brings it back"


def test_partial_matches_live_on_over_a_change_of_pattern() -> None:
    """Example: from ts 3 on the pair ends with a 3 instead of a 2; the 1 at ts 2 was consumed by the old pattern."""
    run = Run(PAIR).feed_all([event("e1", 2, 1), event("e2", 3, 3), event("e3", 4, 1), event("e4", 5, 2)])
    assert matches(run) == ["e3-e4"]
    assert said(run.feed(arc_change({"id": "two"}, None, 3))) == ["-e3-e4"]
    assert said(run.feed(arc_change(arc("two-from-3", "b", "z", "e.x == 3"), 3, None))) == ["+e1-e2"]


def test_arc_and_event_records_may_be_mixed_in_any_way() -> None:
    changes = [arc_change(arc("new", "b", "z", "e.x == 3"), 3, None), arc_change({"id": "two"}, None, 2)]
    one = [changes[0], event("e1", 2, 1), changes[1], event("e2", 3, 3)]
    other = [event("e2", 3, 3), changes[0], changes[1], event("e1", 2, 1)]
    assert result(PAIR, *one) == result(PAIR, *other) == ["e1-e2"]


# --- final states


def test_a_change_may_bring_a_final_state() -> None:
    run = stored()
    assert said(run.feed(arc_change(arc("end", "a", "new", "e.x == 3", final=True)))) == ["+e3-e3"]
    assert said(run.feed(arc_change(arc("other", "a", "new", "e.x == 2", final=True)))) == ["+e2-e2"], "final already"
    assert said(run.feed(arc_change(arc("third", "a", "z", "e.x == 1", final=True)))) == ["+e1-e1"]


@pytest.mark.parametrize("target", ["a", "b"])
def test_a_change_makes_no_plain_state_final(target: str) -> None:
    fault = bad(stored(), arc_change(arc("end", "a", target, final=True)))
    assert fault.path == ("arc", "final")


def test_a_state_stays_final_whatever_the_lifetime_of_the_arc_that_said_so() -> None:
    never = automaton(arc("says", "a", "y", final=True, valid=[5, 5]), arc("in", "a", "y", "e.x == 1"), final=[])
    assert result(never, *EVENTS) == ["e1-e1"]
    run = stored(never)
    assert said(run.feed(arc_change({"id": "says"}, None, 0))) == []
    assert said(run.feed(punctuation(50))) == ["p<50"], "cleanup takes the arc, not the state"
    assert said(run.feed(event("e9", 60, 1))) == ["+e9-e9"]


# --- refused


@pytest.mark.parametrize(
    ("record", "path", "what"),
    [
        (arc_change({"id": "nope"}, 1, 2), ("arc", "id"), "no arc `nope`"),
        (arc_removal("nope"), ("arc", "id"), "no arc `nope`"),
        (arc_change({"id": "two"}), ("arc",), "needs `valid`"),
        (arc_change({}, 1, 2), ("arc", "id"), "must be a text"),
        (arc_change({"from": "a", "to": "z"}), ("arc",), "needs `id`"),
        (arc_change({"id": "new", "from": "a"}), ("arc",), "needs `to`"),
        (arc_change({"id": "two", "when": "true"}), ("arc",), "needs `from`"),
        (arc_change(arc("new", "a", "z", valid=[1, 2])), ("arc", "valid"), "no field `valid`"),
        (arc_change(arc("new", "a", "z", "e.x >")), ("arc", "when"), "not an expression"),
        (arc_change(arc("new", "a", "z", set={"n": "1"})), ("arc", "set", "n"), "is not declared"),
        (arc_change({"id": "two"}, 1), ("valid",), "a pair"),
        (arc_change({"id": "two"}, 1, "x"), ("valid", 1), "integer or null"),  # type: ignore[arg-type]
        (arc_change({"id": "two"}, 2**63, None), ("valid", 0), "64 bits"),
        (arc_change(arc("new", "a", "z"), pattern="pp"), ("pattern",), "is not loaded"),
        (arc_removal("two", pattern="other"), ("pattern",), "is not loaded"),
        ({"op": "arc-retract", "pattern": "p", "arc": arc("two", "b", "z")}, ("arc",), "by its `id` alone"),
    ],
)
def test_bad_changes_are_refused_and_leave_no_trace(record: dict[str, Any], path: Any, what: str) -> None:
    fault = bad(stored(), record)
    assert fault.path == path
    assert what in fault.what
    assert fault.fix


def test_a_change_may_not_close_a_cycle_of_epsilon_arcs() -> None:
    document = automaton(arc("in", "a", "b"), arc("on", "b", "z", epsilon=True, valid=[1, 2]))
    run = stored(document)
    fault = bad(run, arc_change(arc("back", "z", "b", epsilon=True), 5, 9))
    assert "b -> z -> b" in fault.what or "z -> b -> z" in fault.what
    bad(run, arc_change(arc("loop", "z", "z", epsilon=True)))
    run.feed(arc_change(arc("on", "b", "z")))  # now it consumes an event
    assert run.feed(arc_change(arc("back", "z", "b", epsilon=True))).late is None


# --- late


def late(run: Run, record: dict[str, Any]) -> bool:
    """Whether it is late; then nothing has changed."""
    before = dict(run.engine.tables["p"].arcs), dict(run.net)
    count = run.engine.counters.late
    step = run.feed(record)
    if step.late:
        assert step.changes == []
        assert (dict(run.engine.tables["p"].arcs), dict(run.net)) == before
        assert run.engine.counters.late == count + 1
    return bool(step.late)


LIVING = automaton(
    arc("always", "a", "z", "e.x == 1"),
    arc("past", "a", "z", "e.x == 2", valid=[0, 3]),
    arc("open", "a", "z", "e.x == 3", valid=[0, None]),
    arc("future", "a", "z", "e.x == 4", valid=[20, 30]),
    arc("never", "a", "z", "e.x == 5", valid=[4, 4]),
)


@pytest.mark.parametrize(
    ("record", "is_late"),
    [
        (arc_change(arc("new", "a", "z"), 10, None), False),
        (arc_change(arc("new", "a", "z"), 9, None), True),
        (arc_change(arc("new", "a", "z"), None, 5), True),
        (arc_change(arc("new", "a", "z")), True),  # always: from the beginning
        (arc_change(arc("new", "a", "z"), 3, 3), False),  # never valid: changes nothing
        (arc_change({"id": "open"}, 0, 10), False),
        (arc_change({"id": "open"}, 0, 9), True),
        (arc_change({"id": "open"}, 0, None), False),  # nothing changes
        (arc_change({"id": "open"}, 1, None), True),
        (arc_change({"id": "open"}, 9, 9), True),  # never valid: also not at 0
        (arc_change({"id": "always"}, None, 12), False),
        (arc_change({"id": "always"}, 12, None), True),
        (arc_change({"id": "past"}, 0, 3), False),
        (arc_change({"id": "past"}, 0, 4), True),
        (arc_change({"id": "past"}, 0, None), True),
        (arc_change({"id": "never"}, 7, 5), False),  # never, as before
        (arc_change({"id": "never"}, 9, 11), True),
        (arc_change({"id": "never"}, 10, 11), False),
        (arc_change({"id": "future"}, 10, 30), False),
        (arc_change({"id": "future"}, 9, 30), True),
        (arc_change({"id": "future"}, 40, 50), False),
        (arc_change(arc("open", "a", "z", "e.x==3  # the same"), 0, None), False),
        (arc_change(arc("open", "a", "z", "e.x == 3.0"), 0, None), True),
        (arc_change(arc("open", "a", "z", "e.x == 3"), 0, 10), False),
        (arc_change(arc("future", "a", "z", "e.x == 9"), 20, 30), False),
        (arc_change(arc("past", "a", "z", "e.x == 9"), 20, 30), True),  # replaces its past too
        (arc_change(arc("never", "a", "z", "e.x == 9"), 20, 30), False),
        (arc_removal("always"), True),
        (arc_removal("past"), True),
        (arc_removal("open"), True),
        (arc_removal("future"), False),
        (arc_removal("never"), False),
    ],
)
def test_a_change_is_late_iff_it_changes_anything_below_the_punctuation(record: dict[str, Any], is_late: bool) -> None:
    records = [event(f"e{x}", 11 + x, x) for x in range(1, 6)]
    assert late(Run(LIVING).feed_all([*records, punctuation(10)]), record) is is_late
    # The same bound by ta: max(ta, tp).
    assert late(Run(LIVING).feed_all([*records, punctuation(4), arc_punctuation(10)]), record) is is_late
    # Before any punctuation nothing is late.
    assert not late(Run(LIVING).feed_all(records), record)


def test_the_bound_is_tp_even_when_ta_is_behind() -> None:
    run = Run(LIVING).feed_all([punctuation(10), arc_punctuation(2)])  # tp was 10 and never goes back
    assert late(run, arc_change(arc("new", "a", "z"), 9, None))
    assert not late(run, arc_change(arc("new", "a", "z"), 10, None))
    run = Run(LIVING).feed_all([arc_punctuation(2), punctuation(10)])  # tp = min(10, 2)
    assert not late(run, arc_change(arc("new", "a", "z"), 2, None))
    assert late(run, arc_change(arc("newer", "a", "z"), 1, None))


def test_an_arc_that_cleanup_removed_stays_known() -> None:
    run = Run(LIVING).feed_all([event("e1", 1, 2), punctuation(100)])
    assert not late(run, arc_change({"id": "past"}, 0, 3)), "changes nothing"
    assert late(run, arc_change({"id": "past"}, 0, None))
    assert late(run, arc_removal("past"))


def test_a_refused_change_is_bad_even_when_it_would_be_late() -> None:
    run = Run(LIVING).feed_all([punctuation(10)])
    bad(run, arc_change({"id": "nope"}, 0, 5))


def test_patterns_of_documents_are_untouched_by_changes() -> None:
    pattern = build_pattern(EACH)
    run = stored(EACH)
    run.feed(arc_removal("each"))
    assert pattern.arcs[0].lifetime.re == math.inf
    assert run.engine.tables["p"].pattern.arcs == pattern.arcs


def test_making_its_own_target_final_is_late_below_the_punctuation() -> None:
    document = automaton(arc("first", "a", "b"), arc("last", "b", "z"))
    run = Run(document)
    run.feed(arc_change(arc("side", "a", "new")))
    run.feed_all([event("e1", 1, 1), punctuation(10)])
    assert run.feed(arc_change(arc("side", "a", "new") | {"final": True})).late
