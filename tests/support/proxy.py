"""A proxy before a broker that swallows answers: the request is done, and who asked never hears of it."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections import Counter
from collections.abc import Mapping
from random import Random

PRODUCE, TXN_OFFSET_COMMIT, END_TXN, INIT_PRODUCER_ID = 0, 28, 26, 22  # Kafka's numbers of requests


class Proxy:
    """Passes everything on; of each kind of request in `swallows`, that share of answers goes with the connection."""

    def __init__(self, port: int, swallows: Mapping[int, float], seed: int) -> None:
        self.swallowed: Counter[int] = Counter()
        self.is_calm = False
        self._swallows, self._random, self._target = swallows, Random(seed), ("", 0)
        self._door = socket.create_server(("127.0.0.1", port))
        self._open: list[socket.socket] = []

    def start(self, target: str) -> None:
        host, port = target.split(":")
        self._target = (host, int(port))
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        for one in (self._door, *self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._door.accept()
                server = socket.create_connection(self._target)
                self._open += [client, server]
                asked: dict[int, int] = {}
                for work in (self._ask, self._answer):
                    threading.Thread(target=work, args=(client, server, asked), daemon=True).start()

    def _ask(self, client: socket.socket, server: socket.socket, asked: dict[int, int]) -> None:
        with contextlib.suppress(OSError):
            while (frame := _frame(client)) is not None:
                asked[int.from_bytes(frame[8:12], "big")] = int.from_bytes(frame[4:6], "big")
                server.sendall(frame)
        _hang_up(client, server)

    def _answer(self, client: socket.socket, server: socket.socket, asked: dict[int, int]) -> None:
        with contextlib.suppress(OSError):
            while (frame := _frame(server)) is not None:
                kind = asked.pop(int.from_bytes(frame[4:8], "big"), -1)
                if not self.is_calm and self._random.random() < self._swallows.get(kind, 0.0):
                    self.swallowed[kind] += 1
                    break
                client.sendall(frame)
        _hang_up(client, server)


def _frame(connection: socket.socket) -> bytes | None:
    """Of requests and answers alike: a length, and so many bytes."""
    head = connection.recv(4, socket.MSG_WAITALL)
    if len(head) < 4:
        return None
    body = connection.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL)
    return head + body


def _hang_up(*connections: socket.socket) -> None:
    for connection in connections:
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
