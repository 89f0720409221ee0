"""Watching is separate from doing.

A pipeline tells its listeners what happens; timing, dumps, progress and reports are listeners.
A listener overrides what it cares about and changes nothing.

    class Progress(Listener):
        def before(self, pass_, region): print(pass_.name, region.path)

    pipeline.run(program, listeners=[Progress()])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fxpasses.errors import ListenerFailed
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
    """Tells every event to each of several listeners, in their order.

    Raises:
        ListenerFailed: one of them raised; it is named, and the pass is not to blame.
    """

    def __init__(self, listeners: Sequence[Listener]) -> None:
        self.listeners = listeners

    def begin(self, program: Program, items: Sequence[Item], inputs: Inputs, verify: str) -> None:
        self._tell("begin", program, items, inputs, verify)

    def before(self, pass_: Pass, region: Region) -> None:
        self._tell("before", pass_, region)

    def rewrite(self, remark: Remark) -> None:
        self._tell("rewrite", remark)

    def missed(self, remark: Remark) -> None:
        self._tell("missed", remark)

    def after(self, report: PassReport) -> None:
        self._tell("after", report)

    def failed(self, error: Exception) -> None:
        self._tell("failed", error)

    def _tell(self, event: str, *details: Any) -> None:
        for listener in self.listeners:
            try:
                getattr(listener, event)(*details)
            except Exception as error:
                raise ListenerFailed(listener, event, error) from error
