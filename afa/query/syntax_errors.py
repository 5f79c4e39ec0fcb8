"""What lark could not read, said for people: the place, what was expected there, and what to write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lark import Token, Tree

from afa.errors import did_you_mean, one_of
from afa.query.components import RESERVED
from afa.query.durations import UNITS
from afa.query.faults import QueryFault

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    "_WITHOUT": "write WITHOUT WINDOW",
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
# What people write who know another language, anywhere and in a part of the query.
_HINT_OF_WORD: Final = {
    "is": "write `= null` or `!= null`",
    "like": "write startswith(s, part), endswith(s, part) or contains(s, part)",
    "between": "write a chained comparison: `1 <= a.x <= 5`",
    "case": "write `x if condition else y`",
    "&": "write AND",
    "¬": "a negated component is `~T v`",
    "#": "comments are `-- to the end of the line` and `/* ... */`",
    "^": "there is no such operator; use + - * / // %",
    "≤": "write `<=`",
    "≥": "write `>=`",
    "≠": "write `!=`",
    **dict.fromkeys("\u2018\u2019\u201c\u201d\u201e", "write straight quotes: 'text'"),
}
_COMMAS: Final = "divide components by commas; a type that is no single word stands in quotes: `'web click' v`"
_ONE_TYPE: Final = "a component has one type: write `ANY v`, and `v.type IN ['T', 'U']` among the conditions"
_COUNT: Final = "a count is two numbers: `T{2,5} v[]`"
_JOINED: Final = "join conditions by AND"
_NO_MARK: Final = "delete it: a query ends without a mark"
_HINT_IN_SEQUENCE: Final = {
    ";": "divide components by commas",
    "!": "a negated component is `~T v`",
    "not": "a negated component is `~T v`",
    "+": "it stands behind the type: `T+ v[]`",
    "..": _COUNT,
    "or": _ONE_TYPE,
    "|": _ONE_TYPE,
    **dict.fromkeys("-./:", _COMMAS),
}
_HINT_IN_CONDITIONS: Final = {
    ";": _JOINED,
    ",": _JOINED,
    "!": "write NOT",
    "|": "write OR",
    ":": "to compare write `=`",
    "and": "write a condition on both sides of AND",
    "or": "write a condition on both sides of OR",
    "not": "write it before the whole comparison: `NOT a.x = 1`",
    "if": "write `x if condition else y`",
    "else": "write `x if condition else y`",
}
_HINT_IN_RETURN: Final = {
    ";": _NO_MARK,
    "within": "WITHIN stands before RETURN",
    "without": "WITHOUT WINDOW stands before RETURN",
}
_HINT_AT_END: Final = {";": _NO_MARK}
# By the token before and the word.
_HINT_OF_PAIR: Final = {
    ("COMPARATOR", ">"): "write `>=`",
    ("COMPARATOR", "<"): "write `<=`",
    ("COMPARATOR", "="): "write `=`",
    ("STAR", "*"): "there is no power; write `a.x * a.x`",
    ("LPAR", "*"): "the number of events is `a.len` or `count(a[])`",
    ("NAME", "("): "write functions as `lower(a.x)`; the number of events is `a.len`",
    **{("NUMBER", word): "a duration is a plain number here, in the unit of `ts`" for word in UNITS if len(word) > 1},
}


def token_fault(error: UnexpectedToken, text: str) -> QueryFault:
    """For a token that cannot stand where it does, or a text that ends too early."""
    if error.token.type == "$END":
        accepts, hint = _accepts(error), _hint(error, "")
        return QueryFault(len(text.rstrip()), f"the query ends too early, expected {_list(accepts)}", hint)
    if name := _word_for_a_name(error):
        hints = _hints_of_part([_kind(part) for part in _stack(error)])
        hint = hints.get(name.lower(), "choose another name")
        return QueryFault(name.start_pos or 0, f"`{name}` is a word of the language", hint)
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


def _stack(error: UnexpectedInput) -> list[Token | Tree[Token]]:
    """What is read, but not yet part of something larger."""
    return list(error.interactive_parser.parser_state.value_stack)


def _kind(part: Token | Tree[Token]) -> str:
    """The type of a token, the name of a rule; of a rule without a name that of its last part."""
    while isinstance(part, Tree) and part.data.startswith("_") and part.children:
        part = part.children[-1]
    return part.data if isinstance(part, Tree) else part.type


def _word_for_a_name(error: UnexpectedInput) -> Token | None:
    """A word like AND that was read as a name before this place, because only a name could stand there."""
    before, last = [None, None, *_stack(error)][-2:]
    if isinstance(before, Tree) and before.data == "event_type":
        of_type = before.children[0]
        if isinstance(of_type, Token) and of_type.lower() == "not":
            return of_type
    is_field = isinstance(before, Token) and before.type == "DOT"
    if isinstance(last, Token) and last.type == "NAME" and last.lower() in RESERVED and not is_field:
        return last
    return None


def _hints_of_part(kinds: Sequence[str]) -> dict[str, str]:
    if "RETURN" in kinds:
        return _HINT_IN_RETURN
    if "_WHERE" not in kinds:
        return _HINT_IN_SEQUENCE
    return _HINT_IN_CONDITIONS if "LBRACE" in kinds and "RBRACE" not in kinds else _HINT_AT_END


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
    accepts, kinds = _accepts(error), [_kind(part) for part in _stack(error)]
    before, word = kinds[-1] if kinds else "", found.lower()
    if hint := _HINT_OF_WORD.get(word) or _hint_of_part(accepts, kinds, word) or _HINT_AFTER.get(before):
        return hint
    if found[:1] in ("'", '"') and "COMPARATOR" in accepts:
        return "write a quote inside a string with a backslash before it"
    if accepts in ({"LPAR"}, {"LBRACE"}):
        return _HINT_AFTER["_WHERE"]
    if "_WITHIN" in accepts:
        return did_you_mean(found.upper(), ("WITHIN", "WITHOUT", "RETURN"), _HINT_OF_EXPECTED["_WITHIN"])
    return next(hint for name, hint in _HINT_OF_EXPECTED.items() if name in accepts or name == "")


def _hint_of_part(accepts: frozenset[str], kinds: Sequence[str], word: str) -> str | None:
    """For what is often written in this part of a query."""
    hints = _hints_of_part(kinds)
    if hints is _HINT_IN_SEQUENCE:
        if kinds[-1:] == ["NUMBER"] or accepts == {"NUMBER"}:
            return _COUNT
        is_second_name = kinds[-2:] == ["event_type", "NAME"] and word.isidentifier()
        return _COMMAS if is_second_name else hints.get(word)
    if hint := _HINT_OF_PAIR.get((kinds[-1], word)):
        return hint
    if hints is _HINT_IN_CONDITIONS and word == "," and "IN" in kinds and "RPAR" in accepts:
        return "a list stands in square brackets: `a.x IN [1, 2]`"
    if hints is _HINT_AT_END and "_WITHIN" in kinds and word[:1].isdigit():
        return "a window is one number and one unit: WITHIN 90 minutes"
    if word and accepts in ({"RETURN", "$END"}, {"$END"}):
        return hints.get(word, "nothing follows the window but RETURN")
    return hints.get(word)
