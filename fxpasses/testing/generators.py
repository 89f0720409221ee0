"""Hypothesis strategies for programs: masks, histories, aliases, writes, state, control flow.

    @given(fx_programs())
    def test_pass_is_sound(plan):
        program = plan.export()
        ...

What is drawn is a `Plan`. It shrinks to few lines, and prints as source code.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import torch
from hypothesis import strategies as st

from fxpasses.testing.control_flow import REGIONS
from fxpasses.testing.plan import Plan
from fxpasses.testing.scope import Scope, buffer_tensors
from fxpasses.testing.steps import STEPS, Step
from fxpasses.testing.tensors import DTYPES, LAYOUTS, SHAPES, Buffer, Input

MOST_STEPS = 7


@st.composite
def fx_programs(draw: st.DrawFn, /, **options: Any) -> Plan:
    """Plans of programs; the options are those of `draw_plan`."""
    return draw_plan(lambda options: draw(st.sampled_from(options)), **options)


def random_program(seed: int | str, **options: Any) -> Plan:
    """The program of a seed."""
    return draw_plan(random.Random(seed).choice, **options)


def draw_plan(
    choose: Callable[[Sequence[Any]], Any],
    regions: bool = True,
    layouts: Sequence[str] = LAYOUTS,
    dtypes: Sequence[torch.dtype] = DTYPES,
    steps: Sequence[Step] | None = None,
) -> Plan:
    """Draw the plan of a program.

    Args:
        choose: draws one of several options; the first is the simplest.
        regions: with conds, nested ones too, and loops.
        layouts: those of the inputs.
        dtypes: those of the inputs that are no masks.
        steps: what the body is made of; default `STEPS`. A step adds lines to a `Scope`.
    """
    dtype = choose([torch.float32] * len(dtypes) + list(dtypes))
    shape = choose([(6,), (3, 4)] * 4 + list(SHAPES))
    dynamic = bool(shape) and shape[0] > 1 and choose([False] * 7 + [True])
    layout = ["contiguous"] * len(layouts) + list(layouts)
    declared = [("x", dtype), ("y", dtype), ("m", torch.bool)]
    inputs = tuple(Input(name, kind, shape, choose(layout)) for name, kind in declared)
    buffers = () if dynamic else _buffers(choose, dtype, shape)
    plan = Plan(inputs, buffers, dynamic=dynamic, functional=choose([False] * 39 + [True]))
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        given = dict(zip("xym", plan.example(), strict=True)) | buffer_tensors(buffers)
        scope = Scope(choose, count(), given)
        nested = REGIONS if regions and choose([False] * 15 + [True]) else ()
        for _ in range(choose(range(2, MOST_STEPS + 1))):
            choose([*(steps or STEPS), *nested])(scope)
    return Plan(
        inputs, buffers, tuple(scope.statements), _results(scope), plan.dynamic, plan.functional
    )


def _buffers(
    choose: Callable[[Sequence[Any]], Any], dtype: torch.dtype, shape: tuple[int, ...]
) -> tuple[Buffer, ...]:
    data = Buffer("state", dtype, shape)
    mask = Buffer("flags", torch.bool, shape)
    tied = Buffer("tied", dtype, shape, tied="self.state")
    also = Buffer("also", torch.bool, shape, tied="self.flags")
    chosen: tuple[Buffer, ...] = choose(
        [()] * 4 + [(data,), (data, mask), (data, tied), (mask, also)]
    )
    return chosen


def _results(scope: Scope) -> tuple[str, ...]:
    """Names to return: most of what was made."""
    made = list(scope.definitions)
    kept = [name for name in made if scope.oneof([True, True, True, name not in scope.picks])]
    return tuple(kept or ["x"])
