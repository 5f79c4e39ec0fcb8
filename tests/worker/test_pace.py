"""How many snapshots a commit takes: never all that came due together, and each in time."""

import random
from collections import deque

import pytest

from worker.checkpoint import SPREAD
from worker.pace import SNAPSHOTS_PER_COMMIT_MAX, Pace

INTERVAL_S = 10.0
GAPS_S = (0.1, 0.1, 0.1, 0.15, 0.5)


def play(seed, keys, changes_at, seconds=60.0):
    """Commits of a partition whose keys change when `changes_at` says, told how many each wrote: time, count, gap."""
    rnd, pace = random.Random(seed), Pace()
    queue, dirty = deque(), set()
    now, written = 0.0, []
    while now < seconds:
        gap = rnd.choice(GAPS_S)
        for key in changes_at(rnd, now, gap):
            if key not in dirty:
                dirty.add(key)
                queue.append((now, key))
        now += gap
        most = pace.most(len(dirty), gap / INTERVAL_S / SPREAD)
        taken = []
        while queue and len(taken) < most and queue[0][0] <= now - INTERVAL_S:
            since, key = queue.popleft()
            dirty.discard(key)
            taken.append(now - since)
        pace.took(len(taken), most)
        written.append((now, len(taken), gap))
        assert max(taken, default=0) <= (1 + SPREAD) * INTERVAL_S + 2 * max(GAPS_S), (seed, now)
        assert not queue or now - queue[0][0] <= (1 + SPREAD) * INTERVAL_S + 2 * max(GAPS_S), (seed, now)
        assert len(taken) <= keys * gap / INTERVAL_S / SPREAD + 1, (seed, now)
    return written


@pytest.mark.parametrize("seed", range(20))
def test_none_waits_for_long_however_they_change(seed):
    def changes(rnd, now, gap):
        kind = (seed + int(now) // 7) % 4
        if kind == 0:
            return range(500)  # all
        if kind == 1:
            return rnd.sample(range(500), int(500 * gap))
        return range(rnd.randrange(500)) if kind == 2 and rnd.random() < 0.05 else ()

    assert sum(count for _, count, _ in play(seed, 500, changes)) > 500


def test_those_that_came_due_together_come_one_after_the_other_the_next_time():
    written = play(1, 5_000, lambda *_: range(5_000))
    assert sum(count for _, count, _ in written) >= 4 * 5_000, "each once in an interval, but for the first"
    busy = [now for now, count, _ in written if count]
    assert min(busy) >= INTERVAL_S
    assert len(busy) > 0.3 * len(written)


def test_what_is_due_at_once_is_bounded_also_after_a_long_pause():
    pace = Pace()
    assert pace.most(0, 0.01) == 0
    assert pace.most(10, 0.001) == 1, "few keys, and yet one goes"
    assert pace.most(10**7, 1.0) == SNAPSHOTS_PER_COMMIT_MAX


def test_the_share_is_of_the_most_until_nothing_is_left_that_is_due():
    pace = Pace()
    assert pace.most(1_000, 0.02) == 20
    pace.took(20, 20)
    assert pace.most(100, 0.02) == 20
    pace.took(19, 20)
    assert pace.most(100, 0.02) == 2
