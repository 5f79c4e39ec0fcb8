"""Whether a fleet can run a pattern: what cannot be right is refused before the first event."""

from __future__ import annotations

from collections.abc import Iterable

from afa.errors import did_you_mean
from afa.pattern import Pattern
from afa.source import Source
from arcfleet.fleet.document import Fleet
from arcfleet.fleet.errors import FleetError


def check_fitness(patterns: Iterable[Pattern], fleet: Fleet) -> None:
    """Raises FleetError that names the pattern, what does not fit, and how to mend it."""
    topics = sorted(source.topic for source in fleet.sources)
    for pattern in patterns:
        seen = pattern.sources or topics
        for topic in seen:
            if topic not in topics:
                raise FleetError(
                    f"the pattern `{pattern.name}` names the source `{topic}`, which the fleet does not have",
                    fix=did_you_mean(topic, topics, f"write some of {', '.join(topics)} in its `sources`"),
                )
        for source in fleet.sources:
            if source.topic in seen:
                _check_key(pattern, source)


def _check_key(pattern: Pattern, source: Source) -> None:
    """Events of one key lie in one partition only by the key that their topic is partitioned by."""
    if pattern.key_field is None or source.key == "record":
        return  # a record's key is bytes of any meaning: events whose field differs are counted as unseen
    root = [] if source.data == "." else source.data.split(".")
    wanted = ".".join([*root, *pattern.key_field])
    if source.key != wanted:
        raise FleetError(
            f"the pattern `{pattern.name}` is keyed by `{'.'.join(pattern.key_field)}`, but the source "
            f"{source.topic} by `{source.key}`: events that belong together lie in different partitions",
            fix=f"key the topic by it (`key: {wanted}`), or delete `key` from the pattern",
        )
