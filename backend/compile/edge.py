"""Out of ExecuTorch's edge dialect, back into plain ATen.

    edge.aten.mul.Scalar(x, 1.1)                      ->  aten.mul.Tensor(x, 1.1)
    edge.dim_order_ops._clone_dim_order(x, [0,2,3,1]) ->  aten.clone(x, channels_last)

Passes and Inductor know ATen only. The numbers that `prepare` hid from the dialect come back, since
Inductor's own decompositions expect the overloads that torch.export writes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._export.verifier import Verifier
from torch._guards import detect_fake_mode
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import Node

from backend._executorch import EdgeOpOverload
from backend.compile.prepare import overload_with, retarget, typed
from backend.errors import NotSupported
from fxpasses.regions import regions

MEMORY_FORMATS = {
    (0, 2, 3, 1): torch.channels_last,
    (0, 2, 3, 4, 1): torch.channels_last_3d,
}
DIM_ORDER_OPERATORS: dict[str, Callable[..., Any]] = {
    "dim_order_ops::_clone_dim_order": torch.ops.aten.clone.default,
    "dim_order_ops::_empty_dim_order": torch.ops.aten.empty.memory_format,
    "dim_order_ops::_to_dim_order_copy": torch.ops.aten._to_copy.default,
}

EXPORTED_WITH_TENSOR = {f"aten::{name}" for name in ("add", "div", "floor_divide", "mul", "sub")}


def to_aten(program: ExportedProgram) -> ExportedProgram:
    """`program`, whose graphs are edited in place, with ATen operators and ATen's verifier."""
    for region in regions(program.graph_module):
        for node in region.graph.nodes:
            if isinstance(node.target, EdgeOpOverload):
                node.target = node.target._op  # noqa: SLF001
            if isinstance(node.target, OpOverload):
                with_memory_format(node)
                as_exported(node)
        region.module.recompile()
    forget_fresh_symbols(program)
    return ExportedProgram(
        root=program.graph_module,
        graph=program.graph,
        graph_signature=program.graph_signature,
        state_dict=program.state_dict,
        range_constraints=program.range_constraints,
        module_call_graph=program.module_call_graph,
        example_inputs=program.example_inputs,
        constants=program.constants,
        verifiers=[Verifier],
    )


def forget_fresh_symbols(program: ExportedProgram) -> None:
    """Drop the symbols that ExecuTorch's passes made when they ran operators a second time.

    No node has them, and tracing (torch 2.11 to 2.14) refuses a program while some are pending.
    """
    values = [node.meta.get("val") for node in program.graph.nodes]
    mode = detect_fake_mode([value for value in values if isinstance(value, Tensor)])
    if mode is not None and mode.shape_env is not None:
        mode.shape_env.pending_fresh_unbacked_symbols.clear()


def with_memory_format(node: Node) -> None:
    """Say with a memory format what the dialect says with a dim order."""
    target = DIM_ORDER_OPERATORS.get(node.target._schema.name)  # type: ignore[union-attr]
    if target is None:
        return
    kwargs = dict(node.kwargs)
    order: Any = kwargs.pop("dim_order", None)
    if order is not None:
        kwargs["memory_format"] = memory_format(tuple(order))
    node.target, node.kwargs = target, kwargs


def memory_format(order: tuple[int, ...]) -> torch.memory_format:
    """The memory format of dims sorted from the largest stride to the smallest.

    Raises:
        NotSupported: torch has no name for `order`.
    """
    if order == tuple(range(len(order))):
        return torch.contiguous_format
    if order not in MEMORY_FORMATS:
        raise NotSupported(f"no memory format has the dim order {list(order)}")
    return MEMORY_FORMATS[order]


def as_exported(node: Node) -> None:
    """Give an operator with a number the overload that torch.export writes for it."""
    numbers = {name for name, kind, _ in typed(node) if kind == "number" and name == "other"}
    sibling = overload_with(node.target, numbers, "Tensor") if numbers else None  # type: ignore[arg-type]
    if sibling is not None and sibling._schema.name in EXPORTED_WITH_TENSOR:
        retarget(node, sibling)
