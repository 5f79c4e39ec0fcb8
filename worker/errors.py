"""What ends a worker, and what makes it begin again."""

from __future__ import annotations


class WorkerError(Exception):
    """The process has to end: what happened, and what to do about it."""

    def __init__(self, what: str, *, fix: str = "", exit_code: int = 3) -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix
        self.exit_code = exit_code

    def __str__(self) -> str:
        return self.what + (f" (fix: {self.fix})" if self.fix else "")


class ResetError(Exception):
    """What was done since the last commit is void: the one way back is to restore from it."""

    def __init__(self, why: str, *, keeps_producer: bool = False, fenced: bool = False) -> None:
        super().__init__(why)
        self.why = why
        self.keeps_producer = keeps_producer
        self.fenced = fenced
