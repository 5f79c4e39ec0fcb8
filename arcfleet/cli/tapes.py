"""Tapes that a command is given: a file, or standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from afa import PatternError, Place, RecordError

STANDARD_INPUT = "<stdin>"


def tape_name(tape: str) -> str:
    """As messages name it."""
    return STANDARD_INPUT if tape == "-" else tape


@contextmanager
def open_tape(tape: str) -> Iterator[tuple[BinaryIO, int | None]]:
    """The tape's bytes and, for a plain file, how many there are."""
    if tape == "-":
        if sys.stdin is None:
            raise RecordError("standard input is closed", fix="pipe a tape into it, or name a file")
        yield sys.stdin.buffer, None
        return
    try:
        opened = Path(tape).open("rb")  # noqa: SIM115 - closed below
    except OSError as error:
        raise PatternError(
            f"cannot be read: {error.strerror}", fix="check the path of the tape", place=Place(tape, 1, 1)
        ) from None
    with opened:
        path = Path(tape)
        yield opened, path.stat().st_size if path.is_file() else None
