"""One run of a pipeline: the fork that is worked on, and what happened to it so far."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from threading import RLock
from typing import Any

from torch.export import ExportedProgram
from torch.fx import Graph, Node

from fxpasses import verify
from fxpasses._torch import fake_mode_of, real_tensors
from fxpasses.analysis.nested import Numberings
from fxpasses.budget import Budget
from fxpasses.collector import paused
from fxpasses.editor import Editor
from fxpasses.errors import (
    InvalidOption,
    ListenerFailed,
    NoFixpoint,
    PassError,
    PassFailed,
    RewriteRefused,
    VerificationFailed,
)
from fxpasses.events import Listener
from fxpasses.fake import Evaluator
from fxpasses.fixpoint import Fixpoint, Item
from fxpasses.printer import region_text, text_diff
from fxpasses.program import Program, drop_unused_graphs, fork, module_of, sync_signature
from fxpasses.regions import Region, regions
from fxpasses.registry import Pass
from fxpasses.report import PassReport, PipelineResult
from fxpasses.values import value_of
from fxpasses.verify import Inputs, Snapshot

# Programs share fake modes, and numeric checks the random numbers of the process.
_ONE_AT_A_TIME = RLock()


class Run:
    """Runs passes over a program and collects what they did.

    Args:
        program: left as it is, unless `in_place`.
        level: how much to check after each pass (`fxpasses.verify.LEVELS`).
        inputs: positional and keyword inputs for level "numeric".
        listener: told of each event.
        budget: how many rewrites may be made.
        in_place: work on `program` itself instead of a fork.
        nested: visit the graphs of control flow too.
    """

    def __init__(
        self,
        program: Program,
        level: str,
        inputs: Inputs | None,
        listener: Listener,
        budget: Budget,
        in_place: bool = False,
        nested: bool = True,
    ) -> None:
        self.original = program
        self.level = verify.rank(level)
        if in_place and self.level >= verify.rank("numeric"):
            raise InvalidOption('verify="numeric" compares with the original: not in place')
        self.inputs = self._numeric_inputs(inputs)
        self.listener = listener
        self.budget = budget
        self.in_place = in_place
        self.nested = nested
        self.items: Sequence[Item] = ()
        self.result = PipelineResult(program, counted=budget.taken)
        self.evaluate = Evaluator(fake_mode_of(map(value_of, module_of(program).graph.nodes)))
        self._operators: dict[Graph, set[Any]] = {}
        self._numberings = Numberings()
        self._found: dict[str, Region] | None = None

    def all(self, items: Sequence[Item]) -> PipelineResult:
        """Run each pass, and each group until it settles."""
        self.items = items
        self.listener.begin(self.original, items, self.inputs, verify.LEVELS[self.level])
        try:
            with _ONE_AT_A_TIME, paused(), real_tensors():
                for item in items:
                    if isinstance(item, Fixpoint):
                        self._repeat(item)
                    else:
                        self._everywhere(item)
        except Exception as error:
            self._announce(error)
            raise
        if not self.result.changed:
            self.result.program = self.original
        return self.result

    def _announce(self, failure: Exception) -> None:
        """Tell the listeners; one that fails in turn does not hide the failure."""
        try:
            self.listener.failed(failure)
        except ListenerFailed as error:
            failure.add_note(str(error))

    def _repeat(self, group: Fixpoint) -> None:
        for _ in range(group.limit):
            reports, remarks = len(self.result.reports), len(self.result.remarks)
            for pass_ in group.passes:
                self._everywhere(pass_)
            if not any(report.changed for report in self.result.reports[reports:]):
                return
        last = [str(remark) for remark in self.result.remarks[remarks:] if remark.kind == "passed"]
        raise NoFixpoint(f"{group} still changes after {group.limit} rounds: " + "; ".join(last))

    def _everywhere(self, pass_: Pass) -> None:
        """Run one pass on each region, or report at once that it has nothing to do there."""
        self._numberings = Numberings()
        known = list(self._regions())
        self._each(pass_, known)
        # A graph that two operators share has another path once the first of them is gone.
        self._each(pass_, [path for path in self._regions() if path not in known])

    def _each(self, pass_: Pass, paths: Iterable[str]) -> None:
        for path in paths:
            region = self._regions().get(path)
            if region is None:  # a rewrite of the graph above it dropped it
                continue
            idle = pass_.targets and self._called(region).isdisjoint(pass_.targets)
            if idle or not (pass_.counts_rewrites or self.budget.take(pass_.name, region.path)):
                size = len(region.graph.nodes)
                report = PassReport(pass_.name, region.path, False, 0, 0.0, size, size)
                self.result.reports.append(report)
            else:
                self._work(pass_, self._forked(region))

    def _regions(self) -> dict[str, Region]:
        """The regions of the program that is worked on, by path."""
        if self._found is None:
            found = regions(module_of(self.result.program))
            self._found = {region.path: region for region in (found if self.nested else found[:1])}
        return self._found

    def _called(self, region: Region) -> set[Any]:
        if region.graph not in self._operators:
            self._operators[region.graph] = region.operators()
        return self._operators[region.graph]

    def _forked(self, region: Region) -> Region:
        """`region` in the program that is worked on, which is forked before the first change."""
        if self.in_place or self.result.program is not self.original:
            return region
        self.result.program, self._found = fork(self.original), None
        return self._regions()[region.path]

    def _work(self, pass_: Pass, region: Region) -> None:
        self.listener.before(pass_, region)
        before = verify.snapshot(region.module)
        results = verify.results_of(self.result.program, region)
        size = len(region.graph.nodes)
        counted = len(self.budget.taken) - (0 if pass_.counts_rewrites else 1)
        start = time.perf_counter()
        editor = Editor(
            self.result.program,
            region,
            pass_.name,
            self.listener,
            self.evaluate,
            self.budget,
            self._numberings,
        )
        try:
            pass_.run(editor)
        except RewriteRefused as error:
            raise RewriteRefused(f"{_place(editor)}: {error}") from error
        except PassError:
            raise
        except Exception as error:
            at = editor.node.name if editor.node else ""
            raise PassFailed(pass_.name, region.path, at, error) from error
        seconds = time.perf_counter() - start
        try:
            changed = self._settle(editor, before, results)
        except VerificationFailed as error:
            self._explain(error, editor, counted)
            raise
        report = PassReport(
            name=pass_.name,
            region=region.path,
            changed=changed,
            rewrites=editor.rewrites,
            seconds=seconds,
            nodes_before=size,
            nodes_after=len(region.graph.nodes),
            tried=editor.tried,
            matched=editor.matched,
        )
        self.result.reports.append(report)
        self.result.remarks += editor.remarks
        self.listener.after(report)

    def _settle(self, editor: Editor, before: Snapshot, results: list[Any]) -> bool:
        """Bring code, signature and nested graphs in step with the graph, and check it."""
        region = editor.region
        if editor.changed:
            self._numberings = Numberings()  # those of other regions may rest on this one
            drop_unused_graphs(region.module)
            self._found = None
            region.module.recompile()
            self._operators.pop(region.graph, None)
            if not region.path:
                sync_signature(self.result.program)
        touched = verify.touched(region.graph, before.nodes)
        if self.level:
            self._check(editor, before, results, touched)
        return bool(touched) or len(before.nodes) != len(region.graph.nodes)

    def _check(
        self, editor: Editor, before: Snapshot, results: list[Any], touched: Sequence[Node]
    ) -> None:
        """Refuse what was changed without the editor, and what the checks of the level refuse."""
        region, name = editor.region, editor.pass_name
        if behind := verify.behind(region.module, before, touched, editor.changed):
            problem = "the graph changed behind the editor's back"
            raise VerificationFailed(name, region.path, behind, problem)
        if not touched and len(before.nodes) == len(region.graph.nodes):
            return
        verify.check_structure(self.result.program, region, name)
        if self.level >= verify.rank("metadata"):
            verify.check_metadata(region, touched, name, self.evaluate)
            verify.check_results(self.result.program, region, results, name)
        if self.level >= verify.rank("numeric"):
            verify.check_numeric(self.original, self.result.program, self.inputs, name)

    def _explain(self, error: VerificationFailed, editor: Editor, counted: int) -> None:
        """Add what the pass did, and the region as it was after the first `counted` rewrites."""
        error.rewrites = [str(remark) for remark in editor.remarks if remark.kind == "passed"]
        if self.in_place:
            return
        again = Run(
            self.original, "off", None, Listener(), Budget(counted), nested=self.nested
        ).all(self.items)
        path = editor.region.path
        before = next(r for r in regions(module_of(again.program)) if r.path == path)
        error.diff = text_diff(region_text(before.module), region_text(editor.region.module))

    def _numeric_inputs(self, given: Inputs | None) -> Inputs:
        if self.level < verify.rank("numeric") or given is not None:
            return given or ((), {})
        program = self.original
        if isinstance(program, ExportedProgram) and program.example_inputs is not None:
            args, kwargs = program.example_inputs
            return tuple(args), dict(kwargs)
        raise InvalidOption('verify="numeric" needs inputs: the program holds no example inputs')


def _place(editor: Editor) -> str:
    """The pass, and where it was at work."""
    region = f" in {editor.region.path}" if editor.region.path else ""
    return f"{editor.pass_name}{region}" + (f" at {editor.node.name}" if editor.node else "")
