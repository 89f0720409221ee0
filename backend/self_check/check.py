"""The self-check: the compiled methods and eager, call by call."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from backend.compile.method import on_device
from backend.errors import BackendError, SelfCheckFailed
from backend.runtime.method import Method
from backend.runtime.program import Program
from backend.self_check.chance import depends_on_chance
from backend.self_check.compare import difference, leaf_difference
from backend.self_check.draws import perturbed, resized
from backend.self_check.eager import Eager
from fxpasses import PassError, Pipeline, VerificationFailed

LOG = logging.getLogger("backend")


@dataclass(frozen=True)
class SelfCheck:
    """How a lowered program is compared with eager.

    Attributes:
        calls: calls of each method; the first is on the example inputs.
        tolerance: the largest difference of floating-point values, as a share of the largest
            magnitude in the output; None is 1e-10 for float64, 1e-4 for float32, 1e-2 for float16
            and 5e-2 for bfloat16. Integers, booleans, shapes and strides must be equal.
        seed: of the perturbation.
    """

    calls: int = 4
    tolerance: float | None = None
    seed: int = 0


DEFAULT = SelfCheck()


def prove(programs: Mapping[str, ExportedProgram], lowered: Program, options: SelfCheck) -> None:
    """Compare each method of `lowered` with the program that it was made from.

    Raises:
        SelfCheckFailed: naming method, call, output, values, and who is at fault.
    """
    for name, program in programs.items():
        if program.example_inputs is None:
            LOG.info("method %r is not checked: its program holds no example inputs", name)
        else:
            prove_method(program, lowered[name], options)


def prove_method(program: ExportedProgram, method: Method, options: SelfCheck) -> None:
    """Call `method` and eager on the same inputs, as often as the options say."""
    eager = Eager(program, method.plan.payload.device)
    outputs, buffers = depends_on_chance(program)
    for number, (kind, args, kwargs) in enumerate(inputs(eager, method, options), 1):
        try:
            expected = eager(*copies(args), **copies(kwargs))
        except Exception as error:  # eager refuses with errors of any kind
            if kind == "example":
                raise
            LOG.info("%s: eager does not take the %s inputs: %s", method.name, kind, error)
            continue
        fault = call_fault(method, copies(args), copies(kwargs), expected, options, outputs)
        fault = fault or state_fault(method, eager, options, buffers)
        if fault:
            where = f'method "{method.name}", call {number} ({kind} inputs)'
            raise SelfCheckFailed(f"{where}: {fault}; {blame(program, method, (args, kwargs))}")


def inputs(
    eager: Eager, method: Method, options: SelfCheck
) -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """The kind and the arguments of each call."""
    generator = torch.Generator().manual_seed(options.seed)
    leaves, structure = tree_flatten(eager.example_inputs)
    others = resized(leaves, method.plan)
    for call in range(options.calls):
        kind, drawn = "perturbed", perturbed(leaves, generator)
        if call == 0:
            kind, drawn = "example", leaves
        elif call == options.calls - 1 and others is not None:
            kind, drawn = "resized", others
        args, kwargs = tree_unflatten(drawn, structure)
        yield kind, args, kwargs


def copies(values: Any) -> Any:
    """`values` with tensors of its own, so that no call sees what another one wrote."""
    return tree_map(lambda v: v.clone() if isinstance(v, Tensor) else v, values)


def call_fault(
    method: Method, args: Any, kwargs: Any, expected: Any, options: SelfCheck, random: set[int]
) -> str:
    """What one call of `method` has wrong, or ""."""
    try:
        found = method(*args, **kwargs)
    except BackendError as error:
        return f"eager takes these inputs, the compiled method does not: {error}"
    return difference(found, expected, options.tolerance, random)


def state_fault(method: Method, eager: Eager, options: SelfCheck, random: set[str]) -> str:
    """What a buffer that the method writes holds wrongly after a call, or "".

    A flag that a pass moved to host memory is compared there.
    """
    for name, found in method.state_dict().items():
        expected = eager.buffer(name).to(found.device)
        if fault := leaf_difference(found, expected, options.tolerance, name in random):
            return f'buffer "{name}" {fault}'
    return ""


def blame(program: ExportedProgram, method: Method, given: Any) -> str:
    """Whether the passes alone already differ from eager on these inputs."""
    command = "fxpasses bisect finds the rewrite"
    try:
        args, kwargs = given
        placed = on_device(program, method.plan.payload.device)
        Pipeline.parse(method.pipeline).run(placed, verify="numeric", inputs=args, kwargs=kwargs)
    except VerificationFailed as error:
        return f"pass {error.pass_name} changes the result: {command}"
    except PassError as error:
        return f"the passes could not be checked alone: {error}"
    return "the passes alone give eager's result, so the compiler is at fault (fxpasses bisect)"
