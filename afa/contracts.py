"""The contracts as data (`schemas/` in the repository, `afa/schemas/` in a wheel), for those who show or check them."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any


def contract(name: str) -> dict[str, Any]:
    """A fresh copy of the contract `name`: data such as `topics` or `match-ids`, or else the schema of that name.

    Where both exist, `topics.schema` is the schema. Raises LookupError for a name that is not there.
    """
    folder = files("afa") / "schemas"
    for file in (folder / f"{name}.json", folder / f"{name}.schema.json"):
        if file.is_file():
            loaded: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
            return loaded
    raise LookupError(f"no contract named {name!r}")
