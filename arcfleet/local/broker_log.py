"""The broker's log file, as far as error messages need it."""

from __future__ import annotations

import re
from pathlib import Path

_LINES = 25
_LINE_CHARACTERS = 240
_BYTES = 64 * 1024
_STACK = re.compile(r"\s+at |\s+\.\.\. \d+ more")
_CAUSE = re.compile(r"\w+\.(\w*(?:Exception|Error): .+)")


class BrokerLog:
    """Everything is about the part since `mark`, so that an old failure is not shown for a new one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._start = 0

    def mark(self) -> None:
        self._start = self.path.stat().st_size if self.path.exists() else 0

    def text(self) -> str:
        if not self.path.exists():
            return ""
        with self.path.open("rb") as file:
            end = file.seek(0, 2)
            file.seek(max(self._start, end - _BYTES))
            return file.read().decode("utf-8", "replace")

    def explain(self) -> str:
        """The cause, if the log names one, and the last lines; stack frames are left out, they tell a reader of Kafka's
        sources only."""
        lines = [line[:_LINE_CHARACTERS] for line in self.text().splitlines() if line and not _STACK.match(line)]
        causes = [found[1] for line in lines if (found := _CAUSE.search(line))]
        cause = f"It says: {causes[-1]}\n" if causes else ""
        shown = "\n".join(f"  | {line}" for line in lines[-_LINES:]) or "  | (nothing)"
        return f"{cause}The end of its log:\n{shown}"
