"""Free loopback ports."""

from __future__ import annotations

import random
import socket
from collections.abc import Collection

from arcfleet.local.errors import LocalKafkaError
from arcfleet.local.settings import HOST

# Below the range from which systems take the ports of outgoing connections (Linux from 32768, macOS from 49152). Inside
# it, a client that calls a stopped broker again and again can be given that very port as its own: it is then connected
# to itself, and the broker cannot come back.
CANDIDATES = range(20_000, 32_000)
_ATTEMPTS = 1000
# The system's own source: tests that seed `random` in several processes would all try the same ports.
_random = random.SystemRandom()


def free_port(avoid: Collection[int] = ()) -> int:
    """A port that nobody listens on now. Somebody may be quicker than the caller: be ready to ask again."""
    for _ in range(_ATTEMPTS):
        port = _random.choice(CANDIDATES)
        if port not in avoid and is_free(port):
            return port
    raise LocalKafkaError(
        f"No free port on {HOST} from {CANDIDATES.start} to {CANDIDATES.stop - 1} in {_ATTEMPTS} attempts"
    )


def is_free(port: int) -> bool:
    """Whether a server could listen there; what is left of closed connections does not count, nor does it for Kafka."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True
