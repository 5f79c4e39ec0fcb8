"""What can be wrong with a fleet: its document, its topics, its brokers."""

from __future__ import annotations

from afa.errors import AfaError


class FleetError(AfaError):
    """The fleet document, a setting, or what it says about topics is not acceptable."""


class OptionError(FleetError):
    """A flag of a command has a value that the fleet cannot take: a mistake in usage."""


class KafkaError(OSError):
    """The brokers, not the input, failed: out of reach, or they refused who we are."""
