"""The table of decompositions, in the form that `ExportedProgram.run_decompositions` takes."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch._ops import OpOverload

from decomps.reshape_copy import reshape_copy


def decomposition_table(
    device: str | torch.device | None = None,
) -> dict[OpOverload, Callable[..., Tensor]]:
    """The decompositions for `device` ("cpu", "cuda", "cuda:1"); None stands for any device.

    Each call returns a dictionary of its own. Every entry so far holds on all devices.
    """
    if device is not None:
        torch.device(device)
    return {torch.ops.aten._reshape_copy.default: reshape_copy}
