"""A second broker in the cluster of a `LocalBroker`: one that may hang while the first goes on."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from arcfleet.local.broker import HEAP, QUICK_START_JVM, LocalBroker
from arcfleet.local.guarded import GuardedProcess
from arcfleet.local.jar_cache import ensure
from arcfleet.local.java import find_java
from arcfleet.local.ports import free_port


@contextmanager
def second_broker(first: LocalBroker, folder: Path) -> Iterator[int]:
    """Its process, which ends with the block; it may take some seconds until the cluster knows it."""
    properties = folder / "second.properties"
    properties.write_text(_properties((first.data_dir / "server.properties").read_text(), free_port(), folder))
    java = [str(find_java()), f"-Xmx{HEAP}", *QUICK_START_JVM, f"-Djava.io.tmpdir={folder}"]
    command = [*java, "-cp", os.pathsep.join(map(str, ensure()))]
    meta = (first.data_dir / "data" / "meta.properties").read_text()
    cluster_id = re.search(r"^cluster\.id=(\S+)$", meta, re.MULTILINE)[1]  # type: ignore[index]
    format_ = ["kafka.tools.StorageTool", "format", f"--cluster-id={cluster_id}", "-c", str(properties)]
    subprocess.run([*command, *format_], check=True, capture_output=True, timeout=60)
    process = GuardedProcess(
        [*command, "kafka.Kafka", str(properties)], folder=folder, log=folder / "second.log", remove=None
    )
    try:
        yield process.pid
    finally:
        process.kill(10)


def _properties(first: str, port: int, folder: Path) -> str:
    """Those of the first broker, but for what is its own."""
    address = f"PLAINTEXT://127.0.0.1:{port}"
    own = {"node.id": "2", "process.roles": "broker", "listeners": address, "advertised.listeners": address}
    for name, value in (own | {"log.dirs": str(folder / "second-data")}).items():
        first = re.sub(rf"^{re.escape(name)}=.*$", f"{name}={value}", first, flags=re.MULTILINE)
    return first
