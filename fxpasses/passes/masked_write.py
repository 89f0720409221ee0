"""What the passes on writes through a mask have in common.

`index_put(out, [mask], values)` and its in-place form become `where(mask, values, out)` when the
values can be laid out like the destination. What differs is where they come from: one value for
every place (`replace-masked-fill-with-where`) or the same mask's picks of another tensor
(`replace-masked-copy-with-where`).

The in-place form writes the result back to every place, so it keeps the destination's layout by
itself, and needs a place for each element. The functional form gives a new tensor, and `where`
takes its layout from its operands, the mask first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Node

from fxpasses.editor import Editor
from fxpasses.operators import argument, nodes_in, operator_of
from fxpasses.rewrite import RewritePass, guard
from fxpasses.values import (
    has_distinct_places,
    is_mask,
    is_tensor,
    sizes,
    strides,
    value_of,
)
from fxpasses.verdict import YES, Verdict, no

aten = torch.ops.aten


@dataclass(frozen=True)
class MaskedWrite:
    """The operands of one write through a mask.

    Attributes:
        destination: the tensor that is written.
        indices: its indices; a write through one mask has exactly one.
        values: the tensor that is written there.
    """

    destination: Node
    indices: list[Any]
    values: Node

    @property
    def mask(self) -> Node:
        mask: Node = self.indices[0]
        return mask


@dataclass(frozen=True)
class MaskedWritePass(RewritePass):
    """Guards and replacement for writes through one boolean mask."""

    targets = (aten.index_put.default, aten.index_put_.default)

    def match(self, node: Node, editor: Editor) -> MaskedWrite | None:
        indices, values = list(argument(node, "indices")), argument(node, "values")
        if not any(is_mask(index) for index in indices) or not is_tensor(values):
            return None
        return MaskedWrite(argument(node, "self"), indices, values)

    @guard
    def accumulate(self, node: Node, match: MaskedWrite, editor: Editor) -> Verdict:
        return no("it adds to the destination") if argument(node, "accumulate") else YES

    @guard
    def single_mask(self, node: Node, match: MaskedWrite, editor: Editor) -> Verdict:
        return masks_all_of(match.indices, match.destination)

    @guard
    def same_device(self, node: Node, match: MaskedWrite, editor: Editor) -> Verdict:
        mask, destination = value_of(match.mask), value_of(match.destination)
        if mask.device != destination.device:
            return no(f"the mask is on {mask.device}, the destination on {destination.device}")
        return YES

    @guard
    def distinct_places(self, node: Node, match: MaskedWrite, editor: Editor) -> Verdict:
        if operator_of(node) is aten.index_put.default:
            return YES
        alone = has_distinct_places(value_of(match.destination))
        return YES if alone else no(f"elements of {match.destination} may share memory")


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
    if operator_of(node) is aten.index_put_.default:
        return YES
    mask = value_of(match.mask)
    for _ in range(value_of(match.destination).dim() - mask.dim()):
        mask = editor.evaluate(aten.unsqueeze.default, mask, -1)
    found = editor.evaluate(aten.where.self, mask, source, match.destination)
    if strides(found) == strides(value_of(node)):
        return YES
    wanted = tuple(value_of(node).stride())
    return no(f"where would have strides {tuple(found.stride())}, {node} has {wanted}")


def write_where(node: Node, match: MaskedWrite, source: Node, editor: Editor) -> str:
    """Replace the write by `where`, and say so."""
    destination, mask = match.destination, match.mask
    with editor.at(node, node, match.values):
        condition = mask
        for _ in range(value_of(destination).dim() - value_of(mask).dim()):
            condition = editor.call(aten.unsqueeze.default, condition, -1)
        new = editor.call(aten.where.self, condition, source, destination)
        if operator_of(node) is aten.index_put_.default:
            new = editor.call(aten.copy_.default, destination, new)
    editor.replace(node, new, effects_kept=True)
    return f"{destination}[{mask}] from {source} became {new}"
