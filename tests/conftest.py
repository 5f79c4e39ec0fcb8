"""Fixtures that every suite may use."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import settings
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from jsonschema.validators import extend

from afa.contracts import contract

# No test is a timed one: a busy machine must not fail it.
settings.register_profile("arcfleet", deadline=None)
settings.load_profile("arcfleet")

pytest_plugins = ["arcfleet.local.pytest_plugin"]  # the fixtures `kafka` and `kafka_broker`

# JSON Schema takes 1.0 for an integer; the product does not, so what it emits is held to its own rule.
_types = Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)
_StrictValidator = extend(Draft202012Validator, type_checker=_types)


@cache
def _validator(schema_name: str) -> Any:
    return _StrictValidator(contract(f"{schema_name}.schema"))


@pytest.fixture(scope="session")
def validate() -> Callable[[str, Any], None]:
    """`validate("match", value)` raises AssertionError, with place and reason, unless the value meets the schema."""

    def check(schema_name: str, value: Any) -> None:
        error = best_match(_validator(schema_name).iter_errors(value))
        assert error is None, f"not a valid {schema_name}: {error.json_path}: {error.message}\n{value!r}"

    return check
