"""A real Kafka on this machine, for tests and trials: see docs/local-kafka.md."""

from arcfleet.local.broker import LocalBroker
from arcfleet.local.errors import (
    BrokerError,
    DownloadError,
    JavaMissingError,
    LocalKafkaError,
    MavenMissingError,
    PortTakenError,
    SettingError,
)
from arcfleet.local.settings import Listener

__all__ = [
    "BrokerError",
    "DownloadError",
    "JavaMissingError",
    "Listener",
    "LocalBroker",
    "LocalKafkaError",
    "MavenMissingError",
    "PortTakenError",
    "SettingError",
]
