"""How an elementwise operator lays out its result.

    lays_out_like([mask, source, out], index_put)    # would `where` have the strides of index_put?

ATen's elementwise operators allocate by their operands: a contiguous or channels-last result where
all operands are so, their strides where they share them, and otherwise the order of dims that the
first operand asks for that tells two dims apart. This follows that rule on recorded sizes and
strides; a comparison of symbolic sizes that may come out either way is a refusal.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import torch
from torch.fx import Node

from fxpasses._torch import always, expression
from fxpasses.values import observed, strides, value_of
from fxpasses.verdict import YES, Verdict, no


class Undecided(Exception):
    """The layout depends on the value of a symbolic size."""


def lays_out_like(
    operands: Sequence[Node | torch.Tensor], replaced: Node | torch.Tensor
) -> Verdict:
    """Whether an elementwise operator on `operands` gives the sizes and strides of `replaced`.

    Args:
        operands: the tensors that it reads, in the order of its arguments; nodes or their values.
        replaced: a node, or its value.
    """
    values, wanted = [value_of(operand) for operand in operands], value_of(replaced)
    try:
        sizes, found = layout_of(values)
        same_shape = len(sizes) == wanted.dim() and all(map(_same, sizes, wanted.shape))
    except Undecided as reason:
        return no(f"the layout of the replacement depends on {reason}")
    if not same_shape:
        return no(f"the replacement would have shape {sizes}, {replaced} has {list(wanted.shape)}")
    if observed(tuple(map(expression, sizes)), tuple(found)) != strides(wanted):
        return no(
            f"the replacement would have strides {tuple(found)}, "
            f"{replaced} has {tuple(wanted.stride())}"
        )
    return YES


def layout_of(values: Sequence[torch.Tensor]) -> tuple[list[Any], list[Any]]:
    """The sizes and strides of what an elementwise operator gives on `values`.

    Raises:
        Undecided: they depend on the value of a symbolic size.
    """
    sizes = _broadcast([list(value.shape) for value in values])
    if all(value.dim() == len(sizes) and all(map(_same, value.shape, sizes)) for value in values):
        simple = _shared(values, sizes)
        if simple is not None:
            return sizes, simple
    return sizes, _packed(sizes, _order(sizes, [_spread(value, sizes) for value in values]))


def _broadcast(shapes: list[list[Any]]) -> list[Any]:
    columns = zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1)
    return [_common(column) for column in columns][::-1]


def _common(column: Sequence[Any]) -> Any:
    """The size of a dim: the one that is not 1."""
    found: Any = 1
    for size in column:
        if not _decide(size == 1):
            found = size
    return found


def _shared(values: Sequence[torch.Tensor], sizes: list[Any]) -> list[Any] | None:
    """The strides of operands of one shape that agree on a layout; None where they do not."""
    count = len(sizes)
    for order in (list(range(count))[::-1], [1, 3, 2, 0])[: 2 if count == 4 else 1]:
        if all(_is_packed(value, order) for value in values):
            return _dense(sizes, order)
    first = list(values[0].stride())
    agree = all(all(map(_same, value.stride(), first)) for value in values)
    return first if agree and _is_dense(values[0]) else None


def _is_packed(value: torch.Tensor, order: list[int]) -> bool:
    """Whether a tensor fills its memory in `order`, innermost dim first; dims of size 1 may lie."""
    expected: Any = 1
    plain = order == list(range(value.dim()))[::-1]
    if plain and any(_decide(size == 0) for size in value.shape):
        return True
    for dim in order:
        size, stride = value.shape[dim], value.stride(dim)
        if _decide(size == 1):
            continue
        if not _decide(stride == expected):
            return False
        expected = expected * size
    return True


def _is_dense(value: torch.Tensor) -> bool:
    """Whether a tensor fills its memory in some order, each place once."""
    dims = [d for d in range(value.dim()) if not _decide(value.shape[d] < 2)]
    ordered: list[int] = []
    for dim in dims:  # insertion, for strides may be symbolic
        place = len(ordered)
        while place and _decide(value.stride(dim) < value.stride(ordered[place - 1])):
            place -= 1
        ordered.insert(place, dim)
    expected: Any = 1
    for dim in ordered:
        if not _decide(value.stride(dim) == expected):
            return False
        expected = expected * value.shape[dim]
    return True


def _spread(value: torch.Tensor, sizes: list[Any]) -> list[Any]:
    """The strides of an operand over the result, 0 along dims that it is broadcast to."""
    missing = len(sizes) - value.dim()
    own = [
        0 if _decide(size == 1) and not _decide(wide == 1) else stride
        for size, stride, wide in zip(value.shape, value.stride(), sizes[missing:], strict=True)
    ]
    return [0] * missing + own


def _order(sizes: list[Any], operands: list[list[Any]]) -> list[int]:
    """The dims, innermost first: an insertion sort, in which dims that nobody tells apart pass."""
    order = list(range(len(sizes)))[::-1]
    for start in range(1, len(order)):
        inner = start
        for outer in range(start - 1, -1, -1):
            comparison = _compare(order[outer], order[inner], sizes, operands)
            if comparison < 0:
                break
            if comparison > 0:
                order[outer], order[inner] = order[inner], order[outer]
                inner = outer
    return order


def _compare(left: int, right: int, sizes: list[Any], operands: list[list[Any]]) -> int:
    """Which of two dims lies further in: -1 for the left, 1 for the right, 0 for either."""
    for own in operands:
        a, b = own[left], own[right]
        if _decide(a == 0) or _decide(b == 0):
            continue
        if not _decide(a == b):
            return -1 if _decide(a < b) else 1
        if _decide(sizes[left] > sizes[right]):
            return 1
    return 0


def _packed(sizes: list[Any], order: list[int]) -> list[Any]:
    """The strides of a new tensor with its dims in `order`; a plain one knows no stride of 0."""
    if order == list(range(len(sizes)))[::-1]:
        return _dense(sizes, order)
    found: list[Any] = [0] * len(sizes)
    step: Any = 1
    for dim in order:
        found[dim] = step
        step = step * sizes[dim]
    return found


def _dense(sizes: list[Any], order: list[int]) -> list[Any]:
    """The strides of a tensor that fills its memory in `order`."""
    found: list[Any] = [1] * len(sizes)
    step: Any = 1
    for dim in order:
        found[dim] = step
        step = step * (1 if _decide(sizes[dim] == 0) else sizes[dim])
    return found


def _same(left: Any, right: Any) -> bool:
    return _decide(left == right)


def _decide(condition: Any) -> bool:
    """The answer to a question on sizes, where it is the same for all of them."""
    if isinstance(condition, bool):
        return condition
    if always(condition):
        return True
    if always(torch.sym_not(condition)):
        return False
    raise Undecided(f"whether {expression(condition)}")
