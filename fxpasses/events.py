"""Watching is separate from doing.

A pipeline tells its listeners what happens; timing, dumps, progress and reports are listeners.
A listener overrides what it cares about and changes nothing.

    class Progress(Listener):
        def before(self, pass_, region): print(pass_.name, region.path)

    pipeline.run(program, listeners=[Progress()])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fxpasses.regions import Region
from fxpasses.remarks import Remark

if TYPE_CHECKING:
    from fxpasses.fixpoint import Item
    from fxpasses.program import Program
    from fxpasses.registry import Pass
    from fxpasses.report import PassReport
    from fxpasses.verify import Inputs


class Listener:
    """The events of a run: `begin` once, then the others for each pass and region."""

    def begin(self, program: Program, items: Sequence[Item], inputs: Inputs, verify: str) -> None:
        """A run begins: the program as handed in, the passes and groups, numeric inputs, level."""

    def before(self, pass_: Pass, region: Region) -> None:
        """`pass_` is about to run on `region`."""

    def rewrite(self, remark: Remark) -> None:
        """A rewrite was made."""

    def missed(self, remark: Remark) -> None:
        """A rewrite was refused by a guard."""

    def after(self, report: PassReport) -> None:
        """The pass finished on the region, and the program passed its checks."""

    def failed(self, error: Exception) -> None:
        """The pass raised, or a check after it did; the run ends with `error`."""


class Announcer(Listener):
    """Tells every event to each of several listeners, in their order."""

    def __init__(self, listeners: Sequence[Listener]) -> None:
        self.listeners = listeners

    def begin(self, program: Program, items: Sequence[Item], inputs: Inputs, verify: str) -> None:
        for listener in self.listeners:
            listener.begin(program, items, inputs, verify)

    def before(self, pass_: Pass, region: Region) -> None:
        for listener in self.listeners:
            listener.before(pass_, region)

    def rewrite(self, remark: Remark) -> None:
        for listener in self.listeners:
            listener.rewrite(remark)

    def missed(self, remark: Remark) -> None:
        for listener in self.listeners:
            listener.missed(remark)

    def after(self, report: PassReport) -> None:
        for listener in self.listeners:
            listener.after(report)

    def failed(self, error: Exception) -> None:
        for listener in self.listeners:
            listener.failed(error)
