"""The first yardstick: `loops.c`, built with the local compiler and called with arrays in memory."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np

from arcfleet.bench.python_loops import ROUND_PRICE, SMALL_VOLUME
from arcfleet.bench.workloads import Ints, Stream

_SOURCE: Final = Path(__file__).with_name("loops.c")
_FLAGS: Final = ("-O3", "-march=native", "-shared", "-fPIC")


class CLoop:
    """One loop with its arrays: a call runs it over the stream, and leaves the matches in `spans`."""

    def __init__(self, function: Any, arguments: tuple[Any, ...], room: int, width: int = 2) -> None:
        function.restype = ctypes.c_int64
        self._function = function
        self._out = np.zeros((room + 1, width), dtype=np.int64)  # a loop writes first and counts then
        self._kept = [argument for argument in arguments if isinstance(argument, np.ndarray)]
        self._arguments = [_as_c(argument) for argument in (*arguments, self._out)]
        self._found = 0

    def __call__(self) -> int:
        self._found = self._function(*self._arguments)
        if self._found < 0:
            raise MemoryError("a stream with longer falls than the C loop has room for")
        return self._found

    @property
    def spans(self) -> Ints:
        """Start and end of each match of the last call."""
        return self._out[: self._found]


class CBindings(CLoop):
    """One that leaves the numbers of the events that matches bind."""

    def __init__(self, function: Any, arguments: tuple[Any, ...], matches: int, numbers: int) -> None:
        self._numbers = np.zeros(numbers, dtype=np.int64)
        super().__init__(function, (*arguments, self._numbers), matches, width=1)

    @property
    def bound(self) -> tuple[Ints, Ints]:
        """Where the numbers of each match of the last call begin and end, and the numbers."""
        offsets = self._out[: self._found + 1, 0]
        return offsets, self._numbers[: offsets[-1]]


class CLoops:
    """The compiled loops."""

    def __init__(self, library: Any) -> None:
        self._library = library

    def q1(self, stream: Stream, window: int) -> CLoop:
        return CLoop(self._library.q1, (stream.ts, stream.change, len(stream), window), len(stream))

    def q1_keyed(self, stream: Stream, window: int, keys: int) -> CLoop:
        assert stream.key is not None
        slots = np.zeros(keys * self._library.q1_slot_bytes(), dtype=np.uint8)
        columns = (stream.ts, stream.change, stream.key)
        return CLoop(self._library.q1_keyed, (*columns, len(stream), window, slots, keys), len(stream))

    def q2(self, stream: Stream, window: int) -> CLoop:
        starts, prices = np.zeros(len(stream) + 1, dtype=np.int64), np.zeros(len(stream) + 1)
        columns = (stream.ts, stream.change, stream.price)
        # At most half of the window can be confirmed runs, and each may match at every uptick.
        return CLoop(
            self._library.q2, (*columns, len(stream), window, starts, prices), len(stream) * max(1, window // 4)
        )

    def q3(self, stream: Stream, window: int) -> CLoop:
        return CLoop(self._library.q3, (stream.ts, stream.change, len(stream), window), len(stream))

    def selfloop(self, stream: Stream, window: int) -> CLoop:
        x = stream.columns["x"]
        starts = np.zeros(len(stream) + 1, dtype=np.int64)
        room = (int(np.count_nonzero(x == 2)) + 1) * window
        return CLoop(self._library.selfloop, (stream.ts, x, len(stream), window, starts), room)

    def sase_pairs(self, stream: Stream, window: int) -> CLoop:
        matches, _ = _sizes(stream, window)
        room = np.zeros(2 * len(stream), dtype=np.int64)
        return CLoop(self._library.sase_pairs, (*_stocks(stream), len(stream), window, room), matches)

    def sase_bindings(self, stream: Stream, window: int) -> CBindings:
        matches, numbers = _sizes(stream, window)
        room = np.zeros(6 * len(stream), dtype=np.int64)
        return CBindings(self._library.sase_bindings, (*_stocks(stream), len(stream), window, room), matches, numbers)


def _stocks(stream: Stream) -> tuple[Any, ...]:
    return (stream.ts, *(stream.columns[name] for name in ("symbol", "price", "volume")))


def _sizes(stream: Stream, window: int) -> tuple[int, int]:
    """How many matches the SASE+ query has, and how many events they bind in all, from whole columns."""
    matches = numbers = 0
    for symbol in (1, 2):
        own = stream.columns["symbol"] == symbol
        ts = stream.ts[own]
        starts = np.flatnonzero(stream.columns["price"][own] % ROUND_PRICE == 0)
        ends = np.flatnonzero(stream.columns["volume"][own] < SMALL_VOLUME)
        bounds = np.searchsorted(ts[ends], ts[starts], "right"), np.searchsorted(ts[ends], ts[starts] + window)
        sums = np.concatenate(([0], np.cumsum(ends)))
        matches += int(np.sum(bounds[1] - bounds[0]))
        numbers += int(np.sum(sums[bounds[1]] - sums[bounds[0]] - (bounds[1] - bounds[0]) * (starts - 1)))
    return matches, numbers


def _as_c(argument: Any) -> Any:
    if isinstance(argument, np.ndarray):
        assert argument.flags.c_contiguous
        return ctypes.c_void_p(argument.ctypes.data)
    return ctypes.c_int64(argument)


def compiler() -> str | None:
    """`$CC`, else cc, gcc or clang; None if there is none."""
    named = os.environ.get("CC")
    return next((path for name in (named, "cc", "gcc", "clang") if name and (path := shutil.which(name))), None)


def compiled() -> CLoops | None:
    """The loops, built anew for this very processor; None without a compiler. Raises OSError if they do not build."""
    if (command := compiler()) is None:
        return None
    with TemporaryDirectory(prefix="arcfleet-bench-") as folder:
        target = Path(folder) / "loops.so"
        done = subprocess.run(  # noqa: S603 - the user's own compiler on our own source
            [command, *_FLAGS, "-o", str(target), str(_SOURCE)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise OSError(f"{command} could not build {_SOURCE}: {done.stderr.strip()}")
        return CLoops(ctypes.CDLL(str(target)))  # the mapping outlives the file
