"""What each pass saw and left: the text of a region before and after it.

recorder = Recorder()
result = pipeline.run(program, listeners=[recorder])
[step.name for step in recorder.steps(program, result.reports) if step.changed]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fxpasses.events import Listener
from fxpasses.printer import region_text
from fxpasses.program import Program, module_of
from fxpasses.regions import Region, regions
from fxpasses.registry import Pass
from fxpasses.report import PassReport


@dataclass(frozen=True)
class Step:
    """One pass on one region.

    Attributes:
        before, after: the text of the region; equal when the pass changed nothing.
        report: what the pass reported: rewrites, seconds, nodes before and after.
    """

    before: str
    after: str
    report: PassReport

    @property
    def name(self) -> str:
        """The pass."""
        return self.report.name

    @property
    def region(self) -> str:
        """Path of the region; "" is the top graph."""
        return self.report.region

    @property
    def changed(self) -> bool:
        """Whether the pass changed the region."""
        return self.report.changed


class Recorder(Listener):
    """Keeps the text of each region that a pass changed."""

    def __init__(self) -> None:
        self._region: Region | None = None
        self._changed: dict[PassReport, str] = {}

    def before(self, pass_: Pass, region: Region) -> None:
        self._region = region

    def after(self, report: PassReport) -> None:
        if report.changed and self._region is not None:
            self._changed[report] = region_text(self._region.module)

    def steps(self, program: Program, reports: Iterable[PassReport]) -> Iterator[Step]:
        """One step for each of `reports`; `program` is what the run was given."""
        texts = {region.path: region_text(region.module) for region in regions(module_of(program))}
        for report in reports:
            before = texts.get(report.region, "")
            after = texts[report.region] = self._changed.get(report, before)
            yield Step(before, after, report)
