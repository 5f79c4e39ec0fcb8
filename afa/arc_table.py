"""The arcs of one pattern as a second input: per arc id the newest record wins and replaces the arc, its past included.

Here is decided which changes are bad (a Fault), late (a reason) or applied; what they mean for matches is the
engines' business.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from afa.arcs import build_arc, read_lifetime
from afa.errors import did_you_mean
from afa.pattern import Arc, Lifetime, Pattern, Time, epsilon_cycle
from afa.reading import Fault, check_name
from afa.records import ArcChange, ArcRetraction


def table_of(tables: Mapping[str, ArcTable], record: ArcChange | ArcRetraction) -> ArcTable:
    """The table of the pattern that a record names. Raises Fault."""
    if record.pattern not in tables:
        hint = did_you_mean(record.pattern, tables, f"loaded are: {', '.join(tables) or 'none'}")
        raise Fault(("pattern",), f"the pattern `{record.pattern}` is not loaded", hint)
    return tables[record.pattern]


class ArcTable:
    """Arcs stay known by id after their lifetime has passed; only a retraction makes an id unknown."""

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self.arcs: dict[str, Arc] = {arc.id: arc for arc in pattern.arcs}
        self.finals = set(pattern.finals)  # only ever grows: a change makes no existing state final or plain

    def change(self, record: ArcChange, bound: Time) -> str | None:
        """Applies the record, or says why it is late: it would change something below `bound`. Raises Fault."""
        arc = self._changed_arc(record)
        old = self.arcs.get(arc.id)
        if reason := self._late(self._first_difference(old, arc), bound):
            return reason
        self.arcs[arc.id] = arc
        if arc.final:
            self.finals.add(arc.target)
        return None

    def retract(self, record: ArcRetraction, bound: Time) -> str | None:
        """The same for a removal, which takes the arc's past along."""
        arc = self._known(record)
        if set(record.arc) - {"id"}:
            raise Fault(("arc",), "an arc-retract names the arc by its `id` alone", "delete the other fields")
        if reason := self._late(math.inf if arc.lifetime.is_empty else arc.lifetime.le, bound):
            return reason
        del self.arcs[arc.id]
        return None

    def _known(self, record: ArcChange | ArcRetraction) -> Arc:
        name = check_name(record.arc.get("id"), ("arc", "id"), "id")
        if name not in self.arcs:
            known = ", ".join(sorted(self.arcs)) or "none"
            fix = f"the arcs of `{self.pattern.name}` are: {known}; a new one needs `from` and `to`"
            raise Fault(("arc", "id"), f"the pattern `{record.pattern}` has no arc `{name}`", fix)
        return self.arcs[name]

    def _changed_arc(self, record: ArcChange) -> Arc:
        if set(record.arc) <= {"id"}:
            old = self._known(record)
            if record.valid is None:
                raise Fault(("arc",), "an arc change without a body needs `valid`", 'add "valid":[le,re]')
            lifetime = read_lifetime(record.valid, ("valid",))
            return replace(old, lifetime=lifetime)
        if self.pattern.query is not None:
            what = f"`{self.pattern.name}` is a query: its arcs come from its text"
            raise Fault(("arc",), what, "change the text; here an arc may get another `valid`, or be retracted")
        lifetime = Lifetime() if record.valid is None else read_lifetime(record.valid, ("valid",))
        arc = build_arc(record.arc, self.pattern, ("arc",), lifetime_inside=False, lifetime=lifetime)
        others = [other for other in self.arcs.values() if other.id != arc.id]
        self._check_final(arc, others)
        cycle = epsilon_cycle([*others, arc]) if arc.epsilon else []
        if cycle:
            what = f"it would close a cycle of epsilon arcs: {' -> '.join([*cycle, cycle[0]])}"
            raise Fault(("arc",), what, "let one of them consume an event")
        return arc

    def _check_final(self, arc: Arc, others: list[Arc]) -> None:
        named = {self.pattern.start, *(state for other in others for state in (other.source, other.target))}
        if arc.final and arc.target in named and arc.target not in self.finals:
            what = f"the state `{arc.target}` is there already and is not final"
            raise Fault(("arc", "final"), what, "lead the arc to a new state, or to a final one")

    def _first_difference(self, old: Arc | None, new: Arc) -> Time:
        """The first instant at which the two differ; infinity if none."""
        spans = [arc.lifetime for arc in (old, new) if arc is not None and not arc.lifetime.is_empty]
        becomes_final = new.final and new.target not in self.finals
        same_body = old is not None and old.body()[:-1] == new.body()[:-1] and not becomes_final
        if same_body and len(spans) == 2 and spans[0].le == spans[1].le:
            return math.inf if spans[0].re == spans[1].re else min(span.re for span in spans)
        return min((span.le for span in spans), default=math.inf)

    def _late(self, first: Time, bound: Time) -> str | None:
        if first >= bound:
            return None
        since = "the beginning" if first == -math.inf else first
        return f"it would change the pattern from {since} on, below the punctuation {bound}"
