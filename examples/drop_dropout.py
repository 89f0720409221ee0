"""A pass of your own: take dropout out of a program that was exported in training mode."""

from dataclasses import dataclass

import torch

from fxpasses import YES, RewritePass, guard, no, register_pass


@register_pass("acme.drop-dropout")
@dataclass(frozen=True)
class DropDropout(RewritePass):
    """Let the readers of dropout read its input."""

    targets = (torch.ops.aten.native_dropout.default,)

    def match(self, node, editor):
        return [user for user in node.users if user.args[1] == 0]  # the values; 1 is the mask

    @guard
    def unread_mask(self, node, values, editor):
        return YES if len(values) == len(node.users) else no("its mask is read, too")

    def rewrite(self, node, values, editor):
        for value in values:
            editor.replace(value, node.args[0])
        editor.erase(node)
        return "dropout became its input"
