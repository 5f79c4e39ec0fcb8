"""Silent partitions: the clock moves their punctuation, and never further than the time that passed."""

from types import SimpleNamespace

from worker.binding import Mark
from worker.punctuality import Idle, IdleRule
from worker.records import Taken

RULE = IdleRule(idle_s=60.0, slack=500, units_per_s=1_000)
ENDS = {"t": 7, "u": 0}


def partition(largest=None, ends=ENDS, **punctuations):
    reached = {"t": None, "u": None} | punctuations
    mark = Mark({"t": 7, "u": 0}, reached, 0)
    return SimpleNamespace(number=0, mark=mark, ends=ends, largest_ts=lambda topic: largest if topic == "t" else None)


def idle(*topics, lag=0):
    known = Idle(dict.fromkeys(topics, RULE), lambda *_: lag)
    assert list(known.due(partition(), 0.0)) == []
    return known


def test_after_a_while_time_goes_on_by_the_clock():
    known = idle("t")
    assert list(known.due(partition(10_000, t=9_500), 59.0)) == []
    assert list(known.due(partition(10_000, t=9_500), 60.0)) == [("t", 69_500)]
    assert list(known.due(partition(10_000, t=69_500), 61.0)) == [("t", 70_500)]


def test_not_with_a_backlog():
    assert list(idle("t").due(partition(10_000, {"t": 6}), 90.0)) == []
    assert list(idle("t").due(partition(10_000, {}), 90.0)) == []
    assert list(idle("t", lag=1).due(partition(10_000), 90.0)) == [], "behind an open transaction"


def test_time_ends_with_64_bits():
    end = 2**63 - 1
    assert list(idle("t").due(partition(end), 90.0)) == [("t", end)]
    known = Idle({"t": RULE}, lambda *_: 0)
    assert list(known.due(partition(t=end), 0.0)) == []
    assert list(known.due(partition(t=end), 90.0)) == [("t", end)]


def test_a_record_begins_the_silence_anew():
    known = idle("t")
    known.note(Taken(0, [SimpleNamespace()], ["t"], [7]), 50.0)
    assert list(known.due(partition(10_000), 100.0)) == []
    assert list(known.due(partition(10_000), 110.0)) == [("t", 69_500)]


def test_after_a_restore_what_was_committed_goes_on_by_the_clock():
    """Its own steps must not be counted again with the next one."""
    known = Idle({"t": RULE}, lambda *_: 0)
    assert list(known.due(partition(t=5_000), 0.0)) == []
    assert list(known.due(partition(t=5_000), 60.0)) == [("t", 65_000)]
    assert list(known.due(partition(t=65_000), 60.1)) == [("t", 65_100)]
    known.forget(0)
    assert list(known.due(partition(t=90_000), 70.0)) == []
    assert list(known.due(partition(t=90_000), 130.0)) == [("t", 150_000)]


def test_a_source_without_records_follows_the_others():
    known = idle("u")
    assert list(known.due(partition(10_000), 60.0)) == []
    assert list(known.due(partition(10_000, t=9_500), 60.0)) == [("u", 9_500)]
    assert list(known.due(partition(10_000, t=9_900, u=9_500), 90.0)) == [("u", 9_900)]
