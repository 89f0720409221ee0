"""Inputs for the calls of a self-check, all made from the program's own example inputs.

Values that a program was exported with are known to be valid; random ones are not: an index out of
bounds ends a CUDA process. So each draw stays near the example. Floats keep their signs and change
by up to a tenth, a mask keeps its count, a single boolean is flipped so that the other branch runs,
integers stay. A resized draw gives each dynamic size another value of its range.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from backend.program.plan import MethodPlan
from backend.program.sizes import Dynamic, evaluate
from backend.program.tensor_spec import TensorSpec


def perturbed(leaves: Sequence[Any], generator: torch.Generator) -> list[Any]:
    """Other values of the same shapes, dtypes and strides; what is no tensor stays."""
    return [changed(leaf, generator) if isinstance(leaf, Tensor) else leaf for leaf in leaves]


def changed(tensor: Tensor, generator: torch.Generator) -> Tensor:
    """A copy of `tensor` with other values, as the module's docstring says."""
    if tensor.dtype is torch.bool:
        other = ~tensor if tensor.numel() == 1 else tensor.roll(1, -1)
    elif tensor.is_floating_point() and tensor.itemsize > 1:
        other = nearby(tensor, generator)
    else:
        return tensor
    return copied(tensor).copy_(other)


def nearby(tensor: Tensor, generator: torch.Generator) -> Tensor:
    """Each element times a number around 1; a tensor of zeros becomes small positive numbers."""
    noise = torch.rand(tensor.shape, generator=generator).to(tensor.device, tensor.dtype) * 0.1
    return noise if not tensor.count_nonzero() else tensor * (1.05 - noise)


def copied(tensor: Tensor) -> Tensor:
    """Room of its own for each element, in the layout of `tensor`."""
    return torch.empty_like(tensor, memory_format=torch.preserve_format)


def resized(leaves: Sequence[Any], plan: MethodPlan) -> list[Any] | None:
    """The same elements at other dynamic sizes, repeated or cut; None where all are fixed."""
    specs = plan.payload.inputs
    pairs = [
        (leaf, specs[source]) if isinstance(source, int) else (leaf, None)
        for leaf, source in zip(leaves, plan.inputs, strict=True)
    ]
    symbols = other_sizes([pair for pair in pairs if pair[1] is not None])
    if not symbols:
        return None
    return [leaf if spec is None else fitted(leaf, spec, symbols) for leaf, spec in pairs]


def other_sizes(pairs: Sequence[tuple[Tensor, Any]]) -> dict[str, int]:
    """For each symbol a size that differs from the example's, where its range has one."""
    chosen: dict[str, int] = {}
    for tensor, spec in pairs:
        for size, declared in zip(tensor.shape, spec.shape, strict=True):
            if isinstance(declared, Dynamic) and declared.symbol.isidentifier():
                larger = declared.maximum is None or size < declared.maximum
                if larger or size - 1 >= max(declared.minimum, 2):
                    chosen.setdefault(declared.symbol, size + 1 if larger else size - 1)
    return chosen


def fitted(tensor: Tensor, spec: TensorSpec, symbols: dict[str, int]) -> Tensor:
    """`tensor` with each dynamic dim at the size that `symbols` give it."""
    for dim, declared in enumerate(spec.shape):
        size = evaluate(declared.symbol, symbols) if isinstance(declared, Dynamic) else None
        if size is not None and size != tensor.shape[dim] and tensor.shape[dim]:
            places = torch.arange(size, device=tensor.device) % tensor.shape[dim]
            tensor = tensor.index_select(dim, places)
    return tensor
