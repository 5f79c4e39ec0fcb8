"""A transaction call that hangs ends the process; one that returns does not."""

from worker.watchdog import HANG_S, Watchdog


def test_only_a_call_that_takes_too_long_ends_the_process():
    now, said, ended = [0.0], [], []
    watchdog = Watchdog(lambda: now[0], said.append, lambda: ended.append(True))
    with watchdog.watching("commit_transaction"):
        now[0] = HANG_S
        watchdog.look()
        assert not ended
    now[0] = 10 * HANG_S
    watchdog.look()
    assert not ended
    with watchdog.watching("send_offsets_to_transaction"):
        now[0] += HANG_S + 1
        watchdog.look()
    assert ended
    assert "send_offsets_to_transaction" in said[0]
