"""What the cluster has to be like before a worker starts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import KafkaException, TopicPartition

from afa.reading import Fault
from arcfleet.fleet.clients import MAX_RECORD_BYTES, MAX_RECORD_SETTING
from arcfleet.fleet.document import Fleet
from arcfleet.fleet.errors import FleetError
from arcfleet.fleet.rights import refused, worker_rights
from arcfleet.fleet.topic_admin import check_topics, connect
from arcfleet.fleet.topics import Plan
from worker.binding import Binding
from worker.errors import WorkerError

TOPIC_LIMIT: Final = "max.message.bytes"
AMPLE_ROOM: Final[Mapping[str, int]] = {"late": MAX_RECORD_BYTES, "dead-letter": MAX_RECORD_BYTES}
ASK_S: Final = 10.0


@dataclass(frozen=True)
class Cluster:
    """What a worker found there at its start."""

    partitions: int | None  # of the sources
    room: Mapping[str, int]  # by suffix: how many bytes a record may have that is set aside


UNKNOWN: Final = Cluster(None, AMPLE_ROOM)


def check_cluster(fleet: Fleet, say: Callable[..., None], *, publishes: bool) -> Cluster:
    """Raises FleetError if Kafka's client does not take the settings; WorkerError if no broker answers, topics are not
    as they have to be, or rights to them are missing, naming each difference; those that it can run with are said."""
    state = fleet.topic("state")
    try:
        admin = connect(fleet, fleet.start_deadline_s)
    except OSError as error:
        raise WorkerError(str(error)) from None
    try:
        plan = check_topics(admin, fleet, worker_rights(fleet, publishes=publishes))
    except OSError as error:
        raise WorkerError(str(error)) from None
    except FleetError as error:
        lost = f"; if {state} held state before, restart with --accept-lost-state then" if state in error.what else ""
        raise WorkerError(error.what, fix=error.fix + lost) from None
    for difference in plan.steps:
        say("topics", what=difference.what, fix=difference.fix)
    return Cluster(plan.partitions, room_aside(fleet, plan))


@contextmanager
def naming_rights(fleet: Fleet) -> Iterator[None]:
    """A refusal of the group or of transactional ids ends the process, and says what to grant."""
    try:
        yield
    except KafkaException as error:
        right = refused(error.args[0], fleet)
        if right is None:
            raise
        raise WorkerError(right.what, fix=right.fix) from None


def room_aside(fleet: Fleet, plan: Plan) -> dict[str, int]:
    """As much as the topic and the producer take."""
    of_producer = int(fleet.kafka.get(MAX_RECORD_SETTING, MAX_RECORD_BYTES))
    found = {one.topic: int(one.found) for one in plan.configure if one.setting == TOPIC_LIMIT and one.found}
    return {suffix: min(of_producer, found.get(fleet.topic(suffix), room)) for suffix, room in AMPLE_ROOM.items()}


def check_committed(query: Any, fleet: Fleet, partitions: int | None, *, accepts_lost_state: bool) -> None:
    """Raises WorkerError if the fleet has committed with another number of partitions, or another first source; `query`
    asks without regard to transactions, because those of other workers are none of ours."""
    topics = [source.topic for source in fleet.sources]
    places = [TopicPartition(topic, number) for topic in topics for number in range(partitions or 0)]
    seen: set[int] = set()
    for committed in query.committed(places, ASK_S):
        if committed.offset < 0 or committed.partition in seen:  # what was committed for the first source counts
            continue
        with suppress(Fault):  # which a restore will name
            binding = Binding.read(committed.metadata or "")
            seen.add(committed.partition)
            if binding.partitions not in (None, partitions) and not accepts_lost_state:
                raise partitions_changed(partitions, binding.partitions)
            if (first := next(iter(binding.committed.positions), topics[0])) != topics[0]:
                raise _first_changed(topics[0], first)


def _first_changed(now: str, before: str) -> WorkerError:
    return WorkerError(
        f"the first source is {now}, and was {before} when the fleet committed last: its workers share their partitions"
        " out by the first one, and would have others of each",
        fix=f"put {before} first in the fleet document; or begin a fleet with another name",
    )


def partitions_changed(now: int | None, before: int | None) -> WorkerError:
    """What it is, and what can be done."""
    return WorkerError(
        f"the sources have {now} partitions, and had {before} when the fleet committed last: events of a key may lie in"
        " another partition now than its state",
        fix="begin a fleet with another name; or restart with --accept-lost-state: partial matches of keys that moved"
        " are lost",
    )
