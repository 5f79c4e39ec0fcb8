"""`python -m arcfleet.local.jars` fetches or repairs Kafka's jars; quick when they are there, exit 3 on failure."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress

from arcfleet.local.errors import LocalKafkaError
from arcfleet.local.jar_cache import KAFKA, Count, ensure

_EXIT_SYSTEM = 3


@contextlib.contextmanager
def _counter() -> Iterator[Count]:
    """A bar on a terminal, silence elsewhere."""
    console = Console(stderr=True)
    columns = (*Progress.get_default_columns(), MofNCompleteColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task("fetching", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def main() -> int:
    start_s = time.monotonic()

    def say(text: str) -> None:
        sys.stderr.write(f"{text}\n")

    try:
        with _counter() as count:
            paths = ensure(say=say, count=count)
    except LocalKafkaError as error:
        say(f"error: {error}")
        return _EXIT_SYSTEM
    say(f"Kafka {KAFKA.version}: {len(paths)} jars in {paths[0].parent} ({time.monotonic() - start_s:.1f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
