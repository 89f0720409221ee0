"""Which operands a result may share memory with.

    list(bases(view))    # [x]; [] for a fresh result

Schemas declare views; what they leave out is added here: composites that may hand their operand
back, and operators with graphs, whose results may be what a graph was given.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Graph, Node

from fxpasses._torch import is_composite, storage_of
from fxpasses.analysis.calls import bindings, carries, graph_operands_of, results_of
from fxpasses.analysis.effects import graphs_of, of_operator
from fxpasses.operators import arguments, is_higher_order, nodes_in, operator_of
from fxpasses.regions import attribute, placeholders

aten = torch.ops.aten

_UNDECLARED = frozenset(
    {aten.set_.source_Tensor, aten.native_dropout.default, aten.lift.default}
    | {aten._unsafe_view.default, aten.unsafe_split.Tensor, aten.unsafe_chunk.default}
    | {aten.unsafe_split_with_sizes.default}
)


def bases(node: Node) -> Iterator[Node]:
    """The operands whose memory the result of `node` may share."""
    called = operator_of(node)
    if called is None:
        return
    if is_higher_order(node):
        yield from _bases_of_call(node)
    elif called in _UNDECLARED or not isinstance(called, OpOverload) or _is_opaque(called):
        yield from node.all_input_nodes
    else:
        for declared, value in arguments(node):
            if declared.alias_info is not None:
                yield from nodes_in(value)


def _bases_of_call(node: Node) -> Iterator[Node]:
    """The operands behind the inputs that a graph of a higher-order operator may return."""
    graphs = graph_operands_of(node)
    bound = [bindings(node, operand) for operand, _ in graphs]
    if not graphs or None in bound or any(carries(node, operand) for operand, _ in graphs):
        yield from node.all_input_nodes  # a loop that takes no turn returns what it was given
        return
    for (_, module), given in zip(graphs, bound, strict=True):
        returned = _roots(module.graph)
        for inside, binding in zip(placeholders(module.graph), given or (), strict=True):
            if inside in returned:
                yield from nodes_in(binding.operand)


def _roots(graph: Graph) -> set[Node]:
    """The nodes whose memory the results of a graph may share."""
    pending = [result for result in results_of(graph) if isinstance(result, Node)]
    found = set(pending)
    while pending:
        new = set(bases(pending.pop())) - found
        found |= new
        pending += new
    return found


def holders_by_storage(graph: Graph) -> list[list[Node]]:
    """Inputs, attributes and operators with graphs that hold tensors, in groups of one storage."""
    groups: dict[Any, list[Node]] = {}
    for node in graph.nodes:
        if node.op in ("placeholder", "get_attr"):
            groups.setdefault(_storage(node), []).append(node)
        elif is_higher_order(node):
            for storage in {_storage(held) for held in _held_inside(node)}:
                groups.setdefault(storage, []).append(node)
    return [group for key, group in groups.items() if key is not None]


def _held_inside(node: Node) -> Iterator[Node]:
    """The attributes that the graphs of a higher-order operator read, at any depth."""
    pending = list(graphs_of(node))
    while pending:
        graph = pending.pop().graph
        for inside in graph.nodes:
            if inside.op == "get_attr":
                yield inside
            elif is_higher_order(inside):
                pending += graphs_of(inside)


def _storage(node: Node) -> Any:
    owner = node.graph.owning_module
    held = attribute(owner, str(node.target)) if node.op == "get_attr" and owner else None
    value = held if isinstance(held, torch.Tensor) else node.meta.get("val")
    return storage_of(value) if isinstance(value, torch.Tensor) else None


@cache
def _is_opaque(called: OpOverload) -> bool:
    does = of_operator(called)
    return does.unknown or does.ordered or _hides_aliases(called)


@cache
def _hides_aliases(called: OpOverload) -> bool:
    """A composite may return its operand although its schema promises a fresh tensor."""
    declared = any(result.alias_info is not None for result in called._schema.returns)
    return not declared and (
        is_composite(called) or torch.Tag.maybe_aliasing_or_mutating in called.tags
    )
