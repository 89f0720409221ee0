"""Which buffers a program writes.

    writes_buffers(program)    # [BufferWrite(buffer="count", node="add_", ...)], [] for none

A compiler may fold a constant; a buffer that the program writes is none, nor is a parameter or a
captured tensor that it writes. The answer covers the graph signature of a functionalised program,
and in-place operators, custom ones too, views of buffers and nested graphs of one that is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch.export import ExportedProgram
from torch.fx import Graph, GraphModule, Node

from fxpasses.analysis.calls import bindings
from fxpasses.analysis.effects import effects
from fxpasses.analysis.memory import Memory
from fxpasses.program import Program, module_of
from fxpasses.regions import Region, attribute, graph_operands, placeholders, regions
from fxpasses.remarks import source_of

Names = dict[Node, list[str]]

_MUTATIONS = frozenset({"BUFFER_MUTATION", "PARAMETER_MUTATION"})


@dataclass(frozen=True)
class BufferWrite:
    """One write: which buffer (its fully qualified name), by which node, in which region."""

    buffer: str
    node: str
    region: str
    source: str


def writes_buffers(program: Program) -> list[BufferWrite]:
    """Every write of `program` to one of its buffers or captured tensors; empty when none."""
    module_of(program)
    found = [*_declared(program), *_in_place(program)]
    return list(dict.fromkeys(found))


def _declared(program: Program) -> Iterator[BufferWrite]:
    """Writes that the signature of a functionalised program declares."""
    if isinstance(program, GraphModule):
        return
    nodes = {node.name: node for node in program.graph.nodes}
    for result in program.graph_signature.output_specs:
        if result.kind.name in _MUTATIONS:
            yield BufferWrite(
                str(result.target), result.arg.name, "", source_of(nodes[result.arg.name])
            )


def _in_place(program: Program) -> Iterator[BufferWrite]:
    """Writes by operators that overwrite a buffer, or anything that may share its memory."""
    names: dict[Graph, Names] = {}
    for region in regions(module_of(program)):
        held = names.setdefault(region.graph, {})
        for node, buffer in _buffers(program, region):
            held.setdefault(node, []).append(buffer)
        if held:
            memory = Memory(region.graph)
            explained = _hand_down(region, held, memory, names)
            for node, buffers in held.items():
                for write in memory.written(node):
                    if effects(write).writes and write not in explained:
                        place = write.name, region.path, source_of(write)
                        yield from (BufferWrite(name, *place) for name in buffers)


def _hand_down(region: Region, held: Names, memory: Memory, names: dict[Graph, Names]) -> set[Node]:
    """Name the inputs of nested graphs that stand for buffers.

    Returns:
        The operators whose writes will be found in their graphs, by the nodes that make them.
    """
    homes: dict[Node, list[str]] = {}
    for node, buffers in held.items():
        homes.setdefault(memory.home(node), []).extend(buffers)
    explained = set()
    for operator, operand, module in graph_operands(region.module):
        bound = bindings(operator, operand)
        if bound is None:
            continue
        explained.add(operator)
        for inside, binding in zip(placeholders(module.graph), bound, strict=True):
            if isinstance(binding.operand, Node):
                buffers = homes.get(memory.home(binding.operand), [])
                names.setdefault(module.graph, {}).setdefault(inside, []).extend(buffers)
    return explained


def _buffers(program: Program, region: Region) -> Iterator[tuple[Node, str]]:
    """The nodes of a region that stand for a buffer or another tensor the program holds."""
    if isinstance(program, ExportedProgram) and not region.path:
        signature = program.graph_signature
        named = {
            **signature.inputs_to_parameters,
            **signature.inputs_to_buffers,
            **signature.inputs_to_lifted_tensor_constants,
        }
        for node in placeholders(region.graph):
            if node.name in named:
                yield node, named[node.name]
    for node in region.graph.find_nodes(op="get_attr"):
        if isinstance(attribute(region.module, str(node.target)), torch.Tensor):
            yield node, f"{region.path}.{node.target}".lstrip(".")
