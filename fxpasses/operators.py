"""What a node calls, whichever dialect it is written in.

ExecuTorch's edge dialect wraps each ATen operator in an object of its own. A pass names ATen
operators; `operator_of` looks through the wrapper, so the pass is written once.

    operator_of(node) is torch.ops.aten.index_put.default
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import torch
from torch._ops import HigherOrderOperator, OpOverload, OpOverloadPacket
from torch.fx import Node

from fxpasses.errors import InvalidPass


def unwrap(target: Any) -> Any:
    """The ATen operator inside an edge-dialect operator; any other target as it is."""
    if isinstance(target, OpOverload):
        return target
    inner = getattr(target, "_op", None)
    return inner if isinstance(inner, OpOverload) else target


def operator_of(node: Node) -> Any:
    """The operator or function that `node` calls, or None for any other kind of node."""
    return unwrap(node.target) if node.op == "call_function" else None


@cache
def parameters(operator: OpOverload) -> tuple[torch._C.Argument, ...]:
    """What the schema of `operator` declares, in order; the schema itself builds them anew."""
    return tuple(operator._schema.arguments)


def refuse_no_operator(target: Any) -> None:
    """Refuse what no node of an exported graph may call.

    Raises:
        InvalidPass: a packet, whose overloads are named; a string; one of torch's own functions.
    """
    if isinstance(target, OpOverloadPacket):
        raise InvalidPass(f"{target} stands for several operators; name one, as in {target}.Tensor")
    operators = OpOverload | HigherOrderOperator
    name, module = getattr(target, "__name__", ""), getattr(target, "__module__", "") or ""
    torch_function = module.startswith("torch") and not name.startswith("sym_")
    if not callable(target) or (torch_function and not isinstance(target, operators)):
        raise InvalidPass(f"{target!r} is no operator; ATen's are torch.ops.aten.NAME.OVERLOAD")


def argument(node: Node, name: str) -> Any:
    """The value of the schema argument `name`, from wherever the call put it, or its default.

    Raises:
        KeyError: the operator has no such argument.
    """
    if name in node.kwargs:
        return node.kwargs[name]
    for position, declared in enumerate(parameters(operator_of(node))):
        if declared.name == name:
            return node.args[position] if position < len(node.args) else declared.default_value
    raise KeyError(f"{operator_of(node)} has no argument {name!r}")


def arguments(node: Node) -> Iterator[tuple[torch._C.Argument, Any]]:
    """Each schema argument of an operator call with the value that the call gives it."""
    for position, declared in enumerate(parameters(operator_of(node))):
        if position < len(node.args):
            yield declared, node.args[position]
        elif declared.name in node.kwargs:
            yield declared, node.kwargs[declared.name]


def nodes_in(value: Any) -> list[Node]:
    """The nodes inside an argument: itself, or those in a list of nodes and constants."""
    if isinstance(value, Node):
        return [value]
    if isinstance(value, list | tuple):
        return [item for item in value if isinstance(item, Node)]
    return []


def is_higher_order(node: Node) -> bool:
    """Whether `node` runs other graphs: cond, while_loop, map, scan, invoke_subgraph, ..."""
    # Asked of every node, and answered slowly: the class is abstract.
    return not isinstance(node.target, OpOverload) and isinstance(node.target, HigherOrderOperator)


def describe(node: Node) -> str:
    """A short name for the operator of `node`: `aten.index.Tensor`, `getitem`, `placeholder`."""
    if node.op != "call_function":
        return node.op
    operator = operator_of(node)
    return (
        str(operator)
        if isinstance(operator, OpOverload)
        else getattr(operator, "__name__", str(operator))
    )
