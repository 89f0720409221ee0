"""Which results of a program depend on random numbers.

    outputs, buffers = depends_on_chance(program)

A compiled program draws other numbers than eager from the same seed, so such values cannot be
compared; everything else can. A buffer that is written with one passes it on to the next call.
"""

from __future__ import annotations

from torch.export import ExportedProgram
from torch.export.graph_signature import OutputKind
from torch.fx import Node

from fxpasses.analysis import effects
from fxpasses.regions import regions


def depends_on_chance(program: ExportedProgram) -> tuple[set[int], set[str]]:
    """The flat indices of the outputs, and the names of the buffers, that hold random values."""
    nodes = [node for region in regions(program.graph_module) for node in region.graph.nodes]
    if not any(effects(node).random for node in nodes):
        return set(), set()
    program = program.run_decompositions({})  # without writes, values say who depends on whom
    known: set[str] = set()
    while (found := random_buffers(program, known)) != known:
        known = found
    values = random_values(program, known)
    own = results_of(program, OutputKind.USER_OUTPUT)
    return {index for index, (result, _) in enumerate(own) if result in values}, known


def random_buffers(program: ExportedProgram, known: set[str]) -> set[str]:
    """The buffers that one call leaves random where `known` are so before it."""
    values = random_values(program, known)
    written = results_of(program, OutputKind.BUFFER_MUTATION)
    return known | {name for result, name in written if result in values}


def random_values(program: ExportedProgram, buffers: set[str]) -> set[Node]:
    """Every node that draws, or computes from what is random."""
    held = program.graph_signature.inputs_to_buffers
    found: set[Node] = set()
    for node in program.graph.nodes:
        drawn = effects(node).random or held.get(node.name) in buffers
        if drawn or not found.isdisjoint(node.all_input_nodes):
            found.add(node)
    return found


def results_of(program: ExportedProgram, kind: OutputKind) -> list[tuple[object, str]]:
    """The results of one kind, each with the name that the signature ties it to."""
    results = program.graph.output_node().args[0]
    specs = program.graph_signature.output_specs
    pairs = zip(results, specs, strict=True)
    return [(result, str(spec.target)) for result, spec in pairs if spec.kind is kind]
