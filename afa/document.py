"""Pattern documents: YAML or JSON to checked patterns, every mistake with its line and column."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from keyword import iskeyword
from pathlib import Path as FilePath
from typing import Any, Final, TypeAlias
from unicodedata import normalize

from afa.arcs import build_arc
from afa.durations import FleetUnit, parse_duration
from afa.errors import PatternError, Place, did_you_mean
from afa.expression import ExpressionError, Type
from afa.expression.check import EVENT_ATTRIBUTES
from afa.pattern import Absence, Arc, CountWindow, Output, Pattern, Register, Time, TimeWindow, Window, epsilon_cycle
from afa.query import EventFields, Query, build_query, parse_query
from afa.query.compiler import compile_query
from afa.query.tree import EventSet
from afa.reading import Fault, Fields, Path, check_int64, check_name, type_name
from afa.source_text import SourceText, read_text

MAX_PROGRAM_ARCS: Final = 100_000
_FIELD_TYPES: Final = {
    "int": Type.INT,
    "float": Type.FLOAT,
    "bool": Type.BOOL,
    "string": Type.STRING,
    "list": Type.LIST,
}
_REGISTER_TYPES: Final = {int: Type.INT, float: Type.FLOAT, bool: Type.BOOL, str: Type.STRING}
_QUERY_ONLY: Final = ("absence", "encoding", "timeouts")
_AUTOMATON_ONLY: Final = ("within", "key", "start", "final", "registers", "arcs")
_OUTPUTS: Final[tuple[Output, ...]] = ("all", "non_overlapping", "earliest_maximal")
_ABSENCES: Final[tuple[Absence, ...]] = ("window_end", "speculative")
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_COUNT_WINDOW: Final = re.compile(r"([0-9]{1,18}) events?")

_Documented: TypeAlias = tuple[dict[str, Any], Pattern, Place]


def load_patterns(*files: str | FilePath, unit: FleetUnit = "ms") -> list[Pattern]:
    """Every pattern of the files, in order; `ts` counts `unit`. Raises PatternError, naming file, line and column."""
    return [pattern for _, pattern in load_documents(*files, unit=unit)]


def load_documents(*files: str | FilePath, unit: FleetUnit = "ms") -> list[tuple[dict[str, Any], Pattern]]:
    """The same, each with the plain value of its document, which is what is published of it."""
    loaded: dict[str, tuple[dict[str, Any], Pattern]] = {}
    for file in files:
        for document, pattern, place in _read_file(FilePath(file), unit):
            if pattern.name in loaded:
                raise PatternError(f"the pattern `{pattern.name}` is there twice", fix="rename one", place=place)
            loaded[pattern.name] = document, pattern
    return list(loaded.values())


def _read_file(file: FilePath, unit: FleetUnit) -> list[_Documented]:
    text = read_text(file, "a pattern file")
    if file.suffix == ".sase":
        return [_read_query_text(file, text, unit)]
    return _parse_documents(text, str(file), unit)


def _read_query_text(file: FilePath, text: str, unit: FleetUnit) -> _Documented:
    """A file that holds the text of a query alone, and gives it its name."""
    place = Place(str(file), 1, 1)
    try:
        name = _check_pattern_name(file.stem, ())
    except Fault as fault:
        raise PatternError(f"named after its file: {fault.what}", fix="rename the file", place=place) from None
    query = parse_query(text, file=str(file), unit=unit)
    return {"pattern": name, "query": text}, compile_query(query, name), place


def parse_patterns(text: str, file: str = "<text>", unit: FleetUnit = "ms") -> list[tuple[Pattern, Place]]:
    """The patterns of one text, each with its place. Raises PatternError."""
    return [(pattern, place) for _, pattern, place in _parse_documents(text, file, unit)]


def _parse_documents(text: str, file: str, unit: FleetUnit) -> list[_Documented]:
    source = SourceText(file, text)
    patterns = []
    for document in source.documents():
        try:
            plain = document.plain()
            patterns.append((plain, build_pattern(plain, unit), source.place(document.start)))
        except Fault as fault:
            raise PatternError(fault.what, fix=fault.fix, place=document.place_of(fault)) from None
    if not patterns:
        fix = "write a document that begins with `pattern: <name>`"
        raise PatternError("an empty pattern file", fix=fix, place=source.place(0))
    return patterns


def build_pattern(document: Any, unit: FleetUnit = "ms") -> Pattern:
    """A checked pattern from a document's plain value; `ts` counts `unit`. Raises Fault."""
    fields = Fields(document, (), "a pattern")
    fields.name("pattern")
    name = _check_pattern_name(fields.values["pattern"], ("pattern",))
    if fields.has("query"):
        return _query_pattern(fields, name, unit)
    _refuse_query_options(fields)
    declared = _events(fields)
    event_fields = _merged(declared)
    registers = _registers(fields)
    frame = Pattern(
        name=name,
        start=fields.name("start"),
        finals=_finals(fields),
        registers=registers,
        arcs=(),
        window=_window(fields, unit),
        key_field=_key_field(fields, event_fields),
        fields=event_fields,
        event_types=tuple(declared or ()),
        speculation=_speculation(fields, unit),
        hold_output=fields.choice("hold", ("none", "output"), "none") == "output",
        gap_free=fields.choice("sequence", ("none", "gap_free"), "none") == "gap_free",
        output=fields.choice("output", _OUTPUTS, "all"),
        sources=_sources(fields),
    )
    _tests(fields)
    arcs = _arcs(fields, frame)
    fields.done()
    return _checked_automaton(frame, arcs, fields)


def _check_pattern_name(name: object, path: Path) -> str:
    checked = check_name(name, path, "pattern", "/@")
    if checked.startswith("!"):
        raise Fault(path, "a pattern's name must not begin with `!`", "choose another name")
    return checked


def _query_pattern(fields: Fields, name: str, unit: FleetUnit) -> Pattern:
    """The automaton of a query document."""
    for other in _AUTOMATON_ONLY:
        if fields.has(other):
            fix = "write WITHIN in the query" if other == "within" else "delete it: the query says it"
            raise Fault((other,), f"`{other}` belongs to automata, not to queries", fix, at_key=True)
    text = fields.need("query", str)
    declared = _events(fields)
    try:
        query = build_query(text, declared, unit)
    except ExpressionError as error:
        raise Fault(("query",), error.what, error.fix, offset=error.offset) from None
    compiled = compile_query(query, name)
    assert compiled.query is not None
    pattern = replace(
        compiled,
        fields=_merged(declared),
        event_types=tuple(declared or ()),
        speculation=_speculation(fields, unit),
        hold_output=fields.choice("hold", ("none", "output"), "none") == "output",
        gap_free=fields.choice("sequence", ("none", "gap_free"), "none") == "gap_free",
        sources=_sources(fields),
        output=_query_output(fields, query),
        query=replace(
            compiled.query,
            absence=fields.choice("absence", _ABSENCES, "window_end"),
            timeouts=_timeouts(fields, query),
            compressed=fields.choice("encoding", ("verbose", "compressed"), "verbose") == "compressed",
        ),
    )
    _tests(fields)
    fields.done()
    return pattern


def _query_output(fields: Fields, query: Query) -> Output:
    output = fields.choice("output", _OUTPUTS, "all")
    if output == "earliest_maximal":
        if not any(isinstance(component, EventSet) for component in query.components):
            fix = "write `all` or `non_overlapping`"
            raise Fault(("output",), "`earliest_maximal` belongs to queries with a set", fix)
        _check_time_window("output", output, query)
    return output


def _timeouts(fields: Fields, query: Query) -> bool:
    timeouts = bool(fields.take("timeouts", bool))
    if timeouts:
        _check_time_window("timeouts", "true", query)
    return timeouts


def _check_time_window(name: str, value: str, query: Query) -> None:
    if not isinstance(query.window, TimeWindow):
        what = f"`{name}: {value}` needs a window of time"
        raise Fault((name,), what, "write `WITHIN 1 hour` in the query, or delete it", at_key=True)


def _refuse_query_options(fields: Fields) -> None:
    for name in _QUERY_ONLY:
        if fields.has(name):
            raise Fault((name,), f"`{name}` belongs to queries", "delete it from this automaton", at_key=True)
    if fields.values.get("output") == "earliest_maximal":
        raise Fault(("output",), "`earliest_maximal` belongs to queries with a set", "write `all`")


def _finals(fields: Fields) -> frozenset[str]:
    states = _names(fields, "final")
    return frozenset(states or ())


def _names(fields: Fields, name: str) -> tuple[str, ...] | None:
    values = fields.take(name, list, f"write `{name}: [...]`")
    if values is None:
        return None
    return tuple(check_name(value, (*fields.path, name, index), name) for index, value in enumerate(values))


def _sources(fields: Fields) -> tuple[str, ...] | None:
    topics = _names(fields, "sources")
    for index, topic in enumerate(topics or ()):
        if not _TOPIC.fullmatch(topic) or topic in (".", ".."):
            raise Fault(("sources", index), f"`{topic}` is not a topic name", "use letters, digits, `.`, `_` and `-`")
    if topics is not None and len(set(topics)) != max(len(topics), 1):
        raise Fault(("sources",), "`sources` names no topic, or one twice", "leave it out for all sources of the fleet")
    return topics


def _events(fields: Fields) -> EventFields | None:
    """The declared field paths of each event type, with their types."""
    declared = fields.take("events", dict)
    if declared is None:
        return None
    for event_type in declared:
        check_name(event_type, ("events", event_type), "event type")
    return {event_type: dict(_field_types(body, ("events", event_type))) for event_type, body in declared.items()}


def _merged(declared: EventFields | None) -> Mapping[tuple[str, ...], Type] | None:
    """Every declared field path with the type that all declaring event types agree on."""
    if declared is None:
        return None
    merged: dict[tuple[str, ...], Type] = {}
    for fields in declared.values():
        for path, kind in fields.items():
            merged[path] = _merge(merged.get(path, kind), kind)
    return merged


def _field_types(body: object, at: Path) -> list[tuple[tuple[str, ...], Type]]:
    found: list[tuple[tuple[str, ...], Type]] = []
    for name, kind in Fields(body, at, "the fields of an event type").values.items():
        if isinstance(kind, dict):
            found += [((name, *path), inner) for path, inner in _field_types(kind, (*at, name))]
        elif isinstance(kind, str) and kind in _FIELD_TYPES:
            found.append(((name,), _FIELD_TYPES[kind]))
        else:
            hint = did_you_mean(str(kind), _FIELD_TYPES, f"write one of {', '.join(_FIELD_TYPES)}")
            raise Fault((*at, name), f"{kind!r} is not a field type", hint)
    return found


def _merge(one: Type, other: Type) -> Type:
    if one == other:
        return one
    return Type.FLOAT if {one, other} == {Type.INT, Type.FLOAT} else Type.ANY


def _registers(fields: Fields) -> tuple[Register, ...]:
    declared = fields.take("registers", dict) or {}
    registers = []
    for name, initial in sorted(declared.items()):
        at = ("registers", name)
        # Python reads identifiers in this normal form, so another spelling could never be named.
        if not name.isidentifier() or iskeyword(name) or normalize("NFKC", name) != name:
            raise Fault(
                at,
                f"the register name `{name}` is not an identifier",
                "use letters, digits and _",
                at_key=True,
            )
        kind = _REGISTER_TYPES.get(type(initial))
        if kind is None:
            raise Fault(
                at, f"a register starts as int, float, bool or text, not as {type_name(initial)}", "write 0 or 0.0"
            )
        if kind is Type.INT:
            check_int64(initial, at, "the initial value")
        if kind is Type.FLOAT and not math.isfinite(initial):
            raise Fault(at, "a register cannot start as infinity or NaN", "write a finite number")
        if kind is Type.STRING and any("\ud800" <= character <= "\udfff" for character in initial):
            raise Fault(at, "half of a surrogate pair", "write the character itself")
        registers.append(Register(name, kind, initial + 0.0 if kind is Type.FLOAT else initial))
    return tuple(registers)


def _window(fields: Fields, unit: FleetUnit) -> Window:
    value = fields.any("within")
    if value is None:
        if fields.has("within"):
            raise Fault(("within",), "`within` is empty", "leave it out for no window")
        return None
    window: Window
    if isinstance(value, str) and (found := _COUNT_WINDOW.fullmatch(value)):
        window, size = CountWindow(int(found[1])), int(found[1])
    else:
        size = _length(value, ("within",), 'write 2000, "5s" or "500 events"', unit)
        window = TimeWindow(size, unit)
    if size < 1:
        raise Fault(("within",), "a window must be at least 1", "leave `within` out for no window")
    check_int64(size, ("within",), "`within`")
    return window


def _length(value: object, path: Path, fix: str, unit: FleetUnit) -> int:
    if type(value) is int:
        return value
    if isinstance(value, str):
        try:
            return parse_duration(value, unit)
        except ValueError as error:
            raise Fault(path, str(error), fix) from None
    raise Fault(path, f"`{path[-1]}` is a whole number or a duration, not {type_name(value)}", fix)


def _speculation(fields: Fields, unit: FleetUnit) -> Time:
    if not fields.has("speculation"):
        return math.inf
    return read_speculation(fields.any("speculation"), unit)


def read_speculation(value: object, unit: FleetUnit = "ms") -> Time:
    """The cleanse factor: `inf`, a number or a duration. Raises Fault."""
    if value in ("inf", math.inf):
        return math.inf
    fix = 'write inf, 0 or "500ms"'
    length = _length(value, ("speculation",), fix, unit)
    if length < 0:
        raise Fault(("speculation",), "`speculation` must not be negative", fix)
    return length


def _key_field(fields: Fields, event_fields: Mapping[tuple[str, ...], Type] | None) -> tuple[str, ...] | None:
    text = fields.take("key", str)
    if text is None:
        return None
    path = tuple(check_name(step, ("key",), "key") for step in text.split("."))
    if path[0] in EVENT_ATTRIBUTES:
        if len(path) > 1:
            raise Fault(("key",), f"`{path[0]}` is the event's own and has no fields", f"write `key: {path[0]}`")
        return path
    if event_fields is not None and path not in event_fields:
        known = [".".join(known) for known in event_fields]
        raise Fault(("key",), f"no event type has the field `{text}`", did_you_mean(text, known, "declare it"))
    return path


def _tests(fields: Fields) -> None:
    """The tests inside a document are read by the command that runs them; here only their shape is kept right."""
    for index, body in enumerate(fields.take("tests", list) or []):
        test = Fields(body, ("tests", index), "a test")
        test.name("name")
        test.need("tape", list)
        test.need("matches", list)
        test.done()


def _arcs(fields: Fields, frame: Pattern) -> tuple[Arc, ...]:
    bodies = fields.need("arcs", list, "write `arcs:` with one `- {id: …, from: …, to: …}` per arc")
    if len(bodies) > MAX_PROGRAM_ARCS:
        raise Fault(("arcs",), f"{len(bodies):,} arcs; the limit max_program_arcs is {MAX_PROGRAM_ARCS:,}")
    arcs: dict[str, Arc] = {}
    for index, body in enumerate(bodies):
        arc = build_arc(body, frame, ("arcs", index), lifetime_inside=True)
        if arc.id in arcs:
            raise Fault(("arcs", index, "id"), f"the arc id `{arc.id}` stands twice", "give each arc its own id")
        arcs[arc.id] = arc
    return tuple(arcs.values())


def _checked_automaton(frame: Pattern, arcs: tuple[Arc, ...], fields: Fields) -> Pattern:
    named = {state for arc in arcs for state in (arc.source, arc.target)}
    fix = f"the arcs name: {', '.join(sorted(named)) or 'none'}"
    if frame.start not in named:
        raise Fault(("start",), f"no arc names the start state `{frame.start}`", did_you_mean(frame.start, named, fix))
    for index, state in enumerate(fields.values.get("final", ())):
        if state not in named:
            raise Fault(("final", index), f"no arc names the final state `{state}`", did_you_mean(state, named, fix))
    finals = frame.finals | {arc.target for arc in arcs if arc.final}
    if not finals:
        raise Fault((), "the pattern has no final state", "add `final: [<state>]`")
    cycle = epsilon_cycle(arcs)
    if cycle:
        index = next(i for i, arc in enumerate(arcs) if arc.epsilon and arc.source == cycle[0])
        what = f"a cycle of epsilon arcs: {' -> '.join([*cycle, cycle[0]])}"
        raise Fault(("arcs", index), what, "let one of them consume an event")
    return Pattern(**{**{name: getattr(frame, name) for name in frame.__slots__}, "arcs": arcs, "finals": finals})
