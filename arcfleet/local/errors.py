"""What can go wrong around the local Kafka: one small tree, each message says what happened, where, and what to do."""

from __future__ import annotations


class LocalKafkaError(Exception):
    """Base of everything that `arcfleet.local` raises on purpose."""


class JavaMissingError(LocalKafkaError):
    """No Java, or one that is too old to run Kafka 4."""


class MavenMissingError(LocalKafkaError):
    """No `mvn` on the path, so the jars cannot be fetched."""


class DownloadError(LocalKafkaError):
    """Maven ran and did not bring the jars: registry out of reach, or jars other than the listed ones."""


class SettingError(LocalKafkaError):
    """An argument that cannot work was refused before anything was started."""


class BrokerError(LocalKafkaError):
    """The broker did not start, died, or did not stop; the message ends with the tail of its log."""


class PortTakenError(BrokerError):
    """Another program listens on a port that this broker has to use."""


class StackError(LocalKafkaError):
    """A part of the local stack has ended for good; `status` is that of a worker, which its command explains."""

    def __init__(self, what: str, status: int = 3) -> None:
        super().__init__(what)
        self.status = status
