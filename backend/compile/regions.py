"""The graphs of a program, and programs rebuilt around edited graphs."""

from __future__ import annotations

import copy
from typing import Any

from torch.export import ExportedProgram
from torch.fx import GraphModule


def regions(module: GraphModule) -> list[GraphModule]:
    """`module` and the graphs nested in it (branches, loop bodies), each once."""
    return [child for child in module.modules() if isinstance(child, GraphModule)]


def rebuild(program: ExportedProgram, module: GraphModule, **changes: Any) -> ExportedProgram:
    """`program` around `module`: same weights, a signature and dictionaries of its own."""
    parts: dict[str, Any] = {
        "graph_signature": copy.deepcopy(program.graph_signature),
        "state_dict": dict(program.state_dict),
        "range_constraints": dict(program.range_constraints),
        "module_call_graph": copy.deepcopy(program.module_call_graph),
        "example_inputs": program.example_inputs,
        "constants": dict(program.constants),
        "verifiers": program.verifiers,
    }
    return ExportedProgram(root=module, graph=module.graph, **(parts | changes))


def fork(program: ExportedProgram) -> ExportedProgram:
    """A program with graphs of its own that shares the weights of `program`."""
    return rebuild(program, copy_graphs(program.graph_module))


def copy_graphs(module: GraphModule) -> GraphModule:
    """A copy of `module` and its nested graphs; tensors are shared."""
    graph = copy.deepcopy(module.graph)
    for node, original in zip(graph.nodes, module.graph.nodes, strict=True):
        node.name = original.name  # the copy renames an input that shadows a builtin: "input"
    new = GraphModule(module, graph, type(module).__name__)
    new.meta = dict(module.meta)
    for name, child in module.named_children():
        if isinstance(child, GraphModule):
            setattr(new, name, copy_graphs(child))
    return new
