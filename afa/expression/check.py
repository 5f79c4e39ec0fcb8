"""The type checker: Python's syntax tree to our checked tree. The one thing that all evaluators share."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from afa.errors import did_you_mean, one_of
from afa.expression import tree
from afa.expression.functions import FUNCTIONS
from afa.expression.parse import ExpressionError, node_offset, parse_syntax, shield_keywords
from afa.expression.tree import INT_MAX, INT_MIN, NUMBERS, Expression, Literal, Node, Type

EVENT_ATTRIBUTES: Final = {"ts": Type.INT, "type": Type.STRING, "id": Type.STRING}
ARITHMETIC: Final = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%"}
COMPARISONS: Final = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
CONSTANT_NAMES: Final = {"true": True, "false": False}


@dataclass(frozen=True)
class Scope:
    """What an expression may name. `fields` is None where no `events:` are declared: then every field is allowed."""

    fields: Mapping[tuple[str, ...], Type] | None = None
    registers: Mapping[str, Type] = field(default_factory=dict)
    sees_event: bool = True

    def __hash__(self) -> int:
        fields = None if self.fields is None else frozenset(self.fields.items())
        return hash((fields, frozenset(self.registers.items()), self.sees_event))


# A text comes again with every engine of its pattern, and with arcs that take the place of others.
@lru_cache(maxsize=1024)
def compile_expression(text: str, scope: Scope, expected: Type | None = None) -> Expression:
    """Checked expression. `expected` is the type it must have (a float takes an int); None allows all.

    Raises ExpressionError with the offset of what is wrong.
    """
    source = shield_keywords(text)
    syntax = parse_syntax(source)
    checker = Checker(source, scope)
    root = checker.check(syntax)
    if expected is not None and not fits(root, expected):
        what = f"this is {a_kind(root)}, where {an(expected)} is needed"
        raise checker.error(syntax, what, _fit_hint(root, expected))
    return Expression(text, root)


def fits(node: Node, expected: Type) -> bool:
    if _is_number(node) and expected not in NUMBERS:
        return False
    return node.type in (expected, Type.ANY) or (node.type is Type.INT and expected is Type.FLOAT)


def _is_number(node: Node) -> bool:
    """Whether it gives a number or nothing, whatever the fields hold."""
    return node.type in NUMBERS or isinstance(node, tree.Arithmetic | tree.Negation)


def _fit_hint(root: Node, expected: Type) -> str:
    if expected is Type.INT and root.type is Type.FLOAT:
        return "give the register a float as initial value: write 0.0"
    if expected is Type.BOOL:
        return "write a condition, for example a comparison"
    return "make the two types agree"


def an(kind: Type) -> str:
    return f"an {kind}" if kind is Type.INT else f"a {kind}"


def a_kind(node: Node) -> str:
    return "a number" if node.type is Type.ANY and _is_number(node) else an(node.type)


class Checker:
    """The rules of types. Queries, whose leaves are others, share them."""

    def __init__(self, text: str, scope: Scope) -> None:
        self.text = text
        self.scope = scope

    def error(self, node: ast.expr, what: str, fix: str = "") -> ExpressionError:
        return ExpressionError(node_offset(self.text, node), what, fix)

    def check(self, node: ast.expr) -> Node:
        match node:
            case ast.Constant():
                return self.constant(node)
            case ast.Name():
                return self.name(node)
            case ast.Attribute():
                return self.attribute(node)
            case ast.UnaryOp():
                return self.unary(node)
            case ast.BinOp():
                return self.arithmetic(node)
            case ast.BoolOp(op=operator, values=values):
                operands = tuple(self.typed(value, Type.BOOL, "and/or") for value in values)
                return (tree.And if isinstance(operator, ast.And) else tree.Or)(Type.BOOL, operands)
            case ast.Compare():
                return self.comparison(node)
            case ast.IfExp():
                return self.choice(node)
            case ast.Call():
                return self.call(node)
            case ast.List():
                return self.float_list(node)
        raise self.error(
            node,
            f"{_describe(node)} is not part of the expression language",
            _REFUSED.get(type(node), "write a plain expression"),
        )

    def typed(self, node: ast.expr, wanted: Type, where: str) -> Node:
        checked = self.check(node)
        if not fits(checked, wanted):
            fix = "write a condition, for example a comparison"
            raise self.error(node, f"{where} needs {an(wanted)}, this is {a_kind(checked)}", fix)
        return checked

    def number(self, node: ast.expr, where: str) -> Node:
        checked = self.check(node)
        if checked.type not in NUMBERS and checked.type is not Type.ANY:
            fix = "write a number, or a field that holds one"
            raise self.error(node, f"{where} needs a number, this is {an(checked.type)}", fix)
        return checked

    def constant(self, node: ast.Constant, *, negative: bool = False) -> Literal:
        value = node.value
        if value is None:
            raise self.error(node, "null can only be compared: `x == null` or `x != null`", "test with `== null`")
        if isinstance(value, bool):
            return Literal(Type.BOOL, value)
        if isinstance(value, int):
            number = -value if negative else value
            if not INT_MIN <= number <= INT_MAX:
                raise self.error(node, "an integer outside 64 bits", "write it as a float")
            return Literal(Type.INT, number)
        if isinstance(value, float):
            if math.isinf(value):
                raise self.error(node, "a number outside the range of a float", "write a smaller one")
            return Literal(Type.FLOAT, -value if negative else value)
        if isinstance(value, str):
            if any("\ud800" <= character <= "\udfff" for character in value):
                raise self.error(node, "half of a surrogate pair in a string", "write the character itself")
            return Literal(Type.STRING, value)
        what = f"a literal of Python's {type(value).__name__} is not part of the expression language"
        raise self.error(node, what, "write a number, a string, true or false")

    def name(self, node: ast.Name) -> Literal:
        if node.id in CONSTANT_NAMES:
            return Literal(Type.BOOL, CONSTANT_NAMES[node.id])
        if node.id == "null":
            raise self.error(node, "null can only be compared: `x == null` or `x != null`", "test with `== null`")
        if node.id in ("e", "r"):
            hint = "write `e.<field>`" if node.id == "e" else "write `r.<register>`"
            raise self.error(node, f"`{node.id}` alone is not a value", hint)
        if node.id in self.scope.registers:
            hint = f"did you mean `r.{node.id}`?"
        elif self.scope.fields and (node.id,) in self.scope.fields:
            hint = f"did you mean `e.{node.id}`?"
        else:
            hint = f"a field is `e.{node.id}`, a register `r.{node.id}`, a string `'{node.id}'`"
        raise self.error(node, f"the name `{node.id}` is not known", hint)

    def attribute(self, node: ast.Attribute) -> Node:
        path: list[str] = []
        base: ast.expr = node
        while isinstance(base, ast.Attribute):
            path.insert(0, base.attr)
            base = base.value
        if not isinstance(base, ast.Name) or base.id not in ("e", "r"):
            raise self.error(node, "only `e.<field>` and `r.<register>` have fields", "begin with `e.` or `r.`")
        return self.event_field(node, tuple(path)) if base.id == "e" else self.register(node, path)

    def register(self, node: ast.expr, path: list[str]) -> Node:
        name = ".".join(path)
        if name not in self.scope.registers:
            known = [f"r.{register}" for register in self.scope.registers]
            hint = did_you_mean(f"r.{name}", known, "declare it under `registers:` with its initial value")
            raise self.error(node, f"the register `{name}` is not declared", hint)
        return tree.RegisterField(self.scope.registers[name], name)

    def event_field(self, node: ast.expr, path: tuple[str, ...]) -> Node:
        if not self.scope.sees_event:
            raise self.error(node, "an epsilon arc consumes no event, so it cannot see `e`", "use registers only")
        if path[0] in EVENT_ATTRIBUTES:
            if len(path) > 1:
                raise self.error(node, f"`e.{path[0]}` is the event's own and has no fields", f"write `e.{path[0]}`")
            return tree.EventAttribute(EVENT_ATTRIBUTES[path[0]], path[0])
        if self.scope.fields is None:
            return tree.EventField(Type.ANY, path)
        if path not in self.scope.fields:
            known = [f"e.{'.'.join(known)}" for known in self.scope.fields] + [f"e.{own}" for own in EVENT_ATTRIBUTES]
            name = f"e.{'.'.join(path)}"
            hint = did_you_mean(name, known, "declare the field under `events:`")
            raise self.error(node, f"no event type has the field `{name}`", hint)
        return tree.EventField(self.scope.fields[path], path)

    def unary(self, node: ast.UnaryOp) -> Node:
        if isinstance(node.op, ast.Not):
            return tree.Not(Type.BOOL, self.typed(node.operand, Type.BOOL, "not"))
        if isinstance(node.op, ast.Invert):
            raise self.error(node, "`~` is not part of the expression language", "write `not`")
        if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            literal = self.constant(node.operand, negative=True)
            if literal.type in NUMBERS:
                return literal
        operand = self.number(node.operand, "a sign")
        return operand if isinstance(node.op, ast.UAdd) else tree.Negation(operand.type, operand)

    def arithmetic(self, node: ast.BinOp) -> Node:
        operator = ARITHMETIC.get(type(node.op))
        if operator is None:
            raise self.error(node, f"{_describe(node.op)} is not part of the expression language", "use + - * / // %")
        left = self.number(node.left, f"`{operator}`")
        right = self.number(node.right, f"`{operator}`")
        kind = Type.FLOAT if operator == "/" else _common_number(left.type, right.type)
        return tree.Arithmetic(kind, operator, left, right)

    def comparison(self, node: ast.Compare) -> Node:
        parts: list[Node] = []
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            parts.append(self.compare_pair(operator, left, right))
            left = right
        return parts[0] if len(parts) == 1 else tree.And(Type.BOOL, tuple(parts))

    def compare_pair(self, operator: ast.cmpop, left: ast.expr, right: ast.expr) -> Node:
        if isinstance(operator, ast.In | ast.NotIn):
            member = self.membership(left, right)
            return tree.Not(Type.BOOL, member) if isinstance(operator, ast.NotIn) else member
        if _is_null(left) or _is_null(right):
            return self.null_test(operator, left, right)
        symbol = COMPARISONS.get(type(operator))
        if symbol is None:
            raise self.error(right, "`is` is not part of the expression language", "write `==`, or `== null`")
        checked = self.check(left), self.check(right)
        self.comparable(right, symbol, *checked)
        return tree.Comparison(Type.BOOL, symbol, *checked)

    def comparable(self, at: ast.expr, symbol: str, one: Node, other: Node) -> None:
        left, right = one.type, other.type
        if Type.LIST in (left, right):
            raise self.error(at, "lists cannot be compared", "use `len`, `corr`, or `in` with a literal list")
        if Type.BOOL in (left, right) and symbol not in ("==", "!="):
            raise self.error(at, f"bools compare only by == and !=, not by {symbol}", "write `==` or `!=`")
        kinds = {Type.FLOAT if _is_number(node) else node.type for node in (one, other)}
        if Type.ANY in kinds or len(kinds) == 1:
            return
        fix = "the result would always be unknown"
        raise self.error(at, f"{a_kind(one)} never compares with {a_kind(other)}", fix)

    def null_test(self, operator: ast.cmpop, left: ast.expr, right: ast.expr) -> Node:
        if not isinstance(operator, ast.Eq | ast.NotEq):
            at = left if _is_null(left) else right
            raise self.error(at, "null can only be compared by == and !=", "write `== null` or `!= null`")
        tested = right if _is_null(left) else left
        if _is_null(tested):
            raise self.error(tested, "null is compared with null", "compare a field or a register with it")
        test = tree.UnknownTest(Type.BOOL, self.check(tested))
        return test if isinstance(operator, ast.Eq) else tree.Not(Type.BOOL, test)

    def membership(self, left: ast.expr, right: ast.expr) -> Node:
        if not isinstance(right, ast.List):
            raise self.error(right, "`in` needs a literal list", "write `in [1, 2, 3]`; for text use contains(s, part)")
        operand = self.check(left)
        items = tuple(self.literal(item) for item in right.elts)
        for item, at in zip(items, right.elts, strict=True):
            self.comparable(at, "==", operand, item)
        return tree.Membership(Type.BOOL, operand, items)

    def literal(self, node: ast.expr) -> Literal:
        checked = self.check(node)
        if not isinstance(checked, Literal) or checked.type is Type.LIST:
            raise self.error(node, "a list holds literals only", "write numbers, strings, true or false in it")
        return checked

    def float_list(self, node: ast.List) -> Literal:
        items = [self.literal(item) for item in node.elts]
        for item, at in zip(items, node.elts, strict=True):
            if item.type not in NUMBERS:
                what = f"a list value holds numbers, this is {an(item.type)}"
                raise self.error(at, what, "other lists stand only after `in`")
        return Literal(Type.LIST, tuple(float(item.value) for item in items if isinstance(item.value, int | float)))

    def choice(self, node: ast.IfExp) -> Node:
        condition = self.typed(node.test, Type.BOOL, "if")
        then, otherwise = self.check(node.body), self.check(node.orelse)
        kinds = {then.type, otherwise.type}
        if len(kinds) == 1:
            kind = then.type
        elif Type.FLOAT in kinds and kinds <= {*NUMBERS, Type.ANY}:
            kind = Type.FLOAT  # an int that the other branch turns out to be is made a float
        elif Type.ANY in kinds:
            kind = Type.ANY
        else:
            what = f"the branches differ: {an(then.type)} and {an(otherwise.type)}"
            raise self.error(node.orelse, what, "give both the same type")
        return tree.Choice(kind, condition, then, otherwise)

    def call(self, node: ast.Call) -> Node:
        if not isinstance(node.func, ast.Name) or node.func.id not in FUNCTIONS:
            if isinstance(node.func, ast.Attribute):
                what = f"values have no methods, so there is no `.{node.func.attr}()`"
                known = node.func.attr in FUNCTIONS
                raise self.error(node, what, f"write `{node.func.attr}(e.field, ...)`" if known else "use a function")
            name = node.func.id if isinstance(node.func, ast.Name) else "this"
            hint = did_you_mean(name, FUNCTIONS, f"there are: {', '.join(sorted(FUNCTIONS))}")
            raise self.error(node, f"`{name}` is not a function of the expression language", hint)
        signature = FUNCTIONS[node.func.id]
        if node.keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
            raise self.error(node, f"{signature.name} takes plain arguments only", "write the values themselves")
        if not signature.least <= len(node.args) <= signature.most:
            what = f"{signature.name} takes {signature.count_text}, here are {len(node.args)}"
            raise self.error(node, what, f"give it {signature.count_text}")
        arguments = tuple(self.check(argument) for argument in node.args)
        for argument, at in zip(arguments, node.args, strict=True):
            if argument.type is not Type.ANY and argument.type not in signature.accepts:
                takes = one_of(str(kind) for kind in signature.accepts)
                raise self.error(at, f"{signature.name} does not take {an(argument.type)}", f"it takes {takes}")
        kinds = {argument.type for argument in arguments}
        if signature.name in ("min", "max") and Type.STRING in kinds and kinds & NUMBERS:
            raise self.error(node, f"{signature.name} over strings and numbers", "compare one or the other")
        return tree.Call(signature.result(kinds), signature.name, arguments)


def _common_number(left: Type, right: Type) -> Type:
    """int with float computes as float; what is known only at run time stays so, unless the other is a float."""
    if Type.FLOAT in (left, right):
        return Type.FLOAT
    return Type.ANY if Type.ANY in (left, right) else Type.INT


def _is_null(node: ast.expr) -> bool:
    return (isinstance(node, ast.Constant) and node.value is None) or (isinstance(node, ast.Name) and node.id == "null")


_REFUSED: Final[dict[type[ast.AST], str]] = {
    ast.Subscript: "fields are written `e.a.b`; there are no indices",
    ast.JoinedStr: "write a plain string",
    ast.NamedExpr: "to compare, write `==`; to set a register use `set:`",
    ast.Tuple: "lists are written in [ ]",
    ast.Set: "lists are written in [ ]",
    ast.Starred: "write the value itself",
}


def _describe(node: ast.AST) -> str:
    words = {"Subscript": "an index", "NamedExpr": "`:=`", "JoinedStr": "an f-string", "Pow": "`**`", "MatMult": "`@`"}
    name = type(node).__name__
    return words.get(name, f"Python's {name}")
