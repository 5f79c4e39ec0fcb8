"""What the user of a worker has to be allowed: the one list. `docs/fleet.md` shows it, and a worker goes by it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from arcfleet.fleet.document import Fleet
from arcfleet.fleet.topics import Problem, Seen, grant

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

# By suffix, what a worker does with a topic of the fleet; what it only looks for, it has to see.
_OWN: Final[Mapping[str, tuple[str, ...]]] = {
    "arcs": ("Read",),
    "arcs.log": ("Describe",),
    "arcs.requests": ("Describe",),
    "matches": ("Write",),
    "state": ("Read", "Write"),
    "late": ("Read", "Write"),
    "dead-letter": ("Write",),
    "progress": ("Write",),
}
_PUBLISHED_TO: Final = ("arcs", "arcs.log")  # by `worker --patterns`
# Errors by name, and of what the right is missing.
REFUSED: Final = {
    "GROUP_AUTHORIZATION_FAILED": "group",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": "transactional-id",
}


@dataclass(frozen=True, slots=True)
class Right:
    """An operation on a resource; of transactional ids, on all that begin so."""

    operation: str
    kind: str  # topic, group or transactional-id
    name: str

    @property
    def what(self) -> str:
        """That it is missing."""
        which = f"transactional ids that begin with {self.name}" if self.is_prefix else f"the {self.kind} {self.name}"
        return f"this user has no right to {self.operation} {which}"

    @property
    def is_prefix(self) -> bool:
        return self.kind == "transactional-id"

    @property
    def fix(self) -> str:
        if self.kind == "topic":
            return grant(self.operation, self.name)
        pattern = " --resource-pattern-type prefixed" if self.is_prefix else ""
        resource = f"--{self.kind} {self.name}{pattern}"
        return f"allow it: kafka-acls --add --allow-principal User:NAME --operation {self.operation} {resource}"


def worker_rights(fleet: Fleet, *, publishes: bool) -> Iterator[Right]:
    """All that a worker needs; `publishes` says whether it is given patterns."""
    for source in fleet.sources:
        yield from (Right(operation, "topic", source.topic) for operation in ("Read", "DescribeConfigs"))
    for suffix, operations in _OWN.items():
        more = ("Write",) if publishes and suffix in _PUBLISHED_TO else ()
        needed = [operation for operation in operations if not (more and operation == "Describe")]  # Write implies it
        for operation in (*needed, *more, "DescribeConfigs"):
            yield Right(operation, "topic", fleet.topic(suffix))
    yield Right("Read", "group", fleet.name)
    if publishes or fleet.delivery == "exactly_once":
        yield Right("Write", "transactional-id", f"{fleet.name}-")


def lacking(rights: Iterable[Right], seen: Mapping[str, Seen]) -> Iterator[Problem]:
    """Rights to topics that the cluster says are missing; without that to see its settings a worker can do."""
    for right in rights:
        if right.kind != "topic" or right.operation == "DescribeConfigs":
            continue
        there = seen[right.name]
        allowed = frozenset[str]() if there.denied == "Describe" else there.allowed
        if allowed is not None and right.operation not in allowed:
            yield Problem(right.name, right.what, right.fix)


def refused(error: KafkaError | Any, fleet: Fleet) -> Right | None:
    """The right that is missing, if that is what an error says of the group or of transactional ids."""
    kind = REFUSED.get(error.name())
    return next((right for right in worker_rights(fleet, publishes=True) if right.kind == kind), None)
