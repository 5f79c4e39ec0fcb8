"""Every query that is refused: at its line and column, with what is wrong and what to write instead.

In the texts below `¦` marks the place that the error must name; it is taken out before the text is read.
"""

from __future__ import annotations

import pytest
from support.query_texts import refused, where

from afa.expression import Type
from afa.query import parse_query
from afa.query.tree import references

EVENTS = {
    "Stock": {("symbol",): Type.STRING, ("price",): Type.FLOAT, ("count",): Type.INT, ("ok",): Type.BOOL},
    "Order": {("symbol",): Type.INT, ("price",): Type.FLOAT, ("path",): Type.LIST, ("at", "floor"): Type.INT},
}

SYNTAX = {
    "no query": ("¦hello", "expected PATTERN", "PATTERN SEQ"),
    "no SEQ": ("PATTERN ¦Stock a", "expected SEQ", "PATTERN SEQ"),
    "no component": ("PATTERN SEQ(¦) WHERE", "expected ANY", "`T+ v[]`"),
    "no variable": ("PATTERN SEQ(A¦, B b) WHERE", "expected `+`, `{` or a name", "name the variable"),
    "a sequence in a sequence": ("PATTERN SEQ(SEQ¦(A a))", "cannot stand here", "name the variable"),
    "another negation": ("PATTERN SEQ(A a, ¦!B b)", "`!` cannot stand here", "`~T v`"),
    "ends too early": ("PATTERN SEQ(A a¦\n", "ends too early, expected `)`, `,` or `[`", ""),
    "no WHERE": ("PATTERN SEQ(A a)¦", "expected WHERE", "WHERE skip_till_next_match"),
    "no strategy": ("PATTERN SEQ(A a) WHERE ¦(a.x = 1)", "expected a name", "begins with the strategy"),
    "conditions without strategy": ("PATTERN SEQ(A a) WHERE a¦.x = 1", "expected `(`", "begins with the strategy"),
    "no braces": ("PATTERN SEQ(A a) WHERE strict_contiguity(a) ¦a.x = 1", "expected `{`", "strategy"),
    "no value": (where("a.x >").replace("\n}", "\n¦}"), "`}` cannot stand here, expected a value", "`a.price`"),
    "IS NULL": (where("a.x ¦IS NULL"), "`IS` cannot stand here", "`= null`"),
    "BETWEEN": (where("a.x ¦between 1 AND 2"), "`between` cannot stand", "`1 <= a.x <= 5`"),
    "LIKE": (where("a.x ¦LIKE 'a'"), "`LIKE` cannot stand", "startswith"),
    "&&": (where("a.x = 1 ¦&& c.x = 1"), "`&` cannot stand", "write AND"),
    "two conditions": (where("a.x = 1\n  ¦c.x = 1"), "`c` cannot stand here", "by AND"),
    "quotes of SQL": (where("a.x = 'it'¦'s'"), "cannot stand here", "backslash"),
    "open string": (where("a.x = ¦'it"), "not closed", "end it with '"),
    "open comment": (where("a.x = ¦/* it"), "not closed", "*/"),
    "open parenthesis": (where("(a.x = 1").replace("\n}", "\n¦}"), "expected", ""),
    "semicolon": (where("a.x = 1") + "¦;", "`;` cannot stand", "delete it"),
    "misspelt WITHIN": (where("a.x = 1", window="¦WITHN 5 s"), "cannot stand here", "did you mean `WITHIN`?"),
    "window by name": (where("a.x = 1", window="WITHIN ¦h"), "expected a number", "WITHIN 5 minutes"),
    "nothing to return": (where("a.x = 1") + " RETURN¦", "ends too early, expected a value", ""),
    "no name after AS": (where("a.x = 1") + " RETURN a.x AS¦", "expected a name", "avg(a[].price) AS mean"),
    "two values without a comma": (where("a.x = 1") + " RETURN a.x ¦c.x", "cannot stand here", "commas"),
    "open index": (where("b[i ¦= 1"), "expected an index or `]`", "a[i-1]"),
    "a number that is none": (where("a.x = ¦007"), "not a number", "12"),
    "a string that is none": (where(r"a.x = ¦'\xZ'"), "not a string", "escapes"),
    "a NUL": (where("a.x = ¦\0"), "a NUL character", "delete it"),
    "half a character": (where("a.x = '¦\ud800'"), "half of a surrogate pair", "delete it"),
}


@pytest.mark.parametrize("case", SYNTAX.values(), ids=SYNTAX)
def test_what_is_not_a_query(case: tuple[str, str, str]) -> None:
    marked, what, fix = case
    error = refused(marked)
    assert what in error.what
    assert fix in error.fix


def sequence(marked: str) -> str:
    return f"PATTERN SEQ({marked}) WHERE strict_contiguity(a, b) {{ }}"


ADVICE = {
    "components without a comma": (sequence("A a ¦B b"), "`B` cannot stand here", "by commas"),
    "components with a semicolon": (sequence("A a¦; B b"), "`;` cannot stand here", "by commas"),
    "a type of two words": (sequence("web click ¦a, B b"), "`a` cannot stand here", "'web click' v"),
    "a type with a hyphen": (sequence("web¦-click a, B b"), "`-` cannot stand here", "'web click' v"),
    "a type with a point": (sequence("web¦.click a, B b"), "`.` cannot stand here", "'web click' v"),
    "NOT for ~": (sequence("¦NOT A a, B b"), "`NOT` is a word of the language", "`~T v`"),
    "a type that is named like a word": (sequence("In a ¦b, B b"), "`b` cannot stand here", "by commas"),
    "a field that is named like a word": (where("a.not ¦5"), "`5` cannot stand here", "by AND"),
    "types joined by OR": (sequence("A ¦OR B a, B b"), "`OR` is a word of the language", "v.type IN ['T', 'U']"),
    "types joined by a bar": (sequence("A¦|B a, B b"), "`|` cannot stand here", "v.type IN ['T', 'U']"),
    "a plus behind the variable": (sequence("A a¦+, B b"), "`+` cannot stand here", "`T+ v[]`"),
    "a plus behind the brackets": (sequence("A a[]¦+, B b"), "`+` cannot stand here", "`T+ v[]`"),
    "a count with points": (sequence("A{2¦..5} a[], B b"), "`..` cannot stand here", "`T{2,5} v[]`"),
    "a count by name": (sequence("A{¦m,n} a[], B b"), "`m` cannot stand here", "`T{2,5} v[]`"),
    "a count below 0": (sequence("A{¦-1,5} a[], B b"), "`-` cannot stand here", "`T{2,5} v[]`"),
    "conditions with a comma": (where("a.x = 1¦, c.x = 2"), "`,` cannot stand here", "by AND"),
    "conditions with a semicolon": (where("a.x = 1¦; c.x = 2"), "`;` cannot stand here", "by AND"),
    "AND before all": (where("¦AND a.x = 1"), "`AND` is a word of the language", "on both sides"),
    "AND twice": (where("a.x = 1 AND ¦AND c.x = 1"), "`AND` is a word of the language", "on both sides"),
    "NOT in a comparison": (where("a.x = ¦not c.x"), "`not` is a word of the language", "`NOT a.x = 1`"),
    "IF before all": (where("¦if a.x then 1"), "`if` is a word of the language", "`x if condition else y`"),
    "an arrow for >=": (where("a.x =¦> 1"), "`>` cannot stand here", "write `>=`"),
    "an arrow for <=": (where("a.x =¦< 1"), "`<` cannot stand here", "write `<=`"),
    "three =": (where("a.x ==¦= 1"), "`=` cannot stand here", "write `=`"),
    ":=": (where("a.x ¦:= 1"), "`:` cannot stand here", "write `=`"),
    "a sign for >=": (where("a.x ¦≥ 1"), "`≥` cannot stand here", "write `>=`"),
    "curly quotes": (where("a.x = ¦“b”"), "`“` cannot stand here", "straight quotes"),
    "a list in parentheses": (where("a.x IN (1¦, 2)"), "`,` cannot stand here", "`a.x IN [1, 2]`"),
    "a duration": (where("c.ts - a.ts < 5 ¦minutes"), "`minutes` cannot stand here", "in the unit of `ts`"),
    "a method": (where("b.len¦() > 1"), "`(` cannot stand here", "`a.len`"),
    "all of SQL": (where("count(¦*) > 1"), "`*` cannot stand here", "`count(a[])`"),
    "two lengths of a window": (where("", window="WITHIN 1 hour ¦30 minutes"), "`30` cannot", "WITHIN 90 minutes"),
    "half of WITHOUT WINDOW": (where("", window="WITHOUT¦"), "ends too early", "WITHOUT WINDOW"),
    "WITHIN behind RETURN": (where("", window="RETURN a.x ¦WITHIN 1 hour"), "`WITHIN` cannot", "before RETURN"),
    "a semicolon behind the braces": (where("a.x = 1", window="¦;"), "`;` cannot stand here", "without a mark"),
    "two powers": (where("a.x *¦* 2 > 1"), "`*` cannot stand here", "`a.x * a.x`"),
    "a field by number": (where("a.x1.¦2 = 1"), "expected a name", "a field follows"),
    "ORDER BY": (where("a.x = 1") + " ¦ORDER BY a.x", "`ORDER` cannot stand here", "nothing follows"),
}


@pytest.mark.parametrize("case", ADVICE.values(), ids=ADVICE)
def test_advice_fits_the_place(case: tuple[str, str, str]) -> None:
    """What people write who know another language, or only half of this one."""
    marked, what, fix = case
    error = refused(marked)
    assert what in error.what
    assert fix in error.fix


def single(pattern: str) -> str:
    return f"PATTERN SEQ({pattern}) WHERE skip_till_any_match(a) {{ }} WITHIN 1 hour"


COMPONENTS = {
    "no brackets": (single("T+ ¦a"), "needs `[]`", "write `a[]`"),
    "no quantifier": (single("T ¦a[]"), "binds several events", "`T+ a[]`"),
    "a count from 0": (single("T{¦0,3} a[]"), "cannot be empty", "{1,3}"),
    "a count upside down": (single("T{¦3,2} a[]"), "no count is both", "{2,3}"),
    "a count of one number": (single("T{¦3} a[]"), "two bounds", "{3,3}"),
    "a count without end": (single("T{¦3,} a[]"), "two bounds", "`+`"),
    "a count of halves": (single("T{¦1.5,2} a[]"), "whole numbers", "{2,5}"),
    "a count beyond 64 bits": (single("T{¦1,9223372036854775808} a[]"), "64 bits", "{2,5}"),
    "a star": (single("T¦* a[]"), "there is no `*`", "`+`"),
    "a question mark": (single("T¦? a[]"), "there is no `?`", "`+`"),
    "a negated Kleene": (single("~T¦+ a[], T b"), "one event", "`~T v`"),
    "a negated count": (single("~T{¦1,2} a[], T b"), "one event", "`~T v`"),
    "a negated array": (single("~T ¦a[], T b"), "one event", "`~T v`"),
    "a negation in a set": (single("{T b, ¦~T a}"), "no negated members", "before or after the set"),
    "a set in a set": (single("{T b, {¦T a}}"), "a set in a set", "in one set"),
    "a variable twice": (single("T a, {U b, ¦V a}"), "is there twice", "of its own"),
    "a word as a variable": (single("T ¦Not"), "a word of the language", "another name"),
    "only negations": (single("¦~T a"), "no component binds an event", "not negated"),
    "an empty type": (single("¦'' a"), "1 to 255 characters", "give it a name"),
    "a long type": (single("¦" + "x" * 256 + " a"), "1 to 255 characters", "shorter"),
    "a control in a type": (single(r"¦'\n' a"), "control characters", "delete"),
}


@pytest.mark.parametrize("case", COMPONENTS.values(), ids=COMPONENTS)
def test_components(case: tuple[str, str, str]) -> None:
    marked, what, fix = case
    error = refused(marked)
    assert what in error.what
    assert fix in error.fix


def strategy(listed: str, rest: str = "{ } WITHIN 1 hour") -> str:
    return f"PATTERN SEQ(T a, T+ b[], ~T n, T c)\nWHERE {listed} {rest}"


STRATEGIES = {
    "misspelt": (
        strategy("¦skip_till_nxt_match(a, b[], n, c)"),
        "not a strategy",
        "did you mean `skip_till_next_match`",
    ),
    "another word": (strategy("¦x(a, b[], n, c)"), "not a strategy", "skip_till_any_match, "),
    "a variable left out": (strategy("¦skip_till_any_match(a, n)"), "does not name `b`, `c`", "(a, b[], n, c)"),
    "the negated left out": (strategy("¦strict_contiguity(a, b, c)"), "does not name `n`", "(a, b[], n, c)"),
    "unbound": (strategy("skip_till_any_match(a, b[], n, ¦d)"), "`d` is not bound", ""),
    "twice": (strategy("skip_till_any_match(a, b[], n, ¦a)"), "names `a` twice", "(a, b[], n, c)"),
    "brackets of a single": (strategy("skip_till_any_match(¦a[], b[], n, c)"), "it has no `[]`", "(a, b[], n, c)"),
    "no window (next)": (strategy("¦skip_till_next_match(a, b[], n, c)", "{ }"), "without a window", "WITHOUT WINDOW"),
    "no window (any)": (strategy("¦skip_till_any_match(a, b[], n, c)", "{ }"), "without a window", "WITHIN 1 hour"),
}


@pytest.mark.parametrize("case", STRATEGIES.values(), ids=STRATEGIES)
def test_strategies(case: tuple[str, str, str]) -> None:
    marked, what, fix = case
    error = refused(marked)
    assert what in error.what
    assert fix in error.fix


WINDOWS = {
    "no unit": ("WITHIN ¦5", "no unit", "WITHIN 5 minutes"),
    "no such unit": ("WITHIN 5 ¦minuts", "not a unit", "did you mean `minute"),
    "weeks": ("WITHIN 5 ¦fortnights", "not a unit", "from ns to days"),
    "a compound": ("WITHIN 1¦h30m", "not a unit", "from ns to days"),
    "nothing": ("WITHIN ¦0 ms", "at least 1", ""),
    "no events": ("WITHIN ¦0 events", "at least 1", ""),
    "half an event": ("WITHIN ¦1.5 events", "not a whole number of events", ""),
    "half a millisecond": ("WITHIN ¦0.5 ms", "not a whole number of milliseconds", ""),
    "beyond 64 bits": ("WITHIN ¦999999999999999 days", "64 bits", ""),
    "an exponent": ("WITHIN ¦1e3 ms", "decimal number", ""),
}


@pytest.mark.parametrize("case", WINDOWS.values(), ids=WINDOWS)
def test_windows(case: tuple[str, str, str]) -> None:
    window, what, fix = case
    error = refused(where("a.x = 1", window=window))
    assert what in error.what
    assert fix in error.fix


@pytest.mark.parametrize("window", ["WITHOUT WINDOW", "WITHIN 5 events"])
def test_negation_at_an_end_needs_a_window_of_time(window: str) -> None:
    assert "leading negation of `n`" in refused(where("a.x = 1", "¦~T n, T a", window)).what
    assert "trailing negation of `n`" in refused(where("a.x = 1", "T a, ¦~T n", window)).what
    assert parse_query(where("a.x = 1", "T a, ~T n, T c", window))


REFERENCES = {
    "unbound": ("a.x > 1 AND ¦d.x > 1", "`d` is not bound", "the pattern binds a, b, n, c"),
    "misspelt": ("¦aa.x > 1", "`aa` is not bound", "did you mean `a`?"),
    "a type for its variable": ("¦T.x > 1", "`T` is not bound", "its variable is `a`"),
    "a text without quotes": ("a.x = ¦MSFT", "`MSFT` is not bound", "'MSFT'"),
    "an event for a value": ("¦a > 1", "an event, not a value", "`a.<field>`"),
    "an indexed event for a value": ("¦b[i] > 1", "an event, not a value", "`b[i].<field>`"),
    "an index of a single": ("¦a[i].x > 1", "it has no index", "write `a.x`"),
    "an index of a negated": ("¦n[1].x > 1", "it has no index", "write `n.x`"),
    "no index of a Kleene": ("¦b.x > 1", "not one value", "`b[i].x`"),
    "all of a Kleene": ("¦b[].x > 1", "not one value", "`max(b[].x)`"),
    "all before": ("b[i].x > ¦b[..i-1].x", "not one value", "`max(b[..i-1].x)`"),
    "a second index": ("¦b[2].x > 1", "no index `2`", "b[1], b[i]"),
    "an index ahead": ("¦b[i+1].x > 1", "no index `i+1`", "b[i-1]"),
    "the length of another": ("¦b[a.len].x > 1", "no index `a.len`", "b[b.len]"),
    "fields of the event's own": ("¦a.ts.x > 1", "`a.ts` is the event's own", "write `a.ts`"),
    "an aggregate of a single": ("¦avg(a.x) > 1", "the aggregate avg folds", "`a.x` itself"),
    "an aggregate of a negated": ("¦max(n.x) > 1", "the aggregate max folds", "`n.x` itself"),
    "the count of a single": ("¦count(a) > 1", "the aggregate count folds", "`a.<field>`"),
    "an aggregate of one event": ("avg(¦b[i].x) > 1", "not what an aggregate folds", "`avg(b[].x)`"),
    "an aggregate without brackets": ("avg(¦b.x) > 1", "not what an aggregate folds", "`avg(b[].x)`"),
    "an aggregate of events": ("sum(¦b[]) > 1", "sum needs a field", "`sum(b[].<field>)`"),
    "an aggregate of a sum": ("¦sum(b[].x + 1) > 1", "takes the events of one", "sum(a[].<field>)"),
    "an aggregate of two": ("¦sum(b[].x, b[].y) > 1", "takes the events of one", "sum(a[].<field>)"),
    "an aggregate of all, bare": ("avg(¦b) > 1", "not what an aggregate folds", "write `avg(b[].<field>)`"),
    "count of a bare variable": ("count(¦b) > 1", "not what an aggregate folds", "write `count(b[])`"),
    "the length as a function": ("len(¦b) > 1", "not one value", "`b.len`"),
    "the length of all as a function": ("len(¦b[]) > 1", "not one value", "`b.len`"),
    "the length by another name": ("¦b.length > 1", "not one value", "`b.len`"),
    "the index itself": ("b[i].x > b[i-1].x AND ¦i > 2", "`i` is not bound", "`count(b[..i-1])`"),
    "min of nothing": ("¦min() > 1", "at least 2 arguments", ""),
    "no such function": ("¦avrg(b[].x) > 1", "not a function", "did you mean `avg`?"),
    "the event of an arc": ("¦e.x > 1", "`e` is not bound", "the pattern binds"),
}


@pytest.mark.parametrize("case", REFERENCES.values(), ids=REFERENCES)
def test_references(case: tuple[str, str, str]) -> None:
    marked, what, fix = case
    error = refused(where(marked))
    assert what in error.what
    assert fix in error.fix


TYPES = {
    "a number and a text": ("a.x + ¦'a' > 1", "needs a number", ""),
    "texts that are compared with numbers": ("a.id > ¦5", "never compares", ""),
    "no condition": ("¦a.ts", "a condition is a bool", "comparison"),
    "a sum": ("¦a.x + 1", "a condition is a bool, this is a number", "comparison"),
    "a sum in NOT": ("NOT ¦(-a.x)".replace("¦(", "(¦"), "not needs a bool, this is a number", "comparison"),
    "a sum that is compared with a text": ("a.x * 2 = ¦'b'", "a number never compares with a string", ""),
    "a text that is compared with a sum": ("'b' < ¦a.x - c.x", "a string never compares with a number", ""),
    "a sum among texts": ("a.x % 2 IN [¦'b']", "a number never compares with a string", ""),
    "a number in OR": ("a.x = 1 OR ¦5", "needs a bool", "comparison"),
    "null in an order": ("a.x < ¦null", "only be compared by == and !=", "== null"),
    "null alone": ("¦null", "only be compared", "== null"),
    "a list of names": ("a.x IN [¦buy, sell]", "literals only", "'buy'"),
    "a list of fields": ("a.x IN [¦c.x]", "literals only", "numbers or texts"),
    "a field for a list": ("a.x IN ¦c.x", "needs a literal list", ""),
    "an attribute in OR": ("¦[symbol] OR a.x = 1", "not part of an expression", "joined by AND"),
    "an attribute in NOT": ("NOT ¦[symbol]", "not part of an expression", "joined by AND"),
    "an empty attribute": ("¦[]", "names no attribute", "`[symbol]`"),
    "a literal for an attribute": ("[¦5]", "names of attributes", "`[symbol]`"),
    "an indexed attribute": ("[¦b[i].x]", "names of attributes", "`[symbol]`"),
    "fields of an own attribute": ("[¦id.x]", "the event's own", "[id]"),
    "64 bits": ("a.x = ¦9223372036854775808", "outside 64 bits", "float"),
    "too great": ("a.x = ¦1e999", "range of a float", ""),
    "two arguments too many": ("¦round(a.x, 2, 3) > 1", "takes 1 argument", ""),
    "a text for a number": ("sqrt(¦'a') > 1", "does not take a string", ""),
}


@pytest.mark.parametrize("case", TYPES.values(), ids=TYPES)
def test_types(case: tuple[str, str, str]) -> None:
    marked, what, fix = case
    error = refused(where(marked))
    assert what in error.what
    assert fix in error.fix


DECLARED = {
    "no such type": ("¦Stok a, Order b", "a.price > 1", "`Stok` is not declared", "did you mean `Stock`?"),
    "no such field": ("Stock a, Order b", "¦a.prise > 1", "`Stock` has no field `prise`", "did you mean `price`?"),
    "a field of another type": ("Stock a, Order b", "¦a.path = 1", "`Stock` has no field `path`", "declare"),
    "a field of no type": ("ANY a, Order b", "¦a.nope = 1", "no event type has the field `nope`", "declare"),
    "a clash with a literal": ("Stock a, Order b", "a.price > ¦'9'", "never compares", ""),
    "a clash of fields": ("Stock a, Order b", "a.symbol = ¦b.symbol", "never compares", ""),
    "a list": ("Stock a, Order b", "b.path = ¦1", "lists cannot be compared", ""),
    "an order of bools": ("Stock a, Order b", "a.ok < ¦true", "bools compare only", ""),
    "a number for a condition": ("Stock a, Order b", "¦a.count", "a condition is a bool", ""),
    "an attribute that one has not": ("Stock a, Order b", "[¦count]", "`Order` has no field `count`", ""),
    "an attribute of two types": ("Stock a, Order b", "[¦symbol]", "never are equal", "one type"),
    "an attribute that is a list": ("Order a, Order b", "[¦path]", "lists cannot be compared", ""),
    "the sum of texts": ("Stock+ a[], Order b", "sum(¦a[].symbol) > 1", "sum does not take a string", "float or int"),
    "the greatest of lists": ("Stock a, Order+ b[]", "max(¦b[].path) > 1", "max does not take a list", ""),
}


@pytest.mark.parametrize("case", DECLARED.values(), ids=DECLARED)
def test_declared_events(case: tuple[str, str, str, str]) -> None:
    pattern, conditions, what, fix = case
    error = refused(where(conditions, pattern), events=EVENTS)
    assert what in error.what
    assert fix in error.fix


def test_declared_types_are_those_of_the_tree() -> None:
    query = parse_query(
        where("a.price > 1 AND b.at.floor = 1 AND c.symbol = 1", "Stock a, Order b, ANY c"), events=EVENTS
    )
    kinds = [found.type for condition in query.conditions for found in references(condition.expression)]
    assert kinds == [Type.FLOAT, Type.INT, Type.ANY]
