"""What a query's text may cost. Each limit is refused before anything is parsed, with its name in the message.

The grammar's parser needs some microseconds for a token, so it is the tokens that keep a refusal under 50 ms, whatever
is in the text; characters alone (a comment, a long string) cost next to nothing.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

from afa.query.faults import QueryFault

MAX_QUERY_BYTES: Final = 65_536
MAX_QUERY_TOKENS: Final = 6_000
MAX_QUERY_COMPONENTS: Final = 1_000

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
    _check_components(text)
    tokens = (found.start() for found in _TOKEN.finditer(text) if found[1])
    if (offset := next(islice(tokens, MAX_QUERY_TOKENS, None), None)) is not None:
        what = f"a query of more than {MAX_QUERY_TOKENS:,} words, numbers and signs (max_query_tokens)"
        raise QueryFault(offset, what, "write several shorter queries")


def _check_components(text: str) -> None:
    """Counts what stands between the commas of SEQ(...), where no other parentheses can be."""
    begin = _SEQUENCE.match(text)
    if begin is None:
        return
    count = 1
    for found in _OF_A_SEQUENCE.finditer(text, begin.end()):
        if found[0] == ")":
            return
        count += found[0] == ","
        if count > MAX_QUERY_COMPONENTS:
            what = f"a pattern of more than {MAX_QUERY_COMPONENTS:,} components (max_query_components)"
            raise QueryFault(found.end(), what, "write several shorter queries")
