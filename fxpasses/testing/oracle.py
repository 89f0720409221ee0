"""What a pipeline does to a random program, judged by eager: bit for bit, state and layout too."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.utils._pytree import tree_leaves

from fxpasses.errors import PassError
from fxpasses.pipeline import Pipeline
from fxpasses.program import Program
from fxpasses.remarks import Remark
from fxpasses.testing.plan import Plan
from fxpasses.verify import same_bits

CALLS = 3
Outcome = list[dict[str, Any]]


class NotExportable(Exception):
    """torch.export does not take the program: it proves nothing about a pass."""


class Unsound(PassError):
    """A pipeline raised, or changed what a program gives."""

    def __init__(self, plan: Plan, problem: str) -> None:
        super().__init__(problem)
        self.plan, self.problem = plan, problem

    def __str__(self) -> str:
        return f"{self.problem}\n{self.plan.source()}"


@dataclass(frozen=True)
class Trial:
    """One program that a pipeline ran on, and was right about.

    Attributes:
        remarks: what the passes did and left alone.
        changed: whether the program was rewritten; one that was not is the same object.
        exported_differs: torch.export itself gave a program that differs from eager.
    """

    remarks: list[Remark]
    changed: bool
    exported_differs: bool = False


def judge(plan: Plan, pipeline: Pipeline) -> Trial:
    """Export the program of a plan, run a pipeline on it, and compare.

    Raises:
        NotExportable: there is nothing to judge.
        Unsound: the pipeline is wrong about this program.
    """
    with warnings.catch_warnings(action="ignore"), torch.no_grad():
        program = _exported(plan)
        try:
            result = pipeline.run(program, verify="metadata")
        except Exception as error:  # whatever a pass raises, it raised it on a sound program
            raise Unsound(plan, f"{type(error).__name__}: {error}") from error
        if result.program is program:
            return Trial(result.remarks, changed=False)
        differs = _compare(plan, program, result.program)
    return Trial(result.remarks, changed=True, exported_differs=differs)


def _exported(plan: Plan) -> ExportedProgram:
    try:
        return plan.export()
    except Exception as error:
        raise NotExportable(f"{type(error).__name__}: {str(error).splitlines()[0]}") from error


def _compare(plan: Plan, program: ExportedProgram, rewritten: Program) -> bool:
    """Compare with eager; with the program as exported where that differs from eager itself."""
    ours = outcome(lambda: callable_of(rewritten), plan)
    problem = difference(outcome(lambda: plan.module("eager"), plan), ours)
    if not problem:
        return False
    if problem_of_export := difference(outcome(lambda: callable_of(program), plan), ours):
        raise Unsound(plan, problem_of_export)
    return True


def callable_of(program: Program) -> torch.nn.Module:
    """The program as a module."""
    return program.module() if isinstance(program, ExportedProgram) else program


def outcome(make: Callable[[], torch.nn.Module], plan: Plan) -> Outcome:
    """What each call returns and leaves behind, by name; a call that raises ends the list."""
    module = copy.deepcopy(make())
    calls: Outcome = []
    with torch.random.fork_rng(devices=[]):
        for call in range(CALLS):
            torch.manual_seed(call)
            inputs = plan.example(seed=call)
            try:
                results = tree_leaves(module(*inputs))
            except Exception:  # noqa: BLE001  # both sides must raise; in which words is their own
                return [*calls, {"raised": True}]
            calls.append(dict(_named(results, inputs, module)))
    return calls


def _named(
    results: list[Any], inputs: tuple[torch.Tensor, ...], module: torch.nn.Module
) -> Iterator[tuple[str, Any]]:
    state = dict(module.named_buffers(remove_duplicate=False))
    left = {f"output {index}": value for index, value in enumerate(results)}
    left |= {f"input {index}": value for index, value in enumerate(inputs)}
    for name, value in {
        **left,
        **{f"buffer {name}": value for name, value in state.items()},
    }.items():
        yield name, value.clone() if name.startswith("buffer") else value
    yield "memory", _sharing(list(left.values()))


def _sharing(tensors: list[torch.Tensor]) -> list[int]:
    """For each tensor, the first that has the same storage; empty ones aside."""
    places = [
        tensor.untyped_storage().data_ptr() or -index - 1 for index, tensor in enumerate(tensors)
    ]
    return [places.index(place) for place in places]


def difference(wanted: Outcome, got: Outcome) -> str:
    """The first value that differs, or ""."""
    for call, (left, right) in enumerate(zip(wanted, got, strict=False)):
        if ("raised" in left) != ("raised" in right):
            return f"call {call}: one of the two raised"
        for name, value in left.items():
            if name.startswith("buffer") and name not in right:  # nothing uses it
                continue
            if not same_bits(value, right.get(name)):
                return (
                    f"call {call}: {name} differs: {_show(value)} became {_show(right.get(name))}"
                )
    return ""


def _show(value: Any) -> str:
    if not isinstance(value, torch.Tensor):
        return repr(value)
    return f"{value.dtype} {value.tolist()} strides {value.stride()}"
