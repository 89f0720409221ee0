"""The metadata of a value, as something that can be compared.

A node records the value it produces as a fake tensor in `meta["val"]`. `signature_of` turns it
into a plain tuple: dtype, device, layout, sizes and strides. Symbolic sizes become sympy
expressions, so that comparing two signatures never adds a guard to the program.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from fxpasses._torch import always, expression, hint


def value_of(node: Any) -> Any:
    """The fake value that `node` records, or None; a constant stands for itself."""
    return node.meta.get("val") if isinstance(node, Node) else node


def is_tensor(node: Any) -> bool:
    """Whether `node` is a node that records one tensor."""
    return isinstance(node, Node) and isinstance(node.meta.get("val"), torch.Tensor)


def is_mask(node: Any) -> bool:
    """Whether `node` records a tensor that picks when it indexes: bool, or uint8 as once spelt."""
    return is_tensor(node) and node.meta["val"].dtype in (torch.bool, torch.uint8)


def sizes(value: torch.Tensor) -> tuple[Any, ...]:
    """The sizes of a tensor, symbolic ones as sympy expressions."""
    return tuple(map(expression, value.shape))


def strides(value: torch.Tensor) -> tuple[Any, ...]:
    """The strides that can be observed: not those of an empty tensor, nor of dims of size 1."""
    return observed(sizes(value), value.stride())


def observed(sizes: tuple[Any, ...], strides: tuple[Any, ...]) -> tuple[Any, ...]:
    """Strides with 0 for those that no element is found by; on these, fake and eager differ."""
    if 0 in sizes:
        return (0,) * len(sizes)
    pairs = zip(sizes, strides, strict=True)
    return tuple([0 if size == 1 else expression(stride) for size, stride in pairs])


def has_distinct_places(value: torch.Tensor) -> bool:
    """Whether it is certain that no two elements of a tensor share memory.

    Taken by growing stride, each dim must step past all that the dims before it reach.
    """
    reach: Any = 0
    dims = zip(value.stride(), value.shape, strict=True)
    for stride, size in sorted(dims, key=lambda dim: hint(dim[0])):
        if not always(size <= 1):
            if not always(stride > reach):
                return False
            reach = reach + (size - 1) * stride
    return True


def signature_of(value: Any) -> Any:
    """A hashable summary of a recorded value; equal exactly when the metadata is."""
    if isinstance(value, torch.Tensor):
        shape, layout = sizes(value), value.layout
        dense = layout is torch.strided
        return (
            value.dtype,
            value.device,
            shape,
            observed(shape, value.stride()) if dense else layout,
        )
    if isinstance(value, list | tuple):
        return tuple(map(signature_of, value))
    return (type(value), expression(value))
