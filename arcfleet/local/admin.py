"""The two admin calls that are needed around a broker; the only module here that needs a Kafka client."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from arcfleet.local.errors import LocalKafkaError

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

_CALL_TIMEOUT_S = 1.0
_TOPIC_DEADLINE_S = 30.0


def cluster_id_when_ready(bootstrap: str, deadline_s: float, is_alive: Callable[[], bool]) -> str | None:
    """Blocks until the broker answers an admin call and says which cluster it is; None when `deadline_s` have passed or
    `is_alive` says no."""
    from confluent_kafka import KafkaException  # noqa: PLC0415 - as below

    admin = _admin(bootstrap)
    end_s = time.monotonic() + deadline_s
    while time.monotonic() < end_s and is_alive():
        try:
            metadata = admin.list_topics(timeout=_CALL_TIMEOUT_S)
        except KafkaException:
            continue
        if metadata.brokers:
            return str(metadata.cluster_id)
    return None


def create_topic(bootstrap: str, name: str, partitions: int, config: Mapping[str, str]) -> None:
    """Blocks until the topic is there; raises KafkaException, for instance if it was there before."""
    from confluent_kafka.cimpl import NewTopic  # noqa: PLC0415 - as below

    topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=dict(config))
    admin = _admin(bootstrap)  # kept by name: without its client the call in flight would be dropped
    admin.create_topics([topic], operation_timeout=_TOPIC_DEADLINE_S)[name].result(_TOPIC_DEADLINE_S)


def _admin(bootstrap: str) -> AdminClient:
    try:
        # The client is an extra (`arcfleet[kafka]`), and fetching jars does without it.
        from confluent_kafka.admin import AdminClient  # noqa: PLC0415
    except ImportError as error:
        raise LocalKafkaError("The Kafka client is missing: pip install 'arcfleet[kafka]'") from error
    return AdminClient(
        {
            "bootstrap.servers": bootstrap,
            # A broker that is still starting refuses connections: look again soon, and do not write that to stderr.
            "reconnect.backoff.ms": 50,
            "reconnect.backoff.max.ms": 200,
            "log_level": 0,
        }
    )
