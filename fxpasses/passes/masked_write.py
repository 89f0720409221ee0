"""What the passes on writes through a mask have in common.

`index_put(out, [mask], values)`, `masked_scatter(out, mask, values)` and their in-place forms
become `where(mask, values, out)` when the values can be laid out like the destination. What
differs is where they come from: one value for every place (`replace-masked-fill-with-where`) or
the same mask's picks of another tensor (`replace-masked-copy-with-where`).

The in-place form writes the result back to every place, so it keeps the destination's layout by
itself, and needs a place for each element. The functional form gives a new tensor, and `where`
takes its layout from its operands, the mask first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch._ops import OpOverload
from torch.fx import Node

from fxpasses.analysis.layout import lays_out_like
from fxpasses.editor import Editor
from fxpasses.operators import argument, nodes_in, operator_of
from fxpasses.rewrite import RewritePass, guard
from fxpasses.values import (
    has_distinct_places,
    is_mask,
    is_tensor,
    sizes,
    value_of,
)
from fxpasses.verdict import YES, Verdict, no

aten = torch.ops.aten

IN_PLACE = frozenset({aten.index_put_.default, aten.masked_scatter_.default})


@dataclass(frozen=True)
class MaskedWrite:
    """The operands of one write through a mask.

    Attributes:
        destination: the tensor that is written.
        indices: its indices; a write through one mask has exactly one.
        values: the tensor that is written there.
        leading: whether a mask covers the first dims of the destination, as an index does, or
            broadcasts from the last dim on, as in `masked_scatter`.
        accumulate: whether the values are added to what is there.
    """

    destination: Node
    indices: list[Any]
    values: Node
    leading: bool = True
    accumulate: bool = False

    @property
    def mask(self) -> Node:
        mask: Node = self.indices[0]
        return mask


@dataclass(frozen=True)
class MaskedWritePass(RewritePass):
    """Guards and replacement for writes through one boolean mask."""

    targets: ClassVar[tuple[OpOverload, ...]] = (aten.index_put.default, aten.index_put_.default)

    def match(self, node: Node, editor: Editor) -> MaskedWrite | None:
        indices, values = list(argument(node, "indices")), argument(node, "values")
        if not any(is_mask(index) for index in indices) or not is_tensor(values):
            return None
        accumulate = bool(argument(node, "accumulate"))
        return MaskedWrite(argument(node, "self"), indices, values, accumulate=accumulate)

    @guard
    def accumulate(self, node: Node, match: MaskedWrite, editor: Editor) -> Verdict:
        return no("it adds to the destination") if match.accumulate else YES

    @guard
    def single_mask(self, node: Node, match: MaskedWrite, editor: Editor) -> Verdict:
        return masks_all_of(match.indices, match.destination) if match.leading else YES

    @guard
    def same_device(self, node: Node, match: MaskedWrite, editor: Editor) -> Verdict:
        mask, destination = value_of(match.mask), value_of(match.destination)
        if mask.device != destination.device:
            return no(f"the mask is on {mask.device}, the destination on {destination.device}")
        return YES

    @guard
    def distinct_places(self, node: Node, match: MaskedWrite, editor: Editor) -> Verdict:
        if operator_of(node) not in IN_PLACE:
            return YES
        if not has_distinct_places(value_of(match.destination)):
            return no(f"elements of {match.destination} may share memory")
        if editor.numbering.memory.may_alias(match.mask, match.destination):
            return no(f"{match.mask} and {match.destination} may share memory")
        return YES


def masks_all_of(indices: list[Any], indexed: Node) -> Verdict:
    """Whether `indices` are one boolean mask over the first dims of `indexed`."""
    if len(indices) != 1 or not is_mask(indices[0]):
        return no(
            f"{indexed} is indexed by {len(nodes_in(indices))} tensors, not by one mask alone"
        )
    mask = sizes(value_of(indices[0]))
    if mask != sizes(value_of(indexed))[: len(mask)]:
        return no(f"the mask has shape {list(mask)}, which are not the first sizes of {indexed}")
    return YES


def same_layout(node: Node, match: MaskedWrite, source: Node, editor: Editor) -> Verdict:
    """Whether `where` would lay its result out like the write that it replaces."""
    if operator_of(node) in IN_PLACE:
        return YES
    mask = value_of(match.mask)
    if mask.dtype is torch.uint8:
        mask = editor.evaluate(aten.ne.Scalar, mask, 0)
    for _ in range(_dims_to_add(match)):
        mask = editor.evaluate(aten.unsqueeze.default, mask, -1)
    return lays_out_like([mask, source, match.destination], node)


def write_where(node: Node, match: MaskedWrite, source: Node, editor: Editor) -> str:
    """Replace the write by `where`, and say so."""
    destination, condition = match.destination, match.mask
    with editor.at(node, node, match.values):
        if value_of(condition).dtype is torch.uint8:
            condition = editor.call(aten.ne.Scalar, condition, 0)
        for _ in range(_dims_to_add(match)):
            condition = editor.call(aten.unsqueeze.default, condition, -1)
        new = editor.call(aten.where.self, condition, source, destination)
        if operator_of(node) in IN_PLACE:
            new = editor.call(aten.copy_.default, destination, new)
    editor.replace(node, new, effects_kept=True)
    return f"{destination}[{match.mask}] from {source} became {new}"


def _dims_to_add(match: MaskedWrite) -> int:
    """How many dims the mask lacks at its end to broadcast over what it covers."""
    missing: int = value_of(match.destination).dim() - value_of(match.mask).dim()
    return missing if match.leading else 0
