"""Augmented finite automata over event streams: patterns, records and engines."""

from afa.document import load_patterns
from afa.errors import AfaError, PatternError, Place, RecordError, SnapshotError

__all__ = ["AfaError", "PatternError", "Place", "RecordError", "SnapshotError", "load_patterns"]
