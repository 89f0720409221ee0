"""Turn the copies that the edge dialect makes of views back into views.

    slice_copy(x, 0, 1, 3) + 1    ->    slice(x, 0, 1, 3) + 1
    return slice_copy(x, 0, 1, 3) ->    return slice(x, 0, 1, 3).clone()

In a graph without writes nobody can tell a view from a copy, save the one who gets the result: a
view of an input or of a buffer would change with it. So what leaves a region is copied, once.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import Tensor
from torch._dispatch.python import enable_python_dispatcher
from torch._ops import HigherOrderOperator, OpOverload
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from backend.compile.aliases import base


def restore_views(module: GraphModule, nested: bool = False) -> None:
    """Edit `module`, one region, in place; a region with a write in it is left as it is.

    What the program returns keeps the view's order of dims, as a copy of eager's result does.
    Nested graphs were traced with the contiguous results of the copying operators, and keep them.
    """
    if any(writes(node) for node in module.graph.nodes):
        return
    stale: set[Node] = set()
    with enable_python_dispatcher():  # some operators know symbolic sizes in Python only
        for node in list(module.graph.nodes):
            if node.op == "output" and not nested:
                own_operands(node, torch.preserve_format)
            elif node.op == "output" or isinstance(node.target, HigherOrderOperator):
                own_operands(node, torch.contiguous_format)
            view = view_of(node)
            affected = view is not None or not stale.isdisjoint(node.all_input_nodes)
            if affected and refresh(node, view or node.target):
                stale.add(node)
    module.recompile()


def writes(node: Node) -> bool:
    """Whether the operator's schema says that it writes an argument."""
    return isinstance(node.target, OpOverload) and node.target._schema.is_mutable


def view_of(node: Node) -> OpOverload | None:
    """The view operator that the operator of `node` is the copying variant of, if it is one."""
    if not isinstance(node.target, OpOverload) or node.target.namespace != "aten":
        return None
    schema = node.target._schema
    name, copy, _ = schema.name.removeprefix("aten::").partition("_copy")
    packet = getattr(torch.ops.aten, name, None) if copy else None
    view: OpOverload | None = getattr(packet, schema.overload_name or "default", None)
    return view if view is not None and view.is_view else None


def own_operands(node: Node, layout: torch.memory_format) -> None:
    """Hand copies to `node`, which takes values out of the region, where it would get views."""
    for operand in node.all_input_nodes:
        if base(operand) is not operand:
            node.replace_input_with(operand, copied(operand, node, layout))


def copied(
    value: Node, before: Node, layout: torch.memory_format = torch.contiguous_format
) -> Node:
    """A copy of `value`, which is contiguous unless told otherwise."""
    clone = torch.ops.aten.clone.default
    with before.graph.inserting_before(before):
        node = before.graph.call_function(clone, (value,))
    node.kwargs = {"memory_format": layout}
    node.meta.update(value.meta)
    refresh(node, node.target)
    return node


def refresh(node: Node, target: Any) -> bool:
    """Let `node` call `target` and recompute its value; True when that has another layout now.

    Where the new strides of an operand do not allow the shape, the operand is copied first.
    """
    if not isinstance(target, OpOverload) and target is not operator.getitem:
        return False
    if node.meta.get("unbacked_bindings"):
        return False  # a second run would invent new symbols; such results are contiguous anyway
    node.target, old = target, node.meta["val"]
    try:
        node.meta["val"] = computed(node)
    except (RuntimeError, ValueError):
        for operand in node.all_input_nodes:
            node.replace_input_with(operand, copied(operand, node))
        node.meta["val"] = computed(node)
    return bool(layout(node.meta["val"]) != layout(old))


def computed(node: Node) -> Any:
    """What `node` gives for the recorded values of its operands."""
    args: Any = map_arg(node.args, lambda n: n.meta["val"])
    kwargs: Any = map_arg(node.kwargs, lambda n: n.meta["val"])
    target: Any = node.target
    return target(*args, **kwargs)


def layout(value: Any) -> Any:
    """What readers of `value` can notice of its place in memory."""
    if isinstance(value, Tensor):
        return value.stride(), value.storage_offset()
    if isinstance(value, list | tuple):
        return [layout(part) for part in value]
    return None
