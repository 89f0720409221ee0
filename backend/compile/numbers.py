"""Round the numbers of a half-precision program as eager rounds them on a CPU.

    x + 0.3    ->    x + 0.30078125        for x in bfloat16

There, eager's sums, remainders and powers round a number to the tensor's dtype before they compute;
products and quotients take it as it is. Inductor (torch 2.11 to 2.14) takes it as it is in some of
the former too, and so differs from eager by a bit or two. A number that is rounded already comes
out the same on both sides.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Node

from fxpasses.regions import regions

aten = torch.ops.aten

HALF = (torch.bfloat16, torch.float16)
ROUNDING = frozenset(
    {aten.add.Tensor, aten.add.Scalar, aten.sub.Tensor, aten.sub.Scalar, aten.rsub.Scalar}
    | {aten.remainder.Scalar, aten.remainder.Scalar_Tensor, aten.fmod.Scalar}
    | {aten.pow.Tensor_Scalar, aten.pow.Scalar}
)
EXACT = "alpha"  # multiplies the number that was rounded, and is not rounded itself


def round_numbers(top: GraphModule) -> None:
    """Edit the graphs of `top`, which compute on a CPU, in place."""
    for region in regions(top):
        for node in region.graph.nodes:
            if node.target in ROUNDING and dtype_of(node) in HALF:
                round_operands(node)
        region.module.recompile()


def dtype_of(node: Node) -> torch.dtype | None:
    """The dtype of the tensor that `node` gives; None where it gives none."""
    value = node.meta.get("val")
    return value.dtype if isinstance(value, Tensor) else None


def round_operands(node: Node) -> None:
    """Round the numbers among the operands of `node` to the dtype of its result."""
    dtype = dtype_of(node)
    names = [argument.name for argument in node.target._schema.arguments]  # type: ignore[union-attr]
    given = zip(names, node.args, strict=False)
    node.args = tuple(v if name == EXACT else rounded(v, dtype) for name, v in given)
    node.kwargs = {n: v if n == EXACT else rounded(v, dtype) for n, v in node.kwargs.items()}


def rounded(value: Any, dtype: torch.dtype | None) -> Any:
    """The number nearest to `value` that `dtype` holds; anything but a number stays."""
    if type(value) not in (int, float):
        return value
    nearest = torch.tensor(value, dtype=dtype).item()
    return value if nearest == value else nearest
