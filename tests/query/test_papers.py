"""The papers' queries as text, each with the tree that it means."""

from __future__ import annotations

import pytest

from afa.expression import Type
from afa.expression.tree import Arithmetic, Comparison, Literal, Node
from afa.query import parse_query, print_expression, print_query
from afa.query.tree import (
    Aggregate,
    At,
    Condition,
    CountWindow,
    Equivalence,
    EventSet,
    EventValue,
    Kleene,
    Negated,
    Over,
    Query,
    ReturnItem,
    Single,
    Strategy,
    TimeWindow,
)

HOUR = 3_600_000


def read(variable: str, field: str, at: At = At.SINGLE) -> EventValue:
    return EventValue(Type.ANY, variable, at, (field,))


def compare(operator: str, left: Node, right: Node) -> Condition:
    return Condition(Comparison(Type.BOOL, operator, left, right))


def number(value: float) -> Literal:
    return Literal(Type.INT if isinstance(value, int) else Type.FLOAT, value)


def average(over: Over) -> Aggregate:
    return Aggregate(Type.FLOAT, "avg", "a", over, ("price",), Type.ANY)


SASE = {
    "query 1: shoplifting": (
        """
        PATTERN SEQ(Shelf a, ~Register b, Exit c)
        WHERE skip_till_next_match(a, b, c) {
              a.tag_id = b.tag_id
          AND a.tag_id = c.tag_id  /* equivalently, [tag_id] */ }
        WITHIN 12 hours
        """,
        Query(
            (Single("a", "Shelf"), Negated("b", "Register"), Single("c", "Exit")),
            Strategy.SKIP_TILL_NEXT_MATCH,
            (),
            (
                compare("==", read("a", "tag_id"), read("b", "tag_id")),
                compare("==", read("a", "tag_id"), read("c", "tag_id")),
            ),
            TimeWindow(12 * HOUR),
        ),
    ),
    "query 2: contamination": (
        """
        PATTERN SEQ(Alert a, Shipment+ b[])
        WHERE skip_till_any_match(a, b[]) {
              a.kind = 'contaminated'      -- the paper's a.type, which is the event's own here
          AND b[1].from = a.site
          AND b[i].from = b[i-1].to }
        WITHIN 3 hours
        """,
        Query(
            (Single("a", "Alert"), Kleene("b", "Shipment")),
            Strategy.SKIP_TILL_ANY_MATCH,
            (),
            (
                compare("==", read("a", "kind"), Literal(Type.STRING, "contaminated")),
                compare("==", read("b", "from", At.FIRST), read("a", "site")),
                compare("==", read("b", "from", At.CURRENT), read("b", "to", At.PREVIOUS)),
            ),
            TimeWindow(3 * HOUR),
        ),
    ),
    "query 3: stocks": (
        """
        PATTERN SEQ(Stock+ a[], Stock b)
        WHERE skip_till_next_match(a[], b) {
              [symbol] AND a[1].volume > 1000
              AND a[i].price > avg(a[..i-1].price)
              AND b.volume < 0.8 * a[a.len].volume }
        WITHIN 1 hour
        RETURN a[1].price AS opened, avg(a[].price) AS mean, b.volume
        """,
        Query(
            (Kleene("a", "Stock"), Single("b", "Stock")),
            Strategy.SKIP_TILL_NEXT_MATCH,
            (Equivalence(("symbol",)),),
            (
                compare(">", read("a", "volume", At.FIRST), number(1000)),
                compare(">", read("a", "price", At.CURRENT), average(Over.BEFORE)),
                compare(
                    "<", read("b", "volume"), Arithmetic(Type.FLOAT, "*", number(0.8), read("a", "volume", At.LAST))
                ),
            ),
            TimeWindow(HOUR),
            (
                ReturnItem("opened", read("a", "price", At.FIRST)),
                ReturnItem("mean", average(Over.ALL)),
                ReturnItem("b.volume", read("b", "volume")),
            ),
        ),
    ),
}


@pytest.mark.parametrize("name", SASE)
def test_the_queries_of_sase(name: str) -> None:
    text, expected = SASE[name]
    query = parse_query(text)
    assert query == expected
    assert parse_query(print_query(query)) == query


@pytest.mark.parametrize(
    "iterated", ["", "AND a[i].price > a[i-1].price", "AND a[i].price > min(a[..i-1].price)"], ids=["p1", "p2", "p3"]
)
@pytest.mark.parametrize("strategy", ["partition_contiguity", "skip_till_next_match"])
def test_the_template_of_the_measurements(strategy: str, iterated: str) -> None:
    query = parse_query(f"""PATTERN SEQ(Stock+ a[], Stock b)
        WHERE {strategy}(a[], b) {{[symbol] AND a[1].price % 500 = 0 {iterated} AND b.volume < 150}} WITHIN 500 ms""")
    assert query.window == TimeWindow(500)
    assert len(query.conditions) == (3 if iterated else 2)


def test_the_patterns_of_match_windows() -> None:
    """P1, over one event type; its relationships between variables are equalities of one attribute: [PID]."""
    query = parse_query("""
        PATTERN SEQ({Chemo c, Chemo+ p[]}, Chemo b)
        WHERE skip_till_any_match(c, p[], b) {
              c.L = 'C' AND p[i].L = 'P' AND b.L = 'B' AND [PID] AND p[i-1].V < p[i].V }
        WITHIN 15 days""")
    assert query.components == (
        EventSet((Single("c", "Chemo"), Kleene("p", "Chemo"))),
        Single("b", "Chemo"),
    )
    assert query.window == TimeWindow(15 * 24 * HOUR)
    assert [print_expression(condition.expression) for condition in query.conditions] == [
        "c.L = 'C'",
        "p[i].L = 'P'",
        "b.L = 'B'",
        "p[i-1].V < p[i].V",
    ]
    onco = "{A c, A d}, {A+ p[], A+ r[]}, {A b, A h}"
    assert (
        len(
            parse_query(
                f"PATTERN SEQ({onco}) WHERE skip_till_any_match(c, d, p, r, b, h) {{[PID]}} WITHIN 10 days"
            ).positive
        )
        == 3
    )


def test_the_queries_of_lazy_evaluation() -> None:
    """Written with a strategy, which that paper leaves to its engine, and with texts in quotes."""
    assert parse_query("""
        PATTERN SEQ(E a, E b, E c)
        WHERE skip_till_any_match(a, b, c) {
            (a.ticker = 'MSFT') AND (b.ticker='GOOG') AND (c.ticker = 'AAPL') AND (a.price < b.price) AND
            (b.price<c.price) }
        WITHIN 4 hours""") == parse_query("""
        PATTERN SEQ(E a, E b, E c)
        WHERE skip_till_any_match(a, b, c) {
            a.ticker = 'MSFT' AND b.ticker = 'GOOG' AND c.ticker = 'AAPL' AND a.price < b.price < c.price }
        WITHIN 240 minutes""")
    stocks = parse_query("""
        PATTERN SEQ(Stock a, Stock b, Stock c)
        WHERE skip_till_any_match(a, b, c) {
            a.ticker IN ['GS', 'JPM'] AND b.ticker IN ['IBM', 'MSFT'] AND c.ticker = 'GOOG'
            AND Corr(a.history, b.history) > 0.9 AND Corr(b.history, c.history) > 0.9 }
        WITHIN 20 events""")
    assert stocks.window == CountWindow(20)
    assert print_expression(stocks.conditions[-1].expression) == "corr(b.history, c.history) > 0.9"


def test_words_in_any_case() -> None:
    assert parse_query("""pattern seq(any a, B+ c[]) where skip_till_any_match(a, c[]) {
        not a.x in [1] and a.y = true or a.z = null and (1 if a.q else 2) = avg(c[].x) } within 2 hours
        return count(c[]) as n""") == parse_query("""PATTERN Seq(ANY a, B+ c[]) WHERE SKIP_Till_Any_Match(a, c[]) {
        NOT a.x IN [1] AND a.y = TRUE OR a.z = Null AND (1 IF a.q ELSE 2) = AVG(c[].x) } WITHIN 2 HOURS
        RETURN Count(c[]) AS n""")


def test_fields_and_types_may_be_named_like_words() -> None:
    query = parse_query("""PATTERN SEQ(In a, Within+ seq[], 'ANY' c) WHERE strict_contiguity(a, seq[], c) {
        a.from = 1 AND a.not.in = 2 AND a.null = 3 AND seq[i].Else = 4 AND c.if = 5 AND c.as.return = 6 }""")
    assert [component.event_type for component in query.variables.values()] == ["In", "Within", "ANY"]
    paths = [condition.expression.left.path for condition in query.conditions]
    assert paths == [("from",), ("not", "in"), ("null",), ("Else",), ("if",), ("as", "return")]


def test_offsets_are_where_things_stand() -> None:
    text = "PATTERN SEQ(A a, {B b, C+ c[]}) WHERE strict_contiguity(a, b, c) { [k] AND a.x = b.y } RETURN c.len AS n"
    query = parse_query(text)
    bound = [text[component.offset :][:3] for component in query.variables.values()]
    assert bound == ["A a", "B b", "C+ "]
    assert text[query.equivalences[0].offset] == "k"
    assert text[query.conditions[0].offset :].startswith("a.x = b.y")
    assert text[query.returns[0].offset :].startswith("c.len")
    moved = parse_query(text.replace("{ [k]", "{\n  [k]"))
    assert moved == query
    assert hash(moved) == hash(query)
