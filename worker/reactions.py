"""What a worker does on which error code: the one table, learned on a real broker. `docs/operations.md` has it too.

An error that is not in it counts as the worst of its class: a producer's as one that needs a new producer, a
consumer's as one that ends the process.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Final, NoReturn

from confluent_kafka import KafkaError, KafkaException

from worker.errors import ResetError, WorkerError


class Reaction(StrEnum):
    """What is done."""

    GO_ON = "go on"  # nothing happened that matters here
    WAIT = "wait"  # it passes; asked again
    RESET = "reset, keep the producer"
    RENEW = "reset, with a new producer"
    FENCED = "reset, after looking whether somebody else has taken over"
    END = "end the process"


# Of transactions, produced records and flushes.
PRODUCING: Final[dict[int, Reaction]] = {
    KafkaError.ILLEGAL_GENERATION: Reaction.RESET,
    KafkaError.UNKNOWN_MEMBER_ID: Reaction.RESET,
    KafkaError.REBALANCE_IN_PROGRESS: Reaction.RESET,
    KafkaError._TIMED_OUT: Reaction.RENEW,
    KafkaError._MSG_TIMED_OUT: Reaction.RENEW,
    KafkaError.NOT_COORDINATOR: Reaction.RENEW,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS: Reaction.RENEW,
    KafkaError.COORDINATOR_NOT_AVAILABLE: Reaction.RENEW,
    KafkaError.CONCURRENT_TRANSACTIONS: Reaction.RENEW,
    KafkaError.INVALID_TXN_STATE: Reaction.RENEW,
    KafkaError._STATE: Reaction.RENEW,
    KafkaError._PURGE_QUEUE: Reaction.RENEW,
    KafkaError._PURGE_INFLIGHT: Reaction.RENEW,
    KafkaError._FENCED: Reaction.FENCED,
    KafkaError._FATAL: Reaction.FENCED,
    KafkaError.FENCED_INSTANCE_ID: Reaction.FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH: Reaction.FENCED,
    KafkaError.PRODUCER_FENCED: Reaction.FENCED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED: Reaction.END,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Reaction.END,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: Reaction.END,
    KafkaError.UNKNOWN_TOPIC_OR_PART: Reaction.END,
    KafkaError._UNKNOWN_PARTITION: Reaction.END,
    KafkaError._UNKNOWN_TOPIC: Reaction.END,
    KafkaError._AUTHENTICATION: Reaction.END,
    KafkaError.MSG_SIZE_TOO_LARGE: Reaction.END,
}

# Of messages and calls of the group's consumer.
CONSUMING: Final[dict[int, Reaction]] = {
    KafkaError._PARTITION_EOF: Reaction.GO_ON,
    KafkaError._TRANSPORT: Reaction.WAIT,
    KafkaError._ALL_BROKERS_DOWN: Reaction.WAIT,
    KafkaError._TIMED_OUT: Reaction.WAIT,
    KafkaError._RESOLVE: Reaction.WAIT,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS: Reaction.WAIT,
    KafkaError.COORDINATOR_NOT_AVAILABLE: Reaction.WAIT,
    KafkaError.NOT_COORDINATOR: Reaction.WAIT,
    KafkaError.LEADER_NOT_AVAILABLE: Reaction.WAIT,
    KafkaError.NOT_LEADER_FOR_PARTITION: Reaction.WAIT,
    KafkaError.REQUEST_TIMED_OUT: Reaction.WAIT,
    KafkaError.UNSTABLE_OFFSET_COMMIT: Reaction.WAIT,
    KafkaError.REBALANCE_IN_PROGRESS: Reaction.WAIT,
    KafkaError.ILLEGAL_GENERATION: Reaction.RESET,
    KafkaError.UNKNOWN_MEMBER_ID: Reaction.RESET,
    KafkaError._MAX_POLL_EXCEEDED: Reaction.RENEW,
    KafkaError._FATAL: Reaction.END,
    KafkaError.FENCED_INSTANCE_ID: Reaction.END,
    KafkaError.TOPIC_AUTHORIZATION_FAILED: Reaction.END,
    KafkaError.GROUP_AUTHORIZATION_FAILED: Reaction.END,
    KafkaError.INVALID_SESSION_TIMEOUT: Reaction.END,
    KafkaError.UNKNOWN_TOPIC_OR_PART: Reaction.END,
    KafkaError._UNKNOWN_PARTITION: Reaction.END,
    KafkaError._UNKNOWN_TOPIC: Reaction.END,
    KafkaError._AUTO_OFFSET_RESET: Reaction.END,
    KafkaError.OFFSET_OUT_OF_RANGE: Reaction.END,
    KafkaError._AUTHENTICATION: Reaction.END,
}

_GONE: Final = "records that were not read yet are gone: see the topic's retention, and begin a fleet with another name"
_FIXES: Final[dict[int, str]] = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "grant the worker's user what docs/fleet.md lists under Rights",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "grant READ on the group with the fleet's name",
    KafkaError.INVALID_SESSION_TIMEOUT: "set session.timeout.ms between the brokers' group.min.session.timeout.ms and "
    "group.max.session.timeout.ms",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "grant WRITE on transactional ids, prefixed by the fleet's name",
    KafkaError.UNKNOWN_TOPIC_OR_PART: "make it: arcfleet topics apply",
    KafkaError._UNKNOWN_PARTITION: "compare the partition counts: arcfleet topics check",
    KafkaError._UNKNOWN_TOPIC: "make it: arcfleet topics apply",
    KafkaError._AUTO_OFFSET_RESET: _GONE,
    KafkaError.OFFSET_OUT_OF_RANGE: _GONE,
    KafkaError._AUTHENTICATION: "check the credentials under `kafka:` in the fleet document",
    KafkaError.MSG_SIZE_TOO_LARGE: "raise max.message.bytes on the topic: arcfleet topics apply",
    KafkaError.FENCED_INSTANCE_ID: "another process runs under the same --instance; give each its own",
    KafkaError._FATAL: "another process may run under the same --instance; give each its own",
}


def reaction_of_producer(error: KafkaError) -> Reaction:
    """What an error of the producer asks for."""
    known = PRODUCING.get(error.code())
    if known is not None:
        return known
    if error.fatal():
        return Reaction.FENCED
    return Reaction.RESET if error.txn_requires_abort() else Reaction.RENEW


def reaction_of_consumer(error: KafkaError) -> Reaction:
    """What an error of the consumer asks for."""
    known = CONSUMING.get(error.code())
    if known is not None:
        return known
    return Reaction.END if error.fatal() or not error.retriable() else Reaction.WAIT


def raise_for(reaction: Reaction, error: KafkaError, doing: str) -> None:
    """Raises what a reaction stands for; returns if there is nothing to be done."""
    what = f"{doing}: {error.name()}: {error.str()}"
    if reaction is Reaction.END:
        raise WorkerError(what, fix=_FIXES.get(error.code(), "see the broker's log"))
    if reaction is Reaction.RESET:
        raise ResetError(what, keeps_producer=True)
    if reaction is Reaction.RENEW:
        raise ResetError(what)
    if reaction is Reaction.FENCED:
        raise ResetError(what, fenced=True)


@contextmanager
def producing(doing: str) -> Iterator[None]:
    """What a call of the producer raises becomes what its reaction stands for."""
    try:
        yield
    except (KafkaException, SystemError) as error:
        raise_for_producer(error, doing)


def raise_for_producer(raised: KafkaException | SystemError, doing: str) -> NoReturn:
    """A producer that finds itself fenced says so by an exception of any call that serves it; if the call was about to
    report a delivery, Python makes a SystemError of it."""
    cause = raised if isinstance(raised, KafkaException) else raised.__cause__
    if not isinstance(cause, KafkaException):
        raise raised
    error = cause.args[0]
    raise_for(reaction_of_producer(error), error, doing)
    raise ResetError(f"{doing}: {error.str()}") from None
