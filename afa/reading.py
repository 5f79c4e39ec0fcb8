"""Reading untrusted mappings field by field, strictly; what is wrong is said with its path, for a place in a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias, TypeVar

from afa.errors import did_you_mean, one_of
from afa.expression.tree import INT_MAX, INT_MIN

Path: TypeAlias = tuple[str | int, ...]
Allowed = TypeVar("Allowed", bound=str)
MAX_NAME_CHARACTERS: Final = 255

_TYPE_NAMES: Final = {
    str: "a text",
    int: "an integer",
    float: "a float",
    bool: "true or false",
    list: "a list",
    dict: "a mapping",
}


class Fault(Exception):  # noqa: N818 - always turned into a PatternError or RecordError
    """Something is wrong at `path` of a document or record (at `offset` of the text there, if given)."""

    def __init__(
        self, path: Path, what: str, fix: str = "", *, offset: int | None = None, at_key: bool = False
    ) -> None:
        super().__init__(what)
        self.path = path
        self.what = what
        self.fix = fix
        self.offset = offset
        self.at_key = at_key


def type_name(value: object) -> str:
    return "null" if value is None else _TYPE_NAMES.get(type(value), type(value).__name__)


class Fields:
    """One mapping. Every field is asked for by name; `done` refuses those that nobody asked for."""

    def __init__(self, value: object, path: Path, what: str) -> None:
        if not isinstance(value, dict):
            fix = "write fields with their names: `name: value`, or in JSON { }"
            raise Fault(path, f"{what} must be a mapping, this is {type_name(value)}", fix)
        self.values: dict[str, Any] = value
        self.path = path
        self.what = what
        self._known: set[str] = set()

    def take(self, name: str, kind: type, fix: str = "") -> Any:
        """The field, of exactly this type (a bool is no int); None if it is not there."""
        self._known.add(name)
        if name not in self.values:
            return None
        value = self.values[name]
        if type(value) is not kind:
            what = f"`{name}` must be {_TYPE_NAMES[kind]}, this is {type_name(value)}"
            raise Fault((*self.path, name), what, fix or f"write {_TYPE_NAMES[kind]}")
        return value

    def need(self, name: str, kind: type, fix: str = "") -> Any:
        value = self.take(name, kind, fix)
        if value is None:
            raise Fault(self.path, f"{self.what} needs `{name}`", fix or f"add the field `{name}`")
        return value

    def any(self, name: str) -> Any:
        self._known.add(name)
        return self.values.get(name)

    def has(self, name: str) -> bool:
        self._known.add(name)
        return name in self.values

    def name(self, name: str, *, forbidden: str = "") -> str:
        """A needed field that names something."""
        self.take(name, str, "write it in quotes if it looks like a number")
        self.need(name, str)
        return check_name(self.values[name], (*self.path, name), name, forbidden)

    def choice(self, name: str, allowed: Sequence[Allowed], default: Allowed) -> Allowed:
        value = self.take(name, str)
        if value is None:
            return default
        for one in allowed:
            if one == value:
                return one
        hint = did_you_mean(value, allowed, f"write {one_of(allowed)}")
        raise Fault((*self.path, name), f"`{name}` is {one_of(allowed)}, not `{value}`", hint)

    def done(self) -> None:
        for name in self.values:
            if name not in self._known:
                hint = did_you_mean(name, self._known, f"it has: {', '.join(sorted(self._known))}")
                raise Fault((*self.path, name), f"{self.what} has no field `{name}`", hint, at_key=True)


def check_name(value: object, path: Path, what: str, forbidden: str = "") -> str:
    if not isinstance(value, str):
        raise Fault(path, f"`{what}` must be a text, this is {type_name(value)}", "write it in quotes")
    if not value or len(value) > MAX_NAME_CHARACTERS:
        what = f"`{what}` must have 1 to {MAX_NAME_CHARACTERS} characters, this has {len(value)}"
        raise Fault(path, what, "choose a shorter name" if value else "give it a name")
    for offset, character in enumerate(value):
        if ord(character) < 32 or ord(character) == 127 or "\ud800" <= character <= "\udfff" or character in forbidden:
            fix = f"leave out {' '.join(forbidden)}" if character in forbidden else "delete it"
            raise Fault(path, f"`{what}` must not contain {character!r}", fix, offset=offset)
    return value


def check_int64(value: int, path: Path, what: str) -> int:
    if not INT_MIN <= value <= INT_MAX:
        raise Fault(path, f"{what} is outside 64 bits", f"it must lie between {INT_MIN} and {INT_MAX}")
    return value
