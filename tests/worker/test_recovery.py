"""Promises P1, P3, P4, P5 and P13 on a real Kafka: workers are killed, and stopped past their session, while disordered
events, revisions and live arc changes come. Nothing may be lost, doubled or orphaned, whoever reads and when."""

import os
import random
import signal
import time

import pytest
from support.disorder import CLIMB, changes_at, disordered_events
from support.fleets import fleet_run
from support.recovery import Onlooker, Tape, assert_exact, publish_arcs

EVENTS, KEYS, PARTITIONS = 20_000, 300, 9
SEED = int(os.environ.get("ARCFLEET_SEED", random.randrange(10**6)))
CHANGES = changes_at(EVENTS * 10 // 2)


@pytest.mark.timeout(300)
def test_nothing_is_lost_or_doubled_by_kills_and_stops(kafka, tmp_path):
    print(f"ARCFLEET_SEED={SEED}")
    records = disordered_events(SEED, EVENTS, KEYS)
    with fleet_run(kafka, tmp_path, PARTITIONS) as run:
        patterns = str(run.write_patterns(CLIMB))
        file = run.write({"snapshot_interval": "2s"})
        names = ["w1", "w2", "w3"]
        for name in names:
            run.start(name, "--patterns", patterns, ready=False)
        for worker in run.workers.values():
            worker.await_listening().await_ready()
        onlooker, tape = Onlooker(run), Tape(run, records, seconds=40)
        onlooker.start()
        tape.start()
        for name, share in zip(names, (0.15, 0.35, 0.55), strict=True):
            tape.await_share(share)
            if share == 0.35:
                publish_arcs(run, file, CHANGES)
            run.workers[name].kill()
            run.start(name, ready=False).await_listening()
        tape.await_share(0.75)
        stopped = run.workers["w3"].process
        os.kill(stopped.pid, signal.SIGSTOP)
        tape.join()
        time.sleep(12)  # past its session of ten seconds: the others take over
        os.kill(stopped.pid, signal.SIGCONT)
        run.await_processed(90)
        time.sleep(2)
        assert_exact(run, onlooker, records, CHANGES)
