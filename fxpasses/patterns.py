"""Patterns: what a rewrite looks for, written like the expression itself.

    x, scale = var("x"), var("scale")
    pattern = op(aten.add.Tensor, op(aten.mul.Tensor, x, scale), x)

    found = pattern.match(node)       # None, or found["x"], found["scale"]

* A variable stands for any operand; where it occurs twice, both must be the same operand.
* A literal stands for itself: 1 is not 1.0.
* `op` takes one operator or several alternatives, and looks through ExecuTorch's edge dialect.
  Operands may be left out where the schema has a default; commutative operators match either way.
* `several` stands for any number of elements of a list operand, `one_of` for alternatives.
* `match_all` matches several results of one computation together.

Matching is by search with early refusal: before any variable is bound, the shape of the whole
pattern is compared once per pair of pattern and node, so that swapping commutative operands costs
no more than the pairs there are.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Node

from fxpasses.errors import InvalidPass
from fxpasses.operators import argument, operator_of, parameters, refuse_no_operator

aten = torch.ops.aten

Bindings = dict[str, Any]
Predicate = Callable[[Any], bool]
Shapes = dict[tuple[int, Node], bool]

COMMUTATIVE = frozenset(
    {aten.add.Tensor, aten.mul.Tensor, aten.maximum.default, aten.minimum.default}
    | {aten.logical_and.default, aten.logical_or.default, aten.logical_xor.default}
    | {aten.bitwise_and.Tensor, aten.bitwise_or.Tensor, aten.bitwise_xor.Tensor}
    | {aten.eq.Tensor, aten.ne.Tensor, operator.add, operator.mul}
)


class Pattern:
    """What an operand may look like."""

    def match(self, value: Any) -> Bindings | None:
        """The first way to bind the variables so that the pattern equals `value`, or None."""
        return next(self.matches(value), None)

    def matches(self, value: Any) -> Iterator[Bindings]:
        """Every way to bind the variables so that the pattern equals `value`."""
        shapes: Shapes = {}
        return self.bind(value, {}, shapes) if self.fits(value, shapes) else iter(())

    def fits(self, value: Any, shapes: Shapes) -> bool:
        """Whether `value` has the pattern's shape, variables aside; asked once of each node."""
        if not isinstance(value, Node):
            return self.shaped(value, shapes)
        key = (id(self), value)
        if key not in shapes:
            shapes[key] = self.shaped(value, shapes)
        return shapes[key]

    def shaped(self, value: Any, shapes: Shapes) -> bool:
        """As `fits`, without memory."""
        raise InvalidPass(f"{type(self).__name__} does not define shaped")

    def bind(self, value: Any, bound: Bindings, shapes: Shapes) -> Iterator[Bindings]:
        """Every extension of `bound` under which the pattern equals `value`."""
        raise InvalidPass(f"{type(self).__name__} does not define bind")


@dataclass(frozen=True, eq=False)
class Variable(Pattern):
    """Any operand that satisfies `where`, the same one at each occurrence of `name`."""

    name: str
    where: Predicate | None = None

    def shaped(self, value: Any, shapes: Shapes) -> bool:
        return self.where is None or self.where(value)

    def bind(self, value: Any, bound: Bindings, shapes: Shapes) -> Iterator[Bindings]:
        if self.name not in bound:
            yield {**bound, self.name: value}
        elif same(bound[self.name], value):
            yield bound


@dataclass(frozen=True, eq=False)
class Literal(Pattern):
    """One constant, of the same type."""

    value: Any

    def shaped(self, value: Any, shapes: Shapes) -> bool:
        return same(self.value, value)

    def bind(self, value: Any, bound: Bindings, shapes: Shapes) -> Iterator[Bindings]:
        yield bound


@dataclass(frozen=True, eq=False)
class Elements(Pattern):
    """A list operand, element by element; `several` stands for any number of them."""

    items: tuple[Pattern, ...]

    def shaped(self, value: Any, shapes: Shapes) -> bool:
        if not isinstance(value, list | tuple):
            return False
        return any(
            all(item.fits(part, shapes) for item, part in zip(self.items, parts, strict=True))
            for parts in _splits(self.items, list(value))
        )

    def bind(self, value: Any, bound: Bindings, shapes: Shapes) -> Iterator[Bindings]:
        for parts in _splits(self.items, list(value)):
            yield from _bind_all(self.items, parts, bound, shapes)


@dataclass(frozen=True, eq=False)
class Several(Pattern):
    """Any number of elements, each like `item`, bound together as a tuple."""

    name: str
    item: Pattern | None = None

    def shaped(self, value: Any, shapes: Shapes) -> bool:
        return self.item is None or all(self.item.fits(part, shapes) for part in value)

    def bind(self, value: Any, bound: Bindings, shapes: Shapes) -> Iterator[Bindings]:
        if self.name not in bound:
            yield {**bound, self.name: tuple(value)}
        elif same(bound[self.name], tuple(value)):
            yield bound


@dataclass(frozen=True, eq=False)
class OneOf(Pattern):
    """The first of several patterns that matches, then the next."""

    options: tuple[Pattern, ...]

    def shaped(self, value: Any, shapes: Shapes) -> bool:
        return any(option.fits(value, shapes) for option in self.options)

    def bind(self, value: Any, bound: Bindings, shapes: Shapes) -> Iterator[Bindings]:
        for option in self.options:
            if option.fits(value, shapes):
                yield from option.bind(value, bound, shapes)


@dataclass(frozen=True, eq=False)
class Call(Pattern):
    """A call of one of `targets`; `name` binds the node itself."""

    targets: tuple[Any, ...]
    args: tuple[Pattern, ...]
    kwargs: dict[str, Pattern] = field(default_factory=dict)
    name: str = ""
    where: Predicate | None = None

    def shaped(self, value: Any, shapes: Shapes) -> bool:
        if not isinstance(value, Node) or operator_of(value) not in self.targets:
            return False
        if self.where is not None and not self.where(value):
            return False
        return any(
            all(pattern.fits(given, shapes) for pattern, given in pairs)
            for pairs in self._arrangements(value)
        )

    def bind(self, value: Any, bound: Bindings, shapes: Shapes) -> Iterator[Bindings]:
        if self.name:
            if self.name in bound and bound[self.name] is not value:
                return
            bound = {**bound, self.name: value}
        for pairs in self._arrangements(value):
            if all(pattern.fits(given, shapes) for pattern, given in pairs):
                patterns, given = zip(*pairs, strict=True) if pairs else ((), ())
                yield from _bind_all(patterns, given, bound, shapes)

    def _arrangements(self, node: Node) -> Iterator[list[tuple[Pattern, Any]]]:
        """The operand patterns beside the operands, once or, for a commutative call, twice."""
        given = self._operands(node)
        if given is None:
            return
        yield given
        if operator_of(node) in COMMUTATIVE and len(self.args) >= 2:
            (first, a), (second, b), *rest = given
            yield [(first, b), (second, a), *rest]

    def _operands(self, node: Node) -> list[tuple[Pattern, Any]] | None:
        called = operator_of(node)
        if not isinstance(called, OpOverload):
            same_count = len(node.args) == len(self.args)
            return list(zip(self.args, node.args, strict=True)) if same_count else None
        names = [declared.name for declared in parameters(called)]
        wanted = {**dict(zip(names, self.args, strict=False)), **self.kwargs}
        if len(self.args) > len(names) or not set(self.kwargs) <= set(names):
            return None
        if not _rest_is_default(node, called, wanted):
            return None
        return [(pattern, argument(node, name)) for name, pattern in wanted.items()]


def var(name: str, where: Predicate | None = None) -> Variable:
    """Any operand that satisfies `where`; the same operand wherever `name` occurs."""
    return Variable(name, where)


def op(
    target: Any, *args: Any, name: str = "", where: Predicate | None = None, **kwargs: Any
) -> Call:
    """A call of `target`, or of one of several when it is a tuple, on operands like `args`.

    Args:
        target: an operator, or a tuple of alternatives with the same operands.
        *args: patterns or constants for the operands in schema order.
        name: binds the matched node itself.
        where: what else must hold of the node.
        **kwargs: patterns or constants by schema name; what is not named has its default.

    Raises:
        InvalidPass: a target is no operator, or takes no such operands.
    """
    targets = target if isinstance(target, tuple) else (target,)
    for each in targets:
        refuse_no_operator(each)
        _refuse_operands(each, len(args), kwargs)
    operands = {key: _pattern(value) for key, value in kwargs.items()}
    return Call(targets, tuple(map(_pattern, args)), operands, name, where)


def _refuse_operands(target: Any, count: int, names: Iterable[str]) -> None:
    """Refuse operands that the schema does not have: such a pattern would never match."""
    if not isinstance(target, OpOverload):
        return
    declared = [argument.name for argument in target._schema.arguments]
    if count > len(declared):
        raise InvalidPass(f"{target} takes {len(declared)} operands, the pattern has {count}")
    for name in names:
        if name not in declared:
            raise InvalidPass(f"{target} has no operand {name!r}; it has: {', '.join(declared)}")


def one_of(*options: Any) -> OneOf:
    """Alternatives, tried in order."""
    return OneOf(tuple(map(_pattern, options)))


def several(name: str, item: Any = None) -> Several:
    """Any number of elements inside a list operand, each like `item` when that is given."""
    return Several(name, None if item is None else _pattern(item))


def match_all(patterns: Sequence[Pattern], node: Node) -> Bindings | None:
    """Match several results of one computation: the first at `node`, the others near it.

    The others are looked for among the readers of what is bound so far, so each must read,
    directly, something that an earlier pattern binds.
    """
    return next(_match_rest(list(patterns), [node], {}), None)


def _match_rest(
    patterns: list[Pattern], candidates: list[Node], bound: Bindings
) -> Iterator[Bindings]:
    if not patterns:
        yield bound
        return
    for candidate in candidates:
        shapes: Shapes = {}
        if patterns[0].fits(candidate, shapes):
            for found in patterns[0].bind(candidate, bound, shapes):
                nodes = [value for value in found.values() if isinstance(value, Node)]
                readers = list(dict.fromkeys(user for value in nodes for user in value.users))
                yield from _match_rest(patterns[1:], readers, found)


def same(left: Any, right: Any) -> bool:
    """Whether two operands are the same node, or constants equal in type and value."""
    if isinstance(left, Node) or isinstance(right, Node):
        return left is right
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return type(left) is type(right) and bool(left == right)


def _pattern(value: Any) -> Pattern:
    if isinstance(value, Pattern):
        return value
    if isinstance(value, list):
        return Elements(tuple(map(_pattern, value)))
    return Literal(value)


def _bind_all(
    patterns: Sequence[Pattern], values: Sequence[Any], bound: Bindings, shapes: Shapes
) -> Iterator[Bindings]:
    if not patterns:
        yield bound
        return
    for extended in patterns[0].bind(values[0], bound, shapes):
        yield from _bind_all(patterns[1:], values[1:], extended, shapes)


def _splits(items: tuple[Pattern, ...], values: list[Any]) -> Iterator[list[Any]]:
    """The ways to hand out `values` in order: a run to each `several`, one to each other item."""
    if not items:
        if not values:
            yield []
        return
    runs = isinstance(items[0], Several)
    for count in range(len(values) + 1) if runs else (1,):
        if count <= len(values):
            head = values[:count] if runs else values[0]
            for rest in _splits(items[1:], values[count:]):
                yield [head, *rest]


def _rest_is_default(node: Node, called: OpOverload, wanted: dict[str, Pattern]) -> bool:
    return all(
        declared.name in wanted or same(argument(node, declared.name), declared.default_value)
        for declared in parameters(called)
    )
