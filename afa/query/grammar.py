"""Text to lark's parse tree. The grammar is in grammar.lark; its parser is made once in a process."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from afa.query.limits import check_limits

if TYPE_CHECKING:
    from lark import Lark, Token
    from lark.tree import Tree


@cache
def _parser() -> Lark:
    from lark import Lark  # noqa: PLC0415 - 0.1 s that only queries are to pay for

    grammar = files("afa.query").joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", lexer="contextual", maybe_placeholders=True)


def parse_tree(text: str) -> Tree[Token]:
    """Lark's tree of a whole query. Raises QueryFault; nothing recurses, however deep the text is nested."""
    check_limits(text)
    parser = _parser()
    from lark.exceptions import UnexpectedCharacters, UnexpectedToken  # noqa: PLC0415 - as above

    from afa.query.syntax_errors import character_fault, token_fault  # noqa: PLC0415

    try:
        return parser.parse(text)
    except UnexpectedToken as error:
        raise token_fault(error, text) from None
    except UnexpectedCharacters as error:
        raise character_fault(error, text) from None
