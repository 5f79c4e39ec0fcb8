"""What a worker counts: one closed list, typed; the table in the documentation is made from it.

Metrics are updated once per batch. Patterns beyond the hundred busiest share the label `other`. Who is busiest is found
out once a second; every change counts for the label that its pattern has just then, so that no series goes back.
"""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

Kind = Literal["counter", "gauge", "histogram"]
PATTERNS_MAX: Final = 100  # with a label of their own
OTHER: Final = "other"
TAKES_OVER: Final = (
    2  # so many times as much has to be told for another pattern's label, which else might go to and fro
)
_SECONDS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


@dataclass(frozen=True)
class Metric:
    """One of the list."""

    name: str
    kind: Kind
    unit: str
    labels: tuple[str, ...]
    meaning: str


METRICS: Final = (
    Metric("arcfleet_events_total", "counter", "records", ("topic",), "Records taken from the sources."),
    Metric("arcfleet_matches_total", "counter", "changes", ("pattern",), "Matches told."),
    Metric("arcfleet_retractions_total", "counter", "changes", ("pattern",), "Matches taken back."),
    Metric("arcfleet_late_total", "counter", "records", ("topic",), "Records below their punctuation, set aside."),
    Metric("arcfleet_bad_total", "counter", "records", ("topic",), "Records that are no event, set aside."),
    Metric(
        "arcfleet_unknown_values_total",
        "counter",
        "evaluations",
        (),
        "Conditions and transfers that met a missing or unfit value.",
    ),
    Metric("arcfleet_lag_records", "gauge", "records", ("topic", "partition"), "Records not read yet."),
    Metric(
        "arcfleet_lag_seconds",
        "gauge",
        "seconds",
        ("topic", "partition"),
        "Age of the last record taken while there is a backlog; 0 without one.",
    ),
    Metric(
        "arcfleet_punctuation_seconds",
        "gauge",
        "seconds",
        ("topic", "partition"),
        "How far the punctuation is behind the clock.",
    ),
    Metric("arcfleet_partial_matches", "gauge", "partial matches", ("pattern",), "Partial matches that live."),
    Metric("arcfleet_state_bytes", "gauge", "bytes", (), "Memory of the keys' state, estimated."),
    Metric("arcfleet_keys", "gauge", "keys", (), "Keys with state."),
    Metric("arcfleet_degraded_keys", "gauge", "keys", (), "Keys whose results a limit has made incomplete."),
    Metric("arcfleet_batch_seconds", "histogram", "seconds", (), "Time of a batch: decode, match, hand over."),
    Metric("arcfleet_commit_seconds", "histogram", "seconds", (), "Time of a commit."),
    Metric(
        "arcfleet_restore_ratio", "gauge", "ratio", (), "Share of the assigned partitions that are restored and live."
    ),
    Metric("arcfleet_arc_version", "gauge", "version", (), "The greatest version of an arc record applied."),
    Metric(
        "arcfleet_refused_patterns",
        "gauge",
        "patterns",
        (),
        "Patterns and arcs of the arcs topic that this worker cannot take, and leaves out.",
    ),
    Metric(
        "arcfleet_lost_partitions_total",
        "counter",
        "partitions",
        (),
        "Partitions whose damaged state was given up (`--accept-lost-state`).",
    ),
)


class Metrics:
    """The list, with values."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # their names are not on the list
        self.registry = CollectorRegistry()
        self._made = {metric.name: self._make(metric) for metric in METRICS}
        self._named: set[str] = set()  # patterns with a label of their own
        self._told: Counts[str] = Counts()  # by pattern, changes

    def _make(self, metric: Metric) -> Counter | Gauge | Histogram:
        if metric.kind == "histogram":
            return Histogram(metric.name, metric.meaning, metric.labels, buckets=_SECONDS, registry=self.registry)
        kind = Counter if metric.kind == "counter" else Gauge
        return kind(metric.name, metric.meaning, metric.labels, registry=self.registry)

    def add(self, name: str, amount: float, **labels: str) -> None:
        """Counts up."""
        counter = self._made[name]
        assert isinstance(counter, Counter)
        (counter.labels(**labels) if labels else counter).inc(amount)

    def set(self, name: str, value: float, **labels: str) -> None:
        """Says how much there is."""
        gauge = self._made[name]
        assert isinstance(gauge, Gauge)
        (gauge.labels(**labels) if labels else gauge).set(value)

    def observe(self, name: str, seconds: float) -> None:
        """Notes how long something took."""
        histogram = self._made[name]
        assert isinstance(histogram, Histogram)
        histogram.observe(seconds)

    def forget(self, name: str, *labels: str) -> None:
        """A partition went elsewhere: its gauges would stay as they were."""
        gauge = self._made[name]
        if labels in gauge._metrics:
            gauge.remove(*labels)

    def tell(self, name: str, count: int, pattern: str) -> None:
        """Counts changes of a pattern."""
        self._told[pattern] += count
        self.add(name, count, pattern=self._label(pattern))

    def set_patterns(self, name: str, values: Mapping[str, float]) -> None:
        """Says how much there is of each pattern, and of no other; the busiest of them have labels of their own."""
        self._rank(values)
        of_labels: Counts[str] = Counts()
        for pattern, value in values.items():
            of_labels[self._label(pattern)] += value  # type: ignore[assignment]  # a Counts adds any numbers
        for label, value in of_labels.items():
            self.set(name, value, pattern=label)
        for (label,) in list(self._made[name]._metrics):
            if label not in of_labels:
                self.forget(name, label)

    def _label(self, pattern: str) -> str:
        if len(self._named) < PATTERNS_MAX:
            self._named.add(pattern)
        return pattern if pattern in self._named else OTHER

    def _rank(self, patterns: Iterable[str]) -> None:
        def busy(pattern: str) -> int:
            return self._told[pattern] * (TAKES_OVER if pattern in self._named else 1)

        busiest = sorted({*patterns, *self._named}, key=lambda pattern: (-busy(pattern), pattern))[:PATTERNS_MAX]
        for gone in self._named.difference(busiest):
            for metric in METRICS:
                if metric.labels == ("pattern",):
                    self.forget(metric.name, gone)
        self._named = set(busiest)
