"""State by partition: whoever keeps snapshots of dirty keys can go on where a crashed engine was."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.long_tapes import Record, arc_change
from support.random_cases import SETTINGS, RandomCase, number_in_order
from support.state_topic import StateTopic

from afa.document import build_pattern

SEEDS = st.integers(0, 2**32)


def tape_of(case: RandomCase, number: int) -> list[Record]:
    """What of a case is for one partition: no conditions of punctuations, which belong to no key."""
    records = [record for record in case.tape if "arc" not in record.get("op", "") and "when" not in record]
    return [record | ({"key": f"{record['key']} of {number}"} if "key" in record else {}) for record in records]


def automata(seed: int) -> tuple[StateTopic, list[Record]]:
    """Automata, tapes of two or three partitions, and arc records."""
    rng = Random(seed)
    case = RandomCase(seed, calm=True, length=rng.choice([30, 60, 120]))
    odd = rng.choice([0.0, 0.3, 0.8])
    patterns = [
        replace(build_pattern(document), **(rng.choice(SETTINGS) if rng.random() < odd else {}))
        for document in case.documents
    ]
    others = [RandomCase(rng.randrange(2**32), calm=True, length=case.length) for _ in range(rng.choice([1, 2]))]
    tapes = [tape_of(each, number) for number, each in enumerate([case, *others])]
    if any(pattern.gap_free for pattern in patterns):
        for tape in tapes:
            number_in_order(rng, tape)
    arcs: list[Record] = []
    for number in range(rng.choice([0, 0, 3, 8])):
        arcs.append(arc_change(rng, rng.choice(case.documents), number, 40))
        if rng.random() < 0.2:
            arcs.append({"op": "arc-punctuation", "ts": rng.randint(0, 40)})
    return StateTopic(seed, patterns, tapes, rng.choice(["record", "batch", "batch"])), arcs


def coming_and_going(seed: int) -> StateTopic:
    """Keys that are met for a while: of most, nothing need be kept soon after."""
    rng = Random(seed)
    document = {"pattern": "p", "start": "a", "final": ["c"], "within": rng.choice([3, 8, "2 events"])}
    arcs = [
        {"id": "begins", "from": "a", "to": "b", "when": "e.x == 1"},
        {"id": "stays", "from": "b", "to": "b", "when": "e.x > 0"},
        {"id": "ends", "from": "b", "to": "c", "when": "e.x > 1"},
    ]
    tapes: list[list[Record]] = []
    for number in range(2):
        tape: list[Record] = []
        for place in range(rng.choice([40, 400])):
            ts = max(0, place - rng.choice([0, 0, 1, 4]))
            key = f"k{ts // 6 + rng.choice([0, 0, 1])} of {number}"
            tape.append({"key": key, "ts": ts, "id": f"i{place}", "data": {"x": rng.choice([0, 0, 1, 2])}})
            if rng.random() < 0.2:
                tape.append({"key": key, "ts": ts, "id": f"i{place}", "op": "retract", "rev": 1})
            if rng.random() < 0.3:
                tape.append({"op": "punctuation", "ts": ts - 2})
        tapes.append(tape)
    return StateTopic(seed, [build_pattern(document | {"arcs": arcs})], tapes, rng.choice(["record", "batch"]))


@example(seed=35711)  # a key that came and went between two commits, and a replay from the midst of it
@settings(max_examples=60)
@given(seed=SEEDS)
def test_keys_come_and_go(seed: int) -> None:
    coming_and_going(seed).run([])


@settings(max_examples=60)
@given(seed=SEEDS)
def test_automata_go_on_where_they_were(seed: int) -> None:
    state, arcs = automata(seed)
    state.run(arcs)
