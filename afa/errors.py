"""The errors that input from outside can cause: a small tree, each with place, what and fix."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable


# What a hint may cost: comparing takes time by the square of the length, and input comes from strangers.
_COMPARED_WORDS: Final = 200
_COMPARED_CHARACTERS: Final = 40


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a user's file something stands; line and column count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class AfaError(Exception):
    """Bad input. `what` says what is wrong, `fix` what to do about it, `place` where it stands."""

    def __init__(self, what: str, *, fix: str = "", place: Place | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix
        self.place = place

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        return f"{where}{self.what}" + (f" (fix: {self.fix})" if self.fix else "")


class PatternError(AfaError):
    """A pattern document, one of its expressions or an arc body is not acceptable."""


class RecordError(AfaError):
    """A record (a line of a tape, a message) is not acceptable; the stream may go on without it."""


class SnapshotError(AfaError):
    """Saved state cannot be restored."""


def did_you_mean(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """A hint that names the known word nearest to `word`, else `otherwise`. Its cost is bounded."""
    compared = [other for other in known if len(other) <= _COMPARED_CHARACTERS][:_COMPARED_WORDS]
    near = get_close_matches(word, sorted(compared), n=1, cutoff=0.6) if len(word) <= _COMPARED_CHARACTERS else ()
    return f"did you mean `{near[0]}`?" if near else otherwise


def listed(words: Iterable[str]) -> str:
    """`a, b, c, …`, for messages that list what there is: the first of many."""
    first = list(islice(words, 11))
    return ", ".join([*first[:10], "…"] if len(first) > 10 else first)


def one_of(words: Iterable[str]) -> str:
    """`a, b or c`, for messages that list what is allowed."""
    *most, last = sorted(words)
    return f"{', '.join(most)} or {last}" if most else last
