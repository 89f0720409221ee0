"""The picks of a mask that nobody needs any more, and the checks that came with them.

Export writes checks on the size of `src[mask]`: not negative, at most the number of elements.
They hold for every mask, and keep the index alive only to be checked. A check of the user's own,
such as `torch._check(src[mask].shape[0] >= 1)`, can fail, so it stays, and so does the index.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import Any

import torch
from torch.fx import Node

from fxpasses._torch import always, is_erased
from fxpasses.editor import Editor
from fxpasses.operators import argument, describe, operator_of
from fxpasses.remarks import source_of
from fxpasses.values import value_of

aten = torch.ops.aten

_RANGES = (aten.sym_constrain_range_for_size.default, aten.sym_constrain_range.default)

# For `count OP bound` with 0 <= count <= size: the condition under which no count breaks it.
_HOLDS: dict[Any, Callable[[Any, Any], Any]] = {
    operator.ge: lambda bound, _size: bound <= 0,
    operator.gt: lambda bound, _size: bound < 0,
    operator.le: lambda bound, size: size <= bound,
    operator.lt: lambda bound, size: size < bound,
}
_MIRRORED = {
    operator.ge: operator.le,
    operator.le: operator.ge,
    operator.gt: operator.lt,
    operator.lt: operator.gt,
}


def erase_picks(picks: Node, editor: Editor) -> None:
    """Erase `picks` and the checks on its size, if that is all there is and all of it holds.

    Otherwise everything stays; when only a check is in the way, a Missed remark names it.
    """
    if is_erased(picks) or not is_only_counted(picks):
        return
    obstacle = obstacle_of(picks)
    if obstacle:
        editor.missed(picks, "count_checks", obstacle)
    else:
        erase_checked(picks, editor)


def is_only_counted(picks: Node) -> bool:
    """Whether nobody reads the elements of `picks`, only how many there are."""
    return all(operator_of(user) is aten.sym_size.int and user.args[1] == 0 for user in picks.users)


def obstacle_of(picks: Node) -> str:
    """Why the checks on the count of `picks` cannot go; "" when they can."""
    return next((why for _, why in _each_check(picks) if why), "")


def erase_checked(picks: Node, editor: Editor) -> None:
    """Erase the checks on the count of `picks`, and `picks`."""
    for check in [check for checks, _ in _each_check(picks) for check in checks]:
        editor.erase(check)
    editor.erase_dead(picks)


def most(picks: Node) -> Any:
    """How many elements (rows, of `nonzero`) the largest count of `picks` has."""
    if operator_of(picks) is aten.index.Tensor:
        return value_of(argument(picks, "indices")[0]).numel()
    if operator_of(picks) is aten.masked_select.default:
        return _broadcast_numel(
            value_of(argument(picks, "self")), value_of(argument(picks, "mask"))
        )
    return value_of(picks.args[0]).numel()


def _broadcast_numel(left: torch.Tensor, right: torch.Tensor) -> Any:
    """How many elements two tensors have when broadcast; infinite where that is not known."""
    pairs = zip_longest(reversed(left.shape), reversed(right.shape), fillvalue=1)
    return math.prod(_broadcast_size(*pair) for pair in pairs)


def _broadcast_size(left: Any, right: Any) -> Any:
    if always(left == 1) or always(left == right):
        return right
    return left if always(right == 1) else math.inf


def _each_check(picks: Node) -> Iterator[tuple[list[Node], str]]:
    size = most(picks)
    for count in picks.users:
        for user in count.users:
            yield _checks(user, count, size)


def _checks(user: Node, count: Node, size: Any) -> tuple[list[Node], str]:
    """The checks behind one reader of the count, or why they cannot go."""
    if operator_of(user) in _RANGES:
        low, high = argument(user, "min"), argument(user, "max")
        holds = (low is None or always(low <= 0)) and (high is None or always(size <= high))
        return [user], "" if holds else _may_fail(user)
    if operator_of(user) not in _HOLDS:
        return [], f"{user} ({describe(user)}) reads the count"
    readers = list(user.users)
    if any(operator_of(reader) is not aten._assert_scalar.default for reader in readers):
        return [], f"{user} decides more than a check"
    return readers, "" if _holds(user, count, size) else _may_fail(user)


def _holds(comparison: Node, count: Node, size: Any) -> bool:
    compare, (left, right) = operator_of(comparison), comparison.args
    if left is not count:
        compare, right = _MIRRORED[compare], left
    return right is not count and always(_HOLDS[compare](value_of(right), size))


def _may_fail(check: Node) -> str:
    source = source_of(check)
    return f"the check {check}{f' at {source}' if source else ''} does not hold for every mask"
