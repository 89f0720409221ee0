"""Running operators on recorded values instead of data.

A graph's metadata are fake tensors: sizes, strides, dtype and device without memory. `Evaluator`
runs an operator on them and answers the fake result. Programs repeat themselves, so results are
kept by operator and operand metadata, which makes a repeated question a dictionary lookup.

    evaluate = Evaluator()
    evaluate(torch.ops.aten.where.self, mask, left, right)    # nodes or fake values
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cache
from typing import Any

import torch
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import Node
from torch.fx.node import map_arg
from torch.utils._pytree import tree_leaves

from fxpasses._torch import evaluating, fake_mode_of
from fxpasses.values import signature_of, value_of

_UNKNOWN = object()


class Evaluator:
    """Evaluates operator calls on fake values, each distinct call once.

    Args:
        mode: the fake mode for calls that have no tensor among their operands.
    """

    def __init__(self, mode: FakeTensorMode | None = None) -> None:
        self.mode = mode
        self._known: dict[Hashable, Any] = {}

    def __call__(self, target: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """What `target` gives on what the operands record; None where one records nothing.

        Raises:
            Exception: whatever the operator raises when it does not take these operands.
        """
        try:
            args, kwargs = map_arg((args, kwargs), _recorded)
        except LookupError:
            return None
        if not is_function_of_metadata(target):
            return self._run(target, args, kwargs)
        key = (target, signature_of(args), tuple(kwargs), signature_of(tuple(kwargs.values())))
        known = self._known.get(key, _UNKNOWN)
        if known is _UNKNOWN:
            known = self._known[key] = self._run(target, args, kwargs)
        return known

    def _run(self, target: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        mode = fake_mode_of(tensors) or self.mode
        if mode is None:
            return None if tensors else target(*args, **kwargs)
        with evaluating(mode):
            return target(*args, **kwargs)


def _recorded(operand: Node) -> Any:
    value = value_of(operand)
    if value is None:
        raise LookupError(f"{operand} records no value")
    return value


@cache
def is_function_of_metadata(target: Any) -> bool:
    """Whether equal operand metadata give equal results, of which one can stand for all.

    A view shares memory with its own operand; a data-dependent operator names new sizes.
    """
    if not isinstance(target, OpOverload) or target._schema.is_mutable:
        return False
    aliases = any(result.alias_info is not None for result in target._schema.returns)
    return not aliases and not finds_sizes(target)


def finds_sizes(target: OpOverload) -> bool:
    """Whether a size of the result, or a number that it is, depends on data."""
    data_dependent = {torch.Tag.dynamic_output_shape, torch.Tag.data_dependent_output}
    return not data_dependent.isdisjoint(target.tags)
