"""What the inputs of a nested graph stand for where it is called.

    bindings(cond, branch)    # for each placeholder, as Binding("same", x)

A branch of `torch.cond` reads its operands as they are. The body of a loop does so for its
additional inputs; a carried input holds an operand on the first turn only, and `scan` and `map`
hand their body one slice after the other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from torch.fx import Graph, GraphModule, Node

from fxpasses.operators import is_higher_order
from fxpasses.regions import attribute, placeholders

# Operators that hand their operands to their graphs once, as they are.
ONCE = frozenset({"cond", "invoke_subgraph"})
# Operators whose results are a function of their graphs and operands.
FUNCTIONS = ONCE | {"while_loop", "scan", "map_impl"}

Kind = Literal["same", "carried", "slice"]


@dataclass(frozen=True)
class Binding:
    """What one placeholder of a nested graph stands for: an operand, as it is or in part."""

    kind: Kind
    operand: Any


def name_of(operator: Node) -> str:
    """The name of a higher-order operator; "" for any other node."""
    return str(getattr(operator.target, "_name", "")) if is_higher_order(operator) else ""


def bindings(operator: Node, operand: Node) -> list[Binding] | None:
    """What each placeholder of the graph `operand` stands for in the call `operator`.

    None where the operator is not known, or its operands do not match its graph.
    """
    module = graph_of(operand)
    bound = list(_bindings(operator))
    return bound if module and bound and len(bound) == len(placeholders(module.graph)) else None


def _bindings(operator: Node) -> Iterator[Binding]:
    match name_of(operator), operator.args:
        case "cond", (_, _, _, [*operands]):
            yield from _all("same", operands)
        case "invoke_subgraph", (_, _, *operands):
            yield from _all("same", operands)
        case "while_loop", (_, _, [*carried], [*additional]):
            yield from (*_all("carried", carried), *_all("same", additional))
        case "scan", (_, [*carried], [*slices], [*additional]):
            yield from (*_all("carried", carried), *_all("slice", slices))
            yield from _all("same", additional)
        case "map_impl", (_, [*slices], [*additional]):
            yield from (*_all("slice", slices), *_all("same", additional))


def _all(kind: Kind, operands: list[Any]) -> list[Binding]:
    return [Binding(kind, operand) for operand in operands]


def carries(operator: Node, operand: Node) -> Node | None:
    """The graph operand whose results are carried into `operand` on the next turn, if any is."""
    if name_of(operator) == "while_loop":
        body: Node = operator.args[1]  # type: ignore[assignment]  # the condition carries nothing
        return body
    return operand if name_of(operator) == "scan" else None


def graph_of(operand: Any) -> GraphModule | None:
    """The nested graph that an operand of a higher-order operator names, if it names one."""
    if not isinstance(operand, Node) or operand.op != "get_attr":
        return None
    owner = operand.graph.owning_module
    held = attribute(owner, str(operand.target)) if owner is not None else None
    return held if isinstance(held, GraphModule) else None


def graph_operands_of(operator: Node) -> list[tuple[Node, GraphModule]]:
    """The operands of a higher-order operator that name graphs, each with its graph."""
    named = [(operand, graph_of(operand)) for operand in operator.all_input_nodes]
    return [(operand, module) for operand, module in named if module is not None]


def chooses_by(operator: Node, operands: Collection[Node]) -> bool:
    """Whether all that `operator` reads of `operands` is which branch of a cond to take."""
    match name_of(operator), operator.args:
        case "cond", (predicate, _, _, [*given]):
            return predicate in operands and not any(each in operands for each in given)
    return False


def results_of(graph: Graph) -> list[Any]:
    """What a graph returns, as a list."""
    returned = graph.output_node().args[0]
    return list(returned) if isinstance(returned, list | tuple) else [returned]
