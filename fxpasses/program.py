"""The two kinds of program that a pipeline takes, seen as one.

An `ExportedProgram` is a graph module with a signature, weights and constraints around it; a
`GraphModule` stands alone. `fork` copies the graphs and shares the weights, so that a pipeline
works on a copy and the caller's program stays as it was.
"""

from __future__ import annotations

import copy
from typing import Any

from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from fxpasses._torch import copy_graph
from fxpasses.errors import InvalidProgram
from fxpasses.regions import placeholders

Program = ExportedProgram | GraphModule


def module_of(program: Program) -> GraphModule:
    """The top graph module of `program`.

    Raises:
        InvalidProgram: `program` is of another type.
    """
    if isinstance(program, ExportedProgram):
        module: GraphModule = program.graph_module
        return module
    if isinstance(program, GraphModule):
        return program
    raise InvalidProgram(
        f"expected an ExportedProgram or a GraphModule, got {type(program).__name__}; "
        "torch.export.export(module, inputs) makes one"
    )


def fork(program: Program) -> Program:
    """A program with graphs of its own and the same weights, constants and constraints."""
    module = copy_module(module_of(program), {})
    if isinstance(program, GraphModule):
        return module
    return ExportedProgram(
        root=module,
        graph=module.graph,
        graph_signature=copy.deepcopy(program.graph_signature),
        state_dict=program.state_dict,
        range_constraints=copy.copy(program.range_constraints),
        module_call_graph=copy.deepcopy(program.module_call_graph),
        example_inputs=program.example_inputs,
        constants=program.constants,
        verifiers=program.verifiers,
    )


def copy_module(module: GraphModule, copies: dict[int, GraphModule]) -> GraphModule:
    """A copy of `module` and its nested graphs; a graph shared by two operators stays shared."""
    if id(module) in copies:
        return copies[id(module)]
    new = copies[id(module)] = GraphModule(module, copy_graph(module.graph), type(module).__name__)
    new.meta = dict(module.meta)
    for name, child in module.named_children():
        if isinstance(child, GraphModule):
            setattr(new, name, copy_module(child, copies))
    return new


def sync_signature(program: Program) -> None:
    """Name the program's inputs and outputs in its signature as its graph names them now."""
    if isinstance(program, GraphModule):
        return
    signature = program.graph_signature
    for spec, node in zip(signature.input_specs, placeholders(program.graph), strict=True):
        _rename(spec.arg, node)
    for spec, result in zip(
        signature.output_specs, program.graph.output_node().args[0], strict=True
    ):
        _rename(spec.arg, result)


def _rename(declared: Any, actual: Any) -> None:
    if isinstance(actual, Node) and hasattr(declared, "name"):
        declared.name = actual.name
