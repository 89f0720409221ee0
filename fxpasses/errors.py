"""What can go wrong, by name.

Every error that a user can cause or must act on derives from `PassError`, so one `except`
catches the engine and nothing else. The message states the fact and the way out.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class PassError(Exception):
    """The base of every error this package raises on purpose."""


class UnknownPass(PassError):
    """A pipeline or an ordering constraint names a pass that nobody registered."""

    def __init__(self, name: str, known: Iterable[str], wanted_by: str = "") -> None:
        self.name = name
        others = [other for other in known if other != wanted_by]
        near = difflib.get_close_matches(name, others, n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        where = f" (named by {wanted_by})" if wanted_by else ""
        super().__init__(f"unknown pass {name!r}{where}{hint}")


class DuplicatePass(PassError):
    """Two passes want one name."""


class InvalidPass(PassError):
    """A class that cannot be registered: not a frozen dataclass, a bad name, a bad guard."""


class InvalidPipeline(PassError):
    """A pipeline's text does not follow the grammar."""


class InvalidOption(PassError):
    """A pass has no such option, or the option has another type."""


class InvalidProgram(PassError):
    """What was given to run on is neither an `ExportedProgram` nor a `GraphModule`."""


class OrderingCycle(PassError):
    """Declared constraints contradict each other; the message prints the cycle."""


class MissingRequirement(PassError):
    """A pass requires another that the pipeline does not hold."""


class ConflictingPasses(PassError):
    """Two passes of one pipeline declared that they do not go together."""


class NoFixpoint(PassError):
    """A repeated group of passes keeps changing the program: its rewrites undo each other."""


class RewriteRefused(PassError):
    """The editor will not make a change that it could not make right."""


class ListenerFailed(PassError):
    """A listener raised an error of its own; `__cause__` is that error."""

    def __init__(self, listener: object, event: str, error: Exception) -> None:
        name = type(listener).__name__
        super().__init__(f"listener {name} failed at {event!r}: {type(error).__name__}: {error}")


class PassFailed(PassError):
    """A pass raised an error of its own; `__cause__` is that error."""

    def __init__(self, pass_name: str, region: str, node: str, error: Exception) -> None:
        place = f" in {region}" if region else ""
        at = f" at {node}" if node else ""
        lines = str(error).splitlines() or [""]
        super().__init__(f"{pass_name} failed{place}{at}: {type(error).__name__}: {lines[0]}")


class VerificationFailed(PassError):
    """A check after a pass found the program wrong.

    Attributes:
        pass_name: the pass that ran last.
        region: path of the region that it ran on; "" is the top graph.
        node: name of the offending node, or "" when the whole program is.
        detail: what was expected and what was found.
        rewrites: what the pass said of each rewrite it made on the region.
        diff: the region's text before and after the pass, as a unified diff; "" in place, where
            nothing is left of before.
    """

    def __init__(self, pass_name: str, region: str, node: str, detail: str) -> None:
        super().__init__(pass_name, region, node, detail)
        self.pass_name, self.region, self.node, self.detail = pass_name, region, node, detail
        self.rewrites: list[str] = []
        self.diff = ""

    def __str__(self) -> str:
        place = f" in {self.region}" if self.region else ""
        at = f" at {self.node}" if self.node else ""
        return f"after {self.pass_name}{place}{at}: {self.detail}{self._suspects()}"

    def _suspects(self) -> str:
        if len(self.rewrites) > 1:
            return f" (one of {len(self.rewrites)} rewrites; `fxpasses bisect` finds which)"
        return f" ({self.rewrites[0]})" if self.rewrites else ""
