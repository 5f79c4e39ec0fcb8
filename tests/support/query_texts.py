"""Short ways to write queries, and to say where one is refused."""

from __future__ import annotations

from typing import Any

import pytest

from afa import PatternError
from afa.query import parse_query


def where(conditions: str, pattern: str = "T a, T+ b[], ~T n, T c", window: str = "WITHIN 1 hour") -> str:
    """A query with these conditions, over `a` single, `b[]` Kleene, `n` negated and `c` single."""
    names = [component.split()[-1] for component in pattern.replace("{T", "T").replace("}", "").split(", ")]
    return f"PATTERN SEQ({pattern})\nWHERE skip_till_next_match({', '.join(names)}) {{\n  {conditions}\n}}\n{window}"


def refused(marked: str, *, events: Any = None) -> PatternError:
    """The error of the text without its mark `¦`, which must be the error's place."""
    text = marked.replace("¦", "")
    before = marked[: marked.index("¦")]
    with pytest.raises(PatternError) as caught:
        parse_query(text, events=events, file="q.sase")
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    assert str(caught.value.place) == f"q.sase:{line}:{column}", caught.value
    assert caught.value.fix
    return caught.value
