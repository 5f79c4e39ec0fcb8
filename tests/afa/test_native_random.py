"""Random cases: the native engine in every way to feed it against the reference.

By default they begin with one seed, because a few of all cases keep the reference busy for minutes.
`ARCFLEET_RANDOM_SEED=random ARCFLEET_RANDOM_SECONDS=600` looks elsewhere and longer; a failure names its seed, and
`ARCFLEET_RANDOM_SEED=<seed>` begins there again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from random import Random, SystemRandom

import pytest
from support.random_cases import RandomCase
from support.random_checks import Partitions, checks, reference_told

SECONDS = float(os.environ.get("ARCFLEET_RANDOM_SECONDS", "3"))
_SEED = os.environ.get("ARCFLEET_RANDOM_SEED", "9000")
FIRST_SEED = SystemRandom().randrange(2**32) if _SEED == "random" else int(_SEED)

pytestmark = pytest.mark.timeout(120 + SECONDS)


def seeds() -> Iterator[int]:
    """From the first on, at least one, until the time is over."""
    end = time.monotonic() + SECONDS
    seed = FIRST_SEED
    yield seed
    while time.monotonic() < end:
        seed += 1
        yield seed


def check_all(seed: int) -> None:
    case = RandomCase(seed)
    told = reference_told(case)
    for number, (name, check) in enumerate(checks(case, told).items()):
        case.rng = Random(seed + number)
        try:
            check()
        except BaseException as error:
            error.add_note(f"fed {name}; ARCFLEET_RANDOM_SEED={seed}")
            raise


def test_random_cases() -> None:
    for seed in seeds():
        check_all(seed)


def test_random_partitions() -> None:
    for seed in seeds():
        try:
            Partitions(seed).check()
        except BaseException as error:
            error.add_note(f"ARCFLEET_RANDOM_SEED={seed}")
            raise
