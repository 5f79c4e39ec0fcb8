"""The vectors of schemas/match-ids.json, recomputed with the msgpack library, and as the product computes them."""

from __future__ import annotations

import hashlib

import msgpack
import pytest

from afa.contracts import contract

VECTORS = contract("match-ids")["vectors"]
# As the contract prints them.
PRINTED = {
    "fb6173c267eaa8ceef7cbe434fb74bc4": ["q1", "YHOO", 1000, "e1", 1900, "e9", ["q3", [0, 2]]],
    "d85387e608c3530a22cd874f0ed82459": [
        "shoplifting", "t1", 1000, "e1", 2000, "e4", [["a", [[1000, "e1"]]], ["c", [[2000, "e4"]]]],
    ],
    "0c6bb5a2972774c45d84fa78428725ec": ["p", "k", -5, "é", 300, "z", ["f", [0.0, True, "s", -1]]],
}  # fmt: skip


def plus_zero(value):
    if isinstance(value, list):
        return [plus_zero(item) for item in value]
    return value + 0.0 if isinstance(value, float) else value


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_a_vector_holds(vector):
    packed = msgpack.packb(plus_zero(vector["list"]))
    assert packed.hex() == vector["msgpack"]
    assert hashlib.blake2b(packed, digest_size=16).hexdigest() == vector["match"]


@pytest.mark.parametrize("vector", [v for v in VECTORS if "registers" in v], ids=lambda vector: vector["name"])
def test_registers_stand_in_order_of_names(vector):
    registers = vector["registers"]
    in_order = [registers[name] for name in sorted(registers)]
    assert [(type(value), value) for value in in_order] == [(type(value), value) for value in vector["list"][-1][1]]


def test_the_printed_vectors_are_there():
    assert {vector["match"]: vector["list"] for vector in VECTORS[:3]} == PRINTED


def test_only_minus_zero_shares_an_id():
    ids = [vector["match"] for vector in VECTORS]
    by_name = {vector["name"]: vector["match"] for vector in VECTORS}
    assert by_name["minus zero is zero"] == by_name["zero"]
    assert len(set(ids)) == len(ids) - 1
