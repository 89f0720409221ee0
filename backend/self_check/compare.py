"""Compare a result with eager's: structure, layout, and values within a stated tolerance.

    difference(1.5 * ones, ones, "output 0", None)
    # 'output 0: 4 of 4 elements differ, most at [0]: 1.5, eager gives 1 (allowed: 0.0001)'

Results are memory of their own, where eager may return a view with gaps: the strides must be those
of a copy of eager's result.

The tolerance is a share of the largest magnitude that eager gives in that output, because the error
of a sum is measured against its terms. Integers and booleans must be equal, and so must the places
of NaN and of infinities.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten

# Rounding differs by a few units in the last place for each operator; these leave room for some
# hundred of them, and none for a wrong operand.
TOLERANCES = {
    torch.float64: 1e-10,
    torch.complex128: 1e-10,
    torch.float32: 1e-4,
    torch.complex64: 1e-4,
    torch.float16: 1e-2,
    torch.bfloat16: 5e-2,
}
COARSE = 0.2  # the eight-bit floats


def tolerance_of(dtype: torch.dtype, asked: float | None) -> float:
    """The share of the largest magnitude by which values of `dtype` may differ."""
    if not (dtype.is_floating_point or dtype.is_complex):
        return 0.0
    return TOLERANCES.get(dtype, COARSE) if asked is None else asked


def difference(found: Any, expected: Any, tolerance: float | None, by_chance: set[int]) -> str:
    """What the first output that differs has wrong, or "" where all agree.

    Args:
        found: the result of the compiled method.
        expected: eager's.
        tolerance: one for all floating dtypes; None takes `TOLERANCES`.
        by_chance: flat indices of outputs that hold random numbers: only dtype and rank count.
    """
    values, structure = tree_flatten(found)
    wanted, exported = tree_flatten(expected)
    if structure != exported:
        return f"the result is structured as {structure}, eager's as {exported}"
    for index, (value, eager) in enumerate(zip(values, wanted, strict=True)):
        if fault := leaf_difference(value, eager, tolerance, index in by_chance):
            return f"output {index} {fault}"
    return ""


def leaf_difference(found: Any, expected: Any, tolerance: float | None, by_chance: bool) -> str:
    """What one output has wrong, as the rest of a sentence that begins with its name."""
    if type(found) is not type(expected) and not isinstance(expected, Tensor):
        return f"is {found!r}, eager gives {expected!r}"
    if isinstance(expected, Tensor):
        return tensor_difference(found, expected, tolerance, by_chance)
    if isinstance(expected, float) and not by_chance:
        number, wanted = torch.tensor([found, expected], dtype=torch.float64)
        return value_difference(number, wanted, tolerance)
    return "" if by_chance or found == expected else f"is {found!r}, eager gives {expected!r}"


def tensor_difference(
    found: Any, expected: Tensor, tolerance: float | None, by_chance: bool
) -> str:
    """What one tensor has wrong: its dtype, shape, strides, or values."""
    if not isinstance(found, Tensor):
        return f"is {found!r}, eager gives a tensor"
    for what in ("dtype", "device") if not by_chance else ("dtype",):
        if getattr(found, what) != getattr(expected, what):
            return f"has {what} {getattr(found, what)}, eager gives {getattr(expected, what)}"
    if by_chance:
        same = found.dim() == expected.dim()
        return "" if same else f"has {found.dim()} dims, eager gives {expected.dim()}"
    if found.shape != expected.shape:
        return f"has shape {list(found.shape)}, eager gives {list(expected.shape)}"
    if strides(found) != (layout := strides(torch.empty_like(expected))):
        return f"has strides {list(found.stride())}, eager's result has {layout}"
    return value_difference(found, expected, tolerance)


def strides(tensor: Tensor) -> list[int]:
    """The strides that can be observed: those of dims with more than one element."""
    if not tensor.numel():
        return []
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    return [stride if size > 1 else 1 for size, stride in pairs]


def value_difference(found: Tensor, expected: Tensor, tolerance: float | None) -> str:
    """How the values of two tensors of one shape and dtype differ beyond the tolerance."""
    share = tolerance_of(expected.dtype, tolerance)
    allowed = share * scale(expected)
    off = distance(found, expected)
    wrong = off > allowed
    count = int(wrong.sum())
    if not count:
        return ""
    place = torch.unravel_index(off.flatten().argmax(), off.shape)
    at = [int(index) for index in place]
    values = f"{found[tuple(place)].item()!r}, eager gives {expected[tuple(place)].item()!r}"
    return (
        f"differs in {count} of {wrong.numel()} elements, most at {at}: {values} "
        f"(a difference of {allowed:.3g} is allowed)"
    )


def scale(expected: Tensor) -> float:
    """The largest finite magnitude in `expected`; 1 where all is zero."""
    magnitudes = wide(expected).abs()
    largest = magnitudes[magnitudes.isfinite()].max().item() if magnitudes.isfinite().any() else 0.0
    return largest or 1.0


def distance(found: Tensor, expected: Tensor) -> Tensor:
    """Elementwise distance, infinite where only one is NaN or an infinity of that sign."""
    found, expected = wide(found), wide(expected)
    same = (found == expected) | (found.isnan() & expected.isnan())
    off = (found - expected).abs()
    return off.nan_to_num(nan=math.inf).masked_fill(same, 0.0)


def wide(values: Tensor) -> Tensor:
    """`values` in a dtype in which differences of them can be taken."""
    values = values.detach()
    if values.is_complex():
        return values.to(torch.complex128)
    return values.to(torch.float64)
