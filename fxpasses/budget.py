"""How many rewrites a run may still make, and which it made.

A run with a limit stops rewriting when it is spent and leaves the rest of the program alone, which
is what a bisection needs: the program after the first n rewrites, for any n. A `RewritePass` pays
one for each rewrite, another pass one for each region that it works on.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fxpasses.errors import InvalidOption


@dataclass
class Budget:
    """The rewrites of a run.

    Attributes:
        limit: how many may be made; None means that there is no end to them.
        taken: the pass and the region of each that was made, in order.
    """

    limit: int | None = None
    taken: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 0:
            raise InvalidOption(f"limit={self.limit}: a run makes no rewrite or more")

    def take(self, pass_name: str, region: str) -> bool:
        """Take one rewrite for a pass on a region, unless the limit is reached."""
        if len(self.taken) == self.limit:
            return False
        self.taken.append((pass_name, region))
        return True
