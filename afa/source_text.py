"""YAML with positions: every value knows the line and column it came from, down to a character of a text.

YAML 1.2's plain scalars (`on` and `no` are strings, unlike in YAML 1.1), no tags, no merge keys, unique keys;
bounded in size, depth and number of values, because pattern files come from strangers.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Any, Final, TypeAlias

import yaml

from afa.errors import PatternError, Place
from afa.reading import Fault

MAX_DOCUMENT_BYTES: Final = 1_048_576
MAX_DOCUMENT_DEPTH: Final = 32
MAX_DOCUMENT_VALUES: Final = 1_000_000
_FREE_VALUES: Final = 10_000  # what aliases may add to a value per character: the cost stays linear in the size

_ANCHOR: Final = re.compile(r"&\S+[ \t]+")

Plain: TypeAlias = "str | int | float | bool | list[Located] | dict[str, Located] | None"


class _Refused(yaml.MarkedYAMLError):
    """YAML, but not ours."""


class _Loader(yaml.SafeLoader):
    """Composes nodes only; its resolver knows the scalars of YAML 1.2's core schema."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if tag := getattr(event, "tag", None):
            raise _Refused(
                problem=f"a YAML tag is not allowed: {tag}", problem_mark=event.start_mark, note="write the plain value"
            )
        return super().compose_node(parent, index)

    def fetch_flow_collection_start(self, token_class: Any) -> None:
        # The scanner itself looks ahead in time that is quadratic in the depth.
        if self.flow_level > MAX_DOCUMENT_DEPTH:
            problem = "the document passes max_document_depth"
            raise _Refused(problem=problem, problem_mark=self.get_mark(), note="make it smaller")
        super().fetch_flow_collection_start(token_class)


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("null", r"null|Null|NULL|~|", ["n", "N", "~", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
     list("-+0123456789.")),
):  # fmt: skip
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), _first)


def read_text(file: FilePath, kind: str) -> str:
    """The text of a file, which `kind` names in messages: `a pattern file`. Raises PatternError."""
    start = Place(str(file), 1, 1)
    try:
        with file.open("rb") as opened:
            data = opened.read(MAX_DOCUMENT_BYTES + 1)
    except OSError as error:
        raise PatternError(f"cannot be read: {error.strerror}", fix="check the path", place=start) from None
    if len(data) > MAX_DOCUMENT_BYTES:
        what = f"{kind} of more than {MAX_DOCUMENT_BYTES:,} bytes (max_document_bytes)"
        raise PatternError(what, fix="split it into several files", place=start)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8-sig")
        place = SourceText(str(file), before).place(len(before))
        raise PatternError("not UTF-8", fix="save the file as UTF-8", place=place) from None


class SourceText:
    """The text of one file, and where its characters stand."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text
        self._line_starts = [0, *(found.end() for found in re.finditer(r"\n", text))]

    def place(self, index: int) -> Place:
        line = bisect_right(self._line_starts, index)
        return Place(self.file, line, index - self._line_starts[line - 1] + 1)

    def documents(self) -> Iterator[Located]:
        """The YAML documents of the file, empty ones left out. Raises PatternError."""
        # Inside JSON a tab can only be white space, which YAML would refuse; one space keeps all columns.
        text = self.text.replace("\t", " ") if self.text.lstrip().startswith(("{", "[")) else self.text
        try:
            for node in yaml.compose_all(text, Loader=_Loader):
                builder = _Builder(self)
                located = builder.build(node, 0)
                if located.value is not None:
                    yield located
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            what = str(error.problem) if isinstance(error, _Refused) else f"not YAML: {error.problem or error.context}"
            raise PatternError(what, fix=_yaml_hint(error), place=self.place(mark.index if mark else 0)) from None
        except yaml.reader.ReaderError as error:
            what = f"a character that YAML does not allow: #x{ord(self.text[error.position]):04x}"
            raise PatternError(
                what, fix="delete it, or write it as an escape", place=self.place(error.position)
            ) from None
        except RecursionError:
            raise PatternError("nested too deeply", fix="flatten the document", place=self.place(0)) from None


def _yaml_hint(error: yaml.MarkedYAMLError) -> str:
    if isinstance(error, _Refused):
        return str(error.note)
    problem = str(error.problem)
    if "\\t" in problem:
        return "indent with spaces"
    if "mapping values" in problem or "expected ',' or '}'" in problem or "expected ',' or ']'" in problem:
        return 'put expressions in quotes: when: "e.price > 9"'
    return "check indentation, quotes and brackets at this place"


@dataclass(frozen=True, slots=True)
class Located:
    """A value and its place. For texts, `inside(offset)` is the place of one of its characters."""

    value: Plain
    source: SourceText
    start: int
    end: int
    style: str | None = None
    key_start: int | None = None  # of the field name before it, in a mapping

    def plain(self) -> Any:
        """The value alone, as `json.loads` would give it."""
        if isinstance(self.value, dict):
            return {key: item.plain() for key, item in self.value.items()}
        if isinstance(self.value, list):
            return [item.plain() for item in self.value]
        return self.value

    def find(self, path: tuple[str | int, ...]) -> Located:
        """The value at a path, or the deepest that is there."""
        here = self
        for step in path:
            if isinstance(here.value, dict) and step in here.value:
                here = here.value[str(step)]
            elif isinstance(here.value, list) and isinstance(step, int) and step < len(here.value):
                here = here.value[step]
        return here

    def place_of(self, fault: Fault) -> Place:
        """Where in the file a fault stands."""
        at = self.find(fault.path)
        if fault.at_key and at.key_start is not None:
            return self.source.place(at.key_start)
        return at.inside(fault.offset) if fault.offset is not None else self.source.place(at.start)

    def inside(self, offset: int) -> Place:
        raw = self.source.text[self.start : self.end]
        if self.style == "|":
            shift = _block_shift(raw, str(self.value), offset)
        elif self.style == ">" or "\n" in raw:
            shift = _joined_shift(raw, str(self.value), offset, self.style)
        elif self.style in ("'", '"'):
            shift = _quoted_shift(raw, offset)
        else:
            shift = offset
        return self.source.place(self.start + shift)


# How a double-quoted scalar may write one character: JSON writes some as a pair of escapes.
_ESCAPE: Final = (
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8}|\\.|."
)


def _quoted_shift(raw: str, offset: int) -> int:
    """Index in a quoted scalar's source of the character at `offset` of its value."""
    written = re.compile(r"''|." if raw[0] == "'" else _ESCAPE, re.DOTALL)
    at = 1
    for _ in range(offset):
        found = written.match(raw, at)
        at = found.end() if found else at
    return min(at, len(raw) - 1)


_ESCAPED_SPACE: Final = frozenset({"\\t", "\\ ", "\\n", "\\r", "\\\n", "\\\r"})


def _joined_shift(raw: str, value: str, offset: int, style: str | None) -> int:
    """The same where lines are joined, which changes white space only: by the characters that are none."""
    written = {"'": r"''|.", '"': _ESCAPE}.get(style or "", ".")
    body = max(raw.find("\n"), 0) if style == ">" else 0 if style is None else 1  # no line may follow the mark
    shown = [found for found in re.compile(written, re.DOTALL).finditer(raw, body) if not _is_space(found[0])]
    before = len("".join(value[:offset].split()))
    if not value[offset : offset + 1].strip():
        return shown[before - 1].end() if before else body
    return shown[before].start()


def _is_space(written: str) -> bool:
    return written.isspace() or written in _ESCAPED_SPACE


def _block_shift(raw: str, value: str, offset: int) -> int:
    """The same for a literal block: its lines are those of the value, indented, after the header line."""
    raw_lines, value_lines = raw.split("\n"), value.split("\n")
    line = value.count("\n", 0, offset)
    column = offset - (value.rfind("\n", 0, offset) + 1)
    indent = next((len(r.rstrip("\r")) - len(v) for r, v in zip(raw_lines[1:], value_lines, strict=False) if v), 0)
    return sum(len(before) + 1 for before in raw_lines[: line + 1]) + indent + column


class _Builder:
    """Nodes to located values, within the limits."""

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.most = min(MAX_DOCUMENT_VALUES, len(source.text) + _FREE_VALUES)
        self.count = 0

    def build(self, node: yaml.Node | None, depth: int) -> Located:
        if node is None:
            return Located(None, self.source, 0, 0)
        self.count += 1
        start, end = node.start_mark.index, node.end_mark.index
        if anchor := _ANCHOR.match(self.source.text, start):  # the value stands behind it
            start = anchor.end()
        if self.count > self.most or depth > MAX_DOCUMENT_DEPTH:
            name = "max_document_depth" if depth > MAX_DOCUMENT_DEPTH else "max_document_values"
            raise PatternError(f"the document passes {name}", fix="make it smaller", place=self.source.place(start))
        style = node.style if isinstance(node, yaml.ScalarNode) else None
        return Located(self.value(node, depth), self.source, start, end, style)

    def value(self, node: yaml.Node, depth: int) -> Plain:
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, depth)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, depth + 1) for item in node.value]
        assert isinstance(node, yaml.ScalarNode)
        return self.scalar(node)

    def mapping(self, node: yaml.MappingNode, depth: int) -> dict[str, Located]:
        built: dict[str, Located] = {}
        for key_node, value_node in node.value:
            place = self.source.place(key_node.start_mark.index)
            if not isinstance(key_node, yaml.ScalarNode):
                raise PatternError("a field name must be a text", fix="write `name: value`", place=place)
            key = _joined(key_node.value)
            if key in built:
                raise PatternError(f"the field `{key}` stands twice", fix="delete one of them", place=place)
            built[key] = replace(self.build(value_node, depth + 1), key_start=key_node.start_mark.index)
        return built

    def scalar(self, node: yaml.ScalarNode) -> Plain:
        kind, text = node.tag.removeprefix("tag:yaml.org,2002:"), node.value
        place = self.source.place(node.start_mark.index)
        if kind == "str":
            return _joined(text)
        if kind == "null":
            return None
        if kind == "bool":
            return bool(text.lower() == "true")
        if kind == "int":
            if len(text) > 4_000:  # Python's own limit would be an exception; 64 bits are checked where it is used
                raise PatternError("an integer far outside 64 bits", fix="write a smaller one", place=place)
            return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
        if kind == "float":
            return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
        raise AssertionError(f"no resolver gives {node.tag}")


def _joined(text: str) -> str:
    """JSON writes characters beyond the first plane as two escapes: join them. A half alone is refused where it is."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return text
