"""Short ways to run an engine on plain documents and records."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from afa.document import build_pattern
from afa.reading import Fault
from afa.records import Change, Match, MatchChange, read_record
from afa.reference import ReferenceEngine, Step


class Run:
    """An engine, the net matches by id, and the log of all it said."""

    def __init__(self, *documents: dict[str, Any], **settings: Any) -> None:
        self.engine = ReferenceEngine(replace(build_pattern(document), **settings) for document in documents)
        self.net: dict[str, Match] = {}
        self.log: list[Change] = []
        self.lines = 0

    def feed(self, record: dict[str, Any]) -> Step:
        self.lines += 1
        step = self.engine.feed(read_record(record, f"{self.lines:012d}"))
        for change in step.changes:
            self.log.append(change)
            if isinstance(change, MatchChange) and change.op == "insert":
                assert change.id not in self.net, "inserted twice"
                self.net[change.id] = change.match
            elif isinstance(change, MatchChange):
                assert self.net.pop(change.id) == change.match, "retracted what was not there"
        return step

    def offer(self, record: dict[str, Any]) -> Step | None:
        """Like `feed`, but a bad record is left out: one about an arc that came too late to become known, say."""
        try:
            return self.feed(record)
        except Fault:
            return None

    def feed_all(self, records: list[dict[str, Any]]) -> Run:
        for record in records:
            self.feed(record)
        return self


def net(document: dict[str, Any], records: list[dict[str, Any]], **settings: Any) -> dict[str, Match]:
    return Run(document, **settings).feed_all(records).net
