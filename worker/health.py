"""The HTTP door: is it alive, is it ready, what does it count."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

Answer = tuple[bool, dict[str, object]]
_REQUEST_S: Final = 5.0


class HealthServer:
    """Answers from a thread of its own, with what the loop has noted."""

    def __init__(
        self,
        host: str,
        port: int,
        registry: CollectorRegistry,
        alive: Callable[[], Answer],
        ready: Callable[[], Answer],
    ) -> None:
        class Handler(BaseHTTPRequestHandler):
            timeout = _REQUEST_S

            def do_GET(self) -> None:
                path = self.path.split("?", 1)[0]
                if path == "/metrics":
                    self._send(200, CONTENT_TYPE_LATEST, generate_latest(registry))
                elif path in ("/livez", "/readyz"):
                    good, told = (alive if path == "/livez" else ready)()
                    self._send(200 if good else 503, "application/json", json.dumps(told).encode() + b"\n")
                else:
                    self._send(404, "text/plain", b"there are /livez, /readyz and /metrics\n")

            def _send(self, status: int, kind: str, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Probes come every few seconds: nobody wants to read of them."""

        self._server = ThreadingHTTPServer((host, port), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="http", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
