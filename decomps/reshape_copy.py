"""`aten._reshape_copy`: a contiguous copy of the source, seen under a new shape.

    reshape_copy(x.t(), [2, -1])    # x of shape (4, 6): a fresh tensor of shape (2, 12)

`reshape` may return a view; this operator never does, so that a later write to the result cannot
reach the source.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def reshape_copy(source: Tensor, size: Sequence[int | torch.SymInt]) -> Tensor:
    """A contiguous copy of `source` (any shape, dtype and layout) viewed as `size`.

    Args:
        source: the tensor to copy.
        size: the new shape; at most one entry is -1 and stands for what the others leave.

    Raises:
        RuntimeError: `size` does not hold as many elements as `source`, as `Tensor.view` says it.
    """
    return source.clone(memory_format=torch.contiguous_format).view(list(size))
