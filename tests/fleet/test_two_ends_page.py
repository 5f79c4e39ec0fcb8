"""What docs/two-ends.md shows is run, with the matches that a worker would have written."""

import shutil
from contextlib import suppress
from pathlib import Path

from confluent_kafka import KafkaException, Producer
from support.commands import together
from support.pages import follow

from arcfleet.local.admin import create_topic

ROOT = Path(__file__).parents[2]
PATTERNS = [ROOT / "examples" / name for name in ("q1.yaml", "q2.yaml")]


def test_what_the_page_shows_is_what_happens(kafka, tmp_path):
    fleet = kafka.unique("demo")
    create_topic(kafka.bootstrap, f"{fleet}.matches", 3, {})
    with suppress(KafkaException):  # it is there, on a Kafka that outlives the run
        create_topic(kafka.bootstrap, "stock", 3, {})
    tape = ROOT / "examples" / "q2.jsonl"
    (told,) = together([["replay", *PATTERNS, "--tape", tape, "--emit", "changes"]])
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
    for line, record in zip(told.out.splitlines(), told.records, strict=True):
        producer.produce(f"{fleet}.matches", line, record.get("key"), 0, headers={"op": record["op"]})
    assert producer.flush(30) == 0

    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    assert follow(
        ROOT / "docs" / "two-ends.md", tmp_path, {"ARCFLEET_BOOTSTRAP": kafka.bootstrap, "ARCFLEET_FLEET": fleet}
    )
