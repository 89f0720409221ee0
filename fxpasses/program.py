"""The two kinds of program that a pipeline takes, seen as one.

An `ExportedProgram` is a graph module with a signature, weights and constraints around it; a
`GraphModule` stands alone. `fork` copies the graphs and shares the weights, so that a pipeline
works on a copy and the caller's program stays as it was.
"""

from __future__ import annotations

from typing import Any, overload

from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from fxpasses._torch import copy_module, with_module
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


@overload
def fork(program: ExportedProgram) -> ExportedProgram: ...


@overload
def fork(program: GraphModule) -> GraphModule: ...


def fork(program: Program) -> Program:
    """A program with graphs of its own and the same weights, constants and constraints."""
    module = _copy_nested(module_of(program), {})
    return module if isinstance(program, GraphModule) else with_module(program, module)


def _copy_nested(module: GraphModule, copies: dict[int, GraphModule]) -> GraphModule:
    """A copy of `module` and its nested graphs; a graph shared by two operators stays shared."""
    if id(module) in copies:
        return copies[id(module)]
    copied = copies[id(module)] = copy_module(module)
    for name, child in nested_graphs(module):
        _set(copied, name, _copy_nested(child, copies))
    return copied


def _set(module: GraphModule, path: str, child: GraphModule) -> None:
    """Put `child` at a dotted path whose modules the copy of a graph module made anew."""
    holder, _, name = path.rpartition(".")
    setattr(module.get_submodule(holder), name, child)


def drop_unused_graphs(module: GraphModule) -> None:
    """Remove the nested graphs that no node of `module` names any more."""
    named = {
        str(node.target) for node in module.graph.nodes if node.op in ("get_attr", "call_module")
    }
    for name, _ in nested_graphs(module):
        if name not in named:
            module.delete_submodule(name)


def nested_graphs(module: GraphModule) -> list[tuple[str, GraphModule]]:
    """The graph modules under `module`, not those inside these, by path."""
    found: list[tuple[str, GraphModule]] = []
    for name, child in module.named_modules(remove_duplicate=False):
        inside = any(name.startswith(f"{path}.") for path, _ in found)
        if isinstance(child, GraphModule) and name and not inside:
            found.append((name, child))
    return found


def sync_signature(program: Program) -> None:
    """Name the program's inputs and outputs in its signature as its graph names them now.

    Their number is the signature's own; `fxpasses.verify` checks that the graph agrees.
    """
    if isinstance(program, GraphModule):
        return
    signature = program.graph_signature
    for spec, node in zip(signature.input_specs, placeholders(program.graph), strict=False):
        _rename(spec.arg, node)
    for spec, result in zip(
        signature.output_specs, program.graph.output_node().args[0], strict=False
    ):
        _rename(spec.arg, result)


def _rename(declared: Any, actual: Any) -> None:
    if isinstance(actual, Node) and hasattr(declared, "name"):
        declared.name = actual.name
