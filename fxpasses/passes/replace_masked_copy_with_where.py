"""A copy through a boolean mask, written without reading the mask's count.

`out[mask] = src[mask]` traces as a mask index that feeds a mask index_put. Each of the two must
know how many elements the mask picks, which on a GPU is a copy to the host and a wait, on every
call. When both sides use one mask, every element goes back to where it came from:

    index_put(out, [mask], index(src, [mask]))             ->  where(mask, src, out)
    masked_scatter(out, mask, masked_select(src, mask))    ->  where(mask, src, out)

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
from fxpasses.passes.spread import spread
from fxpasses.registry import register_pass
from fxpasses.rewrite import guard
from fxpasses.values import is_tensor, sizes, value_of
from fxpasses.verdict import YES, Verdict, no

aten = torch.ops.aten

_SCATTERS = (aten.masked_scatter.default, aten.masked_scatter_.default)
_RESHAPES = frozenset({aten.view.default, aten.reshape.default, aten.flatten.using_ints})


@register_pass("replace-masked-copy-with-where", after=["replace-masked-fill-with-where"])
@dataclass(frozen=True)
class ReplaceMaskedCopyWithWhere(MaskedWritePass):
    """Replace `out[mask] = src[mask]` by `torch.where(mask, src, out)`, which counts nothing.

        index_put(out, [mask], index(src, [mask]))             ->  where(mask, src, out)
        masked_scatter(out, mask, masked_select(src, mask))    ->  where(mask, src, out)

    The k-th pick of a mask goes to the k-th place of the same mask, so every element goes back to
    where it came from: the result is the same bit for bit. Any mixture of the two ways to pick and
    the two ways to write will do, in place too, where `out.copy_(torch.where(mask, src, out))`
    takes their place. The picks go with the checks on their count, when nothing else reads them
    and each check holds for any mask.

    accumulate: the write must not add.
    single_mask: it goes through one boolean mask over the first dims, and nothing else.
    same_device: the mask is where the destination is; `where` moves nothing.
    distinct_places: in place, no two elements of the destination share memory.
    picked_values: the values are the picks of one mask, in their order.
    same_mask: both masks are one value, by value numbers; a draw equals only itself, and a mask
        read before and after a write is two.
    same_kind: source and destination agree in shape, dtype and device.
    unwritten_picks: nothing writes the picks before they are written out.
    unwritten_source: nothing writes the source between the pick and the write.
    layout: `where` lays its result out as the write did.
    """

    targets = (*MaskedWritePass.targets, *_SCATTERS)

    def match(self, node: Node, editor: Editor) -> MaskedWrite | None:
        if operator_of(node) not in _SCATTERS:
            return super().match(node, editor)
        mask, values = argument(node, "mask"), argument(node, "source")
        if not is_tensor(mask) or not is_tensor(values):
            return None
        return MaskedWrite(argument(node, "self"), [mask], values, leading=False)

    @guard
    def picked_values(self, node: Node, match: MaskedWrite, editor: Editor) -> Verdict:
        picks = picks_of(match)
        if operator_of(picks) is aten.masked_select.default:
            return _all_selected(match, picks)
        if operator_of(picks) is not aten.index.Tensor:
            return no(f"the values are no picks of a mask: {picks} is {describe(picks)}")
        return masks_all_of(list(argument(picks, "indices")), source_of_picks(match))

    @guard
    def same_mask(self, node: Node, match: MaskedWrite, editor: Editor) -> Verdict:
        picks, picking, numbering = picks_of(match), picking_mask(match), editor.numbering
        rank = value_of(match.destination).dim()
        written, places = spread(match.mask, rank, match.leading)
        picked, picked_places = spread(picking, rank, operator_of(picks) is aten.index.Tensor)
        same = numbering.read(written, node) == numbering.read(picked, picks)
        if same and places == picked_places:
            return YES
        if match.mask is picking and not same:
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
        write = editor.numbering.memory.last_write(picks_of(match), node)
        return no(f"{write} may write the picks first") if write else YES

    @guard
    def unwritten_source(self, node: Node, match: MaskedWrite, editor: Editor) -> Verdict:
        source, numbering = source_of_picks(match), editor.numbering
        if numbering.read(source, node) == numbering.read(source, picks_of(match)):
            return YES
        return no(
            f"{numbering.memory.last_write(source, node)} may write the source after the pick"
        )

    @guard
    def layout(self, node: Node, match: MaskedWrite, editor: Editor) -> Verdict:
        return same_layout(node, match, source_of_picks(match), editor)

    def rewrite(self, node: Node, match: MaskedWrite, editor: Editor) -> str:
        picks, done = picks_of(match), write_where(node, match, source_of_picks(match), editor)
        erase_picks(picks, editor)
        return done


def picks_of(match: MaskedWrite) -> Node:
    """The values as they were picked: `masked_scatter` takes them in any shape."""
    values = match.values
    while not match.leading and operator_of(values) in _RESHAPES:
        values = argument(values, "self")
    return values


def source_of_picks(match: MaskedWrite) -> Node:
    """The tensor that the picks come from."""
    source: Node = argument(picks_of(match), "self")
    return source


def picking_mask(match: MaskedWrite) -> Node:
    """The mask that the picks are taken by."""
    picks = picks_of(match)
    if operator_of(picks) is aten.masked_select.default:
        mask: Node = argument(picks, "mask")
        return mask
    picking: Node = argument(picks, "indices")[0]
    return picking


def _all_selected(match: MaskedWrite, picks: Node) -> Verdict:
    """Whether the selected elements, in a row, are what the write takes one at a time."""
    mask, destination = value_of(match.mask), value_of(match.destination)
    if match.leading and mask.dim() != destination.dim():
        return no(f"{picks} is a row of elements, {match.mask} picks slices of {match.destination}")
    return YES
