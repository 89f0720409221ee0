"""What a caller may choose when loading."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RuntimeOptions:
    """Options of `load`.

    Attributes:
        device: where to run, for example "cuda:1" for a program lowered for "cuda"; None is the
            device that the program names. CPU and CUDA code are not interchangeable.
    """

    device: str | None = None
