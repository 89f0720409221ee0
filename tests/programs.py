"""Small modules that the tests of the command line and the reports share.

Each `Example` exports to a program whose graph is functional, as lowering sees it.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch.export import Dim, ExportedProgram


class MaskedCopy(torch.nn.Module):
    """Copies what a mask picks: two count reads until the pass rewrites it."""

    def forward(self, out, source, mask):
        out = out.clone()
        out[mask] = source[mask]
        return out


class MaskedCopyInBranch(torch.nn.Module):
    """The same inside one branch of `torch.cond`."""

    def forward(self, out, source, mask):
        def copy(out, source, mask):
            out = out.clone()
            out[mask] = source[mask]
            return out

        def keep(out, source, mask):
            return out + source

        return torch.cond(mask.any(), copy, keep, (out, source, mask))


class Counter(torch.nn.Module):
    """Returns 1, 2, 3, ... added to its input: state that outlives a call."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x):
        self.count.add_(1)
        return x + self.count


class Scale(torch.nn.Module):
    """A program of any batch size."""

    def forward(self, x):
        return x * 2.0 + 1.0


@dataclass(frozen=True)
class Example:
    module: type[torch.nn.Module]
    inputs: tuple[torch.Tensor, ...]
    dynamic_shapes: Any = None

    def export(self) -> ExportedProgram:
        shapes = self.dynamic_shapes
        program = torch.export.export(self.module(), self.inputs, dynamic_shapes=shapes)
        return program.run_decompositions({})


def _copy_inputs() -> tuple[torch.Tensor, ...]:
    return torch.randn(4, 3), torch.randn(4, 3), torch.rand(4, 3) > 0.5


MASKED_COPY = Example(MaskedCopy, _copy_inputs())
IN_BRANCH = Example(MaskedCopyInBranch, _copy_inputs())
COUNTER = Example(Counter, (torch.zeros(1),))
ANY_BATCH = Example(Scale, (torch.randn(4, 3),), ({0: Dim("batch")},))
