"""`arcfleet schema`: the JSON Schemas, for editors and checks."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from typing import Annotated

import typer

from afa.contracts import contract


class SchemaName(StrEnum):
    pattern = "pattern"
    fleet = "fleet"


def schema(name: Annotated[SchemaName, typer.Argument(help="Which document.")]) -> None:
    """Print the JSON Schema of a document.

    [bold]Examples[/]

    arcfleet schema pattern > pattern.schema.json
    """
    sys.stdout.write(json.dumps(contract(name.value), indent=2, ensure_ascii=False) + "\n")
