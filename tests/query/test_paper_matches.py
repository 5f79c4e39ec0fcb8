"""What the papers say about their own queries, on both ways to evaluate one."""

import json
import math
import random

import pytest

from afa import Engine
from afa.arc_table import ArcTable
from afa.computation import Computation, Counters
from afa.query import parse_query
from afa.query.compiler import compile_query
from afa.query.enumeration import Enumeration, QueryMatch, earliest_maximal
from afa.records import Event

DAY_MS = 86_400_000
Bound = dict[str, list[str]]


def event(number: int, ts: int, kind: str, **data: object) -> Event:
    return Event("key", ts, f"e{number}", type=kind, data=data)


def named(match: QueryMatch) -> Bound:
    return {variable: [event.id for event in events] for variable, events in match.bindings.items()}


def bindings(text: str, events: list[Event]) -> list[Bound]:
    """The bindings of all matches; both references and the native engine must agree on them."""
    query = parse_query(text)
    found = [named(match) for match in Enumeration(query, events, math.inf).matches()]
    records = {(event.ts, event.id): [event] for event in events}
    run = Computation(ArcTable(compile_query(query, "q")), "key", records, math.inf, Counters(), math.inf)
    compiled = [{name: [id_ for _, id_ in bound] for name, bound in match.bindings or ()} for match in run.matches()]
    assert in_order(compiled) == in_order(found)
    lines = [{"key": "key", "ts": one.ts, "id": one.id, "type": one.type, "data": one.data} for one in events]
    told = Engine([compile_query(query, "q")]).feed([json.dumps(line).encode() for line in lines])
    assert in_order([change["bindings"] for change in told.to_records()]) == in_order(found)
    return found


def in_order(found: list[Bound]) -> list[Bound]:
    return sorted(found, key=lambda bound: sorted(bound.items()))


def test_lazy_evaluation_example_1() -> None:
    prices = [("A", 3), ("A", 5), ("A", 8), ("B", 7), ("B", 13), ("C", 9)]
    events = [event(number, number, kind, p=price) for number, (kind, price) in enumerate(prices, 1)]
    text = """PATTERN SEQ(A a, B b, C c)
              WHERE skip_till_any_match(a, b, c) { a.p < b.p AND b.p < c.p } WITHIN 1 hour"""
    assert bindings(text, events) == [
        {"a": ["e1"], "b": ["e4"], "c": ["e6"]},
        {"a": ["e2"], "b": ["e4"], "c": ["e6"]},
    ]


CHEMO = [
    event(number, day * DAY_MS, kind, pid=patient, v=value)
    for number, (patient, kind, value, day) in enumerate(
        [
            (1, "C", 1672.5, 3),
            (1, "B", 7100, 4),
            (1, "P", 111.5, 5),
            (2, "B", 10100, 6),
            (2, "P", 88, 8),
            (2, "D", 84, 9),
            (2, "C", 1320, 10),
            (2, "P", 98, 11),
            (1, "P", 116.5, 12),
            (2, "P", 88, 15),
            (1, "B", 3400, 17),
            (2, "B", 4000, 18),
            (2, "B", 4900, 19),
            (1, "B", 3000, 22),
        ],
        1,
    )
]
P1 = """PATTERN SEQ({C c, P+ p[]}, B b)
        WHERE skip_till_any_match(c, p[], b) { [pid] AND p[i].v > p[i-1].v } WITHIN 15 days"""


def test_chemotherapy_all_matches() -> None:
    found = bindings(P1, CHEMO)
    expected = [{"c": ["e1"], "p": p, "b": ["e11"]} for p in (["e3"], ["e3", "e9"], ["e9"])]
    ways = (["e5"], ["e5", "e8"], ["e8"], ["e10"])
    expected += [{"c": ["e7"], "p": p, "b": [b]} for p in ways for b in ("e12", "e13")]
    assert len(found) == 11
    assert in_order(found) == in_order(expected)


def test_chemotherapy_earliest_and_maximal() -> None:
    matches = earliest_maximal(Enumeration(parse_query(P1), CHEMO, math.inf).matches())
    assert [named(match) for match in matches] == [
        {"c": ["e1"], "p": ["e3", "e9"], "b": ["e11"]},
        {"p": ["e5", "e8"], "c": ["e7"], "b": ["e12"]},
        {"c": ["e7"], "p": ["e8"], "b": ["e12"]},
    ]


def test_shoplifting() -> None:
    """SASE+, query 1: what leaves the shop without having been at a register."""
    text = """PATTERN SEQ(Shelf a, ~Register b, Exit c)
              WHERE skip_till_next_match(a, b, c) { [tag_id] } WITHIN 12 hours"""
    events = [
        event(1, 1, "Shelf", tag_id=1),
        event(2, 2, "Shelf", tag_id=2),
        event(3, 3, "Register", tag_id=1),
        event(4, 4, "Exit", tag_id=1),
        event(5, 5, "Exit", tag_id=2),
        event(6, 6, "Exit", tag_id=2),
        event(7, 7, "Shelf", tag_id=1),
        event(8, 7 + 12 * 3_600_000, "Exit", tag_id=1),
    ]
    assert bindings(text, events) == [{"a": ["e2"], "c": ["e5"]}]


def test_contamination() -> None:
    """SASE+, query 2: every series of shipments that an alert may have spread by."""
    text = """PATTERN SEQ(Alert a, Shipment+ b[])
              WHERE skip_till_any_match(a, b[]) {
                  a.type = 'Alert' AND b[1].source = a.site AND b[i].source = b[i-1].target }
              WITHIN 3 hours"""
    events = [
        event(1, 1, "Alert", site="X"),
        event(2, 2, "Shipment", source="X", target="Y"),
        event(3, 3, "Shipment", source="X", target="Z"),
        event(4, 4, "Shipment", source="Y", target="W"),
        event(5, 5, "Shipment", source="V", target="X"),
    ]
    assert bindings(text, events) == [
        {"a": ["e1"], "b": ["e2"]},
        {"a": ["e1"], "b": ["e2", "e4"]},
        {"a": ["e1"], "b": ["e3"]},
    ]


def test_stock_market_trend() -> None:
    """SASE+, query 3, on the events of its figure 2: price and volume."""
    text = """PATTERN SEQ(Stock+ a[], Stock b)
              WHERE skip_till_next_match(a[], b) {
                  [symbol] AND a[1].volume > 1000 AND a[i].price > avg(a[..i-1].price)
                  AND b.volume < 0.8 * a[a.len].volume }
              WITHIN 1 hour"""
    stock = [(100, 1010), (120, 990), (120, 1005), (121, 999), (120, 999), (125, 750), (120, 950), (120, 700)]
    events = [
        event(number, number, "Stock", symbol="GOOG", price=price, volume=volume)
        for number, (price, volume) in enumerate(stock, 1)
    ]
    assert bindings(text, events) == [
        {"a": ["e1", "e2", "e3", "e4", "e5", "e6", "e7"], "b": ["e8"]},
        {"a": ["e1", "e2", "e3", "e4", "e5"], "b": ["e6"]},
        {"a": ["e3", "e4"], "b": ["e6"]},
    ]


TEMPLATE = """PATTERN SEQ(Stock+ a[], Stock b)
              WHERE skip_till_next_match(a[], b) {{ [symbol] AND a[1].price % 500 = 0 {} AND b.volume < 150 }}
              WITHIN 500 ms"""
TAKEN = ("", "AND a[i].price > a[i-1].price", "AND a[i].price > min(a[..i-1].price)")


def ticks(seed: int, count: int) -> list[Event]:
    """Two symbols; `ts` is the position in the whole stream."""
    pick = random.Random(seed)
    prices, volumes = (500, 1000, 730, 1201), (90, 140, 200)
    return [
        event(number, number, "Stock", symbol=pick.choice("AB"), price=pick.choice(prices), volume=pick.choice(volumes))
        for number in range(count)
    ]


@pytest.mark.parametrize("seed", range(5))
def test_the_template_has_as_many_matches_whatever_is_taken(seed: int) -> None:
    """SASE+, section 6: the predicate on a[i] changes what is bound, not how many runs complete."""
    counts = [len(bindings(TEMPLATE.format(predicate), ticks(seed, 12))) for predicate in TAKEN]
    assert len(set(counts)) == 1
    assert counts[0] > 0


def test_the_template_matches_every_pair_in_the_window() -> None:
    """A run neither ends nor blocks at what it takes: it yields at each later event of its symbol that can be b."""
    events = ticks(9, 1_200)
    pairs = sum(
        first.data["price"] % 500 == 0 and last.data["symbol"] == first.data["symbol"] and last.data["volume"] < 150
        for at, first in enumerate(events)
        for last in events[at + 1 : at + 500]
    )
    lines = [json.dumps({"key": "k", "ts": one.ts, "type": one.type, "data": one.data}).encode() for one in events]
    for predicate in TAKEN:
        engine = Engine([compile_query(parse_query(TEMPLATE.format(predicate)), "q")], bindings=False)
        assert len(engine.feed(lines)) == pairs > 50_000
