"""Which rewrite broke the program?

    culprit = bisect(program, "default", inputs=(x,))
    print(culprit)         # rewrite 7 of 23: acme.fuse in true_graph_0: ...

Rewrites are counted over the whole run. The program after the first n of them is made again for
each n that is asked about, so the first bad one is found in about log2(n) runs (MLIR calls this a
debug counter). A pass that does not count its rewrites is found as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fxpasses.budget import Budget
from fxpasses.errors import NoFixpoint, PassError
from fxpasses.events import Listener
from fxpasses.pipeline import Pipeline
from fxpasses.printer import program_text
from fxpasses.program import Program
from fxpasses.remarks import Remark
from fxpasses.report import PipelineResult
from fxpasses.run import Run

Check = Callable[[Program], bool]


@dataclass(frozen=True)
class Culprit:
    """The first rewrite after which the program is bad.

    Attributes:
        number: its place among `total` rewrites, from 1.
        total: rewrites of the whole run, as far as it got.
        pass_name: the pass that made it.
        region: path of the graph; "" is the top graph.
        remark: what the pass said about it, where it said anything.
        before: text of the program before the rewrite.
        after: text of the program after it, or the error that it led to.
        runs: how many runs of the pipeline the search took.
        error: what the run raised with this rewrite, if it raised anything.
    """

    number: int
    total: int
    pass_name: str
    region: str
    remark: Remark | None
    before: str
    after: str
    runs: int
    error: Exception | None = None

    def __str__(self) -> str:
        place = f" in {self.region}" if self.region else ""
        said = f": {self.remark.node}: {self.remark.reason}" if self.remark else ""
        said += f" ({self.remark.source})" if self.remark and self.remark.source else ""
        return f"rewrite {self.number} of {self.total}: {self.pass_name}{place}{said}"


def bisect(
    program: Program,
    pipeline: Pipeline | str,
    inputs: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    check: Check | None = None,
) -> Culprit | None:
    """Find the first rewrite after which the program is bad; None when none is.

    Args:
        program: an `ExportedProgram` or a `GraphModule`; it stays as it was.
        pipeline: a pipeline or its text.
        inputs: positional inputs for the numeric check that is made without `check`.
        kwargs: keyword inputs for it.
        check: whether a program is good. Without one, a program is good that equals `program`
            bit for bit, and whose run raises nothing.

    Raises:
        NoFixpoint: a repeated group does not settle.
        PassError: the program is bad before any rewrite.
    """
    parsed = Pipeline.parse(pipeline) if isinstance(pipeline, str) else pipeline
    return _Search(program, parsed, inputs, kwargs, check).culprit()


class _Search:
    def __init__(
        self,
        program: Program,
        pipeline: Pipeline,
        inputs: Sequence[Any] | None,
        kwargs: Mapping[str, Any] | None,
        check: Check | None,
    ) -> None:
        self.program, self.items, self.check = program, pipeline.items, check
        self.level = "metadata" if check else "numeric"
        self.inputs = None if inputs is None else (tuple(inputs), dict(kwargs or {}))
        self.runs = 0
        self.errors: dict[int, Exception] = {}

    def culprit(self) -> Culprit | None:
        total, good = self.good(None)
        if good:
            return None
        if not self.good(0)[1]:
            raise PassError("the program is bad before any rewrite: the pipeline is not at fault")
        low, high = 0, total  # good after `low` rewrites, bad after `high`
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.good(middle)[1] else (low, middle)
        return self.describe(high, total)

    def good(self, limit: int | None) -> tuple[int, bool]:
        """How many rewrites a run made within `limit`, and whether the program is good then."""
        budget = Budget(limit)
        try:
            result = self.run(self.level, budget)
        except NoFixpoint:
            raise  # of rewrites that undo each other none is wrong
        except Exception as error:  # noqa: BLE001  # whatever a pass raises makes it the culprit
            self.errors[len(budget.taken)] = error
            return len(budget.taken), False
        return len(budget.taken), self.check is None or self.check(result.program)

    def run(self, level: str, budget: Budget) -> PipelineResult:
        self.runs += 1
        return Run(self.program, level, self.inputs, Listener(), budget).all(self.items)

    def describe(self, number: int, total: int) -> Culprit:
        """Make the program just before and just after the culprit once more."""
        budget = Budget(number)
        before = program_text(self.run("off", Budget(number - 1)).program)
        remark, after = None, ""
        try:
            result = self.run("off", budget)
            after = program_text(result.program)
            remark = next((r for r in reversed(result.remarks) if r.kind == "passed"), None)
        except Exception as error:  # noqa: BLE001  # as in `good`
            after = f"{type(error).__name__}: {error}"
        pass_name, region = budget.taken[number - 1]
        made = remark if remark and remark.pass_name == pass_name else None
        raised = self.errors.get(number)
        return Culprit(number, total, pass_name, region, made, before, after, self.runs, raised)
