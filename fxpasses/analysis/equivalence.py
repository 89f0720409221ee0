"""When do two nodes hold the same value, bit for bit?

    equivalent(mask_a, mask_b)            # true, or false with .reason
    Numbering(graph).read(mask, index)    # the value number that `index` reads

Every node gets a value number in one walk over the graph: two nodes get the same number when they
apply the same pure, deterministic operator to operands with the same numbers and to equal
constants (1, 1.0 and True are three constants). This is global value numbering (Cocke and
Schwartz, 1970); it is linear in the graph, and has no recursion to overflow on long histories.

What stays apart: two draws of random numbers, reads on different sides of a write, the results of
operators with effects or whose order of atomic updates is free on a GPU, scalars read from a
tensor, and anything computed from strides. Equal numbers mean equal layouts too, because a
reduction rounds by layout.
"""

from __future__ import annotations

import operator
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch._ops import HigherOrderOperator, OpOverload
from torch.fx import Graph, Node
from torch.utils._pytree import tree_leaves

from fxpasses._torch import expression
from fxpasses.analysis.effects import may_write, of_operator
from fxpasses.analysis.memory import Memory
from fxpasses.operators import describe, operator_of
from fxpasses.values import is_tensor, signature_of, value_of
from fxpasses.verdict import YES, Verdict, no

aten = torch.ops.aten

_KEEPS_VALUE = frozenset(
    {aten.alias.default, aten.detach.default, aten.clone.default, aten.contiguous.default}
    | {aten.lift_fresh_copy.default, aten.lift_fresh.default, aten.detach_.default}
    | {aten.to.dtype, aten._to_copy.default, aten.view_as.default}
)
_UNREPEATABLE = frozenset(
    {aten.scatter_add.default, aten.scatter_reduce.two, aten.scatter.src, aten.index_add.default}
    | {aten.index_put.default, aten.index_reduce.default, aten.put.default, aten.histc.default}
    | {aten.bincount.default, aten.kthvalue.default, aten.median.dim, aten.cumsum.default}
    | {aten._local_scalar_dense.default, aten.item.default}
)
_COMMUTES = frozenset(
    {aten.mul.Tensor, aten.logical_and.default, aten.logical_or.default, aten.logical_xor.default}
    | {aten.bitwise_and.Tensor, aten.bitwise_or.Tensor, aten.bitwise_xor.Tensor}
    | {aten.eq.Tensor, aten.ne.Tensor, operator.and_, operator.or_, operator.xor}
)
_READS_STRIDES = frozenset(
    {aten.as_strided.default, aten.as_strided_copy.default, aten.sym_stride.int}
    | {aten.sym_storage_offset.default, aten.is_contiguous.default, aten.stride.int}
)
_APART = _READS_STRIDES | _UNREPEATABLE


@dataclass(frozen=True, eq=False)
class _Facts:
    """What numbering needs to know of an operator; one object an operator, compared by identity.

    Attributes:
        keeps_value: where metadata stay the same, the result is the first operand.
        commutes: the first two operands may change places.
        defaults: the schema's arguments in order, each with the key of its default.
    """

    keeps_value: bool
    commutes: bool
    defaults: tuple[tuple[str, Hashable], ...]


@cache
def _facts(called: Any) -> _Facts | None:
    """The facts of an operator that repeats: equal operands, equal value; None for any other."""
    if called in _APART or isinstance(called, HigherOrderOperator):
        return None
    schema = called._schema if isinstance(called, OpOverload) else None
    if not of_operator(called).pure or may_write(called):
        return None
    declared = schema.arguments if schema else ()
    defaults = tuple((argument.name, _default_key(argument)) for argument in declared)
    return _Facts(called in _KEEPS_VALUE, called in _COMMUTES, defaults)


class Numbering:
    """Value numbers of one graph, as it is when this is built.

    A rewrite keeps values, so the numbers of nodes that stay remain true while a pass rewrites
    the graph. A node made later has no number and equals only itself, unless it `stands_for` one.
    """

    def __init__(self, graph: Graph) -> None:
        self.memory = Memory(graph)
        self._numbers: dict[Node, Hashable] = {}
        self._known: dict[Hashable, int] = {}
        for node in graph.nodes:
            self._numbers[node] = self._number(node)

    def number(self, node: Node) -> Hashable:
        """The value number of `node` when it was made; equal numbers mean equal values."""
        return self._numbers.get(node, node)

    def read(self, operand: Node, reader: Node) -> Hashable:
        """The value number of `operand` as `reader` finds it, after the writes in between."""
        position = self.memory.position
        if operand not in position or reader not in position:
            return (operand, reader) if self.memory.writers else operand
        write = self.memory.last_write(operand, reader)
        return self.number(operand) if write is None else (operand, write)

    def stands_for(self, new: Node, old: Node) -> None:
        """Let `new`, which a rewrite put in the place of `old`, hold its value."""
        self._numbers[new] = self.number(old)
        self.memory.stands_for(new, old)

    def _number(self, node: Node) -> Hashable:
        """A number shared by every node that computes the same, or the node itself."""
        called = operator_of(node)
        facts = None if called is None else _facts(called)
        if facts is None or (node.kwargs and not facts.defaults):
            return node
        operands = self._operands(node, facts)
        if facts.keeps_value and _same_metadata(node, node.args[0]):
            return operands[0]
        key: Hashable = (facts, operands)
        if facts.commutes and len(operands) >= 2:
            either_way = *sorted(operands[:2], key=repr), operands[2:]
            key = (facts, either_way, signature_of(value_of(node)))
        return self._known.setdefault(key, len(self._known))

    def _operands(self, node: Node, facts: _Facts) -> tuple[Hashable, ...]:
        given = [self._constant(value, node) for value in node.args]
        for name, default in facts.defaults[len(given) :]:
            named = name in node.kwargs
            given.append(self._constant(node.kwargs[name], node) if named else default)
        return tuple(given)

    def _constant(self, value: Any, reader: Node) -> Hashable:
        """An operand as part of a key: its value number, or a constant with its type."""
        if isinstance(value, Node):
            return self.read(value, reader) if self.memory.writers else self._numbers[value]
        if isinstance(value, list | tuple):
            return tuple(self._constant(item, reader) for item in value)
        return constant_key(value)


def _same_metadata(node: Node, operand: Any) -> bool:
    return (
        is_tensor(node)
        and is_tensor(operand)
        and signature_of(value_of(node)) == signature_of(value_of(operand))
    )


def constant_key(value: Any) -> Hashable:
    """A constant as part of a key: 1, 1.0 and True differ, 0.0 and -0.0 differ, NaN equals NaN."""
    if isinstance(value, slice):
        return ("slice", *(constant_key(part) for part in (value.start, value.stop, value.step)))
    return (type(value), repr(value) if isinstance(value, float | complex) else expression(value))


def _default_key(declared: torch._C.Argument) -> Hashable:
    if not declared.has_default_value():
        return None
    value = declared.default_value
    return (
        tuple(map(constant_key, value)) if isinstance(value, list | tuple) else constant_key(value)
    )


def equivalent(left: Node, right: Node, numbering: Numbering | None = None) -> Verdict:
    """Whether two nodes of one graph were made with the same value, bit for bit.

    Args:
        left: a node.
        right: another node of the same graph.
        numbering: the graph's numbering, where the caller has one already.

    Returns:
        A true verdict, or a false one whose `reason` names the first place where they part.
    """
    if left is right:
        return YES
    if left.graph is not right.graph:
        return no(f"{left} and {right} belong to different graphs")
    numbering = numbering or Numbering(left.graph)
    if numbering.number(left) == numbering.number(right):
        return YES
    return no(_difference(left, right, numbering))


def _difference(left: Node, right: Node, numbering: Numbering) -> str:
    """Follow the first operand that differs until two nodes differ by themselves."""
    while True:
        if operator_of(left) != operator_of(right) or operator_of(left) is None:
            return f"{left} ({describe(left)}) and {right} ({describe(right)}) are different values"
        if _facts(operator_of(left)) is None:
            return f"{left} and {right} are two runs of {describe(left)}, which may differ"
        pairs = zip(_inputs(left), _inputs(right), strict=False)
        parted = [(a, b) for a, b in pairs if numbering.read(a, left) != numbering.read(b, right)]
        if not parted:
            return f"{left} and {right} apply {describe(left)} with different constants"
        a, b = parted[0]
        if numbering.number(a) == numbering.number(b):
            return _write_between(a, b, left, right, numbering)
        left, right = a, b


def _inputs(node: Node) -> list[Node]:
    return [leaf for leaf in tree_leaves((node.args, node.kwargs)) if isinstance(leaf, Node)]


def _write_between(a: Node, b: Node, left: Node, right: Node, numbering: Numbering) -> str:
    memory = numbering.memory
    write = memory.last_write(a, left) or memory.last_write(b, right)
    return f"{left} and {right} read {a} on different sides of a write by {write}"
