"""The query language (SASE+): text to a checked tree and back."""

from __future__ import annotations

from afa.durations import FleetUnit
from afa.errors import PatternError
from afa.expression import ExpressionError
from afa.query.build import build_query
from afa.query.printer import print_expression, print_query
from afa.query.references import EventFields
from afa.query.tree import Query
from afa.source_text import SourceText

__all__ = ["EventFields", "Query", "build_query", "parse_query", "print_expression", "print_query"]


def parse_query(
    text: str, *, events: EventFields | None = None, file: str = "<query>", unit: FleetUnit = "ms"
) -> Query:
    """The query that a text says; `events` are the declared fields of each event type, `unit` is what `ts` counts.

    Raises PatternError with line, column, what is wrong and what to write instead.
    """
    try:
        return build_query(text, events, unit)
    except ExpressionError as fault:
        place = SourceText(file, text).place(fault.offset)
        raise PatternError(fault.what, fix=fault.fix, place=place) from None
