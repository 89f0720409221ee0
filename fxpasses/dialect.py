"""How a program spells the operators that it calls.

A pass names ATen operators. ExecuTorch's edge dialect wraps each of them in an object of its own
and has no views, only copies; its verifier refuses a graph that mixes the two spellings.

    spell = dialect_of(edge_program)
    spell(torch.ops.aten.unsqueeze.default)    # edge.aten.unsqueeze_copy.default

`operators.unwrap` is the way back.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import torch
from torch._ops import OpOverload

from fxpasses.operators import operator_of
from fxpasses.program import Program, module_of
from fxpasses.regions import regions

Spelling = Callable[[Any], Any]


def dialect_of(program: Program) -> Spelling:
    """The spelling that `program` uses: edge where any of its graphs calls an edge operator."""
    nodes = (node for region in regions(module_of(program)) for node in region.graph.nodes)
    wrapped = any(node.op == "call_function" and operator_of(node) != node.target for node in nodes)
    return to_edge if wrapped else to_aten


def to_aten(target: Any) -> Any:
    """`target` as it is."""
    return target


@cache
def to_edge(target: Any) -> Any:
    """The edge operator for an ATen operator, a copy for a view; any other target as it is."""
    # By name, for the framework stands without ExecuTorch: an edge program is proof that it is
    # there, and its own rule says which operators stay unwrapped. Known in 1.2 to 1.5.
    exir = import_module("executorch.exir.passes.replace_aten_with_edge_pass")
    return exir.aten_to_edge(_copying(target)) if exir.should_lower_to_edge(target) else target


def _copying(operator: OpOverload) -> OpOverload:
    """`aten.view_copy` for `aten.view`; an operator that has no such twin as it is."""
    namespace, name, overload = str(operator).split(".")
    twin = getattr(getattr(torch.ops, namespace), f"{name}_copy", None)
    copying: OpOverload = getattr(twin, overload, operator)
    return copying if operator.is_view else operator
