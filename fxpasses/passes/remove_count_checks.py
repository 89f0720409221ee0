"""Picks that are only counted, and the checks that count them.

Export checks how many elements `src[mask]` has: not fewer than none, not more than all. When
nothing else reads the picks, they are computed, and on a GPU waited for, to check what holds for
every mask:

    n = sym_size(index(src, [mask]), 0);  assert n >= 0;  assert n <= mask.numel()    ->  nothing

`replace-masked-copy-with-where` cleans up behind itself; this pass does it for picks that were
dead to begin with, or died when another pass took their last reader.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.fx import Node

from fxpasses.editor import Editor
from fxpasses.operators import argument, operator_of
from fxpasses.passes.count_checks import erase_checked, is_only_counted, obstacle_of
from fxpasses.registry import register_pass
from fxpasses.rewrite import RewritePass, guard
from fxpasses.values import is_mask
from fxpasses.verdict import YES, Verdict, no

aten = torch.ops.aten


@register_pass(
    "remove-count-checks",
    after=["replace-masked-fill-with-where", "replace-masked-copy-with-where"],
)
@dataclass(frozen=True)
class RemoveCountChecks(RewritePass):
    """Remove the picks of a mask that are only counted, with checks that hold for any count.

        n = sym_size(index(src, [mask]), 0);  assert 0 <= n <= mask.numel()    ->  nothing

    The picks of `index` by one mask, of `masked_select` and of `nonzero` are between none and all
    of what they pick from, so a comparison of their count with a constant that all of these pass
    cannot fail.

    count_checks: nothing but such comparisons reads the count. A check that can fail, as in
        `torch._check(src[mask].shape[0] >= 1)`, keeps the picks, and so does a check of another
        size.
    """

    targets = (aten.index.Tensor, aten.masked_select.default, aten.nonzero.default)

    def match(self, node: Node, editor: Editor) -> Node | None:
        return node if node.users and _is_counted(node) and is_only_counted(node) else None

    @guard
    def count_checks(self, node: Node, match: Node, editor: Editor) -> Verdict:
        obstacle = obstacle_of(node)
        return no(obstacle) if obstacle else YES

    def rewrite(self, node: Node, match: Node, editor: Editor) -> str:
        erase_checked(node, editor)
        return "removed, with the checks on its count, which hold for any mask"


def _is_counted(node: Node) -> bool:
    """Whether the first size of `node` is the count of what one mask picks."""
    if operator_of(node) is not aten.index.Tensor:
        return True
    indices = argument(node, "indices")
    return len(indices) == 1 and is_mask(indices[0])
