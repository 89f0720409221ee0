"""Control flow as Python runs it: what `torch.cond` and `torch.while_loop` mean, not compiled.

Outside of export, torch compiles the graphs of these operators before it runs them, which is slow
and no oracle.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch


def cond(
    predicate: Any, true: Callable[..., Any], false: Callable[..., Any], operands: tuple[Any, ...]
) -> Any:
    """`torch.cond`."""
    return (true if bool(predicate) else false)(*operands)


def while_loop(
    goes_on: Callable[..., Any], body: Callable[..., Any], carried: tuple[Any, ...]
) -> tuple[Any, ...]:
    """`torch.while_loop`."""
    while bool(goes_on(*carried)):
        carried = body(*carried)
    return carried


# What the source of a plan may name.
GLOBALS = {
    "torch": torch,
    "aten": torch.ops.aten,
    "eager": SimpleNamespace(cond=cond, while_loop=while_loop),
}
