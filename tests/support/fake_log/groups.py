"""The group coordinator: members, generations, and a cooperative, sticky assignment.

A partition moves in two rebalances: the first takes it from its owner, who says so by joining again; then the second
gives it to the next one. Whoever has gone is forgotten after its session, with all that it had.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

from confluent_kafka import KafkaError

from support.fake_log.clock import VirtualClock
from support.fake_log.log import Place
from support.fake_log.transactions import Offsets


class Metadata(NamedTuple):
    """What a consumer says of itself to a transaction."""

    group: str
    generation: int
    member: str
    instance: str | None


@dataclass
class Member:
    """A consumer, as the group knows it."""

    id: str
    consumer: Any
    instance: str | None
    topics: list[str]
    owned: set[Place] = field(default_factory=set)  # given, and not given back
    assigned: set[Place] = field(default_factory=set)  # by the last rebalance
    has_joined: bool = False  # in the rebalance that is going on
    joins_at_s: float = 0.0


@dataclass(eq=False)
class Group:
    """One consumer group, with its offsets."""

    name: str
    clock: VirtualClock
    random: Random
    partitions: dict[str, int]  # by topic, of the broker
    generation: int = 0
    members: dict[str, Member] = field(default_factory=dict)
    offsets: Offsets = field(default_factory=dict)
    is_rebalancing: bool = False
    _named: int = 0

    # Membership ------------------------------------------------------------------------------------------------------

    def join(self, consumer: Any, instance: str | None, topics: list[str]) -> str:
        """A consumer comes; its member id. A static one takes the place, and what it had, of who had it before."""
        self._named += 1
        member = Member(f"{instance or 'member'}-{self._named}", consumer, instance, topics)
        before = self._of_instance(instance)
        if before is not None:
            del self.members[before.id]
        self.members[member.id] = member
        if before is not None and not self.is_rebalancing:
            member.owned = member.assigned = before.assigned  # what was still to be given back belongs to nobody
            consumer.given(self.generation, set(member.owned))
        else:
            self.rebalance()
            member.joins_at_s = self.clock.monotonic()
        return member.id

    def remove(self, member_id: str) -> None:
        """A member has left, or was given up."""
        if self.members.pop(member_id, None) is not None:
            self.rebalance()

    def rebalance(self) -> None:
        """All have to join again; each hears of it by a heartbeat."""
        now = self.clock.monotonic()
        for member in self.members.values():
            member.has_joined = False
            member.joins_at_s = now + self.random.random() * member.consumer.heartbeat_s
        self.is_rebalancing = bool(self.members)

    def _of_instance(self, instance: str | None) -> Member | None:
        if instance is None:
            return None
        return next((member for member in self.members.values() if member.instance == instance), None)

    # Offsets ---------------------------------------------------------------------------------------------------------

    def refusal(self, told: Metadata, *, in_transaction: bool) -> int | None:
        """The code of the error by which offsets are refused; none: they are taken."""
        if told.generation < 0 and not self.members:
            return None
        if told.generation < 0 and not told.member and told.instance is None:
            return None if in_transaction else int(KafkaError.UNKNOWN_MEMBER_ID)
        if told.instance is not None:
            known = self._of_instance(told.instance)
            if known is not None and known.id != told.member:
                return int(KafkaError.FENCED_INSTANCE_ID)
        if told.member not in self.members:
            return int(KafkaError.UNKNOWN_MEMBER_ID)
        return int(KafkaError.ILLEGAL_GENERATION) if told.generation != self.generation else None

    # As time goes on -------------------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Sessions end; a rebalance goes on as members hear of it."""
        now = self.clock.monotonic()
        for member in list(self.members.values()):
            silent_since = member.consumer.silent_since()
            if silent_since is not None and now - silent_since >= member.consumer.session_s:
                self.remove(member.id)
        if not self.is_rebalancing:
            return
        for member in self.members.values():
            is_ready = member.consumer.silent_since() is None and not member.consumer.has_rebalance_waiting()
            if is_ready and now >= member.joins_at_s:
                member.has_joined = True
        if all(member.has_joined for member in self.members.values()):
            self._assign()

    def _assign(self) -> None:
        self.is_rebalancing = False
        self.generation += 1
        places = [
            (topic, number)
            for topic in sorted({topic for member in self.members.values() for topic in member.topics})
            for number in range(self.partitions.get(topic, 0))
        ]
        owners = {place: member.id for member in self.members.values() for place in member.owned}
        for member_id, wanted in sticky({id_: member.owned for id_, member in self.members.items()}, places).items():
            member = self.members[member_id]
            given = {place for place in wanted if owners.get(place, member_id) == member_id}
            member.owned |= given
            member.assigned = set(given)
            member.consumer.given(self.generation, given)


def sticky(owned: dict[str, set[Place]], places: Collection[Place]) -> dict[str, set[Place]]:
    """Who is to have what: everybody about as much as the others, with as few moves as that takes."""
    wanted = {member: {place for place in has if place in places} for member, has in sorted(owned.items())}
    taken = {place for has in wanted.values() for place in has}
    for place in places:
        if place not in taken:
            wanted[min(wanted, key=lambda member: len(wanted[member]))].add(place)
    while True:
        least = min(wanted, key=lambda member: len(wanted[member]))
        most = max(wanted, key=lambda member: len(wanted[member]))
        if len(wanted[most]) - len(wanted[least]) <= 1:
            return wanted
        moved = max(wanted[most])
        wanted[most].remove(moved)
        wanted[least].add(moved)
