"""Let the C++ that Inductor writes round where eager rounds.

    y = x * 1.1 - 0.3    in bfloat16: eager rounds the product before it subtracts

A fused kernel computes in float32. Asked to emulate precision casts, Inductor converts what eager
would have stored to half precision and back; its C++ writer then took the way back for void and
reused the value from before (torch 2.11). Later versions skip that shortcut themselves when casts
are emulated.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch._inductor.codegen.cpp import CppKernel

SHORTCUT = "cache_dtype_convert"  # remembers a value as the result of converting it there and back


@contextmanager
def roundings_kept() -> Iterator[None]:
    """Without the shortcut inside; an Inductor that has none is left as it is."""
    shortcut = vars(CppKernel).get(SHORTCUT)
    if shortcut is None:
        yield
        return
    setattr(CppKernel, SHORTCUT, converts_in_earnest)
    try:
        yield
    finally:
        setattr(CppKernel, SHORTCUT, shortcut)


def converts_in_earnest(*_: Any) -> None:
    """Remember nothing."""
