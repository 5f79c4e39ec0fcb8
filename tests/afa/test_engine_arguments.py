"""What an engine is made with and fed with: what would be ignored, or fail inside, is refused by name."""

from __future__ import annotations

import re
from typing import Any

import pytest
from support.automata import EACH

from afa import Engine, PatternError
from afa.document import build_pattern

PATTERN = build_pattern(EACH)


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({"engine": "naive"}, "engine: 'naive'; it is one of native, reference"),
        ({"engine": None}, "engine: None; it is one of"),
        ({"net": "batches"}, "net: 'batches'; it is one of record, batch"),
        ({"unit": "s"}, "unit: 's'; it is one of ms, us, ns"),
        ({"limits": {"max_keys": 2**63}}, f"limits: max_keys={2**63}; they are positive integers of 64 bits by name"),
        ({"limits": {"max_keys": 2**64}}, f"limits: max_keys={2**64}; they are positive integers of 64 bits by name"),
        ({"limits": {"max_keys": True}}, "limits: max_keys=True; they are positive"),
        ({"source": {"times": "ts"}}, "source.times: a source has no field `times`; did you mean `time`?"),
        ({"source": {"punctuation": {"slack": "soon"}}}, "source.punctuation.slack: `soon` is not a duration"),
    ],
)
def test_what_an_engine_is_made_with(arguments: dict[str, Any], what: str) -> None:
    with pytest.raises(ValueError, match=re.escape(what)):
        Engine([PATTERN], **arguments)


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_two_patterns_of_one_name(engine: Any) -> None:
    with pytest.raises(PatternError, match="two patterns are named `p`"):
        Engine([PATTERN, build_pattern(EACH | {"within": 7})], engine)


def test_the_greatest_limit() -> None:
    engine = Engine([PATTERN], limits={"max_keys": 2**63 - 1, "max_events_per_key": 2**63 - 1})
    assert len(engine.feed([b'{"key":"k","ts":1}'])) == 1


@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize("name", ["keys", "timestamps", "headers", "offsets"])
def test_nothing_but_partitions_beside_a_record_batch(engine: Any, name: str) -> None:
    pa = pytest.importorskip("pyarrow")
    batch = pa.RecordBatch.from_pydict({"key": ["k"], "ts": pa.array([1], pa.int64())})
    with pytest.raises(ValueError, match=f"{name}: a record batch has columns for that"):
        Engine([PATTERN], engine).feed(batch, **{name: [None]})
