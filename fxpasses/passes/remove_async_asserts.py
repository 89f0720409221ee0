"""Checks on tensor values, taken out before a program is compiled for a device.

`torch.distributions` checks its arguments; such a check exports as `aten._assert_async`. Compiled
into a kernel it can only end the process, it fires on the made-up data that a compiler tunes
with, and it keeps the math alive that feeds it. Checks on sizes (`_assert_scalar`) run on the
host and stay.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.fx import Node

from fxpasses.editor import Editor
from fxpasses.operators import argument, operator_of
from fxpasses.registry import register_pass
from fxpasses.rewrite import RewritePass

aten = torch.ops.aten


@register_pass("remove-async-asserts")
@dataclass(frozen=True)
class RemoveAsyncAsserts(RewritePass):
    """Remove `aten._assert_async` in every form, with the math that fed only it."""

    targets = (
        aten._assert_async.default,
        aten._assert_async.msg,
        aten._functional_assert_async.msg,
    )

    def match(self, node: Node, editor: Editor) -> str:
        message = [] if operator_of(node) is aten._assert_async.default else [node.args[1]]
        return "".join(map(str, message))

    def rewrite(self, node: Node, match: str, editor: Editor) -> str:
        if operator_of(node) is aten._functional_assert_async.msg:
            editor.replace(node, argument(node, "dep_token"), effects_kept=True)
        else:
            editor.erase(node)
        return f"removed the check {match!r}" if match else "removed the check"
