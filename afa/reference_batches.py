"""Batches for the reference engine: the same door as the native one has, record by record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from afa.changes import Changes, Told
from afa.differences import in_order
from afa.errors import RecordError
from afa.reading import Fault
from afa.records import (
    ArcChange,
    ArcRetraction,
    Change,
    EmittedPunctuation,
    GraphChange,
    MatchChange,
    Record,
    Timeout,
    read_record,
)
from afa.reference import ReferenceEngine
from afa.tape import TapeLine

_OWN_COLUMNS = ("key", "ts", "id", "seq", "rev", "op", "type", "arc", "when")


@dataclass(frozen=True)
class Item:
    """A record on its way in: its place in the batch, its topic, and how to read it."""

    index: int
    topic: str
    read: Callable[[], Record]


def feed_reference(engine: ReferenceEngine, batch: Any, first: int, net: str, *, stops_at_bad: bool = False) -> Changes:
    """Feeds a record batch, raw values or lines of a tape."""
    reads = rows_of(batch, first) if hasattr(batch, "__arrow_c_array__") else _lines(batch, first)
    items = (Item(index, "", read) for index, read in enumerate(reads))
    return feed_items(engine, items, net, stops_at_bad=stops_at_bad)


def feed_items(
    engine: ReferenceEngine,
    items: Iterable[Item],
    net: str,
    *,
    stops_at_bad: bool = False,
    settles_at: int | None = None,
) -> Changes:
    """Feeds records; `settles_at` a place at their end punctuations come to where their times have moved them."""
    told: list[Told] = []
    bad: list[tuple[int, str]] = []
    late: list[tuple[int, str]] = []
    faults: dict[int, Fault] = {}
    for item in items:
        if bad and stops_at_bad:
            break
        index = item.index
        try:
            step = engine.feed(item.read(), item.topic)
        except RecordError as error:
            bad.append((index, error.what))
        except Fault as fault:
            bad.append((index, fault.what))
            faults[index] = fault
        else:
            told += [(index, change) for change in step.changes]
            if step.late:
                late.append((index, step.late))
    if settles_at is not None:
        told += [(settles_at, change) for change in engine.settle().changes]
    final = _net(told) if net == "batch" else told
    changes = Changes(final, bad, late)
    changes.faults = faults
    return changes


def _lines(batch: Iterable[Any], first: int) -> Iterator[Callable[[], Record]]:
    for index, item in enumerate(batch):
        if isinstance(item, dict):
            yield partial(read_record, item, f"{first + index:012d}")
            continue
        line = item if isinstance(item, TapeLine) else TapeLine("<records>", first + index, item)
        yield line.read


def rows_of(batch: Any, first: int) -> Iterator[Callable[[], Record]]:
    """The rows of a record batch as readers of records."""
    for number, row in enumerate(_rows(batch), first):
        if isinstance(row, str):
            yield partial(_read_arc_change, TapeLine("<batch>", number, row.encode()))
        else:
            yield partial(read_record, row, f"{number:012d}")


def _read_arc_change(line: TapeLine) -> Record:
    change = line.read()
    if not isinstance(change, ArcChange | ArcRetraction):
        raise Fault(("op",), "an arc change needs `op` arc or arc-retract in its JSON", "")
    return change


def _rows(batch: Any) -> Iterator[dict[str, Any] | str]:
    """The rows of a record batch in the shape of a tape's lines; of arc changes the JSON."""
    fields = batch.schema if hasattr(batch, "schema") else batch.type
    unread = {field.name for field in fields if field.name not in _OWN_COLUMNS and not _is_read(field.type)}
    for row in batch.to_pylist():
        if row.get("op") in ("arc", "arc-retract") and row.get("arc") is not None:
            yield row["arc"]
            continue
        record = {name: row[name] for name in _OWN_COLUMNS if row.get(name) is not None}
        data = {name: _known(row[name]) for name in row if name not in _OWN_COLUMNS and name not in unread}
        yield record | {"data": {name: value for name, value in data.items() if value is not None}}


def _is_read(kind: Any) -> bool:
    """Whether anything is read of a column of this type: see the engine page."""
    from pyarrow import types  # noqa: PLC0415 - not everybody has it

    if types.is_dictionary(kind):
        return _is_read(kind.value_type)
    nested = (types.is_list, types.is_large_list, types.is_fixed_size_list, types.is_struct)
    plain = (types.is_string, types.is_large_string, types.is_string_view, types.is_boolean)
    numbers = (types.is_integer, types.is_floating)
    return any(is_it(kind) for is_it in (*nested, *plain, *numbers))


def _known(value: Any) -> Any:
    """A value without what nothing is read of."""
    if isinstance(value, dict):
        return {name: _known(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_known(item) for item in value]
    return value if isinstance(value, bool | int | float | str) else None


def _net(told: Sequence[Told]) -> list[Told]:
    """Net per batch: what came and went is not told, retracts come before inserts, the last punctuations at the end."""
    balance: dict[tuple[str, str], int] = {}  # by id and content
    gone: dict[tuple[str, str], MatchChange] = {}
    come: dict[tuple[str, str], MatchChange] = {}
    graphs: dict[str, GraphChange] = {}
    timeouts: list[Timeout] = []
    punctuations: dict[str, Change] = {}
    for _, change in told:
        if isinstance(change, Timeout):
            timeouts.append(change)
            continue
        if isinstance(change, EmittedPunctuation):
            punctuations[change.pattern] = change
            continue
        if isinstance(change, GraphChange):
            graphs[change.id] = replace(change, before=graphs.get(change.id, change).before)
            continue
        which = (change.id, change.match.content)
        balance[which] = balance.get(which, 0) + (1 if change.op == "insert" else -1)
        (come if change.op == "insert" else gone)[which] = change
    net: list[MatchChange | GraphChange] = [gone[which] for which, count in balance.items() if count < 0]
    net += [come[which] for which, count in balance.items() if count > 0]
    net += [change for change in graphs.values() if change.changes_anything]
    timeouts.sort(key=lambda timeout: timeout.order)
    last = [punctuations[name] for name in sorted(punctuations)]
    changes: list[Change] = [*in_order(net), *timeouts, *last]
    return [(0, change) for change in changes]
