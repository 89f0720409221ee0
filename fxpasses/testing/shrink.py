"""The smallest program that still shows a fault.

    small = shrink(plan, fails)    # fails(plan) says whether the fault shows

Each round tries plans with one thing less and keeps the first that fails; a plan that no longer
runs does not fail, so no candidate needs to be right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

import torch

from fxpasses.testing.plan import Plan, Statement

T = TypeVar("T")


def shrink(plan: Plan, fails: Callable[[Plan], bool]) -> Plan:
    """A plan that fails and from which nothing can be taken."""
    tried: set[str] = {plan.source()}
    pending = smaller(plan)
    for candidate in pending:
        source = candidate.source()
        if source not in tried and fails(candidate):
            return shrink(candidate, fails)
        tried.add(source)
    return plan


def smaller(plan: Plan) -> Iterator[Plan]:
    """Plans with one thing less; some of them do not run."""
    yield from _one_result(plan)
    yield from _without_statement(plan)
    yield from _with_smaller_blocks(plan)
    if plan.functional:
        yield replace(plan, functional=False)
    if plan.dynamic:
        yield replace(plan, dynamic=False)
    yield from _with_plainer_inputs(plan)


def _one_result(plan: Plan) -> Iterator[Plan]:
    for name in plan.results if len(plan.results) > 1 else ():
        yield replace(plan, results=(name,))
    for name in plan.results if len(plan.results) > 2 else ():
        yield replace(plan, results=tuple(other for other in plan.results if other != name))


def _without_statement(plan: Plan) -> Iterator[Plan]:
    """A statement less; who read its value reads one of its operands."""
    for index, statement in reversed(list(enumerate(plan.statements))):
        rest = plan.statements[:index] + plan.statements[index + 1 :]
        shorter = replace(plan, statements=rest)
        if statement.target not in shorter.names():
            yield shorter
        else:
            for operand in dict.fromkeys(statement.operands.values()):
                yield shorter.renamed(statement.target, operand)


def _with_smaller_blocks(plan: Plan) -> Iterator[Plan]:
    for index, statement in enumerate(plan.statements):
        for smaller_one in _smaller_blocks(statement):
            yield replace(plan, statements=_at(plan.statements, index, smaller_one))


def _smaller_blocks(statement: Statement) -> Iterator[Statement]:
    for index, block in enumerate(statement.blocks):
        for body in _shorter(block.statements):
            blocks = _at(statement.blocks, index, replace(block, statements=body))
            yield replace(statement, blocks=blocks)


def _shorter(statements: tuple[Statement, ...]) -> Iterator[tuple[Statement, ...]]:
    for index, statement in reversed(list(enumerate(statements))):
        yield statements[:index] + statements[index + 1 :]
        for smaller_one in _smaller_blocks(statement):
            yield _at(statements, index, smaller_one)


def _with_plainer_inputs(plan: Plan) -> Iterator[Plan]:
    for buffer in plan.buffers:
        if buffer.reference not in plan.names():
            yield replace(plan, buffers=tuple(other for other in plan.buffers if other != buffer))
    for index, declared in enumerate(plan.inputs):
        if declared.name not in plan.names() and len(plan.inputs) > 1:
            yield replace(plan, inputs=plan.inputs[:index] + plan.inputs[index + 1 :])
        if declared.layout != "contiguous":
            plain = replace(declared, layout="contiguous")
            yield replace(plan, inputs=_at(plan.inputs, index, plain))
    dtypes = [i.dtype for i in plan.inputs] + [b.dtype for b in plan.buffers]
    if not {torch.bool, torch.float32}.issuperset(dtypes):
        yield replace(
            plan,
            inputs=tuple(replace(i, dtype=_plain(i.dtype)) for i in plan.inputs),
            buffers=tuple(replace(b, dtype=_plain(b.dtype)) for b in plan.buffers),
        )


def _plain(dtype: torch.dtype) -> torch.dtype:
    return dtype if dtype is torch.bool else torch.float32


def _at(items: tuple[T, ...], index: int, item: T) -> tuple[T, ...]:
    return (*items[:index], item, *items[index + 1 :])
