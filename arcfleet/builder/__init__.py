"""Queries written in Python: `seq(a, b.plus(), ~c, d).where(...).within("5m")`.

What is built is printed as the text of a query and read back, so whatever holds for text holds here.
"""

from __future__ import annotations

from arcfleet.builder.query import QueryBuilder, any_order, same, seq
from arcfleet.builder.values import choose, fn
from arcfleet.builder.variables import ANY, event

__all__ = ["ANY", "QueryBuilder", "any_order", "choose", "event", "fn", "same", "seq"]
