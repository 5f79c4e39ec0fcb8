"""Seeded streams: the AFA paper's price walk, in order or late, over one key or many; the SASE+ paper's two symbols."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from arcfleet.bench.settings import LATE_BY_MOST, Settings

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Codes = NDArray[np.int32]

_MOVE_MEAN, _MOVE_DEVIATION, _MOVE_LEAST = 0.70, 0.30, 0.01
_FIRST_PRICE_CENTS: Final = 5_000_000  # far from 0 and from a sixth digit, however the walk goes
_STOCK_UP, _STOCK_DOWN = 0.70, 0.15  # with these probabilities a price moves by 1
_STOCK_MOST: Final = 1000  # prices and volumes are 1 to this
_STOCK_FIRST: Final = 490  # so that a short stream has a price of 500, too
_SELFLOOP_ONES, _SELFLOOP_TWOS = 0.1, 0.0005  # with a window of 1,000: 100 live partial matches, few matches


@dataclass(frozen=True)
class Stream:
    """Events in event order. The data of an event is one number per column."""

    ts: Ints
    columns: dict[str, Floats | Ints]
    key: Codes | None = None  # None: all events have one key
    sequence: bool = False  # whether the events carry gap-free numbers
    event_type: str | None = None  # of all events
    order: Ints = field(
        default_factory=lambda: np.empty(0, np.int64), kw_only=True
    )  # positions in order of arrival; empty: as they are

    def __len__(self) -> int:
        return len(self.ts)

    @property
    def change(self) -> Floats:
        return self.columns["change"].astype(np.float64, copy=False)

    @property
    def price(self) -> Floats:
        return self.columns["price"].astype(np.float64, copy=False)


def price_moves(count: int, up: float, generator: np.random.Generator) -> Ints:
    """In cents: up with this probability, the size drawn from N(0.70, 0.30), those below 0.01 drawn again."""
    moves: Floats = np.empty(0)
    while len(moves) < count:
        drawn = generator.normal(_MOVE_MEAN, _MOVE_DEVIATION, count)
        moves = np.concatenate((moves, drawn[drawn >= _MOVE_LEAST]))
    cents = np.rint(moves[:count] * 100).astype(np.int64)
    return np.where(generator.random(count) < up, cents, -cents)


def price_walk(count: int, up: float, seed: int, *, first_ts: int = 0, sequence: bool = False) -> Stream:
    """Ticks of one symbol; ts is the position. Prices have two decimals, so a text of them is exact."""
    moves = price_moves(count, up, np.random.default_rng(seed))
    prices = _FIRST_PRICE_CENTS + np.cumsum(moves)
    ts = np.arange(first_ts, first_ts + count, dtype=np.int64)
    return Stream(ts, {"change": moves / 100, "price": prices / 100}, sequence=sequence)


def keyed_walk(settings: Settings) -> Stream:
    """Ticks of many symbols, the symbol of each drawn at random; ts is the position among all."""
    stream = price_walk(settings.events, 0.5, settings.seed)
    generator = np.random.default_rng([settings.seed, 2])
    key = generator.integers(0, settings.keys, len(stream), dtype=np.int32)
    return Stream(stream.ts, stream.columns, key)


def ones_and_twos(count: int, seed: int) -> Stream:
    """For the self-loop: many events that matter to nobody, some that begin, very few that end."""
    drawn = np.random.default_rng([seed, 3]).random(count)
    x = np.where(drawn < _SELFLOOP_ONES, 1, np.where(drawn > 1 - _SELFLOOP_TWOS, 2, 0)).astype(np.int64)
    return Stream(np.arange(count, dtype=np.int64), {"x": x})


def some_users(count: int, users: int, seed: int) -> Stream:
    """Events of users drawn at random."""
    user = np.random.default_rng([seed, 7]).integers(0, users, count)
    return Stream(np.arange(count, dtype=np.int64), {"user": user})


def two_symbols(count: int, seed: int) -> Stream:
    """The stream of the SASE+ paper's experiments: symbol and volume uniform, each price a walk that mostly rises.

    At the ends of its range a price goes on at the other end, which the paper leaves open. So 2 events of 1,000 have a
    price that 500 divides, some of them in a row, and 149 of 1,000 a volume below 150.
    """
    generator = np.random.default_rng([seed, 8])
    symbol = generator.integers(1, 3, count)
    drawn = generator.random(count)
    moves = np.where(drawn < _STOCK_UP, 1, np.where(drawn < _STOCK_UP + _STOCK_DOWN, -1, 0))
    price = np.empty(count, np.int64)
    for one in (1, 2):
        price[symbol == one] = (_STOCK_FIRST - 1 + np.cumsum(moves[symbol == one])) % _STOCK_MOST + 1
    columns: dict[str, Floats | Ints] = {
        "symbol": symbol,
        "price": price,
        "volume": generator.integers(1, _STOCK_MOST + 1, count),
    }
    return Stream(np.arange(count, dtype=np.int64), columns, event_type="Stock")


def passing_keys(start: int, stop: int, settings: Settings) -> Stream:
    """A part of a long stream in which keys come and go, each living for about a tenth of it."""
    generator = np.random.default_rng([settings.seed, 4, start])
    moves = price_moves(stop - start, 0.5, generator)
    ts = np.arange(start, stop, dtype=np.int64)
    together = max(1, settings.memory_keys // 10)
    oldest = ts * (settings.memory_keys - together) // settings.memory_events
    key = (oldest + generator.integers(0, together, stop - start)).astype(np.int32)
    return Stream(ts, {"change": moves / 100}, key)


def made_late(stream: Stream, share: float, seed: int) -> Stream:
    """The same events, this share of them arriving 1 to 1,000 positions late."""
    generator = np.random.default_rng([seed, 5])
    count = len(stream)
    delays = np.where(generator.random(count) < share, generator.integers(1, LATE_BY_MOST + 1, count) + 0.5, 0)
    order = np.argsort(np.arange(count) + delays, kind="stable")
    return replace(stream, order=order.astype(np.int64))
