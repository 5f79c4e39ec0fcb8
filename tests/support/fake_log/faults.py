"""What may go wrong, and where.

A broker asks its `faults` at each point below, with the client that is there. The answer is an error that the client is
to see, or none. Instead of an answer, `Crashed` may be raised: then nothing of the client's process runs any more. Or
the asked one lets others run first, which is what a stopped process is like to itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from confluent_kafka import KafkaError

# Of transactions each has a twin with `.done`, after which the broker has done it and the client does not know.
POINTS: Final = (
    "poll",
    "rebalance",
    "committed",
    "watermarks",
    "offsets_for_times",
    "commit_offsets",
    "commit_offsets.done",
    "produce",
    "deliver",
    "flush",
    "init_transactions",
    "init_transactions.done",
    "begin_transaction",
    "send_offsets",
    "send_offsets.done",
    "commit_transaction",
    "commit_transaction.done",
    "abort_transaction",
    "abort_transaction.done",
)

Faults = Callable[[str, Any], KafkaError | None]


class Crashed(BaseException):
    """The process of a client is gone, at this very point. No Exception, so that nobody handles it."""


def no_faults(point: str, client: Any) -> None:
    """All goes well."""


def timed_out(what: str) -> KafkaError:
    """No answer came; whether the broker has done it is unknown."""
    return KafkaError(KafkaError._TIMED_OUT, f"{what}: timed out", retriable=True)
