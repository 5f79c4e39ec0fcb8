"""The reader that checks order finds what neither doubles nor orphans show."""

import json
from itertools import pairwise

import pytest
from support.order import History, Logged, inversions

from afa.document import build_pattern
from arcfleet.fleet.arcs import StampedArc

PAIR = {
    "pattern": "pair",
    "start": "s",
    "final": ["f"],
    "arcs": [
        {"id": "one", "from": "s", "to": "m", "when": "e.x == 1"},
        {"id": "two", "from": "m", "to": "f", "when": "e.x == 2"},
    ],
}
END_OF_TWO = StampedArc("pair", 100, PAIR["arcs"][1], (None, 25))


def logged(*events):
    return [
        Logged(offset, b"k", json.dumps({"id": f"e{offset}", "ts": ts, "data": {"x": x}}).encode())
        for offset, (ts, x) in enumerate(events)
    ]


def history(*arcs):
    """First (10, 30), then (20, 30), which the event at 20 puts in its place, then (40, 50)."""
    log = logged((10, 1), (30, 2), (20, 1), (40, 1), (50, 2))
    return History([build_pattern(PAIR)], ("events", 0), log, arcs)


def told(text):
    """`+a -a`: a match is told, and taken back."""
    return [
        {"op": "insert" if word[0] == "+" else "retract", "key": "k", "match": IDS[word[1:]]} for word in text.split()
    ]


def named():
    """The ids of the three matches, as they come."""
    nets = sorted(history().moments("k").items(), key=lambda one: one[1])
    first, second, third = (min(net - before) for (before, _), (net, _) in pairwise(nets))
    return {"a": first, "b": second, "c": third}


IDS = named()


@pytest.mark.parametrize("text", ["+a -a +b +c", "+b +c", "+a -a +b", "+a", ""])
def test_one_process_may_tell_it_so(text):
    """In batches of one record, of all, and if it has not come further."""
    assert not inversions(told(text), history())


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("+b +a -a +c", 1),  # what was done before comes after what came of it
        ("+a +b -a +c", 1),  # never did both stand
        ("+c +a -a +b", 0),
        ("+a -a +b +b", 3),
        ("-a +b +c", 0),
        ("+b -b +b +c", 1),
    ],
)
def test_what_is_told_out_of_order_is_found(text, at):
    (found,) = inversions(told(text), history())
    assert f"from change {at} on" in found


@pytest.mark.parametrize("text", ["+a -a +b +c -b -c", "+a -a", "+a -a +b -b", "", "+b -b"])
def test_an_arc_change_may_come_at_any_moment(text):
    assert not inversions(told(text), history(END_OF_TWO))


def test_after_an_arc_change_nothing_is_told_of_what_was_before():
    assert inversions(told("+a -a +c -c"), history(END_OF_TWO)) != []
