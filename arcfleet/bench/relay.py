"""The yardstick of latency: consumes, and produces the records that a match would come of, at least once, as often
committed as a worker commits (`python -m arcfleet.bench.relay`). Ends on SIGTERM."""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path
from typing import Any

from arcfleet.bench.kafka import SOURCE
from arcfleet.bench.ticks import HIT_MARK
from arcfleet.fleet.clients import consumer_settings, open_consumer, open_producer, producer_settings
from arcfleet.fleet.document import load_fleet

_BATCH_RECORDS = 5_000
_WAIT_S = 0.05
_FLUSH_S = 10.0


def main() -> None:
    fleet = load_fleet(Path(json.loads(sys.argv[1])["fleet"]))
    stopped = False

    def stop(*_: Any) -> None:
        nonlocal stopped
        stopped = True

    signal.signal(signal.SIGTERM, stop)
    consumer = open_consumer(
        consumer_settings(fleet) | {"auto.offset.reset": "earliest", "enable.auto.offset.store": True}
    )
    producer, matches = open_producer(producer_settings(fleet)), fleet.topic("matches")
    consumer.subscribe([SOURCE])
    committed_s, moved = time.monotonic(), False
    while not stopped:
        first = consumer.poll(_WAIT_S)
        for message in [first, *consumer.consume(_BATCH_RECORDS - 1, 0)] if first else []:
            value = message.value() if message.error() is None else None
            moved |= value is not None
            if value is not None and HIT_MARK in value:
                producer.produce(matches, value, message.key())
        producer.poll(0)
        if moved and time.monotonic() - committed_s >= fleet.commit_interval_s:
            producer.flush(_FLUSH_S)
            consumer.commit(asynchronous=False)
            committed_s, moved = time.monotonic(), False
    consumer.close()


if __name__ == "__main__":
    main()
