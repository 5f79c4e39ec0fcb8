"""Sources that came into the fleet document, or went from it, since the fleet committed last.

The first source cannot change while workers run: they would share the partitions out by different topics. An added one
begins where its `start` says, once, as in a new fleet. One that the document names in `removed` is neither read any
more nor waited for.

A new document comes to one worker after the other, and meanwhile partitions move between workers of both. A source that
a worker's document does not have, and does not name in `removed` either, is *unread*: one of a newer document. What was
committed of it is carried forward as it was, and punctuations wait for it as for any source that is silent, so that the
next worker that knows it goes on as if that source had been silent. Where a removed one was read to is kept, too, for
workers that still have it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

from afa.source_groups import regrouped
from arcfleet.fleet.arcs import Head
from worker.binding import Binding, Mark, Positions
from worker.errors import WorkerError

Regroup = Callable[[bytes | None], bytes | None]


def added(binding: Binding, topics: Sequence[str]) -> list[str]:
    """Topics that the fleet did not read when it committed."""
    return [topic for topic in topics if topic not in binding.committed.positions]


def gone(binding: Binding, topics: Sequence[str], removed: Collection[str]) -> tuple[list[str], list[str]]:
    """Topics that it read then and this worker does not: those that were removed, and those that are unread here."""
    missing = [topic for topic in binding.committed.positions if topic not in topics]
    return [topic for topic in missing if topic in removed], [topic for topic in missing if topic not in removed]


def fitted(binding: Binding, topics: Sequence[str], starts: Positions, unread: Iterable[str]) -> Binding:
    """What was committed, for the sources of now, unread ones among them; `starts` are those of the added ones."""
    restore, committed = (_fitted(mark, topics, starts) for mark in (binding.restore, binding.committed))
    # Nobody replays what is not read: if it is in no snapshot, it was accepted that it is lost.
    lost = {topic: committed.positions[topic] for topic in unread}
    restore = replace(restore, positions=dict(restore.positions) | lost)
    ended = {topic: offset for topic, offset in binding.committed.positions.items() if topic not in topics}
    known = {topic: offset for topic, offset in binding.ended.items() if topic not in topics}
    return replace(binding, restore=restore, committed=committed, ended=known | ended)


def _fitted(mark: Mark, topics: Sequence[str], starts: Positions) -> Mark:
    positions = {topic: mark.positions[topic] if topic in mark.positions else starts[topic] for topic in topics}
    told = [mark.punctuations.get(topic) for topic in mark.positions]
    # What punctuations have promised stays true: of an added source, too, no event below them counts.
    promised = min((ts for ts in told if ts is not None), default=None) if None not in told else None
    # Those of removed ones hold until the replay has ended, which has to come to what was; an engine is told of them
    # first, because the others alone may have come further.
    ended = {topic: ts for topic, ts in mark.punctuations.items() if topic not in topics}
    punctuations = ended | {topic: mark.punctuations.get(topic, promised) for topic in topics}
    return Mark(positions, punctuations, mark.late)


def check_gone(binding: Binding, removed: Iterable[str], unread: Iterable[str], number: int) -> None:
    """Raises WorkerError if records of a source that is not read are in no snapshot: without it nobody can read them
    again."""
    forget = "restart with --accept-lost-state: what came of these records is forgotten"
    for topics, why, fix in (
        (removed, "was removed", "start the fleet once more with {}, end its workers with SIGTERM, and remove it then"),
        (unread, "is not in this worker's fleet document", "give this worker the document of the others, with {}"),
    ):
        for topic in topics:
            count = binding.committed.positions[topic] - binding.restore.positions.get(topic, 0)
            if count > 0:
                raise WorkerError(
                    f"the source {topic} {why}, but partition {number} has up to {count} of its records in no snapshot"
                    " yet",
                    fix=f"{fix.format(topic)}; or {forget}",
                )


def regrouping(heads: Iterable[Head], before: Iterable[str], now: Iterable[str]) -> Regroup:
    """What makes snapshots of before those of now. Raises WorkerError if two engines would become one.

    Patterns that see the same topics share an engine; one that names all topics that there are shares it with those
    that name none, and which are all has changed.
    """
    was, all_now = tuple(sorted(before)), tuple(sorted(now))
    seen = {head.pattern: tuple(sorted(head.document.get("sources") or ())) for head in heads}
    named = {topics: pattern for pattern, topics in seen.items() if topics}
    unnamed = [pattern for pattern, topics in seen.items() if not topics]
    if was == all_now or not named:
        return lambda data: data
    if all_now in named and unnamed:
        raise WorkerError(
            f"the pattern `{named[all_now]}` names all sources that are left, and `{unnamed[0]}` none: what they know "
            f"of {', '.join(sorted(set(was) - set(all_now)))} differs, and they would be told apart no longer",
            fix="put the removed source back, or begin a fleet with another name",
        )
    of_all = was if unnamed else all_now
    return lambda data: None if data is None else regrouped(data, was, all_now, of_all)
