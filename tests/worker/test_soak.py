"""Promise P2, and P1 for longer: the broker is killed and comes back, workers are killed again and again (`make soak`).

In an ordinary run this is its short form."""

import os
import random
import time

import pytest
from support.disorder import CLIMB, changes_at, disordered_events
from support.fleets import FleetRun
from support.recovery import Onlooker, Supervisor, Tape, assert_exact, publish_arcs

IS_SOAK = bool(os.environ.get("ARCFLEET_SOAK"))
EVENTS, SECONDS, ROUNDS = (100_000, 300, 3) if IS_SOAK else (4_000, 15, 1)
KEYS, PARTITIONS = 1_000, 9
DOWN_S = 2.0
SEED = int(os.environ.get("ARCFLEET_SEED", random.randrange(10**6)))
CHANGES = changes_at(EVENTS * 10 // 2)
NAMES = ["w1", "w2", "w3"]


@pytest.mark.timeout(900)
def test_nothing_is_lost_or_doubled_when_the_broker_goes_too(kafka_broker, tmp_path):
    print(f"ARCFLEET_SEED={SEED}")
    records = disordered_events(SEED, EVENTS, KEYS)
    broker = kafka_broker()
    run = FleetRun(broker.bootstrap, "soak", tmp_path, PARTITIONS)
    try:
        run.make_topics()
        file = run.write({"snapshot_interval": "2s"})
        patterns = str(run.write_patterns(CLIMB))
        for name in NAMES:
            run.start(name, "--patterns", patterns, ready=False)
        for worker in run.workers.values():
            worker.await_listening().await_ready()
        onlooker, supervisor, tape = Onlooker(run), Supervisor(run), Tape(run, records, SECONDS)
        for thread in (onlooker, supervisor, tape):
            thread.start()
        trouble(run, broker, tape, file)
        tape.join()
        run.await_processed(240)
        time.sleep(2)
        print(f"{supervisor.end()} restarts")
        assert_exact(run, onlooker, records, CHANGES)
    finally:
        run.close()


def trouble(run, broker, tape, file):
    """In each round every worker is killed once, and the broker while the last of them comes back."""
    for number in range(ROUNDS):
        for place, name in enumerate(NAMES):
            tape.await_share((number + (place + 1) / (len(NAMES) + 1)) / ROUNDS)
            run.workers[name].process.kill()
        if number == ROUNDS // 2:
            publish_arcs(run, file, CHANGES)
        broker.kill()
        time.sleep(DOWN_S)
        broker.start()
