"""The tables of the pages are what the code says."""

import re
from pathlib import Path

from confluent_kafka import KafkaError

from worker.metrics import METRICS
from worker.reactions import CONSUMING, PRODUCING

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "operations.md"


def metrics_table():
    yield "| name | type | unit | labels | meaning |"
    yield "|---|---|---|---|---|"
    for metric in METRICS:
        labels = " ".join(f"`{label}`" for label in metric.labels)
        yield f"| `{metric.name}` | {metric.kind} | {metric.unit} | {labels} | {metric.meaning} |"


def reactions_table():
    yield "| error | of the producer | of the consumer |"
    yield "|---|---|---|"
    for code in sorted({*PRODUCING, *CONSUMING}, key=lambda code: KafkaError(code).name()):
        rows = (str(table[code]) if code in table else "" for table in (PRODUCING, CONSUMING))
        yield f"| `{KafkaError(code).name()}` | {' | '.join(rows)} |"


def with_tables(text):
    for name, lines in (("metrics", metrics_table()), ("reactions", reactions_table())):
        table = "\n".join(lines)
        text = re.sub(
            rf"<!-- {name} -->.*<!-- /{name} -->", f"<!-- {name} -->\n{table}\n<!-- /{name} -->", text, flags=re.S
        )
    return text


def test_the_tables_are_those_of_the_code():
    text = PAGE.read_text()
    assert text == with_tables(text)


def test_each_promise_names_tests_that_are_there():
    page = (ROOT / "docs" / "worker.md").read_text()
    (table,) = re.findall(r"<!-- promises -->(.*)<!-- /promises -->", page, flags=re.S)
    rows = re.findall(r"^\| (P\d+) \| .* \| (.*) \|$", table, flags=re.M)
    assert {name for name, _ in rows} >= {f"P{number}" for number in range(1, 20)} - {"P14"}
    named = re.findall(r"`(tests/\S+\.py)::(\w+)`", table)
    assert len(named) > len(rows)
    for file, test in named:
        assert f"\ndef {test}(" in (ROOT / file).read_text(), f"{file}::{test}"
