"""The compact typed form of a checked tree: nested arrays, msgpack-encoded, for the native engine.

Every node is `[kind, type, ...]`; kinds and types are numbers that never change their meaning. Children follow in
the order of the tree's fields.
"""

from __future__ import annotations

from typing import Any, Final

import msgpack

from afa.expression import tree
from afa.expression.tree import Expression, Node, Type

FORMAT_VERSION: Final = 1
KINDS: Final[tuple[type[Node], ...]] = (
    tree.Literal,
    tree.EventField,
    tree.EventAttribute,
    tree.RegisterField,
    tree.Negation,
    tree.Arithmetic,
    tree.Comparison,
    tree.UnknownTest,
    tree.Membership,
    tree.And,
    tree.Or,
    tree.Not,
    tree.Choice,
    tree.Call,
)
_NUMBER_OF_KIND: Final = {kind: number for number, kind in enumerate(KINDS)}


def pack(expression: Expression) -> bytes:
    """`[format version, node]`."""
    packed = msgpack.packb([FORMAT_VERSION, _arrays(expression.root)])
    assert isinstance(packed, bytes)
    return packed


def unpack(data: bytes) -> Node:
    """The tree that `pack` was given (its text is not kept). Raises ValueError for anything else."""
    try:
        version, root = msgpack.unpackb(data, use_list=True)
        if version != FORMAT_VERSION:
            raise ValueError(f"compact form {version}, this build reads {FORMAT_VERSION}")
        return _node(root)
    except (TypeError, LookupError, RecursionError) as error:
        raise ValueError(f"not a compact form: {error}") from None


def _arrays(value: Any) -> Any:
    if type(value) in _NUMBER_OF_KIND:
        fields = [getattr(value, name) for name in value.__dataclass_fields__ if name != "type"]
        return [_NUMBER_OF_KIND[type(value)], int(value.type), *map(_arrays, fields)]
    if isinstance(value, tuple):
        return [_arrays(item) for item in value]
    return value


def _node(arrays: list[Any]) -> Node:
    kind, static_type, *fields = arrays
    if kind not in range(len(KINDS)):
        raise ValueError(f"kind {kind!r} is not known")
    node_class = KINDS[kind]
    names = [name for name in node_class.__dataclass_fields__ if name != "type"]
    built = {name: _field(node_class, name, value) for name, value in zip(names, fields, strict=True)}
    node: Node = node_class(type=Type(static_type), **built)
    return node


def _field(owner: type[Node], name: str, value: Any) -> Any:
    if owner in (tree.Literal, tree.EventField):
        return tuple(value) if isinstance(value, list) else value
    if name in ("operands", "arguments", "items"):
        return tuple(_node(item) for item in value)
    return _node(value) if isinstance(value, list) else value
