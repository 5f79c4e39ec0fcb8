"""Every property of librdkafka in one table: who may set it, and why not. A test reads the installed library's own list
and fails for a property that is not here; until then it is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from afa.errors import did_you_mean
from afa.reading import Fault, Path

Scope: TypeAlias = Literal["*", "C", "P"]  # as librdkafka writes it: both, consumers only, producers only

FILE_SUFFIX: Final = ".file"  # `sasl.password.file` names the file that holds `sasl.password`


@dataclass(frozen=True, slots=True)
class Rule:
    """What is known of a property. `refusal` says why users may not set it; empty if they may."""

    scope: Scope
    refusal: str = ""
    fix: str = ""


_ALLOWED: Final[dict[Scope, str]] = {
    "*": """
        api.version.fallback.ms api.version.request api.version.request.timeout.ms broker.address.family
        broker.address.ttl broker.version.fallback builtin.features client.dns.lookup client.id client.rack
        connections.max.idle.ms debug enable.metrics.push enable.random.seed enable.ssl.certificate.verification
        https.ca.location https.ca.pem log.connection.close log.thread.name log_level max.in.flight
        max.in.flight.requests.per.connection message.copy.max.bytes message.max.bytes metadata.max.age.ms
        metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy receive.message.max.bytes
        reconnect.backoff.jitter.ms reconnect.backoff.max.ms reconnect.backoff.ms retry.backoff.max.ms retry.backoff.ms
        sasl.kerberos.service.name sasl.mechanism sasl.mechanisms sasl.oauthbearer.assertion.algorithm
        sasl.oauthbearer.assertion.claim.aud sasl.oauthbearer.assertion.claim.exp.seconds
        sasl.oauthbearer.assertion.claim.iss sasl.oauthbearer.assertion.claim.jti.include
        sasl.oauthbearer.assertion.claim.nbf.seconds sasl.oauthbearer.assertion.claim.sub
        sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.jwt.template.file
        sasl.oauthbearer.assertion.private.key.file sasl.oauthbearer.assertion.private.key.passphrase
        sasl.oauthbearer.assertion.private.key.pem sasl.oauthbearer.client.credentials.client.id
        sasl.oauthbearer.client.credentials.client.secret sasl.oauthbearer.client.id sasl.oauthbearer.client.secret
        sasl.oauthbearer.extensions sasl.oauthbearer.grant.type sasl.oauthbearer.metadata.authentication.type
        sasl.oauthbearer.method sasl.oauthbearer.scope sasl.oauthbearer.sub.claim.name
        sasl.oauthbearer.token.endpoint.url sasl.password sasl.username security.protocol socket.blocking.max.ms
        socket.connection.setup.timeout.ms socket.keepalive.enable socket.max.fails socket.nagle.disable
        socket.receive.buffer.bytes socket.send.buffer.bytes socket.timeout.ms ssl.ca.certificate.stores
        ssl.ca.location ssl.ca.pem ssl.certificate.location ssl.certificate.pem ssl.cipher.suites ssl.crl.location
        ssl.curves.list ssl.endpoint.identification.algorithm ssl.key.location ssl.key.password ssl.key.pem
        ssl.keystore.location ssl.keystore.password ssl.sigalgs.list statistics.interval.ms topic.blacklist
        topic.metadata.propagation.max.ms topic.metadata.refresh.fast.cnt topic.metadata.refresh.fast.interval.ms
        topic.metadata.refresh.interval.ms topic.metadata.refresh.sparse
        """,
    "C": """
        check.crcs consume.callback.max.messages coordinator.query.interval.ms fetch.error.backoff.ms fetch.max.bytes
        fetch.message.max.bytes fetch.min.bytes fetch.queue.backoff.ms fetch.wait.max.ms heartbeat.interval.ms
        max.partition.fetch.bytes max.poll.interval.ms queued.max.messages.kbytes queued.min.messages session.timeout.ms
        """,
    "P": """
        batch.num.messages batch.size compression.codec compression.level compression.type delivery.timeout.ms linger.ms
        message.send.max.retries message.timeout.ms produce.offset.report queue.buffering.backpressure.threshold
        queue.buffering.max.kbytes queue.buffering.max.messages queue.buffering.max.ms request.timeout.ms retries
        sticky.partitioning.linger.ms transaction.timeout.ms
        """,
}

_OFFSETS: Final = "offsets are committed together with the matches that they stand for"
_GROUP: Final = "partitions are handed over by a protocol that relies on it"
_ORDER: Final = "no record may be lost, doubled or out of order"
_PARTITION: Final = "records go to the partition number of their source"
_SHARE: Final = "a fleet is a consumer group, not a share group"
_NO_FILE: Final = "it keeps offsets in a local file, and they belong into the transaction"
# The product sets these, or relies on their defaults.
_OWNED: Final[dict[str, tuple[Scope, str, str]]] = {
    "bootstrap.servers": ("*", "the fleet has a field for it", "write `bootstrap`"),
    "metadata.broker.list": ("*", "the fleet has a field for it", "write `bootstrap`"),
    "allow.auto.create.topics": ("*", "a mistyped topic would become a new one", "use `arcfleet topics apply`"),
    "enabled_events": ("*", "the client reads its own events", ""),
    "internal.termination.signal": ("*", "signals are the process's own", ""),
    "log.queue": ("*", "log lines are taken from that queue", "set `log_level` or `debug`"),
    "group.id": ("C", "it is the fleet's name", "write `fleet`"),
    "group.instance.id": ("C", "it is the worker's name", "use `--instance`"),
    "group.protocol": ("C", _GROUP, ""),
    "group.protocol.type": ("C", _GROUP, ""),
    "group.remote.assignor": ("C", _GROUP, ""),
    "partition.assignment.strategy": ("C", _GROUP, ""),
    "auto.commit.enable": ("C", _OFFSETS, "set `commit_interval`"),
    "auto.commit.interval.ms": ("C", _OFFSETS, "set `commit_interval`"),
    "enable.auto.commit": ("C", _OFFSETS, "set `commit_interval`"),
    "enable.auto.offset.store": ("C", _OFFSETS, ""),
    "auto.offset.reset": ("C", "where a new fleet starts is said once, by its sources", "set the source's `start`"),
    "isolation.level": ("C", "what was aborted must not be seen", ""),
    "enable.partition.eof": ("C", "ends of partitions are events of the restore", ""),
    "max.poll.records": ("C", _SHARE, ""),
    "share.acknowledgement.mode": ("C", _SHARE, ""),
    "transactional.id": ("P", "it is made of the names of fleet and worker", "use `--instance`"),
    "enable.idempotence": ("P", _ORDER, ""),
    "enable.gapless.guarantee": ("P", "a failed record aborts its transaction already", ""),
    "acks": ("P", _ORDER, ""),
    "request.required.acks": ("P", _ORDER, ""),
    "queuing.strategy": ("P", _ORDER, ""),
    "delivery.report.only.error": ("P", "deliveries are counted before a commit", ""),
    "partitioner": ("P", _PARTITION, ""),
}

_LOADS: Final = "it loads code"
_RUNS: Final = "it belongs to a command that would be run"
_POINTER: Final = "it is a pointer in memory, which no text can give"
_TICKETS: Final = "let a process of your own keep the Kerberos tickets fresh"
_OIDC: Final = "write sasl.oauthbearer.method: oidc with the client's id and secret and the token endpoint"
_PEM: Final = "use the setting that ends with .pem or .location"
_REFUSED: Final[dict[str, tuple[Scope, str, str]]] = {
    "plugin.library.paths": ("*", _LOADS, ""),
    "ssl.engine.id": ("*", _LOADS, ""),
    "ssl.engine.location": ("*", _LOADS, ""),
    "ssl.providers": ("*", _LOADS, ""),
    "sasl.kerberos.kinit.cmd": ("*", "it runs a command", _TICKETS),
    "sasl.kerberos.keytab": ("*", _RUNS, _TICKETS),
    "sasl.kerberos.principal": ("*", _RUNS, _TICKETS),
    "sasl.kerberos.min.time.before.relogin": ("*", _RUNS, _TICKETS),
    "enable.sasl.oauthbearer.unsecure.jwt": ("*", "it signs tokens with nothing", _OIDC),
    "sasl.oauthbearer.config": ("*", "it is read by token handlers in code and by the unsecured one", _OIDC),
    "offset.store.method": ("C", _NO_FILE, ""),
    "offset.store.path": ("C", _NO_FILE, ""),
    "offset.store.sync.interval.ms": ("C", _NO_FILE, ""),
    "ssl_ca": ("*", _POINTER, _PEM),
    "ssl_certificate": ("*", _POINTER, _PEM),
    "ssl_key": ("*", _POINTER, _PEM),
}
_CALLBACKS: Final[dict[Scope, str]] = {
    "*": """
        background_event_cb closesocket_cb connect_cb default_topic_conf error_cb interceptors log_cb
        oauthbearer_token_refresh_cb opaque open_cb resolve_cb socket_cb ssl.certificate.verify_cb
        ssl_engine_callback_data stats_cb throttle_cb
        """,
    "C": "consume_cb offset_commit_cb rebalance_cb",
    "P": "dr_cb dr_msg_cb msg_order_cmp partitioner_cb",
}

RULES: Final[Mapping[str, Rule]] = {
    **{name: Rule(scope) for scope, names in _ALLOWED.items() for name in names.split()},
    **{name: Rule(scope, f"the product owns it: {why}", fix) for name, (scope, why, fix) in _OWNED.items()},
    **{name: Rule(scope, why, fix) for name, (scope, why, fix) in _REFUSED.items()},
    **{name: Rule(scope, _POINTER) for scope, names in _CALLBACKS.items() for name in names.split()},
}

# Masked wherever settings are shown; each may also be given as `<name>.file`.
SECRETS: Final = frozenset(
    {
        "sasl.password",
        "ssl.key.password",
        "ssl.key.pem",
        "ssl.keystore.password",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.assertion.private.key.pem",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.client.secret",
    }
)

# Values that are refused although others of the property are not.
_REFUSED_VALUES: Final = {("sasl.oauthbearer.metadata.authentication.type", "aws_iam"): ("it loads code", _OIDC)}


def secret_in_file(name: str) -> str | None:
    """The secret whose file `name` names; None if it is a property of its own."""
    secret = name.removesuffix(FILE_SUFFIX)
    return secret if name not in RULES and secret in SECRETS else None


def check_setting(name: str, value: str, path: Path) -> None:
    """Raises Fault unless users may give this property this value."""
    rule = RULES.get(secret_in_file(name) or name)
    if rule is None:
        known = [name for name, rule in RULES.items() if not rule.refusal]
        fix = did_you_mean(name, known, "docs/fleet.md says which settings may be passed")
        raise Fault(path, f"`{name}` is no setting of Kafka's client", fix, at_key=True)
    if rule.refusal:
        raise Fault(path, f"`{name}` may not be set: {rule.refusal}", rule.fix or "delete it", at_key=True)
    if refused := _REFUSED_VALUES.get((name, value.lower())):
        raise Fault(path, f"`{name}: {value}` may not be set: {refused[0]}", refused[1])


def passed(settings: Mapping[str, str], scope: Scope) -> dict[str, str]:
    """Those that a client of this kind takes: librdkafka complains about the other kind's. `*` is an admin client."""
    scopes = ("*", scope)
    return {name: value for name, value in settings.items() if RULES[secret_in_file(name) or name].scope in scopes}
