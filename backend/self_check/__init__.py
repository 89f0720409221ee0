"""A lowered program is proved before it is written.

    lower(program, device="cpu")                                    # proves it
    lower(program, device="cpu", self_check=SelfCheck(calls=8))     # with more calls
    lower(program, device="cpu", self_check=None)                   # trusts the compiler

The bytes that would be saved are loaded by the runtime and called beside eager: first on the
program's example inputs, then on perturbed ones, on resized ones where sizes are dynamic. Outputs,
their strides, and the buffers that the program writes must agree on every call. The compiler is
not above suspicion: Inductor has frozen buffers and read memory after it was overwritten, without
a word.
"""

from __future__ import annotations

from backend.self_check.check import DEFAULT, SelfCheck, prove

__all__ = ["DEFAULT", "SelfCheck", "prove"]
