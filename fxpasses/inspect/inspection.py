"""One run of a pipeline, kept for looking at.

inspection = inspect_pipeline(program, "replace-masked-copy-with-where")
inspection.before, inspection.after     # the program's text
inspection.steps, inspection.remarks    # what each pass did, and what it left alone and why
inspection.save("report.html")
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import networkx as nx

from fxpasses.events import Listener
from fxpasses.files import write_text
from fxpasses.inspect import html
from fxpasses.inspect.network import program_network
from fxpasses.inspect.recorder import Recorder, Step
from fxpasses.pipeline import Pipeline
from fxpasses.printer import program_text
from fxpasses.program import Program
from fxpasses.remarks import Remark
from fxpasses.report import PipelineResult


@dataclass(frozen=True)
class Inspection:
    """What a pipeline did to a program. In a notebook it shows itself as the report.

    Attributes:
        pipeline: the pipeline's text.
        program: the program that the pipeline was given.
        result: what the run returned; `result.program` is the program after it.
        steps: one for each pass and region, in the order they ran.
    """

    pipeline: str
    program: Program = field(repr=False)
    result: PipelineResult = field(repr=False)
    steps: Sequence[Step] = field(repr=False)

    @cached_property
    def before(self) -> str:
        """The text of the program as it was given."""
        return program_text(self.program)

    @cached_property
    def after(self) -> str:
        """The text of the program after the last pass."""
        return program_text(self.result.program)

    @property
    def remarks(self) -> Sequence[Remark]:
        """What was rewritten, and what was refused and why."""
        return self.result.remarks

    def to_networkx(self, which: Literal["before", "after"] = "after") -> nx.DiGraph[str]:
        """The program as a graph; `fxpasses.inspect.network` lists the attributes."""
        return program_network(self.program if which == "before" else self.result.program)

    def save(self, path: str | Path) -> None:
        """Write the report as one standalone HTML page.

        Raises:
            OSError: the directory is missing or cannot be written; nothing is left behind.
        """
        write_text(path, html.page(self))

    def _repr_html_(self) -> str:
        return html.fragment(self)


def inspect_pipeline(
    program: Program,
    pipeline: Pipeline | str,
    *,
    listeners: Sequence[Listener] = (),
    **options: Any,
) -> Inspection:
    """Run `pipeline` on `program` and keep what each pass saw.

    Args:
        program: as for `Pipeline.run`; left as it was.
        pipeline: a pipeline or its text.
        listeners: told what happens, besides the recorder.
        options: `verify` and `inputs`, as for `Pipeline.run`.

    Raises:
        PassError: what `Pipeline.parse` and `Pipeline.run` raise.
    """
    pipeline = Pipeline.parse(pipeline) if isinstance(pipeline, str) else pipeline
    recorder = Recorder()
    result = pipeline.run(program, listeners=[recorder, *listeners], **options)
    steps = tuple(recorder.steps(program, result.reports))
    return Inspection(str(pipeline), program, result, steps)
