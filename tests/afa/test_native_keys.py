"""Keys whose events come one at a time: what the native engine keeps of them folded is what the reference knows."""

from __future__ import annotations

from typing import Any, Final

import pytest
from support.lawful import assert_lawful
from support.long_tapes import encoded

from afa.document import build_pattern

PATTERN: Final[dict[str, Any]] = {"pattern": "p", "start": "a", "final": ["c"], "within": 6}
ARCS: Final = [
    {"id": "begins", "from": "a", "to": "b", "when": "e.x == 1"},
    {"id": "stays", "from": "b", "to": "b"},
    {"id": "ends", "from": "b", "to": "c", "when": "e.x > 1"},
]


def event(ts: int, x: int, key: str = "k") -> dict[str, Any]:
    return {"key": key, "ts": ts, "id": f"{key}{ts}", "data": {"x": x}}


@pytest.mark.parametrize("count", [1, 2, 3, 15, 16, 17, 18])
@pytest.mark.parametrize("punctuation", [None, 0, 1, 2])
def test_what_has_expired_for_an_event_is_there_for_a_late_one(count: int, punctuation: int | None) -> None:
    """The event had no room in its page, and what it had let go was missing before it, too."""
    tape = [event(2 * place, place % 2, key) for place in range(count) for key in "kl"]
    last = 2 * count - 2
    if punctuation is not None:
        tape.append({"op": "punctuation", "ts": last + punctuation})
    tape += [event(last + 9, 0), event(last + 9, 0, "l"), event(last + 3, 2), event(last + 2, 2, "l")]
    tape += [event(last + 10, 1), event(last + 10, 1, "l"), event(last + 11, 2), event(last + 11, 2, "l")]
    pattern = build_pattern(PATTERN | {"arcs": ARCS})
    assert_lawful([pattern], encoded(tape), every=1)


@pytest.mark.parametrize("within", [3, 1000, "4 events"])
def test_keys_that_come_and_go(within: int | str) -> None:
    """Some are let go, and their numbers are given to others."""
    tape: list[dict[str, Any]] = []
    for ts in range(0, 400, 2):
        tape += [event(ts, ts // 2 % 3, f"k{ts // 40}"), event(ts + 1, ts // 6 % 3, f"l{ts % 7}")]
        if ts % 20 == 0:
            tape.append({"op": "punctuation", "ts": ts - 5})
    pattern = build_pattern(PATTERN | {"arcs": ARCS[:1] + ARCS[2:], "within": within})
    assert_lawful([pattern], encoded(tape), every=1)


@pytest.mark.parametrize("within", [6, 30, "7 events"])
@pytest.mark.parametrize("behind", [9, 21, 33])
def test_of_keys_that_are_never_silent_entries_go_one_by_one(within: int | str, behind: int) -> None:
    """Some lie before the punctuation when there is no room for more, never all; late events meet what is left."""
    tape: list[dict[str, Any]] = []
    for ts in range(0, 160, 2):
        tape += [event(ts, ts // 2 % 3, "k"), event(ts, ts // 6 % 4, "l")]
        if ts % 10 == 0:
            tape.append({"op": "punctuation", "ts": ts - behind})
        if ts % 46 == 44:
            tape += [event(ts - behind // 2 * 2 + 7, ts % 3, "k"), event(ts - 3, 1, "l")]
    pattern = build_pattern(PATTERN | {"arcs": ARCS, "within": within})
    assert_lawful([pattern], encoded(tape), every=1)
