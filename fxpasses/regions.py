"""The graphs of a program: the top one, and those of its control flow.

`torch.cond`, `while_loop`, `map`, `scan`, `invoke_subgraph` and their like take graphs as
operands. Whatever operator it is, its graphs hang as submodules under the graph that calls it;
each distinct one is a region, visited once however many operators share it.

    for region in regions(program.graph_module):
        print(region.path, len(region.graph.nodes))
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from torch.fx import Graph, GraphModule, Node

from fxpasses.operators import is_higher_order, operator_of


@dataclass
class Region:
    """One graph of a program.

    Attributes:
        module: the graph module that holds it.
        path: dotted path from the top graph module; "" for the top graph.
        callers: the operators that run it, each with the node of its graph operand.
    """

    module: GraphModule
    path: str = ""
    callers: list[tuple[Region, Node, Node]] = field(default_factory=list)

    @property
    def graph(self) -> Graph:
        return self.module.graph

    def operators(self) -> set[Any]:
        """Every operator that the region calls, edge-dialect wrappers removed."""
        return {operator_of(node) for node in self.graph.nodes if node.op == "call_function"}


def regions(top: GraphModule) -> list[Region]:
    """Every region of the program under `top`, outermost first."""
    first = Region(top)
    found = {id(top): first}
    queue = deque([first])
    while queue:
        caller = queue.popleft()
        for operator, operand, module in graph_operands(caller.module):
            callee = found.get(id(module))
            if callee is None:
                path = f"{caller.path}.{operand.target}" if caller.path else str(operand.target)
                callee = found[id(module)] = Region(module, path)
                queue.append(callee)
            callee.callers.append((caller, operator, operand))
    return list(found.values())


def graph_operands(module: GraphModule) -> Iterator[tuple[Node, Node, GraphModule]]:
    """Each higher-order operator of `module` with a graph operand, and that operand's module."""
    for operand in module.graph.find_nodes(op="get_attr"):
        target = attribute(module, str(operand.target))
        if isinstance(target, GraphModule):
            for user in operand.users:
                if is_higher_order(user):
                    yield user, operand, target


def attribute(module: GraphModule, path: str) -> Any:
    """What a get_attr node with target `path` reads, or None when it is not there."""
    value: Any = module
    for name in path.split("."):
        value = getattr(value, name, None)
    return value


def placeholders(graph: Graph) -> list[Node]:
    """The inputs of a graph, in order."""
    return list(graph.find_nodes(op="placeholder"))
