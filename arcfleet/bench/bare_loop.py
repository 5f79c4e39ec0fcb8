"""The yardstick of the worker's rows: whoever only consumes, with the worker's own client settings, in a process of its
own (`python -m arcfleet.bench.bare_loop`)."""

from __future__ import annotations

import json
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, TopicPartition

from arcfleet.bench.kafka import PARTITIONS, SOURCE
from arcfleet.fleet.clients import consumer_settings, open_consumer
from arcfleet.fleet.document import load_fleet

BATCH_RECORDS = 5_000
_WAIT_S = 0.5


def consume(consumer: Any, count: int) -> dict[str, float]:
    """Wall and CPU seconds from the first record to the last; every value is touched."""
    consumer.assign([TopicPartition(SOURCE, number, 0) for number in range(PARTITIONS)])
    seen = size = 0
    began_s = cpu_s = 0.0
    while seen < count:
        for message in consumer.consume(BATCH_RECORDS, _WAIT_S):
            if not seen:
                began_s, cpu_s = time.perf_counter(), time.process_time()
            if message.error() is None:
                size += len(message.value())
                seen += 1
            elif message.error().code() != KafkaError._PARTITION_EOF:
                raise OSError(message.error().str())
    return {"seconds": time.perf_counter() - began_s, "cpu": time.process_time() - cpu_s, "bytes": size}


def main() -> None:
    about = json.loads(sys.argv[1])
    settings = consumer_settings(load_fleet(Path(about["fleet"])))
    with closing(open_consumer(settings)) as consumer:
        sys.stdout.write(json.dumps(consume(consumer, about["events"])))


if __name__ == "__main__":
    main()
