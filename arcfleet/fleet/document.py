"""The fleet document: read strictly, laid over with flags and environment, every mistake with its place and a fix."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from dataclasses import fields as dataclass_fields
from datetime import UTC, datetime
from pathlib import Path as FilePath
from typing import Any, Final, Literal

from afa.contracts import contract
from afa.durations import FLEET_UNITS, NANOSECONDS, FleetUnit, parse_duration
from afa.errors import PatternError
from afa.expression.tree import INT_MAX
from afa.reading import Fault, Fields, Path, check_int64
from afa.source import Source, SourcePunctuation, check_topic, read_source
from afa.source_text import Located, SourceText, read_text
from arcfleet.fleet.errors import FleetError, OptionError
from arcfleet.fleet.kafka_settings import check_setting, secret_in_file

Delivery = Literal["exactly_once", "at_least_once"]
Envelope = Literal["changes", "upsert"]
Headers = Literal["plain", "cloudevents"]

VARIABLE_PREFIX: Final = "ARCFLEET_"
MAX_FLEET_CHARACTERS: Final = 200
MAX_INTERVAL: Final = "365d"  # further ahead no clock of the system can wait
TRANSACTION_TIMEOUT_SETTING: Final = "transaction.timeout.ms"
TRANSACTION_TIMEOUT_MS: Final = 10_000

# Without a file: the fleet that `arcfleet up` runs.
LOCAL_DOCUMENT: Final[Mapping[str, Any]] = {"fleet": "local", "sources": [{"topic": "events"}]}
INTERVALS: Final = {
    "commit_interval": "100ms",
    "snapshot_interval": "10s",
    "punctuation_interval": "1s",
    "start_deadline": "60s",
}
# What may be given as a flag or a variable, too.
SCALARS: Final = ("fleet", "bootstrap", "delivery", "envelope", "headers", "unit", *INTERVALS)
LIMITS: Final = {
    "max_partial_matches_per_key": 100_000,
    "max_bytes_per_key": 67_108_864,
    "max_events_per_key": 1_000_000,
    "max_keys": 10_000_000,
    "max_program_arcs": 100_000,
}

_DELIVERIES: Final[tuple[Delivery, ...]] = ("exactly_once", "at_least_once")
_ENVELOPES: Final[tuple[Envelope, ...]] = ("changes", "upsert")
_HEADERS: Final[tuple[Headers, ...]] = ("plain", "cloudevents")
_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")
_BROKER: Final = re.compile(r"[^\s,]+?(:(?P<port>[0-9]{1,5}))?")


@dataclass(frozen=True)
class Fleet:
    """What every process of a fleet is told. `bootstrap` is empty when nobody named a broker."""

    name: str
    bootstrap: str
    kafka: Mapping[str, str] = field(repr=False)  # passwords must not get into a log
    delivery: Delivery
    envelope: Envelope
    headers: Headers
    unit: FleetUnit
    commit_interval_s: float
    snapshot_interval_s: float
    punctuation_interval_s: float
    start_deadline_s: float
    limits: Mapping[str, int]
    sources: tuple[Source, ...]
    removed: tuple[str, ...] = ()  # topics that were sources
    # Where each value came from, by its dotted name: `fleet.yaml:3:12`, `ARCFLEET_UNIT`, `--unit`, `default`.
    origins: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    def topic(self, suffix: str) -> str:
        """The name of one of the fleet's own topics."""
        return f"{self.name}.{suffix}"


def load_fleet(
    path: FilePath | None,
    overrides: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Fleet:
    """The fleet of a document, or without one the local fleet (`fleet: local`, source topic `events`).

    `overrides` are flags by the name of their field (`commit_interval`, `kafka.linger.ms`), which go before the
    variables of `environment` (`ARCFLEET_COMMIT_INTERVAL`), and those before the document. Raises FleetError;
    OptionError if a flag is to blame.
    """
    document = _read_document(path) if path else None
    layers = _Layers(document)
    for name in SCALARS:
        variable = VARIABLE_PREFIX + name.upper()
        if value := (environment or {}).get(variable):  # a deployment may have to write an empty one
            layers.lay((name,), value, variable)
    for name, value in (overrides or {}).items():
        prefix, _, setting = name.partition(".")
        layers.lay((prefix, setting) if setting else (name,), value, _flag(name))
    try:
        return _build(layers)
    except Fault as fault:
        raise layers.error(fault) from None


def start_time(source: Source) -> datetime | None:
    """The moment that a new fleet starts from; None for `earliest` and `latest`. Without a zone it is in UTC."""
    if source.start in ("earliest", "latest"):
        return None
    moment = datetime.fromisoformat(source.start)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _read_document(path: FilePath) -> Located:
    try:
        source = SourceText(str(path), read_text(path, "a fleet document"))
        documents = list(source.documents())
    except PatternError as error:
        raise FleetError(error.what, fix=error.fix, place=error.place) from None
    if not documents:
        fix = "write a document that begins with `fleet: <name>`"
        raise FleetError("an empty fleet document", fix=fix, place=source.place(0))
    if len(documents) > 1:
        place = source.place(documents[1].start)
        raise FleetError("a second document", fix="write one fleet per file", place=place)
    return documents[0]


def _flag(name: str) -> str:
    return f"-X {name.removeprefix('kafka.')}" if name.startswith("kafka.") else f"--{name.replace('_', '-')}"


class _Layers:
    """The document's plain value with what was laid over it, and where each value came from."""

    def __init__(self, document: Located | None) -> None:
        self.document = document
        self.value: Any = document.plain() if document else dict(LOCAL_DOCUMENT)
        self._over: dict[Path, str] = {}

    def lay(self, path: Path, value: str, origin: str) -> None:
        if not isinstance(self.value, dict):
            return  # a document that is no mapping is refused as it stands
        into = self.value
        if len(path) == 2:
            into = into.setdefault(path[0], {})
            if not isinstance(into, dict):
                return
        into[str(path[-1])] = value
        self._over[path] = origin

    def origin(self, path: Path) -> str:
        """Of the value at a path."""
        for end in range(len(path), 0, -1):
            if laid := self._over.get(path[:end]):
                return laid
        here = self.document
        for step in path:
            here = _inside(here, step)
        return str(here.source.place(here.start)) if here else "default"

    def error(self, fault: Fault) -> FleetError:
        for end in range(len(fault.path), 0, -1):
            if laid := self._over.get(fault.path[:end]):
                kind = OptionError if laid.startswith("-") else FleetError
                return kind(f"{laid}: {fault.what}", fix=fault.fix)
        place = self.document.place_of(fault) if self.document else None
        return FleetError(fault.what, fix=fault.fix, place=place)


def _inside(value: Located | None, step: str | int) -> Located | None:
    if value is not None and isinstance(value.value, dict):
        return value.value.get(str(step))
    if value is not None and isinstance(value.value, list) and isinstance(step, int):
        return value.value[step]
    return None


def _build(layers: _Layers) -> Fleet:
    fields = Fields(layers.value, (), "a fleet document")
    name = _name(fields)
    unit = fields.choice("unit", FLEET_UNITS, "ms")
    kafka = _kafka(fields)
    delivery = fields.choice("delivery", _DELIVERIES, "exactly_once")
    intervals = {f"{interval}_s": _interval(fields, interval, default) for interval, default in INTERVALS.items()}
    if delivery == "exactly_once":
        _check_commit_interval(intervals["commit_interval_s"], kafka)
    sources = _sources(fields, name, unit)
    fleet = Fleet(
        name=name,
        bootstrap=_bootstrap(fields),
        kafka=kafka,
        delivery=delivery,
        envelope=fields.choice("envelope", _ENVELOPES, "changes"),
        headers=fields.choice("headers", _HEADERS, "plain"),
        unit=unit,
        **intervals,
        limits=_limits(fields),
        sources=sources,
        removed=_removed(fields, {source.topic for source in sources}),
        origins=_origins(layers, kafka),
    )
    fields.done()
    return fleet


def _origins(layers: _Layers, kafka: Mapping[str, str]) -> dict[str, str]:
    origins = {name: layers.origin((name,)) for name in SCALARS}
    origins |= {f"kafka.{name}": layers.origin(("kafka", name)) for name in kafka}
    origins |= {f"limits.{name}": layers.origin(("limits", name)) for name in LIMITS}
    for index in range(len(layers.value.get("sources", ()))):
        parts: list[Path] = [(one.name,) for one in dataclass_fields(Source) if one.name != "punctuation"]
        parts += [("punctuation", one.name) for one in dataclass_fields(SourcePunctuation)]
        paths: list[Path] = [("sources", index, *part) for part in parts]
        origins |= {".".join(map(str, path)): layers.origin(path) for path in paths}
    removed = range(len(layers.value.get("removed") or ()))
    return origins | {f"removed.{index}": layers.origin(("removed", index)) for index in removed}


def _name(fields: Fields) -> str:
    name: str = fields.need("fleet", str, "add the fleet's name, which its topics begin with: `fleet: NAME`")
    if not _NAME.fullmatch(name) or len(name) > MAX_FLEET_CHARACTERS:
        fix = f"write 1 to {MAX_FLEET_CHARACTERS} letters, digits, dots, underscores and hyphens"
        raise Fault(("fleet",), f"`{name}` is no name of a fleet", f"{fix}; the document is named by --fleet")
    return name


def _bootstrap(fields: Fields) -> str:
    bootstrap: str | None = fields.take("bootstrap", str, "write host:port, several separated by commas")
    if bootstrap is None:
        return ""
    brokers = [broker.strip() for broker in bootstrap.split(",")]
    for broker in brokers:
        found = _BROKER.fullmatch(broker)
        if not found or not 0 < int(found["port"] or 9092) < 65_536:
            fix = "write host:port, several separated by commas"
            raise Fault(("bootstrap",), f"`{broker}` is no address of a broker", fix)
    return ",".join(brokers)


def _kafka(fields: Fields) -> dict[str, str]:
    body: dict[str, Any] = fields.take("kafka", dict) or {}
    settings: dict[str, str] = {}
    for name, value in body.items():
        if type(value) not in (str, int, float, bool):
            raise Fault(("kafka", name), f"`{name}` must be a text, a number, true or false", "write one value")
        text = str(value).lower() if isinstance(value, bool) else str(value)
        check_setting(name, text, ("kafka", name))
        settings[name] = text
    for name in settings:
        secret = secret_in_file(name)
        if secret in settings:
            raise Fault(("kafka", name), f"`{secret}` stands here and in a file", "delete one of them", at_key=True)
    return settings


def _interval(fields: Fields, name: str, default: str) -> float:
    text: str = fields.take(name, str, f"write a number and ms, s, m or h, such as {default}") or default
    length_ns = _length(text, "ns", (name,))
    if length_ns > parse_duration(MAX_INTERVAL, "ns"):
        raise Fault((name,), f"`{name}: {text}` is longer than {MAX_INTERVAL}", f"the default is {default}")
    return length_ns / NANOSECONDS["s"]


def _length(text: str, unit: str, path: Path) -> int:
    try:
        length = parse_duration(text, unit)
    except ValueError as error:
        what, _, fix = str(error).partition(": ")
        raise Fault(path, what, fix or "write a length that is one") from None
    return length


def _check_commit_interval(interval_s: float, kafka: Mapping[str, str]) -> None:
    """A transaction is open between two commits, and the broker aborts one that is open for too long."""
    timeout = kafka.get(TRANSACTION_TIMEOUT_SETTING, str(TRANSACTION_TIMEOUT_MS))
    if timeout.isdecimal() and interval_s * 1000 > int(timeout) / 2:
        what = f"`commit_interval` is more than half of {TRANSACTION_TIMEOUT_SETTING} ({timeout})"
        raise Fault(
            ("commit_interval",), what, f"commit more often, or raise `kafka: {{{TRANSACTION_TIMEOUT_SETTING}}}`"
        )


def _limits(fields: Fields) -> dict[str, int]:
    body = Fields(fields.take("limits", dict) or {}, ("limits",), "`limits`")
    limits = {name: _limit(body, name, default) for name, default in LIMITS.items()}
    body.done()
    return limits


def _limit(body: Fields, name: str, default: int) -> int:
    value: int | None = body.take(name, int)
    if value is None:
        return default
    if value < 1:
        raise Fault(("limits", name), f"`{name}` must be at least 1, this is {value}", f"the default is {default:,}")
    return check_int64(value, ("limits", name), f"`{name}`")


def _sources(fields: Fields, fleet: str, unit: FleetUnit) -> tuple[Source, ...]:
    body: list[Any] = fields.need("sources", list, "name the topics that events come from: `sources: [{topic: NAME}]`")
    if not body:
        raise Fault(("sources",), "a fleet needs at least one source", "write `sources: [{topic: NAME}]`")
    own = {f"{fleet}.{topic['suffix']}" for topic in contract("topics")["topics"]}
    sources: dict[str, Source] = {}
    for index, value in enumerate(body):
        path = ("sources", index)
        source = read_source(value, path)
        if source.topic in sources:
            raise Fault((*path, "topic"), f"the topic `{source.topic}` is there twice", "delete one of the sources")
        if source.topic in own:
            fix = "name the topic of the events, or give the fleet another name"
            raise Fault((*path, "topic"), f"`{source.topic}` is a topic of the fleet itself", fix)
        _check_times(source, path, unit)
        sources[source.topic] = source
    return tuple(sources.values())


def _removed(fields: Fields, sources: Set[str]) -> tuple[str, ...]:
    body: list[Any] = fields.take("removed", list, "name topics that were sources: `removed: [NAME]`") or []
    for index, topic in enumerate(body):
        path = ("removed", index)
        if type(topic) is not str:
            raise Fault(path, "the name of a topic must be a text", "name topics that were sources: `removed: [NAME]`")
        if check_topic(topic, path) in sources:
            raise Fault(path, f"the topic `{topic}` is a source, too", "delete it here or there")
    return tuple(body)


def _check_times(source: Source, path: Path, unit: FleetUnit) -> None:
    """That the source's lengths and its start are times that the fleet can count with."""
    for name in ("slack", "max_ahead"):
        text: str | None = getattr(source.punctuation, name)
        at = (*path, "punctuation", name)
        if text is not None and _length(text, unit, at) > INT_MAX:
            raise Fault(at, f"`{text}` is outside 64 bits of {unit}", "write a shorter one")
    try:
        start_time(source)
    except ValueError as error:
        raise Fault((*path, "start"), f"`{source.start}` is no time: {error}", "write one of the calendar") from None
