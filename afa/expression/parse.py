"""Text to Python's syntax tree, for the subset that the contract names; nothing is ever evaluated as Python."""

from __future__ import annotations

import ast
import re
import warnings
from keyword import kwlist
from typing import Final

from afa.expression.limits import MAX_EXPRESSION_CHARACTERS, MAX_EXPRESSION_DEPTH, MAX_EXPRESSION_NODES

_LINE_END: Final = re.compile(r"\r\n?|\n")  # Python's own idea of a line
_STRING: Final = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_KEYWORD_FIELD: Final = re.compile(rf"{_STRING}|\.(?P<word>{'|'.join(kwlist)})\b", re.DOTALL)
_REFUSED_CHARACTER: Final = re.compile("[\0\ud800-\udfff]")
_SHOUTED_WORD: Final = re.compile(r"\b(?:AND|And|OR|Or|NOT|Not|IN|In)\b")


class ExpressionError(Exception):
    """Something is wrong at `offset` (in characters) of the expression's text."""

    def __init__(self, offset: int, what: str, fix: str = "") -> None:
        super().__init__(what)
        self.offset = offset
        self.what = what
        self.fix = fix


def shield_keywords(text: str) -> str:
    """The same text, with fields that are named like a word of Python (`e.from`) made readable for its parser.

    Their first letter is replaced by a bold one, which Python's parser itself turns back (its identifiers are in normal
    form NFKC) after it has looked for keywords. Offsets in characters stay what they are.
    """
    return _KEYWORD_FIELD.sub(_bold_first_letter, text)


def _bold_first_letter(found: re.Match[str]) -> str:
    if found["word"] is None:  # a string literal
        return found[0]
    letter = found["word"][0]
    bold = chr(ord(letter) - ord("a") + 0x1D41A) if letter.islower() else chr(ord(letter) - ord("A") + 0x1D400)
    return f".{bold}{found['word'][1:]}"


def parse_syntax(text: str) -> ast.expr:
    """The syntax tree of one expression, which may run over several lines.

    Raises ExpressionError for anything that is not one expression, or is too long, too deep or too large.
    """
    if len(text) > MAX_EXPRESSION_CHARACTERS:
        raise ExpressionError(
            0,
            f"an expression of {len(text):,} characters; the limit max_expression_characters is "
            f"{MAX_EXPRESSION_CHARACTERS:,}",
            "split it over several arcs, or keep a part of it in a register",
        )
    if not text.strip():
        raise ExpressionError(0, "an empty expression", "write a condition such as `e.price > 9`, or `true`")
    if found := _REFUSED_CHARACTER.search(text):
        name = "a NUL character" if found[0] == "\0" else "half of a surrogate pair"
        raise ExpressionError(found.start(), f"{name} in an expression", "delete it")
    root = _python_tree(text)
    if root.lineno == 1 and root.col_offset == 0:  # only a closing parenthesis too many gets out of ours
        raise ExpressionError(0, "the parentheses do not match, or this is a tuple", "write one expression")
    check_size(root)
    return root


def _python_tree(text: str) -> ast.expr:
    too_deep = ExpressionError(0, "the expression is nested too deeply", "split it over several arcs")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's advice on style (`\d`, `1 is 1`) is not for our users
            # The parentheses let an expression run over several lines of a YAML block.
            return ast.parse(f"({text}\n)", mode="eval").body
    except SyntaxError as error:
        offset = offset_of(text, error.lineno or 1, (error.offset or 1) - 1)
        raise ExpressionError(min(offset, len(text)), *_syntax_message(text, error)) from None
    except (RecursionError, MemoryError):
        raise too_deep from None


def _syntax_message(text: str, error: SyntaxError) -> tuple[str, str]:
    if _SHOUTED_WORD.search(text):
        hint = "arc expressions use Python's words in lower case: `and`, `or`, `not`, `in`"
    elif "&&" in text or "||" in text or "!" in text.replace("!=", ""):
        hint = "write `and`, `or`, `not`"
    elif "=" in text and not any(mark in text for mark in ("==", "!=", "<=", ">=")):
        hint = "to compare, write `==`"
    else:
        hint = "see the expression language in docs/patterns.md: `e.field`, `r.register`, comparisons, and/or/not"
    return f"not an expression: {error.msg or 'invalid syntax'}", hint


def offset_of(text: str, line: int, column: int) -> int:
    """The offset in `text` of a position in the parenthesised source that Python saw (column in characters)."""
    if line == 1:
        return max(column - 1, 0)
    line_starts = [0, *(found.end() for found in _LINE_END.finditer(text)), len(text)]
    return line_starts[min(line, len(line_starts)) - 1] + column


def node_offset(text: str, node: ast.expr) -> int:
    """Where a node begins in `text`; Python counts its columns in UTF-8 bytes."""
    line = _LINE_END.split(f"({text}\n)")[node.lineno - 1]
    column = len(line.encode()[: node.col_offset].decode(errors="ignore"))
    return offset_of(text, node.lineno, column)


def check_size(root: ast.expr, offset: int = 0, fix: str = "split it over several arcs") -> None:
    """Refuses before anything recurses over the tree: this walk itself does not."""
    level: list[ast.AST] = [root]
    depth = count = 0
    while level:
        expressions = [node for node in level if isinstance(node, ast.expr)]
        depth += bool(expressions)  # operators and the like are no level of their own
        count += len(expressions)
        if depth > MAX_EXPRESSION_DEPTH:
            what = f"the expression is nested deeper than {MAX_EXPRESSION_DEPTH} (max_expression_depth)"
            raise ExpressionError(offset, what, fix)
        if count > MAX_EXPRESSION_NODES:
            what = f"the expression has more than {MAX_EXPRESSION_NODES} parts (max_expression_nodes)"
            raise ExpressionError(offset, what, fix)
        level = [below for node in level for below in ast.iter_child_nodes(node)]
