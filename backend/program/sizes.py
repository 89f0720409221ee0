"""Sizes as a file holds them: numbers, symbols, and expressions over symbols.

    Dynamic("s77", 1, 20)          # a batch of 1 to 20
    evaluate("2*s77 + 1", {"s77": 3})    # 7

An expression is arithmetic on integers and names. It is read from its syntax tree, never run.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from backend.errors import InvalidProgram
from backend.program.fields import Fields

OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
FUNCTIONS: dict[str, Callable[..., int]] = {
    "Max": max,
    "Min": min,
    "Mod": operator.mod,
    "FloorDiv": operator.floordiv,
    "CeilDiv": lambda a, b: -(-a // b),
}


@dataclass(frozen=True)
class Dynamic:
    """A size known at the call: a symbol or an expression, and the range that was compiled for."""

    symbol: str
    minimum: int
    maximum: int | None

    def to_json(self) -> dict[str, Any]:
        """{"symbol", "min", "max"}; a "max" of null stands for no upper bound."""
        return {"symbol": self.symbol, "min": self.minimum, "max": self.maximum}

    def __str__(self) -> str:
        upper = "" if self.maximum is None else str(self.maximum)
        return f"{self.symbol}[{self.minimum}..{upper}]"


Size = int | Dynamic


def size_from_json(value: Any, fields: Fields, name: str) -> Size:
    """A size of a shape.

    Raises:
        InvalidProgram: neither an integer nor {"symbol", "min", "max"}.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if not isinstance(value, dict):
        raise fields.wrong(name, "a list of sizes")
    inner = Fields(value, f"{fields.path}.{name}")
    maximum = None if value.get("max", 0) is None else inner.integer("max")
    return Dynamic(inner.text("symbol"), inner.integer("min"), maximum)


def size_to_json(size: Size) -> Any:
    """The form that `size_from_json` reads."""
    return size.to_json() if isinstance(size, Dynamic) else size


def evaluate(expression: str, symbols: Mapping[str, int]) -> int | None:
    """The value of `expression`, or None when a symbol in it has no value.

    Raises:
        InvalidProgram: it is no arithmetic on integers.
    """
    try:
        return _value(ast.parse(expression, mode="eval").body, symbols)
    except KeyError:
        return None
    except (SyntaxError, TypeError, ArithmeticError) as error:
        raise InvalidProgram(f"size {expression!r} cannot be computed: {error}") from None


def _value(node: ast.expr, symbols: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(value=int(number)):
            return number
        case ast.Name(id=name):
            return symbols[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, symbols)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_value(left, symbols), _value(right, symbols))
        case ast.Call(func=ast.Name(id=name), args=args) if name in FUNCTIONS:
            return FUNCTIONS[name](*(_value(arg, symbols) for arg in args))
    raise TypeError(f"{ast.unparse(node)} is not arithmetic")
