"""What a run of a pipeline did."""

from __future__ import annotations

from dataclasses import dataclass, field

from fxpasses.program import Program
from fxpasses.remarks import Remark


@dataclass(frozen=True)
class PassReport:
    """What one pass did to one region.

    Attributes:
        name: the pass.
        region: path of the graph; "" is the top graph.
        changed: whether the graph changed.
        rewrites: how many rewrites the pass reported.
        seconds: wall time of the pass, checks apart.
        nodes_before: nodes in the graph when the pass began.
        nodes_after: nodes in the graph when it ended.
        tried: nodes that a `RewritePass` looked at.
        matched: those that were what it looks for, whatever its guards said.
    """

    name: str
    region: str
    changed: bool
    rewrites: int
    seconds: float
    nodes_before: int
    nodes_after: int
    tried: int = 0
    matched: int = 0


@dataclass
class PipelineResult:
    """What a run did.

    Attributes:
        program: the program after the last pass.
        reports: one for each pass and region, in the order they ran.
        remarks: what was rewritten and what was left alone, and why.
        counted: pass and region of each rewrite that a limit counts, in order.
    """

    program: Program
    reports: list[PassReport] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    counted: list[tuple[str, str]] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        """Whether any pass changed anything; if not, `program` is the one that was handed in."""
        return any(report.changed for report in self.reports)
