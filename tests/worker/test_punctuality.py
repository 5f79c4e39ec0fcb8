"""Silent partitions: the clock moves their punctuation, and never further than the time that passed."""

from types import SimpleNamespace

from worker.binding import Mark
from worker.punctuality import Idle, IdleRule

RULE = IdleRule(idle_s=60.0, slack=500, units_per_s=1_000)
ENDS = {("t", 0): 7, ("u", 0): 0}


def partition(largest=None, **punctuations):
    reached = {"t": None, "u": None} | punctuations
    mark = Mark({"t": 7, "u": 0}, reached, 0)
    return SimpleNamespace(number=0, mark=mark, largest_ts=lambda topic: largest if topic == "t" else None)


def idle(*topics):
    known = Idle(dict.fromkeys(topics, RULE))
    assert list(known.due(partition(), ENDS, 0.0)) == []
    return known


def test_after_a_while_time_goes_on_by_the_clock():
    known = idle("t")
    assert list(known.due(partition(10_000, t=9_500), ENDS, 59.0)) == []
    assert list(known.due(partition(10_000, t=9_500), ENDS, 60.0)) == [("t", 69_500)]
    assert list(known.due(partition(10_000, t=69_500), ENDS, 61.0)) == [("t", 70_500)]


def test_not_with_a_backlog():
    assert list(idle("t").due(partition(10_000), {("t", 0): 6}, 90.0)) == []
    assert list(idle("t").due(partition(10_000), {}, 90.0)) == []


def test_a_record_begins_the_silence_anew():
    known = idle("t")
    known.note([SimpleNamespace(topic=lambda: "t", partition=lambda: 0)], 50.0)
    assert list(known.due(partition(10_000), ENDS, 100.0)) == []
    assert list(known.due(partition(10_000), ENDS, 110.0)) == [("t", 69_500)]


def test_after_a_restore_what_was_committed_goes_on_by_the_clock():
    """Its own steps must not be counted again with the next one."""
    known = Idle({"t": RULE})
    assert list(known.due(partition(t=5_000), ENDS, 0.0)) == []
    assert list(known.due(partition(t=5_000), ENDS, 60.0)) == [("t", 65_000)]
    assert list(known.due(partition(t=65_000), ENDS, 60.1)) == [("t", 65_100)]
    known.forget(0)
    assert list(known.due(partition(t=90_000), ENDS, 70.0)) == []
    assert list(known.due(partition(t=90_000), ENDS, 130.0)) == [("t", 150_000)]


def test_a_source_without_records_follows_the_others():
    known = idle("u")
    assert list(known.due(partition(10_000), ENDS, 60.0)) == []
    assert list(known.due(partition(10_000, t=9_500), ENDS, 60.0)) == [("u", 9_500)]
    assert list(known.due(partition(10_000, t=9_900, u=9_500), ENDS, 90.0)) == [("u", 9_900)]
