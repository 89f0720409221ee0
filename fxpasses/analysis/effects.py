"""What running a node does besides computing its value.

    effects(node).pure          # may be dropped when nobody reads it
    effects(node).writes        # the operands it overwrites

Facts come from the operator's schema and tags. An operator from outside torch is taken at its
worst, because its schema may leave effects out. A higher-order operator does what its graphs do.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, reduce
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import GraphModule, Node

from fxpasses.operators import arguments, is_higher_order, nodes_in, operator_of
from fxpasses.regions import attribute

_TRUSTED = frozenset({"aten", "prims", "prim", "quantized", "quantized_decomposed"})
_CHECKS = frozenset(
    {"_assert_scalar", "_assert_async", "_assert_tensor_metadata", "_print", "sym_constrain_range"}
    | {"sym_constrain_range_for_size", "_functional_assert_async", "_functional_assert_scalar"}
)
_UNSPECIFIED = frozenset(
    {"empty", "empty_strided", "empty_like", "empty_permuted"} | {"new_empty", "new_empty_strided"}
)


# Normalisations that write their running statistics in training without declaring it.
_HIDE_WRITES = frozenset(
    {"aten::batch_norm", "aten::instance_norm", "aten::native_batch_norm"}
    | {"aten::_batch_norm_impl_index", "aten::cudnn_batch_norm", "aten::miopen_batch_norm"}
)
_STATISTICS = frozenset({"running_mean", "running_var"})
_TRAINING = frozenset({"training", "use_input_stats"})


@dataclass(frozen=True)
class Effects:
    """What a node does.

    Attributes:
        writes: operands that it overwrites in place.
        random: it draws random numbers, or returns memory that nobody has written.
        checks: it exists to raise, or to print, and not for its value.
        unknown: it may do anything.
    """

    writes: tuple[Node, ...] = ()
    random: bool = False
    checks: bool = False
    unknown: bool = False

    @property
    def pure(self) -> bool:
        """Whether its value, a function of its operands, is all that it gives."""
        return not (self.writes or self.random or self.checks or self.unknown)


PURE = Effects()


def effects(node: Node) -> Effects:
    """The effects of one node; placeholders, attributes and outputs have none."""
    if node.op in ("placeholder", "get_attr", "output"):
        return PURE
    if node.op != "call_function":
        return Effects(unknown=True)
    if is_higher_order(node):
        return _of_graphs(node)
    called = operator_of(node)
    known = of_operator(called)
    return replace(known, writes=_written(node)) if may_write(called) else known


@cache
def may_write(called: Any) -> bool:
    """Whether an operator can overwrite an operand, by its schema or by what it hides."""
    if not isinstance(called, OpOverload):
        return False
    return called._schema.is_mutable or called._schema.name in _HIDE_WRITES


@cache
def of_operator(called: Any) -> Effects:
    """What an operator or function does in every call, writes to its operands apart."""
    if not isinstance(called, OpOverload):
        return PURE if _is_plain_function(called) else Effects(unknown=True)
    name = called._schema.name.split("::")[-1]
    return Effects(
        random=torch.Tag.nondeterministic_seeded in called.tags or name in _UNSPECIFIED,
        checks=name in _CHECKS,
        unknown=called.namespace not in _TRUSTED,
    )


def _written(node: Node) -> tuple[Node, ...]:
    """The operands that the schema marks as written, and running statistics in training."""
    hidden = operator_of(node)._schema.name in _HIDE_WRITES and _trains(node)
    return tuple(
        operand
        for declared, value in arguments(node)
        if (declared.alias_info is not None and declared.alias_info.is_write)
        or (hidden and declared.name in _STATISTICS)
        for operand in nodes_in(value)
    )


def _trains(node: Node) -> bool:
    """Whether a normalisation updates its running statistics; what is not known counts as yes."""
    flags = [value for declared, value in arguments(node) if declared.name in _TRAINING]
    return flags != [False]


def _is_plain_function(called: Any) -> bool:
    """Arithmetic on sizes, and getitem."""
    plain = getattr(called, "__module__", "") in ("_operator", "math")
    return called in _SIZE_FUNCTIONS or (plain and called not in _IN_PLACE_FUNCTIONS)


_IN_PLACE_FUNCTIONS = frozenset(
    {operator.setitem, operator.delitem, operator.iconcat, operator.iand, operator.ior}
    | {operator.iadd, operator.isub, operator.imul, operator.imatmul, operator.ipow}
    | {operator.itruediv, operator.ifloordiv, operator.imod, operator.ixor}
    | {operator.ilshift, operator.irshift}
)
_SIZE_FUNCTIONS = frozenset(
    {operator.getitem, torch.sym_float, torch.sym_int, torch.sym_ite, torch.sym_max, torch.sym_min}
    | {torch.sym_not, torch.sym_sum, torch.sym_sqrt}
)


def _of_graphs(node: Node) -> Effects:
    """The effects of a higher-order operator: what its graphs do, writes mapped to its operands."""
    modules = list(graphs_of(node))
    if not modules:
        return Effects(unknown=True)
    inner = [effects(inside) for module in modules for inside in module.graph.nodes]
    merged = reduce(_both, inner, PURE)
    reached = {op for module in modules if merged.writes for op in _written_from_outside(module)}
    writes = _operands_behind(node) if "placeholder" in reached else ()
    return replace(merged, writes=writes, unknown=merged.unknown or "get_attr" in reached)


def _written_from_outside(module: GraphModule) -> Iterator[str]:
    """The kinds of node through which `module` writes memory that is not its own."""
    from fxpasses.analysis.memory import Memory  # which rests on the effects of single nodes

    memory = Memory(module.graph)
    for node in module.graph.nodes:
        if node.op in ("placeholder", "get_attr") and memory.written(node):
            yield node.op


def _both(left: Effects, right: Effects) -> Effects:
    return Effects(
        left.writes + right.writes,
        left.random or right.random,
        left.checks or right.checks,
        left.unknown or right.unknown,
    )


def graphs_of(node: Node) -> Iterator[GraphModule]:
    """The graph modules that a higher-order operator runs."""
    owner = node.graph.owning_module
    for operand in node.all_input_nodes:
        if operand.op == "get_attr" and owner is not None:
            found = attribute(owner, str(operand.target))
            if isinstance(found, GraphModule):
                yield found


def _operands_behind(node: Node) -> tuple[Node, ...]:
    """Every tensor operand: a write inside may reach any of them."""
    return tuple(operand for operand in node.all_input_nodes if operand.op != "get_attr")
