"""How a benchmark is timed: the best of a few rounds.

    measure("nothing to do", "fxpasses", 1_000, pipeline.run, module)

The best counts, because on a shared machine the other rounds measure the neighbours; for the same
reason `make bench` counts processor time, and everything measured runs in one thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.report import Row


class Measure:
    """Times functions and notes one row for each.

    Args:
        benchmark: the fixture of pytest-benchmark.
        rows: where to add the row.
    """

    def __init__(self, benchmark: Any, rows: list[Row]) -> None:
        self.benchmark = benchmark
        self.rows = rows

    def __call__(
        self, work: str, who: str, nodes: int, function: Callable[..., Any], *args: Any
    ) -> Any:
        """Time a function that leaves its arguments as they were; the answer is its result."""
        return self.changing(work, who, nodes, function, lambda: args[0], *args[1:])

    def changing(
        self,
        work: str,
        who: str,
        nodes: int,
        function: Callable[..., Any],
        fresh: Callable[[], Any],
        *args: Any,
    ) -> Any:
        """Time a function that changes its first argument, which `fresh` makes for each round."""
        rounds = 7 if nodes < 10_000 else 3
        result = self.benchmark.pedantic(
            function, setup=lambda: ((fresh(), *args), {}), rounds=rounds
        )
        self.rows.append(Row(work, who, nodes, self.benchmark.stats.stats.min))
        return result

    def note(self, remark: str) -> None:
        """Add a remark to the last row."""
        self.rows[-1].remark = remark
