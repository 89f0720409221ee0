"""Whose memory a value uses, as the schemas of operators tell.

The base of a slice of a view of `x` is `x`; the base of `x + 1` is itself.
"""

from __future__ import annotations

import operator

from torch._ops import OpOverload
from torch.fx import Node


def base(node: Node) -> Node:
    """The node whose memory `node` is a view of: itself, unless its operator returns an alias."""
    while (source := aliased(node)) is not None:
        node = source
    return node


def aliased(node: Node) -> Node | None:
    """The operand that `node` returns or views, if it does so."""
    if node.target is operator.getitem:
        part = node.args[0]
        return part if isinstance(part, Node) and aliased(part) is not None else None
    if not isinstance(node.target, OpOverload):
        return None
    schema = node.target._schema
    if not any(result.alias_info for result in schema.returns):
        return None
    pairs = zip(schema.arguments, node.args, strict=False)
    return next((v for a, v in pairs if a.alias_info and isinstance(v, Node)), None)
