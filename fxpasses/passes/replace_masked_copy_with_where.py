"""A copy through a boolean mask, written without reading the mask's count.

`out[mask] = src[mask]` traces as a mask index that feeds a mask index_put. Each of the two must
know how many elements the mask picks, which on a GPU is a copy to the host and a wait, on every
call. When both sides use one mask, every element goes back to where it came from:

    index_put(out, [mask], index(src, [mask]))  ->  where(mask, src, out)

The result is the same bit for bit, and nothing is counted.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.fx import Node

from fxpasses.editor import Editor
from fxpasses.operators import argument, describe, operator_of
from fxpasses.passes.count_checks import erase_picks
from fxpasses.passes.masked_write import (
    MaskedWrite,
    MaskedWritePass,
    masks_all_of,
    same_layout,
    write_where,
)
from fxpasses.registry import register_pass
from fxpasses.rewrite import guard
from fxpasses.values import sizes, value_of
from fxpasses.verdict import YES, Verdict, no

aten = torch.ops.aten


@register_pass("replace-masked-copy-with-where", after=["replace-masked-fill-with-where"])
@dataclass(frozen=True)
class ReplaceMaskedCopyWithWhere(MaskedWritePass):
    """Replace `out[mask] = src[mask]` by `torch.where(mask, src, out)`, which counts nothing.

    The mask index goes too, with the checks on its size, when nothing else reads it and each check
    holds for any mask. An in-place write becomes `out.copy_(torch.where(mask, src, out))`.
    """

    @guard
    def picked_values(self, node: Node, match: MaskedWrite, editor: Editor) -> Verdict:
        picks = match.values
        if operator_of(picks) is not aten.index.Tensor:
            return no(f"the values are no picks of a mask: {picks} is {describe(picks)}")
        return masks_all_of(list(argument(picks, "indices")), source_of_picks(match))

    @guard
    def same_mask(self, node: Node, match: MaskedWrite, editor: Editor) -> Verdict:
        picking, numbering = picking_mask(match), editor.numbering
        if numbering.read(match.mask, node) == numbering.read(picking, match.values):
            return YES
        if match.mask is picking:
            write = numbering.memory.last_write(picking, node)
            return no(f"{write} may write mask {picking} after the pick")
        return no(f"mask {match.mask} need not equal mask {picking} of the picks")

    @guard
    def same_kind(self, node: Node, match: MaskedWrite, editor: Editor) -> Verdict:
        source, destination = value_of(source_of_picks(match)), value_of(match.destination)
        if sizes(source) != sizes(destination):
            shapes = f"{list(source.shape)}, the destination {list(destination.shape)}"
            return no(f"the source has shape {shapes}")
        if (source.dtype, source.device) != (destination.dtype, destination.device):
            return no(f"the source is {source.dtype}, the destination {destination.dtype}")
        return YES

    @guard
    def unwritten_picks(self, node: Node, match: MaskedWrite, editor: Editor) -> Verdict:
        write = editor.numbering.memory.last_write(match.values, node)
        return no(f"{write} may write the picks first") if write else YES

    @guard
    def unwritten_source(self, node: Node, match: MaskedWrite, editor: Editor) -> Verdict:
        source, numbering = source_of_picks(match), editor.numbering
        if numbering.read(source, node) == numbering.read(source, match.values):
            return YES
        return no(
            f"{numbering.memory.last_write(source, node)} may write the source after the pick"
        )

    @guard
    def layout(self, node: Node, match: MaskedWrite, editor: Editor) -> Verdict:
        return same_layout(node, match, source_of_picks(match), editor)

    def rewrite(self, node: Node, match: MaskedWrite, editor: Editor) -> str:
        mask, done = picking_mask(match), write_where(node, match, source_of_picks(match), editor)
        erase_picks(match.values, mask, editor)
        return done


def source_of_picks(match: MaskedWrite) -> Node:
    """The tensor that the picks come from."""
    source: Node = argument(match.values, "self")
    return source


def picking_mask(match: MaskedWrite) -> Node:
    """The mask that the picks are taken by."""
    mask: Node = argument(match.values, "indices")[0]
    return mask
