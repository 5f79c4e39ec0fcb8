"""Queries built in Python are those that their text says, and mistakes name the part that they are in."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from enum import Enum
from typing import Any

import pytest
from hypothesis import given, settings
from query.test_papers import SASE
from support.query_trees import queries

from afa import Engine, PatternError
from afa.expression import tree
from afa.expression.tree import Literal, Node
from afa.query import Query, parse_query, print_query
from afa.query.tree import Aggregate, At, EventSet, EventValue, Kleene, Length, Negated, Over, Single
from arcfleet import ANY, QueryBuilder, any_order, choose, event, fn, same, seq
from arcfleet.builder.values import Value, constant
from arcfleet.builder.variables import Variable

a, b, c, n = event("T", "a"), event("T", "b"), event("T", "c"), event("T", "n")


def test_query_1_of_sase() -> None:
    shelf, register, leaving = event("Shelf", "a"), event("Register", "b"), event("Exit", "c")
    built = (
        seq(shelf, ~register, leaving)
        .where(shelf["tag_id"] == register["tag_id"], shelf["tag_id"] == leaving["tag_id"])
        .within("12 hours")
    )
    assert built.tree == SASE["query 1: shoplifting"][1]


def test_query_2_of_sase() -> None:
    alert, shipped = event("Alert", "a"), event("Shipment", "b").plus()
    built = (
        seq(alert, shipped)
        .skip_till_any_match()
        .where(alert["kind"] == "contaminated")
        .where((shipped.first["from"] == alert["site"]) & (shipped.current["from"] == shipped.previous["to"]))
        .within(timedelta(hours=3))
    )
    assert built.tree == SASE["query 2: contamination"][1]


def test_query_3_of_sase() -> None:
    rising, fallen = event("Stock", "a"), event("Stock", "b")
    built = (
        seq(rising.plus(), fallen)
        .where(
            same("symbol"),
            rising.first["volume"] > 1000,
            rising.current["price"] > rising.before["price"].avg(),
            fallen["volume"] < 0.8 * rising.last["volume"],
        )
        .within("1h")
        .returning(opened=rising.first["price"], mean=rising.all["price"].avg())
        .returning(fallen["volume"])
    )
    assert built.tree == SASE["query 3: stocks"][1]
    assert str(built) == print_query(SASE["query 3: stocks"][1])


def test_the_chemotherapy_of_match_windows() -> None:
    chemo, doses, blood = (event("Chemo", name) for name in "cpb")
    built = (
        seq(any_order(chemo, doses.plus()), blood)
        .skip_till_any_match()
        .where(chemo["L"] == "C", doses.current["L"] == "P", blood["L"] == "B", same("PID"))
        .where(doses.previous["V"] < doses.current["V"])
        .within("15 days")
    )
    assert built.tree == parse_query("""
        PATTERN SEQ({Chemo c, Chemo+ p[]}, Chemo b)
        WHERE skip_till_any_match(c, p[], b) {
              c.L = 'C' AND p[i].L = 'P' AND b.L = 'B' AND [PID] AND p[i-1].V < p[i].V }
        WITHIN 15 days""")


def everything() -> QueryBuilder:
    single, many, few, gone, left, right = (event("T", name) for name in ("a", "b", "f", "n", "l", "r"))
    last = event(ANY, "z")
    return (
        seq(single, many.plus(), few.times(2, 5), ~gone, any_order(left, right.times(3)), last)
        .where(
            same("key", "user.id"),
            single["user"]["name"] != "it's",
            (single["x"] + 1) * 2 - 3 / single["y"] >= -single["z"] // 4 % 5,
            single["ok"] | ~(single["x"] < 10) & single["z"].is_known(),
            single["side"].is_in(["buy", 1, 0.5, True]),
            ~single["side"].is_in(["none"]),
            many.first["x"] <= 1000,
            many.current["x"] > many.before["x"].max(),
            many.before.count() < 7,
            many.length + many.all.count() + many.all["x"].count() < 9,
            few.last["x"].is_unknown(),
            gone["x"] == few.all["x"].sum(),
            fn.lower(left["s"]) == "buy",
            fn.corr(left["h"], [1, 2.5]) > 0.9,
            fn.max(last["x"], 3, right.first["x"]) == choose(last["ok"], 1, 2),
            last["ts"] - single["ts"] > 5,
            last["type"] == None,  # noqa: E711 - as people write it who do not know is_unknown
        )
        .within(events=500)
        .returning(single["x"], many.all["x"].min(), late=last["ts"], **{"two words": many.length})
    )


def test_everything() -> None:
    assert everything().tree == parse_query("""
        PATTERN SEQ(T a, T+ b[], T{2,5} f[], ~T n, {T l, T{3,3} r[]}, ANY z)
        WHERE skip_till_next_match(a, b[], f[], n, l, r[], z) {
            [key, user.id]
            AND a.user.name != "it's"
            AND (a.x + 1) * 2 - 3 / a.y >= -a.z // 4 % 5
            AND (a.ok OR NOT a.x < 10 AND a.z != null)
            AND a.side IN ['buy', 1, 0.5, true]
            AND a.side NOT IN ['none']
            AND b[1].x <= 1000
            AND b[i].x > max(b[..i-1].x)
            AND count(b[..i-1]) < 7
            AND b.len + count(b[]) + count(b[].x) < 9
            AND f[f.len].x = null
            AND n.x = sum(f[].x)
            AND lower(l.s) = 'buy'
            AND corr(l.h, [1, 2.5]) > 0.9
            AND max(z.x, 3, r[1].x) = (1 if z.ok else 2)
            AND z.ts - a.ts > 5
            AND z.type = null }
        WITHIN 500 events
        RETURN a.x, min(b[].x), z.ts AS late, b.len AS 'two words'""")


def test_the_text_of_a_query_gives_its_tree() -> None:
    built = everything()
    assert parse_query(str(built)) == built.tree
    assert "RETURN a.x, min(b[].x)" in repr(built)


@pytest.mark.parametrize(
    "strategy", ["strict_contiguity", "partition_contiguity", "skip_till_next_match", "skip_till_any_match"]
)
def test_strategies_and_windows(strategy: str) -> None:
    built = getattr(seq(a), strategy)()
    assert built.without_window().tree == parse_query(f"PATTERN SEQ(T a) WHERE {strategy}(a) {{ }} WITHOUT WINDOW")
    assert built.within("1.5 s").tree == parse_query(f"PATTERN SEQ(T a) WHERE {strategy}(a) {{ }} WITHIN 1500 ms")
    if strategy.endswith("contiguity"):
        assert built.tree == built.without_window().tree


class Rebuilt:
    """The builder's calls for a tree."""

    def __init__(self, query: Query) -> None:
        self.variables = {name: self.variable(found) for name, found in query.variables.items()}
        self.query = query

    def builder(self) -> QueryBuilder:
        query = self.query
        parts = [
            any_order(*(self.variables[member.variable] for member in part.members))
            if isinstance(part, EventSet)
            else self.variables[part.variable]
            for part in query.components
        ]
        built = getattr(seq(*parts), query.strategy.value)()
        built = built.where(*(same(".".join(found.path)) for found in query.equivalences))
        built = built.where(*(self.value(condition.expression) for condition in query.conditions))
        for item in query.returns:
            built = built.returning(**{item.name: self.value(item.expression)})
        match query.window:
            case None:
                return built.without_window()
            case tree_window if hasattr(tree_window, "events"):
                return built.within(events=tree_window.events)
            case tree_window:
                return built.within(f"{tree_window.length}ms")

    def variable(self, found: Single | Kleene | Negated) -> Variable:
        made = event(found.event_type, found.variable)
        match found:
            case Kleene(most=None):
                return made.plus()
            case Kleene(least=least, most=most):
                return made.times(least, most)
            case Negated():
                return ~made
        return made

    def value(self, node: Node) -> Value:
        match node:
            case Literal(value=value):
                return constant(value)
            case EventValue(variable=name, at=at, path=path):
                of = self.variables[name]
                return (of if at is At.SINGLE else getattr(of, at.name.lower()))[".".join(path)]
            case Aggregate(variable=name, function=function, over=over, path=path):
                events = self.variables[name].all if over is Over.ALL else self.variables[name].before
                return getattr(events[".".join(path)] if path else events, function)()
            case Length(variable=name):
                return self.variables[name].length
            case tree.Negation(operand=operand):
                return -self.value(operand)
            case tree.Not(operand=operand):
                return ~self.value(operand)
            case tree.UnknownTest(operand=operand):
                return self.value(operand).is_unknown()
            case tree.Membership(operand=operand, items=items):
                return self.value(operand).is_in([item.value for item in items])
            case tree.Choice(condition=condition, then=then, otherwise=otherwise):
                return choose(self.value(condition), self.value(then), self.value(otherwise))
            case tree.Call(function=function, arguments=arguments):
                return getattr(fn, function)(*map(self.value, arguments))
            case tree.And(operands=(left, right)):
                return self.value(left) & self.value(right)
            case tree.Or(operands=(left, right)):
                return self.value(left) | self.value(right)
        assert isinstance(node, tree.Arithmetic | tree.Comparison)
        return OPERATORS[node.operator](self.value(node.left), self.value(node.right))


OPERATORS: dict[str, Callable[[Any, Any], Value]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": lambda x, y: x / y,
    "//": lambda x, y: x // y,
    "%": lambda x, y: x % y,
    "==": lambda x, y: x == y,
    "!=": lambda x, y: x != y,
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
}


@settings(max_examples=150, deadline=None, print_blob=True)
@given(queries())
def test_every_query_can_be_built(query: Query) -> None:
    built = Rebuilt(query).builder()
    assert built.tree == query
    assert str(built) == print_query(query)


def test_a_pattern_runs() -> None:
    shelf, register, leaving = event("Shelf", "a"), event("Register", "b"), event("Exit", "c")
    query = seq(shelf, ~register, leaving).where(same("tag")).within("12h").returning(site=shelf["site"])
    pattern = query.pattern(
        "shop",
        output="non_overlapping",
        events={"Shelf": {"tag": "int", "site": "string"}} | {name: {"tag": "int"} for name in ("Register", "Exit")},
    )
    assert (pattern.name, pattern.output) == ("shop", "non_overlapping")
    changes = Engine([pattern]).feed(
        [
            b'{"id":"e1","key":"k","ts":1,"type":"Shelf","data":{"tag":7,"site":"A"}}',
            b'{"id":"e2","key":"k","ts":2,"type":"Exit","data":{"tag":7}}',
        ]
    )
    (match,) = changes.to_records()
    assert (match["op"], match["registers"]) == ("insert", {"site": "A"})


class Side(str, Enum):  # noqa: UP042 - whose repr and str are not its text
    BUY = "buy"


def test_constants_are_plain() -> None:
    numpy = pytest.importorskip("numpy")
    texts = [str(a["x"] == value) for value in (Side.BUY, numpy.int64(3), numpy.float64(0.5), True, 'a"b')]
    assert texts == ["a.x = 'buy'", "a.x = 3", "a.x = 0.5", "a.x = true", "a.x = 'a\"b'"]


def test_functions_of_python_that_have_the_same_name() -> None:
    values = (abs(a["x"]), round(a["x"]), math.floor(a["x"]), math.ceil(a["x"]), +a["x"])
    assert [str(value) for value in values] == ["abs(a.x)", "round(a.x)", "floor(a.x)", "ceil(a.x)", "a.x"]


def grown(step: Callable[[Any], Any], times: int) -> Any:
    value: Any = a["x"]
    for _ in range(times):
        value = step(value)
    return value


MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "no window": (lambda: seq(a), r"skip_till_next_match without a window.*\.within\("),
    "no component": (seq, r"seq\(\) has no component"),
    "no variable": (lambda: seq(a, "b"), r"component 2 of seq\(\) is 'b'"),
    "twice": (lambda: seq(a, a.plus()).within("1h"), r"in `PATTERN SEQ\(T a, T\+ a\[\]\)`: .*`a` is there twice"),
    "a word": (lambda: seq(event("T", "null")).within("1h"), r"`null` is a word of the language"),
    "a name with spaces": (lambda: event("T", "a b"), "a variable is named by a word.*'a b'"),
    "text for a name": (lambda: event("T", "a) WHERE"), "a variable is named by a word"),
    "a type that is no text": (lambda: event(5, "a"), "an event type is a text, this is a Python int"),
    "an empty type": (lambda: seq(event("", "a")).within("1h"), r"in `PATTERN SEQ\('' a\)`"),
    "counted twice": (lambda: a.plus().times(2), r"`a` already is counted, so it takes no times\(\)"),
    "none or more": (lambda: ~a.plus(), "`a` already is counted, so it takes no ~"),
    "no event": (lambda: a.times(0, 2), r"`a`\.times\(\) takes whole numbers from 1, not 0"),
    "half an event": (lambda: a.times(0.5), "not a Python float"),
    "turned bounds": (lambda: a.times(5, 2), r"write times\(2, 5\)"),
    "negated in a set": (lambda: any_order(a, ~n), "the negated `n`"),
    "a set in a set": (lambda: any_order(any_order(a)), r"a member of any_order\(\) is a set"),
    "an empty set": (any_order, r"any_order\(\) has no member"),
    "not bound": (lambda: seq(a).where(c["x"] > 1).within("1h"), r"in `c\.x > 1`: the variable `c` is not bound"),
    "second of two": (
        lambda: seq(a, b).where((a["x"] > 1) & (b.current["x"] > 2)).within("1h"),
        r"in `b\[i\]\.x > 2`: `b` is a single event",
    ),
    "current of an earlier one": (
        lambda: seq(a.plus(), b).where(b["x"] > a.current["x"]).within("1h"),
        r"in `b\.x > a\[i\]\.x`: .*use an aggregate",
    ),
    "one of many": (
        lambda: seq(a.plus()).where(a["x"] > 1).within("1h"),
        r"in `a\.x > 1`: `a` may bind several events",
    ),
    "the length of one": (lambda: seq(a).where(a.length > 1).within("1h"), "`a` binds one event at most"),
    "a field named len": (lambda: seq(a.plus()).where(a["len"] > 1).within("1h"), r"`a\.length` for their number"),
    "contradiction": (lambda: seq(a).where(a["x"] > 5, a["x"] < 1).within("1h"), r"in `a\.x < 1`"),
    "types": (lambda: seq(a).where(a["ts"] > "1").within("1h"), "in `a.ts > '1'`: an int never compares"),
    "return": (lambda: seq(a, ~n, b).within("1h").returning(x=n["x"]), r"in `RETURN n\.x AS x`"),
    "and": (lambda: (a["x"] > 1) and (a["y"] > 1), "write & | ~ in place of and"),
    "not": (lambda: not a["x"], "write & | ~ in place of and"),
    "chained": (lambda: 1 < a["x"] < 5, "in place of 1 < x < 5"),
    "parentheses": (lambda: a["x"] > 1 & a["y"], "put every comparison in parentheses"),
    "attribute": (lambda: a.price > 1, r'`a` has no `\.price`.*`a\["price"\]`'),
    "attribute of one": (lambda: a.first.price > 1, r'`a\.first\["price"\]`'),
    "method": (lambda: a.pluss, "did you mean `plus`"),
    "an event": (lambda: a.plus() > 1, "`a` is an event, not a value"),
    "an event of many": (lambda: 1 + b.first, r"`b\.first` is an event, not a value"),
    "several values": (lambda: b.all["x"] == 1, r'`b\.all\["x"\]\.max\(\)`'),
    "an aggregate of events": (b.all.avg, r'`b\.all\["price"\]\.avg\(\)`'),
    "a field that is none": (lambda: a["x y"], "a field of `a` is named by words"),
    "a field of a value": (lambda: (a["x"] + 1)["y"], r"`a\.x \+ 1` has no fields"),
    "an index": (lambda: a[0], "not by a Python int"),
    "in": (lambda: "b" in a["x"], r"`a\.x` has no items.*fn\.contains"),
    "len": (lambda: len(a["x"]), r"the length of `a\.x`.*fn\.len"),
    "power": (lambda: a["x"] ** 2, r"there is no `\*\*`"),
    "xor": (lambda: (a["x"] > 1) ^ (a["y"] > 1), r"write `!=` between two bools"),
    "true": (lambda: seq(a).where(True), r"a condition of where\(\) is a Python bool"),
    "same beside": (lambda: (a["x"] > 1) & same("k"), r"`same\('k'\)` is not part of an expression"),
    "same inverted": (lambda: ~same("k"), r"`same\('k'\)` is not part of an expression"),
    "same nothing": (same, r"same\(\) names no attribute"),
    "membership in a text": (lambda: a["x"].is_in("abc"), r"fn\.contains"),
    "membership in fields": (lambda: a["x"].is_in([b["x"]]), r"`b\.x` stands in a list"),
    "an object": (lambda: a["x"] == object(), "a Python object is not a value"),
    "no number": (lambda: a["x"] > float("inf"), "`inf` is not a number"),
    "a large number": (lambda: a["x"] > 10**5000, "outside 64 bits"),
    "none": (lambda: a["x"] > None, r"None can only be compared by == and !="),
    "a list of texts": (lambda: fn.corr(a["x"], ["a"]), "a list that is a value holds numbers"),
    "function": (lambda: fn.uper(a["x"]), "did you mean `upper`"),
    "arguments": (lambda: fn.sqrt(a["x"], 2), r"sqrt\(a\.x, 2\) has 2 arguments"),
    "no unit": (lambda: seq(a).within("5"), "takes a number and its unit, not '5'"),
    "a number": (lambda: seq(a).within(5), "not a Python int"),
    "a wrong unit": (lambda: seq(a).within("5 mintes"), "did you mean `minutes`"),
    "no length": (lambda: seq(a).within("0s"), "a window is at least 1"),
    "a part of a millisecond": (lambda: seq(a).within(timedelta(microseconds=5)), "not a whole number of milliseconds"),
    "two windows": (lambda: seq(a).within("5s", events=5), "a length of time or a number of events"),
    "half an event's window": (lambda: seq(a).within(events=0.5), "takes a whole number, not a Python float"),
    "the name of a pattern": (lambda: seq(a).within("1h").pattern("a/b"), "in `pattern`: .*'/'"),
    "an option": (lambda: seq(a).within("1h").pattern("p", outputs="all"), "in `outputs`: .*did you mean `output`"),
    "another query": (lambda: seq(a).within("1h").pattern("p", query=""), "takes no `query`"),
    "declared": (
        lambda: seq(a).where(a["prize"] > 1).within("1h").pattern("p", events={"T": {"price": "int"}}),
        r"in `a\.prize > 1`: .*did you mean `price`",
    ),
    "doubled": (lambda: grown(lambda value: value + value, 60), "max_condition_tokens"),
    "deep": (lambda: grown(lambda value: -value, 1000), "max_expression_depth"),
    "deeper than text": (
        lambda: seq(a).where(grown(lambda value: 1 + value, 100) > 1).within("1h"),
        "in `….{100}…`: .*max_expression_depth",
    ),
}


def checked(made: Any) -> None:
    assert isinstance(made, QueryBuilder), f"{made!r} was not refused"
    _ = made.tree


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_names_its_part(name: str) -> None:
    make, expected = MISTAKES[name]
    with pytest.raises(PatternError, match=expected) as caught:
        checked(make())
    assert caught.value.fix


def test_the_package_stays_cheap_to_import() -> None:
    script = "import sys, arcfleet; print([name for name in sys.modules if name == 'afa' or 'builder' in name])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_tools_may_ask_for_what_is_not_there() -> None:
    import copy

    import arcfleet

    assert not hasattr(a, "__array_interface__")
    assert str(copy.deepcopy(a["x"] > 1)) == "a.x > 1"
    assert {"seq", "event"} <= set(dir(arcfleet))
    assert "lower" in dir(fn)
    with pytest.raises(AttributeError):
        _ = arcfleet.nothing
