"""The tensors that an exported program holds: buffers, parameters and constants.

Each is an input of the top graph that the program fills in itself. It lies in the state dict or
among the constants, and may share its memory with others.

    tensors = held_tensors(program)            # {placeholder: Held("flag", tensor), ...}
    move(program, [placeholder], torch.device("cpu"))
"""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import Node

from fxpasses._torch import evaluating, storage_of
from fxpasses.errors import RewriteRefused
from fxpasses.program import Program
from fxpasses.regions import placeholders
from fxpasses.values import value_of

_KINDS = (InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


@dataclass(frozen=True)
class Held:
    """A tensor under its name in the program."""

    name: str
    tensor: Tensor


def held_tensors(program: Program) -> dict[Node, Held]:
    """The buffers and constants of an exported program, by input; none of a graph module."""
    if not isinstance(program, ExportedProgram):
        return {}
    pairs = zip(placeholders(program.graph), program.graph_signature.input_specs, strict=True)
    names = {node: str(spec.target) for node, spec in pairs if spec.kind in _KINDS}
    return {
        node: Held(name, where[name])
        for node, name in names.items()
        for where in _stores(program)
        if isinstance(where.get(name), Tensor)
    }


def sharers(program: Program, held: Held) -> list[str]:
    """The other tensors of the program that share memory with `held`."""
    mine = storage_of(held.tensor)
    return sorted(
        name
        for where in _stores(program)
        for name, tensor in where.items()
        if name != held.name and isinstance(tensor, Tensor) and storage_of(tensor) == mine
    )


def written_back(program: Program) -> list[tuple[int, str]]:
    """Which results of the top graph are new values of buffers: their places, and which buffer."""
    if not isinstance(program, ExportedProgram):
        return []
    results = enumerate(program.graph_signature.output_specs)
    return [(place, str(s.target)) for place, s in results if s.kind is OutputKind.BUFFER_MUTATION]


def move(program: Program, nodes: Iterable[Node], device: torch.device) -> None:
    """Let `program` hold the tensors behind `nodes` on `device`; their readers stay as they are.

    Raises:
        RewriteRefused: one of `nodes` is no buffer or constant of an exported program.
    """
    tensors = held_tensors(program)
    for node in nodes:
        if node not in tensors:
            raise RewriteRefused(f"{node} is no buffer or constant of the program")
        name, value = tensors[node].name, value_of(node)
        for where in _stores(program):
            if name in where:
                where[name] = tensors[node].tensor.to(device)
        with evaluating(value.fake_mode):
            node.meta["val"] = value.to(device)


def _stores(program: Program) -> tuple[MutableMapping[str, Any], ...]:
    """Where a program keeps tensors; a buffer outside its state dict is among the constants."""
    if not isinstance(program, ExportedProgram):
        return ()
    return program.state_dict, program.constants
