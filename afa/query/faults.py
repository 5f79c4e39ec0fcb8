"""How the parts of the query language say that something is wrong, before anyone knows in which file."""

from __future__ import annotations

from afa.expression import ExpressionError


class QueryFault(ExpressionError):  # noqa: N818 - as `afa.reading.Fault`
    """Something is wrong at `offset` (in characters) of the query's text; always turned into a PatternError."""
