"""The expression language of arcs: a typed subset of Python's, parsed with `ast`, never evaluated as Python."""

from afa.expression.check import Scope, compile_expression
from afa.expression.compact import pack, unpack
from afa.expression.parse import ExpressionError
from afa.expression.tree import Expression, Type, Value

__all__ = ["Expression", "ExpressionError", "Scope", "Type", "Value", "compile_expression", "pack", "unpack"]
