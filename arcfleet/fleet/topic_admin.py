"""What the cluster is asked and told about topics: the edge of `topics.py`."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from arcfleet.fleet.clients import admin_settings, open_admin
from arcfleet.fleet.document import Fleet
from arcfleet.fleet.errors import FleetError, KafkaError
from arcfleet.fleet.rights import Right, lacking
from arcfleet.fleet.topics import Configure, Plan, Seen, Topic, grant, plan_topics, topic_names

if TYPE_CHECKING:
    from confluent_kafka import KafkaError as Reason
    from confluent_kafka.admin import AdminClient

_ATTEMPT_S: Final = 1.0
_CALL_DEADLINE_S: Final = 30.0
_NO_REASON: Final = "it closes the connection, as one does that expects another security.protocol"


def connect(fleet: Fleet, deadline_s: float) -> AdminClient:
    """An admin client that has reached a broker. Raises KafkaError when none answers within the deadline, with the last
    reason; FleetError when the settings cannot be used."""
    reasons = deque([_NO_REASON], maxlen=1)
    admin = open_admin(admin_settings(fleet) | {"error_cb": lambda error: _note(error, reasons)})
    end_s = time.monotonic() + deadline_s
    while not _answers(admin):
        if time.monotonic() >= end_s:
            what = f"no broker answered at {fleet.bootstrap} within {deadline_s:g} s: {reasons[0]}"
            raise KafkaError(f"{what}; start one, or correct `bootstrap` and the security settings in `kafka`")
    return admin


def read_topics(admin: AdminClient, names: Iterable[str]) -> dict[str, Seen]:
    """What the cluster shows of these topics. Blocks; raises KafkaError when it does not answer."""
    from confluent_kafka import TopicCollection  # noqa: PLC0415 - an extra, which most commands do without
    from confluent_kafka.admin import ConfigResource, ResourceType  # type: ignore[attr-defined]  # noqa: PLC0415

    described = admin.describe_topics(
        TopicCollection(list(names)), include_authorized_operations=True, request_timeout=_CALL_DEADLINE_S
    )
    seen = {name: _seen(name, future) for name, future in described.items()}
    there = [ConfigResource(ResourceType.TOPIC, name) for name in seen if seen[name].partitions is not None]
    configs = admin.describe_configs(there, request_timeout=_CALL_DEADLINE_S) if there else {}
    for resource, future in configs.items():
        entries, error = _answer(future)
        if _lacks_right(error):
            seen[resource.name] = replace(seen[resource.name], denied="DescribeConfigs")
        elif error:
            raise _failure(error, f"the settings of the topic {resource.name} were not read")
        else:
            config = {entry.name: str(entry.value) for entry in entries.values()}
            seen[resource.name] = replace(seen[resource.name], config=config)
    return seen


def partitions_and_config(admin: AdminClient, topic: str, how_to_make: str) -> tuple[int, Mapping[str, str]]:
    """Of a topic that has to be there; the config is empty if it may not be read. Raises FleetError."""
    seen = read_topics(admin, [topic])[topic]
    if seen.partitions is not None:
        return seen.partitions, seen.config or {}
    if seen.denied:
        raise FleetError(f"this user may not see the topic {topic}", fix=grant(seen.denied, topic))
    raise FleetError(f"the topic {topic} is not there", fix=how_to_make)


def read_ends(admin: AdminClient, topic: str, partitions: int) -> dict[int, int]:
    """Where each partition ends, committed or not. Raises FleetError without the right, else KafkaError."""
    from confluent_kafka import TopicPartition  # noqa: PLC0415 - as above
    from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]  # noqa: PLC0415

    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    asked = {TopicPartition(topic, number): latest for number in range(partitions)}
    ends = {}
    for one, future in admin.list_offsets(asked, request_timeout=_CALL_DEADLINE_S).items():
        found, error = _answer(future)
        if error:
            raise _failure(error, f"the end of {topic}/{one.partition} was not read", grant("Describe", topic))
        ends[one.partition] = found.offset
    return ends


def check_topics(admin: AdminClient, fleet: Fleet, rights: Iterable[Right] = ()) -> Plan:
    """The plan of a fleet that may run: for a worker at its start, which must not change anything, and needs `rights`.

    Raises FleetError that names each difference that it cannot run with; others are in the plan.
    """
    seen = read_topics(admin, topic_names(fleet))
    plan = plan_topics(fleet, seen)
    plan = replace(plan, problems=(*plan.problems, *lacking(rights, seen)))
    if plan.blocking:
        what = "; ".join(difference.what for difference in plan.blocking)
        raise FleetError(what, fix="; ".join(dict.fromkeys(difference.fix for difference in plan.blocking)))
    return plan


def create_topics(admin: AdminClient, topics: Iterable[Topic]) -> None:
    """Blocks until they are there; what somebody else made meanwhile is fine. Raises FleetError without the right."""
    from confluent_kafka import KafkaError as Codes  # noqa: PLC0415 - as above
    from confluent_kafka.cimpl import NewTopic  # noqa: PLC0415 - as above

    wanted = [NewTopic(one.name, one.partitions, one.replication, config=dict(one.config)) for one in topics]
    made = admin.create_topics(wanted, operation_timeout=_CALL_DEADLINE_S) if wanted else {}
    for name, future in made.items():
        _, error = _answer(future)
        if error and error.code() != Codes.TOPIC_ALREADY_EXISTS:
            raise _failure(error, f"the topic {name} was not made", grant("Create", name))


def configure_topics(admin: AdminClient, changes: Iterable[Configure]) -> None:
    """Blocks until the settings are changed; all others stay as they are. Raises FleetError without the right."""
    from confluent_kafka.admin import (  # type: ignore[attr-defined]  # noqa: PLC0415
        AlterConfigOpType,
        ConfigEntry,
        ConfigResource,
        ResourceType,
    )

    resources: dict[str, ConfigResource] = {}
    for change in changes:
        resource = resources.setdefault(change.topic, ConfigResource(ResourceType.TOPIC, change.topic))
        entry = ConfigEntry(change.setting, change.wanted, incremental_operation=AlterConfigOpType.SET)
        resource.add_incremental_config(entry)
    changed = admin.incremental_alter_configs(list(resources.values())) if resources else {}
    for resource, future in changed.items():
        _, error = _answer(future)
        if error:
            what = f"the settings of the topic {resource.name} were not changed"
            raise _failure(error, what, grant("AlterConfigs", resource.name))


def _answers(admin: AdminClient) -> bool:
    from confluent_kafka import KafkaException  # noqa: PLC0415 - as above

    try:
        admin.describe_cluster(request_timeout=_ATTEMPT_S).result(2 * _ATTEMPT_S)
    except (KafkaException, FutureTimeoutError):
        admin.poll(0)  # where the library says why
        return False
    return True


def _note(error: Reason, reasons: deque[str]) -> None:
    """That all brokers are down is known by then; why they are is said before."""
    if error.name() != "_ALL_BROKERS_DOWN":
        reasons.append(error.str())


def _seen(name: str, future: Future[Any]) -> Seen:
    topic, error = _answer(future)
    if error is None:
        allowed = frozenset(one.name.title().replace("_", "") for one in topic.authorized_operations or ())
        return Seen(len(topic.partitions), allowed=allowed or None)  # none at all: a broker that does not say
    if _lacks_right(error):
        return Seen(denied="Describe")
    if error.name() == "UNKNOWN_TOPIC_OR_PART":
        return Seen()
    raise _failure(error, f"the topic {name} was not read")


def _answer(future: Future[Any]) -> tuple[Any, Reason | None]:
    from confluent_kafka import KafkaException  # noqa: PLC0415 - as above

    try:
        return future.result(_CALL_DEADLINE_S), None
    except KafkaException as error:
        return None, error.args[0]
    except FutureTimeoutError:
        raise KafkaError(f"the brokers did not answer within {_CALL_DEADLINE_S:.0f} s") from None


def _lacks_right(error: Reason | None) -> bool:
    return error is not None and error.name() in ("TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED")


def _failure(error: Reason, what: str, fix: str = "") -> Exception:
    return (
        FleetError(f"{what}: {error.str()}", fix=fix) if _lacks_right(error) else KafkaError(f"{what}: {error.str()}")
    )
