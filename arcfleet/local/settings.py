"""What a single-node broker is configured with: pure text, nothing is started or opened here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from arcfleet.local.errors import SettingError

Setting = str | int | bool
Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]

HOST = "127.0.0.1"
MAIN = "PLAINTEXT"  # the listener that is always there; also carries what the broker says to itself
CONTROLLER = "CONTROLLER"
NODE_ID = 1
SCRAM_MECHANISM = "SCRAM-SHA-512"

DEFAULTS: Mapping[str, Setting] = {
    # One node: internal topics cannot have the usual three replicas.
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    # Of 50 partitions each, these topics cost seconds when first used and again at each recovery after a crash.
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
    "share.coordinator.state.topic.num.partitions": 1,
    # The first member of a group is not made to wait 3 s for others.
    "group.initial.rebalance.delay.ms": 0,
    # Lets tests use sessions shorter than 6 s; clients that do not ask for it see no difference.
    "group.min.session.timeout.ms": 1000,
    # After a kill the restarted node may register only when its former self's session is over: with the default 9 s it
    # was ready after 12 s, with 2 s after 3.5 s. Much shorter, and a stall of the machine would fence a healthy broker.
    "broker.session.timeout.ms": 2000,
    "broker.heartbeat.interval.ms": 200,
    # 128 MB by default, allotted at the start: half of the heap. 16 MB hold the keys of 600,000 records at a time.
    "log.cleaner.dedupe.buffer.size": 16 * 1024 * 1024,
    # A mistyped topic name is an error, not a new topic.
    "auto.create.topics.enable": False,
}

# Where the broker lives and listens is decided by LocalBroker's arguments: said twice, the two could disagree.
OWNED = frozenset(
    {
        "process.roles",
        "node.id",
        "listeners",
        "advertised.listeners",
        "listener.security.protocol.map",
        "inter.broker.listener.name",
        "controller.listener.names",
        "controller.quorum.voters",
        "controller.quorum.bootstrap.servers",
        "log.dir",
        "log.dirs",
        "metadata.log.dir",
    }
)

_LISTENER_NAME = re.compile(r"[A-Z][A-Z0-9_]*")
_SCRAM_WORD = re.compile(r'[^"\\,\[\]=\s]+')


@dataclass(frozen=True)
class Listener:
    """One more door to the broker, on a loopback port of its own.

    `settings` apply to this listener only (they get the prefix `listener.name.<name>.`). `port` 0 means any free one.
    `advertised` is the host:port that clients are told instead, for instance that of a proxy in front.
    """

    protocol: Protocol
    settings: Mapping[str, Setting] = field(default_factory=dict)
    port: int = 0
    advertised: str = ""


def check(settings: Mapping[str, Setting], listeners: Mapping[str, Listener], scram: Mapping[str, str]) -> None:
    """Raises SettingError for what could never work, before a JVM is started for it."""
    for name in settings:
        if name in OWNED:
            raise SettingError(f"{name} is set by LocalBroker itself: use its arguments (listeners, port, data_dir)")
    for name in listeners:
        if not _LISTENER_NAME.fullmatch(name) or name in (MAIN, CONTROLLER):
            raise SettingError(
                f"{name!r} cannot be an extra listener's name: use capital letters, digits and _, "
                f"and neither {MAIN} nor {CONTROLLER}"
            )
    for user, password in scram.items():
        if not _SCRAM_WORD.fullmatch(user) or not _SCRAM_WORD.fullmatch(password):
            raise SettingError(
                f'SCRAM user {user!r}: name and password must not be empty, nor have blanks or any of " \\ , [ ] ='
            )


def server_properties(
    data: str, ports: Mapping[str, int], listeners: Mapping[str, Listener], settings: Mapping[str, Setting]
) -> dict[str, Setting]:
    """All settings of the broker. `ports` has one for MAIN, one for CONTROLLER and one for each of `listeners`."""
    doors = {MAIN: Listener("PLAINTEXT"), **listeners}
    addresses = {name: f"{HOST}:{port}" for name, port in ports.items()}
    told = {name: door.advertised or addresses[name] for name, door in doors.items()}
    protocols = {**{name: door.protocol for name, door in doors.items()}, CONTROLLER: "PLAINTEXT"}
    result: dict[str, Setting] = {
        **DEFAULTS,
        "process.roles": "broker,controller",
        "node.id": NODE_ID,
        "listeners": ",".join(f"{name}://{addresses[name]}" for name in (*doors, CONTROLLER)),
        "advertised.listeners": ",".join(f"{name}://{address}" for name, address in told.items()),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
        "inter.broker.listener.name": MAIN,
        "controller.listener.names": CONTROLLER,
        "controller.quorum.voters": f"{NODE_ID}@{addresses[CONTROLLER]}",
        "log.dirs": data,
    }
    for name, door in listeners.items():
        result |= {f"listener.name.{name.lower()}.{key}": value for key, value in door.settings.items()}
    return {**result, **settings}


def properties_text(properties: Mapping[str, Setting]) -> str:
    """The text of a Java properties file."""
    return "".join(f"{_escape(name, ' :=')}={_escape(_value(value), '')}\n" for name, value in properties.items())


def container_environment(properties: Mapping[str, Setting]) -> dict[str, str]:
    """The same settings as the official container image reads them: KAFKA_NODE_ID for `node.id`."""
    spelling = str.maketrans({".": "_", "_": "__", "-": "___"})
    return {f"KAFKA_{name.translate(spelling).upper()}": _value(value) for name, value in properties.items()}


def _value(value: Setting) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _escape(text: str, special: str) -> str:
    """Backslash, line ends, a leading blank, whatever is not printable ASCII, and `special`."""
    simple = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    result = ""
    for index, char in enumerate(text):
        if char in simple:
            result += simple[char]
        elif (char == " " and index == 0) or (char and char in special) or (index == 0 and char in "#!"):
            result += f"\\{char}"
        elif " " <= char <= "~":
            result += char
        else:
            units = char.encode("utf-16-be")
            result += "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
    return result
