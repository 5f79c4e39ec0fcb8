"""What a commit binds to a partition's offsets, in their metadata: from where, and from what, it can be restored.

The first topic's offset carries it; those of other topics are in it too, because offsets of a topic that is assigned by
hand, and not subscribed, expire.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from afa.reading import Fault, Fields
from worker.errors import WorkerError

METADATA_CHARACTERS_MAX: Final = 4_095  # a broker's default refuses more
PER_SOURCE_CHARACTERS: Final = 92  # with offsets and times of 64 bits, in both marks
VERSION: Final = 1

Positions = Mapping[str, int]  # by topic: the next offset to read
Times = Mapping[str, int | None]  # by topic: a punctuation


@dataclass(frozen=True)
class Mark:
    """How far a partition had come at some moment: a point that it can be replayed from."""

    positions: Positions
    punctuations: Times
    late: int  # the next offset of its partition of the late topic


@dataclass(frozen=True)
class Binding:
    """What a commit says of one partition."""

    restore: Mark
    committed: Mark
    arcs: int  # the next offset of the arcs topic
    snapshots: int  # how many keys have one
    checksum: int  # of all snapshots together
    owner: str  # the transactional id, or instance, that committed
    partitions: int | None = None  # how many the sources had; earlier workers did not say
    largest: Times = field(default_factory=dict)  # the greatest event times; likewise
    untold: int = 0  # a bit for each pattern, in order of names, whose punctuation waits until it may be told
    ended: Positions = field(default_factory=dict)  # of removed sources, where they were read to

    def text(self) -> str:
        """As metadata. Raises ValueError if there are too many topics for it, which `check_room` rules out."""
        ended = {"ended": dict(self.ended)} if self.ended else {}
        largest = [self.largest.get(topic) for topic in self.committed.positions]
        # With more bits it has no room, and Python refuses to write more digits than the room has.
        untold = {"untold": self.untold} if 0 < self.untold.bit_length() < METADATA_CHARACTERS_MAX else {}
        times = {"largest": largest} if any(ts is not None for ts in largest) else {}
        # No state depends on them: without room they are left out.
        for more in (ended | untold | times, ended | untold, ended, {}):
            text = _json(self._needed() | more)
            if len(text) <= METADATA_CHARACTERS_MAX:
                return text
        raise ValueError(f"{len(text)} characters of offset metadata: too many sources, or names too long")

    def needed(self) -> str:
        """What of it is never left out, however long that is."""
        return _json(self._needed())

    def _needed(self) -> dict[str, object]:
        return {
            "v": VERSION,
            "restore": _packed(self.restore),
            "committed": _packed(self.committed),
            "arcs": self.arcs,
            "snapshots": self.snapshots,
            "checksum": self.checksum,
            "owner": self.owner,
        } | ({} if self.partitions is None else {"partitions": self.partitions})

    @classmethod
    def read(cls, text: str) -> Binding:
        """Raises Fault if this is not what a worker of this version writes."""
        try:
            fields = Fields(json.loads(text), (), "offset metadata")
        except ValueError:
            raise Fault((), "the group's offsets were not committed by a worker of this fleet") from None
        if fields.need("v", int) != VERSION:
            raise Fault(("v",), f"offset metadata of version {fields.values['v']}", "run the release that wrote it")
        committed = _mark(fields.need("committed", list))
        return cls(
            restore=_mark(fields.need("restore", list)),
            committed=committed,
            arcs=fields.need("arcs", int),
            snapshots=fields.need("snapshots", int),
            checksum=fields.need("checksum", int),
            owner=fields.need("owner", str),
            partitions=fields.take("partitions", int),
            largest=dict(zip(committed.positions, fields.take("largest", list) or [], strict=False)),
            untold=fields.take("untold", int) or 0,
            ended=fields.take("ended", dict) or {},
        )


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def check_room(topics: Sequence[str], owner: str, partitions: int | None = None) -> None:
    """Raises WorkerError if what a commit binds might outgrow the metadata of an offset: a fleet must not find that out
    when its offsets have grown."""
    most = 2**63 - 1
    mark = Mark(dict.fromkeys(topics, most), dict.fromkeys(topics, -most), most)
    size = len(Binding(mark, mark, most, most, most, owner, most if partitions is None else partitions).needed())
    if size <= METADATA_CHARACTERS_MAX:
        return
    names = sum(map(len, topics))
    raise WorkerError(
        f"{len(topics)} sources with {names:,} characters of names, and the instance `{owner}`, need up to {size:,} "
        f"characters of offset metadata, of which Kafka takes {METADATA_CHARACTERS_MAX:,}: each source needs "
        f"{PER_SOURCE_CHARACTERS} and twice its name",
        fix="make the names shorter, or more fleets with fewer sources each",
        exit_code=1,
    )


def _packed(mark: Mark) -> list[object]:
    return [[[topic, offset, mark.punctuations.get(topic)] for topic, offset in mark.positions.items()], mark.late]


def _mark(packed: list[object]) -> Mark:
    try:
        topics, late = packed
        positions = {topic: offset for topic, offset, _ in topics}  # type: ignore[attr-defined]
        punctuations = {topic: punctuation for topic, _, punctuation in topics}  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        raise Fault((), "damaged offset metadata") from None
    return Mark(positions, punctuations, int(late))  # type: ignore[call-overload]
