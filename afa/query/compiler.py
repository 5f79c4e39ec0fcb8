"""A query as an automaton, by the steps of SASE+ section 4: a state per set of variables begun, the value vector as
registers, each condition on the arc that binds its last variable, proceeding folded into beginning.

    start --begin a--> a --begin b--> b        a --take a--> a        a --ignore--> a

A state is named by the component that is being bound and, in an event set, by the variables that it has begun. After an
occurrence of a negation a run that may still take events waits in a state of its own (`a!`), which it leaves only by
taking one; a run that may not is ended by it. A last component that goes on matches only at events that it takes: a run
that has ignored one since waits in a state that is not final (`a*`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from afa.expression import tree
from afa.expression.text import ARCS
from afa.expression.tree import Expression, Node, RegisterField, Type
from afa.pattern import Arc, CompiledQuery, Conjunct, CountWindow, Pattern, Register
from afa.query.printer import print_conjuncts, print_query
from afa.query.tree import (
    Aggregate,
    At,
    Component,
    EventValue,
    Kleene,
    Length,
    Negated,
    Over,
    Query,
    Reference,
    Single,
    Strategy,
    leading_negations,
    members,
    references,
)
from afa.query.value_vector import ONE, ValueVector, field

START = "start"
_MATCH = "match"
TRUE = tree.Literal(Type.BOOL, True)
_SEEN = "events"  # of the partition since the start event, for windows in events


@dataclass(frozen=True, slots=True)
class _State:
    """The component that is being bound, and its variables that have events."""

    at: int
    begun: tuple[str, ...]
    mark: Literal["", "!", "*"] = ""  # blocked by a negation; waiting after a match

    @property
    def name(self) -> str:
        begun = ",".join(self.begun)
        return f"{begun}{',' if begun in (START, _MATCH) else ''}{self.mark}"  # a variable may be called so too


@dataclass(frozen=True, slots=True)
class _Placed:
    """A condition at the component of its last variable."""

    number: int  # among the conjuncts of the query
    expression: Node
    found: tuple[Reference, ...]
    here: frozenset[str]  # its variables of that component
    is_whole: bool  # about all events of a Kleene variable there


@dataclass(frozen=True, slots=True)
class _Sketch:
    """An arc before the registers are known."""

    id: str
    source: str
    target: str
    fence: Node
    binds: str | None = None
    is_first: bool = False
    epsilon: bool = False
    conjuncts: frozenset[int] = frozenset()  # of the query, that its fence tests


def compile_query(query: Query, name: str) -> Pattern:
    """The automaton of a checked query."""
    return _Compiler(query).pattern(name)


class _Compiler:
    def __init__(self, query: Query) -> None:
        self.query = query
        self.vector = ValueVector()
        self.components = query.positive
        self.attributes = {f"[{'.'.join(e.path)}]": e.path for e in query.equivalences}
        self.counts = isinstance(query.window, CountWindow) and bool(self.attributes)
        self.component_of = {name: at for at, part in enumerate(self.components) for name in _names(part)}
        self.placed: list[list[_Placed]] = [[] for _ in self.components]
        self.of_negation: dict[str, list[tuple[int, Node]]] = {}
        for number, condition in enumerate(query.conditions, len(query.equivalences)):
            self._place(number, condition.expression)
        self.negations_after = self._find_negations()
        self.final = self._final_state()

    def _place(self, number: int, expression: Node) -> None:
        """A condition belongs to the negation that it names, or to its last component."""
        found = tuple(references(expression))
        for name in {reference.variable for reference in found}:
            if name not in self.component_of:
                self.of_negation.setdefault(name, []).append((number, expression))
                return
        at = max((self.component_of[reference.variable] for reference in found), default=0)
        here = frozenset(reference.variable for reference in found if self.component_of[reference.variable] == at)
        kleene = {member.variable for member in members(self.components[at]) if isinstance(member, Kleene)}
        is_whole = any(reference.variable in kleene and _needs_all(reference) for reference in found)
        self.placed[at].append(_Placed(number, expression, found, here, is_whole))

    def _find_negations(self) -> list[list[Negated]]:
        """Those after each component and before the next one."""
        after: list[list[Negated]] = []
        for component in self.query.components:
            if not isinstance(component, Negated):
                after.append([])
            elif after:
                after[-1].append(component)
        return after

    def pattern(self, name: str) -> Pattern:
        sketches = [*self._start_arcs(), *(arc for state in self._states() for arc in self._arcs_of(state))]
        returns = tuple((item.name, self._translated(item.expression)) for item in self.query.returns)
        leading = self._forbidden(leading_negations(self.query.components))
        trailing = self._forbidden(leading_negations(self.query.components[::-1]))
        registers = self._registers()
        arcs = tuple(self._arc(sketch) for sketch in sketches)
        window = self.query.window
        counted = window.events if self.counts and isinstance(window, CountWindow) else None
        return Pattern(
            name=name,
            start=START,
            finals=frozenset({self.final}),
            registers=registers,
            arcs=arcs,
            window=window if counted is None else None,
            query=CompiledQuery(
                variables=tuple(name for component in self.components for name in _names(component)),
                components=tuple(map(_names, self.components)),
                partition=tuple(self.attributes),
                returns=tuple((name, _expression(node)) for name, node in returns),
                leading=tuple(map(_expression, leading)),
                trailing=tuple(map(_expression, trailing)),
                counted=counted,
                text=print_query(self.query),
                conjuncts=self._conjuncts(sketches),
            ),
        )

    def _conjuncts(self, sketches: list[_Sketch]) -> tuple[Conjunct, ...]:
        """Where each conjunct of the query ended up."""
        absent: dict[int, Literal["before", "after"]] = {}
        for negation in leading_negations(self.query.components):
            absent |= {number: "before" for number, _ in self.of_negation.get(negation.variable, ())}
        for negation in leading_negations(self.query.components[::-1]):
            absent |= {number: "after" for number, _ in self.of_negation.get(negation.variable, ())}
        texts = print_conjuncts(self.query)
        arcs: list[list[str]] = [[] for _ in texts]
        for sketch in sketches:
            for number in sketch.conjuncts:
                arcs[number].append(sketch.id)
        return tuple(Conjunct(text, tuple(arcs[number]), absent.get(number)) for number, text in enumerate(texts))

    def _forbidden(self, negations: list[Negated]) -> list[Node]:
        return [_all([*self._own_partition(), self._occurrence(negation)]) for negation in negations]

    def _registers(self) -> tuple[Register, ...]:
        named = {kept.name: kept.register.type for kept in self.vector.kept} | dict.fromkeys(self.attributes, Type.ANY)
        if self.counts:
            named[_SEEN] = Type.INT
        return tuple(Register(name, kind, 0 if kind is Type.INT else None) for name, kind in sorted(named.items()))

    def _states(self) -> Iterator[_State]:
        for at, component in enumerate(self.components):
            names = _names(component)
            for size in range(1, len(names) + 1):
                for begun in combinations(names, size):
                    state = _State(at, begun)
                    yield state
                    if self._can_be_blocked(state):
                        yield _State(at, begun, "!")
                    if self._goes_on(state):
                        yield _State(at, begun, "*")

    # ---------------------------------------------------------------- the arcs of a state

    def _start_arcs(self) -> Iterator[_Sketch]:
        for member in members(self.components[0]):
            target = _State(0, (member.variable,))
            fence = _all([*self._own_partition(at_start=True), *self._binding(member, target, is_first=True)])
            yield self._bind(START, target, fence, member, is_first=True)

    def _arcs_of(self, state: _State) -> Iterator[_Sketch]:
        if self._is_last(state) and self._full(state) == TRUE:
            return
        takes = [*self._takes(state)]
        begins = [*self._begins(state)]
        yield from takes
        yield from begins
        yield from self._ignores(state, takes, begins)
        yield from self._match(state)

    def _takes(self, state: _State) -> Iterator[_Sketch]:
        """The current component binds another event."""
        for member in members(self.components[state.at]):
            is_first = member.variable not in state.begun
            if isinstance(member, Single) and not is_first:
                continue
            room = [] if is_first else self._room(member)
            begun = {*state.begun, member.variable}
            target = _State(state.at, tuple(name for name in _names(self.components[state.at]) if name in begun))
            binding = self._binding(member, target, is_first=is_first)
            fence = _all([*self._own_partition(), *self._in_window(), *room, *binding])
            yield self._bind(state.name, target, fence, member, is_first=is_first)

    def _begins(self, state: _State) -> Iterator[_Sketch]:
        """The next component binds its first event."""
        if not self._is_begun(state) or self._is_last(state) or state.mark == "!":
            return
        for member in members(self.components[state.at + 1]):
            target = _State(state.at + 1, (member.variable,))
            binding = self._binding(member, target, is_first=True)
            fence = _all([*self._own_partition(), *self._in_window(), *self._leaving(state), *binding])
            yield self._bind(state.name, target, fence, member, is_first=True)

    def _bind(self, source: str, target: _State, fence: Node, member: Single | Kleene, *, is_first: bool) -> _Sketch:
        verb = "begin" if is_first else "take"
        name = f"{source}:{verb}-{member.variable}"
        placed = self._ready(member, target, is_first=is_first)
        if is_first and len(target.begun) == 1 and target.at:
            placed += self._whole(target.at - 1)  # the component before is left
        tested = self._of_partition() | {one.number for one in placed}
        return _Sketch(name, source, target.name, fence, member.variable, is_first, conjuncts=tested)

    def _ignores(self, state: _State, takes: list[_Sketch], begins: list[_Sketch]) -> Iterator[_Sketch]:
        """What lets an event pass: one of another partition, and one that the strategy lets a run ignore."""
        waiting = _State(state.at, state.begun, "*" if self._goes_on(state) else state.mark).name
        own = self._own_partition()
        passes = self._passes(state, takes, begins)
        occurs = [self._occurrence(negation) for negation in self._negations_after(state)]
        if passes == TRUE and not occurs and not self.counts:
            yield _Sketch(f"{state.name}:ignore", state.name, waiting, TRUE)
            return
        if own and self.query.strategy is not Strategy.STRICT_CONTIGUITY:
            others = _isnt(_all(own))
            yield _Sketch(f"{state.name}:ignore-others", state.name, waiting, others, conjuncts=self._of_partition())
        if passes is None:
            return
        allowed = [*own, *self._in_window(), passes]
        quiet = [] if state.mark == "!" else [_isnt(occurrence) for occurrence in occurs]
        tested = self._of_partition() | (self._of_negations(state) if quiet else frozenset())
        fence = _all([*allowed, *quiet])
        yield _Sketch(f"{state.name}:ignore", state.name, waiting, fence, conjuncts=tested)
        if quiet and self._can_be_blocked(state):
            blocked, fence = _State(state.at, state.begun, "!").name, _all([*allowed, _any(occurs)])
            yield _Sketch(f"{state.name}:block", state.name, blocked, fence, conjuncts=tested)

    def _passes(self, state: _State, takes: list[_Sketch], begins: list[_Sketch]) -> Node | None:
        """When a run may ignore an event of its partition; None: never."""
        full = self._full(state)
        if self.query.strategy is Strategy.SKIP_TILL_ANY_MATCH:
            return TRUE if full is None or not self._is_last(state) else tree.Not(Type.BOOL, full)
        if self.query.strategy is not Strategy.SKIP_TILL_NEXT_MATCH:
            return None
        not_taken = _all([_isnt(arc.fence) for arc in takes])
        if full is None:
            return not_taken
        while_open = _all([tree.Not(Type.BOOL, full), not_taken])
        if self._is_last(state):
            return while_open
        not_begun = _all([_isnt(arc.fence) for arc in begins])
        return not_begun if full == TRUE else _any([_all([full, not_begun]), while_open])

    def _match(self, state: _State) -> Iterator[_Sketch]:
        """A last component that goes on matches whenever it has what it needs."""
        if not self._is_last(state) or not self._is_begun(state) or state.mark or state.name == self.final:
            return
        tested, fence = frozenset(one.number for one in self._whole(state.at)), _all(self._leaving(state))
        yield _Sketch(f"{state.name}:match", state.name, self.final, fence, epsilon=True, conjuncts=tested)

    def _final_state(self) -> str:
        """The last state itself if nothing more has to hold there."""
        last = len(self.components) - 1
        complete = _State(last, _names(self.components[last]))
        return complete.name if not self._leaving(complete) else _MATCH

    # ---------------------------------------------------------------- conditions

    def _binding(self, member: Single | Kleene, target: _State, *, is_first: bool) -> list[Node]:
        """What must hold of an event for it to be bound: its type, and the conditions that sit here."""
        ready = self._ready(member, target, is_first=is_first)
        conditions = [self._translated(placed.expression, member.variable, is_first) for placed in ready]
        return _type_test(member.event_type) + conditions

    def _ready(self, member: Single | Kleene, target: _State, *, is_first: bool) -> list[_Placed]:
        """The conditions that are tested when the variable binds an event and the run comes to this state."""
        placed = [one for one in self.placed[target.at] if member.variable in one.here and not one.is_whole]
        return [one for one in placed if one.here <= {*target.begun} and _applies(one.found, member, is_first)]

    def _whole(self, at: int) -> list[_Placed]:
        """The conditions that are tested when the component is left."""
        return [placed for placed in self.placed[at] if placed.is_whole]

    def _of_partition(self) -> frozenset[int]:
        return frozenset(range(len(self.query.equivalences)))

    def _of_negations(self, state: _State) -> frozenset[int]:
        named = [negation.variable for negation in self._negations_after(state)]
        return frozenset(number for name in named for number, _ in self.of_negation.get(name, ()))

    def _leaving(self, state: _State) -> list[Node]:
        """What must hold of the current component for the next one to begin, or for a match."""
        tests: list[Node] = []
        for member in members(self.components[state.at]):
            if isinstance(member, Kleene) and member.least > 1:
                least = tree.Literal(Type.INT, member.least)
                tests.append(tree.Comparison(Type.BOOL, ">=", self.vector.length(member.variable), least))
        return tests + [self._translated(placed.expression) for placed in self._whole(state.at)]

    def _occurrence(self, negation: Negated) -> Node:
        """Whether an event of the partition is what a negation forbids."""
        own = self.of_negation.get(negation.variable, [])
        tests = [self._translated(node, negation.variable, is_first=True) for _, node in own]
        return _all([*_type_test(negation.event_type), *tests])

    def _negations_after(self, state: _State) -> list[Negated]:
        """Those between the component and the next one, where it may be left."""
        if not self._is_begun(state) or self._is_last(state):
            return []
        return self.negations_after[state.at]

    def _can_be_blocked(self, state: _State) -> bool:
        return bool(self._negations_after(state)) and self._full(state) != TRUE

    def _is_last(self, state: _State) -> bool:
        return state.at == len(self.components) - 1

    def _goes_on(self, state: _State) -> bool:
        """Whether it may match and then bind more."""
        return self._is_last(state) and self._is_begun(state) and self._full(state) != TRUE

    def _is_begun(self, state: _State) -> bool:
        return state.begun == _names(self.components[state.at])

    def _full(self, state: _State) -> Node | None:
        """When no variable of the component takes another event; None: never."""
        if not self._is_begun(state):
            return None
        tests: list[Node] = []
        for member in members(self.components[state.at]):
            if isinstance(member, Kleene):
                if member.most is None:
                    return None
                most = tree.Literal(Type.INT, member.most)
                tests.append(tree.Comparison(Type.BOOL, ">=", self.vector.length(member.variable), most))
        return _all(tests)

    def _room(self, member: Single | Kleene) -> list[Node]:
        if isinstance(member, Single) or member.most is None:
            return []
        most = tree.Literal(Type.INT, member.most)
        return [tree.Comparison(Type.BOOL, "<", self.vector.length(member.variable), most)]

    def _own_partition(self, *, at_start: bool = False) -> list[Node]:
        """`[attr]` as at the start event; there, that it is a value that can be compared at all."""
        return [
            tree.Comparison(
                Type.BOOL, "==", field(path), field(path) if at_start else RegisterField(Type.ANY, register)
            )
            for register, path in self.attributes.items()
        ]

    def _in_window(self) -> list[Node]:
        if not self.counts:
            return []
        assert isinstance(self.query.window, CountWindow)
        most = tree.Literal(Type.INT, self.query.window.events)
        return [tree.Comparison(Type.BOOL, "<", RegisterField(Type.INT, _SEEN), most)]

    # ---------------------------------------------------------------- from sketches to arcs

    def _arc(self, sketch: _Sketch) -> Arc:
        transfer: dict[str, Node] = {}
        if sketch.binds is not None:
            transfer |= self.vector.transfer(sketch.binds, is_first=sketch.is_first)
        if sketch.source == START:
            transfer |= {register: field(path) for register, path in self.attributes.items()}
        if self.counts and not sketch.epsilon and not sketch.id.endswith(":ignore-others"):
            transfer[_SEEN] = tree.Arithmetic(Type.INT, "+", RegisterField(Type.INT, _SEEN), ONE)
        return Arc(
            id=sketch.id,
            source=sketch.source,
            target=sketch.target,
            fence=_expression(sketch.fence),
            transfer=tuple((name, _expression(node)) for name, node in sorted(transfer.items())),
            epsilon=sketch.epsilon,
            binds=sketch.binds,
        )

    def _translated(self, node: Node, current: str | None = None, is_first: bool = False) -> Node:
        """A condition as an arc sees it."""
        return tree.replaced(
            node,
            lambda below: (
                self.vector.read(below, current, is_first)
                if isinstance(below, EventValue | Aggregate | Length)
                else None
            ),
        )


def _type_test(event_type: str | None) -> list[Node]:
    if event_type is None:
        return []
    own = tree.EventAttribute(Type.STRING, "type")
    return [tree.Comparison(Type.BOOL, "==", own, tree.Literal(Type.STRING, event_type))]


def _applies(found: Iterable[Reference], member: Single | Kleene, is_first: bool) -> bool:
    """Whether a condition is about the first event of a variable, or about those after it."""
    own = [reference for reference in found if reference.variable == member.variable]
    if isinstance(member, Single):
        return True
    earlier = any(_needs_earlier(reference) for reference in own)
    current = any(isinstance(reference, EventValue) and reference.at is At.CURRENT for reference in own)
    first = any(isinstance(reference, EventValue) and reference.at is At.FIRST for reference in own)
    if earlier or (current and first):
        return not is_first
    return current or is_first


def _needs_earlier(reference: Reference) -> bool:
    if isinstance(reference, Aggregate):
        return reference.over is Over.BEFORE
    return isinstance(reference, EventValue) and reference.at is At.PREVIOUS


def _needs_all(reference: Reference) -> bool:
    if isinstance(reference, EventValue):
        return reference.at is At.LAST
    return isinstance(reference, Length) or reference.over is Over.ALL


def _names(component: Component) -> tuple[str, ...]:
    return tuple(member.variable for member in members(component))


def _all(tests: Iterable[Node]) -> Node:
    flat = [part for test in tests for part in (test.operands if isinstance(test, tree.And) else (test,))]
    needed = tuple(part for part in flat if part != TRUE)
    return tree.And(Type.BOOL, needed) if len(needed) > 1 else needed[0] if needed else TRUE


def _any(tests: Iterable[Node]) -> Node:
    flat = tuple(part for test in tests for part in (test.operands if isinstance(test, tree.Or) else (test,)))
    return tree.Or(Type.BOOL, flat) if len(flat) > 1 else flat[0]


def _isnt(test: Node) -> Node:
    """False or unknown: what is not known to be so is not."""
    if test == TRUE:
        return tree.Literal(Type.BOOL, False)
    return tree.Choice(Type.BOOL, tree.UnknownTest(Type.BOOL, test), TRUE, tree.Not(Type.BOOL, test))


def _expression(node: Node) -> Expression:
    return Expression(ARCS.text(node), node)
