"""Where a run spends its time and memory.

timing = Timing()
pipeline.run(program, listeners=[timing])
timing.seconds["replace-masked-copy-with-where"]
timing.peak_bytes["replace-masked-copy-with-where"]
"""

from __future__ import annotations

import tracemalloc
from collections import Counter, defaultdict

from fxpasses.events import Listener
from fxpasses.regions import Region
from fxpasses.registry import Pass
from fxpasses.report import PassReport


class Timing(Listener):
    """Seconds and peak memory by pass, summed and maximised over regions.

    Args:
        memory: trace Python's allocations too, which slows the passes down.

    Attributes:
        seconds: wall time in the pass itself, checks apart.
        peak_bytes: the most Python memory that a run of the pass and its checks added.
    """

    def __init__(self, memory: bool = False) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.peak_bytes: Counter[str] = Counter()
        self._memory = memory
        self._held = 0

    def __str__(self) -> str:
        slowest = sorted(self.seconds.items(), key=lambda item: -item[1])
        return "\n".join(f"{name}: {seconds * 1e3:.1f} ms" for name, seconds in slowest)

    def before(self, pass_: Pass, region: Region) -> None:
        if self._memory:
            tracemalloc.start()
            self._held = tracemalloc.get_traced_memory()[0]

    def after(self, report: PassReport) -> None:
        self.seconds[report.name] += report.seconds
        if self._memory:
            peak = tracemalloc.get_traced_memory()[1] - self._held
            self.peak_bytes[report.name] = max(peak, self.peak_bytes[report.name])
            tracemalloc.stop()

    def failed(self, error: Exception) -> None:
        if self._memory:
            tracemalloc.stop()
