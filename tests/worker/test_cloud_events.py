"""CloudEvents in, in both forms, and out, on the fake log."""

import json

import pytest
from support.simulation import Chances, Simulation, trace_of

from afa.durations import FLEET_UNITS
from arcfleet.fleet.document import load_fleet

PATTERN = {
    "pattern": "pair",
    "within": "5s",
    "start": "s",
    "final": ["f"],
    "arcs": [
        {"id": "one", "from": "s", "to": "m", "when": "e.type == 'com.example.one'"},
        {"id": "two", "from": "m", "to": "f", "when": "e.type == 'com.example.two' and e.x > 1"},
    ],
}
BINARY = {"topic": "binary", "time": "header:ce_time", "type": "header:ce_type", "id": "header:ce_id", "data": "."}
STRUCTURED = {"topic": "structured", "time": "time", "type": "type", "id": "id", "data": "data"}
FLEET = {
    "fleet": "shop",
    "headers": "cloudevents",
    "sources": [source | {"unit": "iso8601", "punctuation": {"slack": "0s"}} for source in (BINARY, STRUCTURED)],
}


def matches(simulation):
    return [(dict(record.headers), record) for record in simulation.committed("matches", 0)]


@pytest.mark.parametrize("unit", FLEET_UNITS)
def test_both_forms_come_in_and_matches_go_out(tmp_path, unit):
    (tmp_path / "fleet.yaml").write_text(json.dumps(FLEET))
    fleet = load_fleet(tmp_path / "fleet.yaml", {"bootstrap": "fake:9092", "unit": unit})
    simulation = Simulation(1, fleet, [PATTERN], partitions=1, workers=1, chances=Chances.none())
    simulation.run([], 1.0)
    tape = simulation.broker.producer({})
    about = {
        "specversion": "1.0",
        "source": "/s",
        "time": "2023-11-14T22:10:00Z",
        "traceparent": trace_of("e1").decode(),
    }
    attributes = about | {"type": "com.example.one", "id": "e1"}
    headers = [(f"ce_{name}", value.encode()) for name, value in attributes.items()]
    tape.produce("binary", json.dumps({"x": 1}), key="k", partition=0, headers=headers)
    typeless = [header for header in headers if header[0] not in ("ce_id", "ce_type")]
    tape.produce("binary", "{}", key="k", partition=0, headers=[*typeless, ("ce_type", None), ("", None)])
    tape.produce("binary", "{}", key="k", partition=0, headers=[("ce_time", None), ("mine", None)])
    later = {"type": "com.example.two", "id": "e2", "time": "2023-11-14T22:10:02Z", "data": {"x": 2}}
    trace = [("traceparent", trace_of("e2"))]
    tape.produce("structured", json.dumps(about | later), key="k", partition=0, headers=trace)
    tape.flush()
    simulation.rest(3.0)
    found = matches(simulation)
    (insert,) = [(told, record) for told, record in found if told["op"] == b"insert"]
    told, record = insert
    assert json.loads(record.value)["events"] == {"first": "e1", "last": "e2"}
    assert (told["ce_specversion"], told["ce_type"]) == (b"1.0", b"arcfleet.match.insert")
    assert (told["ce_source"], told["ce_subject"]) == (b"/arcfleet/shop/pair", b"k")
    assert told["ce_traceparent"] == told["traceparent"] == trace_of("e2")
    assert told["content-type"] == b"application/json"
    assert {b"arcfleet.match.insert", b"arcfleet.match.punctuation"} == {told["ce_type"] for told, _ in found}
    (letter,) = simulation.committed("dead-letter", 0)
    assert [header for header in letter.headers if header[1] is None] == [("ce_time", None), ("mine", None)]
    ids = [told["ce_id"] for told, _ in found]
    assert len(set(ids)) == len(ids)
    assert all("ce_subject" not in told for told, record in found if record.key is None)
