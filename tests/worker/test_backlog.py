"""Promise P19: a worker that is started behind a backlog reads it in pieces, whatever its size (`make soak`: a million
records)."""

import json
import os
from pathlib import Path

import pytest
from support.fleets import fleet_run
from support.logins import GUESSED, login

RECORDS, VALUE_BYTES = (1_000_000, 250) if os.environ.get("ARCFLEET_SOAK") else (100_000, 2_500)
PREFETCHED_MB, PRODUCED_MB = 16, 64
KEYS = 1_000


def memory_mb(process, what):
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith(what)]
    return int(line.split()[1]) / 1024


def publish(run, numbers):
    producer = run.producer()
    text = "x" * (VALUE_BYTES - 100)
    for number in numbers:
        record = login(number, f"k{number % KEYS}", number, True, data={"ok": True, "text": text})
        producer.produce(run.source, key=record["key"], value=json.dumps(record).encode())
        producer.poll(0)
    assert producer.flush(60) == 0


def most_mb(run):
    """What a worker takes at most that finds the source as it is."""
    worker = run.start("w1", "--patterns", str(run.folder / "patterns"))
    run.await_processed(120)
    most = memory_mb(worker.process, "VmHWM")
    assert worker.end() == 0
    return most


@pytest.mark.timeout(300)
def test_a_backlog_does_not_grow_the_process(kafka, tmp_path):
    with fleet_run(kafka, tmp_path) as run:
        run.write_patterns(GUESSED | {"within": "10ms"})
        run.write({"commit_interval": "1s"}, punctuation={"slack": "10ms"})
        publish(run, range(RECORDS // 10))
        usual_mb = most_mb(run)
        publish(run, range(RECORDS // 10, RECORDS))
        grown_mb = most_mb(run) - usual_mb
    print(f"{RECORDS} records of {VALUE_BYTES} bytes: the process takes {usual_mb:.0f} MB, and {grown_mb:.0f} MB more")
    assert RECORDS * VALUE_BYTES / 1e6 > 2 * (PREFETCHED_MB + PRODUCED_MB)
    assert grown_mb <= PREFETCHED_MB + PRODUCED_MB
