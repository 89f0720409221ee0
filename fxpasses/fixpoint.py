"""Passes repeated until nothing changes.

    (acme.fold-add,acme.drop-identity)*       # at most 16 rounds
    (acme.fold-add,acme.drop-identity)*4      # at most 4

A group that is still changing the program in its last round does not settle: it is an error, which
names the rewrites of that round, because they undo each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fxpasses.errors import InvalidPipeline
from fxpasses.registry import Pass

ROUNDS = 16


@dataclass(frozen=True)
class Fixpoint:
    """A group of passes, and how many rounds it may take to settle."""

    passes: tuple[Pass, ...]
    limit: int = ROUNDS

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise InvalidPipeline(f"a group runs one round or more, not {self.limit}")

    def __str__(self) -> str:
        rounds = "" if self.limit == ROUNDS else str(self.limit)
        return "(" + ",".join(map(str, self.passes)) + ")*" + rounds


Item = Pass | Fixpoint


def flatten(items: Sequence[Item]) -> Iterator[Pass]:
    """Every pass, groups opened, in order."""
    for item in items:
        yield from item.passes if isinstance(item, Fixpoint) else (item,)
