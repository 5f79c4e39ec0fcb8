"""The tables of the operations page are what the code says."""

import re
from pathlib import Path

from confluent_kafka import KafkaError

from worker.metrics import METRICS
from worker.reactions import CONSUMING, PRODUCING

PAGE = Path(__file__).parents[2] / "docs" / "operations.md"


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
