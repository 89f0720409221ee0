"""The tensors that a random program gets: dtypes, sizes, layouts, values that hurt.

Input("x", torch.float32, (3, 4), "transposed").tensor(generator)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

LAYOUTS = ("contiguous", "transposed", "channels_last", "sliced", "expanded")
DTYPES = (
    *(torch.float32, torch.float64, torch.float16, torch.bfloat16),
    *(torch.int64, torch.int32, torch.uint8, torch.complex64),
)
SHAPES = ((6,), (3, 4), (2, 3, 4), (2, 3, 2, 2), (4, 1), (3, 3), (1,), (0, 3), (1, 3, 1), ())


@dataclass(frozen=True)
class Input:
    """One input of a program."""

    name: str
    dtype: torch.dtype = torch.float32
    shape: tuple[int, ...] = (3, 4)
    layout: str = "contiguous"

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype} {list(self.shape)}, {self.layout}"

    @property
    def reference(self) -> str:
        """How a statement names it."""
        return self.name

    def tensor(self, generator: torch.Generator, first: int | None = None) -> torch.Tensor:
        """Values from a generator; `first` takes the place of the first size."""
        shape = self.shape if first is None else (first, *self.shape[1:])
        return _laid_out(lambda s: values(s, self.dtype, generator), shape, self.layout)


@dataclass(frozen=True)
class Buffer:
    """State of a program: `self.NAME`, another name for the buffer `tied` if there is one."""

    name: str
    dtype: torch.dtype = torch.float32
    shape: tuple[int, ...] = (3, 4)
    tied: str = ""

    @property
    def reference(self) -> str:
        """How a statement names it."""
        return f"self.{self.name}"

    def lines(self) -> Iterator[str]:
        text = self.tied or f"(torch.arange({_count(self.shape)}) % 3).view({self.shape})"
        converted = "" if self.tied else f".to({self.dtype})"
        yield f'self.register_buffer("{self.name}", {text}{converted})'

    def tensor(self) -> torch.Tensor:
        return (torch.arange(_count(self.shape)) % 3).view(self.shape).to(self.dtype)


def values(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    """Small whole numbers, so that many are equal; among floats, NaN, -0.0 and fractions."""
    if dtype is torch.bool:
        return torch.rand(shape, generator=generator) > 0.5
    low = 0 if dtype is torch.uint8 else -2
    whole = torch.randint(low, 4, shape, generator=generator).to(dtype)
    if not (dtype.is_floating_point or dtype.is_complex):
        return whole
    special = torch.tensor([0.1, -0.0, float("nan"), -1.5], dtype=dtype)
    which = torch.randint(0, 12, shape, generator=generator)
    return torch.where(which < len(special), special[which.clamp(max=len(special) - 1)], whole)


def _laid_out(
    make: Callable[[tuple[int, ...]], torch.Tensor], shape: tuple[int, ...], layout: str
) -> torch.Tensor:
    """A tensor of a shape, in a layout where the rank allows it, contiguous where it does not."""
    if not shape or layout == "contiguous":
        return make(shape)
    if layout == "transposed":
        return (
            make((shape[-1], *shape[1:-1], shape[0])).transpose(0, -1) if shape[1:] else make(shape)
        )
    if layout == "channels_last" and len(shape) == 4:
        return make(shape).to(memory_format=torch.channels_last)
    if layout == "sliced":
        return make((*shape[:-1], 2 * shape[-1]))[..., ::2]
    if layout == "expanded" and len(shape) > 1:
        return make((*shape[:-1], 1)).expand(shape)
    return make(shape)


def _count(shape: tuple[int, ...]) -> int:
    return torch.Size(shape).numel()
