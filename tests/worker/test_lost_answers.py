"""Promise P7 on a real Kafka: whether a commit was made is not known when its answer is lost; nothing is lost
or doubled for all that."""

import os
import random

import pytest
from support.disorder import CLIMB, disordered_events
from support.fleets import FleetRun
from support.proxy import END_TXN, INIT_PRODUCER_ID, PRODUCE, TXN_OFFSET_COMMIT, Proxy
from support.recovery import Onlooker, Supervisor, Tape, assert_exact

from arcfleet.local.ports import free_port
from arcfleet.local.settings import Listener

EVENTS, KEYS, PARTITIONS, SECONDS = 4_000, 100, 4, 20
# Who loses the answer to offsets may hang, until the watchdog ends it: seldom, or nothing else would happen.
SWALLOWS = {END_TXN: 0.1, PRODUCE: 0.02, INIT_PRODUCER_ID: 0.2, TXN_OFFSET_COMMIT: 0.005}
SEED = int(os.environ.get("ARCFLEET_SEED", random.randrange(10**6)))


@pytest.mark.skipif("ARCFLEET_SOAK" not in os.environ, reason="make soak")
@pytest.mark.timeout(240)
def test_lost_answers_lose_and_double_nothing(kafka_broker, tmp_path):
    print(f"ARCFLEET_SEED={SEED}")
    records = disordered_events(SEED, EVENTS, KEYS)
    port = free_port()
    proxy = Proxy(port, SWALLOWS, SEED)
    broker = kafka_broker(listeners={"PROXIED": Listener("PLAINTEXT", advertised=f"127.0.0.1:{port}")})
    proxy.start(broker.address("PROXIED"))
    run = FleetRun(broker.bootstrap, "proxied", tmp_path, PARTITIONS)
    try:
        run.make_topics()
        run.write({"bootstrap": f"127.0.0.1:{port}", "snapshot_interval": "2s"})
        patterns = str(run.write_patterns(CLIMB))
        for name in ("w1", "w2"):
            run.start(name, "--patterns", patterns, ready=False)
        onlooker, supervisor, tape = Onlooker(run), Supervisor(run), Tape(run, records, SECONDS)
        for thread in (onlooker, supervisor, tape):
            thread.start()
        tape.join()
        proxy.is_calm = True
        run.await_processed(90)
        supervisor.end()
        assert_exact(run, onlooker, records, [])
        assert proxy.swallowed
        print(f"answers lost: {dict(proxy.swallowed)}")
    finally:
        run.close()
        proxy.close()
