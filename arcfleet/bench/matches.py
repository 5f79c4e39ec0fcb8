"""What the engine's changes come to, in a form that is quick to compare: no speed is shown before they agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from afa.errors import AfaError
from arcfleet.bench.workloads import Ints

# A match in one number: pattern | start | end - start. Starts are unique over all keys, because ts is the position.
_LENGTH_BITS: Final = 20
_START_BITS: Final = 27


class DisagreementError(AfaError):
    """The engine and the yardstick do not have the same matches."""


def codes_of(spans: Ints, pattern: int = 0) -> Ints:
    """The matches of one pattern, given as start and end, as sorted numbers."""
    spans = np.asarray(spans, dtype=np.int64).reshape(-1, 2)
    return np.sort(_code(np.int64(pattern), spans[:, 0], spans[:, 1]))


def _code(pattern: Any, start: Any, end: Any) -> Any:
    return (pattern << (_START_BITS + _LENGTH_BITS)) | (start << _LENGTH_BITS) | (end - start)


def starts_of(codes: Ints) -> Ints:
    """The start of each match."""
    starts: Ints = (codes >> _LENGTH_BITS) & ((1 << _START_BITS) - 1)
    return starts


class Tally:
    """Inserts and retracts, summed up."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = pa.array(patterns, pa.string())
        self._codes: list[Ints] = []
        self._signs: list[Ints] = []
        self.changes = 0

    def add(self, table: pa.RecordBatch) -> None:
        """Takes the changes of one batch, as `Changes.to_arrow` gives them."""
        op = table["op"].cast(pa.string())
        table = table.filter(pc.is_in(op, pa.array(["insert", "retract"])))
        op = table["op"].cast(pa.string())
        pattern = pc.index_in(table["pattern"].cast(pa.string()), self._patterns)
        start, end = (table[name].to_numpy(zero_copy_only=False) for name in ("start", "end"))
        self._codes.append(_code(pattern.to_numpy(zero_copy_only=False).astype(np.int64), start, end))
        self._signs.append(np.where(pc.equal(op, "insert").to_numpy(zero_copy_only=False), 1, -1).astype(np.int64))
        self.changes += table.num_rows

    def net(self) -> Ints:
        """The codes of the matches that stand. DisagreementError if one was told twice or taken back unheard of."""
        codes, index = np.unique(np.concatenate((np.empty(0, np.int64), *self._codes)), return_inverse=True)
        sums = np.zeros(len(codes), dtype=np.int64)
        np.add.at(sums, index, np.concatenate((np.empty(0, np.int64), *self._signs)))
        if odd := int(np.count_nonzero((sums != 0) & (sums != 1))):
            raise DisagreementError(
                f"{odd:,} matches were inserted twice, or retracted without an insert; no speed is shown"
            )
        standing: Ints = codes[sums == 1]
        return standing


def compare(what: str, found: Ints, expected: Ints) -> None:
    """Raises DisagreementError with the numbers if the two sets of matches differ."""
    if np.array_equal(found, expected):
        return
    missing, extra = (np.setdiff1d(*pair, assume_unique=True) for pair in ((expected, found), (found, expected)))
    first = int(np.concatenate((missing, extra)).min()) & ((1 << (_START_BITS + _LENGTH_BITS)) - 1)
    start, length = first >> _LENGTH_BITS, first & ((1 << _LENGTH_BITS) - 1)
    raise DisagreementError(
        f"{what}: the engine has {len(found):,} matches, the yardstick {len(expected):,}; {len(missing):,} are missing "
        f"and {len(extra):,} too many, the first from {start} to {start + length}; no speed is shown"
    )
