"""New patterns that begin with what others have stored: they tell what they would have told from the first event on."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from support.long_tapes import Record, encoded
from support.random_cases import SETTINGS, RandomCase, number_in_order

from afa import Engine
from afa.changes import Changes
from afa.document import build_pattern
from afa.pattern import Pattern
from tests.query.test_native_queries import pattern_of, records_of

SEEDS = st.integers(0, 2**32)
STORING = build_pattern(
    {
        "pattern": "storing",
        "start": "a",
        "final": ["b"],
        "arcs": [{"id": "rare", "from": "a", "to": "b", "when": "e.x == 77"}],
    }
)


def events_alone(tape: list[Record]) -> list[Record]:
    """Without punctuations nothing is forgotten, without arcs patterns are what they were."""
    return [record for record in tape if record.get("op", "insert") in ("insert", "retract")]


def net(told: Changes, known: list[Record]) -> list[Record]:
    """The matches that stand, in a fixed order."""
    standing = {change["match"]: change for change in known}
    for change in told.to_records():
        if change["op"] == "insert":
            standing[change["match"]] = change
        else:
            del standing[change["match"]]
    return [standing[match] for match in sorted(standing)]


def check(seed: int, patterns: list[Pattern], tape: list[Record]) -> None:
    rng = Random(seed)
    cut = rng.randint(0, len(tape))
    stored, later = encoded(tape[:cut]), encoded(tape[cut:])
    before, steady = (Engine(those, net="batch") for those in ([STORING], patterns))
    before.feed(stored, partitions=[("t", 0)] * len(stored))
    expected = net(steady.feed(stored, partitions=[("t", 0)] * len(stored)), [])
    beginner = Engine(patterns, net="batch")
    kept = [(key, before.snapshot(key), [("t", cut)]) for key in before.keys()]  # noqa: SIM118
    rng.shuffle(kept)
    found = net(beginner.restore_keys(0, kept, tells=True), [])
    assert found == expected
    beginner.end_replay(0)
    changes = [engine.feed(later, partitions=[("t", 0)] * len(later)) for engine in (beginner, steady)]
    assert changes[0].to_records() == changes[1].to_records()


@settings(max_examples=100)
@given(seed=SEEDS)
def test_automata_begin_with_stored_events(seed: int) -> None:
    rng = Random(seed)
    case = RandomCase(seed, calm=True, length=rng.choice([30, 60]))
    odd = rng.choice([0.0, 0.3])
    patterns = [
        replace(build_pattern(document), **(rng.choice(SETTINGS) if rng.random() < odd else {}))
        for document in case.documents
    ]
    tape = events_alone(case.tape)
    if any(pattern.gap_free for pattern in patterns):
        number_in_order(rng, tape)
    for number, record in enumerate(tape):
        record.setdefault("id", f"i{number}")
    check(seed, patterns, tape)


@settings(max_examples=60)
@given(seed=SEEDS)
def test_queries_begin_with_stored_events(seed: int) -> None:
    rng = Random(seed)
    patterns = [pattern_of(seed + number, f"q{number}") for number in range(rng.choice([1, 2]))]
    check(seed, patterns, events_alone(records_of(rng.randrange(2**32), rng.choice([3, 8, 14]))))
