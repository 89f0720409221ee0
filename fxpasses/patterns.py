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

Matching is by search with early refusal. Before any variable is bound, the shape of the whole
pattern is compared, once for each pair of pattern and node. Then `match` tries two ways to bind a
part only where they differ in a variable that occurs again, so that swapping commutative operands
costs no more than the pairs there are.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Node

from fxpasses.errors import InvalidPass
from fxpasses.operators import argument, operator_of, parameters, refuse_no_operator

aten = torch.ops.aten

Bindings = dict[str, Any]
Predicate = Callable[[Any], bool]

COMMUTATIVE = frozenset(
    {aten.add.Tensor, aten.mul.Tensor, aten.maximum.default, aten.minimum.default}
    | {aten.logical_and.default, aten.logical_or.default, aten.logical_xor.default}
    | {aten.bitwise_and.Tensor, aten.bitwise_or.Tensor, aten.bitwise_xor.Tensor}
    | {aten.eq.Tensor, aten.ne.Tensor, operator.add, operator.mul}
)


@dataclass
class Search:
    """One search for a match.

    Attributes:
        matter: the names whose bindings decide whether the rest of a pattern binds, because they
            occur in it more than once; None where every way to bind is wanted.
        shapes: which pattern has which node's shape.
    """

    matter: frozenset[str] | None = None
    shapes: dict[tuple[int, Node], bool] = field(default_factory=dict)

    def distinct(self, found: Iterator[Bindings]) -> Iterator[Bindings]:
        """`found` without what differs from an earlier one in names that do not matter alone."""
        if self.matter is None:
            yield from found
            return
        seen = set()
        for bound in found:
            key = tuple((name, id(bound[name])) for name in self.matter if name in bound)
            if key not in seen:
                seen.add(key)
                yield bound


class Pattern:
    """What an operand may look like."""

    def match(self, value: Any) -> Bindings | None:
        """The first way to bind the variables so that the pattern equals `value`, or None."""
        return next(self._search(value, Search(self._repeated)), None)

    def matches(self, value: Any) -> Iterator[Bindings]:
        """Every way to bind the variables so that the pattern equals `value`."""
        return self._search(value, Search())

    def _search(self, value: Any, search: Search) -> Iterator[Bindings]:
        return self.bind(value, {}, search) if self.fits(value, search) else iter(())

    @cached_property
    def _repeated(self) -> frozenset[str]:
        """The names that are bound more than once; a part that is used twice binds all its own."""
        uses: Counter[Pattern] = Counter([self])
        distinct: list[Pattern] = [self]
        for pattern in distinct:
            distinct += [part for part in dict.fromkeys(pattern.parts()) if part not in uses]
            uses.update(pattern.parts())
        again = {pattern: None for pattern in distinct if uses[pattern] > 1}
        for pattern in distinct:  # from the outside in
            if pattern in again:
                again |= dict.fromkeys(pattern.parts())
        binders = Counter(pattern.bound_name for pattern in distinct)
        names = {name for name, count in binders.items() if count > 1}
        return frozenset(names.union(pattern.bound_name for pattern in again))

    @property
    def bound_name(self) -> str:
        """The name that it binds itself; "" for none."""
        return getattr(self, "name", "")

    def parts(self) -> tuple[Pattern, ...]:
        """The patterns that it is directly made of."""
        return ()

    def fits(self, value: Any, search: Search) -> bool:
        """Whether `value` has the pattern's shape, variables aside; asked once of each node."""
        if not isinstance(value, Node):
            return self.shaped(value, search)
        key = (id(self), value)
        if key not in search.shapes:
            search.shapes[key] = self.shaped(value, search)
        return search.shapes[key]

    def shaped(self, value: Any, search: Search) -> bool:
        """As `fits`, without memory."""
        raise InvalidPass(f"{type(self).__name__} does not define shaped")

    def bind(self, value: Any, bound: Bindings, search: Search) -> Iterator[Bindings]:
        """Every extension of `bound` under which the pattern equals `value`."""
        raise InvalidPass(f"{type(self).__name__} does not define bind")


@dataclass(frozen=True, eq=False)
class Variable(Pattern):
    """Any operand that satisfies `where`, the same one at each occurrence of `name`."""

    name: str
    where: Predicate | None = None

    def shaped(self, value: Any, search: Search) -> bool:
        return self.where is None or self.where(value)

    def bind(self, value: Any, bound: Bindings, search: Search) -> Iterator[Bindings]:
        if self.name not in bound:
            yield {**bound, self.name: value}
        elif same(bound[self.name], value):
            yield bound


@dataclass(frozen=True, eq=False)
class Literal(Pattern):
    """One constant, of the same type."""

    value: Any

    def shaped(self, value: Any, search: Search) -> bool:
        return same(self.value, value)

    def bind(self, value: Any, bound: Bindings, search: Search) -> Iterator[Bindings]:
        yield bound


@dataclass(frozen=True, eq=False)
class Elements(Pattern):
    """A list operand, element by element; `several` stands for any number of them."""

    items: tuple[Pattern, ...]

    def parts(self) -> tuple[Pattern, ...]:
        return self.items

    def shaped(self, value: Any, search: Search) -> bool:
        if not isinstance(value, list | tuple):
            return False
        return any(
            all(item.fits(part, search) for item, part in zip(self.items, parts, strict=True))
            for parts in _splits(self.items, list(value))
        )

    def bind(self, value: Any, bound: Bindings, search: Search) -> Iterator[Bindings]:
        for parts in _splits(self.items, list(value)):
            yield from _bind_all(self.items, parts, bound, search)


@dataclass(frozen=True, eq=False)
class Several(Pattern):
    """Any number of elements, each like `item`, bound together as a tuple."""

    name: str
    item: Pattern | None = None

    def parts(self) -> tuple[Pattern, ...]:
        return (self.item,) if self.item else ()

    def shaped(self, value: Any, search: Search) -> bool:
        return self.item is None or all(self.item.fits(part, search) for part in value)

    def bind(self, value: Any, bound: Bindings, search: Search) -> Iterator[Bindings]:
        if self.name not in bound:
            yield {**bound, self.name: tuple(value)}
        elif same(bound[self.name], tuple(value)):
            yield bound


@dataclass(frozen=True, eq=False)
class OneOf(Pattern):
    """The first of several patterns that matches, then the next."""

    options: tuple[Pattern, ...]

    def parts(self) -> tuple[Pattern, ...]:
        return self.options

    def shaped(self, value: Any, search: Search) -> bool:
        return any(option.fits(value, search) for option in self.options)

    def bind(self, value: Any, bound: Bindings, search: Search) -> Iterator[Bindings]:
        for option in self.options:
            if option.fits(value, search):
                yield from option.bind(value, bound, search)


@dataclass(frozen=True, eq=False)
class Call(Pattern):
    """A call of one of `targets`; `name` binds the node itself."""

    targets: tuple[Any, ...]
    args: tuple[Pattern, ...]
    kwargs: dict[str, Pattern] = field(default_factory=dict)
    name: str = ""
    where: Predicate | None = None

    def parts(self) -> tuple[Pattern, ...]:
        return (*self.args, *self.kwargs.values())

    def shaped(self, value: Any, search: Search) -> bool:
        if not isinstance(value, Node) or operator_of(value) not in self.targets:
            return False
        if self.where is not None and not self.where(value):
            return False
        return any(
            all(pattern.fits(given, search) for pattern, given in pairs)
            for pairs in self._arrangements(value)
        )

    def bind(self, value: Any, bound: Bindings, search: Search) -> Iterator[Bindings]:
        if self.name:
            if self.name in bound and bound[self.name] is not value:
                return
            bound = {**bound, self.name: value}
        for pairs in self._arrangements(value):
            if all(pattern.fits(given, search) for pattern, given in pairs):
                patterns, given = zip(*pairs, strict=True) if pairs else ((), ())
                yield from _bind_all(patterns, given, bound, search)

    def _arrangements(self, node: Node) -> Iterator[list[tuple[Pattern, Any]]]:
        """The operand patterns beside the operands, once or, for a commutative call, twice."""
        given = self._operands(node)
        if given is None:
            return
        yield list(given.values())
        names = _first_two(operator_of(node))
        if _commutes(node) and all(name in given for name in names):
            (first, a), (second, b) = (given.pop(name) for name in names)
            yield [(first, b), (second, a), *given.values()]

    def _operands(self, node: Node) -> dict[Any, tuple[Pattern, Any]] | None:
        """The patterns of operands beside the operands, by name or place."""
        called = operator_of(node)
        if not isinstance(called, OpOverload):
            pairs = zip(self.args, node.args, strict=False)
            return dict(enumerate(pairs)) if len(node.args) == len(self.args) else None
        names = [declared.name for declared in parameters(called)]
        wanted = {**dict(zip(names, self.args, strict=False)), **self.kwargs}
        if len(self.args) > len(names) or not set(self.kwargs) <= set(names):
            return None
        if not _rest_is_default(node, called, wanted):
            return None
        return {name: (pattern, argument(node, name)) for name, pattern in wanted.items()}


def _first_two(called: Any) -> Sequence[Any]:
    """Names, or places, of the operands that a commutative operator lets change places."""
    if not isinstance(called, OpOverload):
        return 0, 1
    return [declared.name for declared in parameters(called)[:2]]


def _commutes(node: Node) -> bool:
    """Whether the first two operands may change places: not where one of them is scaled."""
    called = operator_of(node)
    scaled = called is aten.add.Tensor and argument(node, "alpha") != 1
    return called in COMMUTATIVE and not scaled


def var(name: str, where: Predicate | None = None) -> Variable:
    """Any operand that satisfies `where`; the same operand wherever `name` occurs."""
    return Variable(name, where)


def op(
    target: Any, /, *args: Any, name: str = "", where: Predicate | None = None, **kwargs: Any
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
    directly, something that an earlier pattern binds. No two match one node.
    """
    return next(_match_rest(list(patterns), [node], {}), None)


def _match_rest(
    patterns: list[Pattern],
    candidates: list[Node],
    bound: Bindings,
    taken: tuple[Node, ...] = (),
) -> Iterator[Bindings]:
    if not patterns:
        yield bound
        return
    for candidate in candidates:
        search = Search()
        if candidate not in taken and patterns[0].fits(candidate, search):
            for found in patterns[0].bind(candidate, bound, search):
                nodes = [value for value in found.values() if isinstance(value, Node)]
                readers = list(dict.fromkeys(user for value in nodes for user in value.users))
                yield from _match_rest(patterns[1:], readers, found, (*taken, candidate))


def same(left: Any, right: Any) -> bool:
    """Whether two operands are the same node, or constants equal in type and value."""
    if isinstance(left, Node) or isinstance(right, Node):
        return left is right
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if type(left) is not type(right) or not bool(left == right):
        return False
    return not isinstance(left, float) or math.copysign(1, left) == math.copysign(1, right)


def _pattern(value: Any) -> Pattern:
    if isinstance(value, Pattern):
        return value
    if isinstance(value, list | tuple):
        return Elements(tuple(map(_pattern, value)))
    return Literal(value)


def _bind_all(
    patterns: Sequence[Pattern], values: Sequence[Any], bound: Bindings, search: Search
) -> Iterator[Bindings]:
    if not patterns:
        yield bound
        return
    for extended in search.distinct(patterns[0].bind(values[0], bound, search)):
        yield from _bind_all(patterns[1:], values[1:], extended, search)


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
