"""A pass of your own: remove dropout from a program that is done training."""

from dataclasses import dataclass

import torch

from fxpasses import YES, RewritePass, guard, no, register_pass


@register_pass("acme.drop-dropout")
@dataclass(frozen=True)
class DropDropout(RewritePass):
    """Remove `aten.dropout` where it passes its input on."""

    targets = (torch.ops.aten.dropout.default,)

    def match(self, node, editor):
        return node.args

    @guard
    def evaluating(self, node, match, editor):
        return no("it is training: export the module in eval mode") if match[2] else YES

    def rewrite(self, node, match, editor):
        editor.replace(node, match[0], effects_kept=True)
        return "dropout passed its input on"
