"""What a fleet cannot run is refused before the first event."""

from dataclasses import replace

import pytest

from afa.document import build_pattern
from afa.source import Source
from arcfleet.fleet.document import load_fleet
from arcfleet.fleet.errors import FleetError
from arcfleet.fleet.fitness import check_fitness

PATTERN = build_pattern(
    {"pattern": "p", "key": "symbol", "start": "a", "final": ["b"], "arcs": [{"id": "x", "from": "a", "to": "b"}]}
)


def fleet_of(*sources):
    return replace(load_fleet(None, {}, {}), sources=sources)


@pytest.mark.parametrize("key", ["record", "data.symbol"])
def test_a_pattern_keyed_as_its_topic_runs(key):
    check_fitness([PATTERN, replace(PATTERN, sources=("t",))], fleet_of(Source("t", key=key)))


def test_a_pattern_keyed_otherwise_is_refused():
    with pytest.raises(FleetError, match=r"keyed by `symbol`, but the source t by `data\.user`"):
        check_fitness([PATTERN], fleet_of(Source("t", key="data.user")))


def test_a_pattern_names_sources_of_its_fleet():
    fleet = fleet_of(Source("trades", key="data.symbol"), Source("news", key="data.user"))
    check_fitness([replace(PATTERN, sources=("trades",))], fleet)
    with pytest.raises(FleetError, match="names the source `trade`, which the fleet does not have") as caught:
        check_fitness([replace(PATTERN, sources=("trade",))], fleet)
    assert caught.value.fix == "did you mean `trades`?"
