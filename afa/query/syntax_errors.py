"""What lark could not read, said for people: the place, what was expected there, and what to write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from afa.errors import did_you_mean, one_of
from afa.query.faults import QueryFault

if TYPE_CHECKING:
    from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

_VALUES: Final = frozenset(
    {"NAME", "NUMBER", "STRING", "TRUE", "FALSE", "NULL", "LSQB", "LPAR", "PLUS", "MINUS", "NOT"}
)
_OPERATORS: Final = frozenset(
    {"COMPARATOR", "IN", "NOT", "PLUS", "MINUS", "STAR", "SLASH", "DOUBLE_SLASH", "PERCENT", "_AND", "_OR", "_IF"}
)
_WORDS: Final = {
    "$END": "the end of the query",
    "NAME": "a name",
    "NUMBER": "a number",
    "STRING": "a text in quotes",
    "NULL": "null",
    "COMMA": "`,`",
    "DOT": "`.`",
    "LPAR": "`(`",
    "RPAR": "`)`",
    "LSQB": "`[`",
    "RSQB": "`]`",
    "LBRACE": "`{`",
    "RBRACE": "`}`",
    "NEGATION": "`~`",
    "PLUS": "`+`",
}
_OF_A_QUANTIFIER: Final = frozenset({"STAR", "QUESTION"})  # read only to be refused with a hint

# By the token before, for the places where that is enough.
_HINT_AFTER: Final = {
    "_PATTERN": "write PATTERN SEQ(T a, U b)",
    "_SEQ": "write PATTERN SEQ(T a, U b)",
    "_WHERE": "WHERE begins with the strategy and all variables: skip_till_next_match(a, b) { ... }",
    "_WITHIN": "write WITHIN 5 minutes or WITHIN 500 events; without a bound WITHOUT WINDOW",
    "AS": "give the value a name: `avg(a[].price) AS mean`",
    "DOT": "a field follows the point: `a.price`",
}
# By what is expected, the first that fits.
_HINT_OF_EXPECTED: Final = {
    "_PATTERN": "a query begins with PATTERN SEQ(...)",
    "_WHERE": "after the pattern comes its strategy: WHERE skip_till_next_match(a, b) { ... }",
    "_WITHIN": "after the conditions come WITHIN 1 hour and RETURN ...",
    "QUESTION": "name the variable of the component: `T v`, `T+ v[]`, `T{m,n} v[]`",
    "ANY": "a component is `T v`, `T+ v[]`, `T{m,n} v[]`, `~T v` or a set `{T v, U u}`",
    "AS": "divide the values by commas; a name follows AS",
    "DOTS": "write a[1], a[i], a[i-1], a[a.len], a[] or a[..i-1]",
    "_AND": "join conditions by AND, end them with `}`",
    "TRUE": "write a field such as `a.price`, a number or a text in quotes",
    "": "check the parentheses and commas before this place",
}
# What people write who know another language.
_HINT_OF_WORD: Final = {
    "is": "write `= null` or `!= null`",
    "like": "write startswith(s, part), endswith(s, part) or contains(s, part)",
    "between": "write a chained comparison: `1 <= a.x <= 5`",
    "case": "write `x if condition else y`",
    "&": "write AND",
    "|": "write OR",
    "!": "write NOT; a negated component is `~T v`",
    "¬": "a negated component is `~T v`",
    ";": "delete it: a query ends without a mark",
    "#": "comments are `-- to the end of the line` and `/* ... */`",
    "^": "there is no such operator; use + - * / // %",
}


def token_fault(error: UnexpectedToken, text: str) -> QueryFault:
    """For a token that cannot stand where it does, or a text that ends too early."""
    if error.token.type == "$END":
        accepts, hint = _accepts(error), _hint(error, "")
        return QueryFault(len(text.rstrip()), f"the query ends too early, expected {_list(accepts)}", hint)
    return _refused(error, text, error.token.start_pos or 0, str(error.token))


def character_fault(error: UnexpectedCharacters, text: str) -> QueryFault:
    """For characters that begin no token."""
    offset: int = error.pos_in_stream  # type: ignore[assignment] # lark's base class has None
    if text[offset] in "'\"":
        return QueryFault(offset, "a string that is not closed on its line", f"end it with {text[offset]}")
    return _refused(error, text, offset, text[offset])


def _refused(error: UnexpectedInput, text: str, offset: int, found: str) -> QueryFault:
    if text.startswith("/*", offset):
        return QueryFault(offset, "a comment that is not closed", "end it with */")
    what = f"`{_short(found)}` cannot stand here, expected {_list(_accepts(error))}"
    return QueryFault(offset, what, _hint(error, found))


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:39]}…"


def _accepts(error: UnexpectedInput) -> frozenset[str]:
    accepts: set[str] = error.interactive_parser.accepts()  # type: ignore[no-untyped-call]
    return frozenset(accepts)


def _last_token(error: UnexpectedInput) -> str:
    """The type of the token before, where it stands for itself."""
    stack = error.interactive_parser.parser_state.value_stack
    return getattr(stack[-1], "type", "") if stack else ""


def _list(accepts: frozenset[str]) -> str:
    if "DOTS" in accepts:
        return "an index or `]`"
    names, words = set(accepts), set()
    if names >= _VALUES - {"NOT"}:
        names -= _VALUES
        words.add("a value")
    if "PERCENT" in names:
        names -= _OPERATORS
        words.add("an operator")
    return one_of(words | {_WORDS.get(name, name.lstrip("_")) for name in names - _OF_A_QUANTIFIER})


def _hint(error: UnexpectedInput, found: str) -> str:
    accepts = _accepts(error)
    if hint := _HINT_OF_WORD.get(found.lower()) or _HINT_AFTER.get(_last_token(error)):
        return hint
    if found[:1] in ("'", '"') and "COMPARATOR" in accepts:
        return "write a quote inside a string with a backslash before it"
    if accepts in ({"LPAR"}, {"LBRACE"}):
        return _HINT_AFTER["_WHERE"]
    if "_WITHIN" in accepts:
        return did_you_mean(found.upper(), ("WITHIN", "WITHOUT", "RETURN"), _HINT_OF_EXPECTED["_WITHIN"])
    return next(hint for name, hint in _HINT_OF_EXPECTED.items() if name in accepts or name == "")
