"""The second yardstick: the queries by hand in Python, for events in order and one key, without any package."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

Span = tuple[int, int]  # ts of the first and the last event of a match

LARGE_DROP: Final = -0.25
V_PATTERNS: Final = 2
WORD: Final = "UDUDDUUD"
SMALL_VOLUME: Final = 150
ROUND_PRICE: Final = 500


def q1(ts: Sequence[int], changes: Sequence[float], window: int) -> list[Span]:
    """A run is [start, downticks minus upticks, V-patterns begun, whether it rises]."""
    found: list[Span] = []
    runs: list[list[int]] = []
    for now, change in zip(ts, changes, strict=True):
        alive = []
        for run in runs:
            if now - run[0] >= window:
                continue
            if change < 0:
                if run[3] or not run[2]:
                    run[2] += 1
                run[1] += 1
                run[3] = 0
                if run[2] > V_PATTERNS:
                    continue
            else:
                if not run[2]:
                    continue
                run[1] -= 1
                run[3] = 1
                if run[2] == V_PATTERNS and run[1] <= 0:
                    if run[1] == 0:
                        found.append((run[0], now))
                    continue
            alive.append(run)
        runs = alive
        if change < LARGE_DROP:
            runs.append([now, 0, 0, 0])
    return found


def q2(ts: Sequence[int], changes: Sequence[float], prices: Sequence[float], window: int) -> list[Span]:
    """A run is (start, price before the fall); it lives for the whole window once a second downtick confirmed it."""
    found: list[Span] = []
    runs: list[tuple[int, float]] = []
    begun: tuple[int, float] | None = None
    for now, change, price in zip(ts, changes, prices, strict=True):
        if change > 0:
            runs = [run for run in runs if now - run[0] < window]
            found += [(start, now) for start, before in runs if price >= before]
        elif begun:
            runs.append(begun)
        begun = (now, price - change) if change < LARGE_DROP else None
    return found


def q3(ts: Sequence[int], changes: Sequence[float], window: int) -> list[Span]:
    """The last eight ticks as bits of one number."""
    steps = len(WORD)
    word = int("".join("1" if step == "U" else "0" for step in WORD), 2)
    mask = (1 << steps) - 1
    found: list[Span] = []
    ups = 0
    for position, change in enumerate(changes):
        ups = (ups << 1 | (change > 0)) & mask
        if ups == word and position >= steps - 1 and ts[position] - ts[position - steps + 1] < window:
            found.append((ts[position - steps + 1], ts[position]))
    return found


def sase_pairs(
    ts: Sequence[int], symbols: Sequence[int], prices: Sequence[int], volumes: Sequence[int], window: int
) -> list[Span]:
    """First and last event of every match of the SASE+ query."""
    return [(ts[numbers[place]], ts[numbers[-1]]) for numbers, place in _sase(ts, symbols, prices, volumes, window)]


def sase_bindings(
    ts: Sequence[int], symbols: Sequence[int], prices: Sequence[int], volumes: Sequence[int], window: int
) -> list[list[int]]:
    """The numbers of the events that every match binds, the last one to b."""
    return [numbers[place:] for numbers, place in _sase(ts, symbols, prices, volumes, window)]


def _sase(
    ts: Sequence[int], symbols: Sequence[int], prices: Sequence[int], volumes: Sequence[int], window: int
) -> Iterator[tuple[list[int], int]]:
    """Of every match, when it is found: all events of its symbol so far, and which of them is its first."""
    numbers: dict[int, list[int]] = {symbol: [] for symbol in set(symbols)}
    runs: dict[int, list[tuple[int, int]]] = {symbol: [] for symbol in numbers}
    for number, (now, symbol) in enumerate(zip(ts, symbols, strict=True)):
        own = numbers[symbol]
        own.append(number)
        if volumes[number] < SMALL_VOLUME and runs[symbol]:
            runs[symbol] = [run for run in runs[symbol] if now - run[0] < window]
            for _, place in runs[symbol]:
                yield own, place
        if prices[number] % ROUND_PRICE == 0:
            runs[symbol].append((now, len(own) - 1))
