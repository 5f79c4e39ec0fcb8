"""Tapes: a recorded arrival order as JSON lines, read one line at a time in bounded memory."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, NoReturn

from afa.errors import AfaError, Place, RecordError
from afa.reading import Fault
from afa.records import Record, read_record
from afa.source_text import SourceText

MAX_RECORD_BYTES: Final = 4 * 1_048_576
MAX_RECORD_DEPTH: Final = 100  # of lists and objects; the forms that records are written in have limits of their own
_LOCATED_CHARACTERS: Final = 65_536  # of a longer line only the line is named: finding the column costs a second parse
_FORBIDDEN_NUMBER: Final = re.compile(r'"(?:[^"\\]|\\.)*"|(NaN|-?Infinity)')
_SURROGATE_ESCAPE: Final = re.compile(r"\\u[dD][89a-fA-F]")


@dataclass(frozen=True, slots=True)
class TapeLine:
    """One line as it stands: `read` makes a record of it."""

    file: str
    number: int
    raw: bytes
    too_long: int = 0  # the limit that it passes

    def read(self) -> Record:
        """The record. Raises RecordError."""
        value = self.value()
        try:
            return read_record(value, f"{self.number:012d}")
        except Fault as fault:
            raise self.error(fault) from None

    def why_bad(self, reason: str) -> RecordError:
        """The error of a line that was refused: what reading it says, with its column, else the reason given."""
        try:
            self.read()
        except RecordError as error:
            return error
        return self.error(Fault((), reason, "compare it with the record shapes in the replay page"))

    def error(self, fault: Fault) -> RecordError:
        """A fault in this line's record, with the column where it stands."""
        column = 1
        if len(self.raw) <= _LOCATED_CHARACTERS:
            try:  # JSON is YAML, and our YAML reader knows where every value stands
                document = next(SourceText(self.file, self.raw.decode()).documents())
                column = document.place_of(fault).column
            except (AfaError, StopIteration):
                pass
        return RecordError(fault.what, fix=fault.fix, place=Place(self.file, self.number, column))

    def value(self) -> Any:
        """The JSON that stands there. Raises RecordError."""
        if self.too_long:
            what = f"a line of more than {self.too_long:,} bytes (max_record_bytes)"
            self._fail(self.too_long + 1, what, "split the record, or raise it: --limit max_record_bytes=N")
        try:
            text = self.raw.decode()
        except UnicodeDecodeError as error:
            column = len(self.raw[: error.start].decode()) + 1
            self._fail(column, "not UTF-8", "write the tape as UTF-8")
        try:
            value = json.loads(text, parse_constant=self._forbidden, parse_int=_integer)
        except json.JSONDecodeError as error:
            self._fail(error.colno, f"not JSON: {error.msg}", "each line of a tape is one JSON object")
        except RecursionError:
            self._fail_depth()
        if text.count("{") + text.count("[") > MAX_RECORD_DEPTH and _is_deeper(value, MAX_RECORD_DEPTH):
            self._fail_depth()
        if _SURROGATE_ESCAPE.search(text):
            self._check_characters(value)
        return value

    def _fail_depth(self) -> NoReturn:
        self._fail(1, f"JSON nested deeper than {MAX_RECORD_DEPTH} (max_record_depth)", "flatten the record")

    def _check_characters(self, value: Any) -> None:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            self._fail(1, "half of a surrogate pair in a text", "write the character itself")

    def _forbidden(self, token: str) -> NoReturn:
        found = (match.start(1) for match in _FORBIDDEN_NUMBER.finditer(self.raw.decode()) if match[1])
        self._fail(next(found, 0) + 1, f"{token} is not JSON", "write null, or leave the field out")

    def _fail(self, column: int, what: str, fix: str) -> NoReturn:
        raise RecordError(what, fix=fix, place=Place(self.file, self.number, column))


def _is_deeper(value: Any, most: int) -> bool:
    level = [value]
    for _ in range(most):
        level = [below for item in level for below in _items(item)]
    return any(isinstance(item, dict | list) for item in level)


def _items(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _integer(digits: str) -> int:
    """Python refuses to convert thousands of digits; all beyond 64 bits are the same to us: out of range."""
    return int(digits) if len(digits) <= 20 else int(digits[:21])


class Tape:
    """The lines of a stream, blank ones left out. `bytes_read` tells how far it has come."""

    def __init__(self, stream: BinaryIO, file: str, max_record_bytes: int = MAX_RECORD_BYTES) -> None:
        self.stream = stream
        self.file = file
        self.max_record_bytes = max_record_bytes
        self.bytes_read = 0

    def __iter__(self) -> Iterator[TapeLine]:
        number = 0
        while line := self._readline():
            number += 1
            too_long = self._skip_rest(line)
            raw = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            if raw.strip():
                yield TapeLine(self.file, number, raw.rstrip(b"\r\n"), too_long)

    def _readline(self) -> bytes:
        line = self.stream.readline(self.max_record_bytes + 2)  # with its end of line
        self.bytes_read += len(line)
        return line

    def _skip_rest(self, line: bytes) -> int:
        """Reads a line that is too long to its end, without keeping it; 0 if it is not."""
        is_whole = line.endswith(b"\n") or len(line) < self.max_record_bytes + 2
        if is_whole and len(line.rstrip(b"\r\n")) <= self.max_record_bytes:
            return 0
        while line and not line.endswith(b"\n"):
            line = self._readline()
        return self.max_record_bytes
