"""One value written through a boolean mask, without reading the mask's count.

`x[mask] = 0.5` traces as a mask index_put of a one-element tensor, which must know how many
elements the mask picks: on a GPU a copy to the host and a wait, on every call.

    index_put(x, [mask], v)  ->  where(mask, v, x)        v has one element

The result is the same bit for bit, and nothing is counted.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch.fx import Node

from fxpasses.editor import Editor
from fxpasses.passes.masked_write import MaskedWrite, MaskedWritePass, same_layout, write_where
from fxpasses.registry import register_pass
from fxpasses.rewrite import guard
from fxpasses.values import sizes, value_of
from fxpasses.verdict import YES, Verdict, no


@register_pass("replace-masked-fill-with-where")
@dataclass(frozen=True)
class ReplaceMaskedFillWithWhere(MaskedWritePass):
    """Replace `x[mask] = v`, with one value `v`, by `torch.where(mask, v, x)`: no count read."""

    def match(self, node: Node, editor: Editor) -> MaskedWrite | None:
        found = super().match(node, editor)
        return found if found and all(size == 1 for size in sizes(value_of(found.values))) else None

    @guard
    def same_kind(self, node: Node, match: MaskedWrite, editor: Editor) -> Verdict:
        value, destination = value_of(match.values), value_of(match.destination)
        if value.dtype != destination.dtype:
            return no(f"the value is {value.dtype}, the destination {destination.dtype}")
        return YES

    @guard
    def broadcasts(self, node: Node, match: MaskedWrite, editor: Editor) -> Verdict:
        value, destination = value_of(match.values), value_of(match.destination)
        if value.dim() > destination.dim():
            return no(f"the value has {value.dim()} dims, the destination {destination.dim()}")
        return YES

    @guard
    def layout(self, node: Node, match: MaskedWrite, editor: Editor) -> Verdict:
        return same_layout(node, match, match.values, editor)

    def rewrite(self, node: Node, match: MaskedWrite, editor: Editor) -> str:
        return write_where(node, match, match.values, editor)
