"""The matches that stand after a log of changes: inserts minus retractions, by match id."""

from __future__ import annotations

from typing import Generic, TypeVar

Told = TypeVar("Told")


class NetMatches(Generic[Told]):
    """What stands, as it was told last. Changes that do not fit to it are counted."""

    def __init__(self) -> None:
        self.standing: dict[str, Told] = {}
        self.doubled = 0  # inserts of a match that stood already
        self.orphans = 0  # retractions of a match that did not stand

    def insert(self, identity: str, told: Told, *, replaces: bool = False) -> None:
        """`replaces`: a compressed record, which takes the place of the one before it."""
        self.doubled += identity in self.standing and not replaces
        self.standing[identity] = told

    def retract(self, identity: str) -> None:
        if identity in self.standing:
            del self.standing[identity]
        else:
            self.orphans += 1
