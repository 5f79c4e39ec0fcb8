"""What a query's text may cost. Each limit is refused before anything is parsed, with its name in the message.

The grammar's parser and the checks need some microseconds for a token, most of them in expressions, so it is the tokens
that keep a refusal under 50 ms, whatever is in the text; characters alone (a comment, a long string) cost next to none.
"""

from __future__ import annotations

import re
from itertools import dropwhile, islice
from typing import Final

from afa.query.faults import QueryFault

MAX_QUERY_BYTES: Final = 65_536
MAX_QUERY_TOKENS: Final = 6_000
MAX_CONDITION_TOKENS: Final = 3_000  # of these, from the braces on
MAX_QUERY_COMPONENTS: Final = 1_000
MAX_SET_MEMBERS: Final = 8  # an automaton has a state for every choice of members that have begun

# Possessive, and unclosed strings and comments run to their end: whatever the text is, no part of it is read twice.
_SKIPPED: Final = r"(?>\s++|--[^\n]*+|/\*[\s\S]*?(?:\*/|\Z))"
_STRING: Final = r"""(?>'(?:[^'\\\n]|\\[\s\S])*+'?|"(?:[^"\\\n]|\\[\s\S])*+"?)"""
_TOKEN: Final = re.compile(rf"{_SKIPPED}|({_STRING}|\w++|[\s\S])")  # group 1 is empty for what is skipped
_REFUSED_CHARACTER: Final = re.compile("[\0\ud800-\udfff]")
_SEQUENCE: Final = re.compile(rf"{_SKIPPED}*+(?i:pattern){_SKIPPED}*+(?i:seq){_SKIPPED}*+\(")
_OF_A_SEQUENCE: Final = re.compile(rf"{_SKIPPED}|{_STRING}|,(?!\s*+\d)|[\s\S]")  # that of `{2,3}` divides nothing


def check_limits(text: str) -> None:
    """Raises QueryFault for a text that is not to be parsed. Linear in its length."""
    size = len(text.encode(errors="surrogatepass"))
    if size > MAX_QUERY_BYTES:
        what = f"a query of {size:,} bytes; the limit max_query_bytes is {MAX_QUERY_BYTES:,}"
        raise QueryFault(0, what, "write several shorter queries")
    if not text.strip():
        raise QueryFault(0, "an empty query", "write PATTERN SEQ(...) WHERE ...")
    if found := _REFUSED_CHARACTER.search(text):
        name = "a NUL character" if found[0] == "\0" else "half of a surrogate pair"
        raise QueryFault(found.start(), f"{name} in a query", "delete it")
    sequence_end = _check_components(text)
    tokens = (found.start() for found in _TOKEN.finditer(text) if found[1])
    starts = list(islice(tokens, MAX_QUERY_TOKENS + 1))
    _check_count(starts, MAX_QUERY_TOKENS, "a query", "max_query_tokens")
    conditions = dropwhile(lambda start: start < sequence_end or text[start] != "{", starts)
    _check_count(list(conditions), MAX_CONDITION_TOKENS, "conditions", "max_condition_tokens")


def _check_count(starts: list[int], most: int, what: str, limit: str) -> None:
    if len(starts) > most:
        what = f"{what} of more than {most:,} words, numbers and signs ({limit})"
        raise QueryFault(starts[most], what, "write several shorter queries")


def _check_components(text: str) -> int:
    """Counts what stands between the commas of SEQ(...), where no other parentheses can be; gives its end."""
    begin = _SEQUENCE.match(text)
    if begin is None:
        return len(text)
    count = 1
    for found in _OF_A_SEQUENCE.finditer(text, begin.end()):
        if found[0] == ")":
            return found.end()
        count += found[0] == ","
        if count > MAX_QUERY_COMPONENTS:
            what = f"a pattern of more than {MAX_QUERY_COMPONENTS:,} components (max_query_components)"
            raise QueryFault(found.end(), what, "write several shorter queries")
    return len(text)
