"""A pipeline: passes in order, with a text form, run and checked.

    pipeline = Pipeline.parse("default,-remove-async-asserts")
    result = pipeline.run(program)
    for remark in result.remarks:
        print(remark)

A named pipeline expands where it stands; `-name` takes a pass, or those of a pipeline, out again;
`+name` is `name`; a group `(a,b)*` repeats until nothing changes. The program that is handed in
stays as it was: a run works on a fork, made when the first pass finds something it may want to
change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from fxpasses import options, text
from fxpasses.budget import Budget
from fxpasses.errors import InvalidOption, InvalidPass, InvalidPipeline
from fxpasses.events import Announcer, Listener
from fxpasses.fixpoint import ROUNDS, Fixpoint, Item, flatten
from fxpasses.ordering import order
from fxpasses.program import Program
from fxpasses.registry import Pass, Registry, registry
from fxpasses.report import PipelineResult
from fxpasses.run import Run


class Pipeline:
    """Passes in the order that they run.

    Args:
        passes: as listed; what they declare about order may move them.

    Raises:
        MissingRequirement, ConflictingPasses, OrderingCycle, UnknownPass: what they declare
            cannot hold.
    """

    def __init__(self, passes: Sequence[Item] | str, known: Registry = registry) -> None:
        if isinstance(passes, str):
            raise InvalidPipeline(f"{passes!r} is text: Pipeline.parse reads it")
        for item in passes:
            _refuse_no_pass(item)
        self.items = tuple(order(passes, lambda name, by: known.get(name, by).name))

    @property
    def passes(self) -> tuple[Pass, ...]:
        """Every pass in order, groups opened."""
        return tuple(flatten(self.items))

    @classmethod
    def parse(cls, source: str, known: Registry = registry) -> Pipeline:
        """The pipeline that `source` describes; the grammar is in `fxpasses.text`.

        Raises:
            InvalidPipeline, UnknownPass, InvalidOption: naming the place, the nearest known
                name, or the option.
        """
        if not isinstance(source, str):
            raise InvalidPipeline(f"{source!r} is no text: Pipeline(passes) takes passes")
        return cls(_expand(text.parse(source), known), known)

    def __str__(self) -> str:
        return ",".join(map(str, self.items))

    def __repr__(self) -> str:
        return f"Pipeline.parse({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pipeline) and self.items == other.items

    def __hash__(self) -> int:
        return hash(self.items)

    def run(
        self,
        program: Program,
        verify: str = "metadata",
        inputs: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        listeners: Sequence[Listener] = (),
        limit: int | None = None,
        in_place: bool = False,
        nested: bool = True,
    ) -> PipelineResult:
        """Run the passes over every region of `program`.

        Args:
            program: an `ExportedProgram` or a `GraphModule`; it stays as it was.
            verify: "off", "structure", "metadata" or "numeric" (see `fxpasses.verify`).
            inputs: positional inputs for "numeric"; an exported program's example inputs
                stand in.
            kwargs: keyword inputs for "numeric".
            listeners: told of each event.
            limit: stop rewriting after so many rewrites; None for no limit.
            in_place: change `program` itself. An error then leaves it half rewritten, and
                "numeric" has nothing to compare with and is refused.
            nested: also run on the graphs of control flow; a host that hands those over one by
                one says no.

        Raises:
            VerificationFailed: a check after a pass found the program wrong.
            NoFixpoint: a repeated group did not settle.
            PassError: a pass could not do its work, or a listener its own.
        """
        if isinstance(inputs, torch.Tensor):
            raise InvalidOption("inputs is a tensor; give a tuple of inputs: (x,)")
        given = None
        if inputs is not None or kwargs is not None:
            given = tuple(inputs or ()), dict(kwargs or {})
        run = Run(program, verify, given, Announcer(listeners), Budget(limit), in_place, nested)
        return run.all(self.items)


def _refuse_no_pass(item: Any) -> None:
    """Refuse what no pipeline can hold: a class, a name, a pass that nobody registered.

    Raises:
        InvalidPass: saying which.
    """
    passes = item.passes if isinstance(item, Fixpoint) else (item,)
    for each in passes:
        if not isinstance(each, Pass):
            raise InvalidPass(f"{each!r} is no pass: Pipeline takes instances of Pass")
        if not each.name:
            raise InvalidPass(f"{type(each).__name__} has no name: put @register_pass(name) on it")


def _expand(
    steps: Sequence[text.Step | text.Group], known: Registry, opened: tuple[str, ...] = ()
) -> list[Item]:
    """The passes that `steps` stand for, named pipelines opened and removals done."""
    items: list[Item] = []
    for step in steps:
        if isinstance(step, text.Group):
            items.append(_group(_expand(step.steps, known, opened), step.rounds or ROUNDS))
        elif step.sign == "-":
            items = _remove(step, items, known)
        elif step.name in known.pipelines:
            _refuse_options(step)
            items += _open(step.name, known, opened)
        else:
            items.append(_build(known.get(step.name), step))
    return items


def _open(name: str, known: Registry, opened: tuple[str, ...]) -> list[Item]:
    if name in opened:
        raise InvalidPipeline(f"a pipeline contains itself: {' -> '.join((*opened, name))}")
    return _expand(text.parse(known.pipelines[name]), known, (*opened, name))


def _group(items: list[Item], rounds: int) -> Fixpoint:
    passes = [item for item in items if isinstance(item, Pass)]
    if len(passes) < len(items):
        raise InvalidPipeline("a group that repeats cannot hold another one")
    return Fixpoint(tuple(passes), rounds)


def _build(cls: type[Pass], step: text.Step) -> Pass:
    given = options.read(cls, step.name, step.options)
    missing = [name for name in options.required(cls) if name not in given]
    if missing:
        raise InvalidOption(f"pass {step.name!r} needs option {missing[0]!r}")
    return cls(**given)


def _remove(step: text.Step, items: list[Item], known: Registry) -> list[Item]:
    _refuse_options(step)
    if step.name in known.pipelines:
        unwanted = {pass_.name for pass_ in flatten(_open(step.name, known, ()))}
    else:
        unwanted = {known.get(step.name).name}
    if all(pass_.name not in unwanted for pass_ in flatten(items)):
        raise InvalidPipeline(f"-{step.name} removes nothing: it is not listed before it")
    return [kept for item in items for kept in _without(item, unwanted)]


def _without(item: Item, unwanted: set[str]) -> list[Item]:
    if isinstance(item, Fixpoint):
        return [Fixpoint(tuple(p for p in item.passes if p.name not in unwanted), item.limit)]
    return [] if item.name in unwanted else [item]


def _refuse_options(step: text.Step) -> None:
    if step.options:
        raise InvalidPipeline(
            f"{step.sign}{step.name} takes no options: give them to the pass that has them"
        )
