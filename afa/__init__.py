"""Augmented finite automata over event streams: patterns, records and engines."""

from afa.document import load_patterns
from afa.engine import Changes, Engine
from afa.errors import AfaError, PatternError, Place, RecordError, SnapshotError

__all__ = ["AfaError", "Changes", "Engine", "PatternError", "Place", "RecordError", "SnapshotError", "load_patterns"]
