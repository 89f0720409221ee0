"""A guard's answer: yes, or no with the reason.

    def one_mask(self, match):
        return YES if match.mask is not None else no("indexed by integers")

A verdict is true or false like a bool, and a false one says why. Plain strings and bools are
refused as answers because a reason is a true string.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Verdict:
    """True or false; `reason` is empty exactly when true."""

    reason: str = ""

    def __bool__(self) -> bool:
        return not self.reason


YES = Verdict()


def no(reason: str) -> Verdict:
    """Return a refusal. `reason` is one clause that completes "kept NODE: ..."."""
    if not reason:
        raise ValueError("a refusal needs a reason")
    return Verdict(reason)
