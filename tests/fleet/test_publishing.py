"""What becomes of a tape's lines, and when they are sent."""

import io
import json

import pytest

from afa.errors import RecordError
from afa.source import Source
from afa.tape import Tape, TapeLine
from arcfleet.fleet.errors import FleetError
from arcfleet.fleet.publishing import DeliveryFailure, Pace, Publication, Publisher, check_source, publication

EVENT = b'{ "id":"e1", "key":"YH\xc3\x96O", "ts":1000, "data":{"x":1e400, "n":0.10} }'
PUNCTUATION = b'{"op":"punctuation","ts":5000,"when":"e.floor <= 3"}'


def line(raw, number=7):
    return TapeLine("day.jsonl", number, raw)


def test_an_event_goes_as_it_stands_under_its_key():
    assert publication(line(EVENT)) == Publication("YHÖO".encode(), EVENT)
    retraction = b'{"op":"retract","id":"e1","key":"k","ts":1}'
    assert publication(line(retraction)) == Publication(b"k", retraction)


def test_a_punctuation_has_no_key():
    assert publication(line(PUNCTUATION)) == Publication(None, PUNCTUATION)


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"op": "arc", "pattern": "q1", "arc": {"id": "a1"}, "valid": [None, 5]}, "an arc change cannot"),
        ({"op": "arc-retract", "pattern": "q1", "arc": {"id": "a1"}}, "an arc change cannot"),
        ({"op": "arc-punctuation", "ts": 5}, "an arc-punctuation cannot"),
        ({"op": "insrt", "key": "k", "ts": 1}, "unknown op `insrt`"),
    ],
)
def test_what_is_for_no_topic_is_refused_with_its_place(record, said):
    with pytest.raises(RecordError, match=said) as raised:
        publication(line(json.dumps(record).encode()))
    assert str(raised.value.place) == "day.jsonl:7:8"
    assert raised.value.fix


def test_a_line_that_is_too_long_is_refused():
    (long,) = Tape(io.BytesIO(EVENT), "day.jsonl", max_record_bytes=20)
    with pytest.raises(RecordError, match=r"day\.jsonl:1:1: a line of more than 20 bytes .* \(fix: split the record\)"):
        publication(long)


def test_a_source_that_reads_tapes_says_nothing():
    assert check_source(Source("t")) == []
    assert check_source(Source("t", key="key", unit="us")) == []


def test_what_a_source_takes_from_elsewhere_is_told():
    assert check_source(Source("t", time="record", data=".", type="header:ce_type")) == [
        "time: record",
        "type: header:ce_type",
        "data: .",
    ]


@pytest.mark.parametrize(
    ("name", "said"),
    [("codec", "msgpack"), ("time", "payload.at"), ("key", "header:k"), ("op", "kind"), ("unit", "iso8601")],
)
def test_a_source_that_cannot_read_a_tape_is_refused(name, said):
    with pytest.raises(FleetError, match=f"`{name}: {said}` .fix: publish to a source with"):
        check_source(Source("t", **{name: said}))


class Clock:
    def __init__(self):
        self.now_s = 100.0

    def __call__(self):
        return self.now_s

    def follow(self, pace, records, work_s=0.0):
        """Waits as it is told; the moments at which records are sent, from the beginning."""
        moments = []
        for _ in range(records):
            pace.next()
            self.now_s += pace.wait_s
            moments.append(round(self.now_s - 100.0, 6))
            self.now_s += work_s
        return moments


def test_records_are_spaced_evenly_whatever_sending_costs():
    clock = Clock()
    assert clock.follow(Pace(10, clock), 4, work_s=0.04) == [0.0, 0.1, 0.2, 0.3]


def test_a_short_delay_is_caught_up_with_and_a_long_one_is_not():
    clock = Clock()
    pace = Pace(100, clock)
    clock.follow(pace, 3)
    clock.now_s += 0.05
    assert clock.follow(pace, 6)[-1] == 0.08
    clock.now_s += 60
    assert len([moment for moment in clock.follow(pace, 50) if moment == 60.08]) == 11  # a tenth of a second's worth


class FullProducer:
    """Its queue holds two records; `answers` are what the brokers say of each, in order."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.queue = []
        self.sent = []

    def produce(self, topic, value, *, on_delivery, **where):
        if len(self.queue) == 2:
            raise BufferError
        self.queue.append(on_delivery)
        self.sent.append((value, where))

    def poll(self, timeout_s):
        if timeout_s and self.queue:
            self.queue.pop(0)(self.answers.pop(0) if self.answers else None, None)

    def flush(self, timeout_s):
        self.poll(timeout_s)
        return len(self.queue)


class Refused:
    def str(self):
        return "Broker: Message size too large"

    def name(self):
        return "MSG_SIZE_TOO_LARGE"


def test_a_full_queue_is_waited_for():
    producer = FullProducer()
    publisher = Publisher(producer, "t", 3)
    publisher.publish([line(EVENT), line(PUNCTUATION), line(EVENT)])
    assert [where for _, where in producer.sent] == [
        {"key": "YHÖO".encode()},
        *({"partition": number} for number in range(3)),
        {"key": "YHÖO".encode()},
    ]
    assert (publisher.records, publisher.punctuations, publisher.failure) == (2, 1, None)


def test_nothing_is_sent_after_a_failure():
    producer = FullProducer(None, Refused())
    publisher = Publisher(producer, "t", 1)
    publisher.publish(line(EVENT, number) for number in range(1, 100))
    assert publisher.failure == DeliveryFailure(
        2, "Broker: Message size too large", "split the record, or raise the topic's max.message.bytes"
    )
    assert len(producer.sent) < 6
    assert publisher.records == len(producer.sent) - 1


def test_what_came_before_a_bad_line_is_delivered():
    publisher = Publisher(FullProducer(), "t", 1)
    with pytest.raises(RecordError, match="not JSON"):
        publisher.publish([line(EVENT), line(b"nonsense", 8), line(EVENT)])
    assert publisher.records == 1
