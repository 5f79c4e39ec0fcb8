"""The functions of the expression language, as data: one table for the checker, the forms and the documentation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from afa.expression.tree import NUMBERS, Type

_MANY: Final = 1_000


@dataclass(frozen=True, slots=True)
class Function:
    name: str
    least: int
    most: int
    accepts: frozenset[Type]
    gives: Type  # ANY: what the arguments are, int and float together giving float

    @property
    def count_text(self) -> str:
        if self.most == _MANY:
            return f"at least {self.least} arguments"
        return f"{self.least} argument" + ("s" if self.least > 1 else "")

    def result(self, arguments: set[Type]) -> Type:
        if self.gives is not Type.ANY:
            return self.gives
        if Type.FLOAT in arguments and arguments <= {*NUMBERS, Type.ANY}:
            return Type.FLOAT
        return arguments.copy().pop() if len(arguments) == 1 else Type.ANY


_STRING = frozenset({Type.STRING})
FUNCTIONS: Final = {
    function.name: function
    for function in (
        Function("abs", 1, 1, NUMBERS, Type.ANY),
        Function("min", 2, _MANY, NUMBERS | _STRING, Type.ANY),
        Function("max", 2, _MANY, NUMBERS | _STRING, Type.ANY),
        Function("sqrt", 1, 1, NUMBERS, Type.FLOAT),
        Function("floor", 1, 1, NUMBERS, Type.INT),
        Function("ceil", 1, 1, NUMBERS, Type.INT),
        Function("round", 1, 1, NUMBERS, Type.INT),
        Function("len", 1, 1, frozenset({Type.STRING, Type.LIST}), Type.INT),
        Function("lower", 1, 1, _STRING, Type.STRING),
        Function("upper", 1, 1, _STRING, Type.STRING),
        Function("startswith", 2, 2, _STRING, Type.BOOL),
        Function("endswith", 2, 2, _STRING, Type.BOOL),
        Function("contains", 2, 2, _STRING, Type.BOOL),
        Function("corr", 2, 2, frozenset({Type.LIST}), Type.FLOAT),
    )
}
