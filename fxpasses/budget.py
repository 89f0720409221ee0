"""How many rewrites a run may still make.

A run with a limit stops rewriting when it is spent and leaves the rest of the program alone, which
is what a bisection needs: the program after the first n rewrites, for any n. A `RewritePass` pays
one for each rewrite, another pass one for each region that it works on.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Budget:
    """A count of rewrites; `limit` None means that there is no end to them."""

    limit: int | None = None
    taken: int = 0

    def take(self) -> bool:
        """Take one rewrite, unless the limit is reached."""
        if self.taken == self.limit:
            return False
        self.taken += 1
        return True
