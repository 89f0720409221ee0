"""What each pass tried, matched, rewrote and left alone.

statistics = Statistics()
pipeline.run(program, listeners=[statistics])
statistics.refused["replace-masked-copy-with-where"]["same_mask"]    # 2
statistics.never_fired                                              # ["remove-async-asserts"]
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fxpasses.events import Listener
from fxpasses.fixpoint import flatten
from fxpasses.remarks import Remark
from fxpasses.report import PassReport

if TYPE_CHECKING:
    from fxpasses.fixpoint import Item
    from fxpasses.program import Program
    from fxpasses.verify import Inputs


class Statistics(Listener):
    """Counts by pass over every region and run that it listened to.

    Attributes:
        tried: nodes that called a target of the pass.
        matched: those that were what it looks for.
        rewrites: those that it rewrote.
        refused: those that a guard refused, by guard.
    """

    def __init__(self) -> None:
        self.tried: Counter[str] = Counter()
        self.matched: Counter[str] = Counter()
        self.rewrites: Counter[str] = Counter()
        self.refused: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._passes: dict[str, None] = {}

    @property
    def never_fired(self) -> list[str]:
        """The passes that ran and rewrote nothing."""
        return [name for name in self._passes if not self.rewrites[name]]

    def begin(self, program: Program, items: Sequence[Item], inputs: Inputs, verify: str) -> None:
        self._passes.update(dict.fromkeys(pass_.name for pass_ in flatten(items)))

    def missed_by(self, name: str) -> str:
        """The guards that refused for one pass: "same_mask 2, layout 1"."""
        return ", ".join(f"{guard} {count}" for guard, count in self.refused[name].most_common())

    def missed(self, remark: Remark) -> None:
        self.refused[remark.pass_name][remark.guard] += 1

    def after(self, report: PassReport) -> None:
        self.tried[report.name] += report.tried
        self.matched[report.name] += report.matched
        self.rewrites[report.name] += report.rewrites

    def __str__(self) -> str:
        rows = [("pass", "tried", "matched", "rewrote", "missed by")]
        for name in self._passes:
            tried, matched, made = self.tried[name], self.matched[name], self.rewrites[name]
            rows.append((name, str(tried), str(matched), str(made), self.missed_by(name) or "-"))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
        return "\n".join(lines)
