"""How long the default pipeline takes on a program that it does not change.

    python benchmarks/no_change.py

The bar is under 5 us per node, flat from a thousand nodes to a hundred thousand.
"""

from __future__ import annotations

import time

import torch
from torch.fx import GraphModule, symbolic_trace

from fxpasses import Pipeline

ROUNDS = 5


class Chain(torch.nn.Module):
    """A chain of additions of a given length."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.length = length

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Add one `length` times; x is f32[8]."""
        for _ in range(self.length):
            x = torch.ops.aten.add.Tensor(x, 1)
        return x


def best_seconds(module: GraphModule) -> float:
    """The fastest of several runs."""
    pipeline = Pipeline.parse("default")
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        pipeline.run(module)
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Print one line for each size."""
    for length in (1_000, 10_000, 100_000):
        seconds = best_seconds(symbolic_trace(Chain(length)))
        print(f"{length:>7,} nodes: {seconds * 1e6 / length:6.2f} us per node")


if __name__ == "__main__":
    main()
