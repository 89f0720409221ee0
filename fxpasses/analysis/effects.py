"""What running a node does besides computing its value.

    effects(node).pure          # may be dropped when nobody reads it
    effects(node).writes        # the operands it overwrites
    effects(node).reads         # the operands whose elements it reads

Facts come from the operator's schema and tags. An operator from outside torch is taken at its
worst, because its schema may leave effects out. A higher-order operator does what its graphs do.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import GraphModule, Node

from fxpasses._torch import always
from fxpasses.analysis.calls import bindings, graph_operands_of
from fxpasses.analysis.waits import what_it_reads
from fxpasses.operators import argument, arguments, is_higher_order, nodes_in, operator_of
from fxpasses.values import is_tensor, value_of

# Operators of these libraries do what their schema and tags say.
_TRUSTED = frozenset({"aten", "prims", "prim", "quantized", "quantized_decomposed"})
# Collectives: every process runs them in one order, and waits for the others.
_COLLECTIVE = frozenset({"_c10d_functional", "_c10d_functional_autograd", "c10d_functional"})
_RAISES = frozenset(
    {"_assert_scalar", "_assert_async", "_assert_tensor_metadata", "sym_constrain_range"}
    | {"sym_constrain_range_for_size", "_functional_assert_async", "_functional_assert_scalar"}
    | {"_linalg_check_errors"}
)
_UNSPECIFIED = frozenset(
    {"empty", "empty_strided", "empty_like", "empty_permuted"} | {"new_empty", "new_empty_strided"}
)


# Normalisations that write their running statistics in training without declaring it.
_HIDE_WRITES = frozenset(
    {"aten::batch_norm", "aten::instance_norm", "aten::native_batch_norm"}
    | {"aten::_batch_norm_impl_index", "aten::cudnn_batch_norm", "aten::miopen_batch_norm"}
)
# The result of a collective arrives while nobody waits for it.
_ARRIVES = frozenset({"wait_tensor"})
# They hold no graph, and write copies of their operands.
_WRITE_COPIES = ("auto_functionalized", "triton_kernel_wrapper_functional")
_STATISTICS = frozenset({"running_mean", "running_var"})
_TRAINING = frozenset({"training", "use_input_stats"})


@dataclass(frozen=True)
class Effects:
    """What a node does.

    Attributes:
        writes: operands that it overwrites in place.
        random: it draws random numbers, or returns memory that nobody has written.
        raises: it checks something, and raises where that does not hold.
        ordered: it keeps its place among its like: it prints, or talks to other processes.
        unknown: it may do anything.
    """

    writes: tuple[Node, ...] = ()
    random: bool = False
    raises: bool = False
    ordered: bool = False
    unknown: bool = False
    _node: Node | None = field(default=None, repr=False, compare=False)

    @property
    def pure(self) -> bool:
        """Whether its value, a function of its operands, is all that it gives."""
        return not (self.writes or self.random or self.raises or self.ordered or self.unknown)

    @property
    def reads(self) -> tuple[Node, ...]:
        """The operands whose elements it reads; a view and a size look at metadata alone."""
        return () if self._node is None else tuple(_read(self._node))

    @property
    def host_read(self) -> str:
        """What the host waits for when this runs on a device; "" for nothing."""
        return "" if self._node is None else what_it_reads(self._node)


PURE = Effects()


def effects(node: Node) -> Effects:
    """The effects of one node; placeholders, attributes and outputs have none."""
    if node.op in ("placeholder", "get_attr", "output"):
        return PURE
    if node.op != "call_function":
        return Effects(unknown=True, _node=node)
    if is_higher_order(node):
        return _of_graphs(node)
    called = operator_of(node)
    known = of_operator(called)
    return Effects(
        writes=_written(node) if may_write(called) else (),
        random=known.random,
        raises=known.raises and not _holds(node),
        ordered=known.ordered,
        unknown=known.unknown,
        _node=node,
    )


@cache
def may_write(called: Any) -> bool:
    """Whether an operator can overwrite an operand, by its schema or by what it hides."""
    if not isinstance(called, OpOverload):
        return False
    return called._schema.is_mutable or called._schema.name in _HIDE_WRITES or _arrives(called)


@cache
def of_operator(called: Any) -> Effects:
    """What an operator or function does in every call, writes to its operands apart."""
    if not isinstance(called, OpOverload):
        return PURE if _is_plain_function(called) else Effects(unknown=True)
    name = called._schema.name.split("::")[-1]
    collective = called.namespace in _COLLECTIVE
    return Effects(
        random=torch.Tag.nondeterministic_seeded in called.tags or name in _UNSPECIFIED,
        raises=name in _RAISES,
        ordered=collective or name == "_print",
        unknown=not collective and called.namespace not in _TRUSTED,
    )


def _arrives(called: OpOverload) -> bool:
    name = called._schema.name.split("::")[-1]
    return called.namespace in _COLLECTIVE and name in _ARRIVES


def _holds(node: Node) -> bool:
    """Whether a check on metadata holds for every input that the program was traced for."""
    if operator_of(node)._schema.name != "aten::_assert_tensor_metadata":
        return False
    if not (node.args and is_tensor(node.args[0])):
        return False
    value = value_of(node.args[0])
    wanted = {name: argument(node, name) for name in ("dtype", "device", "layout")}
    same = all(want is None or want == getattr(value, name) for name, want in wanted.items())
    return same and all(
        _equal(argument(node, name), actual)
        for name, actual in (("size", value.shape), ("stride", value.stride()))
    )


def _equal(wanted: Any, actual: Any) -> bool:
    if wanted is None:
        return True
    pairs = list(zip(map(value_of, wanted), actual, strict=False))
    return len(wanted) == len(actual) and all(always(want == size) for want, size in pairs)


def _written(node: Node) -> tuple[Node, ...]:
    """The operands that the schema marks as written, and running statistics in training."""
    called = operator_of(node)
    hidden = called._schema.name in _HIDE_WRITES and _trains(node)
    if _arrives(called):
        return tuple(node.all_input_nodes)
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
    inner = [_of_graph(node, operand, module) for operand, module in graph_operands_of(node)]
    if not inner:
        copies = str(getattr(node.target, "_name", "")).startswith(_WRITE_COPIES)
        return Effects(() if copies else tuple(node.all_input_nodes), unknown=True, _node=node)
    return Effects(
        writes=tuple(dict.fromkeys(written for found in inner for written in found.writes)),
        random=any(found.random for found in inner),
        raises=any(found.raises for found in inner),
        ordered=any(found.ordered for found in inner),
        unknown=any(found.unknown for found in inner),
        _node=node,
    )


def _of_graph(node: Node, operand: Node, module: GraphModule) -> Effects:
    """What one graph of a higher-order operator does in that call."""
    from fxpasses.analysis.memory import Memory  # which rests on the effects of single nodes

    memory = Memory(module.graph)
    found = [memory.effects(inside) for inside in module.graph.nodes]
    holders = [n for n in module.graph.nodes if n.op in ("placeholder", "get_attr")]
    reached = [holder for holder in holders if memory.written(holder)]
    return Effects(
        writes=tuple(_behind(node, operand, [n for n in reached if n.op == "placeholder"])),
        random=any(effect.random for effect in found),
        raises=any(effect.raises for effect in found),
        ordered=any(effect.ordered for effect in found),
        # What a graph holds may be held by others, who do not see the operator that runs it.
        unknown=any(effect.unknown for effect in found) or any(n.op == "get_attr" for n in reached),
    )


def _behind(node: Node, operand: Node, inside: list[Node]) -> Iterator[Node]:
    """The operands that the placeholders `inside` a graph stand for, or all where it is unclear."""
    bound = bindings(node, operand)
    if bound is None:
        graphs = {graph for graph, _ in graph_operands_of(node)}
        yield from (each for each in node.all_input_nodes if inside and each not in graphs)
        return
    inputs = [n for n in inside[0].graph.nodes if n.op == "placeholder"] if inside else []
    for placeholder, binding in zip(inputs, bound, strict=False):
        if placeholder in inside:
            yield from nodes_in(binding.operand)


_METADATA = frozenset(
    {"sym_size", "sym_stride", "sym_numel", "sym_storage_offset", "size", "stride", "numel", "dim"}
    | {"empty_like", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "new_full"}
    | {"randint_like", "new_empty", "new_zeros", "new_ones", "new_empty_strided", "is_contiguous"}
    | {"_assert_tensor_metadata", "sym_is_contiguous", "storage_offset"}
)


def _read(node: Node) -> Iterator[Node]:
    called = operator_of(node)
    if not isinstance(called, OpOverload):
        graphs = [operand for operand, _ in graph_operands_of(node)]
        given = () if called is operator.getitem else node.all_input_nodes
        yield from (operand for operand in given if operand not in graphs)
    elif called._schema.name.split("::")[-1] not in _METADATA:
        for declared, value in arguments(node):
            alias = declared.alias_info
            if alias is None or _modifies(called, declared.name):
                yield from nodes_in(value)


def _modifies(called: OpOverload, name: str) -> bool:
    """Whether a written operand is read first: `add_` does, `copy_` and `out=` do not."""
    overwrites = called._schema.name.split("::")[-1] in ("copy_", "fill_", "zero_", "set_")
    return called._schema.is_mutable and name == "self" and not overwrites


def graphs_of(node: Node) -> Iterator[GraphModule]:
    """The graph modules that a higher-order operator runs."""
    yield from (module for _, module in graph_operands_of(node))
