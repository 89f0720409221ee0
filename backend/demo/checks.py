"""What the demo proves: no count is read any more, and results are those of eager."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from backend.demo.model import Call, position_ids

aten = torch.ops.aten

# Position ids must be exact: a wrong one picks another row and is off by about 1. Only the
# convolution of the patches may be summed in another order, which shows in the last bits.
TOLERANCE = 1e-5


class CountReads(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch leaves it untyped
    """Counts the operators that must know how many elements a mask picks, as they run."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.reads = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (aten.index.Tensor, aten.index_put.default, aten.index_put_.default):
            self.reads += any(index is not None and index.dtype is torch.bool for index in args[1])
        return func(*args, **(kwargs or {}))


def count_reads(module: torch.nn.Module, calls: Iterable[Call]) -> int:
    """How many counts are read while `module` runs eagerly on all `calls`."""
    counter = CountReads()
    with counter:
        for call in calls:
            module(*call)
    return counter.reads


class Agreement(NamedTuple):
    """How far a result is from eager: the largest difference, and whether every id is right."""

    difference: float
    same_ids: bool

    @property
    def equal(self) -> bool:
        """Whether the lowered program computes what eager computes."""
        return self.same_ids and self.difference <= TOLERANCE

    def __str__(self) -> str:
        verdict = "equal to eager" if self.equal else "DIFFERS from eager"
        ids = "exact" if self.same_ids else "WRONG"
        allowed = f" (tolerance {TOLERANCE:.0e})" if self.difference else ""
        return f"{verdict}, position ids {ids}, largest difference {self.difference:g}{allowed}"


def agreement(module: torch.nn.Module, call: Call, result: Tensor) -> Agreement:
    """Compare `result` with what eager gives for `call`."""
    expected = module(*call)
    ids = (position_ids(module, call, value) for value in (result, expected))
    return Agreement(float((result - expected).abs().max()), torch.equal(*ids))
