"""New constants for a program.

An exported program owns its constants: each is an input of the top graph that the signature ties
to a tensor. A plain graph module holds a tensor as an attribute. `add_constant` does either and
returns the node that stands for the tensor; passes reach it as `editor.constant`.
"""

from __future__ import annotations

from itertools import count

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, InputSpec, TensorArgument
from torch.fx import GraphModule, Node

from fxpasses.errors import RewriteRefused
from fxpasses.program import Program
from fxpasses.regions import Region, attribute, placeholders

_LIFTED = "lifted_constant"


def add_constant(
    program: Program, region: Region, tensor: torch.Tensor, mode: FakeTensorMode | None
) -> Node:
    """A node of `region` that stands for `tensor`, with its metadata.

    Raises:
        RewriteRefused: a nested graph of an exported program, which holds no constants of its
            own: add the constant to the top graph and hand it over as an operand.
    """
    if isinstance(program, GraphModule):
        node = _as_attribute(region.module, tensor)
    elif region.path:
        raise RewriteRefused(f"{region.path} can hold no constant: hand it over from the top graph")
    else:
        node = _as_input(program, tensor)
    if mode is not None:
        node.meta["val"] = mode.from_tensor(tensor, static_shapes=True)
    return node


def _as_attribute(module: GraphModule, tensor: torch.Tensor) -> Node:
    names = (f"_{_LIFTED}_{i}" for i in count())
    name = next(name for name in names if attribute(module, name) is None)
    module.register_buffer(name, tensor)
    first = next(iter(module.graph.nodes))
    with module.graph.inserting_before(first):
        node: Node = module.graph.get_attr(name)
    return node


def _as_input(program: ExportedProgram, tensor: torch.Tensor) -> Node:
    """Enter the tensor in the program's constants and its signature, ahead of the user's inputs."""
    specs = program.graph_signature.input_specs
    names = (f"{_LIFTED}_{i}" for i in count())
    target = next(name for name in names if name not in program.constants)
    place = next((i for i, s in enumerate(specs) if s.kind is InputKind.USER_INPUT), len(specs))
    nodes = [*placeholders(program.graph), _first_computation(program)]
    with program.graph.inserting_before(nodes[place]):
        node: Node = program.graph.placeholder(f"c_{target}")
    spec = InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(node.name), target)
    specs.insert(place, spec)
    program.constants[target] = tensor
    return node


def _first_computation(program: ExportedProgram) -> Node:
    node: Node = next(node for node in program.graph.nodes if node.op != "placeholder")
    return node
