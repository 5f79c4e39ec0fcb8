"""The fleet's topics: what they should be, what differs, and what can be done about it. Facts in, decision out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, TypeAlias

from afa.contracts import contract
from arcfleet.fleet.document import Fleet

# More than this is no difference: a limit that somebody raised.
_AT_LEAST: Final = ("max.message.bytes",)
_CREATE_TIME: Final = ("message.timestamp.type", "CreateTime")


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as it should be; with `config` beyond the cluster's defaults."""

    name: str
    partitions: int
    config: Mapping[str, str]
    replication: int = -1  # the cluster's default


@dataclass(frozen=True, slots=True)
class Seen:
    """A topic as the cluster shows it to this user. Without partitions it is not there, without a config it must not be
    read; `denied` is the right that is missing to say more. `allowed` are the operations that this user may do."""

    partitions: int | None = None
    config: Mapping[str, str] | None = None
    denied: str = ""
    allowed: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Create:
    """A topic is missing and can be made."""

    topic: Topic
    blocks: ClassVar = True  # no worker can do without it

    @property
    def what(self) -> str:
        settings = "".join(f", {name}={value}" for name, value in self.topic.config.items())
        return f"the topic {self.topic.name} is missing ({_count(self.topic.partitions)}{settings})"

    @property
    def fix(self) -> str:
        return "make it with `arcfleet topics apply`"

    def as_json(self) -> dict[str, Any]:
        topic = self.topic
        return {"action": "create", "topic": topic.name, "partitions": topic.partitions, "config": dict(topic.config)}


@dataclass(frozen=True, slots=True)
class Configure:
    """A setting of a topic that is there differs and can be changed."""

    topic: str
    setting: str
    found: str | None
    wanted: str

    @property
    def blocks(self) -> bool:
        """Without its policy a topic loses what a restore needs, or keeps what nobody reads; the rest is of degree."""
        return self.setting == "cleanup.policy"

    @property
    def what(self) -> str:
        return f"the topic {self.topic} has {self.setting}={self.found}, and should have {self.wanted}"

    @property
    def fix(self) -> str:
        return "change it with `arcfleet topics apply`"

    def as_json(self) -> dict[str, Any]:
        names = {"topic": self.topic, "setting": self.setting}
        return {"action": "configure", **names, "found": self.found, "wanted": self.wanted}


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that `apply` leaves alone. What does not block is a warning, unless it hides a difference."""

    topic: str
    what: str
    fix: str
    blocks: bool = True
    warns: bool = False

    def as_json(self) -> dict[str, Any]:
        return {"action": "warn" if self.warns else "none", "topic": self.topic, "what": self.what, "fix": self.fix}


Step: TypeAlias = Create | Configure | Problem


@dataclass(frozen=True, slots=True)
class Plan:
    """What differs. `partitions` is the number that the sources have in common."""

    partitions: int | None
    create: tuple[Create, ...] = ()
    configure: tuple[Configure, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def steps(self) -> tuple[Step, ...]:
        return (*self.create, *self.configure, *self.problems)

    @property
    def warnings(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.warns)

    @property
    def left_alone(self) -> tuple[Problem, ...]:
        """Differences that `apply` does not mend."""
        return tuple(problem for problem in self.problems if not problem.warns)

    @property
    def differences(self) -> tuple[Step, ...]:
        return (*self.left_alone, *self.create, *self.configure)

    @property
    def blocking(self) -> tuple[Step, ...]:
        """What a worker cannot run with."""
        return tuple(difference for difference in self.differences if difference.blocks)


def topic_names(fleet: Fleet) -> tuple[str, ...]:
    """Sources first, then the fleet's own."""
    own = (fleet.topic(topic["suffix"]) for topic in contract("topics")["topics"])
    return (*(source.topic for source in fleet.sources), *own)


def own_topics(fleet: Fleet, partitions: int | None) -> list[Topic]:
    """The fleet's own topics; those with as many partitions as the sources only if that number is known."""
    definitions = contract("topics")
    wanted = []
    for topic in definitions["topics"]:
        count = partitions if topic["partitions"] == "same as sources" else topic["partitions"]
        config = topic["config"] | topic.get("envelopes", {}).get(fleet.envelope, {}).get("config", {})
        if count is not None:
            wanted.append(Topic(fleet.topic(topic["suffix"]), count, config, definitions["replication_factor"]))
    return wanted


def plan_topics(fleet: Fleet, seen: Mapping[str, Seen], sources: int | None = None) -> Plan:
    """What to do so that the topics are as they should be. `seen` has each of `topic_names`; `sources` is the number of
    partitions to make missing sources with."""
    found = list(_source_problems(fleet, seen, sources))
    counts = {seen[source.topic].partitions for source in fleet.sources} - {None} or {sources}
    partitions = counts.pop() if len(counts) == 1 else None
    missing = [source.topic for source in fleet.sources if _is_missing(seen[source.topic])]
    # A source that would not fit to the others is not made.
    create = [Create(Topic(name, sources, {})) for name in missing if sources is not None and sources == partitions]
    configure: list[Configure] = []
    wanted = own_topics(fleet, partitions)
    uncounted = set(seen) - {topic.name for topic in wanted} - {source.topic for source in fleet.sources}
    found += [_denied(name, seen[name].denied, blocks=True) for name in sorted(uncounted) if seen[name].denied]
    for topic in wanted:
        there = seen[topic.name]
        if _is_missing(there):
            create.append(Create(topic))
            continue
        configure += _config_differences(topic, there)
        found += _own_problems(topic, there)
    return Plan(partitions, tuple(create), tuple(configure), tuple(found))


def _is_missing(seen: Seen) -> bool:
    return seen.partitions is None and not seen.denied


def _source_problems(fleet: Fleet, seen: Mapping[str, Seen], sources: int | None) -> Iterator[Problem]:
    known = {one.topic: seen[one.topic].partitions for one in fleet.sources if seen[one.topic].partitions is not None}
    first = next(iter(known), "")
    for source in fleet.sources:
        name, there, count = source.topic, seen[source.topic], seen[source.topic].partitions
        if there.denied:
            yield _denied(name, there.denied, blocks=count is None)
        elif count is None and sources is None:
            fix = "check its name in the fleet document, or make it with `arcfleet topics apply --sources N`"
            yield Problem(name, f"the source topic {name} is missing", fix)
        elif count is not None and sources not in (None, count):
            what = f"the source topic {name} has {_count(count)}, and --sources asks for {sources}"
            yield Problem(name, what, f"give --sources {count}, or leave it out")
        if count is not None and count != known[first]:
            what = f"the source topic {name} has {_count(count)}, but {first} has {known[first]}"
            yield Problem(name, what, "sources of one fleet have the same number of partitions: make them alike")
        if source.time == "record" and (there.config or {}).get(_CREATE_TIME[0]) == "LogAppendTime":
            what = (
                f"the source topic {name} has {_CREATE_TIME[0]}=LogAppendTime: with `time: record` events happen when"
            )
            fix = f"set {'='.join(_CREATE_TIME)} on the topic, or take `time` from the value or a header"
            yield Problem(name, f"{what} they arrive at the broker", fix, blocks=False, warns=True)


def _own_problems(topic: Topic, seen: Seen) -> Iterator[Problem]:
    if seen.denied:
        yield _denied(topic.name, seen.denied, blocks=seen.partitions is None)
    if seen.partitions is not None and seen.partitions != topic.partitions:
        what = f"the topic {topic.name} has {_count(seen.partitions)}, and should have {topic.partitions}"
        fix = (
            "Kafka takes no partitions away, and more of them would part keys from their state: "
            "begin a fleet with another name, or delete the topic if what it holds may go"
        )
        yield Problem(topic.name, what, fix)


def _config_differences(topic: Topic, seen: Seen) -> Iterator[Configure]:
    if seen.config is None:
        return
    for name, wanted in topic.config.items():
        found = seen.config.get(name)
        is_enough = found is not None and name in _AT_LEAST and int(found) >= int(wanted)
        if not is_enough and (found is None or _words(found) != _words(wanted)):
            yield Configure(topic.name, name, found, wanted)


def _words(value: str) -> set[str]:
    """`compact,delete` and `delete,compact` are one policy."""
    return {word.strip() for word in value.split(",")}


def _denied(topic: str, right: str, *, blocks: bool) -> Problem:
    what = f"this user may not {'see' if right == 'Describe' else 'read the settings of'} the topic {topic}"
    return Problem(topic, what, grant(right, topic), blocks)


def grant(right: str, topic: str) -> str:
    """How to give a right, as a fix."""
    command = f"kafka-acls --add --allow-principal User:NAME --operation {right} --topic {topic}"
    return f"allow {right} on the topic: {command}"


def _count(partitions: int) -> str:
    return f"{partitions} partition{'' if partitions == 1 else 's'}"
