"""Which mask a view of a mask spreads over which dims.

A mask index covers the first dims of a tensor, `masked_scatter` broadcasts its mask from the last
dim on. So the same mask is written in several ways:

    out[m]   and   out.masked_scatter(m[:, None].expand_as(out), ...)

`spread` follows views that only repeat or add dims back to the mask underneath, and says for each
dim of the tensor which dim of that mask it reads, or None where the mask is repeated. Two uses
pick the same places when the masks underneath are equal and the dims are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Node

from fxpasses._torch import always
from fxpasses.operators import argument, operator_of
from fxpasses.values import is_tensor, sizes, value_of

aten = torch.ops.aten

Dims = tuple[int | None, ...]


def spread(mask: Node, rank: int, leading: bool) -> tuple[Node, Dims]:
    """The mask under `mask`, and which of its dims each of `rank` dims of a tensor reads.

    Args:
        mask: a mask of at most `rank` dims.
        rank: how many dims the tensor has that is picked from or written.
        leading: whether the mask covers the first dims, as an index does, or the last ones.
    """
    own: list[int | None] = list(range(value_of(mask).dim()))
    rest: list[int | None] = [None] * (rank - len(own))
    dims: Dims = tuple(own + rest if leading else rest + own)
    while (step := _under(mask)) is not None:
        mask, behind = step
        dims = tuple(None if dim is None else behind[dim] for dim in dims)
    # A dim of one element is repeated wherever it goes.
    single = [always(size == 1) for size in value_of(mask).shape]
    return mask, tuple(None if dim is None or single[dim] else dim for dim in dims)


def _under(mask: Node) -> tuple[Node, Dims] | None:
    """The operand that `mask` repeats, and which of its dims each dim of `mask` reads."""
    rule = _RULES.get(operator_of(mask))
    operand = mask.args[0] if rule else None
    if rule is None or not isinstance(operand, Node) or not is_tensor(operand):
        return None
    dims = rule(mask, operand)
    return None if dims is None else (operand, dims)


def _expanded(mask: Node, operand: Node) -> Dims:
    rank = value_of(operand).dim()
    added: list[int | None] = [None] * (value_of(mask).dim() - rank)
    return (*added, *range(rank))


def _unsqueezed(mask: Node, _operand: Node) -> Dims:
    rank = value_of(mask).dim()
    added = argument(mask, "dim") % rank
    return tuple(None if dim == added else dim - (dim > added) for dim in range(rank))


def _sliced(mask: Node, operand: Node) -> Dims | None:
    """All of the operand, as `m[:]` writes it; a real slice is another mask."""
    whole = argument(mask, "step") == 1 and sizes(value_of(mask)) == sizes(value_of(operand))
    return tuple(range(value_of(mask).dim())) if whole else None


_RULES: dict[Any, Callable[[Node, Node], Dims | None]] = {
    aten.expand.default: _expanded,
    aten.expand_as.default: _expanded,
    aten.unsqueeze.default: _unsqueezed,
    aten.slice.Tensor: _sliced,
}
