"""A fleet as somebody sees it who only looks: how far it is, and what it has told in all."""

from __future__ import annotations

import time
from contextlib import closing
from typing import Final

from arcfleet.fleet.clients import open_consumer, reader_settings
from arcfleet.fleet.document import Fleet
from arcfleet.fleet.tailing import Ends, Tail, ToldChange, assign, follow, read_change, tail_settings
from arcfleet.fleet.topic_admin import connect, partitions_and_config, read_ends
from arcfleet.net_matches import NetMatches

_ANSWER_S: Final = 10.0
_END_S: Final = 60.0


def left_to_do(fleet: Fleet) -> int:
    """Records of the sources that the fleet has not committed yet. Raises KafkaException if no broker answers."""
    from confluent_kafka import TopicPartition  # noqa: PLC0415 - an extra

    left = 0
    with closing(open_consumer(reader_settings(fleet))) as asked:
        for source in fleet.sources:
            numbers = asked.list_topics(source.topic, timeout=_ANSWER_S).topics[source.topic].partitions
            for place in asked.committed([TopicPartition(source.topic, number) for number in numbers], _ANSWER_S):
                low, high = asked.get_watermark_offsets(place, timeout=_ANSWER_S)
                left += high - max(low, place.offset)
    return left


def net_matches(fleet: Fleet) -> NetMatches[ToldChange]:
    """What stands after the whole matches topic, from its beginning to where it ends now. Raises KafkaError."""
    topic, net = fleet.topic("matches"), NetMatches[ToldChange]()
    admin = connect(fleet, _ANSWER_S)
    partitions, _ = partitions_and_config(admin, topic, "make the fleet's topics: arcfleet topics apply")
    ends = Ends(read_ends(admin, topic, partitions))
    with closing(open_consumer(tail_settings(fleet))) as consumer:
        assign(consumer, topic, partitions, latest=False)
        for batch in Tail(ends, _END_S, time.monotonic).batches(consumer, lambda: False):
            for message in batch:
                follow(net, read_change(message.value(), message.key(), message.headers() or []))
    return net
