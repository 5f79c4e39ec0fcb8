"""The closed list of metrics: its names are the contract's, its labels bounded."""

from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from worker.metrics import METRICS, Metrics

PROMISED = """
arcfleet_events_total arcfleet_matches_total arcfleet_retractions_total arcfleet_late_total
arcfleet_bad_total arcfleet_unknown_values_total arcfleet_lag_records arcfleet_lag_seconds
arcfleet_punctuation_seconds arcfleet_partial_matches arcfleet_state_bytes arcfleet_keys arcfleet_degraded_keys
arcfleet_batch_seconds arcfleet_commit_seconds arcfleet_restore_ratio arcfleet_arc_version"""


def test_the_promised_names_are_there():
    assert {metric.name for metric in METRICS} >= set(PROMISED.split())


def test_prometheus_reads_them():
    metrics = Metrics()
    metrics.add("arcfleet_events_total", 3, topic="trades")
    metrics.set("arcfleet_lag_records", 7, topic="trades", partition="1")
    metrics.observe("arcfleet_commit_seconds", 0.003)
    families = {
        family.name: family for family in text_string_to_metric_families(generate_latest(metrics.registry).decode())
    }
    assert families["arcfleet_events"].samples[0].value == 3
    assert families["arcfleet_lag_records"].samples[0].labels == {"topic": "trades", "partition": "1"}
    metrics.forget("arcfleet_lag_records", "trades", "1")
    metrics.forget("arcfleet_lag_records", "trades", "2")
    assert b'partition="1"' not in generate_latest(metrics.registry)
