"""Consumed messages as columns, by partition."""

from types import SimpleNamespace

from worker.records import Needed, by_partition


def message(topic, partition, offset):
    told = {"topic": topic, "partition": partition, "offset": offset, "value": b"%d" % offset, "key": b"k"}
    return SimpleNamespace(**{name: lambda value=value: value for name, value in told.items()})


MIXED = [message("t", 0, 5), message("u", 0, 8), message("t", 1, 3), message("t", 0, 6), message("t", 0, 7)]
ONE = [one for one in MIXED if one.topic() == "t"]


def test_a_partition_has_its_records_in_the_order_in_which_they_came():
    taken = by_partition(MIXED, ["t", "u"])
    assert {number: list(zip(part.topics, part.offsets, strict=True)) for number, part in taken.items()} == {
        0: [("t", 5), ("u", 8), ("t", 6), ("t", 7)],
        1: [("t", 3)],
    }
    assert taken[0].positions() == {"t": 8, "u": 9}
    assert taken[0].counts() == {"t": 3, "u": 1}


def test_one_topic_is_named_once():
    taken = by_partition(ONE, ["t"])
    assert (taken[0].topics, taken[0].offsets, taken[0].positions()) == (["t"], [5, 6, 7], {"t": 8})
    columns = taken[0].columns(Needed(keys=True, timestamps=False, headers=False))
    assert columns["partitions"] == [("t", 0)]
    assert (columns["batch"], columns["keys"]) == ([b"5", b"6", b"7"], [b"k"] * 3)


def test_a_header_that_is_no_text_is_not_there():
    def refuses():
        return b"\xff".decode()

    strange = message("t", 0, 8)
    strange.headers = refuses
    strange.timestamp = lambda: (1, 7)
    usual = message("t", 0, 9)
    usual.headers = lambda: [("a", b"1"), ("b", None)]
    usual.timestamp = lambda: (1, 7)
    columns = by_partition([strange, usual], ["t"])[0].columns(Needed(keys=True, timestamps=True, headers=True))
    assert columns["headers"] == [[], [("a", b"1"), ("b", None)]]


def test_what_was_processed_before_is_left_out():
    for messages, topics, left in ((MIXED, ["t", "u"], [6, 7]), (ONE, ["t"], [6, 7])):
        taken = by_partition(messages, topics)[0]
        assert taken.since({"t": 5, "u": 8}) is taken
        rest = taken.since({"t": 6, "u": 9})
        assert rest.offsets == left
        assert rest.counts() == {"t": 2}
        none = taken.since({"t": 8, "u": 9})
        assert (none.messages, none.counts()) == ([], {})
        assert none.since({"t": 0, "u": 0}).messages == []
