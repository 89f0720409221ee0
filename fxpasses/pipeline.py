"""A pipeline: passes in order, with a text form, run and checked.

    pipeline = Pipeline.parse("default,-remove-async-asserts")
    result = pipeline.run(program)
    for remark in result.remarks:
        print(remark)

A named pipeline expands where it stands; `-name` takes a pass out again; `+name` is `name`. The
program that is handed in stays as it was: a run works on a fork, made when the first pass finds
something it may want to change.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from torch.export import ExportedProgram
from torch.fx import Graph

from fxpasses import options, text, verify
from fxpasses._torch import fake_mode_of
from fxpasses.editor import Editor
from fxpasses.errors import InvalidOption, InvalidPipeline, VerificationFailed
from fxpasses.events import Announcer, Listener
from fxpasses.fake import Evaluator
from fxpasses.ordering import order
from fxpasses.program import Program, fork, module_of, sync_signature
from fxpasses.regions import Region, regions
from fxpasses.registry import Pass, Registry, registry
from fxpasses.remarks import Remark
from fxpasses.values import value_of


@dataclass(frozen=True)
class PassReport:
    """What one pass did to one region.

    Attributes:
        name: the pass.
        region: path of the graph; "" is the top graph.
        changed: whether the graph changed, as the editor saw it.
        rewrites: how many rewrites the pass reported.
        seconds: wall time of the pass, checks apart.
        nodes_before, nodes_after: sizes of the graph.
    """

    name: str
    region: str
    changed: bool
    rewrites: int
    seconds: float
    nodes_before: int
    nodes_after: int


@dataclass
class PipelineResult:
    """What a run did: the program, a report for each pass and region, and every remark."""

    program: Program
    reports: list[PassReport] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        """Whether any pass changed anything; if not, `program` is the one that was handed in."""
        return any(report.changed for report in self.reports)


class Pipeline:
    """Passes in the order that they run.

    Args:
        passes: as listed; what they declare about order may move them.

    Raises:
        MissingRequirement, ConflictingPasses, OrderingCycle, UnknownPass: what they declare
            cannot hold.
    """

    def __init__(self, passes: Sequence[Pass], known: Registry = registry) -> None:
        self.passes = tuple(
            order(passes, lambda name: known.get(name, "an ordering constraint").name)
        )

    @classmethod
    def parse(cls, source: str, known: Registry = registry) -> Pipeline:
        """The pipeline that `source` describes; the grammar is in `fxpasses.text`.

        Raises:
            InvalidPipeline, UnknownPass, InvalidOption: naming the place, the nearest known
                name, or the option.
        """
        return cls(_expand(text.parse(source), known), known)

    def __str__(self) -> str:
        return ",".join(map(str, self.passes))

    def __repr__(self) -> str:
        return f"Pipeline.parse({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pipeline) and self.passes == other.passes

    def __hash__(self) -> int:
        return hash(self.passes)

    def run(
        self,
        program: Program,
        verify: str = "metadata",
        inputs: Sequence[Any] | None = None,
        listeners: Sequence[Listener] = (),
    ) -> PipelineResult:
        """Run the passes over every region of `program`.

        Args:
            program: an `ExportedProgram` or a `GraphModule`; it stays as it was.
            verify: "off", "structure", "metadata" or "numeric" (see `fxpasses.verify`).
            inputs: positional inputs for "numeric"; an exported program's example inputs
                stand in.
            listeners: told of each event.

        Raises:
            VerificationFailed: a check after a pass found the program wrong.
            PassError: a pass could not do its work.
        """
        return _Run(program, verify, inputs, Announcer(listeners)).all(self.passes)


def _expand(steps: list[text.Step], known: Registry) -> list[Pass]:
    """The passes that `steps` stand for, named pipelines opened and removals done."""
    passes: list[Pass] = []
    for step in steps:
        if step.sign == "-":
            passes = _remove(step, passes, known)
        elif step.name in known.pipelines:
            _refuse_options(step)
            passes += _expand(text.parse(known.pipelines[step.name]), known)
        else:
            cls = known.get(step.name)
            passes.append(_build(cls, step))
    return passes


def _build(cls: type[Pass], step: text.Step) -> Pass:
    given = options.read(cls, step.name, step.options)
    try:
        return cls(**given)
    except TypeError as error:
        raise InvalidOption(f"{step.name}: {error}") from error


def _remove(step: text.Step, passes: list[Pass], known: Registry) -> list[Pass]:
    _refuse_options(step)
    name = known.get(step.name).name
    kept = [pass_ for pass_ in passes if pass_.name != name]
    if len(kept) == len(passes):
        raise InvalidPipeline(f"-{step.name} removes nothing: {name} is not listed before it")
    return kept


def _refuse_options(step: text.Step) -> None:
    if step.options:
        raise InvalidPipeline(
            f"{step.sign}{step.name} takes no options: give them to the pass that has them"
        )


class _Run:
    """One run: the fork that is worked on, and what happened to it so far."""

    def __init__(
        self, program: Program, level: str, inputs: Sequence[Any] | None, listener: Listener
    ) -> None:
        self.original = program
        self.level = verify.check_level(level)
        self.listener = listener
        self.result = PipelineResult(program)
        self.inputs = self._inputs_for_numeric(inputs)
        self.operators: dict[Graph, set[Any]] = {}
        nodes = module_of(program).graph.nodes
        self.evaluate = Evaluator(fake_mode_of(map(value_of, nodes)))

    def all(self, passes: Sequence[Pass]) -> PipelineResult:
        try:
            for pass_ in passes:
                self._everywhere(pass_)
        except Exception as error:
            self.listener.failed(error)
            raise
        if not self.result.changed:
            self.result.program = self.original
        return self.result

    def _everywhere(self, pass_: Pass) -> None:
        """Run one pass on each region, or report at once that it has nothing to do there."""
        for region in regions(module_of(self.result.program)):
            if pass_.targets and self._operators(region).isdisjoint(pass_.targets):
                size = len(region.graph.nodes)
                self.result.reports.append(
                    PassReport(pass_.name, region.path, False, 0, 0.0, size, size)
                )
            else:
                self._work(pass_, self._forked(region))

    def _operators(self, region: Region) -> set[Any]:
        if region.graph not in self.operators:
            self.operators[region.graph] = region.operators()
        return self.operators[region.graph]

    def _forked(self, region: Region) -> Region:
        """`region` in the program that is worked on, which is forked before the first change."""
        if self.result.program is self.original:
            self.result.program = fork(self.original)
        return next(
            mine for mine in regions(module_of(self.result.program)) if mine.path == region.path
        )

    def _work(self, pass_: Pass, region: Region) -> None:
        self.listener.before(pass_, region)
        before = verify.snapshot(region.graph) if self.level else {}
        size, start = len(region.graph.nodes), time.perf_counter()
        editor = Editor(self.result.program, region, pass_.name, self.listener, self.evaluate)
        pass_.run(editor)
        seconds = time.perf_counter() - start
        if editor.changed:
            self._settle(region)
        if self.level:
            self._check(pass_.name, editor, before)
        report = PassReport(
            pass_.name,
            region.path,
            editor.changed,
            editor.rewrites,
            seconds,
            size,
            len(region.graph.nodes),
        )
        self.result.reports.append(report)
        self.result.remarks += editor.remarks
        self.listener.after(report)

    def _settle(self, region: Region) -> None:
        """Bring what hangs on the graph in step with it: code, signature, set of operators."""
        region.module.recompile()
        if not region.path:
            sync_signature(self.result.program)
        self.operators.pop(region.graph, None)

    def _check(self, name: str, editor: Editor, before: verify.Snapshot) -> None:
        region = editor.region
        touched = verify.touched(region.graph, before)
        if not editor.changed and (touched or len(before) != len(region.graph.nodes)):
            node = touched[0].name if touched else ""
            raise VerificationFailed(
                name, region.path, node, "the graph changed behind the editor's back"
            )
        if not editor.changed:
            return
        verify.check_structure(self.result.program, region, name)
        if self.level >= verify.check_level("metadata"):
            verify.check_metadata(region, touched, name, self.evaluate)
        if self.level >= verify.check_level("numeric"):
            verify.check_numeric(self.original, self.result.program, self.inputs, name)

    def _inputs_for_numeric(self, inputs: Sequence[Any] | None) -> Sequence[Any]:
        if self.level < verify.check_level("numeric") or inputs is not None:
            return inputs or ()
        example = (
            self.original.example_inputs if isinstance(self.original, ExportedProgram) else None
        )
        if example is None:
            raise InvalidOption(
                'verify="numeric" needs inputs: the program holds no example inputs'
            )
        return tuple(example[0])
