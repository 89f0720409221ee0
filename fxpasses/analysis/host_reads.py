"""Which operators make the host wait for the device.

    host_reads(program)    # [HostRead(node="index", operator="aten.index.Tensor", ...)]

A boolean mask index must know how many elements the mask picks before it can allocate its result;
`.item()` must know a value. On a GPU each is a copy to the host and a wait, on every call, and
none can be recorded in a CUDA graph.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Node

from fxpasses.operators import argument, describe, is_higher_order, nodes_in, operator_of
from fxpasses.program import Program, module_of
from fxpasses.regions import regions
from fxpasses.remarks import source_of
from fxpasses.values import is_mask, is_tensor

aten = torch.ops.aten


@dataclass(frozen=True)
class HostRead:
    """One wait: the node and operator, its region, the user's source line, and what is read."""

    node: str
    operator: str
    region: str
    source: str
    reads: str


def host_reads(program: Program) -> list[HostRead]:
    """Every operator of `program` that reads the device from the host when run on one."""
    return [
        HostRead(node.name, describe(node), region.path, source_of(node), reads)
        for region in regions(module_of(program))
        for node in region.graph.nodes
        if (reads := what_it_reads(node))
    ]


def what_it_reads(node: Node) -> str:
    """What `node` needs from the device before the host can go on; "" for nothing."""
    rule = _RULES.get(operator_of(node))
    if rule is not None:
        return rule(node)
    return _predicate(node) if is_higher_order(node) else ""


def _mask_count(node: Node) -> str:
    masks = [index for index in nodes_in(argument(node, "indices")) if is_mask(index)]
    return f"the count of mask {masks[0]}" if masks else ""


def _always(what: str) -> Callable[[Node], str]:
    return lambda node: f"{what} {node.args[0]}"


def _repeats(node: Node) -> str:
    return "" if argument(node, "output_size") is not None else "the sum of the repeats"


def _predicate(node: Node) -> str:
    name = getattr(node.target, "_name", "")
    if name == "while_loop":
        return "the loop's condition, on every turn"
    return f"the predicate {node.args[0]}" if name == "cond" and is_tensor(node.args[0]) else ""


_RULES: dict[Any, Callable[[Node], str]] = {
    aten.index.Tensor: _mask_count,
    aten.index_put.default: _mask_count,
    aten.index_put_.default: _mask_count,
    aten.nonzero.default: _always("the count of"),
    aten.argwhere.default: _always("the count of"),
    aten.masked_select.default: _always("the count of the mask over"),
    aten.unique_consecutive.default: _always("the count of distinct values in"),
    aten.unique_dim.default: _always("the count of distinct values in"),
    aten._unique2.default: _always("the count of distinct values in"),
    aten.bincount.default: _always("the largest value of"),
    aten._local_scalar_dense.default: _always("the value of"),
    aten.item.default: _always("the value of"),
    aten.equal.default: _always("every element of"),
    aten.is_nonzero.default: _always("the value of"),
    aten.repeat_interleave.Tensor: _repeats,
    aten.repeat_interleave.self_Tensor: _repeats,
}
