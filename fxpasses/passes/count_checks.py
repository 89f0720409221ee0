"""The picks of a mask that nobody needs any more, and the checks that came with them.

Export writes checks on the size of `src[mask]`: not negative, at most the number of elements.
They hold for every mask, and keep the index alive only to be checked. A check of the user's own,
such as `torch._check(src[mask].shape[0] >= 1)`, can fail, so it stays, and so does the index.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Node

from fxpasses._torch import always
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


def erase_picks(picks: Node, mask: Node, editor: Editor) -> None:
    """Erase `picks` and the checks on its size, if that is all there is and all of it holds.

    Otherwise everything stays; when only a check is in the way, a Missed remark names it.
    """
    counts = list(picks.users)
    if not all(_is_count(user) for user in counts):
        return
    checks: list[Node] = []
    for count in counts:
        for user in count.users:
            found, obstacle = _checks(user, count, value_of(mask).numel())
            if obstacle:
                editor.missed(picks, "count_checks", obstacle)
                return
            checks += found
    for check in checks:
        editor.erase(check)
    editor.erase_dead(picks)


def _is_count(node: Node) -> bool:
    return operator_of(node) is aten.sym_size.int and bool(node.args[1] == 0)


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
